// girih check
// exit 1, at 5:11
cuda_tile.module @m {
  entry @k() {
    return
