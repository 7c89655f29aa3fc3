//! Kernel IR by hand: a file that ends in `.kir` or `.kernel`.

use std::path::Path;

use girih::{Param, ParamKind};
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::kernel::ir::{Elem, Kernel};
use girih_compiler::kernel::{parse, verify};

use crate::cli::SimArgs;
use crate::commands::run::arguments::Arguments;
use crate::failure::Failure;
use crate::render::{self, Source};
use crate::source;

/// A kernel, its text, and what a launch gives it.
pub struct ByHand {
    pub source: Source,
    kernel: Kernel,
    params: Vec<Param>,
}

/// Whether a file holds Kernel IR.
pub fn is_one(file: &Path) -> bool {
    matches!(file.extension().and_then(|e| e.to_str()), Some("kir" | "kernel"))
}

/// Reads and verifies the kernel of a file.
pub fn read(file: &Path) -> Result<ByHand, Failure> {
    let source = source::read(file)?;
    let wrong = |d: Diagnostic| {
        render::one(&source, &d);
        Failure::Said(1)
    };
    let kernel = parse::parse(&source.text).map_err(wrong)?;
    if let Some(first) = verify::verify(&kernel).into_iter().next() {
        return Err(wrong(Diagnostic::error(Code::InvalidIr, format!("the kernel `{}`: {first}", kernel.name))));
    }
    let param = |v: &_| {
        let val = &kernel.vals[*v];
        let kind = match val.ty.elem {
            Elem::Ptr(d) => ParamKind::Pointer(d),
            Elem::Num(d) => ParamKind::Scalar(d),
        };
        Param { name: val.name.as_str().to_string(), kind }
    };
    let params = kernel.params.iter().map(param).collect();
    Ok(ByHand { source, kernel, params })
}

impl ByHand {
    /// Runs it as the flags and the file's comment say.
    pub fn run(&self, args: &SimArgs, options: &girih::Options) -> Result<girih::Result<()>, Failure> {
        let name = self.kernel.name.as_str();
        let comment = source::launch_comment(&self.source, Some(name))?.unwrap_or_default();
        let grid = args.launch.grid.or(comment.grid).unwrap_or([1, 1, 1]);
        let mut arguments = Arguments::resolve(&self.source, &self.params, &args.launch.args, comment.args)?;
        Ok(girih::by_hand(self.kernel.clone(), &self.params, grid, &mut arguments.views(), options))
    }
}
