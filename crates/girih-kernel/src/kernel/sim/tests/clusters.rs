//! Clusters: boxes that one block copies to all, mbarriers that blocks arrive at for each other, and what is wrong with others.

use super::super::{Finding, Options, Report};
use super::{Kind, clean, found, kernel, schedules, simulate};

/// A ring of `depth` slabs of 64 numbers for each of two blocks, which take turns in filling that of both. Every thread sums what is
/// there. Each line is a statement, so that a test can leave one out.
fn ring(depth: u32) -> String {
    let bytes = depth * 256;
    format!(
        "kernel ring(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 cluster 2 scratch 0 shared {} {{
shared s: i32[{}] at 0
shared full: mbarrier[{depth}] at {bytes}
shared free: mbarrier[{depth}] at {}
tensor rows: i32[n, 64] of a strides (64) box [1, 64]
var sum: i32 = 0:i32
if tx == 0 {{
for i in 0..{depth} step 1 {{
init full[i] count 1
init free[i] count 128
}}
fence init
}}
barrier cluster
if tx == 0 {{
for j in 0..min({depth}, n) step 1 {{
arrive full[j] expect 256
if bx%2 == j%2 {{
copy tensor s[j*64] = rows[j, 0] on full[j] all
}}
}}
}}
for k in 0..n step 1 {{
wait full[k%{depth}] parity k//{depth}%2
y: i32 = load s[k%{depth}*64 + 63 - tx]
t: i32 = addi sum, y
sum = t
arrive free[k%{depth}] of 0
arrive free[k%{depth}] of 1
if tx == 0 and k + {depth} < n {{
wait free[k%{depth}] parity k//{depth}%2
arrive full[k%{depth}] expect 256
if bx%2 == (k + {depth})%2 {{
copy tensor s[k%{depth}*64] = rows[k + {depth}, 0] on full[k%{depth}] all
}}
}}
}}
store o[bx*64 + tx] = sum
  barrier cluster
}}
",
        bytes + 128,
        depth * 64,
        bytes + 64,
    )
}

fn numbers(slabs: usize) -> [(&'static str, Vec<i32>); 2] {
    [("a", (0..64 * slabs.max(1) as i32).map(|n| n * 7 + 3).collect()), ("o", vec![-1; 256])]
}

#[test]
fn rings_of_every_depth_and_length_are_clean() {
    for depth in 1..=4 {
        for slabs in 0..=6 {
            let arrays = numbers(slabs);
            let sums = |t: usize| (0..slabs).map(|k| arrays[0].1[k * 64 + 63 - t]).sum();
            let sums: Vec<i32> = (0..4).flat_map(|_| (0..64).map(sums)).collect();
            clean(&ring(depth), [4, 1, 1], &arrays, &[slabs as u64], &sums);
        }
    }
}

fn reports(text: &str) -> Vec<(Options, Report)> {
    let kernel = kernel(text);
    let run = |o: Options| (o.clone(), simulate(&kernel, [2, 1, 1], &numbers(7), &[7], &o).0);
    schedules().into_iter().map(run).collect()
}

/// Asserts that a schedule finds one of the kinds, or that every one does.
fn finds(text: &str, every: bool, kinds: &[Kind]) {
    let all = reports(text);
    let is = |(_, r): &(Options, Report)| r.findings.iter().any(|f: &Finding| kinds.contains(&f.kind));
    let good = if every { all.iter().all(is) } else { all.iter().any(is) };
    assert!(good, "{kinds:?}\n{}\n{text}", all.iter().map(|(_, r)| r.to_string()).collect::<String>());
}

/// The first line that begins so is left out, or changed.
fn with(text: &str, line: &str, other: &str) -> String {
    let at = text.lines().position(|l| l.starts_with(line)).unwrap_or_else(|| panic!("{line}\n{text}"));
    let one = |(n, l): (usize, &str)| if n == at { other.to_string() } else { format!("{l}\n") };
    text.lines().enumerate().map(one).collect()
}

#[test]
fn everything_in_a_ring_is_needed() {
    use Kind::*;
    for depth in 2..=3 {
        let text = ring(depth);
        let without = |line: &str| with(&text, line, "");
        finds(&without("fence init"), true, &[InitFence]);
        // A thread that arrives at another block's mbarrier cannot know that it exists; one of the own block's threads
        // can.
        finds(&with(&text, "barrier cluster", "barrier\n"), true, &[Init]);
        finds(&without("wait full"), true, &[InFlight, ReadAfterWrite]);
        finds(&without("wait free"), true, &[WriteAfterRead, InFlight]);
        finds(&without("arrive free[k%"), true, &[Deadlock]);
        // Every block waits for the readers of both: of its own alone is not enough.
        let own = text.replace("count 128", "count 64").replacen(" of 0", "", 1);
        finds(&with(&own, &format!("arrive free[k%{depth}] of 1"), ""), false, &[WriteAfterRead, InFlight]);
        // A box that goes to the own block alone.
        finds(&text.replacen(" all", "", 1), true, &[Deadlock, Bytes]);
        // The other block may have ended.
        finds(&without("  barrier cluster"), false, &[Tensor]);
    }
}

#[test]
fn a_grid_has_whole_clusters() {
    let (report, _) = simulate(&kernel(&ring(2)), [3, 1, 1], &numbers(1), &[1], &Options::default());
    let (trap, _) = report.stopped.expect("it does not run");
    assert_eq!(trap.message, "a grid of 3 blocks along x is not made of clusters of 2 blocks");
}

#[test]
fn threads_of_a_block_meet_without_those_of_the_other() {
    let text = "kernel k(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 cluster 2 scratch 0 shared 256 {
  shared s: i32[64] at 0
  x: i32 = index bx*100 + tx
  store s[tx] = x
  if bx%2 == 0 {
    barrier
  }
  barrier
  y: i32 = load s[63 - tx]
  store o[bx*64 + tx] = y
}
";
    let want: Vec<i32> = (0..4).flat_map(|b| (0..64).map(move |t| b * 100 + 63 - t)).collect();
    clean(text, [4, 1, 1], &numbers(1), &[1], &want);
    // A barrier of the one block orders nothing in the other.
    let raced = text.replace("  barrier\n  y:", "  y:");
    let lines = |(_, r): &(Options, Report)| found(r).into_iter().map(|(kind, ..)| kind).collect::<Vec<_>>();
    for report in reports(&raced) {
        assert!(
            lines(&report).iter().any(|k| matches!(k, Kind::ReadAfterWrite | Kind::WriteAfterRead)),
            "{}",
            report.1
        );
        // The block with the barrier is right, so it is the other one's threads that race.
        assert!(report.1.findings.iter().all(|f| f.thread.block == [1, 0, 0]), "{}", report.1);
    }
    let uneven = text.replace("  if bx%2 == 0 {\n    barrier\n", "  if bx%2 == 0 {\n    barrier cluster\n");
    let errors = crate::kernel::verify::verify(&crate::kernel::parse::parse(&uneven).unwrap());
    assert_eq!(errors, [""; 0], "a block's threads all come there");
    finds(&uneven, true, &[Kind::Deadlock, Kind::Divergent]);
}

/// Each block has a number of its own, and reads those of all.
const SHARED: &str = "kernel k(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 cluster 4 scratch 0 shared 16 {
  shared s: i32[4] at 0
  if tx == 0 {
    x: i32 = index bx*100 + 7
    store s[1] = x
  }
  barrier cluster
  y: i32 = load s[1] of 0
  z: i32 = load s[1] of 3
  w: i32 = muli y, 1000:i32
  t: i32 = addi w, z
  store o[bx*64 + tx] = t
  barrier cluster
}
";

#[test]
fn blocks_read_what_others_of_their_cluster_have() {
    let arrays = [("a", vec![0]), ("o", vec![-1; 512])];
    let want: Vec<i32> = (0..8).flat_map(|b| [(b / 4 * 400 + 7) * 1000 + b / 4 * 400 + 307; 64]).collect();
    clean(SHARED, [8, 1, 1], &arrays, &[1], &want);
    let finds = |text: &str, every: bool, kinds: &[Kind]| {
        let kernel = kernel(text);
        let all = schedules().into_iter().map(|o| simulate(&kernel, [8, 1, 1], &arrays, &[1], &o).0);
        let is = |r: &Report| r.findings.iter().any(|f: &Finding| kinds.contains(&f.kind));
        let found: Vec<bool> = all.map(|r| is(&r)).collect();
        let good = if every { found.iter().all(|f| *f) } else { found.iter().any(|f| *f) };
        assert!(good, "{kinds:?} {found:?}\n{text}");
    };
    // Without the first, and where only the threads of each block meet.
    for other in ["", "  barrier\n"] {
        let without = SHARED.replacen("  barrier cluster\n", other, 1);
        finds(&without, true, &[Kind::ReadAfterWrite, Kind::Unwritten]);
    }
    // A block that has ended has no memory any more.
    let last = SHARED.rfind("  barrier cluster\n").unwrap();
    finds(&format!("{}}}\n", &SHARED[..last]), false, &[Kind::Tensor]);
    finds(&SHARED.replace("s[1] of 3", "s[2] of 3"), true, &[Kind::Unwritten]);
    finds(&SHARED.replace("s[1] of 3", "s[4] of 3"), true, &[Kind::OutOfBounds]);
    let errors = |text: &str| crate::kernel::verify::verify(&crate::kernel::parse::parse(text).unwrap()).join("\n");
    assert!(
        errors(&SHARED.replace("of 3", "of 4")).contains("`load of` needs a cluster of more than 4 blocks; this has 4")
    );
    assert!(errors(&SHARED.replace("load s[1] of 0", "load o[1] of 0")).contains("an element of a shared slot"));
}
