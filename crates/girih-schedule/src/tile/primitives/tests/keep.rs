use super::*;

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
