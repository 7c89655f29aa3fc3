cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @early(%x: tile<ptr<f32>>, %out: tile<ptr<f32>>, %n: tile<i32>) {
    %0 = assume div_by<16>, %x : tile<ptr<f32>> loc(#loc6)
    %1 = assume div_by<16>, %out : tile<ptr<f32>> loc(#loc7)
    %cst = constant <f32: 1.0> : tile<f32>
    %cst_0 = constant <f32: 2.0> : tile<f32>
    %cst_1 = constant <f32: 10.0> : tile<f32>
    %cst_2 = constant <f32: -1.0> : tile<f32>
    %cst_3 = constant <f32: 0.0> : tile<f32>
    %i, %2, %3 = get_tile_block_id : tile<i32> loc(#loc8)
    %4 = cmpi greater_than_or_equal %i, %n, signed : tile<i32> -> tile<i1> loc("kernels.py":60:8)
    if %4 {
      return loc("kernels.py":61:9)
    } else {
      %v = offset %0, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc(#loc9)
      %v_4, %5 = load_ptr_tko weak %v : tile<ptr<f32>> -> tile<f32>, token loc(#loc10)
      %6 = cmpf less_than ordered %v_4, %cst_3 : tile<f32> -> tile<i1> loc("kernels.py":63:8)
      if %6 {
        %7 = offset %1, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc("kernels.py":64:18)
        store_ptr_tko weak %7, %cst_2 token = %5 : tile<ptr<f32>>, tile<f32> -> token loc("kernels.py":64:9)
        return loc("kernels.py":65:9)
      } else {
        %8 = cmpf greater_than ordered %v_4, %cst_1 : tile<f32> -> tile<i1> loc("kernels.py":66:8)
        %9 = if %8 -> (tile<f32>) {
          %v_5 = mulf %v_4, %cst_0 : tile<f32> loc(#loc13)
          yield %v_5 : tile<f32> loc("kernels.py":66:5)
        } else {
          %v_5 = addf %v_4, %cst : tile<f32> loc(#loc14)
          yield %v_5 : tile<f32> loc("kernels.py":66:5)
        } loc("kernels.py":66:5)
        %10 = offset %1, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc("kernels.py":70:14)
        store_ptr_tko weak %10, %9 token = %5 : tile<ptr<f32>>, tile<f32> -> token loc("kernels.py":70:5)
        return loc(#loc)
      } loc("kernels.py":63:8)
      return loc(#loc)
    } loc("kernels.py":60:8)
    return loc(#loc)
  } loc(#loc)
}
#loc = loc("kernels.py":58:1)
#loc1 = loc("kernels.py":59:9)
#loc2 = loc("kernels.py":62:17)
#loc3 = loc("kernels.py":62:9)
#loc4 = loc("kernels.py":67:13)
#loc5 = loc("kernels.py":69:13)
#loc6 = loc("x"(#loc))
#loc7 = loc("out"(#loc))
#loc8 = loc("i"(#loc1))
#loc9 = loc("v"(#loc2))
#loc10 = loc("v"(#loc3))
#loc11 = loc("v"(#loc4))
#loc12 = loc("v"(#loc5))
#loc13 = loc("v"(#loc11))
#loc14 = loc("v"(#loc12))
