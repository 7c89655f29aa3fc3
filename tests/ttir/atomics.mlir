cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @atomics(%x: tile<ptr<i32>>, %counts: tile<ptr<i32>>, %total: tile<ptr<i32>>, %lock: tile<ptr<i32>>) {
    %0 = assume div_by<16>, %x : tile<ptr<i32>> loc(#loc8)
    %1 = assume div_by<16>, %counts : tile<ptr<i32>> loc(#loc9)
    %2 = assume div_by<16>, %total : tile<ptr<i32>> loc(#loc10)
    %3 = assume div_by<16>, %lock : tile<ptr<i32>> loc(#loc11)
    %c0_i32 = constant <i32: 0> : tile<i32>
    %cst = constant <i1: true> : tile<64xi1> loc("kernels.py":113:5)
    %true = constant <i1: true> : tile<i1>
    %cst_0 = constant <i32: 1> : tile<64xi32> loc("kernels.py":113:5)
    %c1_i32 = constant <i32: 1> : tile<i32>
    %i = constant <i32: 64> : tile<i32> loc(#loc12)
    %i_1, %4, %5 = get_tile_block_id : tile<i32> loc(#loc12)
    %i_2 = muli %i_1, %i : tile<i32> loc(#loc12)
    %i_3 = iota : tile<64xi32> loc(#loc13)
    %6 = reshape %i_2 : tile<i32> -> tile<1xi32> loc(#loc12)
    %i_4 = broadcast %6 : tile<1xi32> -> tile<64xi32> loc(#loc12)
    %i_5 = addi %i_4, %i_3 : tile<64xi32> loc(#loc12)
    %7 = reshape %0 : tile<ptr<i32>> -> tile<1xptr<i32>> loc(#loc14)
    %v = broadcast %7 : tile<1xptr<i32>> -> tile<64xptr<i32>> loc(#loc14)
    %v_6 = offset %v, %i_5 : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>> loc(#loc14)
    %v_7, %8 = load_ptr_tko weak %v_6 : tile<64xptr<i32>> -> tile<64xi32>, token loc(#loc15)
    %9 = reshape %1 : tile<ptr<i32>> -> tile<1xptr<i32>> loc("kernels.py":113:19)
    %10 = broadcast %9 : tile<1xptr<i32>> -> tile<64xptr<i32>> loc("kernels.py":113:19)
    %11 = offset %10, %v_7 : tile<64xptr<i32>>, tile<64xi32> -> tile<64xptr<i32>> loc("kernels.py":113:19)
    %12, %13 = atomic_rmw_tko acq_rel device %11, add, %cst_0, %cst token = %8
        : tile<64xptr<i32>>, tile<64xi32>, tile<64xi1> -> tile<64xi32>, token loc("kernels.py":113:5)
    %18 = loop iter_values(%14 = %13) : token -> token {
      %15, %16 = atomic_cas_tko acq_rel device %3, %c0_i32, %c1_i32 token = %14
          : tile<ptr<i32>>, tile<i32> -> tile<i32>, token loc("kernels.py":114:11)
      %17 = cmpi equal %15, %c1_i32, signed : tile<i32> -> tile<i1> loc("kernels.py":114:11)
      if %17 {
        yield loc("kernels.py":114:11)
      } else {
        break %16 : token loc("kernels.py":114:11)
      } loc("kernels.py":114:11)
      continue %16 : token loc("kernels.py":114:5)
    } loc("kernels.py":114:5)
    %19, %20 = load_ptr_tko weak %2 token = %18 : tile<ptr<i32>> -> tile<i32>, token loc("kernels.py":116:21)
    %22 = reduce %v_7 dim=0 identities=[0 : i32] : tile<64xi32> -> tile<i32>
        (%x_0: tile<i32>, %acc: tile<i32>) {
      %21 = addi %acc, %x_0 : tile<i32> loc(#loc17)
      yield %21 : tile<i32> loc(#loc16)
    } loc(#loc16)
    %23 = addi %19, %22 : tile<i32> loc("kernels.py":116:21)
    %24 = join_tokens %18, %20 : token loc("kernels.py":116:5)
    %25 = store_ptr_tko weak %2, %23 token = %24 : tile<ptr<i32>>, tile<i32> -> token loc("kernels.py":116:5)
    atomic_rmw_tko acq_rel device %3, xchg, %c0_i32, %true token = %25
        : tile<ptr<i32>>, tile<i32>, tile<i1> -> tile<i32>, token loc("kernels.py":117:5)
    return loc(#loc)
  } loc(#loc)
}
#loc = loc("kernels.py":110:1)
#loc1 = loc("kernels.py":111:9)
#loc2 = loc("kernels.py":111:32)
#loc3 = loc("kernels.py":112:17)
#loc4 = loc("kernels.py":112:9)
#loc5 = loc("triton/language/standard.py":314:12)
#loc6 = loc("kernels.py":116:38)
#loc7 = loc("triton/language/standard.py":287:12)
#loc8 = loc("x"(#loc))
#loc9 = loc("counts"(#loc))
#loc10 = loc("total"(#loc))
#loc11 = loc("lock"(#loc))
#loc12 = loc("i"(#loc1))
#loc13 = loc("i"(#loc2))
#loc14 = loc("v"(#loc3))
#loc15 = loc("v"(#loc4))
#loc16 = loc(callsite(#loc5 at #loc6))
#loc17 = loc(callsite(#loc7 at #loc16))
