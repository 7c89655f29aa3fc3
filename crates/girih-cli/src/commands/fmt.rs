//! `girih fmt`: the standard layout, in place.

use std::path::Path;

use girih::Program;

use crate::cli::FmtArgs;
use crate::failure::Failure;
use crate::source;

pub fn run(args: &FmtArgs) -> Result<(), Failure> {
    let mut differ = false;
    for path in &args.files {
        let source = source::read(path)?;
        if source.bytecode.is_some() {
            let message = "it is bytecode, which has no layout; `girih disassemble` writes it as text";
            return Err(Failure::from(girih::Error::file(path, message)));
        }
        let formatted = Program::format(&source.text).map_err(Failure::within(&source))?;
        if *path == *Path::new("-") && !args.check {
            out!("{formatted}")?;
        } else if *formatted != *source.text {
            if args.check {
                outln!("{}", source.name)?;
                differ = true;
            } else {
                girih::files::write_whole(path, formatted.as_bytes())
                    .map_err(|e| Failure::from(girih::Error::file(path, format!("cannot be written: {e}"))))?;
            }
        }
    }
    if differ { Err(Failure::Said(1)) } else { Ok(()) }
}
