// GIRIH_CACHE_DIR=$HERE/W0505.mlir girih run --json
// exit 0
// launch: grid=4 a=arange:f32[1000] b=ones:f32[1000] c=zeros:f32[1000] n=i32:1000
cuda_tile.module @m {
  entry @add(%a: tile<ptr<f32>>, %b: tile<ptr<f32>>, %c: tile<ptr<f32>>, %n: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %size = constant <i32: 256> : tile<i32>
    %start = muli %bx, %size : tile<i32>
    %lane = iota : tile<256xi32>
    %start_r = reshape %start : tile<i32> -> tile<1xi32>
    %start_b = broadcast %start_r : tile<1xi32> -> tile<256xi32>
    %i = addi %start_b, %lane : tile<256xi32>
    %n_r = reshape %n : tile<i32> -> tile<1xi32>
    %n_b = broadcast %n_r : tile<1xi32> -> tile<256xi32>
    %in = cmpi less_than %i, %n_b, signed : tile<256xi32> -> tile<256xi1>
    %zero = constant <f32: 0.0> : tile<256xf32>
    %a_r = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %a_b = broadcast %a_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %a_p = offset %a_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %b_r = reshape %b : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b_b = broadcast %b_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %b_p = offset %b_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %c_r = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %c_b = broadcast %c_r : tile<1xptr<f32>> -> tile<256xptr<f32>>
    %c_p = offset %c_b, %i : tile<256xptr<f32>>, tile<256xi32> -> tile<256xptr<f32>>
    %x, %t0 = load_ptr_tko weak %a_p, %in, %zero : tile<256xptr<f32>>, tile<256xi1>, tile<256xf32> -> tile<256xf32>, token
    %y, %t1 = load_ptr_tko weak %b_p, %in, %zero : tile<256xptr<f32>>, tile<256xi1>, tile<256xf32> -> tile<256xf32>, token
    %z = addf %x, %y rounding<nearest_even> : tile<256xf32>
    %t2 = store_ptr_tko weak %c_p, %z, %in : tile<256xptr<f32>>, tile<256xf32>, tile<256xi1> -> token
  }
}
