// girih check
// exit 0, at 7:7
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    for %i in (%n to %n, step %n) : tile<i32> {
      continue
    } {loop_split_threshold = 2 : i32}
    return
  }
}
