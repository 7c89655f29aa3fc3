// girih check
// exit 0, at 5:26
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %a = "cuda_tile.negi"(%i) {fast} : (tile<i32>) -> tile<i32>
    return
  }
}
