// girih check
// exit 0, at 5:14
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>>) optimization_hints = <sm_100 = {occupancy = 2}, default = {num_cta_in_cga = 1}> {
    %x, %t = load_ptr_tko weak %p optimization_hints = <sm_100 = {latency = 11, alow_tma = true}, sm_90a = {}> : tile<ptr<f32>> -> tile<f32>, token
    return
  }
}
