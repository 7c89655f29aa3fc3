// girih assemble --bytecode-version 13.1 -o $TMP/E0710.tileirbc
// exit 1, at 4:3
cuda_tile.module @m {
  global constant @table <f32: [1.0, 2.0]> : tile<2xf32>
  entry @k(%x: tile<f32>, %t: tile<ptr<f8E8M0FNU>>) {
    %0 = atan2 %x, %x : tile<f32>
    %1 = exp %x rounding<approx> : tile<f32>
    %2 = print_tko "%f", %x : tile<f32> -> token
    %3 = join_tokens %2, %2 : token
    return
  }
}
