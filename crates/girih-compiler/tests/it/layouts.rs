//! Images whose layout is not that of the result.

use girih_compiler::base::rule::Log;
use girih_compiler::graph::parse::{check, no_data};
use girih_compiler::loops::model::{Options, lower};

use super::plans::scheduled;

#[test]
fn windows_along_lines_are_computed_before_their_result_is_turned() {
    let text = "tensor graph g():\n  x: f32[4, 9, 8] = input\n  w: f32[4, 7, 6, 3, 3] = map x[i0, i1 + i3, i2 + i4]\n  \
                s: f32[4, 7, 6, 1, 1] = reduce sum w over 3, 4\n  o: f32[7, 6, 4] = map s[i2, i0, i1, 0, 0]\n  output out0 = o\n";
    let (graph, _) = check(text, &no_data).unwrap();
    let plan = |workers| lower(&graph, &Options { workers, ..Options::default() }, &mut Log::default()).unwrap();
    let lines = plan(true);
    assert_eq!(lines.steps.len(), 2);
    // Blocks of threads read what lies apart from the memory that they share.
    assert_eq!(plan(false).steps.len(), 1);
    // Small integers, whose sums are exact.
    let x: Vec<f32> = (0..4 * 9 * 8).map(|i| (i * 37 % 19) as f32 - 9.0).collect();
    let mut want = vec![];
    for (h, w, c) in (0..7).flat_map(|h| (0..6).flat_map(move |w| (0..4).map(move |c| (h, w, c)))) {
        let at = |k: usize| x[c * 72 + (h + k / 3) * 8 + w + k % 3];
        want.push((0..9).map(at).sum::<f32>());
    }
    let bytes = |x: &[f32]| x.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    assert_eq!(scheduled(&lines, &[], &[bytes(&x)])[0], bytes(&want));
}
