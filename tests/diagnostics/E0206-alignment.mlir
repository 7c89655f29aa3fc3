// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k() {
    %a = alloca num_elem = 4, alignment = 3 : tile<ptr<f32>>
    return
  }
}
