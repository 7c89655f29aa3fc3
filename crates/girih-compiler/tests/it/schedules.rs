//! Schedules that are printed and read again make the same Kernel IR.

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::kernel;
use girih_compiler::loops::model;
use girih_compiler::pipeline::{self, Options};
use girih_compiler::source::expr;
use girih_compiler::tile::schedule::{Schedule, Writer};
use girih_compiler::tile::target::Target;

/// The targets whose schedules differ most.
fn targets() -> Vec<Target> {
    let gpus = ["sm_80", "sm_90a", "sm_120"].map(|name| Target::named(name).unwrap());
    [Target::cpu(), Target::cpu().with_vectors(32, 16)].into_iter().chain(gpus).collect()
}

/// A schedule, written, read back and replayed, makes the same Kernel IR and the same schedule. `lower` gives Kernel IR as text.
fn replayed(what: &str, options: &Options, lower: &dyn Fn(&Options, &mut Writer) -> String) -> String {
    let mut writer = Writer::new(options.context());
    let want = lower(options, &mut writer);
    let written = writer.finish();
    let schedule = fails(Schedule::parse(what, &written));
    let with = Options { schedule: Some(schedule.into()), ..options.clone() };
    let mut writer = Writer::new(with.context());
    let got = lower(&with, &mut writer);
    assert!(got == want, "{what} on {}: other Kernel IR\n{written}", options.target.name);
    let steps = |text: &str| {
        let lines = text.lines().filter(|l| l.starts_with("  "));
        lines.map(|l| l.split('#').next().unwrap_or("").trim().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(steps(&writer.finish()), steps(&written), "{what} on {}", options.target.name);
    written
}

fn fails<T>(result: Result<T, Vec<Diagnostic>>) -> T {
    result.unwrap_or_else(|all| panic!("{:?}", all.iter().map(|d| d.message.clone()).collect::<Vec<_>>()))
}

#[test]
fn the_schedule_of_every_example_replays() {
    let dir = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "mlir"));
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let front = fails(pipeline::front(&std::fs::read_to_string(&file).unwrap()));
        for (entry, target) in front.module.entries().flat_map(|e| targets().into_iter().map(move |t| (e, t))) {
            let options = Options { target, ..Options::default() };
            replayed(&file.display().to_string(), &options, &|options, writer| {
                let lowered = fails(pipeline::lower(&front.module, &entry.name, options, writer));
                kernel::print::print(&lowered.kernel)
            });
        }
    }
}

#[test]
fn the_schedules_of_models_replay() {
    let mut all = String::new();
    let one = "torch.randn(1, 2, 1024, 64, dtype=torch.float16)";
    let causal = format!("torch.nn.functional.scaled_dot_product_attention({one}, {one}, {one}, is_causal=True)");
    for text in [
        "torch.softmax(torch.randn(64, 1000), -1)",
        "torch.relu(torch.randn(100, 33))",
        "torch.randn(256, 512) @ torch.randn(512, 384)",
        "torch.nn.RMSNorm(2048)(torch.randn(1, 32, 2048))",
        "torch.randn(3, 100000).mean(-1)",
        "torch.randn(4000, 512).sum(0)",
        "torch.cumsum(torch.randn(8, 3000), -1)",
        "torch.nn.functional.scaled_dot_product_attention(torch.randn(1,4,128,64),torch.randn(1,4,128,64),torch.randn(1,4,128,64))",
        &causal,
    ] {
        let graph = expr::evaluate(text, &[]).unwrap().graph;
        for target in targets() {
            let options = Options { target, ..Options::default() };
            all += &replayed(text, &options, &|options, writer| {
                let model = fails(pipeline::lower_model(&graph, options, writer));
                let mut rewrites = model.rewrites.clone();
                let steps: Vec<&model::Step> = model.scheduled.load.iter().chain(&model.scheduled.steps).collect();
                let one = |step: &&model::Step| {
                    let lowered = fails(pipeline::lower_loops(step.kernel.clone(), options, &mut rewrites, writer));
                    kernel::print::print(&lowered.kernel)
                };
                steps.iter().map(one).collect()
            });
        }
    }
    // Causal attention: the longest blocks first, and on sm_90a all that warpgroups do.
    for line in
        ["reverse ib", "approximate j_4", "tensorize r_3, r_12 as warpgroup", "pipeline keyt by 3 roles overlap"]
    {
        assert!(all.contains(&format!("\n  {line}")), "{line} is not in\n{all}");
    }
    // All of them is primitives.
    assert!(!all.contains("\n  policy "), "{all}");
}

/// A line that is changed by hand is followed; one that is not legal is refused at its place.
#[test]
fn a_person_may_change_a_schedule() {
    let graph = expr::evaluate("torch.relu(torch.randn(100, 33))", &[]).unwrap().graph;
    let target = Target::named("sm_90a").unwrap();
    let lower = |schedule: &str| {
        let schedule = Some(Schedule::parse("mine.txt", schedule).map_err(|all| all[0].clone())?.into());
        let options = Options { target: target.clone(), schedule, ..Options::default() };
        let model = pipeline::lower_model(&graph, &options, &mut pipeline::Silent).map_err(|all| all[0].clone())?;
        let (step, mut rewrites) = (&model.scheduled.steps[0], model.rewrites.clone());
        pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut pipeline::Silent)
            .map_err(|all| all[0].clone())
    };
    let text = "schedule 1 for sm_90a\nkernel k_relu\n  fuse a1 -> n\n  split n by 64 guard -> b, t\n  bind b to block.x\n  bind t to thread\n";
    let made = lower(text).unwrap();
    assert_eq!(made.kernel.threads, 64);
    for (from, to, line, why) in [
        ("fuse a1", "fuse a7", 3, "unknown loop `a7`"),
        ("by 64", "by 0", 4, "a whole number from 1 on"),
        ("by 64", "by 2048", 6, "a block at most 1024 threads"),
        ("bind t to thread", "bind b to block.y", 6, "placed the loop already"),
        ("k_relu", "k_gelu", 2, "unknown kernel `k_gelu`"),
        ("bind t to thread", "policy stage_inputs", 6, "the policy `stage_inputs` changes nothing here"),
    ] {
        let d = lower(&text.replace(from, to)).map(|_| ()).unwrap_err();
        assert!(d.code == Code::BadSchedule && d.message.contains(why), "{to}: {}", d.message);
        assert_eq!(d.frames.first().map(|f| f.place.line), Some(line), "{to}");
    }
}

/// Work that a schedule does not spread over threads would be done by all of them at once.
#[test]
fn work_that_is_not_spread_over_threads_is_refused() {
    let front = fails(pipeline::front(
        &std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gemm.mlir")).unwrap(),
    ));
    let target = Target::named("sm_90a").unwrap();
    let lower = |steps: &[&str]| {
        let text = format!("schedule 1 for sm_90a\nkernel gemm\n{}\n", steps.join("\n"));
        let schedule = Some(fails(Schedule::parse("mine.txt", &text)).into());
        let options = Options { target: target.clone(), schedule, ..Options::default() };
        pipeline::lower(&front.module, "gemm", &options, &mut pipeline::Silent)
            .map(|lowered| lowered.kernel.threads)
            .map_err(|all| all[0].message.clone())
    };
    let staged = ["stage_read k_1 by a shared", "stage_read k_2 by b shared"];
    assert_eq!(lower(&staged), Ok(1));
    let on_warps = [&staged[..], &["tensorize k_3 as warps 4 x 2"]].concat();
    let why = lower(&on_warps).unwrap_err();
    assert!(why.contains("every thread of a block writes all of `a_s`") && why.contains("spread_threads"), "{why}");
    assert_eq!(lower(&[&on_warps[..], &["policy spread_threads"]].concat()), Ok(256));
}
