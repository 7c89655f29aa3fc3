// girih check
// exit 1, at 5:5
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    if %i {
    }
    return
  }
}
