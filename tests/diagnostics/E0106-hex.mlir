// girih check
// exit 1, at 5:24
cuda_tile.module @m {
  entry @k() {
    %c = constant <i8: 0x1ff> : tile<i8>
    return
  }
}
