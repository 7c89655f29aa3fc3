// girih check
// exit 1, at 4:3
cuda_tile.module @m {
  entry @k() {
    return
  } loc(#in_block)
}
#file = #cuda_tile.di_file<"a.py" in "src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 3, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 3>
#block = #cuda_tile.di_lexical_block<scope = #k, file = #file, line = 4, column = 2>
#in_block = #cuda_tile.di_loc<"src/a.py":4:3 in #block>
