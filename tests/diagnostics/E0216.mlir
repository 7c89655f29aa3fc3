// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %r = assume div_by<3>, %i : tile<i32>
    return
  }
}
