// girih check
// exit 1, at 5:9
cuda_tile.module @m {
  entry @k() { return }
  entry @k() { return }
}
