//! `girih run` of a model.

use std::path::Path;
use std::time::{Duration, Instant};

use girih::model::{Model, Tensor};
use girih::{Device, Options};
use girih_compiler::base::{Code, Diagnostic};
use serde_json::json;

use super::arguments::Arguments;
use super::{Given, profile, refuse_flags, verified, verify};
use crate::cli::{KernelArgs, LaunchArgs, RunArgs};
use crate::commands::run::{arguments::show_as, options, timing::duration};
use crate::failure::Failure;
use crate::render;
use crate::source::suggestion;

/// Repeat for about this long, within these numbers of runs.
const BUDGET: Duration = Duration::from_millis(1000);
const RUNS: std::ops::Range<usize> = 5..20_000;

pub fn run(args: &RunArgs, given: &Given) -> Result<(), Failure> {
    if given.answers()? {
        return Ok(());
    }
    refuse_flags(&[("--block", args.launch.block.is_some())])?;
    let source = given.source();
    let within = Failure::within(&source);
    let (model, arguments) = opened(given, &args.kernel, &args.launch, options(args)?)?;
    let model = model.with_seed(args.seed.unwrap_or(0));
    // Before a long run, not after.
    let outputs = model.outputs();
    let names: Vec<&str> = outputs.iter().map(|p| p.name.as_str()).collect();
    for name in args.save.iter().map(|(n, _)| n.as_str()).chain(args.print.iter().map(String::as_str)) {
        if !names.contains(&name) {
            let mut d = Diagnostic::error(Code::ModelInput, format!("the model has no output `{name}`"));
            d = d.help(suggestion("outputs", name, names.iter().copied()));
            render::one(&source, &d);
            return Err(Failure::Said(1));
        }
    }
    for (_, file) in &args.save {
        let folder = Path::new(file).parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|p| !p.is_dir()) {
            let message = format!("cannot be written: the folder {} does not exist", folder.display());
            return Err(within(girih::Error::file(file, message)));
        }
    }

    let start = Instant::now();
    let compiled = match model.options().device {
        Device::Cpu | Device::Cuda => Some(model.compile().map_err(&within)?),
        Device::Eval | Device::Sim => None,
    };
    let compile_seconds = start.elapsed().as_secs_f64();
    let (arrays, extents) = (arguments.arrays(), arguments.extents());
    let start = Instant::now();
    let mut prepared = model.prepare(&arrays, &extents).map_err(&within)?;
    prepared.run().map_err(&within)?;
    let seconds = start.elapsed().as_secs_f64();

    let results: Vec<(&str, &Tensor)> = names.iter().copied().zip(prepared.outputs()).collect();
    let found = |name: &str| results.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
    for (name, file) in &args.save {
        if let Some(tensor) = found(name).filter(|t| t.elem().text) {
            let words = arguments.strings.words(tensor);
            girih::npy::write_strings(Path::new(file), &words, tensor.shape()).map_err(&within)?;
        } else if let Some(tensor) = found(name) {
            let unsigned = tensor.elem().unsigned;
            girih::npy::write_as(Path::new(file), tensor.buffer(), unsigned).map_err(&within)?;
        }
    }
    let quiet = args.json || args.time || args.verify || args.profile || args.verify_each || args.compare.is_some();
    let all = args.print.is_empty() && args.save.is_empty() && !quiet;
    let shown: Vec<(&str, &Tensor)> = match all {
        true => results.clone(),
        false => args.print.iter().filter_map(|n| Some((n.as_str(), found(n)?))).collect(),
    };
    for (name, tensor) in shown {
        let words = if tensor.elem().text { arguments.strings.words(tensor) } else { vec![] };
        outln!("{name} = {}", show_as(tensor.buffer(), tensor.elem(), &words))?;
    }
    let mut summary = json!({
        "model": model.name(),
        "device": model.options().device.to_string(),
        "threads": if model.options().device != Device::Cpu { 1 } else { model.options().thread_count() },
        "runs": 1,
        "min_s": seconds,
        "median_s": seconds,
        "compile_s": compile_seconds,
        "cached": compiled.is_some_and(|c| c.cached == c.kernels),
        "kernels": compiled.map(|c| c.kernels),
        "steps": compiled.map(|c| c.steps),
    });
    let mut good = true;
    if args.verify {
        good &= verify::verify(&prepared, &mut summary).map_err(|f| f.at(&source))?;
    }
    if let Some(device) = args.compare {
        if device != Device::Eval || model.options().device == Device::Eval {
            return Err(Failure::usage(
                "a model can run on cpu, sim or cuda and be compared with eval: --compare eval",
            ));
        }
        good &=
            verify::compare(&prepared, model.options().device, args.bits, &mut summary).map_err(|f| f.at(&source))?;
    }
    if args.verify_each {
        outln!("{}", verified(&prepared.verify_each().map_err(&within)?))?;
    }
    if args.time {
        let seconds = time(&model, &arguments).map_err(&within)?;
        let (min, median) = (seconds[0], seconds[seconds.len() / 2]);
        summary["runs"] = json!(seconds.len());
        summary["min_s"] = json!(min);
        summary["median_s"] = json!(median);
        if !args.json {
            let compile = duration(compile_seconds);
            let steps = compiled.map_or(0, |c| c.steps);
            outln!(
                "time: median {}, least {}, {} runs; {steps} kernels a run, ready in {compile}",
                duration(median),
                duration(min),
                seconds.len()
            )?;
        }
    }
    if args.profile {
        profile::profile(&model, &arguments, args.json, &mut summary).map_err(|f| f.at(&source))?;
    }
    if args.json {
        outln!("{summary}")?;
    }
    if good { Ok(()) } else { Err(Failure::Said(1)) }
}

/// The model under the options, and the arguments that the flags give it.
pub fn opened(
    given: &Given,
    kernel: &KernelArgs,
    launch: &LaunchArgs,
    options: Options,
) -> Result<(Model, Arguments), Failure> {
    refuse_flags(&[("--entry", kernel.entry.is_some()), ("--grid", launch.grid.is_some())])?;
    let mut arguments = Arguments::resolve(&launch.args)?;
    let model = given.open(&mut arguments, options)?;
    arguments.fit(&model)?;
    Ok((model, arguments))
}

/// The seconds of repeated runs, ascending.
fn time(model: &Model, arguments: &Arguments) -> girih::Result<Vec<f64>> {
    let mut call = model.prepare(&arguments.arrays(), &arguments.extents())?;
    let mut seconds = vec![];
    let start = Instant::now();
    while seconds.len() < RUNS.start || (start.elapsed() < BUDGET && seconds.len() < RUNS.end) {
        let one = Instant::now();
        call.run()?;
        seconds.push(one.elapsed().as_secs_f64());
        // A run of minutes is repeated no more than needed for a median.
        if seconds.len() >= 3 && start.elapsed() > 20 * BUDGET {
            break;
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}
