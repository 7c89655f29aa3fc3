//! Small kernels, right and wrong, and what the simulator says of each.

mod clusters;
mod copies;
mod counts;
mod matrix;
mod mbarriers;
mod memory;
mod panels;
mod races;
mod random;
mod schedules;
mod size;
mod stores;
mod sync;
mod tcgen05;
mod wgmma;

use super::{Kind, Options, Policy, Report, run};
use crate::base::host::Silent;
use crate::base::launch::Launch;
use crate::base::memory::VecMemory;
use crate::kernel::ir::Kernel;
use crate::kernel::{parse, verify};
use crate::loops;

/// The kernel of a text, which is well-formed.
fn kernel(text: &str) -> Kernel {
    let kernel = parse::parse(text).unwrap_or_else(|d| panic!("{}\n{text}", d.message));
    assert_eq!(verify::verify(&kernel), [""; 0], "{text}");
    kernel
}

/// Runs a kernel and returns its arrays; its parameters are arrays of i32, followed by numbers.
fn simulate(
    kernel: &Kernel,
    grid: [u32; 3],
    arrays: &[(&str, Vec<i32>)],
    numbers: &[u64],
    options: &Options,
) -> (Report, Vec<Vec<i32>>) {
    let mut memory = VecMemory::new();
    let bytes = |values: &[i32]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let at: Vec<u64> = arrays.iter().map(|(name, values)| memory.add(name, bytes(values))).collect();
    let launch = Launch::new(grid, at.iter().chain(numbers).copied().collect());
    let report = run(kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut Silent, options);
    let report = report.unwrap_or_else(|t| panic!("{}", t.message));
    let word = |b: &[u8]| i32::from_le_bytes(b.try_into().unwrap());
    let left = at.iter().map(|at| memory.bytes(*at).unwrap().chunks_exact(4).map(word).collect());
    (report, left.collect())
}

/// Every policy, the seeded ones with a few seeds.
fn schedules() -> Vec<Options> {
    let seeds = |policy| match policy {
        Policy::Starve => vec![3, 8, 13, 18],
        Policy::Random => vec![0, 1, 2, 3],
        _ => vec![0],
    };
    let one = |policy, seed| Options { policy, seed, ..Options::default() };
    Policy::ALL.into_iter().flat_map(|p| seeds(p).into_iter().map(move |seed| one(p, seed))).collect()
}

/// The kinds of findings with the lines of their statements, those of the earlier one first.
fn found(report: &Report) -> Vec<(Kind, u32, u32)> {
    let line = |f: &super::Finding| f.first.as_ref().map_or(f.statement.line, |(s, _)| s.line);
    report.findings.iter().map(|f| (f.kind, line(f), f.statement.line)).collect()
}

/// Asserts that every schedule ends with nothing found and these values in the last array.
fn clean(text: &str, grid: [u32; 3], arrays: &[(&str, Vec<i32>)], numbers: &[u64], expected: &[i32]) {
    let kernel = kernel(text);
    for options in schedules() {
        let (report, left) = simulate(&kernel, grid, arrays, numbers, &options);
        assert!(report.is_clean(), "{report}\n{text}");
        assert_eq!(left.last().unwrap(), expected, "{options:?}\n{text}");
    }
}

/// Asserts that every schedule finds a race of that kind between statements that begin so, or the same race where the
/// schedule runs the other statement first.
fn racy(text: &str, grid: [u32; 3], arrays: &[(&str, Vec<i32>)], numbers: &[u64], kind: Kind, first: &str, then: &str) {
    let kernel = kernel(text);
    for options in schedules() {
        let (report, _) = simulate(&kernel, grid, arrays, numbers, &options);
        let mirrored = match kind {
            Kind::ReadAfterWrite => Kind::WriteAfterRead,
            Kind::WriteAfterRead => Kind::ReadAfterWrite,
            other => other,
        };
        let is = |f: &super::Finding| {
            let earlier = f.first.as_ref().map_or("", |(s, _)| s.text.as_str());
            let are = |a: &str, b: &str| earlier.starts_with(a) && f.statement.text.starts_with(b);
            (f.kind == kind && are(first, then)) || (f.kind == mirrored && are(then, first))
        };
        assert!(report.findings.iter().any(is), "no {kind:?} of `{first}` and `{then}` in\n{report}\n{text}");
    }
}
