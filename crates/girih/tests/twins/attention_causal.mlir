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
    %22 = addi %start_m, %c_16 : tile<i32>
    %last = mini %22, %length signed : tile<i32>
    %total, %acc, %best, %token = for %start_n in (%c_0_1 to %last, step %c_16) : tile<i32>
        iter_values(%total_1 = %c_0, %acc_1 = %c_0_0, %best_1 = %c_minus_inf, %token_1 = %read)
        -> (tile<16xf32>, tile<16x16xf32>, tile<16xf32>, token) {
      %23 = iota : tile<16xi32>
      %24 = reshape %start_n : tile<i32> -> tile<1xi32>
      %25 = broadcast %24 : tile<1xi32> -> tile<16xi32>
      %n = addi %25, %23 : tile<16xi32>
      %26 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %27 = reshape %c_16 : tile<i32> -> tile<1x1xi32>
      %28 = broadcast %27 : tile<1x1xi32> -> tile<16x1xi32>
      %29 = muli %26, %28 : tile<16x1xi32>
      %30 = reshape %base : tile<i32> -> tile<1x1xi32>
      %31 = broadcast %30 : tile<1x1xi32> -> tile<16x1xi32>
      %32 = addi %31, %29 : tile<16x1xi32>
      %33 = reshape %d : tile<16xi32> -> tile<1x16xi32>
      %34 = broadcast %32 : tile<16x1xi32> -> tile<16x16xi32>
      %35 = broadcast %33 : tile<1x16xi32> -> tile<16x16xi32>
      %kv_at = addi %34, %35 : tile<16x16xi32>
      %36 = reshape %K : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %37 = broadcast %36 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
      %38 = offset %37, %kv_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
      %39 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %40 = reshape %length : tile<i32> -> tile<1x1xi32>
      %41 = broadcast %40 : tile<1x1xi32> -> tile<16x1xi32>
      %42 = cmpi less_than %39, %41, signed : tile<16x1xi32> -> tile<16x1xi1>
      %43 = broadcast %42 : tile<16x1xi1> -> tile<16x16xi1>
      %k, %read_1 = load_ptr_tko weak %38, %43, %c_0_0 token = %token_1
          : tile<16x16xptr<f32>>, tile<16x16xi1>, tile<16x16xf32> -> tile<16x16xf32>, token
      %44 = reshape %V : tile<ptr<f32>> -> tile<1x1xptr<f32>>
      %45 = broadcast %44 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
      %46 = offset %45, %kv_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
      %47 = reshape %n : tile<16xi32> -> tile<16x1xi32>
      %48 = reshape %length : tile<i32> -> tile<1x1xi32>
      %49 = broadcast %48 : tile<1x1xi32> -> tile<16x1xi32>
      %50 = cmpi less_than %47, %49, signed : tile<16x1xi32> -> tile<16x1xi1>
      %51 = broadcast %50 : tile<16x1xi1> -> tile<16x16xi1>
      %v, %read_2 = load_ptr_tko weak %46, %51, %c_0_0 token = %token_1
          : tile<16x16xptr<f32>>, tile<16x16xi1>, tile<16x16xf32> -> tile<16x16xf32>, token
      %52 = permute %k [1, 0] : tile<16x16xf32> -> tile<16x16xf32>
      %53 = mmaf %q, %52, %c_0_0 : tile<16x16xf32>, tile<16x16xf32>, tile<16x16xf32>
      %54 = reshape %scale : tile<f32> -> tile<1x1xf32>
      %55 = broadcast %54 : tile<1x1xf32> -> tile<16x16xf32>
      %scores = mulf %53, %55 : tile<16x16xf32>
      %56 = reshape %n : tile<16xi32> -> tile<1x16xi32>
      %57 = reshape %length : tile<i32> -> tile<1x1xi32>
      %58 = broadcast %57 : tile<1x1xi32> -> tile<1x16xi32>
      %seen = cmpi less_than %56, %58, signed : tile<1x16xi32> -> tile<1x16xi1>
      %59 = reshape %n : tile<16xi32> -> tile<1x16xi32>
      %60 = reshape %m : tile<16xi32> -> tile<16x1xi32>
      %61 = broadcast %59 : tile<1x16xi32> -> tile<16x16xi32>
      %62 = broadcast %60 : tile<16x1xi32> -> tile<16x16xi32>
      %63 = cmpi less_than_or_equal %61, %62, signed : tile<16x16xi32> -> tile<16x16xi1>
      %64 = broadcast %seen : tile<1x16xi1> -> tile<16x16xi1>
      %seen_1 = andi %64, %63 : tile<16x16xi1>
      %65 = reshape %c_minus_inf_1 : tile<f32> -> tile<1x1xf32>
      %66 = broadcast %65 : tile<1x1xf32> -> tile<16x16xf32>
      %scores_1 = select %seen_1, %scores, %66 : tile<16x16xi1>, tile<16x16xf32>
      %67 = reduce %scores_1 dim=1 identities=[0xFF800000 : f32] : tile<16x16xf32> -> tile<16xf32>
          (%x: tile<f32>, %acc_2: tile<f32>) {
        %68 = maxf %x, %acc_2 : tile<f32>
        yield %68 : tile<f32>
      }
      %new_best = maxf %best_1, %67 : tile<16xf32>
      %69 = reshape %new_best : tile<16xf32> -> tile<16x1xf32>
      %70 = broadcast %69 : tile<16x1xf32> -> tile<16x16xf32>
      %71 = subf %scores_1, %70 : tile<16x16xf32>
      %weights = exp %71 : tile<16x16xf32>
      %72 = subf %best_1, %new_best : tile<16xf32>
      %shrink = exp %72 : tile<16xf32>
      %73 = mulf %total_1, %shrink : tile<16xf32>
      %74 = reduce %weights dim=1 identities=[0.0 : f32] : tile<16x16xf32> -> tile<16xf32>
          (%x_1: tile<f32>, %acc_3: tile<f32>) {
        %75 = addf %x_1, %acc_3 : tile<f32>
        yield %75 : tile<f32>
      }
      %total_2 = addf %73, %74 : tile<16xf32>
      %76 = reshape %shrink : tile<16xf32> -> tile<16x1xf32>
      %77 = broadcast %76 : tile<16x1xf32> -> tile<16x16xf32>
      %78 = mulf %acc_1, %77 : tile<16x16xf32>
      %acc_4 = mmaf %weights, %v, %78 : tile<16x16xf32>, tile<16x16xf32>, tile<16x16xf32>
      %joined = join_tokens %read_1, %read_2 : token
      continue %total_2, %acc_4, %new_best, %joined
          : tile<16xf32>, tile<16x16xf32>, tile<16xf32>, token
    }
    %79 = reshape %out_ptr : tile<ptr<f32>> -> tile<1x1xptr<f32>>
    %80 = broadcast %79 : tile<1x1xptr<f32>> -> tile<16x16xptr<f32>>
    %81 = offset %80, %q_at : tile<16x16xptr<f32>>, tile<16x16xi32> -> tile<16x16xptr<f32>>
    %82 = reshape %total : tile<16xf32> -> tile<16x1xf32>
    %83 = broadcast %82 : tile<16x1xf32> -> tile<16x16xf32>
    %84 = divf %acc, %83 : tile<16x16xf32>
    %85 = reshape %m : tile<16xi32> -> tile<16x1xi32>
    %86 = reshape %length : tile<i32> -> tile<1x1xi32>
    %87 = broadcast %86 : tile<1x1xi32> -> tile<16x1xi32>
    %88 = cmpi less_than %85, %87, signed : tile<16x1xi32> -> tile<16x1xi1>
    %89 = broadcast %88 : tile<16x1xi1> -> tile<16x16xi1>
    %wrote = store_ptr_tko weak %81, %84, %89 token = %token
        : tile<16x16xptr<f32>>, tile<16x16xf32>, tile<16x16xi1> -> token
    return
  }
}
