cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @messages(%x: tile<ptr<i32>>) {
    %0 = assume div_by<16>, %x : tile<ptr<i32>> loc(#loc4)
    %v = iota : tile<4xi32> loc(#loc5)
    %1 = reshape %0 : tile<ptr<i32>> -> tile<1xptr<i32>> loc(#loc6)
    %v_0 = broadcast %1 : tile<1xptr<i32>> -> tile<4xptr<i32>> loc(#loc6)
    %v_1 = offset %v_0, %v : tile<4xptr<i32>>, tile<4xi32> -> tile<4xptr<i32>> loc(#loc6)
    %v_2, %2 = load_ptr_tko weak %v_1 : tile<4xptr<i32>> -> tile<4xi32>, token loc(#loc7)
    %3, %4, %5 = get_tile_block_id : tile<i32> loc("kernels.py":171:5)
    print_tko "pid (%d, %d, %d) v: %d\n", %3, %4, %5, %v_2 token = %2
        : tile<i32>, tile<i32>, tile<i32>, tile<4xi32> -> token loc("kernels.py":171:5)
    return loc(#loc)
  } loc(#loc)
}
#loc = loc("kernels.py":169:1)
#loc1 = loc("kernels.py":170:21)
#loc2 = loc("kernels.py":170:17)
#loc3 = loc("kernels.py":170:9)
#loc4 = loc("x"(#loc))
#loc5 = loc("v"(#loc1))
#loc6 = loc("v"(#loc2))
#loc7 = loc("v"(#loc3))
