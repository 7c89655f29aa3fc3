// Layer norm of every row: y = (x - mean) / sqrt(variance + eps) * weight + bias.
//
// A block normalises four rows of 512 columns at once; views give the tiles, and a reduction along dimension 1 gives one
// number per row.
// Shows: row-wise reductions of a 2-D tile, a broadcast weight row, rsqrt.
//
// launch: grid=64 X=randn:f32[256x512] W=rand:f32[512] B=rand:f32[512] Y=zeros:f32[256x512] eps=f32:1e-5 rows=i32:256
cuda_tile.module @layer_norm {
  entry @layer_norm(%X: tile<ptr<f32>>, %W: tile<ptr<f32>>, %B: tile<ptr<f32>>, %Y: tile<ptr<f32>>,
      %eps: tile<f32>, %rows: tile<i32>) {
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %i0 = constant <i32: 0> : tile<i32>
    %inv_n = constant <f32: 0.001953125> : tile<4xf32>

    %x_all = make_tensor_view %X, shape = [%rows, 512], strides = [512, 1]
        : tile<i32> -> tensor_view<?x512xf32, strides=[512,1]>
    %y_all = make_tensor_view %Y, shape = [%rows, 512], strides = [512, 1]
        : tile<i32> -> tensor_view<?x512xf32, strides=[512,1]>
    %w_all = make_tensor_view %W, shape = [512], strides = [1] : tensor_view<512xf32, strides=[1]>
    %b_all = make_tensor_view %B, shape = [512], strides = [1] : tensor_view<512xf32, strides=[1]>
    %x_tiles = make_partition_view %x_all
        : partition_view<tile=(4x512), padding_value = zero, tensor_view<?x512xf32, strides=[512,1]>>
    %y_tiles = make_partition_view %y_all
        : partition_view<tile=(4x512), tensor_view<?x512xf32, strides=[512,1]>>
    %w_tiles = make_partition_view %w_all : partition_view<tile=(512), tensor_view<512xf32, strides=[1]>>
    %b_tiles = make_partition_view %b_all : partition_view<tile=(512), tensor_view<512xf32, strides=[1]>>

    %x, %t0 = load_view_tko weak %x_tiles[%bx, %i0]
        : partition_view<tile=(4x512), padding_value = zero, tensor_view<?x512xf32, strides=[512,1]>>,
        tile<i32> -> tile<4x512xf32>, token
    %w, %t1 = load_view_tko weak %w_tiles[%i0]
        : partition_view<tile=(512), tensor_view<512xf32, strides=[1]>>, tile<i32> -> tile<512xf32>, token
    %b, %t2 = load_view_tko weak %b_tiles[%i0]
        : partition_view<tile=(512), tensor_view<512xf32, strides=[1]>>, tile<i32> -> tile<512xf32>, token

    %sum = reduce %x dim=1 identities=[0.0 : f32] : tile<4x512xf32> -> tile<4xf32>
        (%elem: tile<f32>, %acc: tile<f32>) {
      %s = addf %elem, %acc : tile<f32>
      yield %s : tile<f32>
    }
    %mean = mulf %sum, %inv_n : tile<4xf32>
    %mean_c = reshape %mean : tile<4xf32> -> tile<4x1xf32>
    %mean_b = broadcast %mean_c : tile<4x1xf32> -> tile<4x512xf32>
    %d = subf %x, %mean_b : tile<4x512xf32>
    %d2 = mulf %d, %d : tile<4x512xf32>
    %sum2 = reduce %d2 dim=1 identities=[0.0 : f32] : tile<4x512xf32> -> tile<4xf32>
        (%elem: tile<f32>, %acc: tile<f32>) {
      %s = addf %elem, %acc : tile<f32>
      yield %s : tile<f32>
    }
    %variance = mulf %sum2, %inv_n : tile<4xf32>
    %eps_1 = reshape %eps : tile<f32> -> tile<1xf32>
    %eps_b = broadcast %eps_1 : tile<1xf32> -> tile<4xf32>
    %v_eps = addf %variance, %eps_b : tile<4xf32>
    %r = rsqrt %v_eps : tile<4xf32>
    %r_c = reshape %r : tile<4xf32> -> tile<4x1xf32>
    %r_b = broadcast %r_c : tile<4x1xf32> -> tile<4x512xf32>
    %normal = mulf %d, %r_b : tile<4x512xf32>

    %w_r = reshape %w : tile<512xf32> -> tile<1x512xf32>
    %w_b = broadcast %w_r : tile<1x512xf32> -> tile<4x512xf32>
    %b_r = reshape %b : tile<512xf32> -> tile<1x512xf32>
    %b_b = broadcast %b_r : tile<1x512xf32> -> tile<4x512xf32>
    %y = fma %normal, %w_b, %b_b : tile<4x512xf32>
    %t3 = store_view_tko weak %y, %y_tiles[%bx, %i0]
        : tile<4x512xf32>, partition_view<tile=(4x512), tensor_view<?x512xf32, strides=[512,1]>>, tile<i32>
        -> token
  }
}
