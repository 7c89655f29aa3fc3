// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k() {
    %t = constant <f32: 0.0> : tile<2x4xf32>
    %r = permute %t [1, 1] : tile<2x4xf32> -> tile<4x2xf32>
    return
  }
}
