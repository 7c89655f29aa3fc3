// girih run --json --device eval --arg p=zeros:f32[6]
// exit 0, at 8:14
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %zero = constant <i32: 0> : tile<i32>
    %tv = make_tensor_view %p, shape = [6], strides = [1] : tensor_view<6xf32, strides=[1]>
    %v = make_partition_view %tv : partition_view<tile=(8), tensor_view<6xf32, strides=[1]>>
    %x, %t = load_view_tko weak %v[%zero] : partition_view<tile=(8), tensor_view<6xf32, strides=[1]>>, tile<i32> -> tile<8xf32>, token
    print_tko "%f\n", %x : tile<8xf32> -> token
    return
  }
}
