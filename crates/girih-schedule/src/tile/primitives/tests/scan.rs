use super::*;

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
        ("scan k by 16", "expected x behind `16`"),
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
