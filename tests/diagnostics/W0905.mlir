// girih check
// exit 0, at 4:31
cuda_tile.module @m {
  entry @k(%p: tile<ptr<f32>> {llvm.noalias}) {
    return
  }
}
