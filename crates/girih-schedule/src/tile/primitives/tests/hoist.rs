use super::*;

#[test]
fn what_stands_before_a_loop_goes_in_and_comes_out() {
    let made = steps(ROWS, &["sink j"], &context(), &[4, 200]);
    assert!(made.contains("    for j in 0..50: free\n      t: f32 = load x[i]\n"), "{made}");
    let back = steps(&made.replace("tile kernel", "loop kernel"), &["hoist j"], &context(), &[4, 200]);
    assert!(back.contains("    t: f32 = load x[i]\n    for j in 0..50: free\n"), "{back}");
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

/// Rows that turn the same weights first.
const TURNED: &str = "loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:\n  for r in 0..6: free\n    local t: f32[3, 8]\n    \
                      for k in 0..3: free\n      for c in 0..8: free\n        u: f32 = load w[c*3 + k]\n        t[k, c] = u\n    \
                      for c1 in 0..8: free\n      a: f32 = load x[r*8 + c1]\n      b: f32 = t[1, c1]\n      p: f32 = a * b\n      \
                      store y[r*8 + c1] = p\n";

#[test]
fn arrays_that_rows_fill_alike_are_filled_once() {
    let made = steps(TURNED, &["hoist r"], &context(), &[48, 24, 48]);
    assert!(made.contains("open:\n  local t: f32[3, 8]\n  for k in 0..3: free\n"), "{made}");
    // In blocks of rows that do not come out even.
    let made = steps(TURNED, &["split r by 4 -> b, r", "hoist r"], &context(), &[48, 24, 48]);
    assert!(made.contains("  for b in 0..2: free\n    local t: f32[3, 8]\n"), "{made}");
    // Not where a row fills it with its own, or writes to it afterwards.
    let own = TURNED.replace("load w[c*3 + k]", "load w[c*3 + k + r]");
    let after = TURNED.replace("      p: f32", "      t[1, c1] = a\n      p: f32");
    for other in [own, after, TURNED.replace("load w[c*3 + k]", "load y[c*3 + k]")] {
        assert!(one(&other, "hoist r", &context()).is_err(), "{other}");
    }
}
