//! Boxes that TMA copies from shared to global memory.

use super::{Kind, clean, found, kernel, schedules, simulate};

/// Two boxes go back, which threads write one after the other to the same bytes. Each line is a statement, so that a test can
/// leave one out; the numbers say which box.
const TWICE: &str = "kernel twice(o: ptr<i32>) threads 64 scratch 0 shared 256 {
shared s: i32[64] at 0
tensor m: i32[2, 60] of o strides (64) box [1, 64]
x: i32 = index tx*3
store s[63 - tx] = x
fence async
barrier
if tx == 0 {
copy tensor m[0, 0] = s[0]
copy commit
copy wait 0
}
barrier
y: i32 = index tx + 7
store s[tx] = y
fence async
barrier
if tx == 0 {
copy tensor m[1, 0] = s[0]
copy commit
copy wait 0
}
}
";

fn arrays() -> [(&'static str, Vec<i32>); 1] {
    [("o", vec![-1; 128])]
}

#[test]
fn what_is_waited_for_may_be_overwritten() {
    let of = |n: i32| match n {
        n if n % 64 >= 60 => -1,
        n if n < 64 => (63 - n) * 3,
        n => n - 64 + 7,
    };
    let want: Vec<i32> = (0..128).map(of).collect();
    clean(TWICE, [1; 3], &arrays(), &[], &want);
}

/// The `nth` line that begins so is left out.
fn without(line: &str, nth: usize) -> String {
    let places = TWICE.lines().enumerate().filter(|(_, l)| l.starts_with(line));
    let gone = places.map(|(at, _)| at).nth(nth);
    let rest = TWICE.lines().enumerate().filter(|(at, _)| Some(*at) != gone);
    let text: String = rest.map(|(_, l)| format!("{l}\n")).collect();
    assert_ne!(text, TWICE);
    text
}

fn finds(text: &str, kinds: &[Kind]) {
    let kernel = kernel(text);
    for options in schedules() {
        let (report, _) = simulate(&kernel, [1; 3], &arrays(), &[], &options);
        let is = |f: &super::super::Finding| kinds.contains(&f.kind);
        assert!(report.findings.iter().any(is), "{kinds:?}, {options:?}\n{report}\n{text}");
    }
}

#[test]
fn everything_around_a_box_is_needed() {
    use Kind::*;
    for nth in [0, 1] {
        finds(&without("fence async", nth), &[Unfenced]);
        finds(&without("copy commit", nth), &[LeftInFlight, InFlight]);
        finds(&without("copy wait", nth), &[LeftInFlight, InFlight]);
    }
    finds(&without("barrier", 0), &[ReadAfterWrite, WriteAfterRead, InFlight]);
    finds(&without("barrier", 1), &[ReadAfterWrite, WriteAfterRead, InFlight]);
    finds(&without("barrier", 2), &[ReadAfterWrite, WriteAfterRead, InFlight]);
    finds(&TWICE.replacen("copy wait 0", "copy wait 1", 1), &[InFlight]);
    finds(&without("store s", 0), &[Unwritten]);
}

#[test]
fn nothing_waits_for_global_memory() {
    let read = TWICE.replacen("barrier\ny:", "barrier\nz: i32 = load o[tx]\ny:", 1);
    finds(&read, &[Kind::InFlight]);
    let written = TWICE.replacen("barrier\ny:", "barrier\nstore o[tx] = x\ny:", 1);
    finds(&written, &[Kind::InFlight]);
    // Another block's box at the same place.
    let (report, _) = simulate(&kernel(TWICE), [2, 1, 1], &arrays(), &[], &schedules()[0]);
    assert!(found(&report).iter().any(|(kind, ..)| *kind == Kind::InFlight), "{report}");
}

#[test]
fn a_box_must_be_one_that_tma_takes() {
    let odd = TWICE.replace("copy tensor m[0, 0] = s[0]", "copy tensor m[0, 0] = s[tx]");
    assert!(crate::kernel::verify::verify(&crate::kernel::parse::parse(&odd).unwrap()).is_empty());
    let shifted = TWICE.replace("strides (64)", "strides (62)");
    assert_ne!(crate::kernel::verify::verify(&crate::kernel::parse::parse(&shifted).unwrap()), [""; 0]);
}
