// girih check
// exit 1, at 5:35
cuda_tile.module @m {
  entry @k() {
    %c = constant <i32: 0> : tile<99999999999999999999999xi32>
    return
  }
}
