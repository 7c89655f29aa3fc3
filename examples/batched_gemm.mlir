// C[b] = A[b] * B[b] for a batch of matrices, with the batched form of the matrix-multiply operation.
//
// A block takes two matrices of the batch at once: its tiles are 2 x 32 x 32, and mmaf multiplies them pairwise.
// Shows: 3-D views, a 3-D mmaf, operands rounded to bf16.
//
// launch: grid=4,3,2 A=randn:f32[8x96x80] B=randn:f32[8x80x64] C=zeros:f32[8x96x64] L=i32:8 M=i32:96 N=i32:64 K=i32:80
cuda_tile.module @batched_gemm {
  entry @batched_gemm(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %L: tile<i32>,
      %M: tile<i32>, %N: tile<i32>, %K: tile<i32>) {
    %bl, %bm, %bn = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %zero = constant <f32: 0.0> : tile<2x32x32xf32>

    %a_matrix = muli %M, %K : tile<i32>
    %b_matrix = muli %K, %N : tile<i32>
    %c_matrix = muli %M, %N : tile<i32>
    %a_all = make_tensor_view %A, shape = [%L, %M, %K], strides = [%a_matrix, %K, 1]
        : tile<i32> -> tensor_view<?x?x?xf32, strides=[?,?,1]>
    %b_all = make_tensor_view %B, shape = [%L, %K, %N], strides = [%b_matrix, %N, 1]
        : tile<i32> -> tensor_view<?x?x?xf32, strides=[?,?,1]>
    %c_all = make_tensor_view %C, shape = [%L, %M, %N], strides = [%c_matrix, %N, 1]
        : tile<i32> -> tensor_view<?x?x?xf32, strides=[?,?,1]>
    %a_tiles = make_partition_view %a_all
        : partition_view<tile=(2x32x32), padding_value = zero, tensor_view<?x?x?xf32, strides=[?,?,1]>>
    %b_tiles = make_partition_view %b_all
        : partition_view<tile=(2x32x32), padding_value = zero, tensor_view<?x?x?xf32, strides=[?,?,1]>>
    %c_tiles = make_partition_view %c_all
        : partition_view<tile=(2x32x32), tensor_view<?x?x?xf32, strides=[?,?,1]>>
    %l_tiles, %m_tiles, %k_tiles = get_index_space_shape %a_tiles
        : partition_view<tile=(2x32x32), padding_value = zero, tensor_view<?x?x?xf32, strides=[?,?,1]>>
        -> tile<i32>

    %sum = for %k in (%i0 to %k_tiles, step %i1) : tile<i32>
        iter_values(%acc = %zero) -> (tile<2x32x32xf32>) {
      %a, %ta = load_view_tko weak %a_tiles[%bl, %bm, %k]
          : partition_view<tile=(2x32x32), padding_value = zero, tensor_view<?x?x?xf32, strides=[?,?,1]>>,
          tile<i32> -> tile<2x32x32xf32>, token
      %b, %tb = load_view_tko weak %b_tiles[%bl, %k, %bn]
          : partition_view<tile=(2x32x32), padding_value = zero, tensor_view<?x?x?xf32, strides=[?,?,1]>>,
          tile<i32> -> tile<2x32x32xf32>, token
      %a_bf = ftof %a : tile<2x32x32xf32> -> tile<2x32x32xbf16>
      %b_bf = ftof %b : tile<2x32x32xf32> -> tile<2x32x32xbf16>
      %next = mmaf %a_bf, %b_bf, %acc : tile<2x32x32xbf16>, tile<2x32x32xbf16>, tile<2x32x32xf32>
      continue %next : tile<2x32x32xf32>
    }
    %t = store_view_tko weak %sum, %c_tiles[%bl, %bm, %bn]
        : tile<2x32x32xf32>, partition_view<tile=(2x32x32), tensor_view<?x?x?xf32, strides=[?,?,1]>>,
        tile<i32> -> token
  }
}
