//! The kernels whose CUDA is compiled (`tests/cuda`) are right to begin with: the simulator finds nothing in them, under
//! schedules that differ, and they print and read back. Their line `# run: 2 1 1: 1024 1000` gives the grid, then for each
//! parameter the elements of its array or its value.

use std::path::Path;

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::ir::{Elem, Kernel};
use girih_compiler::kernel::sim::{Options, Policy, run};
use girih_compiler::kernel::{parse::parse, print::print};
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

#[test]
fn the_simulator_finds_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let kernel = parse(&text).unwrap_or_else(|d| panic!("{}: {}", path.display(), d.message));
        let printed = print(&kernel);
        assert_eq!(print(&parse(&printed).unwrap()), printed);
        let line = text.lines().find_map(|l| l.strip_prefix("# run:")).unwrap();
        for (policy, seed) in [(Policy::RoundRobin, 0), (Policy::Random, 1), (Policy::Random, 2)] {
            let mut memory = VecMemory::new();
            let launch = launch(&kernel, line, &mut memory);
            let options = Options { policy, seed, ..Options::default() };
            let report = run(&kernel, &loops::ir::Kernel::default(), &launch, &mut memory, &mut Silent, &options);
            let report = report.unwrap_or_else(|t| panic!("{}: {}", path.display(), t.message));
            assert!(report.is_clean(), "{}:\n{report}", path.display());
        }
        count += 1;
    }
    assert!(count >= 9);
}
