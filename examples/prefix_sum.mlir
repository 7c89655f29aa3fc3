// The running sum of each row of a matrix, by a scan along the row.
//
// A block takes two rows of 512. The scan is inclusive: column j holds the sum of columns 0 to j.
// Shows: scan; integers wrap, so sums of large values are exact modulo 2^32.
//
// launch: grid=32 X=arange:i32[64x512] Y=zeros:i32[64x512]
cuda_tile.module @prefix_sum {
  entry @prefix_sum(%X: tile<ptr<i32>>, %Y: tile<ptr<i32>>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %x_all = make_tensor_view %X, shape = [64, 512], strides = [512, 1]
        : tensor_view<64x512xi32, strides=[512,1]>
    %y_all = make_tensor_view %Y, shape = [64, 512], strides = [512, 1]
        : tensor_view<64x512xi32, strides=[512,1]>
    %x_tiles = make_partition_view %x_all
        : partition_view<tile=(2x512), tensor_view<64x512xi32, strides=[512,1]>>
    %y_tiles = make_partition_view %y_all
        : partition_view<tile=(2x512), tensor_view<64x512xi32, strides=[512,1]>>
    %x, %t0 = load_view_tko weak %x_tiles[%bx, %i0]
        : partition_view<tile=(2x512), tensor_view<64x512xi32, strides=[512,1]>>, tile<i32>
        -> tile<2x512xi32>, token
    %sums = scan %x dim=1 reverse=false identities=[0 : i32] : tile<2x512xi32> -> tile<2x512xi32>
        (%elem: tile<i32>, %acc: tile<i32>) {
      %s = addi %acc, %elem : tile<i32>
      yield %s : tile<i32>
    }
    %t1 = store_view_tko weak %sums, %y_tiles[%bx, %i0]
        : tile<2x512xi32>, partition_view<tile=(2x512), tensor_view<64x512xi32, strides=[512,1]>>, tile<i32>
        -> token
  }
}
