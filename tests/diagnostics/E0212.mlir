// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k() {
    %g = get_global @nothing : tile<ptr<f32>>
    return
  }
}
