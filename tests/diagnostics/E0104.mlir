// girih check
// exit 1, at 6:5
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = addf %f, %f : tile<f32>
    %a = mulf %f, %f : tile<f32>
    return
  }
}
