use super::*;

/// A block that turns the rows of what it loads, by way of memory that it takes.
const FLIP: &str = "loop kernel k(x: ptr f32, y: ptr f32, n: i32):\n  p: ptr f32 = alloca 512 align 64\n  for r in 0..4: free\n    \
                    for i in 0..32: free\n      v: f32 = load x[r*32 + i]\n      store p[r*32 + i] = v where i < n\n  for q in 0..4: free\n    \
                    for j in 0..32: free\n      w: f32 = load p[q*32 - j + 31] where j < n else 1.0\n      store y[q*32 + j] = w\n";

#[test]
fn memory_of_a_block_becomes_a_buffer() {
    for (shape, access) in
        [("128", "p[q*32 - j + 31]"), ("4 x 32", "p[q, j*-1 + 31]"), ("1 x 4 x 32", "p[0, q, j*-1 + 31]")]
    {
        let made = steps(FLIP, &[&format!("promote p by {shape}")], &context(), &[128, 128, 32]);
        assert!(made.contains(access) && !made.contains("alloca"), "{made}");
    }
    let twice = FLIP.replace("load p[q*32", "load p[j*2 + q*32").replace("j < n else", "j < 16 else");
    let ordered = FLIP.replace("j < n else 1.0", "j < n else 1.0 acquire");
    let moved = FLIP.replace("  for q", "  o: ptr f32 = p + 1:i64\n  for q");
    for (text, line, why) in [
        (FLIP, "promote p by 4 x 30", "it has 128 elements, and a buffer of [4, 30] 120"),
        (FLIP, "promote p by 32 x 4", "an access may leave its row"),
        (&twice, "promote p by 4 x 32", "an access may leave its row"),
        (FLIP, "promote q by 128", "unknown memory `q`; the memories are p"),
        (FLIP, "promote p", "expected `by` and a number of elements"),
        (FLIP, "promote p by 4 y 32", "unexpected `y`"),
        (ADD, "promote p by 128", "the kernel has no memories"),
        (&ordered, "promote p by 128", "an access is ordered, or of another type than its elements"),
        (&moved, "promote p by 128", "its address is used for more than loads and stores of its elements"),
    ] {
        let said = one(text, line, &context()).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}\n{text}");
    }
}

#[test]
fn accesses_stay_within_memory() {
    let shifted = FLIP.replace("store p[r*32 + i]", "store p[r*32 + i + n - 32]");
    let made = steps(&shifted, &["bound p"], &context(), &[128, 128, 32]);
    assert!(made.contains(" where i < n and 0 <= ") && made.contains(" < 128\n"), "{made}");
    for (text, line, why) in [
        (FLIP, "bound p", "no access may leave it"),
        (FLIP, "bound", "expected the name of a memory behind `bound`"),
        (ADD, "bound p", "the kernel has no memories"),
    ] {
        let said = one(text, line, &context()).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}\n{text}");
    }
}
