// Attention in one pass as in attention.mlir, in f16 with sums in f32: both products fit the matrix units of GPUs.
//
// The weights of a piece are rounded to f16 before they are multiplied by the values; what is summed up is not.
// Shows: conversions between products, arrays and strides that are promised to be multiples of 16 bytes.
//
// launch: grid=7,4 Q=randn:f16[4x400x64] K=randn:f16[4x400x64] V=randn:f16[4x400x64] O=zeros:f32[4x400x64] heads=i32:4 n=i32:400
cuda_tile.module @attention_f16 {
  entry @attention_f16(%Q: tile<ptr<f16>>, %K: tile<ptr<f16>>, %V: tile<ptr<f16>>, %O: tile<ptr<f32>>,
      %heads: tile<i32>, %n: tile<i32>) {
    %bq, %head, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %i64 = constant <i32: 64> : tile<i32>
    %scale = constant <f32: 0.125> : tile<64x64xf32>
    %minus_inf_2 = constant <f32: 0xFF800000> : tile<64x64xf32>
    %minus_inf_1 = constant <f32: 0xFF800000> : tile<64xf32>
    %zero_2 = constant <f32: 0.0> : tile<64x64xf32>
    %zero_1 = constant <f32: 0.0> : tile<64xf32>

    %q_div = assume div_by<16>, %Q : tile<ptr<f16>>
    %k_div = assume div_by<16>, %K : tile<ptr<f16>>
    %v_div = assume div_by<16>, %V : tile<ptr<f16>>
    %row = muli %n, %i64 : tile<i32>
    %q_all = make_tensor_view %q_div, shape = [%heads, %n, 64], strides = [%row, 64, 1]
        : tile<i32> -> tensor_view<?x?x64xf16, strides=[?,64,1]>
    %k_all = make_tensor_view %k_div, shape = [%heads, %n, 64], strides = [%row, 64, 1]
        : tile<i32> -> tensor_view<?x?x64xf16, strides=[?,64,1]>
    %v_all = make_tensor_view %v_div, shape = [%heads, %n, 64], strides = [%row, 64, 1]
        : tile<i32> -> tensor_view<?x?x64xf16, strides=[?,64,1]>
    %o_all = make_tensor_view %O, shape = [%heads, %n, 64], strides = [%row, 64, 1]
        : tile<i32> -> tensor_view<?x?x64xf32, strides=[?,64,1]>
    %q_tiles = make_partition_view %q_all
        : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>>
    // Keys are read transposed: dimension 1 of the tile runs along the head's width, dimension 2 along the keys.
    %k_tiles = make_partition_view %k_all
        : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>,
        dim_map=[0, 2, 1]>
    %v_tiles = make_partition_view %v_all
        : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>>
    %o_tiles = make_partition_view %o_all
        : partition_view<tile=(1x64x64), tensor_view<?x?x64xf32, strides=[?,64,1]>>
    %h_tiles, %n_tiles, %d_tiles = get_index_space_shape %v_tiles
        : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>>
        -> tile<i32>

    %q_3, %tq = load_view_tko weak %q_tiles[%head, %bq, %i0]
        : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>>,
        tile<i32> -> tile<1x64x64xf16>, token
    %q_2 = reshape %q_3 : tile<1x64x64xf16> -> tile<64x64xf16>
    %lane = iota : tile<64xi32>
    %n_1 = reshape %n : tile<i32> -> tile<1xi32>
    %n_b = broadcast %n_1 : tile<1xi32> -> tile<64xi32>

    %out, %max, %sum = for %kt in (%i0 to %n_tiles, step %i1) : tile<i32>
        iter_values(%o = %zero_2, %m = %minus_inf_1, %l = %zero_1)
        -> (tile<64x64xf32>, tile<64xf32>, tile<64xf32>) {
      // Scores of 64 queries against 64 keys, keys past the end out of the race.
      %k_3, %tk = load_view_tko weak %k_tiles[%head, %i0, %kt]
          : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>,
          dim_map=[0, 2, 1]>, tile<i32> -> tile<1x64x64xf16>, token
      %k = reshape %k_3 : tile<1x64x64xf16> -> tile<64x64xf16>
      %s_raw = mmaf %q_2, %k, %zero_2 : tile<64x64xf16>, tile<64x64xf16>, tile<64x64xf32>
      %s_all = mulf %s_raw, %scale : tile<64x64xf32>
      %first = muli %kt, %i64 : tile<i32>
      %first_1 = reshape %first : tile<i32> -> tile<1xi32>
      %first_b = broadcast %first_1 : tile<1xi32> -> tile<64xi32>
      %key = addi %first_b, %lane : tile<64xi32>
      %exists = cmpi less_than %key, %n_b, signed : tile<64xi32> -> tile<64xi1>
      %exists_r = reshape %exists : tile<64xi1> -> tile<1x64xi1>
      %exists_b = broadcast %exists_r : tile<1x64xi1> -> tile<64x64xi1>
      %s = select %exists_b, %s_all, %minus_inf_2 : tile<64x64xi1>, tile<64x64xf32>

      // The new maximum of each row, and how much the old sums shrink.
      %s_max = reduce %s dim=1 identities=[0xFF800000 : f32] : tile<64x64xf32> -> tile<64xf32>
          (%elem: tile<f32>, %acc: tile<f32>) {
        %r = maxf %elem, %acc : tile<f32>
        yield %r : tile<f32>
      }
      %m_new = maxf %m, %s_max : tile<64xf32>
      %m_shrink = subf %m, %m_new : tile<64xf32>
      %shrink = exp %m_shrink : tile<64xf32>
      %m_c = reshape %m_new : tile<64xf32> -> tile<64x1xf32>
      %m_b = broadcast %m_c : tile<64x1xf32> -> tile<64x64xf32>
      %d = subf %s, %m_b : tile<64x64xf32>
      %p = exp %d : tile<64x64xf32>
      %p_sum = reduce %p dim=1 identities=[0.0 : f32] : tile<64x64xf32> -> tile<64xf32>
          (%elem: tile<f32>, %acc: tile<f32>) {
        %r = addf %elem, %acc : tile<f32>
        yield %r : tile<f32>
      }
      %l_new = fma %l, %shrink, %p_sum : tile<64xf32>

      // Rescale what is there and add this piece's values.
      %shrink_c = reshape %shrink : tile<64xf32> -> tile<64x1xf32>
      %shrink_b = broadcast %shrink_c : tile<64x1xf32> -> tile<64x64xf32>
      %o_scaled = mulf %o, %shrink_b : tile<64x64xf32>
      %v_3, %tv = load_view_tko weak %v_tiles[%head, %kt, %i0]
          : partition_view<tile=(1x64x64), padding_value = zero, tensor_view<?x?x64xf16, strides=[?,64,1]>>,
          tile<i32> -> tile<1x64x64xf16>, token
      %v = reshape %v_3 : tile<1x64x64xf16> -> tile<64x64xf16>
      %p_half = ftof %p : tile<64x64xf32> -> tile<64x64xf16>
      %o_new = mmaf %p_half, %v, %o_scaled : tile<64x64xf16>, tile<64x64xf16>, tile<64x64xf32>
      continue %o_new, %m_new, %l_new : tile<64x64xf32>, tile<64xf32>, tile<64xf32>
    }

    %sum_c = reshape %sum : tile<64xf32> -> tile<64x1xf32>
    %sum_b = broadcast %sum_c : tile<64x1xf32> -> tile<64x64xf32>
    %result = divf %out, %sum_b : tile<64x64xf32>
    %result_3 = reshape %result : tile<64x64xf32> -> tile<1x64x64xf32>
    %t = store_view_tko weak %result_3, %o_tiles[%head, %bq, %i0]
        : tile<1x64x64xf32>, partition_view<tile=(1x64x64), tensor_view<?x?x64xf32, strides=[?,64,1]>>,
        tile<i32> -> token
  }
}
