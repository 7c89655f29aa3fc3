//! `tileiras`, as front ends call it: takes NVIDIA's options, checks a tile program and writes the container that
//! Girih's `libcuda.so.1` loads. Compiling for this machine happens at the first launch.
//!
//! Exit codes are those of NVIDIA's tool: 0, done; 1, a bad command line or an input that cannot be read; 2, a bad value;
//! 3, not tile bytecode; 5, the program is not valid or its result cannot be written. The output file is written whole
//! or not at all.

mod cli;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use cli::{Job, Request, Wrong};
use cuda::assemble;
use girih_compiler::base::label::visible_lines;
use girih_compiler::base::words::shorten;
use girih_compiler::cuda_tile::bytecode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned()).collect();
    match run(&words) {
        Ok(text) => {
            let mut out = std::io::stdout().lock();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                Ok(()) => ExitCode::SUCCESS,
                // The reader went away: silence, and the code that a shell shows for it.
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(141),
                Err(e) => {
                    let _ = writeln!(std::io::stderr().lock(), "error: standard output cannot be written: {e}");
                    ExitCode::from(1)
                }
            }
        }
        Err(Wrong { message, exit }) => {
            let _ = writeln!(std::io::stderr().lock(), "{}", shorten(&visible_lines(message.trim_end())));
            ExitCode::from(exit)
        }
    }
}

fn run(words: &[String]) -> Result<String, Wrong> {
    match cli::parse(words)? {
        Request::Help => Ok(cli::help()),
        Request::Version => Ok(version()),
        Request::ListVersions => Ok(bytecode::Version::ALL.iter().map(|v| format!("{v}\n")).collect()),
        Request::Assemble(job) => job_done(&job).map(|()| String::new()),
    }
}

/// Front ends keep what this prints with what they cache, and look for a release in it.
fn version() -> String {
    let newest = bytecode::Version::ALL.last().map_or(String::new(), ToString::to_string);
    format!(
        "tileiras: Girih's stand-in for the Tile IR assembler\n\
         Girih {}, release {newest}, V{newest}.0\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn job_done(job: &Job) -> Result<(), Wrong> {
    let fail = |exit: u8, message: String| Wrong { message, exit };
    let bytes = std::fs::read(&job.input)
        .map_err(|e| fail(1, format!("error: unable to read input file '{}': {e}", job.input)))?;
    let is_program = bytecode::is_bytecode(&bytes) || (!bytes.is_empty() && std::str::from_utf8(&bytes).is_ok());
    if !is_program {
        return Err(fail(3, "error: input does not correspond to Tile IR bytecode".to_string()));
    }
    let container = assemble::assemble(&bytes, &job.options).map_err(|failure| {
        let rendered = failure.details.get("rendered").and_then(|v| v.as_str());
        fail(5, rendered.map_or_else(|| format!("error: {}", failure.message), str::to_string))
    })?;
    let write = |path: &str, bytes: &[u8]| {
        write_whole(Path::new(path), bytes).map_err(|e| fail(5, format!("error: '{path}' cannot be written: {e}")))
    };
    if let Some(path) = &job.remarks {
        // A stream of no documents.
        write(path, b"# no remarks\n")?;
    }
    write(&job.output, &container)
}

/// Writes beside the place and moves there, so that nobody reads half a file; anything but a regular file is written in
/// place.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if path.metadata().is_ok_and(|m| !m.is_file()) {
        return std::fs::write(path, bytes);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // It may not exist.
        let _ = std::fs::remove_file(&beside);
    }
    written
}
