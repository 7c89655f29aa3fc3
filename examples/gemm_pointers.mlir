// C = A * B for square f32 matrices, with tiles of pointers that advance along K.
//
// A block computes one 64 x 64 tile of C. It builds a tile of pointers into A and one into B, and in each step of the
// loop moves both on by one tile: A by 64 columns, B by 64 rows.
// Shows: 2-D pointer arithmetic, pointers carried by a loop.
//
// launch: grid=8,8 A=randn:f32[512x512] B=randn:f32[512x512] C=zeros:f32[512x512]
cuda_tile.module @gemm_pointers {
  entry @gemm_pointers(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %steps = constant <i32: 8> : tile<i32>
    %size = constant <i32: 64> : tile<i32>
    %stride = constant <i32: 512> : tile<64x64xi32>
    %advance_a = constant <i32: 64> : tile<64x64xi32>
    %advance_b = constant <i32: 32768> : tile<64x64xi32>
    %zero = constant <f32: 0.0> : tile<64x64xf32>
    %lane = iota : tile<64xi32>

    // Row and column numbers within a tile, and where this block's rows and columns begin.
    %down_c = reshape %lane : tile<64xi32> -> tile<64x1xi32>
    %down = broadcast %down_c : tile<64x1xi32> -> tile<64x64xi32>
    %across_r = reshape %lane : tile<64xi32> -> tile<1x64xi32>
    %across = broadcast %across_r : tile<1x64xi32> -> tile<64x64xi32>
    %row0 = muli %bx, %size : tile<i32>
    %row0_2 = reshape %row0 : tile<i32> -> tile<1x1xi32>
    %row0_b = broadcast %row0_2 : tile<1x1xi32> -> tile<64x64xi32>
    %row = addi %row0_b, %down : tile<64x64xi32>
    %col0 = muli %by, %size : tile<i32>
    %col0_2 = reshape %col0 : tile<i32> -> tile<1x1xi32>
    %col0_b = broadcast %col0_2 : tile<1x1xi32> -> tile<64x64xi32>
    %col = addi %col0_b, %across : tile<64x64xi32>

    // A: row * 512 + k, B: k * 512 + column, C: row * 512 + column.
    %row_start = muli %row, %stride : tile<64x64xi32>
    %a_index = addi %row_start, %across : tile<64x64xi32>
    %k_start = muli %down, %stride : tile<64x64xi32>
    %b_index = addi %k_start, %col : tile<64x64xi32>
    %c_index = addi %row_start, %col : tile<64x64xi32>
    %a_2 = reshape %A : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %a_b = broadcast %a_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %a_p0 = offset %a_b, %a_index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
    %b_2 = reshape %B : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %b_b = broadcast %b_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %b_p0 = offset %b_b, %b_index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
    %c_2 = reshape %C : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %c_b = broadcast %c_2 : tile<1x1xptr<f32>> -> tile<64x64xptr<f32>>
    %c_p = offset %c_b, %c_index : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>

    %sum, %a_end, %b_end = for %k in (%i0 to %steps, step %i1) : tile<i32>
        iter_values(%acc = %zero, %a_p = %a_p0, %b_p = %b_p0)
        -> (tile<64x64xf32>, tile<64x64xptr<f32>>, tile<64x64xptr<f32>>) {
      %a, %ta = load_ptr_tko weak %a_p : tile<64x64xptr<f32>> -> tile<64x64xf32>, token
      %b, %tb = load_ptr_tko weak %b_p : tile<64x64xptr<f32>> -> tile<64x64xf32>, token
      %next = mmaf %a, %b, %acc : tile<64x64xf32>, tile<64x64xf32>, tile<64x64xf32>
      %a_next = offset %a_p, %advance_a : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
      %b_next = offset %b_p, %advance_b : tile<64x64xptr<f32>>, tile<64x64xi32> -> tile<64x64xptr<f32>>
      continue %next, %a_next, %b_next : tile<64x64xf32>, tile<64x64xptr<f32>>, tile<64x64xptr<f32>>
    }
    %t = store_ptr_tko weak %c_p, %sum : tile<64x64xptr<f32>>, tile<64x64xf32> -> token
  }
}
