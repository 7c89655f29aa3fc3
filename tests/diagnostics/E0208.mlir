// girih check
// exit 1, at 5:14
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %v, %t = load_ptr_tko release device %p : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
