cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @collatz(%x: tile<ptr<i64>>, %out: tile<ptr<i32>>) {
    %0 = assume div_by<16>, %x : tile<ptr<i64>> loc(#loc9)
    %1 = assume div_by<16>, %out : tile<ptr<i32>> loc(#loc10)
    %c1_i32 = constant <i32: 1> : tile<i32>
    %c3_i64 = constant <i64: 3> : tile<i64>
    %c0_i64 = constant <i64: 0> : tile<i64>
    %c2_i64 = constant <i64: 2> : tile<i64>
    %c1_i64 = constant <i64: 1> : tile<i64>
    %steps = constant <i32: 0> : tile<i32> loc(#loc11)
    %i, %2, %3 = get_tile_block_id : tile<i32> loc(#loc12)
    %n = offset %0, %i : tile<ptr<i64>>, tile<i32> -> tile<ptr<i64>> loc(#loc13)
    %n_0, %4 = load_ptr_tko weak %n : tile<ptr<i64>> -> tile<i64>, token loc(#loc14)
    %steps_1, %steps_1_0 = loop iter_values(%n_2 = %n_0, %steps_3 = %steps)
        : tile<i64>, tile<i32> -> tile<i64>, tile<i32> {
      %5 = cmpi not_equal %n_2, %c1_i64, signed : tile<i64> -> tile<i1> loc("kernels.py":78:11)
      if %5 {
        yield loc("kernels.py":78:11)
      } else {
        break %n_2, %steps_3 : tile<i64>, tile<i32> loc("kernels.py":78:11)
      } loc("kernels.py":78:11)
      %6 = remi %n_2, %c2_i64 signed : tile<i64> loc("kernels.py":79:12)
      %7 = cmpi equal %6, %c0_i64, signed : tile<i64> -> tile<i1> loc("kernels.py":79:12)
      %8 = if %7 -> (tile<i64>) {
        %n_5 = divi %n_2, %c2_i64 signed : tile<i64> loc(#loc20)
        yield %n_5 : tile<i64> loc("kernels.py":79:9)
      } else {
        %n_5 = muli %n_2, %c3_i64 : tile<i64> loc(#loc17)
        %n_6 = addi %n_5, %c1_i64 : tile<i64> loc(#loc21)
        yield %n_6 : tile<i64> loc("kernels.py":79:9)
      } loc("kernels.py":79:9)
      %steps_4 = addi %steps_3, %c1_i32 : tile<i32> loc(#loc18)
      continue %8, %steps_4 : tile<i64>, tile<i32> loc(#loc19)
    } loc(#loc19)
    %9 = offset %1, %i : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>> loc("kernels.py":84:14)
    store_ptr_tko weak %9, %steps_1_0 token = %4 : tile<ptr<i32>>, tile<i32> -> token loc("kernels.py":84:5)
    return loc(#loc)
  } loc(#loc)
}
#loc = loc("kernels.py":74:1)
#loc1 = loc("kernels.py":77:5)
#loc2 = loc("kernels.py":75:9)
#loc3 = loc("kernels.py":76:17)
#loc4 = loc("kernels.py":76:9)
#loc5 = loc("kernels.py":78:5)
#loc6 = loc("kernels.py":80:17)
#loc7 = loc("kernels.py":82:17)
#loc8 = loc("kernels.py":83:9)
#loc9 = loc("x"(#loc))
#loc10 = loc("out"(#loc))
#loc11 = loc("steps"(#loc1))
#loc12 = loc("i"(#loc2))
#loc13 = loc("n"(#loc3))
#loc14 = loc("n"(#loc4))
#loc15 = loc("n"(#loc5))
#loc16 = loc("n"(#loc6))
#loc17 = loc("n"(#loc7))
#loc18 = loc("steps"(#loc8))
#loc19 = loc("steps"(#loc15))
#loc20 = loc("n"(#loc16))
#loc21 = loc("n"(#loc17))
