//! Asynchronous copies: pipelines of every depth, and what is missing from them.

use super::super::{Finding, Report};
use super::{Kind, clean, found, kernel, racy, schedules, simulate};
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel::{eval, parse};
use crate::loops;

/// A ring of `depth` slabs of 64 numbers, filled `depth - 1` slabs ahead; every thread sums what another has copied.
/// Each line is a statement, so that a test can leave one out.
fn pipeline(depth: i32, bytes: u32) -> String {
    let (per, ahead) = (bytes / 4, depth - 1);
    let fill = |k: &str| {
        format!(
            "if {k} < n and tx < {} {{\ncopy async s[({k})%{depth}*64 + tx*{per}] = a[({k})*64 + tx*{per}] bytes {bytes}\n}}\n\
             commit\n",
            64 / per
        )
    };
    let next = fill(&format!("k + {ahead}"));
    let fills: String = (0..ahead).map(|k| fill(&k.to_string())).collect();
    // With one slab, it is filled when all have read it; with more, another is filled while one is read.
    let step = match depth {
        1 => format!("barrier\n{next}wait groups 0\nbarrier\n"),
        _ => format!("wait groups {}\nbarrier\n{next}", depth - 2),
    };
    format!(
        "kernel pipeline(a: ptr<i32>, o: ptr<i32>, n: i32) threads 64 scratch 0 shared {} {{\nshared s: i32[{}] at 0\n\
         var sum: i32 = 0:i32\n{fills}for k in 0..n step 1 {{\n{step}y: i32 = load s[k%{depth}*64 + 63 - tx]\n\
         t: i32 = addi sum, y\nsum = t\n}}\nstore o[tx] = sum\n}}\n",
        depth * 256,
        depth * 64
    )
}

fn numbers(slabs: usize) -> [(&'static str, Vec<i32>); 2] {
    [("a", (0..64 * slabs.max(1) as i32).map(|n| n * 7 + 3).collect()), ("o", vec![-1; 64])]
}

fn sums(slabs: usize) -> Vec<i32> {
    let a = &numbers(slabs)[0].1;
    (0..64).map(|t| (0..slabs).map(|k| a[k * 64 + 63 - t]).sum()).collect()
}

#[test]
fn pipelines_of_every_depth_and_length_are_clean() {
    assert!(schedules().len() >= 8);
    for depth in 1..=6 {
        for slabs in 0..=8 {
            let bytes = [4, 8, 16][(depth as usize + slabs) % 3];
            clean(&pipeline(depth, bytes), [1; 3], &numbers(slabs), &[slabs as u64], &sums(slabs));
        }
    }
}

/// The text without its line of that number.
fn without(text: &str, line: usize) -> String {
    text.lines().enumerate().filter(|(n, _)| *n != line).map(|(_, l)| format!("{l}\n")).collect()
}

#[test]
fn every_barrier_and_wait_of_a_pipeline_is_needed() {
    let mut tried = 0;
    for depth in 1..=4 {
        let text = pipeline(depth, 16);
        let needed = |l: &str| l == "barrier" || l.starts_with("wait groups") || l == "commit";
        for (at, line) in text.lines().enumerate().filter(|(_, l)| needed(l)) {
            let wrong = kernel(&without(&text, at));
            for options in schedules() {
                let (report, _) = simulate(&wrong, [1; 3], &numbers(8), &[8], &options);
                assert!(
                    report.findings.iter().any(|f| f.kind.is_race()),
                    "depth {depth}, no `{line}`: {report}\n{text}"
                );
            }
            tried += 1;
        }
        // One group short.
        let wait = format!("wait groups {}", (depth - 2).max(0));
        let short = kernel(&text.replace(&wait, &format!("wait groups {}", (depth - 1).max(1))));
        for options in schedules() {
            let (report, _) = simulate(&short, [1; 3], &numbers(8), &[8], &options);
            assert!(report.findings.iter().any(|f| f.kind == Kind::InFlight), "depth {depth}: {report}\n{text}");
        }
    }
    assert_eq!(tried, 4 + 4 + 5 + 6);
}

/// The report of a small kernel of 32 threads.
fn told(body: &str) -> Report {
    let text = format!(
        "kernel k(a: ptr<i32>, o: ptr<i32>, n: i32) threads 32 scratch 0 shared 256 {{\nshared s: i32[64] at 0\n{body}\n}}\n"
    );
    simulate(&kernel(&text), [1; 3], &[("a", (1..65).collect()), ("o", vec![0; 64])], &[20], &Default::default()).0
}

fn only(report: &Report) -> &Finding {
    assert_eq!(report.findings.len(), 1, "{report}");
    &report.findings[0]
}

#[test]
fn a_finding_says_what_the_copy_lacks() {
    // At the end nothing is in flight.
    let told = |text: &str| told(&format!("{text}\ncommit\nwait groups 0"));
    let copy = "copy async s[tx] = a[tx] bytes 4\ncommit\n";
    let report = told(&format!("{copy}y: i32 = load s[tx]\nstore o[tx] = y"));
    let finding = only(&report);
    let text = finding.to_string();
    assert_eq!(found(&report), [(Kind::InFlight, 3, 5)]);
    assert!(
        text.starts_with("in-flight: a thread accesses shared memory that an asynchronous copy may still be"),
        "{text}"
    );
    assert!(text.contains("line 3: `copy async s[tx] = a[tx] bytes 4` by thread 0"), "{text}");
    assert!(text.contains("then line 5: `y: i32 = load s[tx]` by thread 0"), "{text}");
    assert!(text.contains("element 0 of `s` (bytes 0 to 3 of shared memory)"), "{text}");
    // A wait is for the thread's own copies.
    let report = told(&format!("{copy}wait groups 0\ny: i32 = load s[31 - tx]\nstore o[tx] = y"));
    let finding = report.findings.iter().find(|f| f.kind == Kind::ReadAfterWrite).unwrap();
    assert!(finding.help.unwrap().contains("put a `barrier` behind it"), "{report}");
    // A copy without a commit is in no group.
    let report = told("copy async s[tx] = a[tx] bytes 4\nwait groups 0\ny: i32 = load s[tx]\nstore o[tx] = y");
    assert_eq!(found(&report), [(Kind::InFlight, 3, 5)]);
    // Groups end in order; an empty one counts.
    let two = "copy async s[tx] = a[tx] bytes 4\ncommit\ncommit\nwait groups 1\ny: i32 = load s[tx]\nstore o[tx] = y";
    assert_eq!(found(&told(two)), []);
    // The source is read until the wait.
    let report = told(&format!("{copy}store a[tx] = 5:i32\nwait groups 0\nstore o[tx] = n"));
    assert_eq!(found(&report), [(Kind::InFlight, 3, 5)]);
    assert!(only(&report).message.contains("writes global memory"), "{report}");
    // Two copies to one place; a store over a copy.
    assert_eq!(found(&told(&format!("{copy}copy async s[tx] = a[tx + 1] bytes 4"))), [(Kind::InFlight, 3, 5)]);
    assert_eq!(found(&told(&format!("{copy}store s[tx] = n"))), [(Kind::InFlight, 3, 5)]);
}

#[test]
fn copies_are_aligned_and_in_bounds() {
    // At the end nothing is in flight.
    let told = |text: &str| told(&format!("{text}\ncommit\nwait groups 0"));
    let report = told("copy async s[tx + 1] = a[tx*2] bytes 8 where tx < 0\ncommit");
    assert!(report.findings.iter().any(|f| f.kind == Kind::Misaligned), "{report}");
    let report = told("copy async s[tx*2] = a[tx + 1] bytes 8\ncommit");
    assert_eq!(found(&report), [(Kind::Misaligned, 3, 3)]);
    let report = told("copy async s[tx*4] = a[tx] bytes 4\ncommit");
    assert_eq!(found(&report), [(Kind::OutOfBounds, 3, 3)]);
    let report = told("copy async s[tx] = a[tx + 40] bytes 4\ncommit");
    assert!(only(&report).message.contains("reads 4 bytes at address"), "{report}");
}

/// Where the mask does not hold, zeros are written and nothing is read.
#[test]
fn a_masked_copy_writes_zeros() {
    let text = "kernel k(a: ptr<i32>, o: ptr<i32>, n: i32) threads 32 scratch 0 shared 512 {
shared s: i32[128] at 0
copy async s[tx*4] = a[tx*4] bytes 16 where tx*4 < n
commit
wait groups 0
barrier
y: i32x4 = load s[(31 - tx)*4]
store o[(31 - tx)*4] = y
}
";
    let expected: Vec<i32> = (1..=20).chain(std::iter::repeat_n(0, 108)).collect();
    clean(text, [1; 3], &[("a", (1..=20).collect()), ("o", vec![-1; 128])], &[20], &expected);
}

/// A block of one thread is the simulator's simplest case; the verifier has no use for its copies.
#[test]
fn the_evaluator_runs_copies() {
    let text = "kernel k(a: ptr<i32>, o: ptr<i32>) scratch 0 shared 16 {\nshared s: i32[4] at 0\ncopy async s[0] = a[4] bytes 16\n\
                commit\nwait groups 0\nx: i32x4 = load s[0]\nstore o[0] = x\n}\n";
    let mut memory = VecMemory::new();
    let bytes = |from: i32| (from..from + 8).flat_map(i32::to_le_bytes).collect();
    let args = vec![memory.add("a", bytes(1)), memory.add("o", bytes(0))];
    let (launch, placed) = (Launch::new([1; 3], args.clone()), loops::ir::Kernel::default());
    eval::run(&parse::parse(text).unwrap(), &placed, &launch, &mut memory, &mut Silent).unwrap();
    assert_eq!(memory.bytes(args[1]).unwrap()[..16], [5, 6, 7, 8].map(i32::to_le_bytes).concat());
}

/// The schedule decides whether a copy that a wait leaves in flight has landed.
#[test]
fn a_copy_may_land_late_or_at_once() {
    let k = kernel(
        "kernel k(a: ptr<i32>, o: ptr<i32>) threads 32 scratch 0 shared 128 {\nshared s: i32[32] at 0\nstore s[tx] = 0:i32\n\
         copy async s[tx] = a[tx] bytes 4\ncommit\ny: i32 = load s[tx]\nstore o[tx] = y\n}\n",
    );
    let arrays = [("a", vec![9; 32]), ("o", vec![0; 32])];
    let seen: Vec<i32> = schedules().iter().map(|o| simulate(&k, [1; 3], &arrays, &[], o).1[1][5]).collect();
    assert!(seen.contains(&0) && seen.contains(&9), "{seen:?}");
}

#[test]
fn copies_are_counted_as_accesses_of_their_size() {
    let report = told("if tx < 16 {\ncopy async s[tx*4] = a[tx*4] bytes 16\n}\ncommit\nwait groups 0");
    let row = report.rows.iter().find(|r| r.statement.text.starts_with("copy")).unwrap();
    assert_eq!((row.counts.shared.bytes, row.counts.shared.taken, row.counts.shared.least), (256, 2, 2));
    assert_eq!((row.counts.global.bytes, row.counts.global.taken, row.counts.global.least), (256, 8, 8));
    assert!(report.is_clean(), "{report}");
}

/// The slot that is filled next was read in the iteration before, with nothing between: it is found where the slab is read,
/// or where it is filled.
#[test]
fn a_refill_needs_a_barrier_behind_the_reads() {
    let text = pipeline(2, 16).replace("wait groups 0\nbarrier\n", "barrier\nwait groups 0\n");
    racy(&text, [1; 3], &numbers(6), &[6], Kind::ReadAfterWrite, "copy async", "y: i32 = load");
}
