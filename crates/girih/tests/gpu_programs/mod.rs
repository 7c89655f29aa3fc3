//! Kernels of models, placed for a GPU, and their runs on the simulator.

use girih_compiler::base::host::Silent;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::sim;
use girih_compiler::loops::model::{ArrayPlace, StepArg};
use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, convert};
use girih_compiler::pipeline::{self, Lowered, Options, Silent as Quiet};
use girih_compiler::source::expr;
use girih_compiler::tile::target::Target;

pub const TARGETS: [&str; 4] = ["sm_80", "sm_90a", "sm_100a", "sm_120"];

/// A kernel, and what it runs on: the type and the elements of each parameter's array.
pub struct Program {
    pub name: String,
    pub lowered: Lowered,
    pub arrays: Vec<(DType, u64)>,
}

/// The kernels of an expression; none of its arrays is a constant.
pub fn programs(text: &str, target: &str, knobs: &[&str]) -> Vec<Program> {
    let mut options = Options { target: Target::named(target).unwrap(), ..Options::default() };
    knobs.iter().for_each(|knob| _ = options.knobs.set(knob).unwrap());
    let graph = expr::evaluate(text, &[]).unwrap().graph;
    let model = pipeline::lower_model(&graph, &options, &mut Quiet).unwrap();
    let plan = &model.scheduled;
    let made = plan.steps.iter().map(|step| {
        let lowered =
            pipeline::lower_loops(step.kernel.clone(), &options, &mut options.rewrites(), &mut Quiet).unwrap();
        let arrays = step.args.iter().map(|arg| {
            let StepArg::Array(id) = arg else { panic!("a symbol") };
            let array = &plan.arrays[*id];
            assert!(!matches!(array.place, ArrayPlace::Constant(_)), "{text}");
            let count = array.shape.iter().map(|n| n.as_const().unwrap() as u64).product();
            (array.elem.dtype, count)
        });
        let name = format!("{text}, {}, {target} {}", step.kernel.name, knobs.join(" "));
        Program { name, arrays: arrays.collect(), lowered }
    });
    made.collect()
}

/// Small multiples of a quarter.
pub fn fill(dtype: DType, count: u64, seed: u64) -> Vec<u8> {
    let one = |i: u64| {
        let n = ((i * 2654435761 + seed * 97) >> 7) % 17;
        match dtype.is_int() {
            true => n & dtype.mask(),
            false => convert::from_f64(dtype, (n as f64 - 8.0) / 4.0, Rounding::NearestEven),
        }
    };
    (0..count).flat_map(|i| one(i).to_le_bytes()[..dtype.bytes() as usize].to_vec()).collect()
}

/// What a run leaves in memory; `None` where the simulator found something.
pub fn simulate(program: &Program, kernel: &Kernel, seed: u64) -> Option<Vec<Vec<u8>>> {
    let mut memory = VecMemory::new();
    let arrays = program.arrays.iter().enumerate();
    let at: Vec<u64> = arrays.map(|(i, (d, n))| memory.add(&format!("a{i}"), fill(*d, *n, i as u64))).collect();
    let grid = kernel.blocks(&at).unwrap().map(|n| n as u32);
    let launch = Launch::new(grid, at.clone());
    let options = sim::Options::of_seed(seed);
    let ran = sim::run(kernel, &program.lowered.tile, &launch, &mut memory, &mut Silent, &options);
    ran.and_then(|report| report.clean()).ok()?;
    Some(at.iter().map(|a| memory.bytes(*a).unwrap().to_vec()).collect())
}
