// girih check
// exit 1, at 8:10
cuda_tile.module @m {
  entry @k() {
    %ta = constant <f16: 0.0> : tile<4x8xf16>
    %tb = constant <f16: 0.0> : tile<8x2xf16>
    %y = constant <f32: 0.0> : tile<2x4xf32>
    %r = mmaf %ta, %tb, %y : tile<4x8xf16>, tile<8x2xf16>, tile<2x4xf32>
    return
  }
}
