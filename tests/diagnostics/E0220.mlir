// girih check
// exit 1, at 10:3
cuda_tile.module @m {
  entry @k(%x: tile<f32>) {
    %0 = negf %x : tile<f32> loc(#inlined)
    %1 = negf %x : tile<f32> loc(#in_helper)
    return loc(#in_block)
  } loc(#in_k)
}
#file = #cuda_tile.di_file<"a.py" in "src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 3, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 3>
#helper = #cuda_tile.di_subprogram<file = #file, line = 9, name = "helper", linkageName = "helper_1", compileUnit = #unit, scopeLine = 9>
#block = #cuda_tile.di_lexical_block<scope = #k, file = #file, line = 4, column = 2>
#in_k = #cuda_tile.di_loc<"src/a.py":3:1 in #k>
#in_block = #cuda_tile.di_loc<"src/a.py":4:3 in #block>
#in_helper = #cuda_tile.di_loc<"src/a.py":10:3 in #helper>
#inlined = loc(callsite(#in_helper at #in_block))
