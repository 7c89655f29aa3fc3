// girih check
// exit 0, at 7:10
cuda_tile.module @m {
  entry @k() {
    %n = constant <i32: 2> : tile<i32>
    %t = constant <f32: 0.0> : tile<2x4xf32>
    %r = extract %t[%n, %n] : tile<2x4xf32> -> tile<1x1xf32>
    return
  }
}
