// girih check
// exit 1, at 5:26
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %a = "cuda_tile.cmpi"(%i, %i) : (tile<i32>, tile<i32>) -> tile<i1>
    return
  }
}
