//! Suites of models beside PyTorch and others, which `girih.bench` of the Python package measures.

use std::process::{Command, Stdio};

use crate::cli::BenchArgs;
use crate::failure::Failure;

pub const NAMES: [&str; 19] = [
    "elementwise",
    "reductions",
    "matmul",
    "lowprec",
    "attention",
    "conv",
    "recurrent",
    "order",
    "blocks",
    "models",
    "launch",
    "jit",
    "layouts",
    "compile",
    "decoder",
    "quantised",
    "llm",
    "gpu",
    "triton",
];

/// Pythons to ask, the one of a checkout first.
const PYTHONS: [&str; 3] = [".venv-peers/bin/python", ".venv/bin/python", "python3"];

pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let python = PYTHONS.into_iter().find(|p| imports(p, "girih.bench, torch"));
    // A page needs no PyTorch.
    let without = || PYTHONS.into_iter().find(|p| !args.report.is_empty() && imports(p, "girih.bench"));
    let Some(python) = python.or_else(without) else {
        return Err(Failure::usage(
            "suites run in a Python that has the packages girih and torch, and no such one is here; `make peers` of a checkout \
             makes one",
        ));
    };
    let mut command = Command::new(python);
    command.args(["-m", "girih.bench"]).args(&args.names);
    if !args.threads.is_empty() {
        let counts: Vec<String> = args.threads.iter().map(u32::to_string).collect();
        command.args(["--threads", &counts.join(",")]);
    }
    if let Some(rounds) = args.rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    for (flag, value) in [("--against", &args.against), ("--filter", &args.filter), ("--device", &args.device)] {
        if let Some(value) = value {
            command.arg(format!("{flag}={value}"));
        }
    }
    if !args.report.is_empty() {
        command.arg("--report").args(&args.report);
    }
    if let Some(path) = &args.output {
        command.arg("--output").arg(path);
    }
    if args.json {
        command.arg("--json");
    }
    let status = command.status().map_err(|e| Failure::usage(format!("{python}: {e}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Said(status.code().unwrap_or(1).clamp(1, 255) as u8)) }
}

/// Returns true if a Python runs and can import the modules.
fn imports(python: &str, modules: &str) -> bool {
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("import importlib.util as u; raise SystemExit(not all(u.find_spec(m.strip().split('.')[0]) for m in '{modules}'.split(',')))"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}
