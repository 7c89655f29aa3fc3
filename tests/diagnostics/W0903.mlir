// girih run --json --device eval --arg p=zeros:f32[1]
// exit 0, at 7:14
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %one = constant <f32: 1.0> : tile<f32>
    %t = store_ptr_tko weak %p, %one : tile<ptr<f32>>, tile<f32> -> token
    %v, %u = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
