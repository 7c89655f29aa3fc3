// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k() {
    %t = constant <f32: 0.0> : tile<2x4xf32>
    %r = broadcast %t : tile<2x4xf32> -> tile<4x4xf32>
    return
  }
}
