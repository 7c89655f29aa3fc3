global  @g alignment = 16 <f32: [1.000000e-01, 2.000000e-01, 3.000000e-01, 4.000000e-01]> : tile<4xf32>
global private  constant @h <i32: 7> : tile<1xi32>
entry @all(%arg0: tile<ptr<f32>>, %arg1: tile<i32>, %arg2: tile<i1>, %arg3: tile<ptr<i32>>) optimization_hints=<default = {num_worker_warps_per_cta = 4}, sm_100 = {num_cta_in_cga = 2, occupancy = 3}> {
  %cst_0_f32 = constant <f32: 0.000000e+00> : tile<f32>
  %cst_1_f32 = constant <f32: 1.000000e+00> : tile<4xf32>
  %cst_f32 = constant <f32: [1.000000e-01, 9.99999974E-6, 3.500000e+00, 1.000000e+30]> : tile<4xf32>
  %cst_f32_0 = constant <f32: 0x7F800000> : tile<f32>
  %cst_NaN_f32 = constant <f32: 0x7FC00000> : tile<f32>
  %cst_f32_1 = constant <f32: -1.500000e+00> : tile<f32>
  %cst_f64 = constant <f64: 1.000000e-01> : tile<f64>
  %cst_f16 = constant <f16: 9.997550e-02> : tile<4xf16>
  %cst_0_f16 = constant <f16: 0.000000e+00> : tile<4x8xf16>
  %cst_0_f16_2 = constant <f16: 0.000000e+00> : tile<8x2xf16>
  %cst_0_f32_3 = constant <f32: 0.000000e+00> : tile<4x2xf32>
  %true = constant <i1: true> : tile<i1>
  %false = constant <i1: false> : tile<i1>
  %cst_i1 = constant <i1: [true, false, true, false]> : tile<4xi1>
  %true_4 = constant <i1: true> : tile<4xi1>
  %cst_-5_i8 = constant <i8: -5> : tile<i8>
  %cst_0_i8 = constant <i8: 0> : tile<4x8xi8>
  %cst_0_i8_5 = constant <i8: 0> : tile<8x2xi8>
  %cst_0_i32 = constant <i32: 0> : tile<i32>
  %cst_1_i32 = constant <i32: 1> : tile<i32>
  %cst_-7_i32 = constant <i32: -7> : tile<i32>
  %cst_-7_i32_6 = constant <i32: -7> : tile<4xi32>
  %cst_i32 = constant <i32: [[1, 2], [3, -4]]> : tile<2x2xi32>
  %cst_0_i32_7 = constant <i32: 0> : tile<4x2xi32>
  %cst_1099511627776_i64 = constant <i64: 1099511627776> : tile<i64>
  %cst_i32_8 = constant <i32: [1, 2, 3, -4]> : tile<4xi32>
  %0 = make_token : token
  %1 = make_token : token
  %2 = join_tokens %0, %1 : token
  %reshape = reshape %cst_0_f32 : tile<f32> -> tile<1x1xf32>
  %bcast = broadcast %reshape : tile<1x1xf32> -> tile<4x2xf32>
  %3 = cat %cst_1_f32, %cst_f32 dim = 0 : tile<4xf32>, tile<4xf32> -> tile<8xf32>
  %4 = extract %cst_f32[%cst_0_i32] : tile<4xf32> -> tile<2xf32>
  %5 = extract %cst_f32[%cst_1_i32] : tile<4xf32> -> tile<2xf32>
  %6 = insert %5, %cst_f32[%cst_0_i32] : tile<2xf32>, tile<4xf32>
  %7 = get_global @g : tile<ptr<f32>>
  %gridSize_x, %gridSize_y, %gridSize_z = get_num_tile_blocks : tile<i32>
  %blockId_x, %blockId_y, %blockId_z = get_tile_block_id : tile<i32>
  %8 = iota : tile<4xi32>
  %9 = mmaf %cst_0_f16, %cst_0_f16_2, %cst_0_f32_3 : tile<4x8xf16>, tile<8x2xf16>, tile<4x2xf32>
  %10 = mmaf %cst_0_f16, %cst_0_f16_2, %cst_0_f32_3 fast_acc : tile<4x8xf16>, tile<8x2xf16>, tile<4x2xf32>
  %11 = mmai %cst_0_i8, %cst_0_i8_5, %cst_0_i32_7 signed unsigned : tile<4x8xi8>, tile<8x2xi8>, tile<4x2xi32>
  %reshape_9 = reshape %arg0 : tile<ptr<f32>> -> tile<1xptr<f32>>
  %bcast_10 = broadcast %reshape_9 : tile<1xptr<f32>> -> tile<4xptr<f32>>
  %reshape_11 = reshape %arg3 : tile<ptr<i32>> -> tile<1xptr<i32>>
  %bcast_12 = broadcast %reshape_11 : tile<1xptr<i32>> -> tile<4xptr<i32>>
  %12 = offset %bcast_10, %8 : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
  %13 = offset %bcast_12, %8 : tile<4xptr<i32>>, tile<4xi32> -> tile<4xptr<i32>>
  %14 = pack %cst_f16 : tile<4xf16> -> tile<8xi8>
  %15 = unpack %14 : tile<8xi8> -> tile<4xf16>
  %16 = permute %cst_0_f32_3 [1, 0] : tile<4x2xf32> -> tile<2x4xf32>
  %17 = select %cst_i1, %cst_1_f32, %cst_f32 : tile<4xi1>, tile<4xf32>
  %reduce = reduce %cst_f32 dim=0 identities=[0.000000e+00 : f32] : tile<4xf32> -> tile<f32> 
  (%reduce_lhs: tile<f32>, %reduce_rhs: tile<f32>) {
    %144 = addf %reduce_lhs, %reduce_rhs  : tile<f32>
    yield %144 : tile<f32>
  }
  %reduce_13:2 = reduce %cst_f32, %cst_i32_8 dim=0 identities=[0xFF800000 : f32, -1 : i32] : tile<4xf32>, tile<4xi32> -> tile<f32>, tile<i32> 
  (%reduce_lhs0: tile<f32>, %reduce_rhs0: tile<f32>, %reduce_lhs1: tile<i32>, %reduce_rhs1: tile<i32>) {
    yield %reduce_lhs0, %reduce_lhs1 : tile<f32>, tile<i32>
  }
  %18 = scan %cst_f32 dim=0 reverse=true identities=[1.000000e+00 : f32] : tile<4xf32> -> tile<4xf32> 
  (%arg4: tile<f32>, %arg5: tile<f32>) {
    %144 = mulf %arg4, %arg5 rounding<zero> flush_to_zero : tile<f32>
    yield %144 : tile<f32>
  }
  %19 = bitcast %cst_1_f32 : tile<4xf32> -> tile<4xi32>
  %20 = exti %8 signed : tile<4xi32> -> tile<4xi64>
  %21 = exti %8 unsigned : tile<4xi32> -> tile<4xi64>
  %22 = ftof %cst_1_f32  : tile<4xf32> -> tile<4xf16>
  %23 = ftoi %cst_1_f32 signed  : tile<4xf32> -> tile<4xi32>
  %24 = ftoi %cst_1_f32 unsigned  saturating : tile<4xf32> -> tile<4xi32>
  %25 = ftof %cst_1_f32 rounding<zero> : tile<4xf32> -> tile<4xf8E8M0FNU>
  %26 = itof %8 signed  : tile<4xi32> -> tile<4xf32>
  %27 = int_to_ptr %cst_1099511627776_i64 : tile<i64> -> tile<ptr<f32>>
  %28 = ptr_to_int %arg0 : tile<ptr<f32>> -> tile<i64>
  %29 = ptr_to_ptr %arg0 : tile<ptr<f32>> -> tile<ptr<i32>>
  %30 = trunci %8 : tile<4xi32> -> tile<4xi8>
  %31 = trunci %8 overflow<no_signed_wrap> : tile<4xi32> -> tile<4xi8>
  assert %true_4, "it \22fails\22\0A\09\\ 100% \01" : tile<4xi1>
  %32 = alloca num_elem = 64, alignment = 128 : tile<ptr<f32>>
  %33 = alloca num_elem = 64, alignment = 128 global : tile<ptr<f32>>
  %result, %result_token = load_ptr_tko weak %12 : tile<4xptr<f32>> -> tile<4xf32>, token
  %result_14, %result_token_15 = load_ptr_tko acquire device %12, %cst_i1, %cst_f32 token=%0 optimization_hints = <sm_100 = {latency = 5}> : tile<4xptr<f32>>, tile<4xi1>, tile<4xf32> -> tile<4xf32>, token
  %result_16, %result_token_17 = load_ptr_tko relaxed sys %12, %cst_i1 optimization_hints = <sm_100 = {latency = 5}> : tile<4xptr<f32>>, tile<4xi1> -> tile<4xf32>, token
  %34 = store_ptr_tko weak %12, %cst_f32 : tile<4xptr<f32>>, tile<4xf32> -> token
  %35 = store_ptr_tko release tl_blk %12, %cst_f32, %cst_i1 token=%0 optimization_hints = <sm_100 = {latency = 5}> : tile<4xptr<f32>>, tile<4xf32>, tile<4xi1> -> token
  %36 = absf %cst_f32 : tile<4xf32>
  %37 = ceil %cst_f32 : tile<4xf32>
  %38 = cosh %cst_f32 : tile<4xf32>
  %39 = cos %cst_f32 : tile<4xf32>
  %40 = floor %cst_f32 : tile<4xf32>
  %41 = log2 %cst_f32 : tile<4xf32>
  %42 = log %cst_f32 : tile<4xf32>
  %43 = negf %cst_f32 : tile<4xf32>
  %44 = sinh %cst_f32 : tile<4xf32>
  %45 = sin %cst_f32 : tile<4xf32>
  %46 = tan %cst_f32 : tile<4xf32>
  %47 = exp %cst_f32  : tile<4xf32>
  %48 = exp %cst_f32 rounding<approx> : tile<4xf32>
  %49 = tanh %cst_f32  : tile<4xf32>
  %50 = tanh %cst_f32 rounding<approx> : tile<4xf32>
  %51 = exp2 %cst_f32 : tile<4xf32>
  %52 = rsqrt %cst_f32 : tile<4xf32>
  %53 = sqrt %cst_f32  : tile<4xf32>
  %54 = exp2 %cst_f32 flush_to_zero : tile<4xf32>
  %55 = rsqrt %cst_f32 flush_to_zero : tile<4xf32>
  %56 = sqrt %cst_f32  flush_to_zero : tile<4xf32>
  %57 = sqrt %cst_f32 rounding<approx> flush_to_zero : tile<4xf32>
  %58 = addf %cst_1_f32, %cst_f32  : tile<4xf32>
  %59 = addf %cst_1_f32, %cst_f32 rounding<zero> : tile<4xf32>
  %60 = addf %cst_1_f32, %cst_f32  flush_to_zero : tile<4xf32>
  %61 = addf %cst_1_f32, %cst_f32 rounding<positive_inf> flush_to_zero : tile<4xf32>
  %62 = subf %cst_1_f32, %cst_f32  : tile<4xf32>
  %63 = subf %cst_1_f32, %cst_f32 rounding<zero> : tile<4xf32>
  %64 = subf %cst_1_f32, %cst_f32  flush_to_zero : tile<4xf32>
  %65 = subf %cst_1_f32, %cst_f32 rounding<positive_inf> flush_to_zero : tile<4xf32>
  %66 = mulf %cst_1_f32, %cst_f32  : tile<4xf32>
  %67 = mulf %cst_1_f32, %cst_f32 rounding<zero> : tile<4xf32>
  %68 = mulf %cst_1_f32, %cst_f32  flush_to_zero : tile<4xf32>
  %69 = mulf %cst_1_f32, %cst_f32 rounding<positive_inf> flush_to_zero : tile<4xf32>
  %70 = divf %cst_1_f32, %cst_f32  : tile<4xf32>
  %71 = divf %cst_1_f32, %cst_f32 rounding<zero> : tile<4xf32>
  %72 = divf %cst_1_f32, %cst_f32  flush_to_zero : tile<4xf32>
  %73 = divf %cst_1_f32, %cst_f32 rounding<positive_inf> flush_to_zero : tile<4xf32>
  %74 = divf %cst_1_f32, %cst_f32 rounding<full> : tile<4xf32>
  %75 = fma %cst_1_f32, %cst_f32, %cst_1_f32  : tile<4xf32>
  %76 = fma %cst_1_f32, %cst_f32, %cst_1_f32 rounding<negative_inf> flush_to_zero : tile<4xf32>
  %77 = maxf %cst_1_f32, %cst_f32 : tile<4xf32>
  %78 = maxf %cst_1_f32, %cst_f32 flush_to_zero : tile<4xf32>
  %79 = maxf %cst_1_f32, %cst_f32 propagate_nan : tile<4xf32>
  %80 = maxf %cst_1_f32, %cst_f32 flush_to_zero propagate_nan : tile<4xf32>
  %81 = minf %cst_1_f32, %cst_f32 : tile<4xf32>
  %82 = minf %cst_1_f32, %cst_f32 flush_to_zero : tile<4xf32>
  %83 = minf %cst_1_f32, %cst_f32 propagate_nan : tile<4xf32>
  %84 = minf %cst_1_f32, %cst_f32 flush_to_zero propagate_nan : tile<4xf32>
  %85 = remf %cst_1_f32, %cst_f32 : tile<4xf32>
  %86 = fpowf %cst_1_f32, %cst_f32 : tile<4xf32>
  %87 = atan2 %cst_1_f32, %cst_f32 : tile<4xf32>
  %88 = fpowi %cst_1_f32, %8 : tile<4xf32>, tile<4xi32>
  %89 = cmpf less_than ordered %cst_1_f32, %cst_f32 : tile<4xf32> -> tile<4xi1>
  %90 = absi %8 : tile<4xi32>
  %91 = addi %8, %cst_-7_i32_6 : tile<4xi32>
  %92 = addi %8, %cst_-7_i32_6 overflow<no_signed_wrap> : tile<4xi32>
  %93 = addi %8, %cst_-7_i32_6 overflow<no_unsigned_wrap> : tile<4xi32>
  %94 = addi %8, %cst_-7_i32_6 overflow<no_wrap> : tile<4xi32>
  %95 = subi %8, %cst_-7_i32_6 : tile<4xi32>
  %96 = subi %8, %cst_-7_i32_6 overflow<no_signed_wrap> : tile<4xi32>
  %97 = subi %8, %cst_-7_i32_6 overflow<no_unsigned_wrap> : tile<4xi32>
  %98 = subi %8, %cst_-7_i32_6 overflow<no_wrap> : tile<4xi32>
  %99 = muli %8, %cst_-7_i32_6 : tile<4xi32>
  %100 = muli %8, %cst_-7_i32_6 overflow<no_signed_wrap> : tile<4xi32>
  %101 = muli %8, %cst_-7_i32_6 overflow<no_unsigned_wrap> : tile<4xi32>
  %102 = muli %8, %cst_-7_i32_6 overflow<no_wrap> : tile<4xi32>
  %103 = shli %8, %cst_-7_i32_6 : tile<4xi32>
  %104 = shli %8, %cst_-7_i32_6 overflow<no_signed_wrap> : tile<4xi32>
  %105 = shli %8, %cst_-7_i32_6 overflow<no_unsigned_wrap> : tile<4xi32>
  %106 = shli %8, %cst_-7_i32_6 overflow<no_wrap> : tile<4xi32>
  %107 = negi %8 : tile<4xi32>
  %108 = negi %8 overflow<no_signed_wrap> : tile<4xi32>
  %109 = cmpi greater_than_or_equal %8, %cst_-7_i32_6, unsigned : tile<4xi32> -> tile<4xi1>
  %110 = divi %8, %cst_i32_8 signed : tile<4xi32>
  %111 = divi %8, %cst_i32_8 signed rounding<positive_inf> : tile<4xi32>
  %112 = maxi %8, %cst_i32_8 signed : tile<4xi32>
  %113 = maxi %8, %cst_i32_8 unsigned : tile<4xi32>
  %114 = mini %8, %cst_i32_8 signed : tile<4xi32>
  %115 = mini %8, %cst_i32_8 unsigned : tile<4xi32>
  %116 = remi %8, %cst_i32_8 signed : tile<4xi32>
  %117 = remi %8, %cst_i32_8 unsigned : tile<4xi32>
  %118 = shri %8, %cst_i32_8 signed : tile<4xi32>
  %119 = shri %8, %cst_i32_8 unsigned : tile<4xi32>
  %120 = mulhii %8, %cst_i32_8 : tile<4xi32>
  %121 = andi %8, %cst_i32_8 : tile<4xi32>
  %122 = ori %8, %cst_i32_8 : tile<4xi32>
  %123 = xori %8, %cst_i32_8 : tile<4xi32>
  %result_18, %result_token_19 = atomic_cas_tko relaxed device %13, %8, %cst_i32_8 : tile<4xptr<i32>>, tile<4xi32> -> tile<4xi32>, token
  %result_20, %result_token_21 = atomic_cas_tko acq_rel sys %13, %8, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_22, %result_token_23 = atomic_rmw_tko release device %13, and, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_24, %result_token_25 = atomic_rmw_tko release device %13, or, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_26, %result_token_27 = atomic_rmw_tko release device %13, xor, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_28, %result_token_29 = atomic_rmw_tko release device %13, add, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_30, %result_token_31 = atomic_rmw_tko relaxed device %12, addf, %cst_f32 : tile<4xptr<f32>>, tile<4xf32> -> tile<4xf32>, token
  %result_32, %result_token_33 = atomic_rmw_tko release device %13, max, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_34, %result_token_35 = atomic_rmw_tko release device %13, min, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_36, %result_token_37 = atomic_rmw_tko release device %13, umax, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_38, %result_token_39 = atomic_rmw_tko release device %13, umin, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %result_40, %result_token_41 = atomic_rmw_tko release device %13, xchg, %cst_i32_8, %cst_i1 token=%0 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
  %tview = make_tensor_view %arg0, shape = [%arg1, 128], strides = [%arg1, 1] : tile<i32> -> tensor_view<?x128xf32, strides=[?,1]>
  %tview_42 = make_tensor_view %arg0, shape = [], strides = [] : tensor_view<f32>
  %tview_43 = make_tensor_view %arg0, shape = [8, 128], strides = [128, 1] : tensor_view<8x128xf32, strides=[128,1]>
  %pview = make_partition_view %tview : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>
  %pview_44 = make_partition_view %tview : partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>
  %124:2 = get_tensor_shape %tview : tensor_view<?x128xf32, strides=[?,1]> -> tile<i32>
  %125:2 = get_index_space_shape %pview_44 : partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]> -> tile<i64>
  %tile, %result_token_45 = load_view_tko weak %pview[%arg1, %cst_0_i32] : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> tile<4x2xf32>, token
  %tile_46, %result_token_47 = load_view_tko acquire device %pview_44[%arg1, %cst_0_i32] token = %0 optimization_hints = <sm_100 = {allow_tma = false, latency = 5}> : partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x2xf32>, token
  %126 = store_view_tko weak %cst_0_f32_3, %pview[%arg1, %cst_0_i32] : tile<4x2xf32>, partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> token
  %127 = store_view_tko release device %cst_0_f32_3, %pview_44[%arg1, %cst_0_i32] token = %0 optimization_hints = <sm_100 = {allow_tma = false, latency = 5}> : tile<4x2xf32>, partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> token
  %tile_48, %result_token_49 = load_view_tko weak %pview[%arg1, %cst_0_i32] inbounds = [true, false] : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> tile<4x2xf32>, token
  %tile_50, %result_token_51 = load_view_tko acquire device %pview_44[%arg1, %cst_0_i32] token = %0 optimization_hints = <sm_100 = {allow_tma = false, latency = 5}> inbounds = [true, false] : partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x2xf32>, token
  %128 = store_view_tko weak %cst_0_f32_3, %pview[%arg1, %cst_0_i32] inbounds = [true, false] : tile<4x2xf32>, partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> token
  %129 = store_view_tko release device %cst_0_f32_3, %pview_44[%arg1, %cst_0_i32] token = %0 optimization_hints = <sm_100 = {allow_tma = false, latency = 5}> inbounds = [true, false] : tile<4x2xf32>, partition_view<tile=(4x2), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> token
  %sview = make_strided_view %tview : strided_view<tile=(4x2), traversal_strides=[4,3], padding_value = neg_zero, tensor_view<?x128xf32, strides=[?,1]>>
  %gsview = make_gather_scatter_view %tview : gather_scatter_view<tile=(4x8), padding_value = nan, tensor_view<?x128xf32, strides=[?,1]>, sparse_dim=0>
  %tile_52, %result_token_53 = load_view_tko weak %gsview[%cst_i32_8, %cst_0_i32] : gather_scatter_view<tile=(4x8), padding_value = nan, tensor_view<?x128xf32, strides=[?,1]>, sparse_dim=0>, tile<4xi32>, tile<i32> -> tile<4x8xf32>, token
  %tile_54, %result_token_55 = load_view_tko weak %sview[%arg1, %cst_0_i32] : strided_view<tile=(4x2), traversal_strides=[4,3], padding_value = neg_zero, tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> tile<4x2xf32>, token
  %130 = atomic_red_view_tko relaxed device %pview[%arg1, %cst_0_i32], addf, %cst_0_f32_3 : tile<4x2xf32>, partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> token
  %131 = atomic_red_view_tko relaxed device %pview[%arg1, %cst_0_i32], addf, %cst_0_f32_3 token = %0 : tile<4x2xf32>, partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> token
  %assume = assume div_by<8>, %arg1 : tile<i32>
  %assume_56 = assume div_by<4, every 2 along 0>, %8 : tile<4xi32>
  %assume_57 = assume bounded<0, ?>, %arg1 : tile<i32>
  %assume_58 = assume bounded<?, -3>, %arg1 : tile<i32>
  %132 = print_tko "hi\0A" -> token
  %133 = print_tko "%d %f\0A", %arg1, %cst_1_f32 token=%0 : tile<i32>, tile<4xf32> -> token
  %134 = print_tko "%d\0A", %arg1 : tile<i32> -> token
  %135 = gdc_launch_dependents_tko -> token
  %136 = gdc_launch_dependents_tko token = %0 -> token
  %137 = gdc_wait_tko -> token
  %138 = gdc_wait_tko token = %0 -> token
  %139 = memory_fence_alias_tko %0
  for %loopIdx in (%cst_0_i32 to %arg1, step %cst_1_i32) : tile<i32> {
  }
  %for:2 = for unsigned %loopIdx in (%cst_0_i32 to %arg1, step %cst_1_i32) : tile<i32> iter_values(%iterArg0 = %cst_0_f32, %iterArg1 = %cst_f32) -> (tile<f32>, tile<4xf32>) {
    continue %iterArg0, %iterArg1 : tile<f32>, tile<4xf32>
  }
  %140 = addf %for#1, %cst_f32  : tile<4xf32>
  loop {
    break
  }
  %141 = loop : tile<4xf32> {
    break %cst_f32 : tile<4xf32>
  }
  loop iter_values(%arg4 = %cst_0_f32) : tile<f32> {
    break
  }
  %142 = loop iter_values(%arg4 = %cst_0_f32) : tile<f32> -> tile<4xf32> {
    if %arg2 {
      continue %arg4 : tile<f32>
    } else {
    }
    if %arg2 {
      %144 = absf %cst_f32 : tile<4xf32>
    } else {
      %144 = absf %cst_f32 : tile<4xf32>
    }
    break %cst_f32 : tile<4xf32>
  }
  %143:2 = if %arg2 -> (tile<f32>, tile<4xf32>) {
    yield %cst_0_f32, %cst_1_f32 : tile<f32>, tile<4xf32>
  } else {
    yield %cst_0_f32, %cst_f32 : tile<f32>, tile<4xf32>
  }
  if %arg2 {
    return
  } else {
  }
  return
}
