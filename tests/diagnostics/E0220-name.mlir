// girih check
// exit 1, at 4:3
cuda_tile.module @m {
  entry @other() {
    return loc(#in_k)
  } loc(#in_k)
}
#file = #cuda_tile.di_file<"a.py" in "src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 3, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 3>
#in_k = #cuda_tile.di_loc<"src/a.py":3:1 in #k>
