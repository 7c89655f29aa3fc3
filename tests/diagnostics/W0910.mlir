// girih run --json --check --arg x=zeros:f32[10] --grid 1,1,1
// exit 0, at 10:10
cuda_tile.module @m {
  entry @k(%x: tile<ptr<f32>>) {
    %i = iota : tile<8xi32>
    %one = constant <f32: 1.0> : tile<8xf32>
    %r = reshape %x : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b = broadcast %r : tile<1xptr<f32>> -> tile<8xptr<f32>>
    %p = offset %b, %i : tile<8xptr<f32>>, tile<8xi32> -> tile<8xptr<f32>>
    %t = store_ptr_tko weak %p, %one : tile<8xptr<f32>>, tile<8xf32> -> token
    return
  }
}
