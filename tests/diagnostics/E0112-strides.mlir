// girih check
// exit 1, at 5:95
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %v = make_tensor_view %p, shape = [8, 8], strides = [8] : tensor_view<8x8xf32, strides=[8]>
    return
  }
}
