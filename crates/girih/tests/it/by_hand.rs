//! Kernels written by hand. The kernels of `tests/cuda`, whose CUDA is compiled elsewhere, are right: the simulator finds
//! nothing in them, under different schedules, and they print and read back.
//!
//! The kernels of `tests/races` are wrong, or the mended form of one that is. Their first lines name the findings that
//! every schedule makes, and the two statements between which some schedule makes them:
//!
//! ```text
//! # finds: write-after-read            kinds of findings, or `nothing`
//! # first: load left                   the beginning of the earlier statement
//! # then: copy async left              and the later one
//! # resident: 200                      blocks that a GPU has at once
//! ```

use crate::kernel_files;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::sim::{Finding, Options, Policy, Report, Statement, run};
use girih_compiler::kernel::{parse::parse, print::print};
use girih_compiler::loops;
use kernel_files::{Given, KernelFile};

fn simulate(file: &KernelFile, options: &Options) -> Report {
    let mut memory = VecMemory::new();
    let arg = |(param, given): (_, &Given)| match given {
        // Zeros are numbers of every type.
        Given::Array(d, n) => {
            let zeros = girih::Buffer::zeroed(*d, &[*n]).expect("memory");
            memory.add(file.kernel.vals[param].name.as_str(), zeros.bytes().to_vec())
        }
        Given::Number(_, bits) => *bits,
    };
    let args = file.kernel.params.iter().copied().zip(&file.args).map(arg).collect();
    let launch = Launch::new(file.grid, args);
    let resident = file.said("resident:").first().map(|n| n.parse().expect("a number"));
    let options = Options { resident, ..options.clone() };
    let report = run(&file.kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut Silent, &options);
    report.unwrap_or_else(|t| panic!("{}: {}", file.name, t.message))
}

fn reads_back(file: &KernelFile) {
    let printed = print(&file.kernel);
    assert_eq!(print(&parse(&printed).unwrap()), printed, "{}", file.name);
}

#[test]
fn the_simulator_finds_nothing() {
    let all = kernel_files::of("cuda");
    for file in &all {
        reads_back(file);
        for (policy, seed) in [(Policy::RoundRobin, 0), (Policy::Random, 1), (Policy::Random, 2)] {
            let report = simulate(file, &Options { policy, seed, ..Options::default() });
            assert!(report.is_clean(), "{}:\n{report}", file.name);
        }
    }
    assert!(all.len() >= 11);
}

#[test]
fn races_are_found_and_their_mended_forms_are_clean() {
    let (mut wrong, mut mended) = (0, 0);
    for file in &kernel_files::of("races") {
        reads_back(file);
        let name = &file.name;
        let said = |key| file.said(key).first().copied();
        let reports: Vec<Report> = (0..10).map(|seed| simulate(file, &Options::of_seed(seed))).collect();
        let kinds = said("finds:").unwrap();
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
            let does = |statement: &Statement, key| said(key).is_none_or(|what| statement.text.contains(what));
            let is = |f: &Finding| {
                let first = f.first.as_ref().is_none_or(|(s, _)| does(s, "first:") || does(s, "then:"));
                f.kind.name() == kind && first && does(&f.statement, "then:")
            };
            let found = reports.iter().flat_map(|r| &r.findings).any(is);
            assert!(found, "{name}: no {kind} in\n{}", reports[0]);
        }
    }
    assert!(wrong >= 12 && mended >= 9, "{wrong} wrong, {mended} mended");
}
