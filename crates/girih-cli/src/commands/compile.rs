//! `girih compile`: a kernel or a model at a stage of its compilation, and the rewrites of each rule on the way.

use std::path::Path;

use girih::observe::TimedTrace;
use girih::{Inspect, Options, Stage};

use super::by_hand;
use super::model::{self, Given};
use super::run::arguments::Arguments;
use crate::cli::CompileArgs;
use crate::failure::Failure;
use crate::source;

pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    match (model::given(&args.kernel), &args.kernel.file) {
        (Some(given), _) => of_model(args, &given),
        (None, Some(file)) if by_hand::is_one(file) => of_kernel_ir(args, file),
        (None, _) => of_kernel(args),
    }
}

fn options(args: &CompileArgs) -> Result<Options, Failure> {
    let mut options = source::options(&args.kernel)?;
    options.stop_after = args.stop_after;
    options.notes = source::notes(args.verbose);
    Ok(options)
}

fn of_kernel(args: &CompileArgs) -> Result<(), Failure> {
    let (source, program) = source::chosen(&args.kernel)?;
    let within = Failure::within(&source);
    let options = options(args)?;
    let kernel = source::choose(&source, &program, args.kernel.entry.as_deref())?.with_options(options);
    // Needs a launch, which the file's comment gives.
    let verify = || {
        let Some(comment) = source::launch_comment(&source, Some(kernel.name()))? else {
            return Err(Failure::usage("--verify-each needs a `// launch:` comment in the file"));
        };
        let grid = comment.grid.unwrap_or([1; 3]);
        let mut arguments = Arguments::resolve(&source, kernel.params(), &[], comment.args)?;
        let checked = kernel.verify_each(grid, &mut arguments.views()).map_err(&within)?;
        Ok(verified(checked))
    };
    let text = |stage| match (args.nvidia, stage) {
        (true, Stage::CudaTile) => Ok(program.nvidia_text()),
        (true, _) => Err(Failure::usage("--nvidia needs --ir cuda_tile")),
        (false, _) => kernel.ir(stage).map_err(&within),
    };
    inspect(&kernel, args, &within, &verify, &text)
}

fn of_model(args: &CompileArgs, given: &Given) -> Result<(), Failure> {
    if given.answers()? {
        return Ok(());
    }
    model::refuse_flags(&[("--entry", args.kernel.entry.is_some()), ("--nvidia", args.nvidia)])?;
    let source = given.source();
    let within = Failure::within(&source);
    let options = options(args)?;
    let mut arguments = model::arguments::Arguments::resolve(&args.args)?;
    let model = given.open(&mut arguments, options)?;
    if args.verify_each {
        arguments.fit(&model)?;
    }
    let verify = || {
        let (arrays, extents) = (arguments.arrays(), arguments.extents());
        let prepared = model.prepare(&arrays, &extents).map_err(&within)?;
        Ok(model::verified(&prepared.verify_each().map_err(&within)?))
    };
    inspect(&model, args, &within, &verify, &|stage| model.ir(stage).map_err(&within))
}

fn of_kernel_ir(args: &CompileArgs, file: &Path) -> Result<(), Failure> {
    let (source, kernel) = by_hand::read(file)?;
    for (flag, given) in [("--entry", args.kernel.entry.is_some()), ("--nvidia", args.nvidia)] {
        if given {
            return Err(Failure::usage(format!("{flag} does not apply to Kernel IR")));
        }
    }
    let within = Failure::within(&source);
    let kernel = kernel.with_options(options(args)?);
    let verify = || Err(Failure::usage("--verify-each does not apply to Kernel IR, as no rule does"));
    inspect(&kernel, args, &within, &verify, &|stage| kernel.ir(stage).map_err(&within))
}

/// The message of a launch that was checked rule by rule.
pub(super) fn verified(checked: u64) -> String {
    format!("verify-each: {checked} rewrites, none changes what the first and the last block store")
}

/// All that a compilation can be asked for, in the order of the flags' help.
fn inspect(
    subject: &dyn Inspect,
    args: &CompileArgs,
    within: &dyn Fn(girih::Error) -> Failure,
    verify_each: &dyn Fn() -> Result<String, Failure>,
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
