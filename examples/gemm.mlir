// C = A * B: f16 matrices, f32 accumulation, any M, N and K.
//
// Each block computes one 128 x 128 tile of C, walking along K in steps of 64. No size is a multiple of its tile here:
// the views pad the edge tiles of A and B with zeros, and cut the edge tiles of C.
// Shows: views with partial edges, a loop that carries a tile, the matrix-multiply operation.
//
// launch: grid=4,5 A=randn:f16[500x488] B=randn:f16[488x600] C=zeros:f32[500x600] M=i32:500 N=i32:600 K=i32:488
cuda_tile.module @gemm {
  entry @gemm(%A: tile<ptr<f16>>, %B: tile<ptr<f16>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>,
      %K: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %zero = constant <f32: 0.0> : tile<128x128xf32>

    %a_all = make_tensor_view %A, shape = [%M, %K], strides = [%K, 1]
        : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]>
    %b_all = make_tensor_view %B, shape = [%K, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]>
    %c_all = make_tensor_view %C, shape = [%M, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %a_tiles = make_partition_view %a_all
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>>
    %b_tiles = make_partition_view %b_all
        : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>>
    %c_tiles = make_partition_view %c_all
        : partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>

    // How many tiles of A lie along K.
    %m_tiles, %k_tiles = get_index_space_shape %a_tiles
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>>
        -> tile<i32>

    %sum = for %k in (%i0 to %k_tiles, step %i1) : tile<i32>
        iter_values(%acc = %zero) -> (tile<128x128xf32>) {
      %a, %ta = load_view_tko weak %a_tiles[%bx, %k]
          : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>>,
          tile<i32> -> tile<128x64xf16>, token
      %b, %tb = load_view_tko weak %b_tiles[%k, %by]
          : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>>,
          tile<i32> -> tile<64x128xf16>, token
      %next = mmaf %a, %b, %acc : tile<128x64xf16>, tile<64x128xf16>, tile<128x128xf32>
      continue %next : tile<128x128xf32>
    }

    %t = store_view_tko weak %sum, %c_tiles[%bx, %by]
        : tile<128x128xf32>, partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> token
  }
}
