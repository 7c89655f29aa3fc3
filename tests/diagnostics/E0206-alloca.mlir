// girih check
// exit 1, at 5:10
cuda_tile.module @m {
  entry @k() {
    %a = alloca num_elem = 9223372036854775807, alignment = 4 : tile<ptr<i32>>
    return
  }
}
