//! Loop and tile IR as native code, against the evaluator, bit for bit.

use crate::calling;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::{Memory, VecMemory};
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::kernel::{self, print, verify};
use girih_compiler::loops::{eval, parse};
use girih_compiler::num::DType;
use girih_compiler::tile::target::Target;

/// An argument: a scalar's bits, or a buffer's elements.
#[derive(Clone)]
enum Arg {
    Scalar(u64),
    Buffer(DType, Vec<u64>),
}

struct Case {
    name: &'static str,
    text: String,
    grid: [u32; 3],
    args: Vec<Arg>,
}

fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Small whole numbers and fractions, as elements of the type.
fn numbers(d: DType, n: usize) -> Arg {
    let mut seed = 0x1234_5678_9abc_def1 ^ ((n as u64) << 7);
    let value = |seed: &mut u64| {
        let r = random(seed);
        let x = (r % 4001) as f64 / 16.0 - 125.0;
        match d {
            DType::F32 => (x as f32).to_bits() as u64,
            DType::F64 => x.to_bits(),
            DType::F16 | DType::BF16 => {
                girih_compiler::num::convert::from_f64(d, x, girih_compiler::num::op::Rounding::NearestEven)
            }
            _ => r & d.mask(),
        }
    };
    Arg::Buffer(d, (0..n).map(|_| value(&mut seed)).collect())
}

/// Bits of f32 with NaNs of every sort among them.
fn nans() -> Vec<u64> {
    (0..32)
        .map(|i| {
            if i % 3 == 0 {
                0x7fc0_0001 + i
            } else if i % 3 == 1 {
                0xffc0_0000
            } else {
                0x3f80_0000 + i
            }
        })
        .collect()
}

fn zeros(d: DType, n: usize) -> Arg {
    Arg::Buffer(d, vec![0; n])
}

fn below(d: DType, n: usize, limit: u64) -> Arg {
    let mut seed = 0xfeed_beef_0123_4567;
    Arg::Buffer(d, (0..n).map(|_| random(&mut seed) % limit).collect())
}

fn int(x: i64) -> Arg {
    Arg::Scalar(x as u32 as u64)
}

fn bytes(d: DType, elements: &[u64]) -> Vec<u8> {
    elements.iter().flat_map(|e| e.to_le_bytes()[..d.bytes() as usize].to_vec()).collect()
}

fn evaluate(case: &Case, kernel: &girih_compiler::loops::ir::Kernel) -> Vec<Vec<u8>> {
    let mut memory = VecMemory::new();
    let mut slots = Vec::new();
    for arg in &case.args {
        slots.push(match arg {
            Arg::Scalar(x) => *x,
            Arg::Buffer(d, e) => memory.add("buffer", bytes(*d, e)),
        });
    }
    eval::run(kernel, &Launch::new(case.grid, slots.clone()), &mut memory, &mut Silent)
        .unwrap_or_else(|t| panic!("{}: {}", case.name, t.message));
    let mut out = Vec::new();
    for (arg, slot) in case.args.iter().zip(slots) {
        if let Arg::Buffer(d, e) = arg {
            let mut b = vec![0; e.len() * d.bytes() as usize];
            memory.read(slot, &mut b).expect("the buffer");
            out.push(b);
        }
    }
    out
}

fn is_nan(d: DType, bits: &[u8]) -> bool {
    let mut b = [0; 8];
    b[..bits.len()].copy_from_slice(bits);
    d.is_float() && girih_compiler::num::convert::is_nan(d, u64::from_le_bytes(b))
}

fn compare(cases: &[Case], tag: &str, flags: &[&str], check: bool) {
    if calling::cc().is_none() {
        return;
    }
    let target = Target::cpu();
    let mut kernels = Vec::new();
    let mut lowered = Vec::new();
    for case in cases {
        let (kernel, _) = parse::parse(&case.text).unwrap_or_else(|e| panic!("{}: {}", case.name, e.message));
        let k = legalise(&kernel, &Options { check, ..Options::default() })
            .unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert_eq!(verify::verify(&k), Vec::<String>::new(), "{}", case.name);
        let text = print::print(&k);
        let back = kernel::parse::parse(&text).unwrap_or_else(|e| panic!("{}: {} in\n{text}", case.name, e.message));
        assert_eq!(print::print(&back), text, "{}", case.name);
        lowered.push(back);
        kernels.push(kernel);
    }
    let source = girih_compiler::emit::c::emit(&lowered.iter().collect::<Vec<_>>(), &target).unwrap().text;
    let Some(unit) = calling::build(tag, &source, flags) else { return };
    for (n, case) in cases.iter().enumerate() {
        let want = evaluate(case, &kernels[n]);
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        let (mut slots, mut extents) = (Vec::new(), Vec::new());
        for arg in &case.args {
            match arg {
                Arg::Scalar(x) => {
                    slots.push(*x);
                    extents.extend([0, 0]);
                }
                Arg::Buffer(d, e) => {
                    let mut b = bytes(*d, e);
                    let at = b.as_mut_ptr() as u64;
                    slots.push(at);
                    extents.extend([at as i64, (at + b.len() as u64) as i64]);
                    buffers.push(b);
                }
            }
        }
        let outcome = unit.run(n, &slots, case.grid.map(|g| g as i64), &extents);
        assert_eq!((outcome.code, outcome.traps), (0, vec![]), "{}", case.name);
        let dtypes = case.args.iter().filter_map(|a| if let Arg::Buffer(d, _) = a { Some(*d) } else { None });
        for (b, ((got, want), d)) in buffers.iter().zip(&want).zip(dtypes).enumerate() {
            let size = d.bytes() as usize;
            for (i, (g, w)) in got.chunks(size).zip(want.chunks(size)).enumerate() {
                assert!(
                    g == w || (is_nan(d, g) && is_nan(d, w)),
                    "{}: buffer {b}, element {i}: got {g:x?}, expected {w:x?}",
                    case.name
                );
            }
        }
    }
}

fn case(name: &'static str, text: impl Into<String>, grid: [u32; 3], args: Vec<Arg>) -> Case {
    Case { name, text: text.into(), grid, args }
}

fn golden(name: &str) -> String {
    let path = format!("{}/../girih-schedule/src/tile/goldens/{name}.tile", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the golden file")
}

const MASKED: &str = "\
tile kernel masked(X: ptr f32, Y: ptr f32, n: i32, lo: i32):
  for i in 0..100: free vector(16)
    v: f32 = load X[i + bx] where i < n and i >= lo else 7.5
    m: i1 = test i < n and 50 - i > 3
    w: f32 = load X[2*i] where m
    s: f32 = v + w
    store Y[bx*100 + i] = s where 3*i < 2*n
";

/// A `for` over values that differ between lanes, an `if`, a loop that lanes leave at different times.
const LANES: &str = "\
tile kernel lanes(P: ptr i32, X: ptr f32, Y: ptr f32, Z: ptr i1):
  for i in 0..70: free vector(16)
    p: i32 = load P[i]
    x: f32 = load X[p]
    local best: f32
    best = x
    for k in 0..5: serial
      y: f32 = load X[k*3 + p] where k < 4
      b: f32 = best
      big: i1 = cmpf.gt(y, b)
      if big:
        best = y
      stop: i1 = cmpf.gt(y, 60.0)
      if stop:
        break
    odd: i32 = p & 1
    is: i1 = cmpi.ne(odd, 0)
    t: f32 = best
    f: f32 = select(is, t, x)
    store Y[69 - i] = f
    store Z[i] = is
";

const REDUCE: &str = "\
tile kernel reduce(X: ptr TY, Y: ptr TY, n: i32):
  local acc: TY
  acc = ID
  for i in 0..n: reduce vector(16) combine OP(acc) from ID x 4
    x: TY = load X[bx*7 + i]
    a: TY = acc
    s: TY = OP(a, x)
    acc = s
  r: TY = acc
  store Y[bx] = r
";

/// The bits of NaNs in a kernel that looks at them: loaded ones as they are, computed ones canonical.
const BITS: &str = "\
tile kernel bits(X: ptr f32, Y: ptr i32):
  for i in 0..32: free vector(16)
    x: f32 = load X[i]
    p: i32 = bitcast.i32(x)
    z: f32 = x - x
    q: f32 = z / z
    r: f32 = max(x, q)
    a: i32 = bitcast.i32(q)
    b: i32 = bitcast.i32(r)
    store Y[i] = p
    store Y[i + 32] = a
    store Y[i + 64] = b
";

/// Lanes of i1 kept in a buffer, integers of mixed widths, an index as a value.
const MIXED: &str = "\
tile kernel mixed(A: ptr i8, B: ptr i64, C: ptr f16, D: ptr f64):
  local on: i1[64]
  for i in 0..64: free vector(16)
    a: i8 = load A[i]
    w: i64 = i64(a)
    b: i64 = load B[i]
    c: i64 = w + b
    m: i1 = cmpi.lt(c, b)
    on[i] = m
    j: i32 = index i*3 - 5
    k: i64 = i64(j)
    d: i64 = c ^ k
    store B[i] = d
  for i2 in 0..64: free vector(16)
    q: i1 = on[i2]
    h: f16 = load C[i2]
    g: f64 = f64(h)
    e: f64 = g * 3.0
    z: f64 = select(q, e, g)
    store D[i2] = z where q
    u: f16 = h * h
    store C[i2] = u
";

const ATOMIC: &str = "\
tile kernel atomic(P: ptr i32, H: ptr i32, F: ptr f32, G: ptr f16):
  for i in 0..48: free vector(16)
    p: i32 = load P[i]
    m: i1 = cmpi.ne(p, 3)
    old: i32 = atomic add H[p], 1 where m relaxed
    x: f32 = f32(p)
    o: f32 = atomic addf F[p], x relaxed
    g: f16 = atomic addf G[p], 1.5 acq_rel
    mx: i32 = atomic max H[p + 16], p relaxed
    c: i32 = cas H[p + 32], 0, p acq_rel
";

fn cases() -> Vec<Case> {
    use DType::*;
    let mut out = vec![
        case("masked", MASKED, [3, 1, 1], vec![numbers(F32, 256), zeros(F32, 300), int(77), int(5)]),
        case("lanes", LANES, [1, 1, 1], vec![below(I32, 70, 60), numbers(F32, 100), zeros(F32, 70), zeros(I1, 70)]),
        case("mixed", MIXED, [1, 1, 1], vec![numbers(I8, 64), numbers(I64, 64), numbers(F16, 64), zeros(F64, 64)]),
        case("bits", BITS, [1, 1, 1], vec![Arg::Buffer(F32, nans()), zeros(I32, 96)]),
        case("atomic", ATOMIC, [2, 1, 1], vec![below(I32, 48, 16), zeros(I32, 48), zeros(F32, 16), zeros(F16, 16)]),
    ];
    for (ty, op, id, d) in [
        ("f32", "add", "-0.0", F32),
        ("f32", "max", "-inf", F32),
        ("f32", "min.nan", "inf", F32),
        ("f64", "mul", "1.0", F64),
        ("f16", "add", "0.0", F16),
        ("i32", "add", "0", I32),
        ("i64", "max", "-9223372036854775808", I64),
        ("i8", "xor", "0", I8),
        ("i1", "or", "false", I1),
    ] {
        for n in [0, 5, 64, 199] {
            let text = REDUCE.replace("TY", ty).replace("ID", id).replace("OP", op);
            let x = if d == I1 { below(I1, 256, 2) } else { numbers(d, 256) };
            out.push(case("reduce", text, [3, 1, 1], vec![x, zeros(d, 3), int(n)]));
        }
    }
    for n in [1024, 1000, 17] {
        out.push(case("softmax", golden("softmax"), [2, 1, 1], vec![numbers(F32, 2048), zeros(F32, 2048), int(n)]));
    }
    for n in [2048, 2000] {
        let buffers = [numbers(F32, n), numbers(F32, n), zeros(F32, n)];
        out.push(case("add", golden("vector_add"), [2, 1, 1], [&buffers[..], &[int(n as i64)]].concat()));
    }
    out.push(case("sums", golden("column_sums"), [1, 1, 1], vec![numbers(F32, 64 * 256), zeros(F32, 256)]));
    let (m, n, k) = (150, 140, 70);
    let gemm = [numbers(F16, m * k), numbers(F16, k * n), zeros(F32, m * n)];
    let sizes = [int(m as i64), int(n as i64), int(k as i64)];
    out.push(case("gemm", golden("gemm"), [2, 2, 1], [&gemm[..], &sizes].concat()));
    let (m, n) = (100, 90);
    let sizes = [int(m as i64), int(n as i64)];
    out.push(case(
        "transpose",
        golden("transpose"),
        [2, 2, 1],
        [&[numbers(F32, m * n), zeros(F32, m * n)][..], &sizes].concat(),
    ));
    out
}

const WIDE: &[&str] = &["-mavx2", "-mfma"];

#[test]
fn loops_agree_with_the_evaluator() {
    compare(&cases(), "loops", WIDE, false);
}

/// Integer operations in loops that the C compiler makes vectors of by patterns of its own.
#[test]
fn integers_agree_where_the_compiler_vectorizes() {
    use DType::*;
    let ops = ["mulhi", "mul", "div", "div.u", "rem", "rem.u", "min", "max.u", "shr", "shr.u", "shl"];
    let mut all = vec![];
    for (ty, d) in [("i8", I8), ("i16", I16), ("i32", I32), ("i64", I64)] {
        for op in ops {
            let text = format!(
                "tile kernel k(x: ptr {ty}, y: ptr {ty}, z: ptr {ty}):
  local xs: {ty}[4, 2, 2]
  local ys: {ty}[4, 2, 2]
  local zs: {ty}[4, 2, 2]
  for i in 0..4: free unroll
    for j in 0..2: free unroll
      for k in 0..2: free unroll
        a: {ty} = load x[i*4 + j*2 + k]
        xs[i, j, k] = a
  for j in 0..2: free
    for k in 0..2: free
      for i in 0..4: free
        b: {ty} = load y[i*4 + j*2 + k]
        ys[i, j, k] = b
  for i in 0..4: free
    for j in 0..2: free unroll
      for k in 0..2: free unroll
        c: {ty} = xs[i, j, k]
        d: {ty} = ys[i, j, k]
        e: {ty} = c ^ d
        f: {ty} = {op}(e, d)
        zs[i, j, k] = f
  for i in 0..16: free vector(4)
    g: {ty} = zs[i//4, i//2%2, i%2]
    store z[i] = g
"
            );
            let few = if op.starts_with("sh") { below(d, 16, 8) } else { numbers(d, 24) };
            all.push(case("integers", text, [1, 1, 1], vec![numbers(d, 16), few, zeros(d, 16)]));
        }
    }
    compare(&all, "integers", WIDE, false);
}

#[test]
fn checked_loops_agree_with_the_evaluator() {
    compare(&cases(), "checked", WIDE, true);
}

#[test]
fn a_violated_check_and_a_failed_assertion_trap() {
    let text = "\
tile kernel k(X: ptr f32, n: i32):
  for i in 0..n: free vector(16)
    store X[i + bx*8] = 1.0
  ok: i1 = test bx < 3
  assert ok, \"too far\"
";
    let (kernel, _) = parse::parse(text).expect("the kernel");
    let k = legalise(&kernel, &Options { check: true, ..Options::default() }).expect("lowers");
    let source = girih_compiler::emit::c::emit(&[&k], &Target::cpu()).unwrap().text;
    let Some(unit) = calling::build("traps", &source, WIDE) else { return };
    let mut x = vec![0f32; 64];
    let at = x.as_mut_ptr() as u64;
    let extents = [at as i64, at as i64 + 40 * 4, 0, 0];
    // The whole vector at 16 ends at 32; the one left over at 40 does not fit.
    let outcome = unit.run(0, &[at, 33], [2, 1, 1], &extents);
    let first = outcome.traps.first().copied().unwrap_or_default();
    assert_eq!((outcome.code, outcome.traps.len(), first[1], first[2], first[4]), (1, 1, 3, 1, at as i64 + 160));
    assert_eq!(x[39..42], [1.0, 0.0, 0.0]);
    let outcome = unit.run(0, &[at, 1], [4, 1, 1], &extents);
    assert_eq!((outcome.code, outcome.traps.len(), outcome.traps[0][1], outcome.traps[0][2]), (1, 1, 0, 3));
}
