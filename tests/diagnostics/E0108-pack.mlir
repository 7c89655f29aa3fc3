// girih check
// exit 1, at 6:15
cuda_tile.module @m {
  entry @k() {
    %x:3 = get_tile_block_id : tile<i32>
    %y = addi %x#3, %x#0 : tile<i32>
    return
  }
}
