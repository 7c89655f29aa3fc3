// girih run --device eval --arg p=zeros:f32[2] --arg i=i32:5
// exit 3, at 6:14
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>, %i: tile<i32>) {
    %at = offset %p, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %v, %t = load_ptr_tko weak %at : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
