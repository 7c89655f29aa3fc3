// girih run --device eval --arg i=i32:2
// exit 3, at 6:10
cuda_tile.module @m {
  entry @k(%i: tile<i32>) {
    %t = iota : tile<8xi32>
    %r = extract %t[%i] : tile<8xi32> -> tile<4xi32>
    print_tko "%d\n", %r : tile<4xi32> -> token
    return
  }
}
