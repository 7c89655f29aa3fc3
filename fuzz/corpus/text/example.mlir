// c = a + b over n elements, written with tiles of pointers.
//
// Each block owns 1024 consecutive elements. The last block may reach past n, so its loads and its store are masked.
// Shows: iota, broadcast, offset, a mask from a comparison, masked loads with padding.
//
// launch: grid=98 a=randn:f32[100000] b=randn:f32[100000] c=zeros:f32[100000] n=i32:100000
cuda_tile.module @vector_add {
  entry @vector_add(%a: tile<ptr<f32>>, %b: tile<ptr<f32>>, %c: tile<ptr<f32>>, %n: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %size = constant <i32: 1024> : tile<i32>
    %zero = constant <f32: 0.0> : tile<1024xf32>

    // The 1024 indices of this block, and which of them exist.
    %start = muli %bx, %size : tile<i32>
    %start_1 = reshape %start : tile<i32> -> tile<1xi32>
    %start_n = broadcast %start_1 : tile<1xi32> -> tile<1024xi32>
    %lane = iota : tile<1024xi32>
    %index = addi %start_n, %lane : tile<1024xi32>
    %n_1 = reshape %n : tile<i32> -> tile<1xi32>
    %n_n = broadcast %n_1 : tile<1xi32> -> tile<1024xi32>
    %exists = cmpi less_than %index, %n_n, signed : tile<1024xi32> -> tile<1024xi1>

    // A pointer to each element of a, b and c.
    %a_1 = reshape %a : tile<ptr<f32>> -> tile<1xptr<f32>>
    %a_n = broadcast %a_1 : tile<1xptr<f32>> -> tile<1024xptr<f32>>
    %a_p = offset %a_n, %index : tile<1024xptr<f32>>, tile<1024xi32> -> tile<1024xptr<f32>>
    %b_1 = reshape %b : tile<ptr<f32>> -> tile<1xptr<f32>>
    %b_n = broadcast %b_1 : tile<1xptr<f32>> -> tile<1024xptr<f32>>
    %b_p = offset %b_n, %index : tile<1024xptr<f32>>, tile<1024xi32> -> tile<1024xptr<f32>>
    %c_1 = reshape %c : tile<ptr<f32>> -> tile<1xptr<f32>>
    %c_n = broadcast %c_1 : tile<1xptr<f32>> -> tile<1024xptr<f32>>
    %c_p = offset %c_n, %index : tile<1024xptr<f32>>, tile<1024xi32> -> tile<1024xptr<f32>>

    %x, %t0 = load_ptr_tko weak %a_p, %exists, %zero
        : tile<1024xptr<f32>>, tile<1024xi1>, tile<1024xf32> -> tile<1024xf32>, token
    %y, %t1 = load_ptr_tko weak %b_p, %exists, %zero
        : tile<1024xptr<f32>>, tile<1024xi1>, tile<1024xf32> -> tile<1024xf32>, token
    %sum = addf %x, %y : tile<1024xf32>
    %t2 = store_ptr_tko weak %c_p, %sum, %exists : tile<1024xptr<f32>>, tile<1024xf32>, tile<1024xi1> -> token
  }
}
