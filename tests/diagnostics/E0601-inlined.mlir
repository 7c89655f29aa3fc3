// girih run --device cpu
// exit 3, at 22:4
cuda_tile.module @m {
  entry @k() {
    %no = constant <i1: false> : tile<i1>
    assert %no, "this is false" : tile<i1> loc(#here)
    return
  }
}
#here = loc(callsite("helper.py":22:4 at "kernel.py":7:8))
