// girih run
// exit 1
cuda_tile.module @m {
  entry @k(%t: token) { return }
}
