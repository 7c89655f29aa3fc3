//! Every rule leaves the value of the program: the evaluator runs each kernel before and after each rule. Inputs are
//! small multiples of a quarter, so that every order of summation is exact and results compare bit for bit.

use super::tests::{
    COLUMN_SUMS, GEMM, GEMM_TRANSPOSED, SOFTMAX, TRANSPOSE, VECTOR_ADD, apply, context, kernel as parsed, text,
    with_knobs,
};
use super::{Context, rules};
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel;
use crate::kernel::legalise::{Options, legalise};
use crate::loops::eval::run;
use crate::loops::ir::{Kernel, Ty};
use crate::num::op::Rounding;
use crate::num::{DType, ScalarOp, eval};
use crate::tile::target::{MemoryKind, Target};

/// What to run a kernel on: elements per pointer parameter, and the scalars, in the order of the parameters.
struct Case {
    loops: String,
    grid: [u32; 3],
    args: Vec<u64>,
}

fn case(loops: &str, grid: [u32; 3], args: &[u64]) -> Case {
    Case { loops: loops.to_string(), grid, args: args.to_vec() }
}

fn fill(dtype: DType, count: u64, seed: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..count {
        let n = ((i * 2654435761 + seed * 97) >> 7) % 17;
        let bits = if dtype.is_int() {
            n.wrapping_sub(8) & dtype.mask()
        } else {
            let x = ((n as f32 - 8.0) / 4.0).to_bits() as u64;
            eval::apply(ScalarOp::FToF { to: dtype, rounding: Rounding::NearestEven }, DType::F32, &[x])
        };
        out.extend_from_slice(&bits.to_le_bytes()[..dtype.bytes() as usize]);
    }
    out
}

fn evaluate(k: &Kernel, case: &Case) -> Vec<Vec<u8>> {
    let mut memory = VecMemory::new();
    let (mut args, mut buffers) = (vec![], vec![]);
    for (at, (param, &arg)) in k.params.iter().zip(&case.args).enumerate() {
        match param.ty {
            Ty::Ptr(d) => {
                let address = memory.add(&param.name, fill(d, arg, at as u64));
                buffers.push(address);
                args.push(address);
            }
            Ty::Num(_) => args.push(arg),
        }
    }
    if let Err(trap) = run(k, &Launch::new(case.grid, args), &mut memory, &mut Silent) {
        panic!("{}\n{}", trap.message, text(k));
    }
    buffers.iter().map(|b| memory.bytes(*b).unwrap().to_vec()).collect()
}

fn check(case: &Case, ctx: &Context) {
    let mut k = parsed(&case.loops);
    let want = evaluate(&k, case);
    for rule in rules(&ctx.target).list {
        let before = k;
        (k, _) = apply(rule.name, &before, ctx);
        if k != before {
            let same = evaluate(&k, case) == want;
            assert!(same, "{} changes the value:\n{}\n-->\n{}", rule.name, text(&before), text(&k));
        }
    }
    let shared = ctx.target.bytes_of(MemoryKind::Shared);
    let lowered = legalise(&k, &Options { check: false, shared }).unwrap_or_else(|e| panic!("{e}\n{}", text(&k)));
    assert_eq!(kernel::verify::verify(&lowered), Vec::<String>::new(), "{}", kernel::print::print(&lowered));
}

fn targets() -> Vec<Context> {
    let narrow = Target::cpu().with_vectors(32, 16).with_caches([1 << 10, 8 << 10, 32 << 20]);
    let least = Target::cpu().with_vectors(16, 16);
    let gpu = |name: &str| Target::named(name).unwrap();
    vec![
        Context { target: gpu("sm_90a"), ..context() },
        Context { target: gpu("sm_80"), ..with_knobs(&["threads=32"]) },
        context(),
        Context { target: narrow, ..context() },
        Context { target: least, ..with_knobs(&["kc=8", "nc=16", "mc=8", "ways=2"]) },
    ]
}

fn check_all(cases: &[Case]) {
    for case in cases {
        for ctx in targets() {
            check(case, &ctx);
        }
    }
}

#[test]
fn gemm_with_partial_edges() {
    let small = GEMM.replace("128", "32").replace("63", "15").replace("64", "16");
    for (m, n, k) in [(64, 64, 32), (40, 51, 23), (1, 33, 1)] {
        check_all(&[case(&small, [2, 2, 1], &[m * k, k * n, m * n, m, n, k])]);
    }
}

#[test]
fn gemm_of_transposed_operands() {
    let small = GEMM_TRANSPOSED.replace("128", "32").replace("64", "32");
    for (m, n, k) in [(64, 64, 32), (40, 51, 23)] {
        check_all(&[case(&small, [2, 2, 1], &[m * k, k * n, 64 * 32, m, n, k])]);
    }
}

#[test]
fn contractions_of_every_small_shape() {
    for (a, b, acc) in [("f32", "f32", "f32"), ("f64", "f64", "f64"), ("i8", "i8", "i32"), ("f16", "f32", "f32")] {
        for (m, n, k) in [(16, 16, 16), (1, 32, 8), (32, 1, 8), (4, 2, 4), (64, 32, 1), (2, 128, 16), (16, 64, 64)] {
            let step =
                if acc == "i32" { "s: i32 = x1 * y1\n        d: i32 = s + c" } else { "d: ACC = fma(x1, y1, c)" };
            let widen = |v: &str, ty: &str| {
                let op = if ty == acc { "copy" } else { acc };
                format!("{v}1: {acc} = {op}({v})")
            };
            let loops = format!(
                "loop kernel k(A: ptr {a}, B: ptr {b}, C: ptr ACC):
  local acc: ACC[{m}, {n}]
  for i0 in 0..{m}: free
    for j0 in 0..{n}: free
      acc[i0, j0] = 1
  for i in 0..{m}: free
    for j in 0..{n}: free
      for kk in 0..{k}: reduce contraction m=i n=j k=kk a=x b=y acc=acc
        x: {a} = load A[i*{k} + kk]
        y: {b} = load B[kk*{n} + j]
        {}
        {}
        c: ACC = acc[i, j]
        {step}
        acc[i, j] = d
  for i1 in 0..{m}: free
    for j1 in 0..{n}: free
      r: ACC = acc[i1, j1]
      store C[i1*{n} + j1] = r
",
                widen("x", a),
                widen("y", b),
            );
            let one = if acc == "i32" { "= 1\n" } else { "= 1.0\n" };
            let loops = loops.replace("ACC", acc).replace("= 1\n", one);
            check_all(&[case(&loops, [1, 1, 1], &[m * k, k * n, m * n])]);
        }
    }
}

#[test]
fn rows_and_vectors() {
    // Exact: the exponential is replaced by something rational.
    let softmax = SOFTMAX.replace("exp(d)", "max(d, -4.0)").replace("1024", "128").replace("v3 / total", "v3 + total");
    for n in [128, 100, 1, 0] {
        check_all(&[case(&softmax, [3, 1, 1], &[3 * 128, 3 * 128, n])]);
    }
    let add = VECTOR_ADD.replace("1024", "64");
    for n in [256, 200, 64, 3] {
        check_all(&[case(&add, [4, 1, 1], &[n, n, n, n])]);
    }
    check_all(&[case(COLUMN_SUMS, [2, 1, 1], &[64 * 256, 512])]);
}

#[test]
fn transposes_at_edges() {
    for (m, n) in [(128, 64), (100, 70), (3, 5)] {
        check_all(&[case(TRANSPOSE, [2, 2, 1], &[m * n, m * n, m, n])]);
    }
}

#[test]
fn masks_of_every_form() {
    for mask in [
        "j < n",
        "j*3 < n",
        "10 - j >= 4",
        "bx*32 + j <= n and j < 20",
        "bx*9 < n and j < n",
        "n > 8",
        "j < 10",
        "j < 40",
        "n > j",
        "j >= 4",
        "j != 5",
        "j % 4 < n",
    ] {
        let loops = format!(
            "loop kernel k(a: ptr i32, c: ptr i32, s: ptr i32, n: i32):
  local t: i32
  t = 0
  for j in 0..32: free
    x: i32 = load a[bx*32 + j] where {mask} else 7
    w: i32 = load a[bx*32 + j] where j < 5 else 3
    b: i1 = test {mask}
    y: i32 = select(b, x, w)
    store c[bx*32 + j] = y
  for q in 0..32: reduce combine add(t) from 0
    z: i32 = load a[bx*32 + q] where {}
    t0: i32 = t
    t1: i32 = z + t0
    t = t1
  u: i32 = t
  store s[bx] = u where bx < 2
",
            mask.replace('j', "q")
        );
        for n in [0, 9, 32, 50] {
            check_all(&[case(&loops, [2, 1, 1], &[64, 64, 2, n])]);
        }
    }
}
