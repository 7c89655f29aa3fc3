// girih check
// exit 1, at 4:3
cuda_tile.module @m {
  entry @k() optimization_hints=<sm_100 = {}, sm_100 = {}> {
    return
  }
}
