//! The kernels whose CUDA is compiled (`tests/cuda`) are right to begin with: the simulator finds nothing in them, under
//! schedules that differ, and they print and read back. Their line `# run: 2 1 1: 1024 1000` gives the grid, then for each
//! parameter the elements of its array or its value.
//!
//! The kernels of `tests/races` are wrong, or the mended form of one that is. Their first lines say what every schedule finds
//! something of, and some schedule between two statements that begin so:
//!
//! ```text
//! # finds: write-after-read            kinds of findings, or `nothing`
//! # first: load left                   what the earlier statement does
//! # then: copy async left              and the later one
//! ```

use std::path::Path;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::ir::{Elem, Kernel};
use girih_compiler::kernel::sim::{Finding, Options, Policy, Report, Statement, run};
use girih_compiler::kernel::{parse::parse, print::print, verify::verify};
use girih_compiler::loops;

fn launch(kernel: &Kernel, line: &str, memory: &mut VecMemory) -> Launch {
    let numbers = |text: &str| -> Vec<u64> { text.split_whitespace().map(|n| n.parse().unwrap()).collect() };
    let (grid, args) = line.split_once(':').unwrap();
    let (grid, args) = (numbers(grid), numbers(args));
    assert_eq!(args.len(), kernel.params.len(), "{line}");
    let arg = |(param, n): (_, u64)| match kernel.vals[param].ty.elem {
        // Zeros are numbers of every type.
        Elem::Ptr(d) => memory.add(kernel.vals[param].name.as_str(), vec![0; (n * d.bytes()) as usize]),
        Elem::Num(_) => n,
    };
    let args = kernel.params.iter().copied().zip(args).map(arg).collect();
    Launch::new([grid[0] as u32, grid[1] as u32, grid[2] as u32], args)
}

/// The texts of a folder's kernels, with their names.
fn texts(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = paths.map(|p| (p.display().to_string(), std::fs::read_to_string(&p).unwrap())).collect();
    all.sort();
    all
}

/// What a kernel's first lines say about something.
fn said<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|l| l.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

fn read(name: &str, text: &str) -> Kernel {
    let kernel = parse(text).unwrap_or_else(|d| panic!("{name}: {}", d.message));
    let printed = print(&kernel);
    assert_eq!(print(&parse(&printed).unwrap()), printed);
    assert_eq!(verify(&kernel), [""; 0], "{name}");
    kernel
}

fn simulate(name: &str, kernel: &Kernel, text: &str, options: &Options) -> Report {
    let mut memory = VecMemory::new();
    let launch = launch(kernel, said(text, "run").unwrap(), &mut memory);
    let report = run(kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut Silent, options);
    report.unwrap_or_else(|t| panic!("{name}: {}", t.message))
}

#[test]
fn the_simulator_finds_nothing() {
    let all = texts("cuda");
    for (name, text) in &all {
        let kernel = read(name, text);
        for (policy, seed) in [(Policy::RoundRobin, 0), (Policy::Random, 1), (Policy::Random, 2)] {
            let report = simulate(name, &kernel, text, &Options { policy, seed, ..Options::default() });
            assert!(report.is_clean(), "{name}:\n{report}");
        }
    }
    assert!(all.len() >= 11);
}

#[test]
fn races_are_found_and_their_mended_forms_are_clean() {
    let (mut wrong, mut mended) = (0, 0);
    for (name, text) in &texts("races") {
        let kernel = read(name, text);
        let reports: Vec<Report> = (0..10).map(|seed| simulate(name, &kernel, text, &Options::of_seed(seed))).collect();
        let kinds = said(text, "finds").unwrap();
        if kinds == "nothing" {
            mended += 1;
            reports.iter().for_each(|report| assert!(report.is_clean(), "{name}:\n{report}"));
            continue;
        }
        wrong += 1;
        for report in &reports {
            assert!(!report.findings.is_empty(), "{name}:\n{report}");
        }
        for kind in kinds.split(' ') {
            let does = |statement: &Statement, key| said(text, key).is_none_or(|what| statement.text.contains(what));
            let is = |f: &Finding| {
                let first = f.first.as_ref().is_none_or(|(s, _)| does(s, "first") || does(s, "then"));
                f.kind.name() == kind && first && does(&f.statement, "then")
            };
            let found = reports.iter().flat_map(|r| &r.findings).any(is);
            assert!(found, "{name}: no {kind} in\n{}", reports[0]);
        }
    }
    assert!(wrong >= 4 && mended >= 3, "{wrong} wrong, {mended} mended");
}
