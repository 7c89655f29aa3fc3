// girih check
// exit 1, at 4:3
cuda_tile.module @m {
  cuda_tile.module @n {
    entry @k() { return }
  }
}
