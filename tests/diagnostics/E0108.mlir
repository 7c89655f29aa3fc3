// girih check
// exit 1, at 5:5
cuda_tile.module @m {
  entry @k() {
    %x, %y = get_tile_block_id : tile<i32>
    return
  }
}
