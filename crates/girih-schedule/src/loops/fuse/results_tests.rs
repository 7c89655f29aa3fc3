//! The results of the rules, and the cases that they leave alone.

use super::harness::Arg::{Alias, Buf, Int};
use super::harness::*;
use crate::base::launch::{Assumptions, Launch};
use crate::loops::ir::{Kernel, Stmt};
use crate::loops::lift::lift;
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::loops::{launch_facts, walk};
use crate::num::DType::*;

fn locals(kernel: &Kernel) -> Vec<String> {
    let mut out = Vec::new();
    walk::visit(&kernel.body, &mut |s| {
        if let Stmt::Local { buf } = s
            && !kernel.bufs[*buf].shape.is_empty()
        {
            out.push(kernel.bufs[*buf].name.clone());
        }
    });
    out
}

/// Every address is a parameter with an index, and every mask is made of conditions.
fn assert_affine(kernel: &Kernel) {
    walk::visit(&kernel.body, &mut |s| {
        if let Stmt::Load { mem, mask, .. } | Stmt::Store { mem, mask, .. } = s {
            assert!(kernel.params.iter().any(|p| p.val == mem.base), "{}", print(kernel, Dialect::Loop));
            assert!(mask.vals.is_empty(), "{}", print(kernel, Dialect::Loop));
        }
    });
}

fn example(text: &str) -> Kernel {
    let module = module(text);
    let entry = module.entries().next().unwrap().name.clone();
    for general in [true, false] {
        fuse(
            lift(&module, &entry).unwrap(),
            &Assumptions { no_wrap: !general, no_alias: !general },
            &mut |rule, _, after| {
                let errors = verify(after, Dialect::Loop);
                assert!(errors.is_empty(), "{rule}: {errors:#?}\n{}", print(after, Dialect::Loop));
            },
        );
    }
    fuse(lift(&module, &entry).unwrap(), &Assumptions { no_wrap: true, no_alias: true }, &mut |_, _, _| {})
}

macro_rules! example {
    ($name:literal) => {
        example(include_str!(concat!("../../../../../examples/", $name, ".mlir")))
    };
}

#[test]
fn a_product_with_views_keeps_its_accumulator_only() {
    let kernel = example!("gemm");
    assert_eq!(locals(&kernel), ["acc"]);
    assert_affine(&kernel);
    assert!(kernel.obligations.is_empty());
    let expected = "\
  for k in 0..(K + 63)//64: serial
    for i_1 in 0..128: free
      for j_1 in 0..128: free
        for k_1 in 0..64: reduce contraction m=i_1 n=j_1 k=k_1 a=a b=b acc=acc
          a: f16 = load A[(bx*128 + i_1)*K + k*64 + k_1] where bx*128 + i_1 < M and k*64 + k_1 < K else 0.0 !load_view_tko
          b: f16 = load B[(k*64 + k_1)*N + by*128 + j_1] where k*64 + k_1 < K and by*128 + j_1 < N else 0.0 !load_view_tko
          v: f32 = f32(a)
          v_1: f32 = f32(b)
          next: f32 = acc[i_1, j_1]
          v_2: f32 = fma(v, v_1, next)
          acc[i_1, j_1] = v_2
";
    let text = print(&kernel, Dialect::Loop);
    assert!(text.contains(expected), "{text}");
}

#[test]
fn advancing_pointers_become_affine() {
    let kernel = example!("gemm_pointers");
    assert_eq!(locals(&kernel), ["acc"]);
    assert_affine(&kernel);
}

#[test]
fn a_row_softmax_keeps_its_rows_only() {
    let kernel = example!("softmax");
    assert_eq!(locals(&kernel), ["x"]);
    assert_affine(&kernel);
    let text = print(&kernel, Dialect::Loop);
    assert!(text.contains("load src[bx*n + i] where i < n else -inf"), "{text}");
    assert!(text.contains("store dst[bx*n + i_2] = v_4 where i_2 < n"), "{text}");
}

#[test]
fn every_example_stays_well_formed() {
    example!("attention");
    example!("batched_gemm");
    example!("gemm_block");
    example!("gemm_f32");
    example!("gemm_transposed");
    example!("hello");
    example!("layer_norm");
    example!("mutex");
    example!("prefix_sum");
    example!("print_in_turn");
}

#[test]
fn element_wise_kernels_need_no_storage() {
    for kernel in [example!("saxpy"), example!("vector_add"), example!("transpose"), example!("histogram")] {
        assert_eq!(locals(&kernel), [""; 0], "{}", print(&kernel, Dialect::Loop));
    }
    assert_affine(&example!("saxpy"));
}

// Cases that the rules must leave alone.

fn fused(text: &str, no_wrap: bool, no_alias: bool) -> Kernel {
    let module = module(text);
    fuse(lift(&module, "k").unwrap(), &Assumptions { no_wrap, no_alias }, &mut |_, _, _| {})
}

#[test]
fn a_load_stays_before_a_store_that_may_overlap() {
    let body = load("a", "A", &[32], "f32")
        + &load("b", "B", &[32], "f32")
        + &store("b", "C", &[32], "f32")
        + "%c = addf %a, %b : tile<32xf32>\n"
        + &store("c", "D", &[32], "f32");
    let text = entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %D: tile<ptr<f32>>", &body);
    assert_eq!(locals(&fused(&text, true, true)), [""; 0]);
    assert!(locals(&fused(&text, true, false)).contains(&"a".to_string()));
}

#[test]
fn an_update_in_place_needs_no_storage_but_a_shift_does() {
    let update = load("a", "A", &[32], "f32") + "%c = addf %a, %a : tile<32xf32>\n" + &store("c", "A", &[32], "f32");
    let shift = load("a", "A", &[32], "f32")
        + "%one = constant <i32: 1> : tile<i32>
           %B = offset %A, %one : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
        + &store("a", "B", &[32], "f32");
    assert_eq!(locals(&fused(&entry("%A: tile<ptr<f32>>", &update), false, false)), [""; 0]);
    assert_eq!(locals(&fused(&entry("%A: tile<ptr<f32>>", &shift), true, true)), ["a"]);
}

#[test]
fn swapped_carried_tiles_keep_two_buffers() {
    let body = load("a", "A", &[32], "f32")
        + &load("b", "B", &[32], "f32")
        + "%i0 = constant <i32: 0> : tile<i32>
           %i1 = constant <i32: 1> : tile<i32>
           %x, %y = for %k in (%i0 to %n, step %i1) : tile<i32> iter_values(%p = %a, %q = %b) -> (tile<32xf32>, tile<32xf32>) {
             %s = addf %p, %p : tile<32xf32>
             continue %q, %s : tile<32xf32>, tile<32xf32>
           }\n"
        + &store("x", "A", &[32], "f32")
        + &store("y", "B", &[32], "f32");
    let text = entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %n: tile<i32>", &body);
    for n in [0, 1, 2, 3] {
        let kernel = check(&text, [1, 1, 1], &[Buf(F32, 32), Buf(F32, 32), Int(n)]);
        assert!(locals(&kernel).len() >= 2);
    }
}

#[test]
fn expensive_values_are_not_repeated() {
    let body = load("a", "A", &[16, 16], "f32")
        + &load("b", "B", &[16, 16], "f32")
        + "%e = exp %a : tile<16x16xf32>
           %z = constant <f32: 0.0> : tile<16x16xf32>
           %d = mmaf %e, %b, %z : tile<16x16xf32>, tile<16x16xf32>, tile<16x16xf32>\n"
        + &store("d", "C", &[16, 16], "f32");
    let text = entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body);
    check(&text, [1, 1, 1], &[Buf(F32, 256), Buf(F32, 256), Buf(F32, 256)]);
    assert_eq!(locals(&fused(&text, true, true)), ["e", "d"]);
}

#[test]
fn an_index_that_may_wrap_is_an_obligation_or_stays() {
    let body = "%x, %y, %z = get_tile_block_id : tile<i32>
        %big = constant <i32: 1073741824> : tile<i32>
        %o = muli %x, %big : tile<i32>
        %o2 = muli %o, %n : tile<i32>
        %B = offset %A, %o2 : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
        .to_string()
        + &load("a", "B", &[8], "f32")
        + &store("a", "C", &[8], "f32");
    let text = entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %n: tile<i32>", &body);
    let kernel = fused(&text, true, true);
    let at = |grid, n: i64| launch_facts::holds(&kernel, &Launch::new(grid, vec![0, 0, n as u64]));
    assert!(at([1, 1, 1], 3));
    assert!(at([2, 1, 1], 1));
    assert!(!at([2, 1, 1], 2));
    assert!(!at([3, 1, 1], 1));
    // 4 * 2^30 wraps to 0: the general version reads where the program says.
    check(&text, [1, 1, 1], &[Buf(F32, 8), Buf(F32, 8), Int(4)]);
    check(&text, [2, 1, 1], &[Buf(F32, 8), Buf(F32, 8), Int(4)]);
}

/// Numbers that no address or condition depends on may wrap as they like.
#[test]
fn data_is_no_obligation() {
    let chain: String = (0..50).map(|n| format!("%v{} = muli %v{n}, %n : tile<i32>\n", n + 1)).collect();
    let last = "%t = reshape %v50 : tile<i32> -> tile<1xi32>
        %t8 = broadcast %t : tile<1xi32> -> tile<8xi32>\n";
    let body = format!("%zero = constant <i32: 7> : tile<i32>\n%v0 = addi %n, %zero : tile<i32>\n{chain}{last}");
    let body = body + &store("t8", "C", &[8], "i32");
    let text = entry("%C: tile<ptr<i32>>, %n: tile<i32>", &body);
    let kernel = fused(&text, true, true);
    assert!(kernel.obligations.is_empty(), "{}", print(&kernel, Dialect::Loop));
    check(&text, [1, 1, 1], &[Buf(I32, 8), Int(1_000_003)]);
}

#[test]
fn carried_tiles_updated_in_place_agree() {
    // A tile of partial products with views whose edges are partial, accumulated over k.
    let tv = "tensor_view<?x?xf32, strides=[?,1]>";
    let body = format!(
        "%x, %y, %z = get_tile_block_id : tile<i32>
         %i0 = constant <i32: 0> : tile<i32>
         %i1 = constant <i32: 1> : tile<i32>
         %zero = constant <f32: 0.0> : tile<8x8xf32>
         %a = make_tensor_view %A, shape = [%M, %K], strides = [%K, 1] : tile<i32> -> {tv}
         %b = make_tensor_view %B, shape = [%K, %M], strides = [%M, 1] : tile<i32> -> {tv}
         %c = make_tensor_view %C, shape = [%M, %M], strides = [%M, 1] : tile<i32> -> {tv}
         %av = make_partition_view %a : partition_view<tile=(8x4), padding_value = zero, {tv}>
         %bv = make_partition_view %b : partition_view<tile=(4x8), padding_value = zero, {tv}>
         %cv = make_partition_view %c : partition_view<tile=(8x8), {tv}>
         %mt, %kt = get_index_space_shape %av : partition_view<tile=(8x4), padding_value = zero, {tv}> -> tile<i32>
         %r = for %k in (%i0 to %kt, step %i1) : tile<i32> iter_values(%acc = %zero) -> (tile<8x8xf32>) {{
           %p, %t0 = load_view_tko weak %av[%x, %k] : partition_view<tile=(8x4), padding_value = zero, {tv}>, tile<i32> -> tile<8x4xf32>, token
           %q, %t1 = load_view_tko weak %bv[%k, %y] : partition_view<tile=(4x8), padding_value = zero, {tv}>, tile<i32> -> tile<4x8xf32>, token
           %n = mmaf %p, %q, %acc : tile<8x4xf32>, tile<4x8xf32>, tile<8x8xf32>
           continue %n : tile<8x8xf32>
         }}
         %t2 = store_view_tko weak %r, %cv[%x, %y] : tile<8x8xf32>, partition_view<tile=(8x8), {tv}>, tile<i32> -> token\n"
    );
    let text = entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %K: tile<i32>", &body);
    let args = [Buf(F32, 13 * 10), Buf(F32, 13 * 10), Buf(F32, 13 * 13), Int(13), Int(10)];
    let kernel = check(&text, [2, 2, 1], &args);
    assert_eq!(locals(&kernel), ["acc"]);
    // The same buffers passed more than once.
    check(&text, [2, 2, 1], &[Buf(F32, 13 * 13), Alias(0, 0), Alias(0, 0), Int(13), Int(10)]);
}

#[test]
fn advancing_tiles_of_addresses_agree() {
    let ptrs = tile(&[4, 8], "ptr<f32>");
    let body = load("first", "A", &[4, 8], "f32")
        + "%i0 = constant <i32: 0> : tile<i32>
           %i1 = constant <i32: 2> : tile<i32>
           %by = constant <i32: 32> : tile<4x8xi32>
           %n0 = reshape %n : tile<i32> -> tile<1x1xi32>
           %ns = broadcast %n0 : tile<1x1xi32> -> tile<4x8xi32>
           %zero = constant <f32: 0.0> : tile<4x8xf32>\n"
        + &format!(
            "%s, %p, %c = for %k in (%i0 to %n, step %i1) : tile<i32> iter_values(%acc = %zero, %q = %first_p, %o = %first_r) -> (tile<4x8xf32>, {ptrs}, tile<4x8xi32>) {{
               %v, %t = load_ptr_tko weak %q : {ptrs} -> tile<4x8xf32>, token
               %i = itof %o signed : tile<4x8xi32> -> tile<4x8xf32>
               %w = addf %v, %i : tile<4x8xf32>
               %sum = addf %acc, %w : tile<4x8xf32>
               %q2 = offset %q, %by : {ptrs}, tile<4x8xi32> -> {ptrs}
               %o2 = addi %o, %ns : tile<4x8xi32>
               continue %sum, %q2, %o2 : tile<4x8xf32>, {ptrs}, tile<4x8xi32>
             }}
             %last, %t2 = load_ptr_tko weak %p : {ptrs} -> tile<4x8xf32>, token
             %ci = itof %c signed : tile<4x8xi32> -> tile<4x8xf32>
             %r0 = addf %s, %last : tile<4x8xf32>
             %r = addf %r0, %ci : tile<4x8xf32>\n"
        )
        + &store("r", "C", &[4, 8], "f32");
    let text = entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %n: tile<i32>", &body);
    for n in [-3, 0, 1, 4, 7] {
        let kernel = check(&text, [1, 1, 1], &[Buf(F32, 32 * 5), Buf(F32, 32), Int(n)]);
        assert!(locals(&kernel).iter().all(|b| b != "q" && b != "o"), "{}", print(&kernel, Dialect::Loop));
    }
}

#[test]
fn advancing_scalars_agree() {
    let body = "%i0 = constant <i32: 0> : tile<i32>
        %i1 = constant <i32: 1> : tile<i32>
        %i8 = constant <i32: 8> : tile<i32>
        %zero = constant <i32: 0> : tile<8xi32>
        %s, %q, %o = for %k in (%i0 to %n, step %i1) : tile<i32> iter_values(%acc = %zero, %p = %A, %at = %i1) -> (tile<8xi32>, tile<ptr<i32>>, tile<i32>) {\n"
        .to_string()
        + &load("v", "p", &[8], "i32")
        + "  %a1 = reshape %at : tile<i32> -> tile<1xi32>
             %a8 = broadcast %a1 : tile<1xi32> -> tile<8xi32>
             %w = muli %v, %a8 : tile<8xi32>
             %sum = addi %acc, %w : tile<8xi32>
             %p2 = offset %p, %i8 : tile<ptr<i32>>, tile<i32> -> tile<ptr<i32>>
             %at2 = addi %i8, %at : tile<i32>
             continue %sum, %p2, %at2 : tile<8xi32>, tile<ptr<i32>>, tile<i32>
           }
           %o1 = reshape %o : tile<i32> -> tile<1xi32>\n"
        + &load("last", "q", &[8], "i32")
        + "%r = addi %s, %last : tile<8xi32>\n"
        + &store("r", "C", &[8], "i32")
        + &store("o1", "D", &[1], "i32");
    let text = entry("%A: tile<ptr<i32>>, %C: tile<ptr<i32>>, %D: tile<ptr<i32>>, %n: tile<i32>", &body);
    for n in [-1, 0, 1, 4] {
        let kernel = check(&text, [1, 1, 1], &[Buf(I32, 40), Buf(I32, 8), Buf(I32, 1), Int(n)]);
        assert_affine(&kernel);
    }
}

#[test]
fn a_view_updated_in_place_agrees() {
    let view = "partition_view<tile=(4x8), tensor_view<?x?xf32, strides=[?,1]>>";
    let body = tensor("a", "A")
        + &format!(
            "%x, %y, %z = get_tile_block_id : tile<i32>
             %v = make_partition_view %a : {view}
             %t, %t0 = load_view_tko weak %v[%x, %y] : {view}, tile<i32> -> tile<4x8xf32>, token
             %u = addf %t, %t : tile<4x8xf32>
             %t1 = store_view_tko weak %u, %v[%x, %y] : tile<4x8xf32>, {view}, tile<i32> -> token\n"
        );
    let text = entry("%A: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>", &body);
    // Rows at least as long as the tile's: one pass in the fast version. Shorter ones: the general version.
    let kernel = check(&text, [3, 3, 1], &[Buf(F32, 11 * 21), Int(11), Int(21)]);
    assert_eq!(locals(&kernel), [""; 0]);
    let kernel = check(&text, [3, 1, 1], &[Buf(F32, 11 * 5), Int(11), Int(5)]);
    assert!(!locals(&kernel).is_empty());
}

/// `body` has the block's number times 16 plus 0 to 15 as `%at`, and leaves what to load in `%i` and where in `%inside`.
fn gathered(body: &str) -> Kernel {
    example(&entry(
        "%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %n: tile<i32>",
        &format!(
            "%b, %by, %bz = get_tile_block_id : tile<i32>
             %lane = iota : tile<16xi32>
             %c16 = constant <i32: 16> : tile<i32>
             %start = muli %b, %c16 : tile<i32>
             %start_1 = reshape %start : tile<i32> -> tile<1xi32>
             %start_b = broadcast %start_1 : tile<1xi32> -> tile<16xi32>
             %at = addi %start_b, %lane : tile<16xi32>
             %n_1 = reshape %n : tile<i32> -> tile<1xi32>
             %n_b = broadcast %n_1 : tile<1xi32> -> tile<16xi32>
             {body}
             %A_1 = reshape %A : tile<ptr<f32>> -> tile<1xptr<f32>>
             %A_b = broadcast %A_1 : tile<1xptr<f32>> -> tile<16xptr<f32>>
             %p = offset %A_b, %i : tile<16xptr<f32>>, tile<16xi32> -> tile<16xptr<f32>>
             %zero = constant <f32: 0.0> : tile<16xf32>
             %x, %t = load_ptr_tko weak %p, %inside, %zero
                 : tile<16xptr<f32>>, tile<16xi1>, tile<16xf32> -> tile<16xf32>, token
             %C_1 = reshape %C : tile<ptr<f32>> -> tile<1xptr<f32>>
             %C_b = broadcast %C_1 : tile<1xptr<f32>> -> tile<16xptr<f32>>
             %q = offset %C_b, %at : tile<16xptr<f32>>, tile<16xi32> -> tile<16xptr<f32>>
             %u = store_ptr_tko weak %q, %x : tile<16xptr<f32>>, tile<16xf32> -> token"
        ),
    ))
}

#[test]
fn an_index_that_starts_below_zero_is_tested_on_both_sides() {
    // Unsigned, -1 is not a place of the array. That no block has such a lane cannot be promised: the first one has.
    let kernel = gathered(
        "%one = constant <i32: -1> : tile<16xi32>
         %i = addi %at, %one : tile<16xi32>
         %inside = cmpi less_than %i, %n_b, unsigned : tile<16xi32> -> tile<16xi1>",
    );
    assert_affine(&kernel);
    let text = print(&kernel, Dialect::Loop);
    assert!(text.contains("where 0 <= bx*16 + i - 1 and bx*16 + i - 1 < n else"), "{text}");
    assert!(!text.contains("require 0 <= bx*16 + i - 1 "), "{text}");
}

#[test]
fn what_must_wrap_is_no_obligation() {
    let kernel = gathered(
        "%far = constant <i32: 2000000000> : tile<16xi32>
         %i = muli %lane, %far : tile<16xi32>
         %inside = cmpi less_than %i, %n_b, signed : tile<16xi32> -> tile<16xi1>",
    );
    let text = print(&kernel, Dialect::Loop);
    assert!(!text.contains("2000000000 <="), "{text}");
}

#[test]
fn a_remainder_that_is_corrected_for_signs_needs_no_correction_where_nothing_is_negative() {
    let kernel = gathered(
        "%eight = constant <i32: 8> : tile<16xi32>
         %zero_i = constant <i32: 0> : tile<16xi32>
         %false = constant <i1: 0> : tile<16xi1>
         %r = remi %at, %eight signed : tile<16xi32>
         %negative = cmpi less_than %r, %zero_i, signed : tile<16xi32> -> tile<16xi1>
         %differs = xori %negative, %false : tile<16xi1>
         %some = cmpi not_equal %r, %zero_i, signed : tile<16xi32> -> tile<16xi1>
         %wrong = andi %differs, %some : tile<16xi1>
         %moved = addi %r, %eight : tile<16xi32>
         %i = select %wrong, %moved, %r : tile<16xi1>, tile<16xi32>
         %inside = cmpi less_than %i, %n_b, signed : tile<16xi32> -> tile<16xi1>",
    );
    assert_affine(&kernel);
}

/// A tile that both branches of an `if` make, and `%n` decides which; then `rest`.
fn after_branches(rest: &str) -> Kernel {
    let body = load("a", "A", &[8], "i32")
        + &load("b", "B", &[8], "i32")
        + "%zero = constant <i32: 0> : tile<i32>
           %first = cmpi equal %n, %zero, signed : tile<i32> -> tile<i1>
           %r = if %first -> (tile<8xi32>) { yield %a : tile<8xi32> } else {
             %sum = addi %a, %b : tile<8xi32>
             yield %sum : tile<8xi32>
           }\n"
        + rest;
    let text = entry("%A: tile<ptr<i32>>, %B: tile<ptr<i32>>, %C: tile<ptr<i32>>, %n: tile<i32>", &body);
    for n in [0, 1] {
        check(&text, [1, 1, 1], &[Buf(I32, 8), Buf(I32, 8), Buf(I32, 8), Int(n)]);
    }
    example(&text)
}

#[test]
fn what_follows_branches_goes_on_in_them() {
    // Sums are made where they lie: `B` is read and written in one loop of a branch.
    let kernel = after_branches(&store("r", "B", &[8], "i32"));
    assert_eq!(locals(&kernel), ["a"], "{}", print(&kernel, Dialect::Loop));
    let text = print(&kernel, Dialect::Loop);
    assert_eq!(text.matches("store B[").count(), 2, "{text}");
}

#[test]
fn what_others_read_too_stays_behind_the_branches() {
    let twice = store("r", "B", &[8], "i32") + &store("r", "C", &[8], "i32");
    let text = print(&after_branches(&twice), Dialect::Loop);
    assert_eq!([text.matches("store B[").count(), text.matches("store C[").count()], [1, 1], "{text}");
}
