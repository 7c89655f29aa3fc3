cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @graded(%x: tile<ptr<i32>>, %out: tile<ptr<i32>>) {
    %0 = assume div_by<16>, %x : tile<ptr<i32>> loc(#loc2)
    %1 = assume div_by<16>, %out : tile<ptr<i32>> loc(#loc3)
    %i, %2, %3 = get_tile_block_id : tile<i32> loc(#loc4)
    %4 = offset %1, %i : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>> loc("kernels.py":256:14)
    %5 = offset %0, %i : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>> loc("kernels.py":256:38)
    %6, %7 = load_ptr_tko weak %5 : tile<ptr<i32>> -> tile<i32>, token loc("kernels.py":256:30)
    %8 = experimental$call @kernels._grade__i32(%6) : (tile<i32>) -> (tile<i32>) loc("kernels.py":256:23)
    store_ptr_tko weak %4, %8 token = %7 : tile<ptr<i32>>, tile<i32> -> token loc("kernels.py":256:5)
    return loc(#loc)
  } loc(#loc)

  experimental$func @kernels._grade__i32(%v: tile<i32>) -> (tile<i32>) {
    %c100_i32 = constant <i32: 100> : tile<i32>
    %c10_i32 = constant <i32: 10> : tile<i32>
    %c3_i32 = constant <i32: 3> : tile<i32>
    %c-1_i32 = constant <i32: -1> : tile<i32>
    %c0_i32 = constant <i32: 0> : tile<i32> loc("kernels.py":246:8)
    %0 = cmpi less_than %v, %c0_i32, signed : tile<i32> -> tile<i1> loc("kernels.py":246:8)
    %1 = make_token : token loc("kernels.py":246:8)
    %7, %8 = if %0 -> (tile<i32>, token) {
      yield %c-1_i32, %1 : tile<i32>, token loc("kernels.py":247:9)
    } else {
      %2 = cmpi less_than %v, %c3_i32, signed : tile<i32> -> tile<i1> loc("kernels.py":248:8)
      %5, %6 = if %2 -> (tile<i32>, token) {
        %3 = muli %v, %c10_i32 : tile<i32> loc("kernels.py":249:16)
        yield %3, %1 : tile<i32>, token loc("kernels.py":249:9)
      } else {
        %4 = addi %v, %c100_i32 : tile<i32> loc("kernels.py":250:12)
        yield %4, %1 : tile<i32>, token loc("kernels.py":250:5)
      } loc("kernels.py":248:8)
      yield %5, %6 : tile<i32>, token loc("kernels.py":250:5)
    } loc("kernels.py":246:8)
    return %7 : tile<i32> loc("kernels.py":250:5)
  } loc("kernels.py":245:1)
}
#loc = loc("kernels.py":254:1)
#loc1 = loc("kernels.py":255:9)
#loc2 = loc("x"(#loc))
#loc3 = loc("out"(#loc))
#loc4 = loc("i"(#loc1))
