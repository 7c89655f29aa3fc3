use super::*;

#[test]
fn partial_results_have_a_nest() {
    for (parts, size) in [(1, 1), (4, 1), (3, 5), (16, 8), (64, 1)] {
        let names = if size > 1 { "p, e, v" } else { "p, e" };
        let line = format!("rfactor k by {parts} x {size} -> {names}");
        let made = steps(SUMS, &[&line], &context(), &[210, 3]);
        assert!(made.contains(&format!("local s_parts: f32[{parts}, 3]\n  for p in 0..{parts}: free\n")), "{made}");
    }
    let lines =
        ["split i by 2 guard -> b, t", "bind b to block.x", "rfactor k by 16 x 1 -> p, e", "bind p, t_1 to thread 32"];
    let made = steps(SUMS, &lines, &gpu(&[]), &[210, 3]);
    assert!(made.contains("local s_parts: f32[16, 2] shared\n    for t in 0..32: free thread\n"), "{made}");
    assert!(made.contains("for p_1 in 0..16: reduce combine add(s) from 0.0\n"), "{made}");
}

#[test]
fn lanes_exchange_partial_results() {
    let rows = SUMS.replace("0..3: free", "0..8: free").replace("70", "64");
    let lines =
        ["split i by 4 -> b, r", "bind b to block.x", "rfactor k by 8 x 4 -> q, e, v", "unroll v", "bind q_1 to lanes"];
    let made = steps(&rows, &lines, &gpu(&[]), &[512, 8]);
    assert!(made.contains("local s_parts: f32[32] private\n    for t in 0..32: free thread\n"), "{made}");
    assert!(made.contains("store y[b*4 + t_1//8] = t_2 where t_1%8 == 0\n"), "{made}");
}

#[test]
fn what_lanes_do_not_share_says_why() {
    let rows = SUMS.replace("0..3: free", "0..8: free");
    let made = |by: &str, lines: &[&str]| {
        let lines: Vec<&str> = [by, "bind b to block.x"].into_iter().chain(lines.iter().copied()).collect();
        steps(&rows, &lines, &gpu(&[]), &[560, 8])
    };
    let shared = made("split i by 4 -> b, r", &["rfactor k by 8 x 4 -> q, e, v"]);
    let few = made("split i by 2 -> b, r", &["rfactor k by 8 x 4 -> q, e, v"]);
    let guarded = made("split i by 3 guard -> b, r", &["rfactor k by 32 x 1 -> q, e"]);
    let alone = steps(&rows, &["rfactor k by 8 x 1 -> q, e"], &gpu(&[]), &[560, 8]);
    for (text, line, why) in [
        (SUMS, "bind k to lanes", "expected a power of two of iterations, from 2 to 32"),
        (&rows.replace("0..70", "0..16"), "bind k to lanes", "it does more than fold what a nest before has written"),
        (&shared, "bind q to lanes", "it is placed already, or is not a reduction that may be reassociated"),
        (&shared, "bind q_1, e to lanes", "lanes take one reduction"),
        (&few, "bind q_1 to lanes", "16 threads do not fill whole warps, or are more than a block has: 1024"),
        (&guarded, "bind q_1 to lanes", "it does more than fold what a nest before has written"),
        (&alone, "bind q_1 to lanes", "what it folds is not a block's own"),
        (
            &shared.replace("      store y", "      t_3: f32 = load x[0] acquire\n      store y"),
            "bind q_1 to lanes",
            "more is done with it than arithmetic and stores",
        ),
    ] {
        let said = one(text, line, &gpu(&[])).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}\n{text}");
    }
}
