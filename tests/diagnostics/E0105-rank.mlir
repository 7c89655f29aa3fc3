// girih check
// exit 1, at 5:99
cuda_tile.module @m {
  entry @k() {
    %t = constant <i32: 0> : tile<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi32>
    return
  }
}
