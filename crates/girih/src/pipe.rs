//! The compiler crate's pipeline with this crate's errors: options resolved, stages lowered and printed.

use girih_compiler::base::Diagnostic;
use girih_compiler::base::target::{Assumptions, KnobSource, Knobs, Target};
use girih_compiler::cuda_tile::ir::Module;
use girih_compiler::pipeline::{self, Lowered, Observer, Stage};
use girih_compiler::{cuda_tile, kernel, loops};

use crate::error::{Error, Result};

/// Parses and verifies.
pub fn front(text: &str) -> Result<(Module, Vec<Diagnostic>)> {
    pipeline::front(text).map(|f| (f.module, f.warnings)).map_err(Error::Program)
}

pub fn lower(
    module: &Module,
    entry: &str,
    options: &pipeline::Options,
    observer: &mut dyn Observer,
) -> Result<Lowered> {
    pipeline::lower(module, entry, options, observer).map_err(Error::Program)
}

pub fn emit_c(lowered: &Lowered, target: &Target) -> String {
    pipeline::emit_c(&[&lowered.kernel], target)
}

/// The text of a stage.
pub fn show(module: &Module, entry: &str, options: &pipeline::Options, stage: Stage) -> Result<String> {
    let lowered = || lower(module, entry, options, &mut pipeline::Silent);
    Ok(match stage {
        Stage::CudaTile => cuda_tile::print::print(module),
        Stage::Loop => loops::print::print(&lowered()?.loops, loops::print::Stage::Loop),
        Stage::Tile => loops::print::print(&lowered()?.tile, loops::print::Stage::Tile),
        Stage::Kernel => kernel::print::print(&lowered()?.kernel),
        Stage::C => emit_c(&lowered()?, &options.target),
    })
}

/// The pipeline's options from this crate's.
pub fn options(options: &crate::Options, assume: Assumptions) -> Result<pipeline::Options> {
    let mut knobs = Knobs::default_set();
    for (name, value) in &options.knobs {
        knobs.set(&format!("{name}={value}"), KnobSource::CommandLine).map_err(Error::argument)?;
    }
    Ok(pipeline::Options {
        target: options.resolved_target(),
        knobs,
        assume,
        check: options.check,
        stop_after: options.stop_after,
    })
}
