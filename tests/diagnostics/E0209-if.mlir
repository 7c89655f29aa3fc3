// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>, %c: tile<i1>) {
    %v = make_tensor_view %p, shape = [8], strides = [1] : tensor_view<8xf32, strides=[1]>
    %w = if %c -> (tensor_view<8xf32, strides=[1]>) {
      yield %v : tensor_view<8xf32, strides=[1]>
    } else {
      yield %v : tensor_view<8xf32, strides=[1]>
    }
    return
  }
}
