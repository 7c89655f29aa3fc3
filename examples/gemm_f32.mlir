// C = A * B in f32, the shape that `girih bench` compares with NumPy.
//
// The same program as gemm.mlir with f32 operands.
//
// launch: grid=8,8 A=randn:f32[1024x1024] B=randn:f32[1024x1024] C=zeros:f32[1024x1024] M=i32:1024 N=i32:1024 K=i32:1024
cuda_tile.module @gemm_f32 {
  entry @gemm_f32(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>,
      %K: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %zero = constant <f32: 0.0> : tile<128x128xf32>

    %a_all = make_tensor_view %A, shape = [%M, %K], strides = [%K, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %b_all = make_tensor_view %B, shape = [%K, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %c_all = make_tensor_view %C, shape = [%M, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %a_tiles = make_partition_view %a_all
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>>
    %b_tiles = make_partition_view %b_all
        : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>>
    %c_tiles = make_partition_view %c_all
        : partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>

    // How many tiles of A lie along K.
    %m_tiles, %k_tiles = get_index_space_shape %a_tiles
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>>
        -> tile<i32>

    %sum = for %k in (%i0 to %k_tiles, step %i1) : tile<i32>
        iter_values(%acc = %zero) -> (tile<128x128xf32>) {
      %a, %ta = load_view_tko weak %a_tiles[%bx, %k]
          : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>>,
          tile<i32> -> tile<128x64xf32>, token
      %b, %tb = load_view_tko weak %b_tiles[%k, %by]
          : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf32, strides=[?,1]>>,
          tile<i32> -> tile<64x128xf32>, token
      %next = mmaf %a, %b, %acc : tile<128x64xf32>, tile<64x128xf32>, tile<128x128xf32>
      continue %next : tile<128x128xf32>
    }

    %t = store_view_tko weak %sum, %c_tiles[%bx, %by]
        : tile<128x128xf32>, partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> token
  }
}
