cuda_tile.module @attention {
  entry @attention(%Q: tile<ptr<f32>>, %K: tile<ptr<f32>>, %V: tile<ptr<f32>>, %out_ptr: tile<ptr<f32>>,
      %length: tile<i32>, %scale: tile<f32>) {
    %c_16 = constant <i32: 16> : tile<i32>
    %c_0_0 = constant <f32: 0.0> : tile<16x16xf32>
    %c_minus_inf = constant <f32: 0xFF800000> : tile<16xf32>
    %c_0 = constant <f32: 0.0> : tile<16xf32>
    %c_0_1 = constant <i32: 0> : tile<i32>
    %c_minus_inf_1 = constant <f32: 0xFF800000> : tile<f32>
    %pid_x, %pid_y, %pid_z = get_tile_block_id : tile<i32>
    %start_m = muli %pid_x, %c_16 : tile<i32>
    %pid_x_1, %pid_y_1, %pid_z_1 = get_tile_block_id : tile<i32>
    %0 = muli %pid_y_1, %length : tile<i32>
    %base = muli %0, %c_16 : tile<i32>
    %1 = iota : tile<16xi32>
    %2 = reshape %start_m : tile<i32> -> tile<1xi32>
    %3 = broadcast %2 : tile<1xi32> -> tile<16xi32>
    %m = addi %3, %1 : tile<16xi32>
    %d = iota : tile<16xi32>
    %4 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %5 = reshape %c_16 : tile<i32> -> tile<1x1xi32>
    %6 = broadcast %5 : tile<1x1xi32> -> tile<16x1xi32>
    %7 = muli %4, %6 : tile<16x1xi32>
    %8 = reshape %base : tile<i32> -> tile<1x1xi32>
    %9 = broadcast %8 : tile<1x1xi32> -> tile<16x1xi32>
    %10 = addi %9, %7 : tile<16x1xi32>
    %11 = reshape %d : tile<16xi32> -> tile<1x16xi32>
    %12 = broadcast %10 : tile<16x1xi32> -> tile<16x16xi32>
    %13 = broadcast %11 : tile<1x16xi32> -> tile<16x16xi32>
    %q_at = addi %12, %13 : tile<16x16xi32>
    %14 = reshape %Q : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %15 = broadcast %14 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
    %16 = offset %15, %q_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
    %17 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %18 = reshape %length : tile<i32> -> tile<1x1xi32>
    %19 = broadcast %18 : tile<1x1xi32> -> tile<16x1xi32>
    %20 = cmpi less_than %17, %19, signed : tile<16x1xi32> -> tile<16x1xi1>
    %21 = broadcast %20 : tile<16x1xi1> -> tile<16x16xi1>
    %q, %read = load_ptr_tko weak %16, %21, %c_0_0
        : tile<16x16xptr<f32>>, tile<16x16xi1>, tile<16x16xf32> -> tile<16x16xf32>, token
    %total, %acc, %best, %token = for %start_n in (%c_0_1 to %length, step %c_16) : tile<i32>
        iter_values(%total_1 = %c_0, %acc_1 = %c_0_0, %best_1 = %c_minus_inf, %token_1 = %read)
        -> (tile<16xf32>, tile<16x16xf32>, tile<16xf32>, token) {
      %22 = iota : tile<16xi32>
      %23 = reshape %start_n : tile<i32> -> tile<1xi32>
      %24 = broadcast %23 : tile<1xi32> -> tile<16xi32>
      %n = addi %24, %22 : tile<16xi32>
      %25 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %26 = reshape %c_16 : tile<i32> -> tile<1x1xi32>
      %27 = broadcast %26 : tile<1x1xi32> -> tile<16x1xi32>
      %28 = muli %25, %27 : tile<16x1xi32>
      %29 = reshape %base : tile<i32> -> tile<1x1xi32>
      %30 = broadcast %29 : tile<1x1xi32> -> tile<16x1xi32>
      %31 = addi %30, %28 : tile<16x1xi32>
      %32 = reshape %d : tile<16xi32> -> tile<1x16xi32>
      %33 = broadcast %31 : tile<16x1xi32> -> tile<16x16xi32>
      %34 = broadcast %32 : tile<1x16xi32> -> tile<16x16xi32>
      %kv_at = addi %33, %34 : tile<16x16xi32>
      %35 = reshape %K : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %36 = broadcast %35 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
      %37 = offset %36, %kv_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
      %38 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %39 = reshape %length : tile<i32> -> tile<1x1xi32>
      %40 = broadcast %39 : tile<1x1xi32> -> tile<16x1xi32>
      %41 = cmpi less_than %38, %40, signed : tile<16x1xi32> -> tile<16x1xi1>
      %42 = broadcast %41 : tile<16x1xi1> -> tile<16x16xi1>
      %k, %read_1 = load_ptr_tko weak %37, %42, %c_0_0 token = %token_1
          : tile<16x16xptr<f32>>, tile<16x16xi1>, tile<16x16xf32> -> tile<16x16xf32>, token
      %43 = reshape %V : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %44 = broadcast %43 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
      %45 = offset %44, %kv_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
      %46 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %47 = reshape %length : tile<i32> -> tile<1x1xi32>
      %48 = broadcast %47 : tile<1x1xi32> -> tile<16x1xi32>
      %49 = cmpi less_than %46, %48, signed : tile<16x1xi32> -> tile<16x1xi1>
      %50 = broadcast %49 : tile<16x1xi1> -> tile<16x16xi1>
      %v, %read_2 = load_ptr_tko weak %45, %50, %c_0_0 token = %token_1
          : tile<16x16xptr<f32>>, tile<16x16xi1>, tile<16x16xf32> -> tile<16x16xf32>, token
      %51 = permute %k [1, 0] : tile<16x16xf32> -> tile<16x16xf32>
      %52 = mmaf %q, %51, %c_0_0 : tile<16x16xf32>, tile<16x16xf32>, tile<16x16xf32>
      %53 = reshape %scale : tile<f32> -> tile<1x1xf32>
      %54 = broadcast %53 : tile<1x1xf32> -> tile<16x16xf32>
      %scores = mulf %52, %54 : tile<16x16xf32>
      %55 = reshape %n : tile<16xi32> -> tile<1x16xi32>
      %56 = reshape %length : tile<i32> -> tile<1x1xi32>
      %57 = broadcast %56 : tile<1x1xi32> -> tile<1x16xi32>
      %seen = cmpi less_than %55, %57, signed : tile<1x16xi32> -> tile<1x16xi1>
      %58 = reshape %c_minus_inf_1 : tile<f32> -> tile<1x1xf32>
      %59 = broadcast %58 : tile<1x1xf32> -> tile<16x16xf32>
      %60 = broadcast %seen : tile<1x16xi1> -> tile<16x16xi1>
      %scores_1 = select %60, %scores, %59 : tile<16x16xi1>, tile<16x16xf32>
      %61 = reduce %scores_1 dim=1 identities=[0xFF800000 : f32] : tile<16x16xf32> -> tile<16xf32>
          (%x: tile<f32>, %acc_2: tile<f32>) {
        %62 = maxf %x, %acc_2 : tile<f32>
        yield %62 : tile<f32>
      }
      %new_best = maxf %best_1, %61 : tile<16xf32>
      %63 = reshape %new_best : tile<16xf32> -> tile<16x1xf32>
      %64 = broadcast %63 : tile<16x1xf32> -> tile<16x16xf32>
      %65 = subf %scores_1, %64 : tile<16x16xf32>
      %weights = exp %65 : tile<16x16xf32>
      %66 = subf %best_1, %new_best : tile<16xf32>
      %shrink = exp %66 : tile<16xf32>
      %67 = mulf %total_1, %shrink : tile<16xf32>
      %68 = reduce %weights dim=1 identities=[0.0 : f32] : tile<16x16xf32> -> tile<16xf32>
          (%x_1: tile<f32>, %acc_3: tile<f32>) {
        %69 = addf %x_1, %acc_3 : tile<f32>
        yield %69 : tile<f32>
      }
      %total_2 = addf %67, %68 : tile<16xf32>
      %70 = reshape %shrink : tile<16xf32> -> tile<16x1xf32>
      %71 = broadcast %70 : tile<16x1xf32> -> tile<16x16xf32>
      %72 = mulf %acc_1, %71 : tile<16x16xf32>
      %acc_4 = mmaf %weights, %v, %72 : tile<16x16xf32>, tile<16x16xf32>, tile<16x16xf32>
      %joined = join_tokens %read_1, %read_2 : token
      continue %total_2, %acc_4, %new_best, %joined
          : tile<16xf32>, tile<16x16xf32>, tile<16xf32>, token
    }
    %73 = reshape %out_ptr : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %74 = broadcast %73 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
    %75 = offset %74, %q_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
    %76 = reshape %total : tile<16xf32> -> tile<16x1xf32>
    %77 = broadcast %76 : tile<16x1xf32> -> tile<16x16xf32>
    %78 = divf %acc, %77 : tile<16x16xf32>
    %79 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %80 = reshape %length : tile<i32> -> tile<1x1xi32>
    %81 = broadcast %80 : tile<1x1xi32> -> tile<16x1xi32>
    %82 = cmpi less_than %79, %81, signed : tile<16x1xi32> -> tile<16x1xi1>
    %83 = broadcast %82 : tile<16x1xi1> -> tile<16x16xi1>
    %wrote = store_ptr_tko weak %75, %78, %83 token = %token
        : tile<16x16xptr<f32>>, tile<16x16xf32>, tile<16x16xi1> -> token
    return
  }
}
