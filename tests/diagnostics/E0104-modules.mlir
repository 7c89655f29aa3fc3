// girih check
// exit 1, at 7:9
cuda_tile.module @m {
  entry @k() { return }
}
cuda_tile.module @n {
  entry @k() { return }
}
