// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k(%x: tile<f64>) {
    %y = ftof %x rounding<negative_inf> : tile<f64> -> tile<f16>
    return
  }
}
