// girih check
// exit 1, at 6:5
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %tv = make_tensor_view %p, shape = [8, 8], strides = [8, 1] : tensor_view<8x8xf32, strides=[8,1]>
    %v = make_partition_view %tv : partition_view<tile=(4), tensor_view<8x8xf32, strides=[8,1]>>
    return
  }
}
