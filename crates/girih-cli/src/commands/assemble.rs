//! `girih assemble`: a tile program as bytecode, whole or not at all.

use std::io::IsTerminal;
use std::path::Path;

use crate::cli::AssembleArgs;
use crate::failure::Failure;
use crate::{output, source};

pub fn run(args: &AssembleArgs) -> Result<(), Failure> {
    let file = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if file.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::usage("bytecode is not written to a terminal; name a file, such as -o kernel.tileirbc"));
    }
    let (source, program) = source::program(&args.file)?;
    let (bytes, _) = program.bytecode(args.bytecode_version).map_err(Failure::within(&source))?;
    let failed = |path: &Path, e| Failure::from(girih::Error::file(path, format!("cannot be written: {e}")));
    match file {
        Some(path) => girih::files::write_whole(path, &bytes).map_err(|e| failed(path, e)),
        None => output::write_bytes(&bytes),
    }
}
