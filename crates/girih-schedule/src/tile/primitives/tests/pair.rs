use super::*;
use crate::tile::tests::BF16_PRODUCT;

#[test]
fn terms_of_sums_go_in_pairs() {
    let mut cpu = context();
    cpu.target.matrix_units = vec![MatrixUnit::FloatPairs];
    let pairs = BF16_PRODUCT.replace("512", "5").replace("768", "7").replace("1024", "16");
    let made = steps(&pairs, &["pair k"], &cpu, &[80, 112, 35]);
    assert!(made.contains("for k2 in 0..8: reduce contraction") && made.contains("dot2("), "{made}");
    let odd = pairs.replace("16", "13").replace("bf13", "bf16");
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
        (&pairs, "pair i", &cpu, "it is not the loop of a sum of products"),
        (&pairs, "pair q", &cpu, "unknown loop `q`"),
        (&placed, "pair k", &cpu, "the loop is placed already"),
        (&pairs, "pair k", &context(), "has no products of pairs of its type"),
        (&pairs.replace("bf16", "f32").replace("f32(", "copy("), "pair k", &cpu, "its operands are f32"),
        (&pairs.replace(" open:", ":"), "pair k", &cpu, "the order of its terms is the program's"),
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
