// girih check
// exit 1, at 5:5
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    print_tko "about %", %n : tile<i32> -> token
    return
  }
}
