//! `girih compile` of a model: a stage as text, and what each rule did on the way.

use std::path::Path;

use girih::Stage;
use girih::model::Model;
use girih::observe::TimedTrace;
use girih_compiler::pipeline::trace::Trace;

use super::arguments::Arguments;
use super::{Given, refuse_flags};
use crate::cli::CompileArgs;
use crate::commands::compile::write;
use crate::failure::Failure;
use crate::source;

pub fn run(args: &CompileArgs, given: &Given) -> Result<(), Failure> {
    if given.answers()? {
        return Ok(());
    }
    refuse_flags(&[("--entry", args.kernel.entry.is_some()), ("--nvidia", args.nvidia)])?;
    if args.verify_each {
        return Err(Failure::usage("--verify-each needs arguments: `girih run MODEL --arg ... --verify-each`"));
    }
    let source = given.source();
    let within = Failure::within(&source);
    let mut options = source::options(&args.kernel)?;
    options.stop_after = args.stop_after;
    let arguments = Arguments::resolve(&args.args)?;
    let model = given.open(&arguments).map_err(&within)?.with_options(options);
    if args.verbose > 0 {
        let mut timed = TimedTrace::new(args.verbose > 1);
        let outcome = model.observe(&mut timed);
        // What led to a failure is worth reading too.
        out!("{}", timed.trace.text)?;
        outcome.map_err(&within)?;
    }
    if let Some(dir) = &args.dump {
        dump(&model, dir, &within)?;
    }
    let stage = match args.ir {
        Some(stage) => stage,
        None if args.verbose > 0 || args.dump.is_some() => return Ok(()),
        None => return Err(Failure::usage("name a stage: --ir torch, tensor, loop, tile, kernel or c")),
    };
    let text = model.ir(stage).map_err(&within)?;
    match &args.output {
        Some(path) => write(path, &text)?,
        None => out!("{text}")?,
    }
    Ok(())
}

/// Every stage as a file, `1.torch`, `2.tensor`, ..., the trace of the rules, and the knobs.
fn dump(model: &Model, dir: &Path, within: &dyn Fn(girih::Error) -> Failure) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::from(girih::Error::file(dir, format!("cannot be made: {e}"))))?;
    let mut trace = Trace::new(true);
    let outcome = model.observe(&mut trace);
    write(&dir.join("trace"), &trace.text)?;
    outcome.map_err(within)?;
    write(&dir.join("knobs"), &model.options().all_knobs().map_err(within)?.listing())?;
    for (i, stage) in Stage::MODEL.into_iter().enumerate() {
        let name = format!("{}.{}", i + 1, stage.name());
        write(&dir.join(name), &model.ir(stage).map_err(within)?)?;
    }
    Ok(())
}
