cuda_tile.module @softmax {
  entry @softmax(%src: tile<ptr<f32>>, %dst: tile<ptr<f32>>, %columns: tile<i32>) {
    %c_minus_inf = constant <f32: 0xFF800000> : tile<128xf32>
    %pid_x, %pid_y, %pid_z = get_tile_block_id : tile<i32>
    %j = iota : tile<128xi32>
    %0 = muli %pid_x, %columns : tile<i32>
    %1 = offset %src, %0 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %2 = reshape %1 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %3 = broadcast %2 : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %4 = offset %3, %j : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %5 = reshape %columns : tile<i32> -> tile<1xi32>
    %6 = broadcast %5 : tile<1xi32> -> tile<128xi32>
    %7 = cmpi less_than %j, %6, signed : tile<128xi32> -> tile<128xi1>
    %x, %read = load_ptr_tko weak %4, %7, %c_minus_inf
        : tile<128xptr<f32>>, tile<128xi1>, tile<128xf32> -> tile<128xf32>, token
    %8 = reduce %x dim=0 identities=[0xFF800000 : f32] : tile<128xf32> -> tile<f32>
        (%x_1: tile<f32>, %acc: tile<f32>) {
      %9 = maxf %x_1, %acc : tile<f32>
      yield %9 : tile<f32>
    }
    %10 = reshape %8 : tile<f32> -> tile<1xf32>
    %11 = broadcast %10 : tile<1xf32> -> tile<128xf32>
    %12 = subf %x, %11 : tile<128xf32>
    %e = exp %12 : tile<128xf32>
    %13 = muli %pid_x, %columns : tile<i32>
    %14 = offset %dst, %13 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
    %15 = reshape %14 : tile<ptr<f32>> -> tile<1xptr<f32>>
    %16 = broadcast %15 : tile<1xptr<f32>> -> tile<128xptr<f32>>
    %17 = offset %16, %j : tile<128xptr<f32>>, tile<128xi32> -> tile<128xptr<f32>>
    %18 = reduce %e dim=0 identities=[0.0 : f32] : tile<128xf32> -> tile<f32>
        (%x_2: tile<f32>, %acc_1: tile<f32>) {
      %19 = addf %x_2, %acc_1 : tile<f32>
      yield %19 : tile<f32>
    }
    %20 = reshape %18 : tile<f32> -> tile<1xf32>
    %21 = broadcast %20 : tile<1xf32> -> tile<128xf32>
    %22 = divf %e, %21 : tile<128xf32>
    %23 = reshape %columns : tile<i32> -> tile<1xi32>
    %24 = broadcast %23 : tile<1xi32> -> tile<128xi32>
    %25 = cmpi less_than %j, %24, signed : tile<128xi32> -> tile<128xi1>
    %wrote = store_ptr_tko weak %17, %22, %25 token = %read
        : tile<128xptr<f32>>, tile<128xf32>, tile<128xi1> -> token
    return
  }
}
