// girih check
// exit 1, at 5:24
cuda_tile.module @m {
  entry @k(%f: tile<f32>, %h: tile<f16>) {
    %t = addf %f, %h : tile<f32>
    return
  }
}
