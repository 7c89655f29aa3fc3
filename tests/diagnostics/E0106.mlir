// girih check
// exit 1, at 5:24
cuda_tile.module @m {
  entry @k() {
    %c = constant <i8: 300> : tile<i8>
    return
  }
}
