// Every operation in its custom form, with its attributes.
cuda_tile.module @all attributes {producer = "a \"hand\"\n"} {
  global @g alignment = 16 <f32: [0.1, 0.2, 0.3, 0.4]> : tile<4xf32>
  global private constant @h <i32: 7> : tile<1xi32>
  experimental$func @helper(%a: tile<f32>) -> (tile<f32>, tile<i32>) {
    %b = constant <i32: 2> : tile<i32>
    return %a, %b : tile<f32>, tile<i32>
  }
  entry @kernel(%p: tile<ptr<f32>>, %n: tile<i32>, %c: tile<i1>, %pi: tile<ptr<i32>>) optimization_hints=<sm_100 = {num_cta_in_cga = 2, occupancy = 3}, default = {num_worker_warps_per_cta = 4}> {
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %f = constant <f32: [1.0, -2.5, 0x7F800000, 1.0e-5]> : tile<4xf32> loc("k.py":10:4)
    %g = constant <f32: 1.5> : tile<4xf32>
    %i = constant <i32: [1, 2, 3, -4]> : tile<4xi32>
    %i22 = constant <i32: [[1, 2], [3, -4]]> : tile<2x2xi32>
    %m = constant <i1: [true, false, 1, 0]> : tile<4xi1>
    %bytes = constant <i8: 0> : tile<4x8xi8>
    %bytes2 = constant <i8: 0> : tile<8x2xi8>
    %h1 = constant <f16: 0.5> : tile<4x8xf16>
    %h2 = constant <f16: 0.5> : tile<8x2xf16>
    %acc = constant <f32: 0.0> : tile<4x2xf32>
    %acci = constant <i32: 0> : tile<4x2xi32>
    %e4 = constant <f8E4M3FN: 1.0> : tile<4x32xf8E4M3FN>
    %e4b = constant <f8E4M3FN: 1.0> : tile<32x2xf8E4M3FN>
    %sa = constant <f8E8M0FNU: 1.0> : tile<4x1xf8E8M0FNU>
    %sb = constant <f8E8M0FNU: 1.0> : tile<1x2xf8E8M0FNU>
    %l = constant <i64: 1099511627776> : tile<i64>
    // core
    %r1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
    %ps0 = broadcast %r1 : tile<1xptr<f32>> -> tile<4xptr<f32>>
    %ri1 = reshape %pi : tile<ptr<i32>> -> tile<1xptr<i32>>
    %pis0 = broadcast %ri1 : tile<1xptr<i32>> -> tile<4xptr<i32>>
    %io = iota : tile<4xi32>
    %ps = offset %ps0, %io : tile<4xptr<f32>>, tile<4xi32> -> tile<4xptr<f32>>
    %pis = offset %pis0, %io : tile<4xptr<i32>>, tile<4xi32> -> tile<4xptr<i32>>
    %cat = cat %f, %g dim = 0 : tile<4xf32>, tile<4xf32> -> tile<8xf32>
    %ex = extract %f[%zero] : tile<4xf32> -> tile<2xf32>
    %in = insert %ex, %f[%one] : tile<2xf32>, tile<4xf32>
    %gp = get_global @g : tile<ptr<f32>>
    %gx, %gy, %gz = get_num_tile_blocks : tile<i32>
    %bx, %by, %bz = get_tile_block_id : tile<i32>
    %mm = mmaf %h1, %h2, %acc fast_acc : tile<4x8xf16>, tile<8x2xf16>, tile<4x2xf32>
    %ms = mmaf_scaled %e4, %e4b, %acc, %sa, %sb : tile<4x32xf8E4M3FN>, tile<32x2xf8E4M3FN>, tile<4x2xf32>, tile<4x1xf8E8M0FNU>, tile<1x2xf8E8M0FNU>
    %mi = mmai %bytes, %bytes2, %acci signed unsigned : tile<4x8xi8>, tile<8x2xi8>, tile<4x2xi32>
    %pk = pack %g : tile<4xf32> -> tile<16xi8>
    %up = unpack %pk : tile<16xi8> -> tile<4xf32>
    %pm = permute %acc [1, 0] : tile<4x2xf32> -> tile<2x4xf32>
    %sel = select %m, %f, %g : tile<4xi1>, tile<4xf32>
    %red:2 = reduce %f, %i dim=0 identities=[0xFF800000 : f32, -1 : i32] : tile<4xf32>, tile<4xi32> -> tile<f32>, tile<i32> (%x: tile<f32>, %xa: tile<f32>, %y: tile<i32>, %ya: tile<i32>) {
      yield %x, %ya : tile<f32>, tile<i32>
    }
    %scan = scan %f dim=0 reverse=true identities=[1.0 : f32] : tile<4xf32> -> tile<4xf32> (%x: tile<f32>, %y: tile<f32>) {
      %z = mulf %x, %y rounding<zero> flush_to_zero : tile<f32>
      yield %z : tile<f32>
    }
    // conversions
    %k1 = bitcast %f : tile<4xf32> -> tile<4xi32>
    %k2 = exti %i signed : tile<4xi32> -> tile<4xi64>
    %k3 = ftof %f : tile<4xf32> -> tile<4xf16>
    %k4 = ftof %f rounding<positive_inf> : tile<4xf32> -> tile<4xf8E8M0FNU>
    %k5 = ftoi %f signed saturating : tile<4xf32> -> tile<4xi32>
    %k6 = itof %i unsigned : tile<4xi32> -> tile<4xf32>
    %k7 = int_to_ptr %l : tile<i64> -> tile<ptr<f32>>
    %k8 = ptr_to_int %p : tile<ptr<f32>> -> tile<i64>
    %k9 = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<i32>>
    %k10 = trunci %i overflow<no_wrap> : tile<4xi32> -> tile<4xi8>
    assert %m, "it \"fails\"\n" : tile<4xi1>
    // memory
    %al = alloca num_elem = 64, alignment = 128 global : tile<ptr<f32>>
    %t0 = make_token : token
    %t1 = gdc_launch_dependents_tko token = %t0 -> token
    %t2 = gdc_wait_tko -> token
    %t3 = memory_fence_alias_tko %t2
    %t4 = join_tokens %t0, %t1, %t3 : token
    %v, %t5 = load_ptr_tko acquire device %ps, %m, %f token = %t4 optimization_hints = <sm_100 = {latency = 5}> : tile<4xptr<f32>>, tile<4xi1>, tile<4xf32> -> tile<4xf32>, token
    %t6 = store_ptr_tko release tl_blk %ps, %v, %m token = %t5 optimization_hints = <default = {latency = 1}> : tile<4xptr<f32>>, tile<4xf32>, tile<4xi1> -> token
    store_ptr_tko weak %ps, %v : tile<4xptr<f32>>, tile<4xf32> -> token
    // float
    %a1 = absf %f : tile<4xf32>
    %a2 = addf %f, %g : tile<4xf32>
    %a3 = subf %f, %g rounding<zero> : tile<4xf32>
    %a4 = divf %f, %g rounding<approx> flush_to_zero : tile<4xf32>
    %a5 = fma %f, %g, %f rounding<negative_inf> : tile<4xf32>
    %a6 = maxf %f, %g flush_to_zero propagate_nan : tile<4xf32>
    %a7 = minf %f, %g propagate_nan : tile<4xf32>
    %a8 = negf %f : tile<4xf32>
    %a9 = pow %f, %g : tile<4xf32>
    %a10 = fpowi %f, %i : tile<4xf32>, tile<4xi32>
    %a11 = remf %f, %g : tile<4xf32>
    %a12 = atan2 %f, %g : tile<4xf32>
    %a13 = ceil %f : tile<4xf32>
    %a14 = floor %f : tile<4xf32>
    %a15 = cos %f : tile<4xf32>
    %a16 = cosh %f : tile<4xf32>
    %a17 = exp %f rounding<approx> : tile<4xf32>
    %a18 = exp2 %f flush_to_zero : tile<4xf32>
    %a19 = log %f : tile<4xf32>
    %a20 = log2 %f : tile<4xf32>
    %a21 = rsqrt %f flush_to_zero : tile<4xf32>
    %a22 = sin %f : tile<4xf32>
    %a23 = sinh %f : tile<4xf32>
    %a24 = sqrt %f rounding<approx> : tile<4xf32>
    %a25 = tan %f : tile<4xf32>
    %a26 = tanh %f : tile<4xf32>
    %a27 = cmpf less_than_or_equal unordered %f, %g : tile<4xf32> -> tile<4xi1>
    // integer
    %b1 = absi %i : tile<4xi32>
    %b2 = addi %i, %io overflow<no_signed_wrap> : tile<4xi32>
    %b3 = subi %i, %io overflow<no_unsigned_wrap> : tile<4xi32>
    %b4 = muli %i, %io : tile<4xi32>
    %b5 = shli %i, %io : tile<4xi32>
    %b6 = negi %i overflow<no_signed_wrap> : tile<4xi32>
    %b7 = mulhii %i, %io : tile<4xi32>
    %b8 = divi %i, %io signed rounding<negative_inf> : tile<4xi32>
    %b9 = remi %i, %io unsigned : tile<4xi32>
    %b10 = maxi %i, %io signed : tile<4xi32>
    %b11 = mini %i, %io unsigned : tile<4xi32>
    %b12 = shri %i, %io signed : tile<4xi32>
    %b13 = cmpi not_equal %i, %io, unsigned : tile<4xi32> -> tile<4xi1>
    %b14 = andi %i, %io : tile<4xi32>
    %b15 = ori %i, %io : tile<4xi32>
    %b16 = xori %i, %io : tile<4xi32>
    // atomics
    %old, %t7 = atomic_cas_tko acq_rel sys %pis, %i, %io, %m token = %t6 : tile<4xptr<i32>>, tile<4xi32>, tile<4xi1> -> tile<4xi32>, token
    %was, %t8 = atomic_rmw_tko relaxed device %ps, addf, %f, %m token = %t7 : tile<4xptr<f32>>, tile<4xf32>, tile<4xi1> -> tile<4xf32>, token
    // views
    %tv0 = make_tensor_view %p, shape = [], strides = [] : tensor_view<f32>
    %tv = make_tensor_view %p, shape = [%n, 128], strides = [%n, 1] : tile<i32> -> tensor_view<?x128xf32, strides=[?,1]>
    %pv = make_partition_view %tv : partition_view<tile=(4x2), padding_value = neg_inf, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>
    %sv = make_strided_view %tv : strided_view<tile=(4x2), traversal_strides=[4,3], tensor_view<?x128xf32, strides=[?,1]>>
    %gv = make_gather_scatter_view %tv : gather_scatter_view<tile=(4x8), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, sparse_dim=0>
    %d:2 = get_tensor_shape %tv : tensor_view<?x128xf32, strides=[?,1]> -> tile<i32>
    %s0, %s1 = get_index_space_shape %pv : partition_view<tile=(4x2), padding_value = neg_inf, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]> -> tile<i64>
    %w, %t9 = load_view_tko relaxed sys %pv[%d#0, %d#1] token = %t8 optimization_hints = <sm_100 = {allow_tma = false, latency = 5}> inbounds = [true, false] : partition_view<tile=(4x2), padding_value = neg_inf, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> tile<4x2xf32>, token
    %w2, %t10 = load_view_tko weak %gv[%i, %zero] : gather_scatter_view<tile=(4x8), padding_value = zero, tensor_view<?x128xf32, strides=[?,1]>, sparse_dim=0>, tile<4xi32>, tile<i32> -> tile<4x8xf32>, token
    %t11 = store_view_tko weak %w, %sv[%zero, %one] : tile<4x2xf32>, strided_view<tile=(4x2), traversal_strides=[4,3], tensor_view<?x128xf32, strides=[?,1]>>, tile<i32> -> token
    %t12 = atomic_red_view_tko relaxed device %pv[%zero, %one], addf, %w token = %t11 : tile<4x2xf32>, partition_view<tile=(4x2), padding_value = neg_inf, tensor_view<?x128xf32, strides=[?,1]>, dim_map=[1, 0]>, tile<i32> -> token
    %mp = ptr_to_ptr %p : tile<ptr<f32>> -> tile<ptr<f32, <multicast>>>
    %mt = make_tensor_view %mp, shape = [%n, 128], strides = [%n, 1] : tile<ptr<f32, <multicast>>>, tile<i32> -> tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>
    %mv = make_partition_view %mt : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>
    %mr, %t14 = multimem_load_reduce_view_tko weak %mv[%zero, %one] : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>, tile<i32> -> tile<4x2xf32>, token
    %mr2, %t15 = multimem_load_reduce_view_tko acquire sys %mv[%zero, %one] token = %t14 inbounds = [true, false] attributes {reduction = #cuda_tile.multimem_reduction_kind<max>} : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>, tile<i32>, token -> tile<4x2xf32>, token
    %t16 = multimem_reduce_view_tko relaxed device %mv, %w[%zero, %one] token = %t15 : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>, tile<4x2xf32>, tile<i32>, token -> token
    %t17 = multimem_reduce_view_tko release sys %mv, %w[%zero, %one] attributes {reduction = #cuda_tile.multimem_reduction_kind<umin>} : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>, tile<4x2xf32>, tile<i32> -> token
    %t18 = multimem_store_view_tko weak %mv, %w[%zero, %one] token = %t17 inbounds = [false, true] : partition_view<tile=(4x2), tensor_view<?x128xf32, strides=[?,1], #cuda_tile.ptr_attr<multicast>>>, tile<4x2xf32>, tile<i32>, token -> token
    // miscellaneous
    %as1 = assume div_by<8>, %n : tile<i32>
    %as2 = assume div_by<4, every 2 along 0>, %i : tile<4xi32>
    %as3 = assume same_elements<[4]>, %i : tile<4xi32>
    %as4 = assume bounded<?, -3>, %n : tile<i32>
    print_tko "100%%\n" -> token
    %t13 = print_tko "%d %f\n", %n, %f token = %t12 : tile<i32>, tile<4xf32> -> token
    // extensions
    %ca, %cb = experimental$call @helper(%red#0) : (tile<f32>) -> (tile<f32>, tile<i32>)
    %ee = experimental$extern_elementwise %f {libname = "m", libpath = "/lib/m", pure = true, symbol = "s"} : (tile<4xf32>) -> tile<4xf32>
    %gen = experimental$generate {
    ^bb0(%r: tile<i32>, %s: tile<i32>):
      %t = addi %r, %s : tile<i32>
      yield %t : tile<i32>
    } : tile<16x16xi32>
    %tvs = make_tensor_view %p, shape = [64, 128], strides = [128, 1] : tensor_view<64x128xf32, strides=[128,1]>
    %sc = experimental$scatter_store %acc, %tvs, %i, [%zero] token = %t13 <{dim = 0 : i64}> : tile<4x2xf32>, tensor_view<64x128xf32, strides=[128,1]>, tile<4xi32>, tile<i32>, token -> token
    %ob = internal$optimization_barrier %f, keep_axis_info : tile<4xf32>
    // control flow
    for %iv in (%zero to %n, step %one) : tile<i32> {
    }
    %fr:2 = for unsigned %iv in (%zero to %n, step %one) : tile<i32> iter_values(%q = %f, %qq = %i) -> (tile<4xf32>, tile<4xi32>) {
      continue %q, %qq : tile<4xf32>, tile<4xi32>
    }
    loop {
      break
    }
    %lp = loop iter_values(%q = %zero) : tile<i32> -> tile<4xf32> {
      if %c {
        continue %q : tile<i32>
      } else {
      }
      break %f : tile<4xf32>
    }
    %lq = loop : tile<i32> {
      break %one : tile<i32>
    }
    %ia, %ib = if %c -> (tile<f32>, tile<i32>) {
      yield %red#0, %red#1 : tile<f32>, tile<i32>
    } else {
      yield %red#0, %zero : tile<f32>, tile<i32>
    } loc(callsite("f" at "k.py":1:2))
    if %c {
      return
    }
    return
  }
}
