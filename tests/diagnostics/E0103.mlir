// girih check
// exit 1, at 5:23
cuda_tile.module @m {
  entry @k(%first: tile<f32>) {
    %a = addf %first, %frist : tile<f32>
    return
  }
}
