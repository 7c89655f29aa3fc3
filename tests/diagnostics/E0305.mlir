// girih compile {} --ir kernel --schedule {}
// exit 1, at 1:1
cuda_tile.module @m {
  entry @k() {
    return
  }
}
