use super::*;
use crate::tile::tests::COUNT;

#[test]
fn numbers_are_counted_in_one_pass() {
    for copies in [1, 3, 4] {
        let made = steps(COUNT, &[&format!("count j by {copies}")], &context(), &[100, 64, 90]);
        assert!(made.contains(&format!("local bins: i32[{copies}, 65]")), "{made}");
    }
    let made = steps(COUNT, &["count j by shared"], &gpu(&[]), &[100, 64, 90]);
    assert!(made.contains("atomic add bins[at], 1 relaxed"), "{made}");
    let far = COUNT.replace("0..64", "0..100000");
    for (text, line, ctx, why) in [
        (COUNT, "count i by 4", context(), "it is not free, or is placed already"),
        (COUNT, "count j by shared", context(), "blocks have no threads"),
        (COUNT, "count j by 0", context(), "expected how many copies of the bins there are"),
        (ADD, "count j by 4", context(), "the blocks of a kernel without a grid would share the numbers"),
        (OWN, "count j by 4", context(), "it counts nothing that equals its number"),
        (&far, "count j by shared", gpu(&[]), "its bins have 400004 bytes; "),
        (
            &COUNT.replace("load x[i]", "load x[i + j]"),
            "count j by 4",
            context(),
            "the counted elements depend on the number",
        ),
    ] {
        let said = one(text, line, &ctx).map(|k| self::text(&k)).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
    }
}
