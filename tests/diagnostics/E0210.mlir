// girih check
// exit 1, at 6:7
cuda_tile.module @m {
  entry @k(%b: tile<i1>) {
    if %b {
      break
    }
    return
  }
}
