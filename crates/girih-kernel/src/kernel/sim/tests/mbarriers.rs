//! Mbarriers and TMA: pipelines of every depth, and what is wrong with others.

use super::super::{Finding, Options, Report};
use super::{Kind, clean, found, kernel, schedules, simulate};

/// A ring of `depth` slabs of 64 numbers that TMA fills, each when all threads have read what was there before. Every thread
/// sums what is there. Each line is a statement, so that a test can leave one out.
fn pipeline(depth: u32) -> String {
    let bytes = depth * 256;
    format!(
        "kernel pipeline(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 scratch 0 shared {} {{
shared s: i32[{}] at 0
shared full: mbarrier[{depth}] at {bytes}
shared free: mbarrier[{depth}] at {}
tensor rows: i32[n, 64] of a strides (64) box [1, 64]
var sum: i32 = 0:i32
if tx == 0 {{
for i in 0..{depth} step 1 {{
init full[i] count 1
init free[i] count 64
}}
fence init
}}
barrier
if tx == 0 {{
for j in 0..min({depth}, n) step 1 {{
arrive full[j] expect 256
copy tensor s[j*64] = rows[j, 0] on full[j]
}}
}}
for k in 0..n step 1 {{
wait full[k%{depth}] parity k//{depth}%2
y: i32 = load s[k%{depth}*64 + 63 - tx]
t: i32 = addi sum, y
sum = t
arrive free[k%{depth}]
if tx == 0 and k + {depth} < n {{
wait free[k%{depth}] parity k//{depth}%2
arrive full[k%{depth}] expect 256
copy tensor s[k%{depth}*64] = rows[k + {depth}, 0] on full[k%{depth}]
}}
}}
store o[tx] = sum
}}
",
        bytes + 128,
        depth * 64,
        bytes + 64,
    )
}

fn numbers(slabs: usize) -> [(&'static str, Vec<i32>); 2] {
    [("a", (0..64 * slabs.max(1) as i32).map(|n| n * 7 + 3).collect()), ("o", vec![-1; 64])]
}

#[test]
fn pipelines_of_every_depth_and_length_are_clean() {
    for depth in 1..=6 {
        for slabs in 0..=8 {
            let arrays = numbers(slabs);
            let sums: Vec<i32> = (0..64).map(|t| (0..slabs).map(|k| arrays[0].1[k * 64 + 63 - t]).sum()).collect();
            clean(&pipeline(depth), [1; 3], &arrays, &[slabs as u64], &sums);
        }
    }
}

/// The first line that begins so is left out.
fn without(text: &str, line: &str) -> String {
    assert!(text.lines().any(|l| l.starts_with(line)), "{line}\n{text}");
    let at = text.lines().position(|l| l.starts_with(line));
    text.lines().enumerate().filter(|(n, _)| Some(*n) != at).map(|(_, l)| format!("{l}\n")).collect()
}

fn reports(text: &str) -> Vec<(Options, Report)> {
    let kernel = kernel(text);
    let run = |o: Options| (o.clone(), simulate(&kernel, [1; 3], &numbers(8), &[8], &o).0);
    schedules().into_iter().map(run).collect()
}

/// Asserts that every schedule finds one of the kinds.
fn finds(text: &str, kinds: &[Kind]) {
    for (options, report) in reports(text) {
        let is = |f: &Finding| kinds.contains(&f.kind);
        assert!(report.findings.iter().any(is), "{kinds:?}, {options:?}\n{report}\n{text}");
    }
}

#[test]
fn everything_in_a_pipeline_is_needed() {
    use Kind::*;
    for depth in 2..=4 {
        let text = pipeline(depth);
        finds(&without(&text, "fence init"), &[InitFence]);
        finds(&without(&text, "barrier"), &[Init]);
        finds(&without(&text, "wait full"), &[InFlight, ReadAfterWrite]);
        finds(&without(&text, "wait free"), &[WriteAfterRead, InFlight]);
        finds(&without(&text, "arrive free"), &[Deadlock]);
        finds(&without(&text, "arrive full"), &[Deadlock, Bytes]);
        finds(&without(&text, "copy tensor"), &[Deadlock]);
        finds(&without(&text, "init full"), &[Init]);
        finds(&text.replace("full[i] count 1", "full[i] count 2"), &[Deadlock]);
        // Nobody waits for the last thread to arrive: a schedule in which that is not the thread that copies shows it.
        let all = reports(&text.replace("free[i] count 64", "free[i] count 63"));
        assert!(all.iter().any(|(_, r)| r.findings.iter().any(|f| f.kind == WriteAfterRead)), "{}", all[0].1);
        finds(&text.replace("expect 256", "expect 512"), &[Deadlock]);
    }
}

/// Without a barrier of free slots, a thread that lags by two phases takes one for another: some schedule shows it.
#[test]
fn a_parity_says_only_so_much() {
    let text = without(&pipeline(2), "wait free");
    let all = reports(&text);
    let aliased = all.iter().find_map(|(_, r)| r.findings.iter().find(|f| f.kind == Kind::Aliased));
    let finding = aliased.unwrap_or_else(|| panic!("{}\n{text}", all[1].1));
    assert!(finding.message.starts_with("a thread waits for phase "), "{finding}");
    assert!(finding.message.contains("of the mbarrier `full["), "{finding}");
}

#[test]
fn a_deadlock_says_what_each_phase_lacks() {
    let (_, report) = reports(&pipeline(2).replace("expect 256", "expect 300")).remove(0);
    let finding = report.findings.iter().find(|f| f.kind == Kind::Deadlock).unwrap_or_else(|| panic!("{report}"));
    assert!(finding.message.contains("wait at line 22: `wait full[k%2] parity k//2%2`"), "{finding}");
    assert!(finding.message.contains("`full[0]` is in phase 0, which lacks 44 bytes"), "{finding}");
    assert!(finding.help.unwrap().contains("`arrive` as often as `count` says"), "{finding}");
    assert!(report.stopped.is_some());
    let (_, report) = reports(&without(&pipeline(2), "arrive free")).remove(0);
    let finding = report.findings.iter().find(|f| f.kind == Kind::Deadlock).unwrap_or_else(|| panic!("{report}"));
    assert!(finding.message.contains("`free[0]` is in phase 0, which lacks 64 of 64 arrivals"), "{finding}");
}

/// One copy of a box to `s`, which all threads then store.
fn copied(tensor: &str, from: &str, bytes: u32, before: &str) -> String {
    format!(
        "kernel k(a: ptr<i32>, o: ptr<i32>, n: i32) threads 32 scratch 0 shared 4224 {{
shared s: i32[1024] at 0
shared full: mbarrier[1] at 4096
tensor t: {tensor}
{before}
if tx == 0 {{
init full[0] count 1
fence init
}}
barrier
if tx == 0 {{
arrive full[0] expect {bytes}
copy tensor s[0] = t[{from}] on full[0]
}}
wait full[0] parity 0
for i in 0..{count} step 1 {{
y: i32 = load s[i*32 + tx] where i*32 + tx < {n}
store o[i*32 + tx] = y where i*32 + tx < {n}
}}
}}
",
        n = bytes / 4,
        count = bytes / 128 + 1,
    )
}

#[test]
fn a_box_has_zeros_past_the_edges_and_all_its_bytes_count() {
    // 5 rows of 10 numbers, 12 apart; boxes of 4 by 8 that hang over each edge.
    let a: Vec<i32> = (1..=60).collect();
    for (row, column) in [(0, 0), (2, 4), (3, 8), (-2, -3), (5, 0), (0, 10), (4, -7)] {
        let at = |n: i64| {
            let (r, c) = (row + n / 8, column + n % 8);
            if (0..5).contains(&r) && (0..10).contains(&c) { (r * 12 + c + 1) as i32 } else { 0 }
        };
        let expected: Vec<i32> = (0..32).map(at).collect();
        let text = copied("i32[5, 10] of a strides (12) box [4, 8]", &format!("{row}, {column}"), 128, "");
        clean(&text, [1; 3], &[("a", a.clone()), ("o", vec![-1; 32])], &[5], &expected);
    }
    // Three dimensions.
    let a: Vec<i32> = (0..4 * 3 * 8).collect();
    let text = copied("i32[4, 3, 8] of a strides (24, 8) box [2, 2, 4]", "1, 2, 4", 64, "");
    let value = |n: usize| if (n / 4).is_multiple_of(2) { ((1 + n / 8) * 24 + 16 + 4 + n % 4) as i32 } else { 0 };
    clean(&text, [1; 3], &[("a", a), ("o", vec![-1; 16])], &[4], &(0..16).map(value).collect::<Vec<_>>());
}

/// A swizzle exchanges pieces of 16 bytes: piece `p` of row `r` lies at `p ^ r`, in groups of rows equal to the number
/// of pieces.
#[test]
fn a_swizzle_exchanges_pieces_of_a_row() {
    for (bytes, rows) in [(128u32, 8usize), (64, 8), (32, 8)] {
        let row = bytes as usize / 4;
        let a: Vec<i32> = (0..(rows * row) as i32).collect();
        let tensor = format!("i32[{rows}, {row}] of a strides ({row}) box [{rows}, {row}] swizzle {bytes}");
        let text = copied(&tensor, "0, 0", bytes * rows as u32, "");
        let mut expected = vec![0; rows * row];
        for (n, x) in a.iter().enumerate() {
            let (r, piece, word) = (n / row, n % row / 4, n % 4);
            // Rows of 128 bytes: one for each piece. Shorter ones share 128 bytes.
            let line = r * row / 32;
            let moved = piece ^ (line % (row / 4));
            expected[r * row + moved * 4 + word] = *x;
        }
        clean(&text, [1; 3], &[("a", a), ("o", vec![-1; rows * row])], &[0], &expected);
    }
}

fn told(text: &str, numbers: usize) -> Report {
    simulate(
        &kernel(text),
        [1; 3],
        &[("a", (0..numbers as i32).collect()), ("o", vec![0; 64])],
        &[6],
        &Options::default(),
    )
    .0
}

#[test]
fn what_tma_does_not_take_is_told() {
    let whole = "i32[2, 32] of a strides (32) box [2, 32]";
    assert_eq!(found(&told(&copied(whole, "0, 0", 256, ""), 64)), []);
    // A stride known only at the launch.
    let report = told(&copied("i32[2, 4] of a strides (n) box [2, 4]", "0, 0", 32, ""), 64);
    assert_eq!(report.findings[0].kind, Kind::Tensor, "{report}");
    assert!(report.findings[0].message.contains("a stride of the tensor `t` is 24 bytes"), "{report}");
    // A thread's writes need a fence before TMA writes to the same place.
    let report = told(&copied(whole, "0, 0", 256, "store s[tx] = 0:i32"), 64);
    assert_eq!(report.findings.iter().map(|f| f.kind).collect::<Vec<_>>(), [Kind::Unfenced], "{report}");
    let fenced = copied(whole, "0, 0", 256, "store s[tx] = 0:i32\nfence async");
    assert_eq!(found(&told(&fenced, 64)), []);
    // Bytes that nobody expected end the phase early.
    let early = copied(whole, "0, 0", 256, "").replace("expect 256", "expect 128");
    assert!(told(&early, 64).findings.iter().any(|f| f.kind == Kind::Deadlock), "{}", told(&early, 64));
    let twice = copied(whole, "0, 0", 256, "").replace(
        "copy tensor s[0] = t[0, 0] on full[0]",
        "copy tensor s[0] = t[0, 0] on full[0]\ncopy tensor s[256] = t[0, 0] on full[0]",
    );
    let report = told(&twice, 64);
    assert!(report.findings.iter().any(|f| f.kind == Kind::Bytes), "{report}");
    // Past what the array has.
    let report = told(&copied("i32[4, 32] of a strides (32) box [4, 32]", "0, 0", 512, ""), 64);
    assert!(report.findings.iter().any(|f| f.kind == Kind::OutOfBounds), "{report}");
    // An mbarrier is initialised once.
    let again = copied(whole, "0, 0", 256, "").replace("fence init", "init full[0] count 1\nfence init");
    assert_eq!(found(&told(&again, 64)), [(Kind::Init, 7, 7)]);
}

#[test]
fn a_box_is_counted() {
    let report = told(&copied("i32[2, 32] of a strides (32) box [2, 32]", "0, 0", 256, ""), 64);
    let row = report.rows.iter().find(|r| r.statement.text.starts_with("copy")).unwrap();
    assert_eq!((row.counts.shared.bytes, row.counts.shared.taken), (256, 2));
    assert_eq!((row.counts.global.bytes, row.counts.global.taken, row.counts.global.least), (256, 8, 8));
}
