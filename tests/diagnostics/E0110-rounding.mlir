// girih check
// exit 1, at 5:31
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = addf %f, %f rounding<nearest> : tile<f32>
    return
  }
}
