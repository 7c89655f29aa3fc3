// girih run --device sim --grid 2 --arg y=zeros:f32[1]
// exit 3, at 6:10
cuda_tile.module @m {
  entry @both(%y: tile<ptr<f32>>) {
    %one = constant <f32: 1.0> : tile<f32>
    %t = store_ptr_tko weak %y, %one : tile<ptr<f32>>, tile<f32> -> token
    return
  }
}
