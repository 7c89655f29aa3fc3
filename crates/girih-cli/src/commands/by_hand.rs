//! Kernel IR by hand: a file that ends in `.kir` or `.kernel`.

use std::path::Path;
use std::time::Instant;

use girih::{Device, Error, KernelIr, PrintOrder};
use serde_json::json;

use super::run::{self, Shown, timing};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::render::Source;
use crate::source;

/// Returns true if a file holds Kernel IR.
pub fn is_one(file: &Path) -> bool {
    matches!(file.extension().and_then(|e| e.to_str()), Some("kir" | "kernel"))
}

/// Reads and verifies the kernel of a file.
pub fn read(file: &Path) -> Result<(Source, KernelIr), Failure> {
    let source = source::read(file)?;
    let kernel = load(&source).map_err(Failure::within(&source))?;
    Ok((source, kernel))
}

/// The kernel of a source.
pub fn load(source: &Source) -> girih::Result<KernelIr> {
    match source.bytecode {
        Some(_) => Err(Error::argument("it holds tile bytecode, and its name ends as that of Kernel IR does")),
        None => KernelIr::from_text(&source.text),
    }
}

/// `girih run` of Kernel IR: a kernel of many threads runs on the simulator, whose findings are errors; a kernel of one
/// thread on the evaluator.
pub fn run(args: &RunArgs, file: &Path) -> Result<(), Failure> {
    let others = [
        (args.verify, "--verify"),
        (args.verify_each, "--verify-each"),
        (args.compare.is_some(), "--compare"),
        (args.time, "--time"),
        (args.kernel.check, "--check"),
    ];
    if let Some((_, flag)) = others.iter().find(|(given, _)| *given) {
        let more = format!("`girih sim {} --compare OTHER.kir` compares two kernels", file.display());
        return Err(Failure::usage(format!("{flag} is for tile programs and models, not for Kernel IR; {more}")));
    }
    let (source, kernel) = read(file)?;
    let (threads, device) = (kernel.threads(), if kernel.threads() > 1 { Device::Sim } else { Device::Eval });
    if let Some(asked) = args.device.filter(|asked| *asked != device) {
        let s = if threads == 1 { "" } else { "s" };
        return Err(Failure::usage(format!(
            "Kernel IR with blocks of {threads} thread{s} runs on --device {device}, not on {asked}"
        )));
    }
    let mut options = source::options(&args.kernel)?;
    options.device = device;
    options.block = args.launch.block;
    options.seed = args.seed.unwrap_or(options.seed);
    options.schedules = args.schedules.or(options.schedules);
    if args.print_order == "index" {
        options.print_order = PrintOrder::Index;
    }
    let kernel = kernel.with_options(options);
    let (grid, mut arguments) = run::launch(&source, kernel.name(), kernel.params(), &args.launch)?;
    let shown = Shown::of(&source, kernel.params(), &arguments, &args.save, &args.print)?;
    let start = Instant::now();
    kernel.run(grid, &mut arguments.views()).map_err(Failure::within(&source))?;
    let seconds = start.elapsed().as_secs_f64();
    shown.show(&source, &arguments)?;
    if args.json {
        outln!("{}", json!({ "kernel": kernel.name(), "device": device.to_string(), "runs": 1, "min_s": seconds }))?;
    } else if shown.is_empty() {
        say!("ran `{}` on {device} in {}; `--print NAME` shows a buffer", kernel.name(), timing::duration(seconds));
    }
    Ok(())
}
