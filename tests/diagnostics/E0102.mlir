// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = adff %f, %f : tile<f32>
    return
  }
}
