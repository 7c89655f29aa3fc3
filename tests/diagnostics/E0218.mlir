// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %t = constant <f32: 0.0> : tile<2x4xf32>
    %r = extract %t[%i] : tile<2x4xf32> -> tile<1x2xf32>
    return
  }
}
