// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  experimental$func @f(%x: tile<f32>) -> tile<f32> {
    %r = experimental$call @g(%x) : (tile<f32>) -> tile<f32>
    return %r : tile<f32>
  }
  experimental$func @g(%x: tile<f32>) -> tile<f32> {
    %r = experimental$call @f(%x) : (tile<f32>) -> tile<f32>
    return %r : tile<f32>
  }
  entry @k() { return }
}
