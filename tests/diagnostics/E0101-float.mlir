// girih check
// exit 1, at 5:25
cuda_tile.module @m {
  entry @k() {
    %c = constant <i32: 1.5> : tile<i32>
    return
  }
}
