// C = A * B for A and B of 512 x 512 in f16, sums in f32. The sizes are multiples of the tiles: docs/product.md schedules it step by step.
//
// launch: grid=4,4 A=randn:f16[512x512] B=randn:f16[512x512] C=zeros:f32[512x512]
cuda_tile.module @product {
  entry @product(%A: tile<ptr<f16>>, %B: tile<ptr<f16>>, %C: tile<ptr<f32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %i1 = constant <i32: 1> : tile<i32>
    %steps = constant <i32: 8> : tile<i32>
    %zero = constant <f32: 0.0> : tile<128x128xf32>
    %a = assume div_by<16>, %A : tile<ptr<f16>>
    %b = assume div_by<16>, %B : tile<ptr<f16>>
    %c = assume div_by<16>, %C : tile<ptr<f32>>
    %a_all = make_tensor_view %a, shape = [512, 512], strides = [512, 1] : tensor_view<512x512xf16, strides=[512,1]>
    %b_all = make_tensor_view %b, shape = [512, 512], strides = [512, 1] : tensor_view<512x512xf16, strides=[512,1]>
    %c_all = make_tensor_view %c, shape = [512, 512], strides = [512, 1] : tensor_view<512x512xf32, strides=[512,1]>
    %a_tiles = make_partition_view %a_all : partition_view<tile=(128x64), tensor_view<512x512xf16, strides=[512,1]>>
    %b_tiles = make_partition_view %b_all : partition_view<tile=(64x128), tensor_view<512x512xf16, strides=[512,1]>>
    %c_tiles = make_partition_view %c_all : partition_view<tile=(128x128), tensor_view<512x512xf32, strides=[512,1]>>
    %sum = for %k in (%i0 to %steps, step %i1) : tile<i32> iter_values(%acc = %zero) -> (tile<128x128xf32>) {
      %x, %tx = load_view_tko weak %a_tiles[%bx, %k]
          : partition_view<tile=(128x64), tensor_view<512x512xf16, strides=[512,1]>>, tile<i32> -> tile<128x64xf16>, token
      %y, %ty = load_view_tko weak %b_tiles[%k, %by]
          : partition_view<tile=(64x128), tensor_view<512x512xf16, strides=[512,1]>>, tile<i32> -> tile<64x128xf16>, token
      %next = mmaf %x, %y, %acc : tile<128x64xf16>, tile<64x128xf16>, tile<128x128xf32>
      continue %next : tile<128x128xf32>
    }
    %t = store_view_tko weak %sum, %c_tiles[%bx, %by]
        : tile<128x128xf32>, partition_view<tile=(128x128), tensor_view<512x512xf32, strides=[512,1]>>, tile<i32> -> token
    return
  }
}
