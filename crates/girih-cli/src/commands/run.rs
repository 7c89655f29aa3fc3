//! `girih run`: compile a kernel or a model, run it on arguments, then save, print, verify, compare, time and profile as asked.

pub mod arguments;
pub mod compare;
pub mod profile;
pub mod shown;
pub mod timing;
pub mod verify;

use girih::{CachePolicy, Device, Options, PrintOrder};
use serde_json::json;

use super::runnable::{Asked, Often, Subject};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::{render, source};
use shown::Shown;

pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let Some(subject) = Subject::read(&args.kernel)? else { return Ok(()) };
    subject.refuse(&[
        ("--block", args.launch.block.is_some()),
        ("--entry", args.kernel.entry.is_some()),
        ("--grid", args.launch.grid.is_some()),
        ("--check", args.kernel.check),
        ("--verify", args.verify),
        ("--verify-each", args.verify_each),
        ("--compare", args.compare.is_some()),
        ("--profile", args.profile),
    ])?;
    let options = options(args, subject.device(args.device)?)?;
    let (device, threads) = (options.device, options.thread_count());
    let asked = Asked { kernel: &args.kernel, launch: &args.launch, seed: args.seed.unwrap_or(0) };
    let runnable = &*subject.open(&asked, options)?;
    let within = Failure::within(runnable.source());
    let shown = Shown::of(runnable, &args.save, &args.print)?;

    let again = args.verify || args.compare.is_some() || args.time || args.profile;
    let mut run = runnable.start(if again { Often::Again } else { Often::Once }).map_err(&within)?;
    if args.verify_each {
        outln!("{}", run.verify_each().map_err(&within)?)?;
    }
    let report = run.run().map_err(&within)?;
    render::all(runnable.source(), &report.warnings);
    shown.show(runnable, &*run)?;

    let mut summary = json!({
        "device": device.to_string(),
        "threads": if device == Device::Cpu { threads } else { 1 },
        "runs": 1,
        "min_s": report.seconds,
        "median_s": report.seconds,
    });
    run.facts(&mut summary);
    let mut good = true;
    if args.verify {
        good &= verify::verify(runnable, &*run, &mut summary)?;
    }
    if let Some(device) = args.compare {
        good &= compare::compare(runnable, &*run, device, args.bits, &mut summary)?;
    }
    if args.time
        && let Some(line) = timing::time(&mut *run, args.json, &mut summary).map_err(&within)?
    {
        outln!("{line}")?;
    }
    if args.profile {
        profile::profile(runnable, &mut *run, args.json, &mut summary)?;
    }
    if args.json {
        outln!("{summary}")?;
    } else if shown.is_empty() && !again && !args.verify_each {
        run.tell(report.seconds)?;
    }
    if good { Ok(()) } else { Err(Failure::Said(1)) }
}

fn options(args: &RunArgs, device: Option<Device>) -> Result<Options, Failure> {
    let mut options = source::options(&args.kernel)?;
    options.device = device.unwrap_or(options.device);
    options.block = args.launch.block;
    options.seed = args.seed.unwrap_or(options.seed);
    if args.schedules.is_some() && options.device != Device::Sim && args.compare != Some(Device::Sim) {
        let message = "only the simulator has schedules of threads: --schedules needs --device sim or --compare sim";
        return Err(Failure::usage(message));
    }
    if args.profile && !matches!(options.device, Device::Cpu | Device::Cuda) {
        let message = format!("--profile measures on the devices cpu and cuda, not on {}", options.device);
        return Err(Failure::usage(message));
    }
    options.schedules = args.schedules.or(options.schedules);
    options.notes = source::notes(args.verbose);
    if args.verbose > 1 {
        options.estimates =
            Some(std::sync::Arc::new(|name, estimate| say!("{name}: {}", estimate.to_string().trim_end())));
    }
    if args.no_cache {
        options.cache = CachePolicy::Off;
    }
    if args.print_order == "index" {
        options.print_order = PrintOrder::Index;
    }
    Ok(options)
}
