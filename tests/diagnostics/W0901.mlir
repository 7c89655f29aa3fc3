// girih check
// exit 0, at 5:10
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) {
    %a = experimental$alloca num_elem = 4, alignment = 4 : tile<ptr<f32>>
    return
  }
}
