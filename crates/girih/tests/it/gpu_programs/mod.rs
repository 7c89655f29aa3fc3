//! Kernels of models, placed for a GPU, and their runs on the simulator. Several tests share them, each a part.
#![allow(dead_code)]

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

/// Some kernels of each family, small and of sizes that blocks do not divide.
const MODELS: &[&str] = &[
    "torch.nn.functional.gelu(torch.randn(5, 300))",
    "torch.randn(33, 65).transpose(0, 1) + 1",
    "torch.randn(400, 400) + torch.randn(400)",
    "torch.cat([torch.randn(3, 20), torch.randn(4, 20)])",
    "torch.sum(torch.randn(5, 777), dim=1)",
    "torch.argmax(torch.randn(4, 90), dim=1)",
    "torch.sum(torch.randn(3000))",
    "torch.sum(torch.randn(2, 200000), dim=1)",
    "torch.softmax(torch.randn(3000, 70), dim=1)",
    "torch.softmax(torch.randn(3, 300), dim=1)",
    "torch.softmax(torch.randn(2, 9001), dim=1)",
    "torch.nn.functional.layer_norm(torch.randn(3, 200), (200,))",
    "torch.randn(70, 36) @ torch.randn(36, 50)",
    "torch.randn(40, 24).double() @ torch.randn(24, 36).double()",
    "torch.nn.Linear(72, 130)(torch.randn(70, 72))",
    "torch.randn(70, 96, dtype=torch.float16) @ torch.randn(96, 136, dtype=torch.float16)",
    "torch.nn.Linear(136, 40).bfloat16()(torch.randn(36, 136, dtype=torch.bfloat16))",
    "torch.randn(64, 70, dtype=torch.float16).transpose(0, 1) @ torch.randn(64, 96, dtype=torch.float16)",
    "torch.nn.functional.gelu(torch.nn.Linear(1024, 20)(torch.randn(6, 1024)))",
    "torch.matmul(torch.randn(3, 33, 40, dtype=torch.float16), torch.randn(3, 40, 34, dtype=torch.float16))",
    "torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 10, 10))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 2, 20, 16), torch.randn(1, 2, 40, 16), \
     torch.randn(1, 2, 40, 16))",
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 40, 16, dtype=torch.float16), \
     torch.randn(1, 1, 150, 16, dtype=torch.float16), torch.randn(1, 1, 150, 24, dtype=torch.float16), is_causal=True)",
    "torch.cumsum(torch.randn(4, 50), 1)",
    "torch.cumsum(torch.randn(4, 500), 1)",
    "torch.cumprod(torch.randint(1, 3, (5000, 2)), 0)",
    "torch.sort(torch.randn(3, 20))[0]",
    "torch.arange(1000) * 3 % 7",
    "torch.randint(-9, 9, (96, 80), dtype=torch.int8).transpose(0, 1).int() @ torch.randint(-9, 9, (96, 144), \
     dtype=torch.int8).int()",
    "torch.randint(-9, 9, (70, 80), dtype=torch.int8).int() @ torch.randint(0, 9, (80, 48), dtype=torch.uint8).int()",
    "torch.nn.functional.linear(torch.randn(70, 96, dtype=torch.float8_e4m3fn).float(), torch.randn(48, 96, \
     dtype=torch.float8_e5m2).float())",
    "torch.randn(70, 96, dtype=torch.float8_e4m3fn).float() @ torch.randn(96, 80, dtype=torch.float8_e4m3fn).float()",
    "torch.randn(70, 96, dtype=torch.float16).float() @ torch.randn(96, 80, dtype=torch.float8_e5m2).float()",
];

/// Products of warpgroups, by the tiles that make them so: rows of 128, 64 and 32 bytes, and both operands by columns.
const GROUPED: &[(&str, &[&str])] = &[
    ("torch.randn(130, 192, dtype=torch.float16) @ torch.randn(192, 136, dtype=torch.float16)", &["mc=128", "nc=128"]),
    (
        "torch.nn.Linear(136, 72).bfloat16()(torch.randn(70, 136, dtype=torch.bfloat16))",
        &["mc=64", "nc=64", "kc=32", "slots=2"],
    ),
    (
        "torch.randn(96, 64, dtype=torch.float16).transpose(0, 1) @ torch.randn(96, 40, dtype=torch.float16)",
        &["mc=64", "nc=16", "kc=32"],
    ),
    ("torch.nn.Linear(72, 40)(torch.randn(70, 72))", &["mc=64", "nc=32", "tf32=1"]),
    (
        "torch.randn(130, 400, dtype=torch.float16) @ torch.randn(400, 136, dtype=torch.float16)",
        &["warp_specialize=1", "slots=2"],
    ),
    (
        "torch.randn(150, 200, dtype=torch.float16) @ torch.randn(200, 264, dtype=torch.float16)",
        &["warp_specialize=1", "mc=128", "nc=256", "split_k=1"],
    ),
    (
        "torch.nn.functional.linear(torch.randn(70, 416, dtype=torch.float8_e4m3fn).float(), torch.randn(136, 416, \
         dtype=torch.float8_e4m3fn).float())",
        &["fast_acc=1", "mc=64", "nc=64"],
    ),
    // Attention: the second product goes on while the next keys are scored, a warp fills, and neither; rows of two boxes.
    (
        "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 70, 16, dtype=torch.float16), torch.randn(1, 1, 300, 16, \
         dtype=torch.float16), torch.randn(1, 1, 300, 32, dtype=torch.float16))",
        &["slots=3"],
    ),
    (
        "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 70, 32, dtype=torch.bfloat16), torch.randn(1, 1, 300, 32, \
         dtype=torch.bfloat16), torch.randn(1, 1, 300, 48, dtype=torch.bfloat16), is_causal=True)",
        &["slots=3", "warp_specialize=0"],
    ),
    (
        "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 1, 70, 128, dtype=torch.float16), torch.randn(1, 1, 200, 128, \
         dtype=torch.float16), torch.randn(1, 1, 200, 16, dtype=torch.float16))",
        &["slots=2", "warp_specialize=1"],
    ),
    // Products that go on while the next begins.
    (
        "torch.randn(130, 400, dtype=torch.float16) @ torch.randn(400, 136, dtype=torch.float16)",
        &["mc=64", "nc=64", "kc=32", "slots=4"],
    ),
    (
        "torch.randn(130, 400, dtype=torch.float16) @ torch.randn(400, 136, dtype=torch.float16)",
        &["mc=64", "nc=64", "kc=32", "slots=3", "overlap=1", "warp_specialize=1"],
    ),
];

/// Products whose blocks go in groups and take their turns, on the given number of multiprocessors of one target each, as
/// their pipelines differ.
pub const IN_TURN: &[(&str, &[&str], &str, u32)] = &[
    (
        "torch.randn(70, 200, dtype=torch.float16) @ torch.randn(200, 56, dtype=torch.float16)",
        &["split_k=1", "mc=16", "nc=16", "kc=32", "group=2", "persist=1"],
        "sm_80",
        3,
    ),
    (
        "torch.randn(70, 96, dtype=torch.float16) @ torch.randn(96, 56, dtype=torch.float16)",
        &["split_k=1", "mc=16", "nc=16", "kc=32", "group=3", "persist=1", "slots=2"],
        "sm_100a",
        4,
    ),
    (
        "torch.randn(256, 200, dtype=torch.float16) @ torch.randn(200, 96, dtype=torch.float16)",
        &["split_k=1", "mc=128", "nc=32", "kc=32", "persist=1", "slots=2"],
        "sm_100a",
        2,
    ),
    (
        "torch.nn.Linear(72, 40)(torch.randn(36, 72))",
        &["split_k=1", "mc=16", "nc=8", "persist=1", "slots=1"],
        "sm_120",
        2,
    ),
    (
        "torch.randn(70, 96, dtype=torch.float16) @ torch.randn(96, 56, dtype=torch.float16)",
        &["split_k=1", "mc=16", "nc=16", "kc=32", "group=3", "persist=1", "slots=2", "warp_specialize=1"],
        "sm_120",
        4,
    ),
    (
        "torch.randn(150, 160, dtype=torch.float16) @ torch.randn(160, 80, dtype=torch.float16)",
        &["split_k=1", "mc=64", "nc=32", "kc=32", "group=2", "persist=1", "slots=3"],
        "sm_90a",
        2,
    ),
    (
        "torch.randn(150, 128, dtype=torch.float16) @ torch.randn(128, 80, dtype=torch.float16)",
        &["split_k=1", "mc=64", "nc=32", "kc=32", "persist=1", "slots=2", "warp_specialize=1"],
        "sm_90a",
        4,
    ),
    (
        "torch.randn(200, 320, dtype=torch.float16) @ torch.randn(320, 264, dtype=torch.float16)",
        &["split_k=1", "mc=128", "nc=256", "persist=1"],
        "sm_90a",
        2,
    ),
    (
        "torch.matmul(torch.randn(3, 33, 40), torch.randn(3, 40, 34))",
        &["split_k=1", "mc=16", "nc=16", "kc=8", "group=1", "persist=1", "async_copy=0", "tma=0"],
        "sm_80",
        5,
    ),
];

/// Attention whose blocks take their turns. Its barriers are between the tiles of a block, which other waits order, too, so that no
/// mutant of one of them alone is noticed.
const ATTENTION_IN_TURN: &[(&str, &[&str], &str, u32)] = &[(
    "torch.nn.functional.scaled_dot_product_attention(torch.randn(1, 2, 130, 32, dtype=torch.float16), torch.randn(1, 2, 320, 32, \
     dtype=torch.float16), torch.randn(1, 2, 320, 16, dtype=torch.float16))",
    &["slots=3", "persist=1"],
    "sm_90a",
    2,
)];

/// Products with sums in tensor memory: filled by a warp; by all, one product after the other and overlapping; with a slot for each
/// iteration; and by two groups with rows of their own.
pub const IN_TENSOR_MEMORY: &[(&str, &[&str])] = &[
    (
        "torch.randn(128, 200, dtype=torch.float16) @ torch.randn(200, 48, dtype=torch.float16)",
        &["mc=128", "nc=32", "kc=32", "slots=2"],
    ),
    (
        "torch.nn.Linear(200, 40, dtype=torch.bfloat16)(torch.randn(100, 200, dtype=torch.bfloat16))",
        &["mc=128", "nc=32", "kc=32", "slots=2", "warp_specialize=0"],
    ),
    (
        "torch.randn(128, 200, dtype=torch.float16) @ torch.randn(200, 32, dtype=torch.float16)",
        &["mc=128", "nc=32", "kc=32", "slots=3", "overlap=1", "warp_specialize=0"],
    ),
    (
        "torch.randn(128, 128, dtype=torch.float16) @ torch.randn(128, 32, dtype=torch.float16)",
        &["mc=128", "nc=32", "kc=32", "slots=4", "warp_specialize=0"],
    ),
    (
        "torch.randn(256, 128, dtype=torch.float16) @ torch.randn(128, 32, dtype=torch.float16)",
        &["mc=256", "nc=32", "kc=32", "slots=2"],
    ),
    (
        "torch.randn(150, 200, dtype=torch.float16) @ torch.randn(200, 264, dtype=torch.float16)",
        &["mc=128", "nc=256", "kc=32", "split_k=1"],
    ),
];

/// Kernels whose blocks form clusters, on targets that have them. Products: of one box each generation for all, of several, in groups, and
/// of `mma.sync`.
pub const CLUSTERED: &[(&str, &[&str], &[&str])] = &[
    (
        "torch.randn(128, 160, dtype=torch.float16) @ torch.randn(160, 128, dtype=torch.float16)",
        &["split_k=1", "mc=64", "nc=64", "kc=32", "slots=2", "warp_specialize=1", "cluster=2"],
        &["sm_90a"],
    ),
    (
        "torch.randn(250, 200, dtype=torch.float16) @ torch.randn(200, 136, dtype=torch.float16)",
        &["split_k=1", "mc=64", "nc=128", "kc=32", "slots=3", "group=2", "overlap=1", "warp_specialize=1", "cluster=2"],
        &["sm_90a"],
    ),
    (
        "torch.randn(120, 200, dtype=torch.float16) @ torch.randn(200, 56, dtype=torch.float16)",
        &["split_k=1", "mc=32", "nc=32", "kc=32", "slots=2", "warp_specialize=1", "cluster=4"],
        &["sm_90a", "sm_100a"],
    ),
    // Rows that the blocks of a cluster share.
    ("torch.nn.functional.layer_norm(torch.randn(3, 400), (400,))", &["cluster_rows=4"], &["sm_90a", "sm_100a"]),
    ("torch.randn(2, 600, dtype=torch.float16).sum(-1)", &["cluster_rows=8"], &["sm_90a"]),
    ("torch.randn(700).abs().max()", &["cluster_rows=2"], &["sm_100a"]),
];

/// Kernels whose blocks form clusters.
pub fn programs_in_clusters(text: &str, target: &str, knobs: &[&str]) -> Vec<Program> {
    let made = programs(text, target, knobs);
    assert!(made.iter().all(|p| p.lowered.kernel.cluster > 1), "{text} for {target} {}", knobs.join(" "));
    made
}

/// Kernels of every family with their targets: each for one, or for all four.
pub fn suite(all: bool) -> impl Iterator<Item = (Program, &'static str)> {
    let plain = MODELS.iter().enumerate().flat_map(move |(at, text)| {
        let targets = if all { &TARGETS[..] } else { std::slice::from_ref(&TARGETS[at % 4]) };
        targets.iter().map(move |target| (*text, &[][..], *target))
    });
    let grouped = GROUPED.iter().map(|(text, knobs)| (*text, *knobs, "sm_90a"));
    let grouped = grouped.chain(IN_TENSOR_MEMORY.iter().map(|(text, knobs)| (*text, *knobs, "sm_100a")));
    let all = plain.chain(grouped).flat_map(|(text, knobs, target)| {
        let programs = programs(text, target, knobs);
        assert!(knobs.is_empty() || programs.iter().all(Program::is_grouped), "{text}");
        programs.into_iter().map(move |program| (program, target))
    });
    let in_turn = IN_TURN.iter().chain(ATTENTION_IN_TURN).flat_map(|(text, knobs, target, workers)| {
        programs_in_turn(text, target, knobs, *workers).into_iter().map(move |program| (program, *target))
    });
    let clustered = CLUSTERED.iter().flat_map(|(text, knobs, targets)| {
        let of = |target: &&'static str| (*target, programs_in_clusters(text, target, knobs));
        targets.iter().map(of).flat_map(|(target, all)| all.into_iter().map(move |program| (program, target)))
    });
    all.chain(in_turn).chain(clustered)
}

/// Kernels whose blocks take their turns on `workers` multiprocessors; on another target than the list's, only the kernels
/// whose blocks do.
pub fn programs_in_turn(text: &str, target: &str, knobs: &[&str], workers: u32) -> Vec<Program> {
    let made = programs_on(text, Target::named(target).unwrap().with_workers(workers), knobs);
    let listed = IN_TURN.iter().chain(ATTENTION_IN_TURN).any(|one| *one == (text, knobs, target, workers));
    assert!(!listed || made.iter().all(Program::takes_turns), "{text} for {target} {}", knobs.join(" "));
    made.into_iter().filter(Program::takes_turns).collect()
}

/// A kernel, and its arguments: the type and the elements of each parameter's array.
pub struct Program {
    pub name: String,
    pub lowered: Lowered,
    pub arrays: Vec<(DType, u64)>,
}

impl Program {
    pub fn is_grouped(&self) -> bool {
        let text = girih_compiler::kernel::print::print(&self.lowered.kernel);
        text.contains("wgmma") || text.contains("tcgen05 mma")
    }

    /// Returns true if a block takes several iterations of its nest.
    pub fn takes_turns(&self) -> bool {
        girih_compiler::kernel::print::print(&self.lowered.kernel).contains("for round in ")
    }
}

/// The kernels of an expression; none of its arrays is a constant.
pub fn programs(text: &str, target: &str, knobs: &[&str]) -> Vec<Program> {
    programs_on(text, Target::named(target).unwrap(), knobs)
}

fn programs_on(text: &str, target: Target, knobs: &[&str]) -> Vec<Program> {
    let mut options = Options { target, ..Options::default() };
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
        let name = format!("{text}, {}, {target} {}", step.kernel.name, knobs.join(" "), target = options.target.name);
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

/// The memory after a run; `None` where the simulator found something.
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
