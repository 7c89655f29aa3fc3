// girih check
// exit 1, at 3:1
cuda_tile.module @m {
  entry @k() {
    return loc("r"(#in_k))
  } loc("src/a.py":3:1)
}
#file = #cuda_tile.di_file<"a.py" in "src">
#unit = #cuda_tile.di_compile_unit<file = #file>
#k = #cuda_tile.di_subprogram<file = #file, line = 3, name = "k", linkageName = "k", compileUnit = #unit, scopeLine = 3>
#in_k = #cuda_tile.di_loc<"src/a.py":3:1 in #k>
