//! From bytecode to a container, as `tileiras` does it: read, verified, wrapped.

use girih::Program;
use girih_compiler::base::location::Frame;
use girih_compiler::cuda_tile::bytecode::is_bytecode;

use crate::codes;
use crate::container::{self, Options};
use crate::failure::{self, Result};

/// The container of a valid program. Where the program is not valid, `rendered` has one line for each error in the form
/// that front ends look for.
pub fn assemble(bytes: &[u8], options: &Options) -> Result<Vec<u8>> {
    Program::from_bytes(bytes).map_err(|e| {
        let rendered = lines(&e, is_bytecode(bytes));
        let mut failure = failure::from_girih(&e, None).detail("rendered", rendered);
        failure.code = codes::ERROR_INVALID_IMAGE;
        failure
    })?;
    Ok(container::write(options, bytes))
}

/// `loc("file":line:col): error: ...`, a line for each error.
pub fn lines(error: &girih::Error, bytecode: bool) -> String {
    let girih::Error::Program(diagnostics) = error else { return format!("error: {error}\n") };
    let mut out = String::new();
    for d in diagnostics.iter().filter(|d| d.is_error()) {
        let loc = |f: &Frame| format!("loc(\"{}\":{}:{}): ", f.place.file, f.place.line, f.place.column);
        let place = d.frames.first().map_or(String::new(), loc);
        let offset = match d.span.filter(|_| bytecode && d.frames.is_empty()) {
            Some(span) => format!(" (at byte {})", span.start),
            None => String::new(),
        };
        out += &format!("{place}error: {}: {}{offset}\n", d.code.text(), d.message);
        if let Some(help) = &d.help {
            out += &format!("help: {help}\n");
        }
    }
    out
}
