cuda_tile.module @tiled {
  entry @tiled(%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>,
      %K: tile<i32>) {
    %c_15 = constant <i32: 15> : tile<i32>
    %c_16 = constant <i32: 16> : tile<i32>
    %c_2 = constant <i32: 2> : tile<i32>
    %c_0 = constant <f32: 0.0> : tile<16x16xf32>
    %c_0_1 = constant <i32: 0> : tile<i32>
    %c_8 = constant <i32: 8> : tile<i32>
    %c_0_0 = constant <f32: 0.0> : tile<16x8xf32>
    %c_0_0_1 = constant <f32: 0.0> : tile<8x16xf32>
    %0 = addi %M, %c_15 : tile<i32>
    %rows = divi %0, %c_16 signed : tile<i32>
    %1 = addi %N, %c_15 : tile<i32>
    %columns = divi %1, %c_16 signed : tile<i32>
    %pid_x, %pid_y, %pid_z = get_tile_block_id : tile<i32>
    %2 = muli %c_2, %columns : tile<i32>
    %group = divi %pid_x, %2 signed : tile<i32>
    %first = muli %group, %c_2 : tile<i32>
    %3 = subi %rows, %first : tile<i32>
    %height = mini %3, %c_2 signed : tile<i32>
    %4 = remi %pid_x, %height signed : tile<i32>
    %pid_m = addi %first, %4 : tile<i32>
    %5 = muli %c_2, %columns : tile<i32>
    %6 = remi %pid_x, %5 signed : tile<i32>
    %pid_n = divi %6, %height signed : tile<i32>
    %7 = muli %pid_m, %c_16 : tile<i32>
    %8 = iota : tile<16xi32>
    %9 = reshape %7 : tile<i32> -> tile<1xi32>
    %10 = broadcast %9 : tile<1xi32> -> tile<16xi32>
    %m = addi %10, %8 : tile<16xi32>
    %11 = muli %pid_n, %c_16 : tile<i32>
    %12 = iota : tile<16xi32>
    %13 = reshape %11 : tile<i32> -> tile<1xi32>
    %14 = broadcast %13 : tile<1xi32> -> tile<16xi32>
    %n = addi %14, %12 : tile<16xi32>
    %k = iota : tile<8xi32>
    %start = make_token : token
    %total, %token = for %k0 in (%c_0_1 to %K, step %c_8) : tile<i32>
        iter_values(%total_1 = %c_0, %token_1 = %start) -> (tile<16x16xf32>, token) {
      %15 = reshape %k0 : tile<i32> -> tile<1xi32>
      %16 = broadcast %15 : tile<1xi32> -> tile<8xi32>
      %ks = addi %16, %k : tile<8xi32>
      %17 = reshape %m : tile<16xi32> -> tile<16x1xi32>
      %18 = reshape %K : tile<i32> -> tile<1x1xi32>
      %19 = broadcast %18 : tile<1x1xi32> -> tile<16x1xi32>
      %20 = muli %17, %19 : tile<16x1xi32>
      %21 = reshape %A : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %22 = broadcast %21 : tile<1x1xptr<f32>> -> tile<16x1xptr<f32>>
      %23 = offset %22, %20 : tile<16x1xptr<f32>>, tile<16x1xi32> -> tile<16x1xptr<f32>>
      %24 = reshape %ks : tile<8xi32> -> tile<1x8xi32>
      %25 = broadcast %23 : tile<16x1xptr<f32>> -> tile<16x8xptr<f32>>
      %26 = broadcast %24 : tile<1x8xi32> -> tile<16x8xi32>
      %27 = offset %25, %26 : tile<16x8xptr<f32>>, tile<16x8xi32> -> tile<16x8xptr<f32>>
      %28 = reshape %m : tile<16xi32> -> tile<16x1xi32>
      %29 = reshape %M : tile<i32> -> tile<1x1xi32>
      %30 = broadcast %29 : tile<1x1xi32> -> tile<16x1xi32>
      %31 = cmpi less_than %28, %30, signed : tile<16x1xi32> -> tile<16x1xi1>
      %32 = reshape %ks : tile<8xi32> -> tile<1x8xi32>
      %33 = reshape %K : tile<i32> -> tile<1x1xi32>
      %34 = broadcast %33 : tile<1x1xi32> -> tile<1x8xi32>
      %35 = cmpi less_than %32, %34, signed : tile<1x8xi32> -> tile<1x8xi1>
      %36 = broadcast %31 : tile<16x1xi1> -> tile<16x8xi1>
      %37 = broadcast %35 : tile<1x8xi1> -> tile<16x8xi1>
      %38 = andi %36, %37 : tile<16x8xi1>
      %a, %read = load_ptr_tko weak %27, %38, %c_0_0 token = %token_1
          : tile<16x8xptr<f32>>, tile<16x8xi1>, tile<16x8xf32> -> tile<16x8xf32>, token
      %39 = reshape %ks : tile<8xi32> -> tile<8x1xi32>
      %40 = reshape %N : tile<i32> -> tile<1x1xi32>
      %41 = broadcast %40 : tile<1x1xi32> -> tile<8x1xi32>
      %42 = muli %39, %41 : tile<8x1xi32>
      %43 = reshape %B : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %44 = broadcast %43 : tile<1x1xptr<f32>> -> tile<8x1xptr<f32>>
      %45 = offset %44, %42 : tile<8x1xptr<f32>>, tile<8x1xi32> -> tile<8x1xptr<f32>>
      %46 = reshape %n : tile<16xi32> -> tile<1x16xi32>
      %47 = broadcast %45 : tile<8x1xptr<f32>> -> tile<8x16xptr<f32>>
      %48 = broadcast %46 : tile<1x16xi32> -> tile<8x16xi32>
      %49 = offset %47, %48 : tile<8x16xptr<f32>>, tile<8x16xi32> -> tile<8x16xptr<f32>>
      %50 = reshape %ks : tile<8xi32> -> tile<8x1xi32>
      %51 = reshape %K : tile<i32> -> tile<1x1xi32>
      %52 = broadcast %51 : tile<1x1xi32> -> tile<8x1xi32>
      %53 = cmpi less_than %50, %52, signed : tile<8x1xi32> -> tile<8x1xi1>
      %54 = reshape %n : tile<16xi32> -> tile<1x16xi32>
      %55 = reshape %N : tile<i32> -> tile<1x1xi32>
      %56 = broadcast %55 : tile<1x1xi32> -> tile<1x16xi32>
      %57 = cmpi less_than %54, %56, signed : tile<1x16xi32> -> tile<1x16xi1>
      %58 = broadcast %53 : tile<8x1xi1> -> tile<8x16xi1>
      %59 = broadcast %57 : tile<1x16xi1> -> tile<8x16xi1>
      %60 = andi %58, %59 : tile<8x16xi1>
      %b, %read_1 = load_ptr_tko weak %49, %60, %c_0_0_1 token = %token_1
          : tile<8x16xptr<f32>>, tile<8x16xi1>, tile<8x16xf32> -> tile<8x16xf32>, token
      %total_2 = mmaf %a, %b, %total_1 : tile<16x8xf32>, tile<8x16xf32>, tile<16x16xf32>
      %joined = join_tokens %read, %read_1 : token
      continue %total_2, %joined : tile<16x16xf32>, token
    }
    %61 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %62 = reshape %N : tile<i32> -> tile<1x1xi32>
    %63 = broadcast %62 : tile<1x1xi32> -> tile<16x1xi32>
    %64 = muli %61, %63 : tile<16x1xi32>
    %65 = reshape %C : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %66 = broadcast %65 : tile<1x1xptr<f32>> -> tile<16x1xptr<f32>>
    %67 = offset %66, %64 : tile<16x1xptr<f32>>, tile<16x1xi32> -> tile<16x1xptr<f32>>
    %68 = reshape %n : tile<16xi32> -> tile<1x16xi32>
    %69 = broadcast %67 : tile<16x1xptr<f32>> -> tile<16x16xptr<f32>>
    %70 = broadcast %68 : tile<1x16xi32> -> tile<16x16xi32>
    %71 = offset %69, %70 : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
    %72 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %73 = reshape %M : tile<i32> -> tile<1x1xi32>
    %74 = broadcast %73 : tile<1x1xi32> -> tile<16x1xi32>
    %75 = cmpi less_than %72, %74, signed : tile<16x1xi32> -> tile<16x1xi1>
    %76 = reshape %n : tile<16xi32> -> tile<1x16xi32>
    %77 = reshape %N : tile<i32> -> tile<1x1xi32>
    %78 = broadcast %77 : tile<1x1xi32> -> tile<1x16xi32>
    %79 = cmpi less_than %76, %78, signed : tile<1x16xi32> -> tile<1x16xi1>
    %80 = broadcast %75 : tile<16x1xi1> -> tile<16x16xi1>
    %81 = broadcast %79 : tile<1x16xi1> -> tile<16x16xi1>
    %82 = andi %80, %81 : tile<16x16xi1>
    %wrote = store_ptr_tko weak %71, %total, %82 token = %token
        : tile<16x16xptr<f32>>, tile<16x16xf32>, tile<16x16xi1> -> token
    return
  }
}
