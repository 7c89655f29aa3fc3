//! `print` and `parse` are inverse on every construct, and `parse` answers any text.

use super::ir::*;
use super::names::RESERVED;
use super::parse::{parse, parse_all};
use super::print::{Dialect, print};
use super::statements::{ROWS, Row};
use crate::num::spell::sample_ops;
use crate::num::{DType, ScalarOp};

const GEMM: &str = r#"loop kernel gemm(A: ptr f16 div 16, B: ptr f16, C: ptr f32, M: i32, N: i32, K: i32):
  require -2147483648 <= (bx*128 + i)*K + k*64 <= 2147483647 for k in 0..(K + 63)//64, i in 0..128
  local acc: f32[128, 128]
  for i0 in 0..128: free
    for j0 in 0..128: free
      acc[i0, j0] = 0.0
  for k in 0..(K + 63)//64: serial
    for i in 0..128: free
      for j in 0..128: free
        for kk in 0..64: reduce contraction m=i n=j k=kk a=a0 b=b0 acc=acc
          a0: f16 = load A[(bx*128 + i)*K + (k*64 + kk)] where bx*128 + i < M and k*64 + kk < K else 0.0 !load_view_tko
          b0: f16 = load B[(k*64 + kk)*N + (by*128 + j)] where k*64 + kk < K and by*128 + j < N else 0.0 !load_view_tko
          c0: f32 = acc[i, j]
          a1: f32 = f32(a0)
          b1: f32 = f32(b0)
          c1: f32 = fma(a1, b1, c0)
          acc[i, j] = c1
  for i1 in 0..128: free
    for j1 in 0..128: free
      c: f32 = acc[i1, j1]
      store C[(bx*128 + i1)*N + (by*128 + j1)] = c where bx*128 + i1 < M and by*128 + j1 < N !store_view_tko
"#;

const KITCHEN: &str = r#"tile kernel "all of it"(p: ptr f32, n: i32 div 8, for_1 "for": i64, q: ptr i4) open:
  global @lut: f32[3] align 64 constant = [1.0, -2.5, inf]
  global @g1 "a b": i8[2] align 1 = [-1, 3]
  require 0 <= n*bx <= 1000
  local s: f32
  local pp: ptr f32[2, 2]
  s = 0.0
  g: ptr f32 = global @lut
  m: ptr i8 = alloca 64 align 16 !alloca
  sum: i32 = n + 1
  diff: i32 = -3 - n
  big: i64 = i64(n)
  ubig: i64 = ext.u.i64(n)
  small: i8 = i8(n)
  fl: f32 = f32(n)
  fx: f32 = itof.u.f32(n)
  hx: f16 = ftof.rz.f16(fl)
  back: i32 = i32(fl)
  bits: i32 = bitcast.i32(fl)
  c: i1 = fl < 1.0
  cu: i1 = cmpf.lt.un(fl, 2.0)
  ci: i1 = 3:i32 == n
  cc: i1 = cmpi.ge.u(n, 7)
  both: i1 = c & cu
  pick: f32 = select(c, fl, 0x7fc00001)
  r: f32 = fma.rz.ftz(fl, fl, nan)
  mx: f32 = max.nan(fl, -inf)
  mn: i32 = min.u(n, 5)
  p2: ptr f32 = p + n
  p3: ptr f32 = p + 4:i32
  pw: f32 = powi(fl, 3)
  k0: f32 = 1.5
  k1: i1 = true
  cp: f32 = copy(fl)
  e: i32 = index (n + bx)*4 - zext(n)//(gx - 1)%7
  e2: i64 = index min(n, max(by, -5)) - (bz - gy) - gz
  t: i1 = test n < 5 and e2 >= 0 and c
"#;

fn fixpoint(text: &str) {
    let (kernel, dialect) = parse(text).unwrap_or_else(|e| panic!("{}: {:?}\n{text}", e.message, e.span));
    assert_eq!(print(&kernel, dialect), text);
    let (again, _) = parse(&print(&kernel, dialect)).unwrap();
    assert_eq!(again, kernel);
}

#[test]
fn a_matrix_product_reads_back() {
    fixpoint(GEMM);
    let (kernel, dialect) = parse(GEMM).unwrap();
    assert_eq!(dialect, Dialect::Loop);
    assert_eq!(kernel.params[0].div_by, 16);
    assert_eq!(kernel.obligations[0].axes.len(), 2);
    assert_eq!(kernel.bufs.len(), 1);
}

#[test]
fn scalars_read_back() {
    fixpoint(KITCHEN);
}

#[test]
fn control_flow_memory_and_placement_read_back() {
    fixpoint(
        r#"tile kernel k(p: ptr f32, l: ptr i32, b: ptr f4E2M1FN):
  local acc: f32[8, 32]
  local s: f32
  local u: i32
  stage b_pack: f32[4, 64, 32]:
    for i in 0..256: free
      for j in 0..32: free vector(16)
        v: f32 = load p[i*32 + j]
        b_pack[i//64, i%64, j] = v
  stage rows: f32[8]:
    pass
  for i1 in 0..128 step 8: serial
    local acc_r: f32[8, 32] register(16)
    for k in 0..64: reduce
      for i2 in 0..8: free unroll
        x: f32 = load p[i1 + i2]
        for j2 in 0..32: free vector(16)
          y: f32 = b_pack[0, k, j2]
          z: f32 = acc_r[i2, j2]
          f: f32 = fma(x, y, z)
          acc_r[i2, j2] = f
  for r in 0..100: reduce vector(8) combine add(s) from -0.0 x 4
    x_1: f32 = rows[r%8]
    y_1: f32 = s
    z_1: f32 = y_1 + x_1
    s = z_1
  for r2 in 0..4: reduce unroll combine max.u(u) from 0
    pass
  loop:
    old: i32 = cas l[0], 0, 1 acq_rel !atomic_cas_tko
    free: i1 = old == 0
    if free:
      break
    else:
      continue
  o: i32 = atomic umax l[1], 7 where bx < 3 relaxed !atomic_rmw_tko
  o2: f32 = atomic addf p[2], 1.0 release
  w: i32 = load p as i32[3] where free and free else 4 acquire !"odd name"
  store l[0] = 0 release
  print "x = %d \"q\"\n\u{1}", o, 3:i32, true, acc, 1.0:f32 !print_tko
  assert free, "must be free" !assert
  if false:
    return
"#,
    );
}

#[test]
fn every_operation_reads_back() {
    for op in sample_ops() {
        for ty in [DType::F32, DType::I32, DType::I1] {
            let mut k = Kernel { name: "k".into(), ..Kernel::default() };
            let val = k.vals.push(Val { ty: Ty::Num(DType::I16), name: "x".into() });
            k.params.push(Param { name: "x".into(), ty: Ty::Num(DType::I16), val, div_by: 1, range: None });
            let dst = k.vals.push(Val { ty: Ty::Num(ty), name: "y".into() });
            let constant = Opnd::Const { dtype: DType::F64, bits: 0x3ff8_0000_0000_0000 };
            let args = [Opnd::Val(val), constant, Opnd::Const { dtype: ty, bits: 1 }];
            let n = op.arity();
            for args in [args, [args[2], args[0], args[1]]] {
                k.body = vec![Stmt::Let { dst, op, args: args[..n].to_vec() }];
                let text = print(&k, Dialect::Loop);
                let (back, _) = parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
                assert_eq!(back, k, "{text}");
            }
        }
    }
}

#[test]
fn hints_become_unique_names() {
    let mut k = Kernel { name: "k".into(), ..Kernel::default() };
    for hint in ["x", "x", "3", "for", "", "a b", "f32", "x_1", "exp"] {
        let dst = k.vals.push(Val { ty: Ty::Num(DType::I32), name: hint.into() });
        let args = vec![Opnd::Const { dtype: DType::I32, bits: 1 }];
        k.body.push(Stmt::Let { dst, op: ScalarOp::Copy, args });
    }
    let text = print(&k, Dialect::Loop);
    for name in ["x", "x_1", "v3", "for_1", "v", "a_b", "f32_1", "x_1_1", "exp"] {
        assert!(text.contains(&format!("  {name}: i32 = 1\n")), "{name}\n{text}");
    }
    fixpoint(&text);
}

#[test]
fn malformed_text_is_refused_with_its_place() {
    let cases = [
        ("loop kernel k():\n  x: i32 = y + 1\n", "y + 1", "`y` is not defined"),
        ("loop kernel k():\n  break 3\n", "3\n", "end of the line"),
        ("loop kernel k():\n  loop:\n  break\n", "break", "indented body"),
        ("loop kernel k(n: i32):\n  x: i32 = n[0]\n", "[0]", "operator"),
        ("loop kernel k():\n  print \"a\", 3\n", "3\n", "needs its type"),
        ("loop kernel k():\n  x: i8 = 300\n", "300", "expected a constant"),
        ("loop kernel k():\n  x: f32 = fma(1.0, 2.0)\n", "fma", "3 operands"),
        ("loop kernel k():\n  x: i32 = 1\n  x: i32 = 2\n", "x: i32 = 2", "twice"),
        ("kernel k():\n", "kernel", "`loop kernel`"),
        ("loop kernel k():\n    break\n  break\n", "  break\n", "indentation"),
        ("loop kernel k():\n  else:\n    break\n", "else", "expected a statement"),
        ("loop kernel k():\n  q = 1\n", "q", "`q` is not defined"),
        ("loop kernel k(p: ptr f32):\n  x: f32 = load(p[0])\n", "(p[0])", "expected a value"),
        ("loop kernel k(p: ptr f32):\n  x: f32 = load p[0] if\n", "if", "end of the line"),
        ("loop kernel k():\n  for i in 0..4: quick\n    pass\n", "quick", "`free`, `reduce` or `serial`"),
        ("tile kernel k():\n  for i in 0..4: free vector(x)\n    pass\n", "x)", "a whole number"),
        ("loop kernel k():\n  for i in 0..4: serial stream score=s\n    pass\n", "\n    pass", "`value`"),
        (
            "loop kernel k():\n  local c: f32\n  for i in 0..4: reduce contraction m=i n=i k=i a=x b=y acc=c\n    pass\n",
            "x b=y",
            "`x` is not defined",
        ),
    ];
    for (text, at, message) in cases {
        let e = parse(text).unwrap_err();
        assert!(e.message.contains(message), "{text}: {}", e.message);
        let start = text.rfind(at).unwrap() as u32;
        assert_eq!(e.span.map(|s| s.start), Some(start), "{text}: {}", e.message);
    }
}

/// No name begins a statement as a word of the table does.
#[test]
fn words_of_statements_are_reserved() {
    let words = |row: &Row| row.head.first().or(row.next.get(1)).copied();
    for word in ROWS.iter().filter_map(words) {
        assert!(RESERVED.contains(&word), "{word}");
    }
}

#[test]
fn nesting_is_bounded() {
    let open = "(".repeat(100_000);
    assert!(parse(&format!("loop kernel k():\n  x: i32 = index {open}\n")).is_err());
    let chain = "1 + ".repeat(100_000);
    assert!(parse(&format!("loop kernel k():\n  x: i32 = index {chain}1\n")).is_err());
    let mut deep = String::from("loop kernel k():\n");
    for i in 1..2000 {
        deep += &format!("{}loop:\n", "  ".repeat(i));
    }
    assert!(parse(&deep).is_err());
}

#[test]
fn mutilated_text_never_panics() {
    let base = format!("{GEMM}{}", KITCHEN);
    assert_eq!(parse_all(&base).unwrap().len(), 2);
    for cut in 0..base.len() {
        let _ = parse_all(&base[..cut]);
    }
    let mut seed = 1u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % n
    };
    for _ in 0..3000 {
        let mut bytes = base.clone().into_bytes();
        for _ in 0..1 + next(4) {
            let at = next(bytes.len());
            match next(3) {
                0 => bytes[at] = b" :()[]=,.\"!@#x0-\n"[next(17)],
                1 => drop(bytes.remove(at)),
                _ => {
                    let from = next(bytes.len());
                    let piece = bytes[from..(from + 12).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        if let Ok(kernels) = parse_all(&String::from_utf8(bytes).unwrap()) {
            for (kernel, dialect) in kernels {
                fixpoint(&print(&kernel, dialect));
            }
        }
    }
}
