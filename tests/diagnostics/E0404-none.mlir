// girih run
// exit 1
cuda_tile.module @m {
}
