// Y = transpose(X) for an M x N matrix.
//
// A block reads one 64 x 64 tile and writes it to the mirrored place. No permute is needed: the view of Y has a
// dim_map that swaps its dimensions, so tile dimension 0 runs along the columns of Y.
// Shows: dim_map; how the compiler picks a loop order when reads and writes disagree.
//
// launch: grid=16,11 X=randn:f32[1000x700] Y=zeros:f32[700x1000] M=i32:1000 N=i32:700
cuda_tile.module @transpose {
  entry @transpose(%X: tile<ptr<f32>>, %Y: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %x_all = make_tensor_view %X, shape = [%M, %N], strides = [%N, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %y_all = make_tensor_view %Y, shape = [%N, %M], strides = [%M, 1]
        : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
    %x_tiles = make_partition_view %x_all : partition_view<tile=(64x64), tensor_view<?x?xf32, strides=[?,1]>>
    %y_tiles = make_partition_view %y_all
        : partition_view<tile=(64x64), tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>
    %x, %t0 = load_view_tko weak %x_tiles[%bx, %by]
        : partition_view<tile=(64x64), tensor_view<?x?xf32, strides=[?,1]>>, tile<i32>
        -> tile<64x64xf32>, token
    %t1 = store_view_tko weak %x, %y_tiles[%bx, %by]
        : tile<64x64xf32>, partition_view<tile=(64x64), tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>,
        tile<i32> -> token
  }
}
