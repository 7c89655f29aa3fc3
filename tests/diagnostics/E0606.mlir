// girih run --device eval --arg i=i32:6
// exit 3, at 5:10
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %r = assume div_by<4>, %i : tile<i32>
    print_tko "%d\n", %r : tile<i32> -> token
    return
  }
}
