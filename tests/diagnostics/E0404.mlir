// girih run --entry frist
// exit 1
cuda_tile.module @m {
  entry @first() { return }
  entry @second() { return }
}
