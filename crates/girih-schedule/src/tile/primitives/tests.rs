//! Every primitive on an example: what it makes of it, that this computes the same, and what it refuses.

use super::*;
use crate::loops::print::Dialect;
use crate::loops::verify::verify;
use crate::tile::target::MatrixUnit;
use crate::tile::tests::{ATTENTION, apply, case, evaluate};
use crate::tile::tests::{context, gpu, kernel, text};

const ADD: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..3: free\n    for j in 0..20: free\n      \
                   a: f32 = load x[i*20 + j]\n      b: f32 = a + a\n      store y[i*20 + j] = b\n";
const SUMS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..3: free\n    local s: f32\n    s = 0.0\n    \
                    for k in 0..70: reduce combine add(s) from 0.0\n      v: f32 = load x[i*70 + k]\n      a: f32 = s\n      \
                    b: f32 = a + v\n      s = b\n    t: f32 = s\n    store y[i] = t\n";
const ROWS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..4: free\n    t: f32 = load x[i]\n    \
                    for j in 0..50: free\n      store y[i*50 + j] = t\n";

const TURNED: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for i in 0..8: free\n    for j in 0..8: free\n      \
                      a: f32 = load x[j*8 + i]\n      store y[i*8 + j] = a\n";

fn one(before: &str, line: &str, ctx: &Context) -> Result<Kernel, String> {
    let mut k = kernel(before);
    let line = Line::parse(line).unwrap()?;
    let step = Step::read(&line, &k)?;
    // What is printed of a step reads back as the step.
    let printed = step.line(&k).to_string();
    assert_eq!(Line::parse(&printed).unwrap().and_then(|line| Step::read(&line, &k)), Ok(step.clone()), "{printed}");
    step.apply(&mut k, ctx)?;
    Ok(k)
}

/// Steps one after the other; every kernel on the way computes what the first one does. `@` is the loop over the terms of a contraction.
fn steps(before: &str, lines: &[&str], ctx: &Context, elements: &[u64]) -> String {
    let mut k = kernel(before);
    let want = evaluate(&k, &case(before, [1, 1, 1], elements));
    for line in lines {
        let now = text(&k);
        let sum = now.lines().find(|l| l.contains("reduce contraction")).and_then(|l| l.split_whitespace().nth(1));
        let line = &line.replace('@', sum.unwrap_or("@"));
        k = one(&now, line, ctx).unwrap_or_else(|why| panic!("{line}: {why}\n{}", text(&k)));
        let wrong: Vec<String> = verify(&k, Dialect::Tile).into_iter().map(|d| d.message).collect();
        assert!(wrong.is_empty(), "{line}: {wrong:?}\n{}", text(&k));
        let got = evaluate(&k, &case(&text(&k), [1, 1, 1], elements));
        assert!(got == want, "{line} changes the value\n{}", text(&k));
    }
    text(&k)
}

#[test]
fn elements_become_threads() {
    let made = steps(
        ADD,
        &["fuse i, j -> n", "split n by 32 guard -> b, t", "bind b to block.x", "bind t to thread"],
        &gpu(&[]),
        &[60, 60],
    );
    let want = "\
tile kernel k(x: ptr f32, y: ptr f32) open:
  for b in 0..2: free block(x)
    for t in 0..32: free thread
      mine: i1 = test b*32 + t < 60
      if mine:
        a: f32 = load x[b*32 + t]
        b_1: f32 = a + a
        store y[b*32 + t] = b_1
";
    assert_eq!(made, want);
}

#[test]
fn threads_share_a_block() {
    let wide = &["split j by 4 -> j1, j2", "unroll j2", "bind i to block.x", "bind j1 to thread 32", "vector j2 by 4"];
    let made = steps(ADD, wide, &gpu(&[]), &[60, 60]);
    assert!(made.contains("for t in 0..5: free thread\n      local a_w: f32[4]\n"), "{made}");
    assert!(made.contains("free vector(4)\n        a: f32 = load x[i*20 + t*4 + j2]\n"), "{made}");
    // A tile that threads share, and a sum that each of them computes.
    let tile = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for b in 0..3: free block(x)\n    local t: f32[20]\n    \
                for i in 0..20: free\n      v: f32 = load x[b*20 + i]\n      t[i] = v\n    for j in 0..20: free\n      \
                w: f32 = t[19 - j]\n      store y[b*20 + j] = w\n";
    let made = steps(tile, &["bind i, j to thread 8"], &gpu(&[]), &[60, 60]);
    assert!(made.contains("local t: f32[20] shared"), "{made}");
    let kept = steps(&tile.replace("t[19 - j]", "t[j]"), &["own t by 8"], &gpu(&[]), &[60, 60]);
    assert!(kept.contains("local t: f32[8, "), "{kept}");
    let kept = steps(tile, &["reverse j", "own t by 16 rolled"], &gpu(&[]), &[60, 60]);
    assert!(kept.contains("local t: f32[16, 2] private"), "{kept}");
    for (line, why) in [
        ("own t by 16", "a nest needs its elements in another order"),
        ("own t by 16 roled", "unexpected `roled`; did you mean `rolled`?"),
        ("own t by 4096", "a block has 1 to 1024 threads, not 4096"),
        ("own u by 16", "unknown buffer `u`; the buffers are t"),
    ] {
        let said = one(tile, line, &gpu(&[])).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let twice = tile.replace(
        "      w: f32 = t[19 - j]\n",
        "      u: f32 = t[19 - j]\n      v_1: f32 = load x[b*20 + j]\n      w: f32 = u + v_1\n",
    );
    let made = steps(&twice, &["stage_row i, j"], &gpu(&[]), &[60, 60]);
    assert!(made.matches("load x[").count() == 1 && made.contains("local x_k: f32[20]"), "{made}");
    for (text, line, why) in [
        (tile, "stage_row i, j", "no row is read by several of them"),
        (&twice, "stage_row b", "it does not stand in a block"),
        (&twice.replace(") open:", "):"), "stage_row i, j", "other arrays of a program may share memory with it"),
        (&twice.replace("store y", "store x"), "stage_row i, j", "the kernel stores to its array"),
        (
            &twice.replace("j in 0..20", "j in 0..19"),
            "stage_row i, j",
            "its length is not known, or not the same everywhere",
        ),
    ] {
        assert_eq!(one(text, line, &gpu(&[])).map(|_| ()), Err(why.to_string()), "{line}\n{text}");
    }
    let counts = "loop kernel k(x: ptr f32, y: ptr f32):\n  v: f32 = load x[0] acquire\n  store y[0] = v\n";
    let made = steps(counts, &["bind to thread 32"], &gpu(&[]), &[1, 1]);
    assert!(made.contains("local once: f32[1] shared"), "{made}");
}

#[test]
fn loops_are_cut_and_placed() {
    let cpu = context();
    let made = steps(ADD, &["split j by 8 -> j1, j2", "vector j2 by 8"], &cpu, &[60, 60]);
    assert!(made.contains("for j2 in 0..min(8, 20 - j1*8): free vector(8)"), "{made}");
    let far = ADD.replace("i*20", "i*4096").replace("0..20", "0..32").replace("0..3", "0..12");
    let made = steps(&far, &["prefetch i by 2"], &cpu, &[49152, 49152]);
    assert!(
        made.contains("for i in 0..12: free\n    prefetch x[(i + 2)*4096]\n    prefetch x[(i + 2)*4096 + 16]\n"),
        "{made}"
    );
    let made = steps(TURNED, &["vector i, j by 8"], &cpu, &[64, 64]);
    assert!(made.contains("for i in 0..8: free vector(8)\n    for j in 0..8: free vector(8)"), "{made}");
    let made = steps(ADD, &["split i by 3 -> io, ii", "unroll ii"], &cpu, &[60, 60]);
    assert!(made.contains("for io in 0..1: free\n    for ii in 0..3: free unroll"), "{made}");
    let made = steps(ADD, &["reorder j, i"], &cpu, &[60, 60]);
    assert!(made.contains("  for j in 0..20: free\n    for i in 0..3: free\n      a: f32"), "{made}");
    let made = steps(SUMS, &["vector k by 8 x 4"], &cpu, &[210, 3]);
    assert!(made.contains("for k in 0..70: reduce vector(8) combine add(s) from 0.0 x 4"), "{made}");
    let made = steps(SUMS, &["split k by 16 -> kt, kk", "vector kk by 4"], &cpu, &[210, 3]);
    assert!(
        made.contains("for kt in 0..5: reduce\n")
            && made.contains("for kk in 0..min(16, 70 - kt*16): reduce vector(4)"),
        "{made}"
    );
    let made = steps(SUMS, &["bind i to block.x", "bind k to thread 32"], &gpu(&[]), &[210, 3]);
    assert!(
        made.contains("for i in 0..3: free block(x)") && made.contains("reduce thread combine add(s) from 0.0 x 32"),
        "{made}"
    );
    let made = steps(SUMS, &["enclose -> b"], &gpu(&[]), &[210, 3]);
    assert!(made.contains("  for b in 0..1: free block(x)\n    for i in 0..3: free\n"), "{made}");
}

#[test]
fn what_stands_before_a_loop_goes_in_and_comes_out() {
    let made = steps(ROWS, &["sink j"], &context(), &[4, 200]);
    assert!(made.contains("    for j in 0..50: free\n      t: f32 = load x[i]\n"), "{made}");
    let back = steps(&made.replace("tile kernel", "loop kernel"), &["hoist j"], &context(), &[4, 200]);
    assert!(back.contains("    t: f32 = load x[i]\n    for j in 0..50: free\n"), "{back}");
}

/// A row between reflected borders.
const REFLECTED: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for j in 0..74: free\n    \
                         a: f32 = load x[63 - max(max(j - 3, 3 - j) - 63, 63 - max(j - 3, 3 - j))]\n    store y[j] = a\n";

#[test]
fn loops_end_where_subscripts_bend() {
    let made = steps(REFLECTED, &["peel j", "peel j_1"], &context(), &[64, 74]);
    let loops: Vec<&str> = made.lines().filter(|l| l.contains("for") || l.contains("load")).map(str::trim).collect();
    let want = [
        "for j in 0..3: free",
        "a: f32 = load x[j*-1 + 3]",
        "for j_1 in 3..66: free",
        "a_1: f32 = load x[j_1 - 3]",
        "for j_1_1 in 66..74: free",
        "a_1_1: f32 = load x[j_1_1*-1 + 129]",
    ];
    assert_eq!(loops, want, "{made}");
    let short = REFLECTED.replace("74", "14");
    assert_eq!(one(&short, "peel j", &context()).err().as_deref(), Some("none of its conditions turns once within it"));
}

/// Rows that take elements from the same places with the same weights.
const SAMPLES: &str = "loop kernel k(x: ptr f32, g: ptr f32, y: ptr f32) open:\n  for c in 0..6: free\n    for j in 0..50: free\n      \
                       p: f32 = load g[j*2]\n      w: f32 = exp(p)\n      q: f32 = w * 9.0\n      n: i64 = i64(q)\n      \
                       a: f32 = load x[c*50 + max(0, min(n, 49))]\n      s: f32 = load g[j]\n      t: f32 = a * w\n      u: f32 = t + s\n      \
                       store y[c*50 + j] = u\n";

#[test]
fn what_rows_compute_alike_is_kept() {
    let made = steps(SAMPLES, &["hoist c"], &context(), &[300, 100, 300]);
    let want = "\
tile kernel k(x: ptr f32, g: ptr f32, y: ptr f32) open:
  local w_of: f32[50]
  local at_of: i32[50]
  for j in 0..50: free
    p: f32 = load g[j*2]
    w: f32 = exp(p)
    q: f32 = w * 9.0
    n: i64 = i64(q)
    w_of[j] = w
    at: i32 = index max(0, min(n, 49))
    at_of[j] = at
  for c in 0..6: free
    for j_1 in 0..50: free
      w_1: f32 = w_of[j_1]
      at_1: i32 = at_of[j_1]
      a: f32 = load x[c*50 + at_1]
      s: f32 = load g[j_1]
      t: f32 = a * w_1
      u: f32 = t + s
      store y[c*50 + j_1] = u
";
    assert_eq!(made, want);
    // Integers that bounds make small are kept in 32 bits.
    let bounded = SAMPLES.replace("      a: f32", "      h: i64 = max(n, 0)\n      l: i64 = min(h, 49)\n      a: f32");
    let bounded = bounded.replace("max(0, min(n, 49))", "l");
    let made = steps(&bounded, &["hoist c"], &context(), &[300, 100, 300]);
    assert!(made.contains("at: i32 = i32(l)\n") && made.contains("load x[c*50 + at_1]"), "{made}");
    // In pieces of rows and columns, and with an assertion.
    let asserted = SAMPLES.replace("      a: f32", "      l: i1 = p < 9.0\n      assert l, \"small\"\n      a: f32");
    let lines =
        ["split c by 4 -> c1, c2", "split j by 16 -> j1, j2", "reorder c1, j1, c2, j2", "hoist c2", "vector j2_1 by 8"];
    let made = steps(&asserted, &lines, &context(), &[300, 100, 300]);
    assert_eq!(made.matches("assert").count(), 1, "{made}");
}

#[test]
fn what_may_differ_between_rows_is_not_kept() {
    let refused = |before: &str| one(before, "hoist c", &context()).err();
    let nothing = Some("nothing in it is the same for all its iterations".to_string());
    // A store may change the elements that a load reads, and a loop without rows reads nothing.
    for places in ["store g[c*50 + j] = u", "store y[c*50 + j] = u where c < 0"] {
        let now = SAMPLES.replace("store y[c*50 + j] = u", places).replace("exp(p)", "p * p");
        let now = now.replace("g[j*2]", if places.contains("where") { "g[c + j]" } else { "g[j*2]" });
        assert_eq!(refused(&now), nothing, "{now}");
    }
    let open = SAMPLES.replace("g: ptr f32,", "g: ptr f32, m: i64 in 0..9,").replace("0..6", "0..m");
    assert_eq!(refused(&open), nothing);
    let far = SAMPLES.replace("0..50", "0..50 + c");
    assert_eq!(refused(&far), Some("how far the loop at its end goes depends on the iteration".into()));
    let ordered = SAMPLES.replace("load g[j*2]", "load g[j*2] acquire");
    assert_eq!(refused(&ordered), Some("it holds atomics, ordered accesses or prints, or leaves the loop".into()));
}

const OWN: &str = "loop kernel k(x: ptr f32, y: ptr f32):\n  local v: f32[3, 20]\n  for i in 0..3: free\n    \
                   for j in 0..20: free\n      a: f32 = load x[i*20 + j]\n      v[i, j] = a\n    \
                   for k in 0..20: free\n      b: f32 = v[i, 19 - k]\n      store y[i*20 + k] = b\n";

#[test]
fn iterations_run_in_order_with_buffers_of_their_own() {
    for lines in [&["serial i", "privatise i"], &["privatise i", "serial i"]] {
        let made = steps(OWN, lines, &gpu(&[]), &[60, 60]);
        assert!(made.contains("  for i in 0..3: serial\n    local v: f32[1, 20]\n"), "{made}");
        assert!(made.contains("v[0, j] = a\n") && made.contains("v[0, 19 - k]\n"), "{made}");
    }
}

const EDGE: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i32):\n  for j in 0..64: free\n    \
                    a: f32 = load x[j] where j < n else 1.0\n    store y[j] = a\n";
const BLOCKS: &str = "tile kernel k(x: ptr f32, y: ptr f32, n: i32) open:\n  for b in 0..3: free block(x)\n    \
                      for t in 0..8: free thread\n      for r in 0..2: free unroll\n        \
                      a: f32 = load x[b*16 + r*8 + t] where b*16 + r*8 + t < n else 1.0\n        \
                      store y[b*16 + r*8 + t] = a\n";
const TILES: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i64 in 1..1025):\n  local t: f32[32]\n  \
                     for i1 in 0..4: free\n    for i2 in 0..8: free\n      a: f32 = load x[i1*8 + i2]\n      \
                     t[i1*8 + i2] = a\n  for i in 0..min(32, n): free\n    b: f32 = t[i]\n    store y[i] = b\n";

/// Conditions that hold for no iteration, for some and for all.
#[test]
fn conditions_leave_loops() {
    for n in [0, 1, 17, 48, 63, 64, 100] {
        let made = steps(EDGE, &["peel j"], &context(), &[64, 64, n]);
        assert!(made.contains("for j in 0..max(0, min(64, n)): free\n    a: f32 = load x[j]\n"), "{made}");
        let separately = EDGE.replace("else 1.0\n", "else 1.0\n    c: f32 = load x[j] where j >= 32 else 2.0\n");
        let separately = separately.replace("j < n", "j < 16").replace("= a\n", "= c\n");
        let made = steps(&separately, &["peel j"], &context(), &[64, 64, n]);
        assert_eq!(made.matches("for j").count(), 3, "{made}");
        let fixed = EDGE.replace("j < n", "n < 50");
        let made = steps(&fixed, &["unswitch j"], &context(), &[64, 64, n]);
        assert!(made.contains("inside: i1 = test n < 50\n"), "{made}");
        let made = steps(BLOCKS, &["unswitch t"], &gpu(&[]), &[48, 48, n]);
        assert!(made.contains("inside: i1 = test b*16 + 15 < n\n"), "{made}");
        if (1..=32).contains(&n) {
            let made = steps(TILES, &["trim i1"], &context(), &[32, 32, n]);
            assert!(made.contains("for i1 in 0..min(4, (n + 7)//8): free"), "{made}");
        }
    }
}

const PRODUCT: &str = r#"loop kernel k(A: ptr f32, B: ptr f32, C: ptr f32, n: i32):
  local acc: f32[20, 64]
  for i0 in 0..20: free
    for j0 in 0..64: free
      acc[i0, j0] = 0.0
  for i in 0..20: free
    for j in 0..64: free
      for q in 0..24: reduce contraction m=i n=j k=q a=a b=b acc=acc
        a: f32 = load A[i*24 + q] where q < n else 0.0
        b: f32 = load B[q*64 + j]
        c: f32 = acc[i, j]
        d: f32 = fma(a, b, c)
        acc[i, j] = d
  for i1 in 0..20: free
    for j1 in 0..64: free
      s: f32 = acc[i1, j1]
      store C[i1*64 + j1] = s
"#;

/// Every form of a copy and every unit, of extents that they divide and others.
#[test]
fn products_are_staged_and_given_to_units() {
    let elements = [20 * 24, 24 * 64, 20 * 64, 17];
    for a in ["rows", "panels 1", "panels 4", "panels 7", "panels 20", "panels 32"] {
        let made = steps(PRODUCT, &[&format!("stage_read @ by a {a}")], &context(), &elements);
        assert!(made.contains("stage a_pack: f32["), "{made}");
    }
    for tile in ["1 x 32 by 16", "3 x 64 by 32", "8 x 32 by 16", "20 x 16 by 4", "7 x 48 by 16", "20 x 64 by 64"] {
        let width = tile.split(' ').nth(2).unwrap();
        let lines = [
            "stage_read @ by a rows".to_string(),
            format!("stage_read @ by b panels {width}"),
            format!("tensorize @ as registers {tile}"),
            "stage_write acc".to_string(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let made = steps(PRODUCT, &lines, &context(), &elements);
        assert!(made.contains("local acc_r: f32[") && !made.contains("local acc: "), "{made}");
    }
    for tile in ["10 x 32 x 8", "20 x 64 x 12", "5 x 64 x 24", "1 x 1 x 1"] {
        let made = steps(PRODUCT, &[&format!("tile @ by {tile}"), "stage_read @ by b panels 1"], &context(), &elements);
        assert!(made.contains("reduce contraction") && made.contains("b_pack"), "{made}");
    }
    let windows = PRODUCT.replace("B[q*64 + j]", "B[q//3*66 + j + q%3]");
    let made = steps(&windows, &["stage_read @ by b windows"], &context(), &[20 * 24, 8 * 66, 20 * 64, 24]);
    assert!(made.contains("stage b_pack: f32[8, 66]"), "{made}");
    for each in ["4 x 4", "1 x 2", "5 x 8", "20 x 1"] {
        let lines = ["stage_read @ by a shared", "stage_read @ by b shared", &format!("tensorize @ as threads {each}")];
        let made = steps(PRODUCT, &lines, &gpu(&[]), &elements);
        assert!(made.contains("stage a_s: f32[20, 24] shared") && made.contains("private"), "{made}");
    }
}

/// Attention of 20 rows over 36 keys, each row as far as the keys before it.
const KEYS: &str = r#"loop kernel k(x: ptr f32, y: ptr f32, z: ptr f32, o: ptr f32) open:
  for b in 0..2: free
    for i in 0..20: free
      local dot: f32[16]
      for n in 0..16: free
        dot[n] = 0.0
      local m: f32
      m = -inf
      local l: f32
      l = 0.0
      for key in 0..36: serial stream score=select value=v greatest=m total=l acc=dot
        local s: f32
        s = 0.0
        for k in 0..8: reduce contraction m=i n=key k=k a=q b=w acc=s
          q: f32 = load x[b*160 + i*8 + k]
          w: f32 = load y[b*288 + key*8 + k]
          s1: f32 = s
          s2: f32 = fma(q, w, s1)
          s = s2
        at: i64 = index i - key
        seen: i1 = at >= 0
        score: f32 = s
        select: f32 = select(seen, score, -inf)
        m1: f32 = m
        m2: f32 = max.nan(m1, select)
        empty: i1 = m2 == -inf
        m3: f32 = select(empty, 0.0, m2)
        d1: f32 = m1 - m3
        e1: f32 = exp(d1)
        d2: f32 = select - m3
        e2: f32 = exp(d2)
        m = m2
        l1: f32 = l
        l2: f32 = l1 * e1
        l3: f32 = l2 + e2
        l = l3
        for n1 in 0..16: free
          v: f32 = load z[b*576 + key*16 + n1]
          a1: f32 = dot[n1]
          a2: f32 = a1 * e1
          a3: f32 = fma(e2, v, a2)
          dot[n1] = a3
      l4: f32 = l
      for n2 in 0..16: free
        a4: f32 = dot[n2]
        a5: f32 = a4 / l4
        store o[b*320 + i*16 + n2] = a5
"#;

/// Whole stretches, one that is not full, several, and rows of a tile program side by side.
#[test]
fn threads_share_a_scan() {
    let scan = "loop kernel k(x: ptr i32, y: ptr i32):\n  for i in 0..2: free\n    local s: i32\n    s = 0\n    \
                for k in 0..100: serial\n      v: i32 = load x[i*100 + k]\n      a: i32 = s\n      b: i32 = a + v\n      \
                s = b\n      t[i, 99 - k] = b\n    for j in 0..100: free\n      w: i32 = t[i, j]\n      \
                store y[i*100 + j] = w\n"
        .replace("  for i in", "  local t: i32[2, 100]\n  for i in");
    for each in ["16 x 1", "16 x 7", "32 x 4", "112 x 1", "256 x 8"] {
        let made = steps(&scan, &[&format!("scan k by {each}")], &gpu(&[]), &[200, 200]);
        let [threads, each] = each.split(" x ").collect::<Vec<_>>()[..] else { panic!() };
        assert!(made.contains(&format!("local line: i32[2, {threads}, {each}]")), "{made}");
    }
    for (line, why) in [
        ("scan k by 24 x 4", "24 threads are not groups of 16"),
        ("scan k by 16", "expected `by` and x"),
        ("scan j by 16 x 4", "it is not a scan of a row that a block has for itself"),
        ("scan k by 4294967280 x 4", "are the most"),
        ("scan k by 16 x 0", "a whole number from 1 on"),
    ] {
        let said = one(&scan, line, &gpu(&[])).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let floats = scan.replace("i32", "f32").replace("s = 0\n", "s = 0.0\n");
    assert_eq!(one(&floats, "scan k by 16 x 4", &gpu(&[])).unwrap_err(), "the program states the order of its floats");
}

/// Both products, and what is folded between them, by one warp and by two.
#[test]
fn warps_have_whole_rows() {
    let elements = [32 * 16, 3 * 256, 3 * 256, 32 * 16, 3 * 32];
    for warps in [1, 2] {
        let staged = text(&apply("stage_inputs", &kernel(ATTENTION), &gpu(&[])).0);
        let made = steps(&staged, &[&format!("tensorize @ as rows {warps}")], &gpu(&[]), &elements);
        assert!(made.contains(&format!("local m: f32[{}, {}] private", 32 * warps, 4 / warps)), "{made}");
    }
}

/// Exponentials of other differences are rounded otherwise.
#[test]
fn keys_go_by_in_stretches() {
    let of = |k: &Kernel| -> Vec<f32> {
        let all = evaluate(k, &case(&text(k), [1, 1, 1], &[2 * 160, 2 * 288, 2 * 576, 2 * 320]));
        all[3].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let want = of(&kernel(KEYS));
    for tile in ["1 x 1", "4 x 7", "20 x 36", "8 x 16", "64 x 64", "16 x 5"] {
        for ctx in [context(), gpu(&[])] {
            let made = one(KEYS, &format!("tile key by {tile}"), &ctx).unwrap();
            let wrong: Vec<String> = verify(&made, Dialect::Tile).into_iter().map(|d| d.message).collect();
            assert!(wrong.is_empty(), "{tile}: {wrong:?}\n{}", text(&made));
            let far = of(&made).iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-5, "{tile}: {far}\n{}", text(&made));
        }
    }
}

/// Rows of one box and of several, and rows that threads copy.
#[test]
fn results_are_collected_before_they_are_stored() {
    let elements = [20 * 24, 24 * 64, 20 * 64, 17];
    let aligned = PRODUCT.replace("C: ptr f32", "C: ptr f32 div 16");
    let made = steps(&aligned, &["stage_write i1 by shared"], &gpu(&[]), &elements);
    assert!(made.contains("local C_s: f32[20, 64] shared\n") && !made.contains("free tensor"), "{made}");
    let made = steps(&aligned, &["stage_write i1 by tma"], &gpu(&[]), &elements);
    assert!(made.contains("local C_s: f32[2, 20, 32] shared swizzle(128)") && made.contains("free tensor"), "{made}");
    let narrow = aligned.replace("64]", "32]").replace("0..64", "0..32").replace("*64", "*32");
    let made = steps(&narrow, &["stage_write i1 by tma"], &gpu(&[]), &[20 * 24, 24 * 32, 20 * 32, 17]);
    assert!(made.contains("local C_s: f32[20, 32] shared swizzle(128)") && made.contains("free tensor"), "{made}");
}

/// Sums of columns that are subtracted from their elements.
const COLUMNS: &str = "loop kernel k(x: ptr f32, y: ptr f32) open:\n  for j in 0..20: free\n    local s: f32\n    s = 0.0\n    \
                       for k in 0..48: reduce combine add(s) from 0.0\n      v: f32 = load x[k*20 + j]\n      a: f32 = s\n      \
                       b: f32 = a + v\n      s = b\n    t: f32 = s\n    for i in 0..48: free\n      w: f32 = load x[i*20 + j]\n      \
                       d: f32 = w - t\n      store y[i*20 + j] = d\n";

#[test]
fn columns_become_rows() {
    let cpu = context();
    let distributed = steps(COLUMNS, &["distribute j"], &cpu, &[960, 960]);
    for part in ["local s: f32[20]", "local t_of: f32[20]", "for k in 0..48: reduce\n    for j_1 in 0..20: free"] {
        assert!(distributed.contains(part), "{part}\n{distributed}");
    }
    let jammed = steps(COLUMNS, &["distribute j", "jam k by 4"], &cpu, &[960, 960]);
    assert!(jammed.contains("for k4 in 0..12: reduce"), "{jammed}");
    let rows = steps(SUMS, &["jam i by 3"], &cpu, &[210, 3]);
    assert!(rows.contains("for i3 in 0..1: free") && rows.contains("combine add(s, s_1, s_2)"), "{rows}");
    let folds = |text: &str, line: &str| {
        let made = steps(text, &[line], &cpu, &[960, 960]);
        assert!(made.contains("for k4 in 0..12: reduce") && made.matches("load x[").count() == 5, "{made}");
    };
    folds(COLUMNS, "jam k by 4");
    // In a fixed order too: each term is folded after the one before it.
    folds(&COLUMNS.replace(" combine add(s) from 0.0", ""), "jam k by 4");
    // Small integers: sums in another order are the same.
    let lines = ["rfactor k by 10 -> ko, ki", "distribute j", "reorder i, j_5"];
    let rows = steps(COLUMNS, &lines, &cpu, &[960, 960]);
    assert!(rows.contains("for ko in 0..5: reduce") && rows.contains("for i in 0..48: free\n    for j_5"), "{rows}");
    for (m, n) in [(8, 8), (40, 16), (33, 50)] {
        let turned = TURNED.replace("i in 0..8", &format!("i in 0..{m}")).replace("j in 0..8", &format!("j in 0..{n}"));
        let turned = turned.replace("j*8", &format!("j*{m}")).replace("i*8", &format!("i*{n}"));
        let made = steps(&turned, &["turn i, j by 16"], &cpu, &[m * n, m * n]);
        assert!(made.contains("local block: f32[16, 16]"), "{made}");
    }
    let counted = ADD.replace("i*20 + j]", "i*20 + j//4*4 + j%4]").replace("load x[", "load x[0*");
    let turns = ADD.replace("i in 0..3: free", "i in 0..3: serial").replace("j in 0..20: free", "j in 0..20: serial");
    let made = steps(&turns, &["fuse i, j -> n"], &cpu, &[60, 60]);
    assert!(made.contains("for n in 0..60: serial"), "{made}");
    let made = steps(&counted, &["digits j by 5 x 2 -> a, c, d"], &cpu, &[60, 60]);
    assert!(made.contains("for a in 0..2: free\n      for c in 0..5: free\n        for d in 0..2: free"), "{made}");
    let summed = COLUMNS.replace("reduce combine add(s) from 0.0", "reduce");
    let made = steps(&summed, &["digits k by 4 unroll -> k1, k2"], &cpu, &[960, 960]);
    assert!(made.contains("for k1 in 0..12: reduce\n      for k2 in 0..4: reduce unroll"), "{made}");
    let pairs = ADD.replace("j in 0..20", "j in 0..2").replace("i*20", "i*2");
    let made = steps(&pairs, &["interleave j"], &cpu, &[6, 6]);
    assert!(made.contains("store y[i*2] = ") && made.contains("store y[i*2 + 1] = "), "{made}");
    // The second of two loops with one axis.
    let nest = pairs.find("  for i").map_or("", |at| &pairs[at..]);
    let twice = format!(
        "{pairs}{}",
        nest.replace("a: f32", "c: f32").replace("b: f32 = a + a", "d: f32 = c + c").replace("= b", "= d")
    );
    let made = steps(&twice, &["interleave j:2"], &cpu, &[6, 6]);
    assert!(made.contains("store y[i*2 + j] = b\n") && made.contains("store y[i*2 + 1] = "), "{made}");
    let ends = COLUMNS.replace("k in 0..48", "k in 0..j");
    let counts = COLUMNS.replace("combine add(s) from 0.0", "");
    for (text, line, why) in [
        (&*ends, "distribute j", "the bounds of its loops depend on each other"),
        (ADD, "distribute j", "no loop stands in it"),
        (ADD, "interleave j", "it does not store a few kinds of elements in turn"),
        (ADD, "interleave i", "it is not the last statement in the body of a loop"),
        (ADD, "digits j by 3 -> a, c", "3 does not divide its 20 iterations"),
        (ADD, "digits j by 2 x 2 -> a, c", "expected `by` and counts, and `->` and a name more than there are counts"),
        (ADD, "digits j by 2 y 2 -> a, c, d", "unexpected `y`; expected x"),
        (PRODUCT, "digits i by 2 -> a, c", "it counts rows, columns or terms of a product"),
        (
            COLUMNS,
            "digits k by 2 -> a, c",
            "it is not free or a reduction in a fixed order, is placed already, or does not count from 0",
        ),
        (&distributed, "jam k by 5", "5 of 48 iterations cannot be taken together"),
        (COLUMNS, "jam k by 5", "5 of 48 iterations cannot be taken together"),
        (ADD, "jam j by 4", "it holds more than a free loop, or is placed already"),
        (&counts, "rfactor k by 4 -> a, b", "the order of its reduction is fixed"),
        (COLUMNS, "rfactor i by 4 -> a, b", "the order of its reduction is fixed"),
        (COLUMNS, "turn j, i by 16", "they are not free loops that stand in each other with nothing between them"),
        (ADD, "turn j by 16", "it takes two loops: the one that loads go along, and the other"),
        (ADD, "turn i, j by 1", "expected how long the side of a block is, a whole number from 2 on, found `1`"),
        (ADD, "turn i, j by 16", "nothing is loaded along the first loop"),
        (TURNED, "turn i, i by 16", "its loops do not start at 0"),
    ] {
        assert_eq!(one(text, line, &cpu).map(|_| ()), Err(why.to_string()), "{line}\n{text}");
    }
}

const OPEN: &str = "loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:\n  for i in 0..5: free\n    for j in 0..7: free\n      \
                    local acc: f32\n      acc = 0.0\n      for k in 0..9: reduce contraction m=i n=j k=k a=a b=c acc=acc\n        \
                    a: f32 = load x[i*9 + k]\n        c: f32 = load w[j*9 + k]\n        old: f32 = acc\n        \
                    new: f32 = fma(a, c, old)\n        acc = new\n      s: f32 = acc\n      store y[i*7 + j] = s\n";

#[test]
fn products_without_a_grid_are_cut_into_its_blocks() {
    for (m, n, k) in [(5, 7, 9), (2, 4, 3), (3, 8, 4), (8, 1, 16), (1, 7, 1)] {
        let made = steps(OPEN, &[&format!("tile k by {m} x {n} x {k}")], &context(), &[45, 63, 35]);
        assert!(made.contains(&format!("local acc: f32[{m}, {n}]")), "{made}");
    }
    for (line, why) in [
        ("tile k by 2 x 0 x 4", "expected columns, a whole number from 1 on, found `0`"),
        (
            "tile k by 4000000000 x 4000000000 x 4",
            "a tile would have 18446744073709551615 bytes; 268435456 are the most",
        ),
        ("tile i by 2 x 2 x 2", "it is not the loop over the terms of a contraction"),
    ] {
        assert_eq!(one(OPEN, line, &context()).map(|k| text(&k)).unwrap_err(), why);
    }
}

const HALVES: &str = r#"tile kernel k(A: ptr f16, B: ptr f16, C: ptr f32):
  local t: f32[32, 16]
  for i3 in 0..32: free
    for k3 in 0..16: free
      z: f16 = load A[i3*16 + k3]
      z1: f32 = f32(z)
      t[i3, k3] = z1
  local acc: f32[32, 64]
  for i in 0..32: free
    for j in 0..64: free
      acc[i, j] = 0.0
  for i1 in 0..32: free
    for j1 in 0..64: free
      for q in 0..16: reduce contraction m=i1 n=j1 k=q a=x b=y acc=acc
        x: f16 = load A[i1*16 + q]
        y: f16 = load B[q*64 + j1]
        x1: f32 = f32(x)
        y1: f32 = f32(y)
        c: f32 = acc[i1, j1]
        d: f32 = fma(x1, y1, c)
        acc[i1, j1] = d
  for i2 in 0..32: free
    for j2 in 0..64: free
      s: f32 = acc[i2, j2]
      u: f32 = t[i2, j2//4]
      w: f32 = s + u
      store C[i2*64 + j2] = w
"#;

#[test]
fn warps_multiply_and_buffers_are_retyped() {
    let elements = [32 * 16, 16 * 64, 32 * 64];
    for warps in ["1 x 1", "2 x 1", "2 x 2", "1 x 8"] {
        let lines = ["stage_read @ by a shared", "stage_read @ by b shared", &format!("tensorize @ as warps {warps}")];
        let made = steps(HALVES, &lines, &gpu(&[]), &elements);
        assert!(made.contains("reduce matrix"), "{made}");
    }
    let made = steps(HALVES, &["retype t to f16"], &gpu(&[]), &elements);
    assert!(made.contains("local t: f16[32, 16]"), "{made}");
    let twice = "stage_read @ by a shared tf32";
    let made = steps(HALVES, &[twice], &gpu(&[]), &elements);
    assert!(made.contains("stage a_s: tf32[32, 16]"), "{made}");
}

/// Any size cuts any loop, and any of the two orders of cutting and fusing computes the same.
/// Two blocks in turn read the same 40 numbers, in an order that a buffer gives.
const SHARED_BY_TWO: &str = "tile kernel k(x: ptr f32, y: ptr f32):\n  i: i32 = index bx\n  two: i32 = div(i, 2)\n  local at: i32[8]\n  \
     for j in 0..8: free\n    v: i32 = index (j + two)%8\n    at[j] = v\n  local acc: f32[8]\n  for j_1 in 0..8: free\n    \
     acc[j_1] = 0.0\n  for turn in 0..5: serial\n    stage p: f32[8]:\n      for j_2 in 0..8: free\n        o: i32 = at[j_2]\n        \
     a: f32 = load x[two*40 + turn*8 + o]\n        p[j_2] = a\n    for j_3 in 0..8: free\n      b: f32 = p[j_3]\n      \
     c: f32 = acc[j_3]\n      d: f32 = b + c\n      acc[j_3] = d\n  for j_4 in 0..8: free\n    e: f32 = acc[j_4]\n    \
     store y[i*8 + j_4] = e\n";

#[test]
fn copies_stay_from_block_to_block() {
    let want = evaluate(&kernel(SHARED_BY_TWO), &case(SHARED_BY_TWO, [4, 1, 1], &[80, 32]));
    for slots in [2, 4, 5, 9] {
        let k = one(SHARED_BY_TWO, &format!("keep p by {slots}"), &context()).unwrap();
        let wrong: Vec<String> = verify(&k, Dialect::Tile).into_iter().map(|d| d.message).collect();
        assert!(wrong.is_empty(), "{wrong:?}\n{}", text(&k));
        assert!(evaluate(&k, &case(&text(&k), [4, 1, 1], &[80, 32])) == want, "{}", text(&k));
        // The block's quotient and the order of the numbers are compared, and the copies counted.
        for part in [
            "p_seen: i64[2] kept zeroed",
            "at_seen: i32[8] kept",
            "if missing:",
            &format!("p_kept: f32[{slots}, 8] kept"),
        ] {
            assert!(text(&k).contains(part), "{part}\n{}", text(&k));
        }
    }
}

#[test]
fn sizes_of_all_kinds_leave_the_value() {
    for size in [1, 2, 3, 7, 19, 20, 21, 64] {
        for guard in ["", " guard"] {
            let split = format!("split j by {size}{guard} -> a, c");
            steps(ADD, &[&split], &context(), &[60, 60]);
            let split = format!("split n by {size}{guard} -> a, c");
            steps(ADD, &["fuse i, j -> n", &split], &context(), &[60, 60]);
        }
        steps(SUMS, &[&format!("split k by {size} -> a, c")], &context(), &[210, 3]);
    }
}

#[test]
fn what_is_not_legal_is_refused_with_a_reason() {
    let cpu = context();
    let stored = ROWS.replace("load x[i]", "load y[i]");
    let other = OWN.replace("v[i, 19 - k]", "v[2 - i, k]");
    let triangle = ADD.replace("0..20", "0..i");
    let graphics = gpu(&[]);
    let nothing =
        ADD.replace("for j in 0..20: free", "for j in 0..20: free thread").replace("0..3: free", "0..3: serial");
    let short = ADD.replace("for j in 0..20: free", "for j in 0..2: free unroll");
    let early = SHARED_BY_TWO.replace("  local acc", "  f: f32 = load x[i]\n  store y[i] = f\n  local acc");
    let skipped =
        SHARED_BY_TWO.replace("    stage p", "    skip: i1 = test turn < i\n    if skip:\n      continue\n    stage p");
    let carried =
        SHARED_BY_TWO.replace("    stage p", "    w: i32 = index turn*8\n    stage p").replace("turn*8 + o", "w + o");
    let summed = SHARED_BY_TWO.replace("      acc[j_3] = d\n", "      acc[j_3] = d\n      at[j_3] = two\n");
    for (before, line, ctx, why) in [
        (ADD, "unrol j", &cpu, "unknown primitive `unrol`; did you mean `unroll`?"),
        (ADD, "unroll q", &cpu, "unknown loop `q`; "),
        (ADD, "unroll", &cpu, "expected the name of a loop behind `unroll`"),
        (ADD, "unroll j:2", &cpu, "there are 1 loops of the name `j`"),
        (ADD, "split j by 0 -> a, c", &cpu, "a whole number from 1 on, found `0`"),
        (ADD, "split j by 99999999999 -> a, c", &cpu, "a whole number from 1 on, found `99999999999`"),
        (ADD, "split j by 4 -> a", &cpu, "expected `->` and the names of the two loops that it makes"),
        (ADD, "split j by 4 garud -> a, c", &cpu, "unexpected `garud`; the words here are guard"),
        (SUMS, "split k by 4 guard -> a, c", &cpu, "a reduction has no iteration that does nothing"),
        (ADD, "vector j by 3", &cpu, "3 x 1 are no powers of two"),
        (ADD, "vector i by 4", &cpu, "it runs in order, is placed already, or holds other loops"),
        (ADD, "bind j to block.x", &cpu, "a loop stands around it that is none over blocks"),
        (ADD, "bind j to block.w", &cpu, "unknown place `block.w`; did you mean `block.x`?"),
        (ADD, "bind i to thread 64", &cpu, "cpu runs a block on one thread"),
        (ADD, "bind i to thread 0", &graphics, "expected a number of threads"),
        (ADD, "bind i to thread 2048", &graphics, "a block has 1 to 1024 threads, not 2048"),
        (ADD, "bind j to thread 64", &graphics, "a loop is not free, is placed, or stands in another free loop"),
        (ADD, "bind to thread 64", &graphics, "the threads come by the free loop `i`, too: name it"),
        (&nothing, "bind to thread 64", &graphics, "the threads share all that a block does"),
        (SUMS, "bind i, k to thread 64", &graphics, "reductions and free loops take lines of their own"),
        (ADD, "vector j by 4", &graphics, "it is not unrolled, and no reduction that threads share"),
        (ADD, "vector j by 4 x 2", &graphics, "a thread has no vector registers for accumulators"),
        (&short, "vector j by 4", &graphics, "nothing in it moves 4 elements at once"),
        (
            ADD,
            "vector i, j by 4",
            &cpu,
            "what it moves is not read along the outer loop and written along the inner one",
        ),
        (ADD, "prefetch i by 2", &cpu, "it reads no pieces of memory that lie far apart and are known beforehand"),
        (ADD, "prefetch i by 2", &graphics, "sm_90a has no caches that are asked"),
        (TURNED, "vector i, j by 16", &cpu, "its loops do not run over whole squares of 16 lanes"),
        (TURNED, "vector i by 8", &cpu, "it runs in order, is placed already, or holds other loops"),
        (ADD, "bind i to thread", &cpu, "a block at most"),
        (SUMS, "bind i to thread", &cpu, "a block at most"),
        (
            ADD,
            "fuse j, i -> n",
            &cpu,
            "they are not free loops, or serial ones, that stand in each other and in that order",
        ),
        (SUMS, "reorder i, k", &cpu, "they are not free loops that stand in each other"),
        (&triangle, "reorder j, i", &cpu, "a loop ends where one says that would stand in it"),
        (ADD, "sink j", &cpu, "nothing stands before it"),
        (SUMS, "serial k", &cpu, "it is not free, or is placed already"),
        (ADD, "privatise i", &cpu, "no buffer before it has a part for each of its iterations that only it uses"),
        (&other, "privatise i", &cpu, "no buffer before it has a part for each of its iterations that only it uses"),
        (&stored, "sink j", &cpu, "what stands before it is not the same when it is done again"),
        (ADD, "hoist j", &cpu, "nothing stands first in it that is the same for all its iterations"),
        (ADD, "pipeline i by 3", &cpu, "it is no loop that runs in order around stages"),
        (ADD, "pipeline i by 65", &cpu, "a pipeline has from 1 to 64 slots, not 65"),
        (SUMS, "pad s by 1", &cpu, "it has no rows in shared memory"),
        (SUMS, "swizzle s by 128", &cpu, "TMA does not fill it"),
        (SUMS, "own s by 8", &graphics, "it is not a tile of the block's own"),
        (SUMS, "own s by 8", &cpu, "cpu runs a block on one thread"),
        (SUMS, "reverse k", &cpu, "it is not free, or is placed already"),
        (&triangle, "reverse j", &cpu, "the bounds of its loops depend on each other"),
        (SUMS, "unbatch s", &cpu, "it is not a buffer of a program that has several matrices"),
        (SUMS, "box s by 8", &cpu, "TMA does not fill it"),
        (SUMS, "fill s by async", &cpu, "has no copies that go on by themselves"),
        (SUMS, "fill s by tma", &cpu, "has no copies of boxes"),
        (SUMS, "fill s by tam", &cpu, "unexpected `tam`; expected async or tma"),
        (ADD, "tensorize i as warpgroup", &cpu, "it is not the outermost loop of a product that warps compute"),
        (ADD, "group i by 8", &cpu, "it is no loop over blocks"),
        (ADD, "persist i by 8", &cpu, "it is not the outermost loop of the only nest of blocks"),
        (ADD, "cluster i by 2", &cpu, "it is not the innermost loop over the blocks of a pipeline"),
        (SHARED_BY_TWO, "keep acc by 4", &cpu, "no serial loop that stands in no other one stages it"),
        (SHARED_BY_TWO, "keep p by 4", &graphics, "a GPU's blocks do not run one after another on a worker"),
        (&skipped, "keep p by 4", &cpu, "an iteration may go on to the next one, or end, before it"),
        (&early, "keep p by 4", &cpu, "the block stores to memory before its loop ends, or orders its accesses"),
        (&carried, "keep p by 4", &cpu, "it depends on a value that its loop computes"),
        (&summed, "keep p by 4", &cpu, "it reads a buffer that its loop writes"),
    ] {
        let said = one(before, line, ctx).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let gpu = gpu(&[]);
    let both = PRODUCT.replace("A[i*24 + q]", "A[i*24 + q + j]");
    let scattered = PRODUCT
        .replace("s: f32 = acc[i1, j1]\n", "s: f32 = acc[i1, j1]\n      w: i32 = index j1*2\n")
        .replace("C[i1*64 + j1]", "C[i1*128 + w]");
    let large = PRODUCT.replace("20", "2000");
    let added = PRODUCT.replace("C: ptr f32", "C: ptr f32 div 16").replace(
        "s: f32 = acc[i1, j1]\n",
        "r: f32 = acc[i1, j1]\n      u: f32 = load C[i1*64 + j1]\n      s: f32 = r + u\n",
    );
    for (before, line, ctx, why) in [
        (PRODUCT, "stage_read q by c rows", &cpu, "unknown operand `c`; expected a or b"),
        (PRODUCT, "stage_read q by a", &cpu, "expected the form of the copy: rows, panels, windows, shared"),
        (PRODUCT, "stage_read q by a panel 3", &cpu, "unknown form `panel`; did you mean `panels`?"),
        (PRODUCT, "stage_read q by a panels 0", &cpu, "a whole number from 1 on, found `0`"),
        (PRODUCT, "stage_read q by a shared f61", &gpu, "unknown type `f61`; did you mean `f16`?"),
        (PRODUCT, "stage_read i by a rows", &cpu, "it is not the loop over the terms of a contraction"),
        (PRODUCT, "stage_read q by a windows", &cpu, "windows of it do not overlap"),
        (PRODUCT, "stage_read q by a shared", &cpu, "has no threads that share memory"),
        (&both, "stage_read q by a rows", &cpu, "it depends on n"),
        (PRODUCT, "stage_read q by a shared f16", &gpu, "f16 may not have every number of it"),
        (PRODUCT, "tile q by 3 x 64 x 8", &cpu, "blocks of 3 rows do not divide 20"),
        (PRODUCT, "tile q by 20 x 64 x 24", &cpu, "one block has all of it"),
        (PRODUCT, "tile q by 4", &cpu, "expected `by` and x"),
        (PRODUCT, "tile q by 4 x 8", &cpu, "it is not the loop over the keys of attention"),
        (KEYS, "tile k by 4 x 8", &cpu, "it is not the loop over the keys of attention"),
        (KEYS, "tile key by 0 x 8", &cpu, "a whole number from 1 on, found `0`"),
        (KEYS, "tile key by 999999999 x 8", &cpu, "bytes; 268435456 are the most"),
        (PRODUCT, "tile i by 4 x 8 x 8", &cpu, "it is not the loop over the terms of a contraction"),
        (PRODUCT, "tensorize q as regsters 8 x 32 by 16", &cpu, "unknown unit `regsters`; did you mean `registers`?"),
        (PRODUCT, "tensorize q as registers 8 x 32", &cpu, "expected `registers ROWS x COLUMNS by LANES`"),
        (PRODUCT, "tensorize q as registers 8 x 0 by 16", &cpu, "a whole number from 1 on, found `0`"),
        (PRODUCT, "tensorize q as registers 8 x 24 by 16", &cpu, "a tile of 24 columns by 16 lanes does not divide 64"),
        (PRODUCT, "tensorize q as registers 21 x 32 by 16", &cpu, "a tile of 21 rows does not fit 20 rows"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 12", &cpu, "a vector of 12 lanes is none"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 16", &cpu, "an operand has a mask"),
        (PRODUCT, "tensorize q as tiles 8 x 32 by 16", &cpu, "an operand has a mask"),
        (PRODUCT, "tensorize q as threads 4 x 4", &cpu, "has no threads of blocks"),
        (PRODUCT, "tensorize q as registers 8 x 32 by 16", &gpu, "are those of its threads"),
        (PRODUCT, "tensorize q as threads 3 x 4", &gpu, "a tile of 3x4 does not divide 20x64"),
        (PRODUCT, "tensorize q as threads 1 x 1", &gpu, "take 1280 threads of a block, which has at most 1024"),
        (
            HALVES,
            "tensorize q as warps 4 x 1",
            &gpu,
            "32 x 64 elements, 16 x 8 at a time, are not shared by 4 x 1 warps",
        ),
        (HALVES, "tensorize q as rows", &gpu, "expected `rows WARPS`"),
        (HALVES, "tensorize q as rows 3", &gpu, "3 warps do not share 32 rows, 16 at a time"),
        (HALVES, "tensorize q as rows 4", &gpu, "4 warps do not share 32 rows, 16 at a time"),
        (PRODUCT, "tensorize q as rows 1", &cpu, "has no threads of blocks"),
        (ATTENTION, "tensorize k4 as rows 4294967295", &gpu, "warps do not share 32 rows"),
        (
            PRODUCT,
            "stage_write acc",
            &cpu,
            "acc is not filled with a constant, summed up in one stretch of register tiles",
        ),
        (PRODUCT, "stage_write i1 by shared", &cpu, "cpu has no shared memory"),
        (PRODUCT, "stage_write i1 by tam", &gpu, "unexpected `tam`; expected shared or tma"),
        (PRODUCT, "stage_write j1 by shared", &gpu, "the loop does not stand in a block"),
        (PRODUCT, "stage_write i by shared", &gpu, "not two free loops of a constant length that end with one store"),
        (&scattered, "stage_write i1 by shared", &gpu, "where it is stored is computed for each element"),
        (&large, "stage_write i1 by shared", &gpu, "bytes of shared memory, and a block has at most"),
        (PRODUCT, "stage_write i1 by tma", &gpu, "not known to begin at multiples of 16 bytes"),
        (&added, "stage_write i1 by tma", &gpu, "the kernel touches the array otherwise"),
        (PRODUCT, "retype acc to f16", &gpu, "it is more than read and written, element by element"),
        (HALVES, "retype t to f8E4M3FN", &gpu, "f8E4M3FN may not have every number that it holds"),
        (HALVES, "retype t to i32", &gpu, "i32 is another kind of number than f32"),
        (HALVES, "retype t to f32", &gpu, "it holds f32 already"),
    ] {
        let said = one(before, line, ctx).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    let in_order = EDGE.replace("free", "serial");
    let fixed_in_order = in_order.replace("j < n", "n < 50");
    let vectors = EDGE.replace("free", "free vector(8)").replace("loop kernel", "tile kernel");
    let asserts = EDGE.replace("store", "c: i1 = a < 2.0\n    assert c, \"small\"\n    store");
    let whole = TILES.replace("min(32, n)", "32");
    let stores = TILES.replace("t[i1*8 + i2] = a", "t[i1*8 + i2] = a\n      store y[i1*8 + i2] = a");
    let of_threads = BLOCKS.replace("b*16 + r*8 + t < n", "t < 4");
    for (before, line, why) in [
        (ADD, "peel j", "none of its conditions turns once within it"),
        (&in_order, "peel j", "its iterations run in order"),
        (&fixed_in_order, "unswitch j", "its iterations run in order"),
        (&vectors, "peel j", "it is placed already"),
        (&asserts, "peel j", "it contains an assertion"),
        (EDGE, "unswitch j", "it changes each of its conditions, or they are many"),
        (&of_threads, "unswitch t", "none of its conditions holds for all that a block does"),
        (&whole, "trim i1", "all that it fills is read, or it does more"),
        (&stores, "trim i1", "all that it fills is read, or it does more"),
        (TILES, "trim i", "all that it fills is read, or it does more"),
    ] {
        let said = one(before, line, &cpu).map(|k| text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
    // A launched kernel has its grid.
    let launched = ADD.replace(" open", "");
    assert_eq!(one(&launched, "bind i to block.x", &cpu).unwrap_err(), "the launch gives the grid");
}

const PAIRS: &str = "loop kernel k(A: ptr bf16, B: ptr bf16, C: ptr f32) open:
  for i in 0..5: free
    for j in 0..7: free
      local acc: f32
      acc = 0.0
      for k in 0..16: reduce contraction m=i n=j k=k a=a b=b acc=acc
        a: bf16 = load A[i*16 + k]
        b: bf16 = load B[k*7 + j]
        x: f32 = f32(a)
        y: f32 = f32(b)
        c: f32 = acc
        d: f32 = fma(x, y, c)
        acc = d
      s: f32 = acc
      store C[i*7 + j] = s
";

#[test]
fn terms_of_sums_go_in_pairs() {
    let mut cpu = context();
    cpu.target.matrix_units = vec![MatrixUnit::FloatPairs];
    let made = steps(PAIRS, &["pair k"], &cpu, &[80, 112, 35]);
    assert!(made.contains("for k2 in 0..8: reduce contraction") && made.contains("dot2("), "{made}");
    let odd = PAIRS.replace("16", "13").replace("bf13", "bf16");
    let made = steps(&odd, &["pair k"], &cpu, &[65, 91, 35]);
    assert!(made.contains("for k2 in 0..7: reduce contraction"), "{made}");
    // One row by a matrix: neighbours lie side by side in both.
    let row = "loop kernel k(x: ptr bf16, w: ptr bf16, y: ptr f32) open:\n  for j in 0..7: free\n    local s: f32\n    s = 0.0\n    \
               for k in 0..16: reduce combine add(s) from 0.0\n      a: bf16 = load x[k]\n      b: bf16 = load w[j*16 + k]\n      \
               u: f32 = f32(a)\n      v: f32 = f32(b)\n      c: f32 = s\n      d: f32 = fma(u, v, c)\n      \
               s = d\n    t: f32 = s\n    store y[j] = t\n";
    let made = steps(row, &["pair k"], &cpu, &[16, 112, 7]);
    assert!(made.contains("for k2 in 0..8: reduce combine add(s)") && made.contains("load x_pairs[k2]"), "{made}");
    let placed = row.replace("reduce combine", "reduce unroll combine").replace("loop kernel", "tile kernel");
    for (text, line, ctx, why) in [
        (PAIRS, "pair i", &cpu, "it is not the loop of a sum of products"),
        (PAIRS, "pair q", &cpu, "unknown loop `q`"),
        (&placed, "pair k", &cpu, "the loop is placed already"),
        (PAIRS, "pair k", &context(), "has no products of pairs of its type"),
        (&PAIRS.replace("bf16", "f32").replace("f32(", "copy("), "pair k", &cpu, "its operands are f32"),
        (&PAIRS.replace(" open:", ":"), "pair k", &cpu, "the order of its terms is the program's"),
        (
            &odd.replace("j]\n        x", "j] where k < 9 else 1.0\n        x"),
            "pair k",
            &cpu,
            "is not known to be even",
        ),
        (
            &row.replace("d: f32 = fma(u, v, c)", "p: f32 = u * v\n      d: f32 = p - c"),
            "pair k",
            &cpu,
            "it does more for each term than add the product",
        ),
    ] {
        let said = one(text, line, ctx).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn windows_are_written_out() {
    let pool = "loop kernel k(x: ptr f32, y: ptr f32) open:
  for i in 0..4: free
    for j in 0..64: free
      local s: f32
      s = 0.0
      for k in 0..3: reduce combine add(s) from 0.0
        v: f32 = load x[i*64 + j + k - 1] where j + k - 1 >= 0 and j + k - 1 < 64 else 0.0
        s0: f32 = s
        s1: f32 = v + s0
        s = s1
      r: f32 = s
      store y[i*64 + j] = r
";
    for (together, rows) in [(1, 4), (2, 2), (3, 1)] {
        let made = steps(pool, &[&format!("windows i by {together}")], &context(), &[256, 256]);
        assert!(!made.contains("reduce") && made.contains(&format!("for i in 0..{rows}: free")), "{made}");
    }
    for (text, line, ctx, why) in [
        (pool, "windows k by 1", context(), "it holds no free loops, unplaced, around a reduction"),
        (pool, "windows j by 2", context(), "there is no loop around the innermost one"),
        (pool, "windows i by 4000000000", context(), "its body is long"),
        (pool, "windows i by 0", context(), "a whole number from 1 on"),
        (pool, "windows i", context(), "expected `by` and how many neighbours go together"),
        (ADD, "windows i by 1", context(), "it holds no free loops, unplaced, around a reduction"),
        (&pool.replace("0..3", "0..65"), "windows i by 1", context(), "its windows have many positions"),
        (&pool.replace("y[i*64 + j]", "y[i + j*4]"), "windows i by 1", context(), "its results lie apart"),
        (&pool.replace(" open:", ":"), "windows i by 1", context(), "the launch gives the grid"),
        (pool, "windows i by 1", gpu(&[]), "has no vectors for the positions"),
    ] {
        let said = one(text, line, &ctx).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
}

#[test]
fn every_primitive_has_a_form_that_reads() {
    for p in ALL {
        let line = Line { targets: vec!["q".into()], ..Line::new(p.word, vec![], &[], &[]) };
        let said = Step::read(&line, &kernel(ADD)).map(|_| ()).unwrap_err();
        assert!(!said.contains("unknown primitive"), "{}: {said}", p.word);
        assert!(p.doc.ends_with('.') && !p.form.is_empty(), "{}", p.word);
    }
}
