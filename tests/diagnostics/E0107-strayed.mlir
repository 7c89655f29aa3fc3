// girih check
// exit 1, at 7:1
cuda_tile.module @m {
  entry @k(%n: tile<i32>) {
    %a = addi %n, %n : tile<i32>
  }
%b = muli %a, %n : tile<i32>
%c = itof %b signed : tile<i32> -> tile<i32>
}
