//! Kernel IR by hand: a file that ends in `.kir` or `.kernel`.

use std::path::Path;

use girih::{Error, KernelIr};

use crate::failure::Failure;
use crate::render::Source;
use crate::source;

/// Returns true if a file holds Kernel IR.
pub fn is_one(file: &Path) -> bool {
    matches!(file.extension().and_then(|e| e.to_str()), Some("kir" | "kernel"))
}

/// Reads and verifies the kernel of a file.
pub fn read(file: &Path) -> Result<(Source, KernelIr), Failure> {
    let source = source::read(file)?;
    let kernel = load(&source).map_err(Failure::within(&source))?;
    Ok((source, kernel))
}

/// The kernel of a source.
pub fn load(source: &Source) -> girih::Result<KernelIr> {
    match source.bytecode {
        Some(_) => Err(Error::argument("it holds tile bytecode, and its name ends as that of Kernel IR does")),
        None => KernelIr::from_text(&source.text),
    }
}
