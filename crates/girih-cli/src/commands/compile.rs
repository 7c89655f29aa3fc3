//! `girih compile`: a kernel at a stage of its compilation, and what each rule did on the way.

use std::path::Path;

use girih::observe::{TimedTrace, VerifyEach};
use girih::{Kernel, Stage};
use girih_compiler::pipeline::trace::Trace;

use super::model;
use super::run::arguments::Arguments;
use crate::cli::CompileArgs;
use crate::failure::Failure;
use crate::render::Source;
use crate::source;

pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    if let Some(given) = model::given(&args.kernel) {
        return model::compile::run(args, &given);
    }
    let (source, program) = source::program(source::file(&args.kernel)?)?;
    let within = Failure::within(&source);
    let mut options = source::options(&args.kernel)?;
    options.stop_after = args.stop_after;
    let kernel = source::choose(&source, &program, args.kernel.entry.as_deref())?.with_options(options);
    if args.verbose > 0 {
        let mut timed = TimedTrace::new(args.verbose > 1);
        let outcome = kernel.observe(&mut timed);
        // What led to a failure is worth reading too.
        out!("{}", timed.trace.text)?;
        outcome.map_err(&within)?;
    }
    if args.verify_each {
        verify_each(&source, &kernel)?;
    }
    if let Some(dir) = &args.dump {
        dump(&kernel, dir, &within)?;
    }
    let stage = match args.ir {
        Some(stage) => stage,
        // Without a stage the other wishes are all there is to do.
        None if args.verbose > 0 || args.dump.is_some() || args.verify_each => return Ok(()),
        None => return Err(Failure::usage("name a stage: --ir cuda_tile, loop, tile, kernel or c")),
    };
    let text = match (args.nvidia, stage) {
        (true, Stage::CudaTile) => program.nvidia_text(),
        (true, _) => return Err(Failure::usage("--nvidia needs --ir cuda_tile")),
        (false, _) => kernel.ir(stage).map_err(&within)?,
    };
    match &args.output {
        Some(path) => write(path, &text)?,
        None => out!("{text}")?,
    }
    Ok(())
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e| Failure::from(girih::Error::file(path, format!("cannot be written: {e}")));
    girih::files::write_whole(path, text.as_bytes()).map_err(failed)
}

/// Every stage as a file, `1.cuda_tile`, `2.loop`, ..., the trace of the rules, and the knobs.
fn dump(kernel: &Kernel<'_>, dir: &Path, within: &dyn Fn(girih::Error) -> Failure) -> Result<(), Failure> {
    std::fs::create_dir_all(dir).map_err(|e| Failure::from(girih::Error::file(dir, format!("cannot be made: {e}"))))?;
    let mut trace = Trace::new(true);
    let outcome = kernel.observe(&mut trace);
    write(&dir.join("trace"), &trace.text)?;
    outcome.map_err(within)?;
    write(&dir.join("knobs"), &kernel.options().all_knobs().map_err(within)?.listing())?;
    for (i, stage) in Stage::ALL.into_iter().enumerate() {
        let name = format!("{}.{}", i + 1, stage.name());
        write(&dir.join(name), &kernel.ir(stage).map_err(within)?)?;
    }
    Ok(())
}

/// Needs a launch, which the file's comment gives.
fn verify_each(source: &Source, kernel: &Kernel<'_>) -> Result<(), Failure> {
    let within = Failure::within(source);
    let Some(comment) = source::launch_comment(source, Some(kernel.name()))? else {
        return Err(Failure::usage("--verify-each needs a `// launch:` comment in the file"));
    };
    let grid = comment.grid.unwrap_or([1; 3]);
    let mut arguments = Arguments::resolve(source, kernel.params(), &[], comment.args)?;
    let mut views = arguments.views();
    let mut observer = VerifyEach::new(kernel, grid, &mut views).map_err(&within)?;
    kernel.observe(&mut observer).map_err(&within)?;
    outln!("verify-each: {} rewrites, none changes what the first and the last block store", observer.checked)?;
    Ok(())
}
