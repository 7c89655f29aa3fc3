use super::*;

/// A row that two passes read, from either end.
const ROW: &str = "loop kernel k(x: ptr f32, y: ptr f32):\n  local t: f32[50]\n  local s: f32\n  for i in 0..50: free\n    \
                   v: f32 = load x[i]\n    u: f32 = v + v\n    t[i] = u\n  s = 0.0\n  for j in 0..50: reduce combine add(s) from 0.0\n    \
                   a: f32 = t[j]\n    b: f32 = s\n    c: f32 = a + b\n    s = c\n  e: f32 = s\n  for k in 0..50: free\n    \
                   d: f32 = t[49 - k]\n    f: f32 = d + e\n    store y[k] = f\n";

#[test]
fn passes_compute_a_row_anew() {
    let mut apart = context();
    apart.assume.no_alias = true;
    let made = steps(ROW, &["recompute t"], &apart, &[50, 50]);
    assert!(made.matches("load x[").count() == 2 && !made.contains("local t"), "{made}");
    let part = ROW.replace("for i in 0..50", "for i in 0..49");
    let changed = ROW.replace("    store y[k] = f", "    store x[k] = f");
    for (text, line, ctx, why) in [
        (ROW, "recompute t", context(), "the kernel may store to what its elements are loaded from"),
        (&changed, "recompute t", apart.clone(), "the kernel may store to what its elements are loaded from"),
        (&part, "recompute t", apart.clone(), "it is not written as a whole"),
        (ROW, "recompute s", apart.clone(), "it is used by other statements than loops"),
        (ROW, "recompute q", apart.clone(), "unknown buffer `q`"),
    ] {
        let said = one(text, line, &ctx).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
}
