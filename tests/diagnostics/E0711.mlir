// girih assemble -o $TMP/E0711.tileirbc
// exit 1, at 4:3
cuda_tile.module @m {
  experimental$func @one() -> tile<f32> {
    %0 = constant <f32: 1.0> : tile<f32>
    return %0 : tile<f32>
  }
  entry @k() {
    %0 = experimental$call @one() : () -> tile<f32>
    return
  }
}
