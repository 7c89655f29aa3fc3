use super::*;

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
