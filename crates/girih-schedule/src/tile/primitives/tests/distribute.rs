use super::*;

#[test]
fn columns_become_rows() {
    let cpu = context();
    let distributed = steps(COLUMNS, &["distribute j"], &cpu, &[960, 960]);
    for part in ["local s: f32[20]", "local t_of: f32[20]", "for k in 0..48: reduce\n    for j_1 in 0..20: free"] {
        assert!(distributed.contains(part), "{part}\n{distributed}");
    }
    let jammed = steps(COLUMNS, &["distribute j", "jam k by 4"], &cpu, &[960, 960]);
    assert!(jammed.contains("for k4 in 0..12: reduce"), "{jammed}");
    let rows = steps(SUMS, &["jam i by 3"], &cpu, &[210, 3]);
    assert!(rows.contains("for i3 in 0..1: free") && rows.contains("combine add(s, s_1, s_2)"), "{rows}");
    let folds = |text: &str, line: &str| {
        let made = steps(text, &[line], &cpu, &[960, 960]);
        assert!(made.contains("for k4 in 0..12: reduce") && made.matches("load x[").count() == 5, "{made}");
    };
    folds(COLUMNS, "jam k by 4");
    // In a fixed order too: each term is folded after the one before it.
    folds(&COLUMNS.replace(" combine add(s) from 0.0", ""), "jam k by 4");
    // Small integers: sums in another order are the same.
    let lines = ["rfactor k by 10 -> ko, ki", "distribute j", "reorder i, j_5"];
    let rows = steps(COLUMNS, &lines, &cpu, &[960, 960]);
    assert!(rows.contains("for ko in 0..5: reduce") && rows.contains("for i in 0..48: free\n    for j_5"), "{rows}");
    for (m, n) in [(8, 8), (40, 16), (33, 50)] {
        let turned = TURNED.replace("i in 0..8", &format!("i in 0..{m}")).replace("j in 0..8", &format!("j in 0..{n}"));
        let turned = turned.replace("j*8", &format!("j*{m}")).replace("i*8", &format!("i*{n}"));
        let made = steps(&turned, &["turn i, j by 16"], &cpu, &[m * n, m * n]);
        assert!(made.contains("local block: f32[16, 16]"), "{made}");
    }
    let counted = ADD.replace("i*20 + j]", "i*20 + j//4*4 + j%4]").replace("load x[", "load x[0*");
    let turns = ADD.replace("i in 0..3: free", "i in 0..3: serial").replace("j in 0..20: free", "j in 0..20: serial");
    let made = steps(&turns, &["fuse i, j -> n"], &cpu, &[60, 60]);
    assert!(made.contains("for n in 0..60: serial"), "{made}");
    let made = steps(&counted, &["digits j by 5 x 2 -> a, c, d"], &cpu, &[60, 60]);
    assert!(made.contains("for a in 0..2: free\n      for c in 0..5: free\n        for d in 0..2: free"), "{made}");
    let summed = COLUMNS.replace("reduce combine add(s) from 0.0", "reduce");
    let made = steps(&summed, &["digits k by 4 unroll -> k1, k2"], &cpu, &[960, 960]);
    assert!(made.contains("for k1 in 0..12: reduce\n      for k2 in 0..4: reduce unroll"), "{made}");
    let pairs = ADD.replace("j in 0..20", "j in 0..2").replace("i*20", "i*2");
    let made = steps(&pairs, &["interleave j"], &cpu, &[6, 6]);
    assert!(made.contains("store y[i*2] = ") && made.contains("store y[i*2 + 1] = "), "{made}");
    // The second of two loops with one axis.
    let nest = pairs.find("  for i").map_or("", |at| &pairs[at..]);
    let twice = format!(
        "{pairs}{}",
        nest.replace("a: f32", "c: f32").replace("b: f32 = a + a", "d: f32 = c + c").replace("= b", "= d")
    );
    let made = steps(&twice, &["interleave j:2"], &cpu, &[6, 6]);
    assert!(made.contains("store y[i*2 + j] = b\n") && made.contains("store y[i*2 + 1] = "), "{made}");
    let ends = COLUMNS.replace("k in 0..48", "k in 0..j");
    let counts = COLUMNS.replace("combine add(s) from 0.0", "");
    for (text, line, why) in [
        (&*ends, "distribute j", "the bounds of its loops depend on each other"),
        (ADD, "distribute j", "no loop stands in it"),
        (ADD, "interleave j", "it does not store a few kinds of elements in turn"),
        (ADD, "interleave i", "it is not the last statement in the body of a loop"),
        (ADD, "digits j by 3 -> a, c", "3 does not divide its 20 iterations"),
        (ADD, "digits j by 2 x 2 -> a, c", "expected `->` and a name more than there are counts"),
        (ADD, "digits j by 2 y 2 -> a, c, d", "unexpected `y`; the words here are unroll"),
        (PRODUCT, "digits i by 2 -> a, c", "it counts rows, columns or terms of a product"),
        (
            COLUMNS,
            "digits k by 2 -> a, c",
            "it is not free or a reduction in a fixed order, is placed already, or does not count from 0",
        ),
        (&distributed, "jam k by 5", "5 of 48 iterations cannot be taken together"),
        (COLUMNS, "jam k by 5", "5 of 48 iterations cannot be taken together"),
        (ADD, "jam j by 4", "it holds more than a free loop, or is placed already"),
        (&counts, "rfactor k by 4 -> a, b", "the order of its reduction is fixed"),
        (COLUMNS, "rfactor i by 4 -> a, b", "the order of its reduction is fixed"),
        (COLUMNS, "turn j, i by 16", "they are not free loops that stand in each other with nothing between them"),
        (ADD, "turn j by 16", "it takes two loops: the one that loads go along, and the other"),
        (ADD, "turn i, j by 1", "expected how long the side of a block is, a whole number from 2 on, found `1`"),
        (ADD, "turn i, j by 16", "nothing is loaded along the first loop"),
        (TURNED, "turn i, i by 16", "its loops do not start at 0"),
    ] {
        assert_eq!(one(text, line, &cpu).map(|_| ()), Err(why.to_string()), "{line}\n{text}");
    }
}
