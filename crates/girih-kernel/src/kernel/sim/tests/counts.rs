//! Counts against arithmetic.

use super::{Options, kernel, simulate};
use crate::kernel::sim::Counts;

fn rows(text: &str, len: usize, options: &Options) -> (Vec<(String, Counts)>, super::Report) {
    let (report, _) = simulate(&kernel(text), [2, 1, 1], &[("a", vec![0; len])], &[], options);
    assert!(report.is_clean(), "{report}");
    (report.rows.iter().map(|r| (r.statement.text.clone(), r.counts)).collect(), report)
}

#[test]
fn banks_sectors_and_statements() {
    let text = |pitch: u32| {
        format!(
            "kernel k(a: ptr<i32>) threads 64 scratch 0 shared 8448 {{
  shared s: i32[2112] at 0
  for i in 0..4 step 1 {{
    store s[tx*{pitch} + i] = 3:i32
  }}
  x: i32x4 = load a[bx*256 + tx*4]
  y: i32 = load a[tx*2]
  z: i32 = load a[0]
}}
"
        )
    };
    for (pitch, conflicts) in [(33, 1), (32, 32), (2, 2)] {
        // With words that lie two apart, threads share some places.
        let options = Options { races: pitch != 2, ..Options::default() };
        let (rows, report) = rows(&text(pitch), 2048, &options);
        let of = |begin: &str| rows.iter().find(|(t, _)| t.starts_with(begin)).unwrap().1;
        // 2 blocks, 64 threads, 4 trips; 2 warps a block.
        let store = of("store");
        assert_eq!((store.executions, store.shared.requests, store.shared.least), (512, 16, 16));
        assert_eq!((store.shared.taken, store.shared.bytes), (16 * conflicts, 2048));
        // 512 bytes of a warp are 16 sectors; every other word takes twice the least; one word is one sector.
        let global = |begin: &str| (of(begin).global.requests, of(begin).global.taken, of(begin).global.least);
        assert_eq!(global("x: i32x4"), (4, 64, 64));
        assert_eq!(global("y: i32"), (4, 32, 16));
        assert_eq!(global("z: i32"), (4, 4, 4));
        // The test before the first trip, and one after each.
        assert_eq!(of("for").executions, 128 + 512);
        assert_eq!(report.total.executions, 640 + 512 + 3 * 128);
        assert_eq!((report.barriers, report.blocks), (0, 2));
    }
}

#[test]
fn counting_and_looking_for_races_can_be_left_out() {
    let text = "kernel k(a: ptr<i32>) threads 64 scratch 0 {\nstore a[0] = 1:i32\n}\n";
    let options = Options { races: false, counts: false, ..Options::default() };
    let (rows, report) = rows(text, 1, &options);
    assert_eq!((rows[0].1.executions, rows[0].1.global.requests), (128, 0));
    assert!(report.to_string().contains("races were not looked for"), "{report}");
}

#[test]
fn instructions_are_counted_by_kind() {
    use crate::kernel::sim::Instruction::*;
    let text = "kernel k(a: ptr<i32>) threads 64 scratch 0 shared 256 {
  shared s: i32[64] at 0
  x: i32 = load a[bx*64 + tx]
  store s[tx] = x
  barrier
  if tx < 32 {
    y: i32 = load s[tx + 32]
    z: i32 = addi x, y
    other: i32 = shuffle xor z, 1:i32
    store a[bx*64 + tx] = other
  }
}
";
    let (_, report) = rows(text, 128, &Options::default());
    // 2 blocks of 64 threads; half of the threads go into the branch.
    let expected = [
        (Arithmetic, 64),
        (ControlFlow, 128),
        (GlobalLoad, 128),
        (GlobalStore, 64),
        (SharedLoad, 64),
        (SharedStore, 128),
        (Barrier, 128),
        (Shuffle, 64),
    ];
    assert_eq!(report.instructions().into_iter().collect::<Vec<_>>(), expected);
    assert_eq!((report.shared_bytes, report.total.executions), (256, expected.iter().map(|e| e.1).sum()));
}
