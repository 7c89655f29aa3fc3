// girih check
// exit 1, at 5:5
cuda_tile.module @m {
  entry @k() {
    frobnicate
    return
  }
}
