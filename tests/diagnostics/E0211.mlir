// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k() {
    %t = constant <f32: 0.0> : tile<8xf32>
    %r = reduce %t dim=0 identities=[0.0 : f32] : tile<8xf32> -> tile<f32> (%e: tile<f32>, %a: tile<f32>) {
      print_tko "x" -> token
      yield %e : tile<f32>
    }
    return
  }
}
