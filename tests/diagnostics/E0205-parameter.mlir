// girih check
// exit 1, at 4:12
cuda_tile.module @m {
  entry @k(%t: tile<4xf32>) {
    return
  }
}
