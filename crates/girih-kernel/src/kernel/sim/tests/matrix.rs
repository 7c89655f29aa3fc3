//! Products on the matrix unit.

use super::*;
use crate::num::DType;
use crate::num::convert::from_f64;
use crate::num::op::Rounding;

/// A 16 x k matrix times a k x 8 matrix, each stored by rows or by columns, into i32.
fn product(of: &str, k: u64, [left, right]: [&str; 2]) -> String {
    let (element, sum) = match of {
        "s8" | "u8" | "s8 u8" => ("i8", "i32"),
        "tf32" => ("f32", "f32"),
        "e4m3" => ("f8E4M3FN", "f32"),
        "e5m2" => ("f8E5M2", "f32"),
        float => (float, "f32"),
    };
    let half = k / 2;
    let a = match left {
        "trans" => format!("(tx//16*8 + tx%8)*16 + tx//8%2*{half}"),
        _ => format!("(tx//8%2*8 + tx%8)*{k} + tx//16*{half}"),
    };
    let b = match right {
        "trans" => "tx%16*8".to_string(),
        _ => format!("tx%8*{k} + tx//8%2*{half}"),
    };
    let zero = if sum == "i32" { "0:i32" } else { "0.0:f32" };
    let bytes = 512 + 256;
    format!(
        "kernel product(A: ptr<i32>, B: ptr<i32>, C: ptr<i32>) threads 32 scratch 16 shared {bytes} {{
  slot acc: {sum}[4] at 0
  shared a_s: {element}[{}] at 0
  shared b_s: {element}[{}] at 512
  for e in 0..{} step 1 {{
    x: {element} = load A as {element}[e*32 + tx]
    store a_s[e*32 + tx] = x
  }}
  for e_2 in 0..{} step 1 {{
    y: {element} = load B as {element}[e_2*32 + tx]
    store b_s[e_2*32 + tx] = y
  }}
  for z in 0..4 step 1 {{
    store acc[z] = {zero}
  }}
  barrier
  a: i32x4 = ldmatrix {left} a_s[{a}]
  b: i32x2 = ldmatrix {right} b_s[{b}]
  mma {of} acc[0], acc[2] add a, b
  for r in 0..4 step 1 {{
    v: {sum} = load acc[r]
    store C as {sum}[(tx//4 + r//2*8)*8 + tx%4*2 + r%2] = v
  }}
}}
",
        16 * k,
        8 * k,
        k / 2,
        k / 4,
    )
}

/// Numbers as the elements of words.
fn packed(values: &[i64], dtype: DType) -> Vec<i32> {
    let one = |x: &i64| if dtype.is_float() { from_f64(dtype, *x as f64, Rounding::NearestEven) } else { *x as u64 };
    let bytes: Vec<u8> = values.iter().flat_map(|x| one(x).to_le_bytes()[..dtype.bytes() as usize].to_vec()).collect();
    bytes.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn products_are_those_of_matrices() {
    for (of, dtype, signed) in [
        ("f16", DType::F16, [true; 2]),
        ("bf16", DType::BF16, [true; 2]),
        ("tf32", DType::F32, [true; 2]),
        ("e4m3", DType::F8E4M3FN, [true; 2]),
        ("e5m2", DType::F8E5M2, [true; 2]),
        ("s8", DType::I8, [true; 2]),
        ("u8", DType::I8, [false; 2]),
        ("s8 u8", DType::I8, [true, false]),
    ] {
        let k = 32 / dtype.bytes();
        let trans: &[&str] = if dtype.bytes() == 2 { &["", "trans"] } else { &[""] };
        // Numbers that the type represents exactly.
        let most = if dtype == DType::F8E5M2 { 4 } else { 11 };
        let number = |n: u64, signed: bool| (n * 37 % (2 * most + 1)) as i64 - if signed { most as i64 } else { 0 };
        let a = |m: u64, t: u64| number(m * 19 + t, signed[0]);
        let b = |t: u64, n: u64| number(n * 7 + t * 3 + 5, signed[1]);
        let sum = |c: u64| (0..k).map(|t| a(c / 8, t) * b(t, c % 8)).sum::<i64>();
        let of_sum = if dtype.is_float() { DType::F32 } else { DType::I32 };
        let expected: Vec<i32> = (0..128).flat_map(|c| packed(&[sum(c)], of_sum)).collect();
        for left in trans {
            for right in trans {
                let of_a = |at: u64| if *left == "trans" { a(at % 16, at / 16) } else { a(at / k, at % k) };
                let of_b = |at: u64| if *right == "trans" { b(at / 8, at % 8) } else { b(at % k, at / k) };
                let a: Vec<i64> = (0..16 * k).map(of_a).collect();
                let b: Vec<i64> = (0..8 * k).map(of_b).collect();
                let arrays = [("A", packed(&a, dtype)), ("B", packed(&b, dtype)), ("C", vec![0; 128])];
                clean(&product(of, k, [left, right]), [1, 1, 1], &arrays, &[], &expected);
            }
        }
    }
}

/// Two products of bytes side by side, 16 x 32 times 32 x 16, whose operands lie term by term.
const ACROSS: &str = "kernel product(A: ptr<i8>, B: ptr<i8>, C: ptr<i32>) threads 32 scratch 48 shared 1024 {
  slot acc: i32[8] at 0
  slot f: i32[4] at 32
  shared a_s: i8[512] at 0
  shared b_s: i8[512] at 512
  for e in 0..16 step 1 {
    x: i8 = load A[e*32 + tx]
    store a_s[e*32 + tx] = x
    y: i8 = load B[e*32 + tx]
    store b_s[e*32 + tx] = y
  }
  for z in 0..8 step 1 {
    store acc[z] = 0:i32
  }
  barrier
  a: i32x4 = ldmatrix trans left a_s[(tx//16*16 + tx//2%4*4 + (tx//8 + tx//4)%2*2 + tx%2)*16]
  b: i32x4 = ldmatrix trans right b_s[(tx//16*16 + tx//2%4*4 + (tx//8 + tx//4)%2*2 + tx%2)*16]
  store f[0] = b
  b0: i32x2 = load f[0]
  b1: i32x2 = load f[2]
  mma s8 acc[0], acc[4] by 2 add a, b0
  mma s8 acc[1], acc[5] by 2 add a, b1
  for r in 0..8 step 1 {
    v: i32 = load acc[r]
    store C[(tx//4*2 + r//4)*16 + tx%4*4 + r%4] = v
  }
}
";

#[test]
fn bytes_across_the_sum_are_transposed() {
    let (a, b) =
        (|m: u64, t: u64| ((m * 37 + t * 11) % 23) as i64 - 11, |t: u64, n: u64| ((t * 7 + n * 5) % 19) as i64 - 9);
    let sum = |c: u64| (0..32).map(|t| a(c / 16, t) * b(t, c % 16)).sum::<i64>() as i32;
    let expected: Vec<i32> = (0..256).map(sum).collect();
    let left: Vec<i64> = (0..512).map(|at| a(at % 16, at / 16)).collect();
    let right: Vec<i64> = (0..512).map(|at| b(at / 16, at % 16)).collect();
    let arrays = [("A", packed(&left, DType::I8)), ("B", packed(&right, DType::I8)), ("C", vec![0; 256])];
    clean(ACROSS, [1, 1, 1], &arrays, &[], &expected);
    // Rows of a matrix lie in different banks.
    let (report, _) = simulate(&kernel(ACROSS), [1, 1, 1], &arrays, &[], &Options::default());
    let loads: Vec<f64> =
        report.rows.iter().filter(|r| r.statement.text.contains("ldmatrix")).map(|r| r.counts.shared.ratio()).collect();
    assert_eq!(loads, [1.0, 1.0], "{report}");
    for (from, to) in [("trans left", "trans right"), ("trans right", "trans left"), ("tx//8 + tx//4", "tx//8")] {
        let (_, other) = simulate(&kernel(&ACROSS.replacen(from, to, 1)), [1, 1, 1], &arrays, &[], &Options::default());
        assert_ne!(other.last(), Some(&expected), "{to}");
    }
}

#[test]
fn rows_of_matrices_are_reads_like_others() {
    let good = product("f16", 16, ["", ""]);
    let arrays = [("A", vec![0; 128]), ("B", vec![0; 64]), ("C", vec![0; 128])];
    // Rows of 32 bytes: rows r and r + 4 share banks, so eight take two passes.
    let (report, _) = simulate(&kernel(&good), [1, 1, 1], &arrays, &[], &Options::default());
    let text = report.to_string();
    assert!(text.contains("32 matrix"), "{text}");
    racy(&good.replace("  barrier\n", ""), [1, 1, 1], &arrays, &[], Kind::ReadAfterWrite, "store a_s", "a: i32x4");
    let outside = good.replace("tx%8)*16 + tx//16*8]", "tx%8)*16 + tx//16*8 + 8]");
    assert_ne!(good, outside);
    let (report, _) = simulate(&kernel(&outside), [1, 1, 1], &arrays, &[], &Options::default());
    assert!(found(&report).iter().any(|(kind, ..)| *kind == Kind::OutOfBounds), "{report}");
}
