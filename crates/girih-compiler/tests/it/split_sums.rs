//! Sums that rules of plans split into kernels keep every bit: whole, in parts, and in parts on the simulator of each GPU.

use girih_compiler::base::host::Silent;
use girih_compiler::base::rule::Log;
use girih_compiler::graph::{ConstData, Elem};
use girih_compiler::kernel::sim;
use girih_compiler::loops::model::eval;
use girih_compiler::num::eval::apply;
use girih_compiler::num::op::Rounding;
use girih_compiler::num::{DType, ScalarOp};
use girih_compiler::pipeline;
use girih_compiler::tile::target::Target;
use girih_compiler::tile::tests::{OfPlans, gpu, plan_of, split_by};
use girih_compiler::tile::{Context, plan_rules};

/// The rule of a name, for the plans of a target.
fn rule(name: &str, target: &Target) -> OfPlans {
    plan_rules(target).list.into_iter().find(|r| r.name == name).unwrap().run
}

/// Small multiples of a quarter, so that every order of summation is exact.
fn fill(elem: Elem, count: i64, salt: u64) -> Vec<u8> {
    let mut out = vec![];
    for i in 0..count.max(0) as u64 {
        let n = ((i * 2654435761 + salt * 977) >> 7) % 9;
        let bits = if elem.dtype.is_int() {
            n.wrapping_sub(4) & elem.dtype.mask()
        } else {
            let x = u64::from(((n as f32 - 4.0) / 4.0).to_bits());
            apply(ScalarOp::FToF { to: elem.dtype, rounding: Rounding::NearestEven }, DType::F32, &[x])
        };
        out.extend_from_slice(&bits.to_le_bytes()[..elem.dtype.bytes() as usize]);
    }
    out
}

/// Runs a model whole, as a rule splits it, and split on the simulator of each GPU: the bits are the same. Gives what the rule did.
fn check(name: &str, text: &str, knobs: &[&str], symbols: &[i64], seed: u64) -> Log {
    let (graph, plan) = plan_of(text);
    let given = graph.inputs.iter().enumerate().map(|(at, input)| {
        let value = &graph.values[input.value];
        let count = value.shape.iter().map(|d| eval::at_symbols(d, symbols)).product();
        fill(value.elem, count, at as u64 + seed)
    });
    let inputs: Vec<Vec<u8>> = given.collect();
    let constants = |c| match &graph.constants[c].data {
        ConstData::Bytes(bytes) => bytes.to_vec(),
        ConstData::External { .. } => vec![],
    };
    let want = eval::run(&plan, symbols, &inputs, &constants).unwrap();
    let mut log = Log::default();
    for (at, gpu_name) in ["sm_80", "sm_90a", "sm_100a", "sm_120"].into_iter().enumerate() {
        let ctx = Context { target: Target::named(gpu_name).unwrap(), ..gpu(knobs) };
        let out;
        (out, log) = split_by(rule(name, &ctx.target), &plan, &ctx);
        let out = out.as_ref().unwrap_or(&plan);
        assert!(eval::run(out, symbols, &inputs, &constants).unwrap() == want, "{text}, split for {gpu_name}");
        let options = pipeline::Options { target: ctx.target, knobs: ctx.knobs, ..pipeline::Options::default() };
        let schedule = sim::Options::of_seed(seed + at as u64);
        let got = eval::run_with(out, symbols, &inputs, &constants, &mut |step, launch, memory| {
            let kernel = step.kernel.clone();
            let lowered =
                pipeline::lower_loops(kernel, &options, &mut options.rewrites(), &mut pipeline::Silent).unwrap();
            sim::run(&lowered.kernel, &lowered.tile, launch, memory, &mut Silent, &schedule)?.clean().map(drop)
        });
        let got = got.unwrap_or_else(|trap| panic!("{text} on {gpu_name}, seed {seed}: {}", trap.message));
        assert!(got == want, "{text} on {gpu_name}, seed {seed}: other values");
    }
    log
}

/// Two products of one kernel: each has parts of its own.
#[test]
fn products_of_one_kernel_keep_every_bit() {
    let text = "x = torch.randn(6, 300); (torch.nn.Linear(300, 20)(x).relu(), torch.nn.Linear(300, 12)(x))";
    check("split_matmul_k", text, &["split_k=3"], &[], 4);
}

/// Products of drawn shapes and types that the parts rarely divide, alone and with other operations around them.
#[test]
fn drawn_products_keep_every_bit() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = |from: &[i64]| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from[(state >> 33) as usize % from.len()]
    };
    let forms = [
        "torch.randn(M, K) @ torch.randn(K, N)",
        "torch.nn.Linear(K, N)(torch.randn(M, K))",
        "torch.nn.functional.gelu(torch.nn.Linear(K, N)(torch.randn(M, K))) + torch.randn(M, N)",
        "torch.nn.functional.silu(torch.randn(M, K) @ torch.randn(K, N)) * (torch.randn(M, K) @ torch.randn(K, N))",
        "x = torch.randn(M, K); torch.nn.functional.silu(torch.nn.Linear(K, N)(x)) * torch.nn.Linear(K, N)(x)",
        "torch.matmul(torch.randn(3, M, K), torch.randn(3, K, N)) * 2 + torch.randn(N)",
        "torch.nn.Linear(K, N).bfloat16()(torch.randn(M, K).bfloat16())",
        "torch.randn(M, K).half() @ torch.randn(K, N).half()",
        "torch.randn(M, K).double() @ torch.randn(K, N).double()",
        "torch.relu(torch.randn(M, K)) @ torch.abs(torch.randn(K, N))",
        "torch.randn(K, M).transpose(0, 1) @ torch.randn(K, N)",
        "torch.nn.Conv2d(3, N, 3, padding=1)(torch.randn(1, 3, 6, M))",
        "torch.nn.functional.embedding(torch.tensor([3, 0, 2]), torch.randn(5, K)) @ torch.randn(K, N)",
    ];
    for (seed, form) in forms.iter().chain(&forms).enumerate() {
        let [m, n, k] = [draw(&[2, 4, 7, 20, 33]), draw(&[8, 12, 31, 40]), draw(&[16, 45, 64, 72, 90, 180])];
        let text = form.replace('M', &m.to_string()).replace('N', &n.to_string()).replace('K', &k.to_string());
        let knob = format!("split_k={}", draw(&[2, 3, 5, 20]));
        let log = check("split_matmul_k", &text, &[&knob], &[], seed as u64);
        assert_eq!(log.applied.len(), 1, "{text} with {knob}: {:?}", log.skipped);
    }
}
#[test]
fn rows_may_be_known_at_launch_only() {
    let text = "torch.nn.functional.silu(torch.nn.Linear(90, 12)(torch.randn(B, 90)))";
    for rows in [1, 5, 70] {
        let log = check("split_matmul_k", text, &["split_k=3"], &[rows], rows as u64);
        assert_eq!(log.applied, ["k_linear_silu, contraction into dot: 3 parts of 30"]);
    }
}

/// Rows of drawn shapes, types and reductions keep every bit in parts, on every GPU.
#[test]
fn drawn_rows_keep_every_bit() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut draw = |from: &[i64]| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from[(state >> 33) as usize % from.len()]
    };
    let forms = [
        "torch.randn(N, K).sum(-1)",
        "torch.randn(N, K).sum()",
        "torch.randn(K).sum() * 2",
        "torch.randn(N, K).max(1).values",
        "torch.randn(N, K).amin(-1)",
        "torch.randn(N, K).half().sum(-1)",
        "torch.randn(N, K).double().sum(-1)",
        "(torch.randn(N, K) * torch.randn(K)).sum(-1)",
        "(torch.randn(N, K) > 0).sum(-1)",
        "torch.randn(K, N).sum(0)",
        "torch.randn(2, K, N).sum(1)",
        "torch.randn(N, K).abs().sum(-1, keepdim=True) + torch.randn(N, 1)",
    ];
    for (seed, form) in forms.iter().chain(&forms).enumerate() {
        let [n, k] = [draw(&[1, 2, 5, 9]), draw(&[64, 100, 257, 300])];
        let text = form.replace('N', &n.to_string()).replace('K', &k.to_string());
        let knob = format!("split_rows={}", draw(&[2, 3, 5, 64]));
        let log = check("split_reduction", &text, &[&knob], &[], seed as u64);
        assert!(!log.applied.is_empty(), "{text} with {knob}: {:?}", log.skipped);
    }
}

#[test]
fn merged_axes_keep_every_bit() {
    for text in [
        "torch.randn(5, 30, 20).sum((0, 2))",
        "torch.randn(9, 4, 7, 3).amax((0, 2))",
        "torch.randn(6, 5, 40).mean((0, 2))",
    ] {
        let log = check("merge_folds", text, &[], &[], 1);
        assert!(!log.applied.is_empty(), "{text}");
    }
}
