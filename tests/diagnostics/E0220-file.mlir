// girih check
// exit 1, at 4:1
cuda_tile.module @m {
  entry @k(%x: tile<f32>) {
    %0 = negf %x : tile<f32> loc(#cuda_tile.di_loc<"src/a.py":4:1 in #file>)
    return loc(#cuda_tile.di_loc<"src/a.py":4:1 in #file>)
  } loc(#in_k)
}
#file = #cuda_tile.di_file<"a.py" in "src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 3, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 3>
#in_k = #cuda_tile.di_loc<"src/a.py":3:1 in #k>
