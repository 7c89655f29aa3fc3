// girih run --device cpu
// exit 3, at 6:5
cuda_tile.module @m {
  entry @k() {
    %no = constant <i1: false> : tile<i1>
    assert %no, "this is false" : tile<i1>
    return
  }
}
