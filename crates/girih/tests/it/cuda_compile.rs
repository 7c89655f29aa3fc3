//! Emitted CUDA through NVRTC, for every target, and the instructions of the machine code. Kernels are the files of
//! `tests/cuda` and `tests/races`, Kernel IR; the first lines of each say what is expected:
//!
//! ```text
//! # sass: LDG.E.128 STG.E.128        each of these instructions is there
//! # only: sm_90a                     other targets refuse it
//! # no local memory                  nothing is spilled, and no array lies there
//! ```
//! Files and models are compiled for every second target in turn, and for each with `KERNELS=all`.
//!
//! It needs the packages of the extra `cuda`, so `make cuda` runs it (`--ignored`), and nothing else does.

mod goals;

use crate::gpu_programs;
use crate::kernel_files;
use crate::scalar_cases;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use girih::cuda::{Error, Places, TARGETS, Toolchain, explain, image, occupancy};
use girih_compiler::emit::cuda::emit;
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::legalise::{Options, legalise};
use girih_compiler::kernel::parse::parse;
use girih_compiler::pipeline::Lowered;
use girih_compiler::tile::target::Target;
use kernel_files::KernelFile;
use scalar_cases::{cases, kernel};

fn toolchain() -> Toolchain {
    Toolchain::find(&Places::from_environment()).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns true if this run tests every target.
fn every_target() -> bool {
    std::env::var("KERNELS").is_ok_and(|all| all == "all")
}

fn files() -> Vec<KernelFile> {
    ["cuda", "races"].into_iter().flat_map(kernel_files::of).collect()
}

/// The output of NVRTC, with the statements that it is about.
fn compiled(tools: &Toolchain, kernels: &[&Kernel], target: &str) -> girih::cuda::Object {
    let unit = emit(kernels, &Target::named(target).expect("a target")).unwrap_or_else(|r| panic!("{}", r.message));
    match tools.compile(&unit, target) {
        Ok(object) => object,
        Err(Error::Rejected { log, .. }) => panic!("{}\n{}", explain(&log, &unit, kernels), unit.text),
        Err(other) => panic!("{other}"),
    }
}

#[test]
#[ignore = "needs NVRTC and nvdisasm: `make cuda`"]
fn kernels_become_the_instructions_meant() {
    let tools = toolchain();
    let all = every_target();
    let (mut count, mut wrong) = (0, vec![]);
    for (at, file) in files().iter().enumerate() {
        let (name, kernel) = (&file.name, &file.kernel);
        let expected = |key| file.said(key);
        let has_tma = kernel.mbarriers() > 0 || !kernel.tensors.is_empty();
        for (turn, target) in TARGETS.into_iter().enumerate() {
            if has_tma && target == "sm_80" {
                let refusal = emit(&[kernel], &Target::named(target).expect("a target")).expect_err("it has no TMA");
                assert!(refusal.message.contains("mbarriers and TMA; sm_80 has neither"), "{}", refusal.message);
                continue;
            }
            if expected("only:").iter().any(|only| only.split(' ').all(|one| one != target)) {
                let refusal =
                    emit(&[kernel], &Target::named(target).expect("a target")).expect_err("it has no such unit");
                let units = ["products of warpgroups", "products in tensor memory", "exchange registers"];
                let said = units.iter().any(|unit| refusal.message.contains(&format!("{unit}; {target} has no")));
                assert!(said, "{}", refusal.message);
                continue;
            }
            // One that only some targets have is compiled for all of these.
            if !all && !has_tma && expected("only:").is_empty() && (turn + at) % 2 != 0 {
                continue;
            }
            if let Some(why) = expected("ptxas:").first() {
                let unit = emit(&[kernel], &Target::named(target).expect("a target")).expect("CUDA");
                let Err(Error::Rejected { log, .. }) = tools.compile(&unit, target) else {
                    panic!("{name}, {target}: NVIDIA's compiler takes it")
                };
                assert!(log.contains(why), "{name}, {target}: {log}");
                count += 1;
                continue;
            }
            let object = compiled(&tools, &[kernel], target);
            assert_eq!(object.log, "", "{name}, {target}");
            let sass = tools.sass(&object).unwrap_or_else(|e| panic!("{name}, {target}: {e}"));
            let [resources] = object.kernels.as_slice() else { panic!("{name}: {:?}", object.kernels) };
            let function = sass.functions.iter().find(|f| f.name == resources.name).expect("the function");
            for opcode in expected("sass:").iter().flat_map(|line| line.split(' ')) {
                if !function.has(opcode) {
                    let mut has: Vec<&str> = function.instructions.iter().map(|i| i.opcode.as_str()).collect();
                    has.sort_unstable();
                    has.dedup();
                    wrong.push(format!("{name}, {target}: no {opcode} among {}", has.join(", ")));
                }
            }
            if !expected("no local memory").is_empty() {
                let local = function.has("LDL") || function.has("STL");
                let spilled = resources.stack + resources.spill_stores + resources.spill_loads;
                if local || spilled > 0 {
                    wrong.push(format!("{name}, {target}: local memory, {resources:?}"));
                }
            }
            assert!(object.ptx.contains(".visible .entry") && (1..=255).contains(&resources.registers), "{name}");
            let fits = occupancy(target, resources, kernel.threads, 0).expect("a target");
            assert!(fits.blocks > 0, "{name}, {target}: {fits}");
            if std::env::var_os("GIRIH_SHOW").is_some() {
                println!(
                    "{name}, {target}: {} registers, {} bytes shared, {fits}",
                    resources.registers, resources.shared
                );
            }
            // The same input, the same bytes.
            if all || count % 8 == 0 {
                assert_eq!(compiled(&tools, &[kernel], target).cubin, object.cubin, "{name}, {target}");
            }
            count += 1;
        }
    }
    println!("{count} kernels");
    assert!(wrong.is_empty() && count >= 2 * 9, "{}", wrong.join("\n"));
}

/// The compiled kernels of models: instructions that must be there, nothing spilled, no array in local memory.
#[test]
#[ignore = "needs NVRTC and nvdisasm: `make cuda`"]
fn models_become_the_instructions_meant() {
    use girih::{Device, Options as Compile, model::Model};
    use girih_compiler::pipeline::Stage;
    let tools = toolchain();
    // COPY, BACK: as the target brings slabs to shared memory, and tiles from there. WARPS: products of warps, and of warpgroups where they are.
    let half = "torch.randn(1024, 512).half() @ torch.randn(512, 1024).half()";
    let attended = |heads: u32, d: u32| {
        let one = format!("torch.randn(1, {heads}, 1024, {d}).half()");
        format!("torch.nn.functional.scaled_dot_product_attention({one}, {one}, {one})")
    };
    let (attention, wide) = (&*attended(4, 64), &*attended(2, 128));
    let multiplied = "COPY BACK WARPS|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x128x16.F32|";
    let clustered = "COPY BACK WARPS UTMALDG.2D.MULTICAST UCGABAR_ARV UCGABAR_WAIT|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x128x16.F32|";
    let cases = [
        ("torch.nn.Linear(3584, 3584)(torch.randn(512, 3584))", "COPY LDS.128 FFMA", ""),
        ("torch.randn(512, 1024) @ torch.randn(1024, 768)", "COPY LDS.128 FFMA STG.E.128", ""),
        (half, multiplied, ""),
        // 128 sums for each thread of two warpgroups, whose registers a third gives them.
        (
            "torch.randn(4096, 512).half() @ torch.randn(512, 4096).half()",
            "COPY BACK WARPS|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x256x16.F32 USETMAXREG BAR.SYNC|",
            "persist=1",
        ),
        // Blocks in groups, and blocks that take tiles in turn, with and without a warp that fills.
        (half, multiplied, "mc=128 nc=128 group=3"),
        (half, multiplied, "mc=64 nc=128 split_k=1 group=4 persist=1"),
        (half, multiplied, "mc=64 nc=128 split_k=1 persist=1 warp_specialize=1"),
        // Clusters, on targets that have them.
        (half, clustered, "mc=64 nc=128 split_k=1 warp_specialize=1 cluster=2"),
        (
            "torch.nn.Linear(512, 1024).bfloat16()(torch.randn(256, 512).bfloat16())",
            "COPY BACK WARPS|LDSM.16.M88.4 HMMA.16816.F32.BF16|HGMMA.64x128x16.F32.BF16|",
            "",
        ),
        (
            "torch.randint(-9, 9, (512, 256), dtype=torch.int8).transpose(0, 1).int() @ torch.randint(-9, 9, (512, 512), \
             dtype=torch.int8).int()",
            "COPY LDSM.16.MT88.4 PRMT IMMA.16832.S8.S8",
            "",
        ),
        (
            "torch.nn.functional.linear(torch.randn(512, 1024, dtype=torch.float8_e4m3fn).float(), torch.randn(512, 1024, \
             dtype=torch.float8_e4m3fn).float())",
            "LDSM.16.M88.4 F8",
            // One kernel: where sums are split the last one only adds them up.
            "split_k=1",
        ),
        // Attention: both products, the weights by the unit for exponentials, registers of the warpgroup that fills for the others.
        (
            attention,
            "ATTENTION WARPS MUFU.EX2|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x128x16.F32 HGMMA.64x64x16.F32 USETMAXREG|",
            "",
        ),
        (
            wide,
            "ATTENTION WARPS MUFU.EX2|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x128x16.F32 HGMMA.64x64x16.F32 USETMAXREG|",
            "",
        ),
        (
            attention,
            "ATTENTION WARPS|LDSM.16.MT88.4 HMMA.16816.F32|HGMMA.64x128x16.F32 HGMMA.64x64x16.F32|",
            "exact_exp=1 warp_specialize=0",
        ),
        ("torch.nn.functional.gelu(torch.randn(4096, 4096))", "LDG.E.128 STG.E.128", ""),
        ("torch.nn.RMSNorm(2048)(torch.randn(32, 2048))", "SHFL.BFLY LDG.E.128 STG.E.128", ""),
        // Loads of the other blocks' shared memory by generic addresses.
        ("torch.randn(6, 9001).sum(-1)", "SHFL.BFLY UCGABAR_ARV UCGABAR_WAIT LD.E", "cluster_rows=4"),
    ];
    let all = every_target();
    let (mut count, mut wrong) = (0, vec![]);
    for (at, (expression, opcodes, knobs)) in cases.into_iter().enumerate() {
        let has_clusters = |target: &str| Target::named(target).is_some_and(|t| t.axes.cluster > 1);
        // Every second target, in turn.
        let targets = TARGETS.into_iter().enumerate().filter(|(i, _)| all || (i + at) % 2 == 0).map(|(_, t)| t);
        for target in targets.filter(|t| !knobs.contains("cluster") || has_clusters(t)) {
            let (copy, back) = match target {
                "sm_80" => ("LDGSTS.E.BYPASS.128 LDGDEPBAR DEPBAR.LE", "STS LDS.128 STG.E.128"),
                _ => ("UTMALDG UTMACCTL.PF SYNCS.PHASECHK", "UTMASTG UTMACMDFLUSH DEPBAR"),
            };
            let parts: Vec<&str> = opcodes.split('|').collect();
            let opcodes = match parts[..] {
                [first, warps, groups, _] => {
                    let tall = target == "sm_100a" && !first.contains("ATTENTION") && !knobs.contains("mc=64");
                    let unit = match target {
                        "sm_90a" => groups,
                        _ if tall => "UTCHMMA UTCBAR LDTM",
                        _ => warps,
                    };
                    first.replace("WARPS", unit)
                }
                _ => opcodes.to_string(),
            };
            // f8: of warps, converted where the unit has none of its own.
            let bytes = if target == "sm_120" { "QMMA.16832.F32.E4M3.E4M3" } else { "HMMA.16816.F32" };
            let opcodes = opcodes
                .replace("ATTENTION", if target == "sm_80" { "LDGSTS.E.BYPASS.128" } else { "UTMALDG SYNCS.PHASECHK" });
            let opcodes = opcodes.replace("COPY", copy).replace("BACK", back).replace("F8", bytes);
            // So few multiprocessors that each has several of the tiles.
            let workers = if knobs.contains("persist") { Some(16) } else { None };
            let named = Target::named(target).map(|t| workers.map_or(t.clone(), |n| t.clone().with_workers(n)));
            let mut options = Compile { target: named, ..Compile::default().device(Device::Sim) };
            let set = knobs.split_whitespace().filter_map(|knob| knob.split_once('='));
            options.knobs = set.map(|(name, n)| (name.to_string(), n.parse().expect("a number"))).collect();
            let model = Model::from_expression(expression, &[]).expect("a model").with_options(options);
            let text = model.ir(Stage::Kernel).unwrap_or_else(|e| panic!("{expression}: {e}"));
            // The last kernel, which computes the expression's result.
            let at = text.rfind("\nkernel ").expect("a kernel");
            let kernel = parse(&text[at..]).unwrap_or_else(|d| panic!("{expression}: {}", d.message));
            let object = compiled(&tools, &[&kernel], target);
            let sass = tools.sass(&object).unwrap_or_else(|e| panic!("{expression}, {target}: {e}"));
            let [resources] = object.kernels.as_slice() else { panic!("{expression}: {:?}", object.kernels) };
            let function = sass.functions.iter().find(|f| f.name == resources.name).expect("the function");
            let missing: Vec<&str> = opcodes.split(' ').filter(|opcode| !function.has(opcode)).collect();
            let local = function.has("LDL") || function.has("STL");
            assert_eq!(text.contains("for round in "), knobs.contains("persist"), "{expression}, {target} {knobs}");
            if !missing.is_empty() || local || resources.stack + resources.spill_stores + resources.spill_loads > 0 {
                wrong.push(format!("{expression}, {target} {knobs}: without {missing:?}, {resources:?}"));
            }
            count += 1;
        }
    }
    println!("{count} kernels of models");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Kernels of every family, for every target.
#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn every_family_compiles() {
    let tools = toolchain();
    let mut counts = BTreeMap::<&str, usize>::new();
    for (program, target) in gpu_programs::suite(true) {
        let object = compiled(&tools, &[&program.lowered.kernel], target);
        assert_eq!(object.log, "", "{}", program.name);
        *counts.entry(target).or_default() += 1;
    }
    println!("{counts:?}");
    assert!(counts.len() == TARGETS.len() && counts.values().all(|n| *n >= 20), "{counts:?}");
}

/// Every example as a user has it, prints, locks and all: each for one target, the small ones for all.
#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn examples_compile() {
    use girih::{Device, Options as Compile, Program};
    use girih_compiler::pipeline::Stage;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|f| f.extension().is_some_and(|e| e == "mlir")).collect();
    files.sort();
    let small = ["hello", "mutex", "print_in_turn"];
    let mut count = 0;
    for (at, file) in files.iter().enumerate() {
        let program = Program::from_text(&std::fs::read_to_string(file).expect("it is read")).expect("a program");
        let all = file.file_stem().is_some_and(|stem| small.iter().any(|s| stem == *s));
        for target in TARGETS.into_iter().enumerate().filter(|(i, _)| all || i % TARGETS.len() == at % TARGETS.len()) {
            let options = Compile { target: Target::named(target.1), ..Compile::default().device(Device::Sim) };
            for name in program.entries() {
                let entry = program.entry(name).expect("an entry").with_options(options.clone());
                let text = entry.ir(Stage::Sass).unwrap_or_else(|e| panic!("{}, {}: {e}", file.display(), target.1));
                assert!(text.contains("EXIT"), "{text}");
                count += 1;
            }
        }
    }
    println!("{count} examples");
    assert!(count >= files.len() + 3 * small.len(), "{count}");
}

/// Each operation is a kernel; all of them for one target, and every twentieth for the others.
#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn every_scalar_operation_compiles() {
    let tools = toolchain();
    let all = cases();
    let kernels: Vec<Kernel> = (all.iter().enumerate())
        .map(|(i, c)| legalise(&kernel(c, &format!("k{i}"), 1), &Options::default()).expect("lowers"))
        .collect();
    for target in TARGETS {
        let every = if target == "sm_90a" { 1 } else { 20 };
        let chosen: Vec<&Kernel> = kernels.iter().step_by(every).collect();
        let mut done = 0;
        for part in chosen.chunks(100) {
            let object = compiled(&tools, part, target);
            assert_eq!(object.log, "", "{target}");
            done += object.kernels.len();
        }
        println!("{done} operations for {target}");
        assert_eq!(done, chosen.len());
    }
}

#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn what_the_compiler_refuses_is_said_of_a_statement() {
    let tools = toolchain();
    let kernel =
        parse("kernel k(x: ptr<f32>) scratch 0 {\n  a: f32 = load x[0]\n  store x[1] = a\n}\n").expect("it is read");
    let mut unit =
        emit(&[&kernel], &Target::named("sm_80").expect("a target")).unwrap_or_else(|r| panic!("{}", r.message));
    unit.text = unit.text.replace("x[1] = a;", "x[1] = b;");
    let Err(Error::Rejected { log, .. }) = tools.compile(&unit, "sm_80") else { panic!("it compiles") };
    let said = explain(&log, &unit, &[&kernel]);
    assert!(said.contains("Kernel IR of `k`, line 3: store x[1] = a"), "{said}");
    assert!(matches!(tools.nvrtc.compile("", "sm_1"), Err(Error::Rejected { .. } | Error::Failed { .. })));
}

#[test]
fn a_missing_library_says_what_brings_it() {
    let nowhere = std::env::temp_dir().join("girih-no-such-folder");
    let Err(error) = Toolchain::find(&Places::in_folder(&nowhere)) else { panic!("there is one in {nowhere:?}") };
    let text = error.to_string();
    assert!(text.contains("pip install 'nvidia-cuda-nvrtc<13.1'") && text.contains("girih-no-such-folder"), "{text}");
}

/// The output of `girih compile --resources`, for a program and for a model of several kernels.
#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn resources_of_programs_and_models() {
    use girih::{Device, Inspect, Options, Program, model::Model};
    for target in TARGETS {
        let options = Options { target: Target::named(target), ..Options::default().device(Device::Sim) };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/softmax.mlir");
        let program = Program::from_text(&std::fs::read_to_string(file).expect("it is read")).expect("a program");
        let text = program.entry("softmax").expect("an entry").with_options(options.clone()).resources();
        let text = text.unwrap_or_else(|e| panic!("{e}"));
        assert!(text.starts_with(&format!("softmax for {target}: 256 threads a block\n  registers ")), "{text}");
        // Two tiles of 256 partial results; the row is in registers.
        assert!(text.contains("\n  shared memory  2048 bytes a block\n"), "{text}");
        assert!(text.contains("\n  spills         0 bytes stored, 0 bytes loaded\n"), "{text}");
        assert!(text.contains(" limited by ") && text.ends_with('\n'), "{text}");
        let model = Model::from_expression("torch.sum(torch.randn(5, 777), dim=1)", &[]).expect("a model");
        let text = model.with_options(options).resources().unwrap_or_else(|e| panic!("{e}"));
        // A partial sum of each thread.
        let threads =
            text.strip_prefix(&format!("k_sum for {target}: ")).and_then(|t| t.split(' ').next()?.parse::<u32>().ok());
        let shared = threads.map(|n| format!("\n  shared memory  {} bytes a block\n", 4 * n));
        assert!(shared.is_some_and(|shared| text.contains(&shared)), "{text}");
    }
}

/// The IR that the stand-in for a driver reads behind machine code, whose length it is not told.
#[test]
#[ignore = "needs NVRTC: `make cuda`"]
fn images_are_read_behind_their_machine_code() {
    let tools = toolchain();
    for target in TARGETS {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda/copy.kernel");
        let kernel = parse(&std::fs::read_to_string(&file).expect("it is read")).expect("it is a kernel");
        let object = compiled(&tools, &[&kernel], target);
        let unit = emit(&[&kernel], &Target::named(target).expect("a target")).expect("it is emitted");
        let lowered = Lowered { kernel, loops: Default::default(), tile: Default::default() };
        let written = image::write(&object.cubin, &unit, &[&lowered], target);
        let bytes = |at: u64, n: usize| written.get(at as usize..at as usize + n).map(<[u8]>::to_vec);
        let (of, kernels) = image::read(&bytes).expect("it is an image");
        assert_eq!((of.as_str(), kernels.len()), (target, 1));
        assert_eq!(kernels[0].kernel, lowered.kernel);
        // Machine code alone is somebody else's.
        let alone = |at: u64, n: usize| {
            let end = at as usize + n;
            (end <= object.cubin.len()).then(|| object.cubin[at as usize..end].to_vec())
        };
        assert!(image::read(&alone).is_err());
    }
}
