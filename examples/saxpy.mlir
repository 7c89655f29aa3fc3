// Y = alpha * X + Y over an M x N matrix, in place, written with views.
//
// Each block owns one 64 x 256 tile. The views know the matrix's shape, so edge tiles are partial without a mask in sight.
// The load of Y and the store to Y are ordered by a token.
//
// launch: grid=16,4 X=randn:f32[1000x1000] Y=randn:f32[1000x1000] alpha=f32:2.5 M=i32:1000 N=i32:1000
cuda_tile.module @saxpy {
  entry @saxpy(%X: tile<ptr<f32>>, %Y: tile<ptr<f32>>, %alpha: tile<f32>, %M: tile<i32>, %N: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %alpha_1 = reshape %alpha : tile<f32> -> tile<1x1xf32>
    %alpha_n = broadcast %alpha_1 : tile<1x1xf32> -> tile<64x256xf32>

    %x_all = make_tensor_view %X, shape = [%M, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %y_all = make_tensor_view %Y, shape = [%M, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %x_tiles = make_partition_view %x_all : partition_view<tile=(64x256), tensor_view<?x?xf32, strides=[?,1]>>
    %y_tiles = make_partition_view %y_all : partition_view<tile=(64x256), tensor_view<?x?xf32, strides=[?,1]>>

    %x, %tx = load_view_tko weak %x_tiles[%bx, %by]
        : partition_view<tile=(64x256), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> tile<64x256xf32>, token
    %y, %ty = load_view_tko weak %y_tiles[%bx, %by]
        : partition_view<tile=(64x256), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> tile<64x256xf32>, token
    %ax = mulf %alpha_n, %x : tile<64x256xf32>
    %sum = addf %ax, %y : tile<64x256xf32>
    %t = store_view_tko weak %sum, %y_tiles[%bx, %by] token = %ty
        : tile<64x256xf32>, partition_view<tile=(64x256), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> token
  }
}
