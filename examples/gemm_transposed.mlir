// C = A^T * B^T: f16 matrices stored the other way round, f32 accumulation.
//
// A is stored K x M and B is stored N x K. The views swap their dimensions with a dim_map, so the program reads as if
// both were stored as usual. The strides are asserted to be multiples of 8.
// Shows: dim_map on contraction operands, assume.
//
// launch: grid=2,3 A=randn:f16[136x200] B=randn:f16[328x136] C=zeros:f32[200x328] M=i32:200 N=i32:328 K=i32:136
cuda_tile.module @gemm_transposed {
  entry @gemm_transposed(%A: tile<ptr<f16>>, %B: tile<ptr<f16>>, %C: tile<ptr<f32>>, %M: tile<i32>,
      %N: tile<i32>, %K: tile<i32>) {
    %M8 = assume div_by<8>, %M : tile<i32>
    %N8 = assume div_by<8>, %N : tile<i32>
    %K8 = assume div_by<8>, %K : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %zero = constant <f32: 0.0> : tile<128x128xf32>
    %a_all = make_tensor_view %A, shape = [%K8, %M8], strides = [%M8, 1]
        : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]>
    %b_all = make_tensor_view %B, shape = [%N8, %K8], strides = [%K8, 1]
        : tile<i32> -> tensor_view<?x?xf16, strides=[?,1]>
    %c_all = make_tensor_view %C, shape = [%M8, %N8], strides = [%N8, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %a_tiles = make_partition_view %a_all
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>,
        dim_map=[1, 0]>
    %b_tiles = make_partition_view %b_all
        : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>,
        dim_map=[1, 0]>
    %c_tiles = make_partition_view %c_all
        : partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %tiles:2 = get_index_space_shape %a_tiles
        : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>,
        dim_map=[1, 0]> -> tile<i32>
    %sum = for %k in (%i0 to %tiles#1, step %i1) : tile<i32>
        iter_values(%acc = %zero) -> (tile<128x128xf32>) {
      %a, %ta = load_view_tko weak %a_tiles[%bx, %k]
          : partition_view<tile=(128x64), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>,
          dim_map=[1, 0]>, tile<i32> -> tile<128x64xf16>, token
      %b, %tb = load_view_tko weak %b_tiles[%k, %by]
          : partition_view<tile=(64x128), padding_value = zero, tensor_view<?x?xf16, strides=[?,1]>,
          dim_map=[1, 0]>, tile<i32> -> tile<64x128xf16>, token
      %next = mmaf %a, %b, %acc : tile<128x64xf16>, tile<64x128xf16>, tile<128x128xf32>
      continue %next : tile<128x128xf32>
    }
    %t = store_view_tko weak %sum, %c_tiles[%bx, %by]
        : tile<128x128xf32>, partition_view<tile=(128x128), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> token
  }
}
