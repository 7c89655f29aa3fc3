use super::*;

#[test]
fn loops_are_cut_and_placed() {
    let cpu = context();
    let made = steps(ADD, &["split j by 8 -> j1, j2", "vector j2 by 8"], &cpu, &[60, 60]);
    assert!(made.contains("for j2 in 0..min(8, 20 - j1*8): free vector(8)"), "{made}");
    let far = ADD.replace("i*20", "i*4096").replace("0..20", "0..32").replace("0..3", "0..12");
    let made = steps(&far, &["prefetch i by 2"], &cpu, &[49152, 49152]);
    assert!(
        made.contains("for i in 0..12: free\n    prefetch x[(i + 2)*4096]\n    prefetch x[(i + 2)*4096 + 16]\n"),
        "{made}"
    );
    let made = steps(TURNED, &["vector i, j by 8"], &cpu, &[64, 64]);
    assert!(made.contains("for i in 0..8: free vector(8)\n    for j in 0..8: free vector(8)"), "{made}");
    let made = steps(ADD, &["split i by 3 -> io, ii", "unroll ii"], &cpu, &[60, 60]);
    assert!(made.contains("for io in 0..1: free\n    for ii in 0..3: free unroll"), "{made}");
    let made = steps(ADD, &["reorder j, i"], &cpu, &[60, 60]);
    assert!(made.contains("  for j in 0..20: free\n    for i in 0..3: free\n      a: f32"), "{made}");
    let made = steps(SUMS, &["vector k by 8 x 4"], &cpu, &[210, 3]);
    assert!(made.contains("for k in 0..70: reduce vector(8) combine add(s) from 0.0 x 4"), "{made}");
    let made = steps(SUMS, &["split k by 16 -> kt, kk", "vector kk by 4"], &cpu, &[210, 3]);
    assert!(
        made.contains("for kt in 0..5: reduce\n")
            && made.contains("for kk in 0..min(16, 70 - kt*16): reduce vector(4)"),
        "{made}"
    );
    let made = steps(SUMS, &["bind i to block.x", "bind k to thread 32"], &gpu(&[]), &[210, 3]);
    assert!(
        made.contains("for i in 0..3: free block(x)") && made.contains("reduce thread combine add(s) from 0.0 x 32"),
        "{made}"
    );
    let made = steps(SUMS, &["enclose -> b"], &gpu(&[]), &[210, 3]);
    assert!(made.contains("  for b in 0..1: free block(x)\n    for i in 0..3: free\n"), "{made}");
}

/// Any size cuts any loop, and any of the two orders of cutting and fusing computes the same.
#[test]
fn sizes_of_all_kinds_leave_the_value() {
    for size in [1, 2, 3, 7, 19, 20, 21, 64] {
        for guard in ["", " guard"] {
            let split = format!("split j by {size}{guard} -> a, c");
            steps(ADD, &[&split], &context(), &[60, 60]);
            let split = format!("split n by {size}{guard} -> a, c");
            steps(ADD, &["fuse i, j -> n", &split], &context(), &[60, 60]);
        }
        steps(SUMS, &[&format!("split k by {size} -> a, c")], &context(), &[210, 3]);
    }
}
