// girih check
// exit 1, at 5:15
cuda_tile.module @m {
  entry @k() {
    print_tko "hello -> token
    return
  }
}
