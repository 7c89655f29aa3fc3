use super::*;

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

/// Channels side by side, whose windows reach into the padding at both ends of a row.
const CHANNELS: &str = "loop kernel k(x: ptr f32, w: ptr f32, y: ptr f32) open:
  for i in 0..2: free
    for j in 0..12: free
      for c in 0..16: free
        local s: f32
        s = 0.0
        for k in 0..5: reduce combine add(s) from 0.0
          v: f32 = load x[(i*12 + j + k - 2)*16 + c] where j + k - 2 >= 0 and j + k - 2 < 12 else 0.0
          u: f32 = load w[k*16 + c]
          s0: f32 = s
          s1: f32 = fma(v, u, s0)
          s = s1
        r: f32 = s
        store y[(i*12 + j)*16 + c] = r
";

#[test]
fn neighbours_share_what_they_load() {
    // Two columns at each edge have four elements in their windows; the eight between them go in groups.
    for (together, groups, loads) in [(1, 1, 5), (2, 1, 6), (3, 2, 7 + 6), (8, 1, 12)] {
        let made = steps(CHANNELS, &[&format!("windows i by {together}")], &context(), &[384, 80, 384]);
        assert_eq!(made.matches("load x").count(), 4 + loads + 4, "{made}");
        assert_eq!(made.matches("for j").count(), 2 + groups, "{made}");
        if together > 1 {
            assert!(!made.contains("where"), "{made}");
        }
    }
}
