// girih check
// exit 1, at 5:35
cuda_tile.module @m {
  entry @k() {
    %t = constant <i32: 0> : tile<1099511627776x1099511627776xi32>
    return
  }
}
