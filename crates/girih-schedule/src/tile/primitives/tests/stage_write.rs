use super::*;

/// Rows of one box and of several, and rows that threads copy.
#[test]
fn results_are_collected_before_they_are_stored() {
    let elements = [20 * 24, 24 * 64, 20 * 64, 17];
    let aligned = PRODUCT.replace("C: ptr f32", "C: ptr f32 div 16");
    let made = steps(&aligned, &["stage_write i1 by shared"], &gpu(&[]), &elements);
    assert!(made.contains("local C_s: f32[20, 64] shared\n") && !made.contains("free tensor"), "{made}");
    let made = steps(&aligned, &["stage_write i1 by tma"], &gpu(&[]), &elements);
    assert!(made.contains("local C_s: f32[2, 20, 32] shared swizzle(128)") && made.contains("free tensor"), "{made}");
    let narrow = aligned.replace("64]", "32]").replace("0..64", "0..32").replace("*64", "*32");
    let made = steps(&narrow, &["stage_write i1 by tma"], &gpu(&[]), &[20 * 24, 24 * 32, 20 * 32, 17]);
    assert!(made.contains("local C_s: f32[20, 32] shared swizzle(128)") && made.contains("free tensor"), "{made}");
}
