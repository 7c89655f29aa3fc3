//! Every group of operations, evaluated as a tile program, as lifted loops, and after every rule: bit for bit.

use super::harness::Arg::{Alias, Buf, Int, Real};
use super::harness::*;
use crate::num::DType::*;

#[test]
fn element_wise_floats() {
    for op in [
        "addf %a, %b rounding<nearest_even>",
        "subf %a, %b rounding<zero>",
        "mulf %a, %b rounding<nearest_even> flush_to_zero",
        "divf %a, %b rounding<nearest_even>",
        "maxf %a, %b",
        "minf %a, %b propagate_nan",
        "remf %a, %b",
        "pow %a, %b",
        "atan2 %a, %b",
        "fma %a, %b, %a rounding<nearest_even>",
        "negf %a",
        "absf %a",
        "ceil %a",
        "floor %a",
        "exp %a",
        "exp2 %a",
        "log %a",
        "log2 %a",
        "sqrt %a rounding<nearest_even>",
        "rsqrt %a",
        "sin %a",
        "cos %a",
        "tan %a",
        "sinh %a",
        "cosh %a",
        "tanh %a",
    ] {
        let body = load("a", "A", &[4, 8], "f32")
            + &load("b", "B", &[4, 8], "f32")
            + &format!("%c = {op} : tile<4x8xf32>\n")
            + &store("c", "C", &[4, 8], "f32");
        check(
            &entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body),
            [1, 1, 1],
            &[Buf(F32, 32), Buf(F32, 32), Buf(F32, 32)],
        );
    }
}

#[test]
fn element_wise_integers() {
    for op in [
        "addi %a, %b",
        "subi %a, %b",
        "muli %a, %b",
        "mulhii %a, %b",
        "maxi %a, %b signed",
        "mini %a, %b unsigned",
        "andi %a, %b",
        "ori %a, %b",
        "xori %a, %b",
        "negi %a",
        "absi %a",
    ] {
        for (ty, d) in [("i8", I8), ("i32", I32), ("i64", I64)] {
            let body = load("a", "A", &[32], ty)
                + &load("b", "B", &[32], ty)
                + &format!("%c = {op} : tile<32x{ty}>\n")
                + &store("c", "C", &[32], ty);
            check(
                &entry(&format!("%A: tile<ptr<{ty}>>, %B: tile<ptr<{ty}>>, %C: tile<ptr<{ty}>>"), &body),
                [1, 1, 1],
                &[Buf(d, 32), Buf(d, 32), Buf(d, 32)],
            );
        }
    }
}

#[test]
fn division_and_shifts() {
    for op in [
        "divi %a, %b signed",
        "divi %a, %b unsigned",
        "remi %a, %b signed",
        "divi %a, %b signed rounding<positive_inf>",
        "divi %a, %b signed rounding<negative_inf>",
        "shli %a, %b",
        "shri %a, %b signed",
        "shri %a, %b unsigned",
    ] {
        let body = load("a", "A", &[32], "i32")
            + &load("x", "B", &[32], "i32")
            + "%three = constant <i32: 3> : tile<32xi32>\n%one = constant <i32: 1> : tile<32xi32>\n"
            + "%y = andi %x, %three : tile<32xi32>\n%b = addi %y, %one : tile<32xi32>\n"
            + &format!("%c = {op} : tile<32xi32>\n")
            + &store("c", "C", &[32], "i32");
        check(
            &entry("%A: tile<ptr<i32>>, %B: tile<ptr<i32>>, %C: tile<ptr<i32>>", &body),
            [1, 1, 1],
            &[Buf(I32, 32), Buf(I32, 32), Buf(I32, 32)],
        );
    }
}

#[test]
fn comparisons_and_select() {
    let body = load("a", "A", &[32], "f32")
        + &load("b", "B", &[32], "f32")
        + "%m = cmpf less_than ordered %a, %b : tile<32xf32> -> tile<32xi1>
           %i = iota : tile<32xi32>
           %n0 = reshape %n : tile<i32> -> tile<1xi32>
           %n1 = broadcast %n0 : tile<1xi32> -> tile<32xi32>
           %k = cmpi greater_than_or_equal %i, %n1, signed : tile<32xi32> -> tile<32xi1>
           %mk = andi %m, %k : tile<32xi1>
           %c = select %mk, %a, %b : tile<32xi1>, tile<32xf32>\n"
        + &store("c", "C", &[32], "f32");
    let params = "%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>, %n: tile<i32>";
    check(&entry(params, &body), [1, 1, 1], &[Buf(F32, 32), Buf(F32, 32), Buf(F32, 32), Int(7)]);
}

#[test]
fn conversions() {
    for (from, d, op, to, e) in [
        ("f32", F32, "ftof %a", "f16", F16),
        ("f16", F16, "ftof %a", "f32", F32),
        ("f32", F32, "ftof %a", "bf16", BF16),
        ("f32", F32, "ftoi %a signed", "i32", I32),
        ("i32", I32, "itof %a signed", "f32", F32),
        ("i8", I8, "itof %a unsigned", "f16", F16),
        ("i8", I8, "exti %a signed", "i32", I32),
        ("i8", I8, "exti %a unsigned", "i64", I64),
        ("i32", I32, "trunci %a", "i8", I8),
        ("f32", F32, "bitcast %a", "i32", I32),
        ("i16", I16, "bitcast %a", "f16", F16),
    ] {
        let body = load("a", "A", &[4, 4], from)
            + &format!("%c = {op} : tile<4x4x{from}> -> tile<4x4x{to}>\n")
            + &store("c", "C", &[4, 4], to);
        check(
            &entry(&format!("%A: tile<ptr<{from}>>, %C: tile<ptr<{to}>>"), &body),
            [1, 1, 1],
            &[Buf(d, 16), Buf(e, 16)],
        );
    }
}

#[test]
fn pointers_as_numbers() {
    let body = "%x = ptr_to_int %A : tile<ptr<f32>> -> tile<i64>
        %four = constant <i64: 8> : tile<i64>
        %y = addi %x, %four : tile<i64>
        %q = int_to_ptr %y : tile<i64> -> tile<ptr<f32>>
        %r = ptr_to_ptr %q : tile<ptr<f32>> -> tile<ptr<i32>>\n"
        .to_string()
        + &load("v", "r", &[8], "i32")
        + &store("v", "C", &[8], "i32");
    check(&entry("%A: tile<ptr<f32>>, %C: tile<ptr<i32>>", &body), [1, 1, 1], &[Buf(F32, 10), Buf(I32, 8)]);
}

#[test]
fn shapes() {
    let body = load("a", "A", &[4, 8], "i32")
        + "%p = permute %a [1, 0] : tile<4x8xi32> -> tile<8x4xi32>
           %r = reshape %p : tile<8x4xi32> -> tile<2x16xi32>
           %i1 = constant <i32: 1> : tile<i32>
           %i0 = constant <i32: 0> : tile<i32>
           %e = extract %r[%i1, %i0] : tile<2x16xi32> -> tile<1x8xi32>
           %b = broadcast %e : tile<1x8xi32> -> tile<4x8xi32>
           %c = cat %a, %b dim = 0 : tile<4x8xi32>, tile<4x8xi32> -> tile<8x8xi32>
           %t = constant <i32: [[1, 2], [3, 4]]> : tile<2x2xi32>
           %u = insert %t, %c[%i1, %n] : tile<2x2xi32>, tile<8x8xi32>\n"
        + &store("u", "C", &[8, 8], "i32");
    check(
        &entry("%A: tile<ptr<i32>>, %C: tile<ptr<i32>>, %n: tile<i32>", &body),
        [1, 1, 1],
        &[Buf(I32, 32), Buf(I32, 64), Int(2)],
    );
}

#[test]
fn packing() {
    for (ty, d, n) in [("i32", I32, 16u64), ("f16", F16, 16), ("i64", I64, 16)] {
        let bytes = n * d.bytes();
        let body = load("a", "A", &[n], ty)
            + &format!("%b = pack %a : tile<{n}x{ty}> -> tile<{bytes}xi8>\n")
            + &store("b", "B", &[bytes], "i8")
            + &format!("%c = unpack %b : tile<{bytes}xi8> -> tile<{n}x{ty}>\n")
            + &store("c", "C", &[n], ty);
        check(
            &entry(&format!("%A: tile<ptr<{ty}>>, %B: tile<ptr<i8>>, %C: tile<ptr<{ty}>>"), &body),
            [1, 1, 1],
            &[Buf(d, n as usize), Buf(I8, bytes as usize), Buf(d, n as usize)],
        );
    }
    let body = load("a", "A", &[16], "i8")
        + "%n = unpack %a : tile<16xi8> -> tile<32xi4>
           %w = exti %n signed : tile<32xi4> -> tile<32xi8>\n"
        + &store("w", "C", &[32], "i8")
        + "%back = pack %n : tile<32xi4> -> tile<16xi8>\n"
        + &store("back", "B", &[16], "i8");
    check(
        &entry("%A: tile<ptr<i8>>, %B: tile<ptr<i8>>, %C: tile<ptr<i8>>", &body),
        [1, 1, 1],
        &[Buf(I8, 16), Buf(I8, 16), Buf(I8, 32)],
    );
}

fn fold(kind: &str, dim: u32, extra: &str, shape: &[u64], result: &[u64], id: &str, body: &str) -> String {
    let (t, r) = (tile(shape, "f32"), tile(result, "f32"));
    let text = load("a", "A", shape, "f32")
        + &format!(
            "%c = {kind} %a dim={dim} {extra}identities=[{id} : f32] : {t} -> {r} (%e: tile<f32>, %s: tile<f32>) {{\n{body}\n}}\n"
        )
        + &store("c", "C", result, "f32");
    entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>", &text)
}

#[test]
fn reductions() {
    let bodies = [
        ("0.0", "%x = addf %e, %s : tile<f32>\nyield %x : tile<f32>"),
        ("0xFF800000", "%x = maxf %s, %e : tile<f32>\nyield %x : tile<f32>"),
        (
            "1.0",
            "%h = constant <f32: 0.5> : tile<f32>\n%y = mulf %s, %h : tile<f32>\n%x = subf %y, %e : tile<f32>\nyield %x : tile<f32>",
        ),
    ];
    for (id, body) in bodies {
        check(&fold("reduce", 1, "", &[4, 8, 2], &[4, 2], id, body), [1, 1, 1], &[Buf(F32, 64), Buf(F32, 64)]);
        check(&fold("reduce", 0, "", &[32], &[], id, body), [1, 1, 1], &[Buf(F32, 64), Buf(F32, 64)]);
        check(&fold("scan", 1, "reverse=false ", &[4, 8], &[4, 8], id, body), [1, 1, 1], &[Buf(F32, 64), Buf(F32, 64)]);
        check(&fold("scan", 0, "reverse=true ", &[4, 8], &[4, 8], id, body), [1, 1, 1], &[Buf(F32, 64), Buf(F32, 64)]);
    }
}

#[test]
fn arg_max() {
    let body = load("a", "A", &[4, 16], "f32")
        + "%i0 = iota : tile<16xi32>
           %i1 = reshape %i0 : tile<16xi32> -> tile<1x16xi32>
           %i = broadcast %i1 : tile<1x16xi32> -> tile<4x16xi32>
           %m, %at = reduce %a, %i dim=1 identities=[0xFF800000 : f32, 0 : i32]
               : tile<4x16xf32>, tile<4x16xi32> -> tile<4xf32>, tile<4xi32>
           (%e: tile<f32>, %s: tile<f32>, %ei: tile<i32>, %si: tile<i32>) {
             %g = cmpf greater_than ordered %e, %s : tile<f32> -> tile<i1>
             %v = select %g, %e, %s : tile<i1>, tile<f32>
             %w = select %g, %ei, %si : tile<i1>, tile<i32>
             yield %v, %w : tile<f32>, tile<i32>
           }\n"
        + &store("m", "M", &[4], "f32")
        + &store("at", "I", &[4], "i32");
    check(
        &entry("%A: tile<ptr<f32>>, %M: tile<ptr<f32>>, %I: tile<ptr<i32>>", &body),
        [1, 1, 1],
        &[Buf(F32, 64), Buf(F32, 4), Buf(I32, 4)],
    );
}

#[test]
fn contractions() {
    for (ty, d, acc, e) in [
        ("f32", F32, "f32", F32),
        ("f16", F16, "f16", F16),
        ("f16", F16, "f32", F32),
        ("bf16", BF16, "f32", F32),
        ("f64", F64, "f64", F64),
    ] {
        for batch in [&[][..], &[2u64][..]] {
            let s = |x: u64, y: u64| [batch, &[x, y]].concat();
            let n = batch.iter().product::<u64>().max(1) as usize;
            let body = load("a", "A", &s(8, 16), ty)
                + &load("b", "B", &s(16, 4), ty)
                + &load("c", "C", &s(8, 4), acc)
                + &format!(
                    "%d = mmaf %a, %b, %c : {}, {}, {}\n",
                    tile(&s(8, 16), ty),
                    tile(&s(16, 4), ty),
                    tile(&s(8, 4), acc)
                )
                + &store("d", "D", &s(8, 4), acc);
            check(
                &entry(
                    &format!("%A: tile<ptr<{ty}>>, %B: tile<ptr<{ty}>>, %C: tile<ptr<{acc}>>, %D: tile<ptr<{acc}>>"),
                    &body,
                ),
                [1, 1, 1],
                &[Buf(d, 128 * n), Buf(d, 64 * n), Buf(e, 32 * n), Buf(e, 32 * n)],
            );
        }
    }
    let body = load("a", "A", &[8, 16], "i8")
        + &load("b", "B", &[16, 4], "i8")
        + &load("c", "C", &[8, 4], "i32")
        + "%d = mmai %a, %b, %c unsigned signed : tile<8x16xi8>, tile<16x4xi8>, tile<8x4xi32>\n"
        + &store("d", "D", &[8, 4], "i32");
    check(
        &entry("%A: tile<ptr<i8>>, %B: tile<ptr<i8>>, %C: tile<ptr<i32>>, %D: tile<ptr<i32>>", &body),
        [1, 1, 1],
        &[Buf(I8, 128), Buf(I8, 64), Buf(I32, 32), Buf(I32, 32)],
    );
}

#[test]
fn control_flow() {
    // A swap of two carried tiles, a scalar carried along, an early continue, and a loop that breaks with results.
    let body = load("a", "A", &[8], "i32")
        + &load("b", "B", &[8], "i32")
        + "%i0 = constant <i32: 0> : tile<i32>
           %i1 = constant <i32: 1> : tile<i32>
           %i3 = constant <i32: 3> : tile<i32>
           %x, %y, %z = for %k in (%i0 to %n, step %i1) : tile<i32> iter_values(%p = %a, %q = %b, %s = %i0) -> (tile<8xi32>, tile<8xi32>, tile<i32>) {
             %even = cmpi equal %k, %i3, signed : tile<i32> -> tile<i1>
             if %even {
               continue %p, %q, %s : tile<8xi32>, tile<8xi32>, tile<i32>
             }
             %sum = addi %p, %q : tile<8xi32>
             %t = addi %s, %k : tile<i32>
             %w = if %even -> (tile<8xi32>) { yield %p : tile<8xi32> } else { yield %sum : tile<8xi32> }
             continue %q, %w, %t : tile<8xi32>, tile<8xi32>, tile<i32>
           }
           %u, %v = loop iter_values(%p = %x, %c = %z) : tile<8xi32>, tile<i32> -> tile<8xi32>, tile<i32> {
             %stop = cmpi greater_than %c, %n, signed : tile<i32> -> tile<i1>
             %c1 = addi %c, %i1 : tile<i32>
             if %stop {
               break %p, %c : tile<8xi32>, tile<i32>
             }
             %d = addi %p, %y : tile<8xi32>
             continue %d, %c1 : tile<8xi32>, tile<i32>
           }
           %v1 = reshape %v : tile<i32> -> tile<1xi32>\n"
        + &store("x", "A", &[8], "i32")
        + &store("u", "B", &[8], "i32")
        + &store("v1", "C", &[1], "i32");
    let text = entry("%A: tile<ptr<i32>>, %B: tile<ptr<i32>>, %C: tile<ptr<i32>>, %n: tile<i32>", &body);
    for n in [0, 1, 2, 5, 8] {
        check(&text, [1, 1, 1], &[Buf(I32, 8), Buf(I32, 8), Buf(I32, 1), Int(n)]);
    }
}

#[test]
fn returning_early() {
    let body = load("a", "A", &[8], "i32")
        + "%x, %y, %z = get_tile_block_id : tile<i32>
           %i1 = constant <i32: 1> : tile<i32>
           %odd = cmpi equal %x, %i1, signed : tile<i32> -> tile<i1>
           if %odd { return }
           %s0 = reshape %x : tile<i32> -> tile<1xi32>
           %s = broadcast %s0 : tile<1xi32> -> tile<8xi32>
           %v = addi %a, %s : tile<8xi32>\n"
        + &store("v", "C", &[8], "i32");
    check(&entry("%A: tile<ptr<i32>>, %C: tile<ptr<i32>>", &body), [2, 1, 1], &[Buf(I32, 8), Buf(I32, 8)]);
}

#[test]
fn calls() {
    let text = "cuda_tile.module @m {
        experimental$func @clamp(%x: tile<8xi32>, %n: tile<i32>) -> tile<8xi32> {
          %i0 = constant <i32: 0> : tile<i32>
          %neg = cmpi less_than %n, %i0, signed : tile<i32> -> tile<i1>
          if %neg { return %x : tile<8xi32> }
          %n0 = reshape %n : tile<i32> -> tile<1xi32>
          %n1 = broadcast %n0 : tile<1xi32> -> tile<8xi32>
          %y = mini %x, %n1 signed : tile<8xi32>
          return %y : tile<8xi32>
        }
        entry @k(%A: tile<ptr<i32>>, %C: tile<ptr<i32>>, %n: tile<i32>) {\n"
        .to_string()
        + &load("a", "A", &[8], "i32")
        + "%c = experimental$call @clamp(%a, %n) : (tile<8xi32>, tile<i32>) -> tile<8xi32>\n"
        + &store("c", "C", &[8], "i32")
        + "return }\n}\n";
    for n in [-1, 2] {
        check(&text, [1, 1, 1], &[Buf(I32, 8), Buf(I32, 8), Int(n)]);
    }
}

#[test]
fn generated_tiles() {
    let body = "%g = experimental$generate {
        ^bb0(%i: tile<i32>, %j: tile<i32>):
          %s = muli %i, %j : tile<i32>
          yield %s : tile<i32>
        } : tile<4x8xi32>\n"
        .to_string()
        + &store("g", "C", &[4, 8], "i32");
    check(&entry("%C: tile<ptr<i32>>", &body), [1, 1, 1], &[Buf(I32, 32)]);
}

#[test]
fn masks_and_padding() {
    let ptr = pointers_of("A", "x", 32);
    let body = ptr
        + "%n0 = reshape %n : tile<i32> -> tile<1xi32>
           %n1 = broadcast %n0 : tile<1xi32> -> tile<32xi32>
           %m = cmpi less_than %x_i, %n1, signed : tile<32xi32> -> tile<32xi1>
           %pad = constant <f32: 7.5> : tile<32xf32>
           %v, %t = load_ptr_tko weak %x_p, %m, %pad : tile<32xptr<f32>>, tile<32xi1>, tile<32xf32> -> tile<32xf32>, token\n"
        + &store("v", "C", &[32], "f32");
    check(
        &entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %n: tile<i32>", &body),
        [1, 1, 1],
        &[Buf(F32, 20), Buf(F32, 32), Int(20)],
    );
}

fn pointers_of(param: &str, var: &str, n: u64) -> String {
    let text = load(var, param, &[n], "f32");
    text.lines().filter(|l| !l.contains("load_ptr_tko")).map(|l| format!("{l}\n")).collect()
}

#[test]
fn atomics() {
    let body = load("i", "I", &[16], "i32")
        + "%three = constant <i32: 3> : tile<16xi32>
           %at = andi %i, %three : tile<16xi32>
           %b0 = reshape %C : tile<ptr<i32>> -> tile<1xptr<i32>>
           %b1 = broadcast %b0 : tile<1xptr<i32>> -> tile<16xptr<i32>>
           %p = offset %b1, %at : tile<16xptr<i32>>, tile<16xi32> -> tile<16xptr<i32>>
           %old, %t = atomic_rmw_tko relaxed device %p, add, %i : tile<16xptr<i32>>, tile<16xi32> -> tile<16xi32>, token
           %z, %u = atomic_cas_tko acq_rel device %p, %old, %at : tile<16xptr<i32>>, tile<16xi32> -> tile<16xi32>, token\n"
        + &store("old", "O", &[16], "i32")
        + &store("z", "Z", &[16], "i32");
    let params = "%I: tile<ptr<i32>>, %C: tile<ptr<i32>>, %O: tile<ptr<i32>>, %Z: tile<ptr<i32>>";
    check(&entry(params, &body), [1, 1, 1], &[Buf(I32, 16), Buf(I32, 4), Buf(I32, 16), Buf(I32, 16)]);
}

fn views(make: &str, index: &str, view: &str, padding: &str, tile: &str) -> String {
    let tv = "tensor_view<?x?xf32, strides=[?,1]>";
    let v = view.replace("PAD", padding).replace("TV", tv);
    let out = view.replace("PAD", "").replace("TV", tv);
    let body = format!(
        "%x, %y, %z = get_tile_block_id : tile<i32>
         %a = make_tensor_view %A, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> {tv}
         %c = make_tensor_view %C, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> {tv}
         %av = {make} %a : {v}
         %cv = {make} %c : {out}
         {index}
         %t, %t0 = load_view_tko weak %av[%i, %j] : {v}, IDX -> tile<{tile}xf32>, token
         %u = addf %t, %t : tile<{tile}xf32>
         %t1 = store_view_tko weak %u, %cv[%i, %j] : tile<{tile}xf32>, {out}, IDX -> token"
    );
    entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>", &body)
}

#[test]
fn views_of_each_kind() {
    let block = "%i = assume div_by<1>, %x : tile<i32>\n%j = assume div_by<1>, %y : tile<i32>";
    let args = [Buf(F32, 13 * 21), Buf(F32, 13 * 21), Int(13), Int(21)];
    for padding in ["", "padding_value = zero, ", "padding_value = neg_inf, ", "padding_value = nan, "] {
        let partition = views("make_partition_view", block, "partition_view<tile=(8x4), PADTV>", padding, "8x4");
        check(&partition.replace("IDX", "tile<i32>"), [2, 6, 1], &args);
        let turned =
            views("make_partition_view", block, "partition_view<tile=(8x4), PADTV, dim_map=[1, 0]>", padding, "8x4");
        check(&turned.replace("IDX", "tile<i32>"), [3, 4, 1], &args);
        let strided = views(
            "make_strided_view",
            block,
            "strided_view<tile=(4x8), traversal_strides=[4,8], PADTV>",
            padding,
            "4x8",
        );
        check(&strided.replace("IDX", "tile<i32>"), [4, 3, 1], &args);
        let rows = "%i = constant <i32: [3, 1, 12, 40]> : tile<4xi32>\n%j = constant <i32: 16> : tile<i32>";
        let gather = views(
            "make_gather_scatter_view",
            rows,
            "gather_scatter_view<tile=(4x8), PADTV, sparse_dim=0>",
            padding,
            "4x8",
        );
        check(&gather.replace("IDX", "tile<4xi32>, tile<i32>"), [1, 1, 1], &args);
    }
}

#[test]
fn shapes_of_views() {
    let body = "%a = make_tensor_view %A, shape = [%M, %N], strides = [%N, 1] : tile<i32> -> tensor_view<?x?xf32, strides=[?,1]>
         %v = make_partition_view %a : partition_view<tile=(8x4), tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]>
         %m, %n = get_tensor_shape %a : tensor_view<?x?xf32, strides=[?,1]> -> tile<i32>
         %p, %q = get_index_space_shape %v : partition_view<tile=(8x4), tensor_view<?x?xf32, strides=[?,1]>, dim_map=[1, 0]> -> tile<i32>
         %m1 = reshape %m : tile<i32> -> tile<1xi32>
         %q1 = reshape %q : tile<i32> -> tile<1xi32>
         %p1 = reshape %p : tile<i32> -> tile<1xi32>
         %n1 = reshape %n : tile<i32> -> tile<1xi32>
         %mn = cat %m1, %n1 dim = 0 : tile<1xi32>, tile<1xi32> -> tile<2xi32>
         %pq = cat %p1, %q1 dim = 0 : tile<1xi32>, tile<1xi32> -> tile<2xi32>
         %all = cat %mn, %pq dim = 0 : tile<2xi32>, tile<2xi32> -> tile<4xi32>\n".to_string()
        + &store("all", "C", &[4], "i32");
    check(
        &entry("%A: tile<ptr<f32>>, %C: tile<ptr<i32>>, %M: tile<i32>, %N: tile<i32>", &body),
        [1, 1, 1],
        &[Buf(F32, 4), Buf(I32, 4), Int(13), Int(21)],
    );
}

#[test]
fn updating_in_place_without_tokens() {
    // Loads come before the store in the program: a shifted copy within one buffer must not see its own results.
    let body = load("a", "A", &[32], "f32")
        + "%one = constant <i32: 1> : tile<i32>
           %B = offset %A, %one : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>\n"
        + &load("b", "B", &[32], "f32")
        + "%c = addf %a, %b : tile<32xf32>\n"
        + &store("c", "B", &[32], "f32")
        + &load("d", "A", &[32], "f32")
        + &store("d", "C", &[32], "f32");
    check(&entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body), [1, 1, 1], &[Buf(F32, 33), Buf(F32, 32)]);
    check(&entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body), [1, 1, 1], &[Buf(F32, 99), Alias(0, 8)]);
}

#[test]
fn aliased_arguments() {
    let body = load("a", "A", &[32], "f32")
        + &load("b", "B", &[32], "f32")
        + "%c = addf %a, %b : tile<32xf32>\n"
        + &store("c", "C", &[32], "f32")
        + "%d = mulf %c, %b : tile<32xf32>\n"
        + &store("d", "A", &[32], "f32")
        + &load("e", "B", &[32], "f32")
        + &store("e", "C", &[32], "f32");
    let text = entry("%A: tile<ptr<f32>>, %B: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body);
    check(&text, [1, 1, 1], &[Buf(F32, 32), Buf(F32, 32), Buf(F32, 32)]);
    check(&text, [1, 1, 1], &[Buf(F32, 32), Alias(0, 0), Alias(0, 0)]);
    check(&text, [1, 1, 1], &[Buf(F32, 64), Alias(0, 4), Alias(0, 8)]);
    check(&text, [1, 1, 1], &[Buf(F32, 64), Buf(F32, 32), Alias(0, 4)]);
}

#[test]
fn scalars_and_globals() {
    let text = "cuda_tile.module @m {
        global @table <i32: [5, 6, 7, 8]> : tile<4xi32>
        entry @k(%C: tile<ptr<i32>>, %s: tile<f32>, %D: tile<ptr<f32>>) {
        %G = get_global @table : tile<ptr<i32>>\n"
        .to_string()
        + &load("g", "G", &[4], "i32")
        + &store("g", "C", &[4], "i32")
        + "%h = constant <f32: 0.5> : tile<f32>
           %t = mulf %s, %h : tile<f32>
           %e = exp %t : tile<f32>
           %e1 = reshape %e : tile<f32> -> tile<1xf32>\n"
        + &store("e1", "D", &[1], "f32")
        + "return }\n}\n";
    check(&text, [1, 1, 1], &[Buf(I32, 4), Real(1.25), Buf(F32, 1)]);
}

#[test]
fn scratch_memory() {
    let body = load("a", "A", &[16], "f32")
        + "%S = alloca num_elem = 16, alignment = 16 : tile<ptr<f32>>\n"
        + &store("a", "S", &[16], "f32")
        + &load("b", "S", &[4, 4], "f32")
        + "%p = permute %b [1, 0] : tile<4x4xf32> -> tile<4x4xf32>\n"
        + &store("p", "C", &[4, 4], "f32");
    check(&entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>", &body), [1, 1, 1], &[Buf(F32, 16), Buf(F32, 16)]);
}

#[test]
fn atomic_additions_through_a_view() {
    let view = "partition_view<tile=(4x8), tensor_view<?x?xf32, strides=[?,1]>>";
    let body = tensor("c", "C")
        + &load("a", "A", &[4, 8], "f32")
        + &format!(
            "%x, %y, %z = get_tile_block_id : tile<i32>
             %v = make_partition_view %c : {view}
             %t0 = atomic_red_view_tko relaxed device %v[%x, %y], addf, %a : tile<4x8xf32>, {view}, tile<i32> -> token\n"
        );
    let text = entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>", &body);
    check(&text, [2, 2, 1], &[Buf(F32, 32), Buf(F32, 7 * 13), Int(7), Int(13)]);
}

#[test]
fn rows_scattered_by_number() {
    let body = tensor("c", "C")
        + &load("a", "A", &[4, 8], "f32")
        + "%rows = constant <i32: [6, 0, 9, 3]> : tile<4xi32>
           %from = constant <i32: 7> : tile<i32>
           %t = make_token : token
           %t0 = experimental$scatter_store %a, %c, %rows, [%from] token = %t <{dim = 0 : i64}> :
             tile<4x8xf32>, tensor_view<?x?xf32, strides=[?,1]>, tile<4xi32>, tile<i32>, token -> token\n";
    let text = entry("%A: tile<ptr<f32>>, %C: tile<ptr<f32>>, %M: tile<i32>, %N: tile<i32>", &body);
    check(&text, [1, 1, 1], &[Buf(F32, 32), Buf(F32, 7 * 13), Int(7), Int(13)]);
}

#[test]
fn scaled_products() {
    let body = load("a", "A", &[8, 32], "f8E4M3FN")
        + &load("b", "B", &[32, 8], "f8E4M3FN")
        + &load("s", "S", &[8, 1], "f8E8M0FNU")
        + &load("t", "T", &[1, 8], "f8E8M0FNU")
        + &load("c", "C", &[8, 8], "f32")
        + "%d = mmaf_scaled %a, %b, %c, %s, %t : tile<8x32xf8E4M3FN>, tile<32x8xf8E4M3FN>, tile<8x8xf32>, tile<8x1xf8E8M0FNU>, tile<1x8xf8E8M0FNU>\n"
        + &store("d", "C", &[8, 8], "f32");
    let text = entry(
        "%A: tile<ptr<f8E4M3FN>>, %B: tile<ptr<f8E4M3FN>>, %S: tile<ptr<f8E8M0FNU>>, %T: tile<ptr<f8E8M0FNU>>, %C: tile<ptr<f32>>",
        &body,
    );
    check(
        &text,
        [1, 1, 1],
        &[Buf(F8E4M3FN, 256), Buf(F8E4M3FN, 256), Buf(F8E8M0FNU, 8), Buf(F8E8M0FNU, 8), Buf(F32, 64)],
    );
}

#[test]
fn unsigned_loops() {
    let body = "%i0 = constant <i32: 0> : tile<i32>
        %i1 = constant <i32: 1> : tile<i32>
        %s = for unsigned %k in (%lo to %hi, step %i1) : tile<i32> iter_values(%a = %i0) -> (tile<i32>) {
          %b = addi %a, %k : tile<i32>
          continue %b : tile<i32>
        }
        %s1 = reshape %s : tile<i32> -> tile<1xi32>\n"
        .to_string()
        + &store("s1", "C", &[1], "i32");
    let text = entry("%C: tile<ptr<i32>>, %lo: tile<i32>, %hi: tile<i32>", &body);
    for (lo, hi) in [(0, 5), (-7, -2), (3, 3), (0x7FFF_FFFE, -0x7FFF_FFFD)] {
        check(&text, [1, 1, 1], &[Buf(I32, 1), Int(lo), Int(hi)]);
    }
}
