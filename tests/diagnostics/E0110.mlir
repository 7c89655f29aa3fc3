// girih check
// exit 1, at 5:15
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %a = cmpi less_then %i, %i, signed : tile<i32> -> tile<i1>
    return
  }
}
