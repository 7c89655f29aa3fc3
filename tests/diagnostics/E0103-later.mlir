// girih check
// exit 1, at 5:19
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = addf %f, %z : tile<f32>
    %z = mulf %f, %f : tile<f32>
    return
  }
}
