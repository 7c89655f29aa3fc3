// girih check
// exit 1, at 5:34
cuda_tile.module @m {
  entry @k() {
    %t = constant <i32: [[1, 2], [3]]> : tile<2x2xi32>
    return
  }
}
