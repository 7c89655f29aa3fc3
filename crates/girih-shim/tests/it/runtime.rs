//! `--device cuda` on the stand-in: the runtime that launches kernels on a GPU, executed without one.
//!
//! A process has one driver, so each test runs an ignored one of this file in a process of its own, which has the library that
//! cargo built beside it for a driver.

use std::path::PathBuf;
use std::process::{Command, Output};

use girih::cuda::device::Device as Gpu;
use girih::model::{Model, Tensor};
use girih::{Arg, Device, Options, Program};

fn stand_in() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().unwrap().join(format!("{}cuda{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// Runs an ignored test in a process of its own.
fn child(name: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("runtime::{name}"), "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("GIRIH_CUDA_DRIVER", stand_in()).env("GIRIH_CUDA_LIBS", "/nonexistent");
    variables.iter().for_each(|(name, value)| _ = command.env(name, value));
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn passes(name: &str, variables: &[(&str, &str)]) {
    let output = child(name, variables);
    assert!(output.status.success(), "{name} {variables:?}: {}", text(&output));
}

/// The last line of a child that failed as it should: its error.
fn error(variables: &[(&str, &str)]) -> String {
    let output = child("tells_its_error", variables);
    assert!(output.status.success(), "{variables:?}: {}", text(&output));
    let text = text(&output);
    let line = text.lines().find_map(|l| l.split_once("error: ")).map(|(_, e)| e.to_string());
    line.unwrap_or_else(|| "none".into())
}

#[test]
fn kernels_give_what_the_simulator_gives() {
    for capability in ["8.0", "8.9", "9.0", "10.0", "12.0"] {
        passes("runs_what_the_simulator_runs", &[("GIRIH_SHIM_CAPABILITY", capability)]);
    }
}

#[test]
fn arrays_of_the_device_are_taken_as_they_are() {
    passes("runs_on_the_devices_own_arrays", &[]);
}

#[test]
fn a_model_has_a_profile() {
    passes("profiles_a_model", &[]);
}

#[test]
fn what_is_missing_is_said() {
    assert!(error(&[("GIRIH_CUDA_DRIVER", "")]).contains("there is no CUDA driver"), "a driver on this machine");
    assert!(error(&[("GIRIH_CUDA_DRIVER", "/nonexistent")]).starts_with("/nonexistent cannot be used"));
    let old = error(&[("GIRIH_SHIM_CAPABILITY", "7.5")]);
    assert!(old.contains("has compute capability 7.5") && old.contains("--device sim"), "{old}");
    assert_eq!(error(&[]), "none");
}

/// Each call of the driver fails once: the error names the call. A failure that does no harm, such as in asking if an
/// address is the device's, raises no error.
#[test]
fn every_call_of_the_driver_may_fail() {
    let mut seen = std::collections::BTreeSet::new();
    for n in 1..=60 {
        let failing = error(&[("GIRIH_SHIM_FAIL", &n.to_string())]);
        let call = failing.split_whitespace().find(|w| w.starts_with("cu") || w.starts_with("(cu")).unwrap_or_default();
        seen.insert(call.trim_matches(|c: char| !c.is_alphanumeric()).to_string());
        assert!(failing == "none" || failing.contains("GIRIH_SHIM_FAIL"), "call {n}: {failing}");
    }
    for call in [
        "cuInit",
        "cuModuleLoadData",
        "cuMemAlloc",
        "cuMemcpyHtoD",
        "cuTensorMapEncodeTiled",
        "cuLaunchKernel",
        "cuStreamSynchronize",
        "cuMemcpyDtoH",
    ] {
        assert!(seen.contains(call), "{call} never failed: {seen:?}");
    }
}

fn options(device: Device) -> Options {
    Options::default().device(device)
}

/// The results of an example on a device: the last of its arrays.
fn example(name: &str, device: Device, grid: [u32; 3], n: usize) -> Vec<f32> {
    let file = format!("{}/../../examples/{name}.mlir", env!("CARGO_MANIFEST_DIR"));
    let program = Program::from_text(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut options = options(device);
    if device == Device::Sim {
        let of = Gpu::get().unwrap().target;
        options.target = girih_compiler::tile::target::Target::named(of);
    }
    let kernel = program.entry(name).unwrap().with_options(options);
    let of = |seed: usize| (0..n).map(|i| ((i * 37 + seed) % 17) as f32 / 4.0 - 2.0).collect::<Vec<f32>>();
    let (a, b, mut c) = (of(1), of(5), vec![0f32; n]);
    match name {
        "vector_add" => {
            let mut args = [Arg::from(&a[..]), Arg::from(&b[..]), Arg::from(&mut c[..]), Arg::from(n as i32)];
            kernel.launch(grid, &mut args).unwrap();
        }
        _ => {
            let rows = 64;
            let mut args = [Arg::from(&a[..]), Arg::from(&mut c[..]), Arg::from((n / rows) as i32)];
            kernel.launch(grid, &mut args).unwrap();
        }
    }
    c
}

#[test]
#[ignore = "kernels_give_what_the_simulator_gives runs it"]
fn runs_what_the_simulator_runs() {
    let same = |name: &str, grid, n| {
        assert_eq!(example(name, Device::Cuda, grid, n), example(name, Device::Sim, grid, n), "{name}");
    };
    same("vector_add", [3, 1, 1], 3000);
    for text in [
        "torch.nn.functional.gelu(torch.nn.Linear(64, 96)(torch.randn(40, 64))) @ torch.randn(96, 5)",
        "torch.nn.Linear(200, 136).half()(torch.randn(70, 200, dtype=torch.float16))",
        "torch.nn.functional.softmax(torch.randn(5, 300), dim=-1)",
        "torch.cumsum(torch.randn(4, 50), 1)",
    ] {
        let run = |device| {
            let mut options = options(device);
            if device == Device::Sim {
                options.target = girih_compiler::tile::target::Target::named(Gpu::get().unwrap().target);
            }
            let model = Model::from_expression(text, &[]).unwrap().with_options(options);
            let first = model.run(&[]).unwrap();
            // Again on the arrays and kernels that are there.
            let second = model.run(&[]).unwrap();
            let bytes =
                |all: &[(String, Tensor)]| all.iter().map(|(_, t)| t.buffer().bytes().to_vec()).collect::<Vec<_>>();
            assert_eq!(bytes(&first), bytes(&second), "{text}");
            bytes(&first)
        };
        assert_eq!(run(Device::Cuda), run(Device::Sim), "{text}");
    }
}

#[test]
#[ignore = "a_model_has_a_profile runs it"]
fn profiles_a_model() {
    let text = "torch.nn.functional.softmax(torch.nn.Linear(32, 300)(torch.randn(5, 32)), dim=-1)";
    let model = Model::from_expression(text, &[]).unwrap().with_options(options(Device::Cuda));
    let profile = model.prepare(&[], &[]).unwrap().profile().unwrap();
    assert!(profile.runs >= 3 && !profile.measured && profile.seconds >= profile.least, "{profile:?}");
    assert_eq!(profile.memory.unwrap().held.weights, 4 * (32 * 300 + 300), "{profile:?}");
    for step in &profile.steps {
        assert!(step.grid.iter().all(|n| *n > 0) && step.seconds > 0.0 && step.bits == 32, "{step:?}");
        assert!(!step.operations.is_empty() && profile.fraction(step) > 0.0, "{step:?}");
    }
    assert_eq!(profile.steps.iter().map(|s| s.flops).sum::<f64>(), 2.0 * (5 * 32 * 300) as f64);
}

#[test]
#[ignore = "arrays_of_the_device_are_taken_as_they_are runs it"]
fn runs_on_the_devices_own_arrays() {
    let file = format!("{}/../../examples/vector_add.mlir", env!("CARGO_MANIFEST_DIR"));
    let program = Program::from_text(&std::fs::read_to_string(file).unwrap()).unwrap();
    let kernel = program.entry("vector_add").unwrap().with_options(options(Device::Cuda));
    let gpu = Gpu::get().unwrap();
    let n = 2500usize;
    let (a, b, c) = (gpu.allocate(4 * n as u64).unwrap(), gpu.allocate(4 * n as u64).unwrap(), vec![0u8; 4 * n]);
    let bytes = |f: fn(usize) -> f32| (0..n).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
    a.fill(&bytes(|i| i as f32)).unwrap();
    b.fill(&bytes(|i| 1.0 - i as f32 / 2.0)).unwrap();
    let sum = gpu.allocate(4 * n as u64).unwrap();
    sum.fill(&c).unwrap();
    let raw = |third: u64| girih::RawArgs {
        slots: vec![a.address, b.address, third, n as u64],
        bytes: vec![Some(4 * n as u64), Some(4 * n as u64), Some(4 * n as u64), None],
        stream: Some(0),
        ..girih::RawArgs::default()
    };
    // SAFETY: the arrays are as long as the list says.
    unsafe { kernel.launch_raw([3, 1, 1], raw(sum.address)) }.unwrap();
    gpu.synchronize(0).unwrap();
    let want: Vec<f32> = (0..n).map(|i| 1.0 + i as f32 / 2.0).collect();
    let floats =
        |bytes: &[u8]| bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<f32>>();
    let mut got = vec![0u8; 4 * n];
    sum.read(&mut got).unwrap();
    assert_eq!(floats(&got), want);
    // Beside arrays of the host, which are copied.
    let mut host = vec![0f32; n];
    // SAFETY: as above; the host's array lives.
    unsafe { kernel.launch_raw([3, 1, 1], raw(host.as_mut_ptr().expose_provenance() as u64)) }.unwrap();
    assert_eq!(host, want);
}

#[test]
#[ignore = "other tests run it"]
fn tells_its_error() {
    let file = format!("{}/../../examples/vector_add.mlir", env!("CARGO_MANIFEST_DIR"));
    let program = Program::from_text(&std::fs::read_to_string(file).unwrap()).unwrap();
    let kernel = program.entry("vector_add").unwrap().with_options(options(Device::Cuda));
    let (a, mut c) = (vec![1f32; 40], vec![0f32; 40]);
    let mut args = [Arg::from(&a[..]), Arg::from(&a[..]), Arg::from(&mut c[..]), Arg::from(40i32)];
    let text = "torch.randn(64, 128) @ torch.randn(128, 64)";
    let model = Model::from_expression(text, &[]).unwrap().with_options(options(Device::Cuda));
    let outcome = kernel.launch([1, 1, 1], &mut args).and_then(|_| model.run(&[]).map(drop));
    if let Err(e) = outcome {
        println!("\nerror: {e}");
        assert!(e.code().is_some());
    }
}
