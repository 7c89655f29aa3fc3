// girih check
// exit 1, at 5:5
cuda_tile.module @m {
  entry @k() {
    %t = constant <f32: 0.0> : tile<8192x4096xf32>
    return
  }
}
