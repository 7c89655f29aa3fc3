use super::*;

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
