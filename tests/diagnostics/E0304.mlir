// girih compile --ir c
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k(%v: tile<f64>) {
    %a = alloca num_elem = 200000000, alignment = 8 : tile<ptr<f64>>
    %t = store_ptr_tko weak %a, %v : tile<ptr<f64>>, tile<f64> -> token
    return
  }
}
