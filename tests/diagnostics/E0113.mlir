// girih check
// exit 1, at 5:26
cuda_tile.module @m {
  entry @k(%f: tile<f32>) {
    %a = "cuda_tile.addf"(%f) {rounding_mode = #cuda_tile.rounding<nearest_even>} : (tile<f32>) -> tile<f32>
    return
  }
}
