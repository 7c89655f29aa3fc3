// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k() {
    %r = iota : tile<2x4xi32>
    return
  }
}
