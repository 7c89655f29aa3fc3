cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @polled(%flag: tile<ptr<i32>>, %out: tile<ptr<i32>>, %limit: tile<i32>) {
    %0 = assume div_by<16>, %flag : tile<ptr<i32>> loc(#loc2)
    %1 = assume div_by<16>, %out : tile<ptr<i32>> loc(#loc3)
    %found = constant <i32: 1> : tile<i32> loc(#loc4)
    %found_0 = exti %limit signed : tile<i32> -> tile<i64> loc(#loc4)
    %2 = make_token : token loc(#loc4)
    %found_1, %13 = loop iter_values(%3 = %found_0, %4 = %2) : tile<i64>, token -> tile<i1>, token {
      %5, %6 = load_ptr_tko acquire device %0 token = %4 : tile<ptr<i32>> -> tile<i32>, token loc(#loc4)
      %7 = cmpi equal %5, %found, signed : tile<i32> -> tile<i1> loc(#loc4)
      %8 = constant <i64: 0> : tile<i64> loc(#loc4)
      %9 = constant <i64: 1> : tile<i64> loc(#loc4)
      %10 = cmpi less_than_or_equal %3, %8, signed : tile<i64> -> tile<i1> loc(#loc4)
      %11 = ori %7, %10 : tile<i1> loc(#loc4)
      %12 = subi %3, %9 : tile<i64> loc(#loc4)
      if %11 {
        break %7, %6 : tile<i1>, token loc(#loc4)
      } else {
        yield loc(#loc4)
      } loc(#loc4)
      continue %12, %6 : tile<i64>, token loc(#loc4)
    } loc(#loc4)
    %14 = exti %found_1 unsigned : tile<i1> -> tile<i32> loc("kernels.py":277:19)
    store_ptr_tko weak %1, %14 token = %13 : tile<ptr<i32>>, tile<i32> -> token loc("kernels.py":277:5)
    return loc(#loc)
  } loc(#loc)
}
#loc = loc("kernels.py":275:1)
#loc1 = loc("kernels.py":276:13)
#loc2 = loc("flag"(#loc))
#loc3 = loc("out"(#loc))
#loc4 = loc("found"(#loc1))
