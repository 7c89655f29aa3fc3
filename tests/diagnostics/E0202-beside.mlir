// girih check
// exit 1, at 6:5
// A statement that cannot be read does not hide what is wrong with the others.
cuda_tile.module @beside {
  entry @beside() {
    %x = constant <f32: 0.0> : tile<96xf32>
    %y = adf %x, %x : tile<96xf32>
    %z = addi %x, %x : tile<96xf32>
  }
}
