use super::*;

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
