// girih check
// exit 1, at 4:16
cuda_tile.module @m {
  entry @k(%x: !vector) {
    return
  }
}
