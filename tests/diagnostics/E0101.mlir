// girih check
// exit 1, at 5:18
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = addf %f : tile<f32>
    return
  }
}
