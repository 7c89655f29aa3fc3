// Softmax of every row of a matrix, written with tiles of pointers.
//
// One block per row; the row fits one tile of 1024, masked to the n columns that exist. Masked-off lanes read minus
// infinity, so they change neither the maximum nor the sum.
// Shows: a masked row, two reductions, exp; look at it with `girih compile --ir loop`.
//
// launch: grid=512 src=randn:f32[512x1000] dst=zeros:f32[512x1000] n=i32:1000
cuda_tile.module @softmax {
  entry @softmax(%src: tile<ptr<f32>>, %dst: tile<ptr<f32>>, %n: tile<i32>) {
    %row, %by, %bz = get_tile_block_id : tile<i32>
    %minus_inf = constant <f32: 0xFF800000> : tile<1024xf32>

    %j = iota : tile<1024xi32>
    %n_1 = reshape %n : tile<i32> -> tile<1xi32>
    %n_j = broadcast %n_1 : tile<1xi32> -> tile<1024xi32>
    %exists = cmpi less_than %j, %n_j, signed : tile<1024xi32> -> tile<1024xi1>
    %row_start = muli %row, %n : tile<i32>

    %src_row = offset %src, %row_start : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %src_1 = reshape %src_row : tile<ptr<f32>> -> tile<1xptr<f32>>
    %src_b = broadcast %src_1 : tile<1xptr<f32>> -> tile<1024xptr<f32>>
    %src_p = offset %src_b, %j : tile<1024xptr<f32>>, tile<1024xi32> -> tile<1024xptr<f32>>
    %x, %t0 = load_ptr_tko weak %src_p, %exists, %minus_inf
        : tile<1024xptr<f32>>, tile<1024xi1>, tile<1024xf32> -> tile<1024xf32>, token

    %max = reduce %x dim=0 identities=[0xFF800000 : f32] : tile<1024xf32> -> tile<f32>
        (%elem: tile<f32>, %acc: tile<f32>) {
      %m = maxf %elem, %acc : tile<f32>
      yield %m : tile<f32>
    }
    %max_1 = reshape %max : tile<f32> -> tile<1xf32>
    %max_j = broadcast %max_1 : tile<1xf32> -> tile<1024xf32>
    %shifted = subf %x, %max_j : tile<1024xf32>
    %e = exp %shifted : tile<1024xf32>
    %sum = reduce %e dim=0 identities=[0.0 : f32] : tile<1024xf32> -> tile<f32>
        (%elem: tile<f32>, %acc: tile<f32>) {
      %s = addf %elem, %acc : tile<f32>
      yield %s : tile<f32>
    }
    %sum_1 = reshape %sum : tile<f32> -> tile<1xf32>
    %sum_j = broadcast %sum_1 : tile<1xf32> -> tile<1024xf32>
    %y = divf %e, %sum_j : tile<1024xf32>

    %dst_row = offset %dst, %row_start : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %dst_1 = reshape %dst_row : tile<ptr<f32>> -> tile<1xptr<f32>>
    %dst_b = broadcast %dst_1 : tile<1xptr<f32>> -> tile<1024xptr<f32>>
    %dst_p = offset %dst_b, %j : tile<1024xptr<f32>>, tile<1024xi32> -> tile<1024xptr<f32>>
    %t1 = store_ptr_tko weak %dst_p, %y, %exists : tile<1024xptr<f32>>, tile<1024xf32>, tile<1024xi1> -> token
  }
}
