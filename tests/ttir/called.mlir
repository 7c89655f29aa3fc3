cuda_tile.module @kernels attributes {producer = "triton"} {
  entry @called(%x: tile<ptr<f32>>, %out: tile<ptr<f32>>) {
    %0 = assume div_by<16>, %x : tile<ptr<f32>> loc(#loc4)
    %1 = assume div_by<16>, %out : tile<ptr<f32>> loc(#loc5)
    %i, %2, %3 = get_tile_block_id : tile<i32> loc(#loc6)
    %v = offset %0, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc(#loc7)
    %v_0, %4 = load_ptr_tko weak %v : tile<ptr<f32>> -> tile<f32>, token loc(#loc8)
    %5 = offset %1, %i : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>> loc("kernels.py":141:14)
    %6 = experimental$call @kernels._twice__fp32_c3(%v_0)
        : (tile<f32>) -> (tile<f32>) loc("kernels.py":141:23)
    %7 = experimental$call @kernels._twice__fp32_c4(%v_0)
        : (tile<f32>) -> (tile<f32>) loc("kernels.py":141:38)
    %8 = addf %6, %7 : tile<f32> loc("kernels.py":141:23)
    store_ptr_tko weak %5, %8 token = %4 : tile<ptr<f32>>, tile<f32> -> token loc("kernels.py":141:5)
    return loc(#loc)
  } loc(#loc)

  experimental$func @kernels._twice__fp32_c3(%x: tile<f32>) -> (tile<f32>) {
    %cst = constant <f32: 3.0> : tile<f32> loc("kernels.py":134:12)
    %0 = mulf %x, %cst : tile<f32> loc("kernels.py":134:12)
    return %0 : tile<f32> loc("kernels.py":134:5)
  } loc("kernels.py":133:1)

  experimental$func @kernels._twice__fp32_c4(%x: tile<f32>) -> (tile<f32>) {
    %cst = constant <f32: 4.0> : tile<f32> loc("kernels.py":134:12)
    %0 = mulf %x, %cst : tile<f32> loc("kernels.py":134:12)
    return %0 : tile<f32> loc("kernels.py":134:5)
  } loc("kernels.py":133:1)
}
#loc = loc("kernels.py":138:1)
#loc1 = loc("kernels.py":139:9)
#loc2 = loc("kernels.py":140:17)
#loc3 = loc("kernels.py":140:9)
#loc4 = loc("x"(#loc))
#loc5 = loc("out"(#loc))
#loc6 = loc("i"(#loc1))
#loc7 = loc("v"(#loc2))
#loc8 = loc("v"(#loc3))
