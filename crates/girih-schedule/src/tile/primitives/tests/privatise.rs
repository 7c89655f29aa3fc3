use super::*;

#[test]
fn iterations_run_in_order_with_buffers_of_their_own() {
    for lines in [&["serial i", "privatise i"], &["privatise i", "serial i"]] {
        let made = steps(OWN, lines, &gpu(&[]), &[60, 60]);
        assert!(made.contains("  for i in 0..3: serial\n    local v: f32[1, 20]\n"), "{made}");
        assert!(made.contains("v[0, j] = a\n") && made.contains("v[0, 19 - k]\n"), "{made}");
    }
}
