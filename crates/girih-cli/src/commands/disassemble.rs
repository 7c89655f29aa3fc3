//! `girih disassemble`: bytecode as text, in the words and layout of NVIDIA's disassembler.

use super::compile::whole;
use crate::cli::DisassembleArgs;
use crate::failure::Failure;
use crate::source;

pub fn run(args: &DisassembleArgs) -> Result<(), Failure> {
    let (_, program) = source::program(&args.file)?;
    let text = if args.debug { program.nvidia_debug_text() } else { program.nvidia_text() };
    match &args.output {
        Some(path) => Ok(whole(path, &text)?),
        None => {
            out!("{text}")?;
            Ok(())
        }
    }
}
