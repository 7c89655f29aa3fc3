cuda_tile.module @softmax {
  entry @softmax(%x: tile<ptr<f32>>, %y: tile<ptr<f32>>) {
    %c_65536 = constant <i32: 65536> : tile<i32>
    %x_1 = assume div_by<16>, %x : tile<ptr<f32>>
    %y_1 = assume div_by<16>, %y : tile<ptr<f32>>
    %i = iota : tile<65536xi32>
    %pid_x, %pid_y, %pid_z = get_tile_block_id : tile<i32>
    %0 = muli %pid_x, %c_65536 : tile<i32>
    %1 = offset %x_1, %0 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %2 = reshape %1 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %3 = broadcast %2 : tile<1xptr<f32>> -> tile<65536xptr<f32>>
    %4 = offset %3, %i : tile<65536xptr<f32>>, tile<65536xi32> -> tile<65536xptr<f32>>
    %v, %read = load_ptr_tko weak %4 : tile<65536xptr<f32>> -> tile<65536xf32>, token
    %5 = reduce %v dim=0 identities=[0xFF800000 : f32] : tile<65536xf32> -> tile<f32>
        (%x_2: tile<f32>, %acc: tile<f32>) {
      %6 = maxf %x_2, %acc : tile<f32>
      yield %6 : tile<f32>
    }
    %7 = reshape %5 : tile<f32> -> tile<1xf32>
    %8 = broadcast %7 : tile<1xf32> -> tile<65536xf32>
    %9 = subf %v, %8 : tile<65536xf32>
    %e = exp %9 : tile<65536xf32>
    %pid_x_1, %pid_y_1, %pid_z_1 = get_tile_block_id : tile<i32>
    %10 = muli %pid_x_1, %c_65536 : tile<i32>
    %11 = offset %y_1, %10 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %12 = reshape %11 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %13 = broadcast %12 : tile<1xptr<f32>> -> tile<65536xptr<f32>>
    %14 = offset %13, %i : tile<65536xptr<f32>>, tile<65536xi32> -> tile<65536xptr<f32>>
    %15 = reduce %e dim=0 identities=[0.0 : f32] : tile<65536xf32> -> tile<f32>
        (%x_3: tile<f32>, %acc_1: tile<f32>) {
      %16 = addf %x_3, %acc_1 : tile<f32>
      yield %16 : tile<f32>
    }
    %17 = reshape %15 : tile<f32> -> tile<1xf32>
    %18 = broadcast %17 : tile<1xf32> -> tile<65536xf32>
    %19 = divf %e, %18 : tile<65536xf32>
    %wrote = store_ptr_tko weak %14, %19 token = %read
        : tile<65536xptr<f32>>, tile<65536xf32> -> token
    return
  }
}
