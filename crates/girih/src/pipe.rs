//! The compiler crate's pipeline, as this crate uses it.

use girih_compiler::base::rule::{Context, Log};
use girih_compiler::base::target::{Assumptions, KnobSource, Knobs, Target};
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::cuda_tile::ir::Module;
use girih_compiler::{emit, kernel, loops, tile};

use crate::error::{Error, Result};
use crate::program::Stage;

pub struct Options {
    pub target: Target,
    pub knobs: Knobs,
    pub assume: Assumptions,
    pub check: bool,
}
pub struct Lowered {
    pub loops: loops::ir::Kernel,
    pub tile: loops::ir::Kernel,
    pub kernel: kernel::ir::Kernel,
}
pub fn front(text: &str) -> std::result::Result<(Module, Vec<Diagnostic>), Vec<Diagnostic>> {
    let parsed = girih_compiler::cuda_tile::parse::parse(text);
    match parsed.module {
        Some(m) => Ok((m, parsed.diagnostics)),
        None => Err(parsed.diagnostics),
    }
}
pub fn lower(m: &Module, e: &str, o: &Options) -> std::result::Result<Lowered, Vec<Diagnostic>> {
    let cx = Context { target: o.target.clone(), knobs: o.knobs.clone(), assume: o.assume };
    let mut k = loops::lift::lift(m, e)?;
    for _ in 0..4 {
        for r in loops::fuse::RULES {
            if let Some(n) = (r.run)(&k, &cx, &mut Log::default()) {
                k = n;
            }
        }
    }
    let loops = k.clone();
    for r in tile::RULES {
        if let Some(n) = (r.run)(&k, &cx, &mut Log::default()) {
            k = n;
        }
    }
    let kernel = kernel::legalise::legalise(&k, &o.target, &kernel::legalise::Options { check: o.check })
        .map_err(|e| vec![Diagnostic::error(Code::InvalidIr, e)])?;
    Ok(Lowered { loops, tile: k, kernel })
}
pub fn emit_c(l: &Lowered, target: &Target) -> String {
    emit::c::emit(&[&l.kernel], target)
}
pub fn holds(_k: &loops::ir::Kernel, _launch: &girih_compiler::base::launch::Launch) -> bool {
    true
}
pub fn show(m: &Module, e: &str, o: &Options, s: Stage) -> Result<String> {
    let l = lower(m, e, o).map_err(Error::Program)?;
    Ok(match s {
        Stage::CudaTile => String::new(),
        Stage::Loop => loops::print::print(&l.loops, loops::print::Stage::Loop),
        Stage::Tile => loops::print::print(&l.tile, loops::print::Stage::Tile),
        Stage::Kernel => String::new(),
        Stage::C => emit_c(&l, &o.target),
    })
}
pub fn options(target: Target, knobs: &[(String, i64)], assume: Assumptions, check: bool) -> Result<Options> {
    let mut all = Knobs::default_set();
    for (name, value) in knobs {
        all.set(&format!("{name}={value}"), KnobSource::CommandLine).map_err(Error::argument)?;
    }
    Ok(Options { target, knobs: all, assume, check })
}
