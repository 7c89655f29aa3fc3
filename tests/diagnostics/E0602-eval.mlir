// girih run --device eval --arg s=i32:0
// exit 3, at 7:5
cuda_tile.module @m {
  entry @k(%s: tile<i32>) {
    %z = constant <i32: 0> : tile<i32>
    %n = constant <i32: 4> : tile<i32>
    for %j in (%z to %n, step %s) : tile<i32> {
      print_tko "%d\n", %j : tile<i32> -> token
    }
    return
  }
}
