// girih compile --ir c
// exit 1
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    %z = constant <i32: 0> : tile<i32>
    %o = constant <i32: 1> : tile<i32>
    for %j in (%z to %n, step %o) : tile<i32> {
      %a = alloca num_elem = 4, alignment = 4 : tile<ptr<i32>>
      %t = store_ptr_tko weak %a, %j : tile<ptr<i32>>, tile<i32> -> token
    }
    return
  }
}
