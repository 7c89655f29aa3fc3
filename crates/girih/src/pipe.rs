//! The compiler crate's pipeline, as this crate uses it.

use girih_compiler::base::Diagnostic;
use girih_compiler::base::target::{Assumptions, Knobs, Target};
use girih_compiler::cuda_tile::ir::Module;
use girih_compiler::loops;

pub struct Options {
    pub target: Target,
    pub knobs: Knobs,
    pub assume: Assumptions,
    pub check: bool,
}
pub struct Lowered {
    pub loops: loops::ir::Kernel,
    pub tile: loops::ir::Kernel,
}
pub fn front(text: &str) -> Result<(Module, Vec<Diagnostic>), Vec<Diagnostic>> {
    let parsed = girih_compiler::cuda_tile::parse::parse(text);
    match parsed.module {
        Some(m) => Ok((m, parsed.diagnostics)),
        None => Err(parsed.diagnostics),
    }
}
pub fn lower(_m: &Module, _e: &str, _o: &Options) -> Result<Lowered, Vec<Diagnostic>> {
    Err(vec![])
}
pub fn emit_c(_l: &Lowered) -> String {
    String::new()
}
pub fn holds(_k: &loops::ir::Kernel, _launch: &girih_compiler::base::launch::Launch) -> bool {
    true
}
pub fn show(_m: &Module, _e: &str, _o: &Options, _s: crate::program::Stage) -> crate::Result<String> {
    Ok(String::new())
}
pub fn options(target: Target, _k: &[(String, i64)], assume: Assumptions, check: bool) -> crate::Result<Options> {
    Ok(Options { target, knobs: Knobs { all: vec![] }, assume, check })
}
