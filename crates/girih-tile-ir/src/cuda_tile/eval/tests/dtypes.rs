//! Every elementwise operation with every element type it admits, against values worked out in i128 and f64.

use super::*;
use crate::num::DType;
use crate::num::convert::{from_f64, to_f64};
use crate::num::op::Rounding;

const INTS: [DType; 5] = [DType::I1, DType::I8, DType::I16, DType::I32, DType::I64];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Evaluates `op` on two rows of bits and returns the result's bits.
fn bits(op: &str, ty: DType, out: DType, rows: &[&[u64]]) -> Vec<u64> {
    let n = rows[0].len();
    let mut text = String::new();
    let names = ["%a", "%b", "%c"];
    let loads = |i: usize| {
        let (p, v) = (["%pa", "%pb", "%pc"][i], names[i]);
        format!(
            "{v}v = make_tensor_view {p}, shape = [{n}], strides = [1] : tensor_view<{n}x{ty}, strides=[1]>
            {v}w = make_partition_view {v}v : partition_view<tile=({n}), tensor_view<{n}x{ty}, strides=[1]>>
            {v}, {v}t = load_view_tko weak {v}w[%z] : partition_view<tile=({n}), tensor_view<{n}x{ty}, strides=[1]>>, tile<i32> -> tile<{n}x{ty}>, token\n"
        )
    };
    text.push_str("%z = constant <i32: 0> : tile<i32>\n");
    (0..rows.len()).for_each(|i| text.push_str(&loads(i)));
    text.push_str(&format!(
        "%r = {op}
        %rv = make_tensor_view %pr, shape = [{n}], strides = [1] : tensor_view<{n}x{out}, strides=[1]>
        %rw = make_partition_view %rv : partition_view<tile=({n}), tensor_view<{n}x{out}, strides=[1]>>
        %rt = store_view_tko weak %r, %rw[%z] : tile<{n}x{out}>, partition_view<tile=({n}), tensor_view<{n}x{out}, strides=[1]>>, tile<i32> -> token"
    ));
    let params: Vec<String> =
        (0..rows.len()).map(|i| format!("{}: tile<ptr<{ty}>>", ["%pa", "%pb", "%pc"][i])).collect();
    let bytes =
        |row: &[u64], d: DType| row.iter().flat_map(|b| b.to_le_bytes()[..d.bytes() as usize].to_vec()).collect();
    let mut args: Vec<Arg> = rows.iter().map(|r| Arg::Buffer(bytes(r, ty))).collect();
    args.push(Arg::Buffer(bytes(&vec![0; n], out)));
    let out_params = format!("{}, %pr: tile<ptr<{out}>>", params.join(", "));
    let outcome = body(&out_params, &text, args);
    assert_eq!(outcome.result.as_ref().err(), None, "{op}");
    let raw = outcome.buffers.last().cloned().unwrap_or_default();
    raw.chunks_exact(out.bytes() as usize).map(|c| c.iter().rev().fold(0, |v, &b| v << 8 | b as u64)).collect()
}

fn signed(d: DType, b: u64) -> i128 {
    let n = d.bits();
    let b = (b & d.mask()) as i128;
    if b >> (n - 1) & 1 == 1 { b - (1 << n) } else { b }
}

type IntCase = (&'static str, fn(i128, i128, i128, i128) -> i128);

type Unary = fn(f64) -> f64;

#[test]
fn integers_of_every_width() {
    // Each takes signed x and y and unsigned x and y.
    let cases: &[IntCase] = &[
        ("addi %a, %b", |x, y, _, _| x + y),
        ("subi %a, %b", |x, y, _, _| x - y),
        ("muli %a, %b", |x, y, _, _| x.wrapping_mul(y)),
        ("andi %a, %b", |x, y, _, _| x & y),
        ("ori %a, %b", |x, y, _, _| x | y),
        ("xori %a, %b", |x, y, _, _| x ^ y),
        ("maxi %a, %b signed", |x, y, _, _| x.max(y)),
        ("maxi %a, %b unsigned", |_, _, x, y| x.max(y)),
        ("mini %a, %b signed", |x, y, _, _| x.min(y)),
        ("mini %a, %b unsigned", |_, _, x, y| x.min(y)),
        ("divi %a, %b unsigned", |_, _, x, y| x / y),
        ("remi %a, %b unsigned", |_, _, x, y| x % y),
        ("divi %a, %b unsigned rounding<positive_inf>", |_, _, x, y| x / y + (x % y != 0) as i128),
    ];
    for d in INTS {
        let m = d.mask();
        let a = [0, 1 & m, m, m >> 1, (m >> 1) + 1, 5 & m, 0x35 & m, m - 1];
        let b = [1, m, m, 1, 1, 3 & m | 1, 7 & m, 1];
        for (op, want) in cases {
            let got = bits(&format!("{op} : tile<8x{d}>"), d, d, &[&a, &b]);
            let expect: Vec<u64> = a
                .iter()
                .zip(&b)
                .map(|(&x, &y)| want(signed(d, x), signed(d, y), x as i128, y as i128) as u64 & m)
                .collect();
            assert_eq!(got, expect, "{op} on {d}");
        }
        for (op, want) in [("absi %a", i128::abs as fn(i128) -> i128), ("negi %a", |x| -x)] {
            let got = bits(&format!("{op} : tile<8x{d}>"), d, d, &[&a]);
            let expect: Vec<u64> = a.iter().map(|&x| want(signed(d, x)) as u64 & m).collect();
            assert_eq!(got, expect, "{op} on {d}");
        }
        let high = bits(&format!("mulhii %a, %b : tile<8x{d}>"), d, d, &[&a, &b]);
        let expect: Vec<u64> = a.iter().zip(&b).map(|(&x, &y)| ((x as u128 * y as u128) >> d.bits()) as u64).collect();
        assert_eq!(high, expect, "mulhii on {d}");
        for sign in ["signed", "unsigned"] {
            let less =
                bits(&format!("cmpi less_than %a, %b, {sign} : tile<8x{d}> -> tile<8xi1>"), d, DType::I1, &[&a, &b]);
            let order = |x: u64, y: u64| if sign == "signed" { signed(d, x) < signed(d, y) } else { x < y };
            assert_eq!(
                less,
                a.iter().zip(&b).map(|(&x, &y)| order(x, y) as u64).collect::<Vec<_>>(),
                "cmpi {sign} on {d}"
            );
        }
    }
}

#[test]
fn floats_of_every_format() {
    // Small dyadic numbers: f64 computes these exactly, so one rounding of the f64 result is the answer.
    let a = [1.5, -2.0, 0.0, 4.0, -0.75, 3.0, 8.0, -1.0];
    let b = [0.5, 4.0, 2.0, -0.25, 0.5, 1.0, 2.0, -3.0];
    type Case = (&'static str, fn(f64, f64) -> f64);
    let cases: &[Case] = &[
        ("addf %a, %b", |x, y| x + y),
        ("subf %a, %b", |x, y| x - y),
        ("mulf %a, %b", |x, y| x * y),
        ("divf %a, %b", |x, y| x / y),
        ("maxf %a, %b", f64::max),
        ("minf %a, %b", f64::min),
        ("remf %a, %b", |x, y| x % y),
        ("fma %a, %b, %a", |x, y| x * y + x),
    ];
    let unary: &[(&str, Unary)] =
        &[("absf %a", f64::abs), ("negf %a", |x| -x), ("floor %a", f64::floor), ("ceil %a", f64::ceil)];
    for d in FLOATS {
        let encode = |v: &[f64]| v.iter().map(|&x| from_f64(d, x, Rounding::NearestEven)).collect::<Vec<u64>>();
        let (x, y) = (encode(&a), encode(&b));
        for (op, want) in cases {
            let got = bits(&format!("{op} : tile<8x{d}>"), d, d, &[&x, &y]);
            let expect = encode(&a.iter().zip(&b).map(|(&x, &y)| want(x, y)).collect::<Vec<_>>());
            assert_eq!(got, expect, "{op} on {d}");
        }
        for (op, want) in unary {
            let got = bits(&format!("{op} : tile<8x{d}>"), d, d, &[&x]);
            assert_eq!(got, encode(&a.iter().map(|&x| want(x)).collect::<Vec<_>>()), "{op} on {d}");
        }
        let less = bits(&format!("cmpf less_than ordered %a, %b : tile<8x{d}> -> tile<8xi1>"), d, DType::I1, &[&x, &y]);
        assert_eq!(less, a.iter().zip(&b).map(|(x, y)| (x < y) as u64).collect::<Vec<_>>(), "cmpf on {d}");
        let whole = [1.0, 0.0, 4.0, 9.0, 0.25, 16.0, 64.0, 2.25];
        let roots = bits(&format!("sqrt %a : tile<8x{d}>"), d, d, &[&encode(&whole)]);
        assert_eq!(roots, encode(&whole.map(f64::sqrt)), "sqrt on {d}");
    }
}

#[test]
fn transcendentals_of_every_format() {
    let a = [0.5, -1.25, 2.0, 0.75, -0.5, 1.0, 0.25, -2.0];
    let unary: &[(&str, Unary)] = &[
        ("exp", f64::exp),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
        ("sinh", f64::sinh),
        ("cosh", f64::cosh),
        ("tanh", f64::tanh),
        ("exp2", f64::exp2),
    ];
    let positive: &[(&str, Unary)] = &[("log", f64::ln), ("log2", f64::log2), ("rsqrt", |x| 1.0 / x.sqrt())];
    for d in FLOATS {
        // Four units in the last place.
        let eps = match d {
            DType::F16 => 2f64.powi(-8),
            DType::BF16 => 2f64.powi(-5),
            DType::F32 => 2f64.powi(-21),
            _ => 2f64.powi(-50),
        };
        let encode = |v: &[f64]| v.iter().map(|&x| from_f64(d, x, Rounding::NearestEven)).collect::<Vec<u64>>();
        for (i, (op, want)) in unary.iter().chain(positive).enumerate() {
            let inputs = if i < unary.len() { a } else { a.map(f64::abs) };
            let got = bits(&format!("{op} %a : tile<8x{d}>"), d, d, &[&encode(&inputs)]);
            for (&g, &x) in got.iter().zip(&inputs) {
                let (g, w) = (to_f64(d, g), want(x));
                assert!((g - w).abs() <= eps * w.abs().max(eps), "{op}({x}) on {d}: {g}, not {w}");
            }
        }
        let (y, x) = ([1.0, -1.0, 0.5, 2.0, 1.0, -3.0, 0.0, 1.0], [1.0, 2.0, -1.0, -0.5, 0.25, 1.0, -1.0, 0.0]);
        let got = bits(&format!("atan2 %a, %b : tile<8x{d}>"), d, d, &[&encode(&y), &encode(&x)]);
        for i in 0..8 {
            let (g, w) = (to_f64(d, got[i]), y[i].atan2(x[i]));
            assert!((g - w).abs() <= eps * w.abs().max(eps), "atan2({}, {}) on {d}: {g}, not {w}", y[i], x[i]);
        }
    }
}

#[test]
fn conversions_between_all_floats() {
    let all =
        [DType::F16, DType::BF16, DType::F32, DType::TF32, DType::F64, DType::F8E4M3FN, DType::F8E5M2, DType::F4E2M1FN];
    // Numbers that every format holds.
    let values = [1.0, 2.0, 0.5, 4.0, -1.5, 3.0, -0.5, 6.0];
    for from in all {
        for to in all {
            // 4-bit elements share bytes; memory.rs has them.
            if from == to || from.bits() == 4 || to.bits() == 4 {
                continue;
            }
            let encode = |d| values.map(|v| from_f64(d, v, Rounding::NearestEven));
            let got = bits(&format!("ftof %a : tile<8x{from}> -> tile<8x{to}>"), from, to, &[&encode(from)]);
            assert_eq!(got, encode(to), "{from} to {to}");
        }
    }
    for d in INTS.into_iter().skip(1) {
        for f in FLOATS {
            let ints = [0, 1, 2, 7, d.mask(), d.mask() - 1, 100, 64];
            let want = ints.map(|b| from_f64(f, signed(d, b) as f64, Rounding::NearestEven));
            let got = bits(&format!("itof %a signed : tile<8x{d}> -> tile<8x{f}>"), d, f, &[&ints]);
            assert_eq!(got, want, "{d} to {f}");
            let back = bits(&format!("ftoi %a signed : tile<8x{f}> -> tile<8x{d}>"), f, d, &[&want]);
            assert_eq!(back, ints, "{f} to {d}");
        }
    }
}

#[test]
fn four_bit_elements_share_bytes() {
    // f4E2M1FN: 0b0010 is 1.0, 0b0100 is 2.0, 0b1001 is -0.5, 0b0111 is 6.0
    let ty = "tensor_view<4xf4E2M1FN, strides=[1]>";
    let view = format!("partition_view<tile=(4), {ty}>");
    let text = format!(
        "%z = constant <i32: 0> : tile<i32>
        %tv = make_tensor_view %p, shape = [4], strides = [1] : {ty}
        %v = make_partition_view %tv : {view}
        %x, %t = load_view_tko weak %v[%z] : {view}, tile<i32> -> tile<4xf4E2M1FN>, token
        %f = ftof %x : tile<4xf4E2M1FN> -> tile<4xf32>
        print_tko \"%g\", %f : tile<4xf32> -> token
        %n = negf %f : tile<4xf32>
        %y = ftof %n : tile<4xf32> -> tile<4xf4E2M1FN>
        %u = store_view_tko weak %y, %v[%z] token = %t : tile<4xf4E2M1FN>, {view}, tile<i32> -> token"
    );
    let out = body("%p: tile<ptr<f4E2M1FN>>", &text, vec![Arg::Buffer(vec![0x42, 0x79])]);
    assert_eq!(out.result.err(), None);
    assert_eq!(out.printed, "[1, 2, -0.5, 6]");
    assert_eq!(out.buffers[0], [0xca, 0xf1]);
}

#[test]
fn products_of_every_type() {
    for (from, to) in [
        (DType::F8E4M3FN, DType::F16),
        (DType::F8E4M3FN, DType::F32),
        (DType::F8E5M2, DType::F16),
        (DType::F8E5M2, DType::F32),
        (DType::F16, DType::F16),
        (DType::F16, DType::F32),
        (DType::BF16, DType::F32),
        (DType::TF32, DType::F32),
        (DType::F32, DType::F32),
        (DType::F64, DType::F64),
    ] {
        let text = format!(
            "%a = constant <f32: [[1.0, 2.0], [-0.5, 4.0]]> : tile<2x2xf32>
            %b = constant <f32: [[0.5, -1.0], [2.0, 3.0]]> : tile<2x2xf32>
            %x = {} : tile<2x2xf32> -> tile<2x2x{from}>
            %y = {} : tile<2x2xf32> -> tile<2x2x{from}>
            %c = constant <{to}: 1.0> : tile<2x2x{to}>
            %r = mmaf %x, %y, %c : tile<2x2x{from}>, tile<2x2x{from}>, tile<2x2x{to}>
            print_tko \"%g\", %r : tile<2x2x{to}> -> token",
            if from == DType::F32 { "bitcast %a" } else { "ftof %a" },
            if from == DType::F32 { "bitcast %b" } else { "ftof %b" },
        );
        assert_eq!(prints(&text), "[[5.5, 6], [8.75, 13.5]]", "{from} to {to}");
    }
}
