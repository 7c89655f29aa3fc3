//! `girih compile`: a kernel at a stage of its compilation.

use crate::cli::CompileArgs;
use crate::failure::Failure;
use crate::source;

pub fn run(args: &CompileArgs) -> Result<(), Failure> {
    let (source, program) = source::program(&args.kernel.file)?;
    let within = Failure::within(&source);
    let options = source::options(&args.kernel)?;
    let kernel = source::choose(&source, &program, args.kernel.entry.as_deref())?.with_options(options);
    let text = kernel.ir(args.ir).map_err(&within)?;
    match &args.output {
        Some(path) => girih::files::write_whole(path, text.as_bytes())
            .map_err(|e| girih::Error::file(path, format!("cannot be written: {e}")))?,
        None => print!("{text}"),
    }
    Ok(())
}
