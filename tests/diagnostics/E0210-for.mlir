// girih check
// exit 1, at 7:7
cuda_tile.module @m {
  entry @k() {
    %n = constant <i32: 4> : tile<i32>
    for %j in (%n to %n, step %n) : tile<i32> {
      break
    }
    return
  }
}
