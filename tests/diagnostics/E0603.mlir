// girih run --device cpu --check --arg p=zeros:f32[2] --arg i=i32:5
// exit 3, at 7:10
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>, %i: tile<i32>) {
    %at = offset %p, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %zero = constant <f32: 0.0> : tile<f32>
    %t = store_ptr_tko weak %at, %zero : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
