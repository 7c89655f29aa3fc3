// girih check
// exit 1, at 6:10
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    %v = iota : tile<4xi32>
    %0 = reduce %v dim=0 identities=[0 : i32] : tile<4xi32> -> tile<i32>
      (%x: tile<f32>, %y: tile<i32>) {
        yield %y : tile<i32>
      }
  }
}
