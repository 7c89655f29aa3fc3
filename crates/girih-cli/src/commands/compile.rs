//! `girih compile`: a kernel or a model at a stage of its compilation, and the rewrites of each rule on the way.

use std::path::Path;

use girih::observe::TimedTrace;
use girih::{Inspect, Options, Stage};

use super::runnable::{Asked, Often, Subject};
use crate::cli::{CompileArgs, LaunchArgs};
use crate::failure::Failure;
use crate::source;

pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    let Some(subject) = Subject::read(&args.kernel)? else { return Ok(()) };
    subject.refuse(&[("--entry", args.kernel.entry.is_some()), ("--nvidia", args.nvidia)])?;
    let mut options = source::options(&args.kernel)?;
    options.stop_after = args.stop_after;
    options.notes = source::notes(args.verbose);
    let compiled = subject.inspect(&args.kernel, &args.args, options.clone())?;
    let within = Failure::within(&subject.source());
    let verify_each = || verify_each(args, &subject, options);
    let text = |stage| match (&subject, args.nvidia, stage) {
        (Subject::Program(_, program), true, Stage::CudaTile) => Ok(program.nvidia_text()),
        (_, true, _) => Err(Failure::usage("--nvidia needs --ir cuda_tile")),
        (_, false, _) => compiled.ir(stage).map_err(&within),
    };
    inspect(&*compiled, args, &within, verify_each, &text)
}

/// Evaluates a launch rule by rule: that of the comment of a tile program's file, or that on the inputs of a model.
fn verify_each(args: &CompileArgs, subject: &Subject, options: Options) -> Result<String, Failure> {
    match subject {
        Subject::KernelIr(..) => {
            return Err(Failure::usage("--verify-each does not apply to Kernel IR, as no rule does"));
        }
        Subject::Program(source, program) => {
            let entry = source::choose(source, program, args.kernel.entry.as_deref())?;
            if source::launch_comment(source, Some(entry.name()))?.is_none() {
                return Err(Failure::usage("--verify-each needs a `// launch:` comment in the file"));
            }
        }
        Subject::Model(_) => {}
    }
    let launch = LaunchArgs { grid: None, args: args.args.clone(), block: None };
    let asked = Asked { kernel: &args.kernel, launch: &launch, seed: 0 };
    let runnable = subject.open(&asked, options)?;
    let within = Failure::within(runnable.source());
    let mut run = runnable.start(Often::Once).map_err(&within)?;
    run.verify_each().map_err(&within)
}

/// All that a compilation can be asked for, in the order of the flags' help.
fn inspect(
    subject: &dyn Inspect,
    args: &CompileArgs,
    within: &dyn Fn(girih::Error) -> Failure,
    verify_each: impl FnOnce() -> Result<String, Failure>,
    text: &dyn Fn(Stage) -> Result<String, Failure>,
) -> Result<(), Failure> {
    if args.verbose > 0 {
        let mut timed = TimedTrace::new(args.verbose > 1);
        let outcome = subject.observe(&mut timed);
        // The trace of a failed compilation is worth reading too.
        out!("{}", timed.trace.text)?;
        outcome.map_err(within)?;
    }
    if args.verify_each {
        outln!("{}", verify_each()?)?;
    }
    if let Some(dir) = &args.dump {
        let failed = |e| Failure::from(girih::Error::file(dir, format!("cannot be made: {e}")));
        std::fs::create_dir_all(dir).map_err(failed)?;
        subject.dump(&mut |name, text| whole(&dir.join(name), text)).map_err(within)?;
    }
    if args.resources {
        out!("{}", subject.resources().map_err(within)?)?;
    }
    let stage = match args.ir {
        Some(stage) => stage,
        // Without a stage the other wishes are all there is to do.
        None if args.verbose > 0 || args.dump.is_some() || args.verify_each || args.resources => return Ok(()),
        None => {
            let names: Vec<&str> = subject.stages().iter().map(|s| s.name()).collect();
            let (last, others) = names.split_last().unwrap_or((&"c", &[]));
            return Err(Failure::usage(format!("name a stage: --ir {} or {last}", others.join(", "))));
        }
    };
    let text = text(stage)?;
    match &args.output {
        Some(path) => whole(path, &text).map_err(Failure::from)?,
        None => out!("{text}")?,
    }
    Ok(())
}

pub(super) fn whole(path: &Path, text: &str) -> girih::Result<()> {
    let failed = |e| girih::Error::file(path, format!("cannot be written: {e}"));
    girih::files::write_whole(path, text.as_bytes()).map_err(failed)
}
