//! Every rule leaves the value of the program: the evaluator runs each kernel before and after each rule. Inputs are
//! small multiples of a quarter, so that every order of summation is exact and results compare bit for bit.

use girih_compiler::base::host::Silent;
use girih_compiler::kernel;
use girih_compiler::kernel::ir::Stmt;
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::kernel::sim;
use girih_compiler::loops::print::Dialect;
use girih_compiler::loops::verify::verify;
use girih_compiler::pipeline;
use girih_compiler::tile::target::{MatrixUnit, MemoryKind, Target};
use girih_compiler::tile::tests::{
    ATTENTION, COLUMN_SUMS, Case, GEMM, GEMM_TRANSPOSED, SOFTMAX, TRANSPOSE, VECTOR_ADD, apply, case, contents,
    context, evaluate, kernel as parsed, place, schedule, text, with_knobs,
};
use girih_compiler::tile::{Context, rules};

fn check(case: &Case, ctx: &Context) {
    let mut k = parsed(&case.loops);
    let want = evaluate(&k, case);
    for rule in rules(&ctx.target).list {
        let before = k;
        (k, _) = apply(rule.name, &before, ctx);
        if k != before {
            let same = evaluate(&k, case) == want;
            assert!(same, "{} changes the value:\n{}\n-->\n{}", rule.name, text(&before), text(&k));
            let wrong: Vec<String> = verify(&k, Dialect::Tile).into_iter().map(|d| d.message).collect();
            assert!(wrong.is_empty(), "after {}: {wrong:?}\n{}", rule.name, text(&k));
        }
    }
    let shared = ctx.target.bytes_of(MemoryKind::Shared);
    let lowered =
        legalise(&k, &Options { shared, ..Options::default() }).unwrap_or_else(|e| panic!("{e}\n{}", text(&k)));
    assert_eq!(kernel::verify::verify(&lowered), Vec::<String>::new(), "{}", kernel::print::print(&lowered));
    if lowered.threads <= 1 {
        let (mut memory, launch, buffers) = place(&k, case);
        let ran = kernel::eval::run(&lowered, &k, &launch, &mut memory, &mut Silent);
        ran.unwrap_or_else(|trap| panic!("{}\n{}", trap.message, kernel::print::print(&lowered)));
        assert!(contents(&memory, &buffers) == want, "other values\n{}", kernel::print::print(&lowered));
    }
    if lowered.threads > 1 {
        for seed in [0, 1 + case.args.iter().sum::<u64>() % 7] {
            let (mut memory, launch, buffers) = place(&k, case);
            let options = sim::Options::of_seed(seed);
            let ran = sim::run(&lowered, &k, &launch, &mut memory, &mut Silent, &options).and_then(|r| r.clean());
            let printed = || kernel::print::print(&lowered);
            ran.unwrap_or_else(|trap| panic!("seed {seed}: {}\n{}", trap.message, printed()));
            assert!(contents(&memory, &buffers) == want, "seed {seed}: other values\n{}", printed());
        }
    }
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

/// Elements of two to four kinds in turn, in rows and in one line.
#[test]
fn elements_in_turn() {
    let of = |c: &str, kinds: u64, ty: &str| {
        let loads: String = (0..kinds)
            .map(|k| format!("    v{k}: {ty} = load x[{c}//{kinds} + {k}] where {c}%{kinds} == {k} else 0\n"))
            .collect();
        let sums: String = (1..kinds)
            .map(|k| format!("    s{k}: {ty} = {}{} + v{k}\n", if k == 1 { "v" } else { "s" }, k - 1))
            .collect();
        format!("{loads}{sums}    store z[{c}] = s{}\n", kinds - 1)
    };
    for (kinds, ty) in [(2, "i32"), (3, "i16"), (4, "i8"), (2, "i64"), (5, "i32")] {
        for n in [3, 8, 67, 512] {
            let line = format!("loop kernel k(x: ptr {ty}, z: ptr {ty}) open:\n  for c in 0..{}: free\n", n * kinds);
            let sizes = [n + kinds, n * kinds];
            check_all(&[case(&(line.clone() + &of("c", kinds, ty)), [1, 1, 1], &sizes)]);
            let rows = of("(r*K + c)", kinds, ty).replace('K', &kinds.to_string()).replace("    ", "      ");
            let rows = format!("  for r in 0..{n}: free\n    for c in 0..{kinds}: free\n{rows}");
            let header = line.lines().next().unwrap_or_default();
            let rows = format!("{header}\n{rows}");
            check_all(&[case(&rows, [1, 1, 1], &sizes)]);
            // Vectors of each kind are interleaved, up to four kinds.
            for loops in [line.clone() + &of("c", kinds, ty), rows].into_iter().filter(|_| n == 512) {
                let placed = schedule(&parsed(&loops), &context());
                let lowered = legalise(&placed, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
                let made = kernel::print::print(&lowered);
                assert_eq!(made.contains("= interleave 0 of"), kinds <= 4, "{made}");
            }
        }
    }
}

/// Products on a processor that multiplies whole tiles: of these, and of what fills none.
#[test]
fn products_in_tiles() {
    use MatrixUnit::*;
    let mut ctx = context();
    ctx.target.matrix_units = vec![FloatPairs, IntegerPairs, ByteQuads, FloatTiles, IntegerTiles];
    for (ty, acc, zero, x, y, step) in [
        ("bf16", "f32", "0.0", "f32(a)", "f32(b)", "d: f32 = fma(x, y, c)"),
        ("i8", "i32", "0", "ext.u.i32(a)", "ext.i32(b)", "p: i32 = x * y\n        d: i32 = p + c"),
    ] {
        for (m, n, k, tiles) in [
            (16, 16, 64, true),
            (32, 32, 128, true),
            (48, 80, 64, true),
            (39, 64, 72, true),
            (18, 24, 200, true),
            (15, 32, 64, false),
            (32, 32, 24, false),
        ] {
            for b in [format!("k*{n} + j"), format!("j*{k} + k")] {
                let loops = format!(
                    r#"loop kernel k(A: ptr {ty}, B: ptr {ty}, C: ptr {acc}) open:
  for i in 0..{m}: free
    for j in 0..{n}: free
      local acc: {acc}
      acc = {zero}
      for k in 0..{k}: reduce contraction m=i n=j k=k a=a b=b acc=acc
        a: {ty} = load A[i*{k} + k]
        b: {ty} = load B[{b}]
        x: {acc} = {x}
        y: {acc} = {y}
        c: {acc} = acc
        {step}
        acc = d
      s: {acc} = acc
      store C[i*{n} + j] = s
"#
                );
                let placed = schedule(&parsed(&loops), &ctx);
                let made = legalise(&placed, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
                let made = kernel::print::print(&made);
                assert_eq!(made.contains("tile 0 add"), tiles, "{m} {n} {k} {b}\n{}\n{made}", text(&placed));
                check(&case(&loops, [1, 1, 1], &[m * k, k * n, m * n]), &ctx);
            }
        }
    }
}

/// Products whose operands are of two bytes or one, on a machine that adds the products of pairs.
#[test]
fn terms_in_pairs() {
    let mut ctx = context();
    ctx.target.matrix_units = vec![MatrixUnit::FloatPairs, MatrixUnit::IntegerPairs, MatrixUnit::ByteQuads];
    let mut narrow = ctx.clone();
    narrow.target = narrow.target.with_vectors(32, 16).with_caches([1 << 10, 8 << 10, 32 << 20]);
    let product = |ty: &str, b: &str, convert: &str| {
        let (acc, add) = match ty {
            "bf16" => ("f32", "d: f32 = fma(x, y, c)"),
            _ => ("i32", "p: i32 = x * y\n        d: i32 = p + c"),
        };
        format!(
            r#"loop kernel k(A: ptr {ty}, B: ptr {ty}, C: ptr {acc}) open:
  for i in 0..24: free
    for j in 0..40: free
      local acc: {acc}
      acc = 0{zero}
      for k in 0..58: reduce contraction m=i n=j k=k a=a b=b acc=acc
        a: {ty} = load A[i*58 + k]
        b: {ty} = load B[{b}]
        x: {acc} = {convert}(a)
        y: {acc} = {convert}(b)
        c: {acc} = acc
        {add}
        acc = d
      s: {acc} = acc
      store C[i*40 + j] = s
"#,
            zero = if acc == "f32" { ".0" } else { "" }
        )
    };
    for (ty, convert) in [("bf16", "f32"), ("i8", "ext.i32"), ("i8", "ext.u.i32"), ("i16", "ext.i32")] {
        for b in ["k*40 + j", "j*58 + k", "j*59 + k"] {
            let loops = product(ty, b, convert);
            let (paired, log) = apply("pair_terms", &parsed(&loops), &ctx);
            assert_eq!(log.applied, ["contraction into acc"], "{:?}", log.skipped);
            // Elements side by side, the first at an even place, are one load; i8 is not extended yet.
            let joined = text(&paired).matches("_pairs[").count();
            assert_eq!(joined, if ty == "i8" { 0 } else { 1 + usize::from(b == "j*58 + k") }, "{}", text(&paired));
            let case = case(&loops, [1, 1, 1], &[24 * 58, 59 * 40, 24 * 40]);
            check(&case, &ctx);
            check(&case, &narrow);
        }
    }
    // Unsigned by signed bytes, four at a time where four divide the sum; extended at once, or over 16 bits, and of what was signed
    // before its highest bit was turned around.
    for (a, b, terms, word) in [
        ("ext.u.i32(a)", "ext.i32(b)", 60, 4),
        ("ext.u.i32(a)", "ext.i32(b)", 58, 2),
        ("ext.i32(a)", "ext.i32(b)", 60, 2),
        ("ext.i32(a)", "ext.u.i32(b)", 60, 4),
        ("ext.u.i32(a ^ -128)", "ext.i32(b)", 60, 4),
        ("ext.i32(ext.u.i16(a))", "ext.i32(ext.i16(b))", 60, 4),
    ] {
        for at in ["k*40 + j", &format!("j*{terms} + k"), "j*61 + k"] {
            let wide = |name: &str, how: &str| match how.split_once("(ext.") {
                Some((outer, inner)) => {
                    let inner = inner.trim_end_matches(')');
                    format!("{name}h: i16 = ext.{inner})\n        {name}: i32 = {outer}({name}h)")
                }
                None => format!("{name}: i32 = {how}"),
            };
            let loops = product("i8", at, "ext.i32")
                .replace("x: i32 = ext.i32(a)", &wide("x", a))
                .replace("y: i32 = ext.i32(b)", &wide("y", b))
                .replace("58", &terms.to_string())
                .replace("x: i32 = ext.u.i32(a ^ -128)", "f: i8 = a ^ -128\n        x: i32 = ext.u.i32(f)");
            let (paired, log) = apply("pair_terms", &parsed(&loops), &ctx);
            assert_eq!(log.applied, ["contraction into acc"], "{:?}", log.skipped);
            let made = text(&paired);
            assert!(made.contains(&format!("dot{word}(")), "{a} {b} {terms}\n{made}");
            let joined = made.matches("_pairs[").count();
            let along = usize::from(at == format!("j*{terms} + k"));
            assert_eq!(joined, if word == 4 { 1 + along } else { 0 }, "{made}");
            let case = case(&loops, [1, 1, 1], &[24 * terms, 61 * 40 + terms, 24 * 40]);
            check(&case, &ctx);
            check(&case, &narrow);
        }
    }
    let row = r#"loop kernel k(A: ptr bf16, B: ptr bf16, C: ptr f32) open:
  for j in 0..40: free
    local s: f32
    s = 0.0
    for k in 0..200: reduce combine add(s) from 0.0
      a: bf16 = load A[k]
      b: bf16 = load B[j*200 + k]
      x: f32 = f32(a)
      y: f32 = f32(b)
      c: f32 = s
      d: f32 = fma(x, y, c)
      s = d
    t: f32 = s
    store C[j] = t
"#;
    let (paired, _) = apply("pair_terms", &parsed(row), &ctx);
    assert!(text(&paired).contains("for k2 in 0..100: reduce combine add(s)"), "{}", text(&paired));
    check(&case(row, [1, 1, 1], &[200, 8000, 40]), &ctx);
    for (from, to) in [("0..200", "0..199"), ("B[j*200 + k]", "B[k*40 + j]"), ("(x, y, c)", "(x, y, x)")] {
        let (same, _) = apply("pair_terms", &parsed(&row.replace(from, to)), &ctx);
        assert!(!text(&same).contains("dot2"), "{from} -> {to}");
    }
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
    let local = "  local acc: f32[32, 32]\n";
    assert!(small.contains(local));
    let start = "  for i0 in 0..32: free\n    for j0 in 0..32: free\n      acc[i0, j0] = 0.0\n";
    let small = small.replace(local, &format!("{local}{start}"));
    for (m, n, k) in [(64, 64, 32), (40, 51, 23)] {
        check_all(&[case(&small, [2, 1, 1], &[m * k, k * n, 64 * 32, m, n, k])]);
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
fn rows_of_products_and_what_they_fold() {
    let f32s =
        |k: &str| k.replace("w: f16 = f16(x8)", "w: f32 = copy(x8)").replace("f16", "f32").replace("f32(", "copy(");
    check_all(&[case(ATTENTION, [1, 1, 1], &[512, 768, 768, 512, 96])]);
    check_all(&[case(&f32s(ATTENTION), [1, 1, 1], &[512, 768, 768, 512, 96])]);
    // Rounded to tf32 by the program: on the matrix unit without a knob.
    let mut rounded = ATTENTION.replace("          w: f16 = f16(x8)\n", "").replace("x8", "w").replace("f16", "f32");
    for v in ["q", "k", "w", "v"] {
        rounded = rounded.replace(
            &format!("{v}1: f32 = f32({v})"),
            &format!("{v}2: tf32 = tf32({v})\n          {v}1: f32 = f32({v}2)"),
        );
    }
    check_all(&[case(&rounded, [1, 1, 1], &[512, 768, 768, 512, 96])]);
    let made = text(&schedule(&parsed(&rounded), &Context { target: Target::named("sm_80").unwrap(), ..context() }));
    assert!(made.contains("reduce matrix") && made.contains("reduce lanes"), "{made}");
    for (target, knobs) in [("sm_80", &[][..]), ("sm_90a", &["slots=1"]), ("sm_120", &["slots=3"])] {
        let ctx = Context { target: Target::named(target).unwrap(), ..with_knobs(knobs) };
        check(&case(ATTENTION, [1, 1, 1], &[512, 768, 768, 512, 96]), &ctx);
        let made = text(&schedule(&parsed(ATTENTION), &ctx));
        assert!(made.contains("reduce lanes combine max(") && !made.contains("s: f32[32, 16] shared"), "{made}");
    }
}

/// Rows of models, which are read again after they were folded.
#[test]
fn rows_that_are_kept() {
    for (at, n) in [1, 31, 33, 64, 100, 256, 1000, 1024, 2052, 4097, 9001].into_iter().enumerate() {
        let rows = format!(
            "loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:
  for i in 0..3: free
    local m: f32
    local s: f32
    m = -inf
    for j in 0..{n}: reduce combine max.nan(m) from -inf
      x1: f32 = load x[i*{n} + j]
      m0: f32 = m
      m1: f32 = max.nan(x1, m0)
      m = m1
    top: f32 = m
    s = 0.0
    for k in 0..{n}: reduce combine add(s) from 0.0
      x2: f32 = load x[i*{n} + k]
      d: f32 = x2 - top
      s0: f32 = s
      s1: f32 = d + s0
      s = s1
    sum: f32 = s
    for l in 0..{n}: free
      x3: f32 = load x[i*{n} + l]
      w1: f32 = load w[l]
      e: f32 = x3 - top
      f: f32 = e * w1
      g: f32 = f + sum
      store y[i*{n} + l] = g
"
        );
        for threads in ["threads=256", "threads=64"] {
            let target = Target::named(Target::NAMES[1 + at % 4]).unwrap();
            check(&case(&rows, [1, 1, 1], &[3 * n, n, 3 * n]), &Context { target, ..with_knobs(&[threads]) });
        }
    }
}

/// Scans of models and of tiles, forwards and back, of one row and of several, up to an element and up to the one before it.
#[test]
fn scans() {
    let model = |rows: u32, n: u32, op: &str, stored: &str| {
        format!(
            "loop kernel k(x: ptr f32, y: ptr f32, z: ptr f32) open:\n  for i in 0..{rows}: free\n    local acc: f32\n    acc = 0.5\n    for k \
             in 0..{n}: serial\n      v: f32 = load x[i*{n} + k]\n      a: f32 = acc\n      b: f32 = {op}\n      store y[i*{n} + {n} - 1 \
             - k] = {stored}\n      acc = b\n    c: f32 = acc\n    store z[i] = c\n"
        )
    };
    let tile = |rows: u32, n: u32, dtype: &str, op: &str, at: &str| {
        let zero = if dtype == "i32" { "0" } else { "0.0" };
        format!(
            "loop kernel k(x: ptr {dtype}, y: ptr {dtype}):\n  local t: {dtype}[{rows}, {n}]\n  for i in 0..{rows}: free\n    local s: \
             {dtype}\n    s = {zero}\n    for k in 0..{n}: serial\n      v: {dtype} = load x[bx*{n} + i*{n} + {at}]\n      a: {dtype} = s\n      \
             b: {dtype} = {op}\n      n: i32 = index k\n      z: i1 = n == 0\n      c: {dtype} = select(z, v, b)\n      s = c\n      \
             t[i, {at}] = c\n    for j in 0..{n}: free\n      w: {dtype} = t[i, j]\n      store y[bx*{rows}*{n} + i*{n} + j] = w\n"
        )
    };
    let mut cases = vec![];
    for (rows, n) in [(1, 64), (3, 100), (2, 2048), (1, 9001)] {
        let elements = u64::from(rows * n);
        for (op, stored) in [("v + a", "b"), ("max.nan(a, v)", "b"), ("v + a", "a")] {
            cases.push(case(&model(rows, n, op, stored), [1, 1, 1], &[elements, elements, rows.into()]));
        }
    }
    for (rows, n) in [(1, 64), (2, 512), (16, 128), (32, 64)] {
        let elements = u64::from(rows * n);
        for (dtype, op, at) in [
            ("i32", "a + v", "k".to_string()),
            ("f32", "v + a", format!("({n} - 1 - k)")),
            ("f32", "min(v, a)", "k".to_string()),
            ("i32", "xor(v, a)", format!("({n} - 1 - k)")),
        ] {
            cases.push(case(&tile(rows, n, dtype, op, &at), [2, 1, 1], &[elements + u64::from(n), 2 * elements]));
        }
    }
    check_all(&cases);
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

/// Lanes that load elements a few apart: a mask leaves a range of them on, in whole vectors and in a last part.
#[test]
fn masks_of_elements_apart() {
    for by in [2, 3, 4] {
        for mask in ["j*BY < n", "j*BY - 7 >= 0 and j*BY - 7 < n", "n - j*BY > 4", "j < n", "n >= j*BY - 9 and bx < 1"]
        {
            for trip in [32, 29] {
                let mask = mask.replace("BY", &by.to_string());
                let loops = format!(
                    "loop kernel k(a: ptr i32, c: ptr i32, n: i32):
  for j in 0..{trip}: free
    x: i32 = load a[bx*128 + j*{by}] where {mask} else 7
    y: i32 = load a[bx*128 + j*{by} + 1] where {mask} else 0
    z: i32 = x + y
    store c[bx*32 + j] = z
"
                );
                for n in [0, 9, 50, 200] {
                    check_all(&[case(&loops, [2, 1, 1], &[256, 64, n])]);
                }
            }
        }
    }
}

/// A product in small tiles, whose arrays and rows begin at multiples of 16 bytes.
fn small_gemm(tile: u32) -> String {
    let small = GEMM.replace("f16", "f32").replace("0x0", "0.0").replace("128", &tile.to_string());
    let small = small.replace("63", "7").replace("64", "8").replace("ptr f32", "ptr f32 div 16");
    small.replace("N: i32", "N: i32 div 4").replace("K: i32", "K: i32 div 4")
}

/// The same on the matrix unit.
fn small_products(tile: u32) -> String {
    let small = GEMM.replace("128", &tile.to_string()).replace("63", "31").replace("64", "32");
    let small = small.replace("ptr f16", "ptr f16 div 16").replace("C: ptr f32", "C: ptr f32 div 16");
    small.replace("N: i32", "N: i32 div 8").replace("K: i32", "K: i32 div 8")
}

/// Pipelines of every depth and length, with copies that are asynchronous and not, and with those of TMA.
#[test]
fn pipelines_of_every_depth_and_length() {
    for slots in 1..=6 {
        for length in 0..=8u64 {
            let products = (slots + length) % 3 == 0;
            let small = if products { small_products(16) } else { small_gemm(16) };
            let (m, n, k) = (16, 16, length * if products { 32 } else { 8 });
            for (target, tma) in [("sm_80", false), ("sm_90a", true)] {
                let knobs = [format!("slots={slots}"), format!("async_copy={}", (slots + length) % 2)];
                let knobs: Vec<&str> = knobs.iter().map(String::as_str).collect();
                let ctx = Context { target: Target::named(target).unwrap(), ..with_knobs(&knobs) };
                let case = case(&small, [1, 1, 1], &[m * k, k * n, m * n, m, n, k]);
                let placed =
                    rules(&ctx.target).list.iter().fold(parsed(&small), |k, rule| apply(rule.name, &k, &ctx).0);
                assert_eq!(text(&placed).contains(" tensor:"), tma, "{}", text(&placed));
                check(&case, &ctx);
            }
        }
    }
}

/// Two products of one tile: what the threads make of the tile in each iteration is staged there, and only the other operands are
/// fetched ahead, by TMA or not.
#[test]
fn pipelines_whose_iterations_stage_what_they_compute() {
    let product = |n: u32, from: &str| {
        format!(
            "    for i{n} in 0..16: free
      for j{n} in 0..16: free
        for q{n} in 0..8: reduce contraction m=i{n} n=j{n} k=q{n} a=a{n} b=b{n} acc=acc{n}
          h{n}: f16 = t[i{n}, q{n}]
          a{n}: f32 = f32(h{n})
          b{n}: f32 = load {from}[(k*8 + q{n})*N + (by*16 + j{n})] where k*8 + q{n} < K and by*16 + j{n} < N else 0.0
          c{n}: f32 = acc{n}[i{n}, j{n}]
          d{n}: f32 = fma(a{n}, b{n}, c{n})
          acc{n}[i{n}, j{n}] = d{n}
"
        )
    };
    let loops = format!(
        "loop kernel gated(A: ptr f16 div 16, B: ptr f32 div 16, G: ptr f32 div 16, C: ptr f32 div 16, M: i32, N: i32 div 4, \
         K: i32 div 8):
  local acc1: f32[16, 16]
  local acc2: f32[16, 16]
  for i in 0..16: free
    for j in 0..16: free
      acc1[i, j] = 0.0
      acc2[i, j] = 0.0
  for k in 0..(K + 7)//8: serial
    local t: f16[16, 8]
    for i0 in 0..16: free
      for q0 in 0..8: free
        x: f16 = load A[(bx*16 + i0)*K + (k*8 + q0)] where bx*16 + i0 < M and k*8 + q0 < K else 0x0
        t[i0, q0] = x
{}{}  for i3 in 0..16: free
    for j3 in 0..16: free
      r: f32 = acc1[i3, j3]
      s: f32 = acc2[i3, j3]
      v: f32 = r * s
      store C[(bx*16 + i3)*N + (by*16 + j3)] = v where bx*16 + i3 < M and by*16 + j3 < N
",
        product(1, "B"),
        product(2, "G"),
    );
    for slots in 1..=4 {
        for length in [0, 1, 3, 5] {
            let (m, n, k) = (20, 24, length * 8);
            for target in ["sm_80", "sm_90a"] {
                let ctx =
                    Context { target: Target::named(target).unwrap(), ..with_knobs(&[&format!("slots={slots}")]) };
                check(&case(&loops, [2, 2, 1], &[m * k, k * n, k * n, m * n, m, n, k]), &ctx);
                let placed = text(&schedule(&parsed(&loops), &ctx));
                let ahead = slots > 1 || target == "sm_90a";
                assert_eq!(placed.contains(&format!("pipeline({slots})")), ahead, "{placed}");
            }
        }
    }
}

/// Products of a model, of shapes and with knobs that are drawn.
#[test]
fn products_with_drawn_knobs() {
    let mut state = 7u64;
    let mut draw = |of: &[u64]| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        of[(state >> 33) as usize % of.len()]
    };
    for at in 0..60 {
        let sizes = [1, 3, 8, 16, 20, 33, 64, 70];
        let (m, n, k) = (draw(&sizes), draw(&sizes), draw(&[1, 4, 7, 16, 40, 64, 100]));
        let dtype = ["f32", "f16", "f64", "bf16", "f16"][at % 5];
        let (a, b) = match draw(&[0, 1, 2]) {
            0 => (format!("x[i*{k} + k]"), format!("w[j*{k} + k]")),
            1 => (format!("x[i*{k} + k]"), format!("w[k*{n} + j]")),
            _ => (format!("x[k*{m} + i]"), format!("w[k*{n} + j]")),
        };
        let wide = if dtype == "f64" { "f64" } else { "f32" };
        let convert = if dtype == wide { "copy" } else { wide };
        let loops = format!(
            "loop kernel k(x: ptr {dtype}, w: ptr {dtype}, b: ptr {wide}, out: ptr {wide}) open:
  for i in 0..{m}: free
    for j in 0..{n}: free
      local acc: {wide}
      acc = 0.0
      for k in 0..{k}: reduce contraction m=i n=j k=k a=a b=c acc=acc
        a: {dtype} = load {a}
        c: {dtype} = load {b}
        a1: {wide} = {convert}(a)
        c1: {wide} = {convert}(c)
        old: {wide} = acc
        new: {wide} = fma(a1, c1, old)
        acc = new
      sum: {wide} = acc
      bias: {wide} = load b[j]
      y: {wide} = sum + bias
      store out[i*{n} + j] = y
"
        );
        let mut ctx = Context { target: Target::named(Target::NAMES[1 + at % 4]).unwrap(), ..context() };
        let knobs = [
            ("threads", draw(&[32, 64, 256])),
            ("slots", draw(&[1, 2, 3, 5])),
            ("async_copy", draw(&[0, 1, 1])),
            ("pad_smem", draw(&[0, 1])),
            ("tma", draw(&[0, 1, 1])),
            ("swizzle", draw(&[0, 1])),
            ("register_tile", draw(&[0, 1, 1, 1])),
            ("tensor_core", draw(&[0, 1, 1, 1])),
            ("unroll", draw(&[0, 8, 64])),
        ];
        // Several blocks, in an order and a number of their own.
        let blocks = [
            ("mc", draw(&[8, 16, 32])),
            ("nc", draw(&[8, 16])),
            ("group", draw(&[0, 1, 2, 3])),
            ("persist", draw(&[0, 1, 1])),
            ("warp_specialize", draw(&[0, 1])),
        ];
        ctx.target = ctx.target.with_workers(draw(&[1, 2, 5]) as u32);
        for (name, value) in knobs.into_iter().chain(blocks.into_iter().filter(|_| at % 3 > 0)) {
            ctx.knobs.set(&format!("{name}={value}")).unwrap();
        }
        check(&case(&loops, [1, 1, 1], &[m * k, n * k, n, m * n]), &ctx);
    }
}

/// The statements of a kernel that order its threads or their copies, by what they are.
fn synchronisation(kernel: &mut kernel::ir::Kernel, delete: Option<usize>) -> Vec<&'static str> {
    fn walk(body: &mut Vec<Stmt>, delete: Option<usize>, out: &mut Vec<&'static str>) {
        body.retain_mut(|s| {
            let what = match s {
                Stmt::Barrier => "barrier",
                Stmt::BarrierFirst { .. } => "barrier first",
                Stmt::ClusterBarrier => "barrier cluster",
                Stmt::WaitGroups { .. } => "wait groups",
                Stmt::Commit => "commit",
                Stmt::InitBarrier { .. } => "init",
                Stmt::Fence { .. } => "fence",
                Stmt::Arrive { .. } => "arrive",
                Stmt::WaitPhase { .. } => "wait",
                Stmt::TmaLoad { .. } => "copy",
                Stmt::For { body, .. } | Stmt::Loop { body } => {
                    walk(body, delete, out);
                    return true;
                }
                Stmt::If { then, els, .. } => {
                    walk(then, delete, out);
                    walk(els, delete, out);
                    return true;
                }
                _ => return true,
            };
            out.push(what);
            delete != Some(out.len() - 1)
        });
    }
    let mut out = vec![];
    walk(&mut kernel.body, delete, &mut out);
    out
}

/// Each barrier, wait, commit, fence and arrival that is derived for a pipelined product is needed: without any one of them the simulator
/// finds something wrong, or the values are others.
#[test]
fn every_derived_barrier_and_wait_is_needed() {
    let (m, n, of_sum) = (32, 32, [40, 160]);
    let sizes = [small_gemm(32), small_products(32)];
    let cases = [0, 1].map(|p| {
        let k = of_sum[p];
        case(&sizes[p], [1, 1, 1], &[m * k, k * n, m * n, m, n, k])
    });
    let mut deleted = 0;
    let old = [("sm_80", 1, 0), ("sm_80", 2, 0), ("sm_80", 2, 1), ("sm_80", 3, 1), ("sm_80", 4, 1)];
    let tma = [1, 2, 3, 4].map(|slots| ("sm_90a", slots, 1));
    let all = old.into_iter().chain(tma).flat_map(|how| cases.iter().map(move |case| (how, case)));
    for ((target, slots, asynchronous), case) in all {
        let knobs = [format!("slots={slots}"), format!("async_copy={asynchronous}")];
        let knobs = [&knobs[..], &["threads=64".to_string(), "split_edges=0".to_string()]].concat();
        let knobs: Vec<&str> = knobs.iter().map(String::as_str).collect();
        let ctx = Context { target: Target::named(target).unwrap(), ..with_knobs(&knobs) };
        let tile = rules(&ctx.target).list.iter().fold(parsed(&case.loops), |k, rule| apply(rule.name, &k, &ctx).0);
        let want = evaluate(&parsed(&case.loops), case);
        let whole = legalise(&tile, &Options { shared: 1 << 17, ..Options::default() }).unwrap();
        let all = synchronisation(&mut whole.clone(), None);
        let waits = if target == "sm_80" { "wait groups" } else { "wait" };
        assert!(all.contains(&"barrier") && (asynchronous == 0 || all.contains(&waits)), "{all:?}");
        // A barrier after the last use of shared memory orders arguments that may overlap; here they do not.
        let last = all.len() - 1;
        for at in (0..all.len()).filter(|at| *at != last || all[last] != "barrier") {
            let mut kernel = whole.clone();
            synchronisation(&mut kernel, Some(at));
            let wrong = (0..11).any(|seed| {
                let (mut memory, launch, buffers) = place(&tile, case);
                let options = sim::Options::of_seed(seed);
                let ran = sim::run(&kernel, &tile, &launch, &mut memory, &mut Silent, &options);
                ran.and_then(|r| r.clean()).is_err() || contents(&memory, &buffers) != want
            });
            assert!(
                wrong,
                "nobody notices that {} {at} of {all:?} is gone:\n{}",
                all[at],
                kernel::print::print(&kernel)
            );
            deleted += 1;
        }
    }
    assert!(deleted >= 80, "{deleted}");
}

/// Nests that go through the same tiles in the same order or in others, and reductions of rows, all drawn.
#[test]
fn drawn_nests_over_shared_tiles() {
    let mut state = 11u64;
    let mut draw = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let (mut kept, mut not) = (0, 0);
    for at in 0..24 {
        let (r, c) = [(1, 64), (1, 1000), (3, 100), (8, 64), (1, 70), (2, 1), (1, 4097), (16, 128)][draw(8) as usize];
        let n = r * c;
        let nest = |step: String, body: String| {
            let body = body.replace("I", &format!("i{step}")).replace("J", &format!("j{step}"));
            let body: String = body.lines().map(|l| format!("      {l}\n")).collect();
            format!("  for i{step} in 0..{r}: free\n    for j{step} in 0..{c}: free\n{body}")
        };
        let mut loops = "  local b0: i32[R, C]\n  local b1: i32[R, C]\n  local b2: i32[R, C]\n".to_string();
        for q in 0..3 {
            let body = format!("l{q}: i32 = load src[I*{c} + J + {q}]\nb{q}[I, J] = l{q}");
            loops += &nest(format!("l{q}"), body);
        }
        let mut steps = String::new();
        for s in 0..3 + draw(4) {
            let (a, b, to) = (draw(3), draw(3), draw(3));
            if r == 1 && draw(2) == 0 {
                steps += &format!(
                    "  local s{s}: i32\n  s{s} = 0\n  for k{s} in 0..{c}: reduce combine add(s{s}) from 0\n    \
                     x{s}: i32 = b{a}[0, k{s}]\n    b{to}[0, k{s}] = x{s}\n    o{s}: i32 = s{s}\n    n{s}: i32 = x{s} + o{s}\n    \
                     s{s} = n{s}\n  t{s}: i32 = s{s}\n"
                );
                steps +=
                    &nest(s.to_string(), format!("y{s}: i32 = b{b}[I, J]\nz{s}: i32 = y{s} + t{s}\nb{b}[I, J] = z{s}"));
                continue;
            }
            let at = if b != to && draw(6) == 0 { format!("[I, {} - J]", c - 1) } else { "[I, J]".to_string() };
            let body =
                format!("x{s}: i32 = b{a}[I, J]\ny{s}: i32 = b{b}{at}\nz{s}: i32 = x{s} + y{s}\nb{to}[I, J] = z{s}");
            steps += &nest(s.to_string(), body);
        }
        if draw(2) == 0 {
            steps = steps.lines().map(|l| format!("  {l}\n")).collect();
            steps = format!("  for turn in 0..2: serial\n{steps}");
        }
        loops += &steps;
        for q in 0..3 {
            let body = format!("w{q}: i32 = b{q}[I, J]\nstore dst[I*{c} + J + {}] = w{q}", q * n);
            loops += &nest(format!("w{q}"), body);
        }
        let div = if draw(2) == 0 { "" } else { " div 16" };
        let shape = loops.replace("R, C", &format!("{r}, {c}"));
        let loops = format!("loop kernel k(src: ptr i32{div}, dst: ptr i32{div}):\n{shape}");
        let mut ctx = Context { target: Target::named(Target::NAMES[1 + at % 4]).unwrap(), ..context() };
        for (name, value) in [("threads", [32, 64, 256][draw(3) as usize]), ("unroll", [0, 8][draw(2) as usize])] {
            ctx.knobs.set(&format!("{name}={value}")).unwrap();
        }
        let placed = rules(&ctx.target).list.iter().fold(parsed(&loops), |k, rule| apply(rule.name, &k, &ctx).0);
        kept += text(&placed).matches(" private").count();
        not += text(&placed).matches(" shared").count();
        check(&case(&loops, [1, 1, 1], &[n + 2, 3 * n]), &ctx);
    }
    assert!(kept >= 20 && not >= 5, "{kept} tiles are kept, {not} are not");
}

#[test]
fn the_rules_are_idempotent_on_every_example() {
    let dir = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "mlir"));
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let front = pipeline::front(&std::fs::read_to_string(&file).unwrap()).unwrap_or_else(|e| panic!("{e:?}"));
        for entry in front.module.entries() {
            let lowered = pipeline::lower(&front.module, &entry.name, &Default::default(), &mut pipeline::Silent);
            let lowered = lowered.unwrap_or_else(|e| panic!("{e:?}"));
            schedule(&lowered.loops, &context());
        }
    }
}
