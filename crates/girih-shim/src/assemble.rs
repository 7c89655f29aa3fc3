//! From bytecode to a container, as `tileiras` does it: read, verified, wrapped.

use girih::Program;

use crate::codes;
use crate::container::{self, Options};
use crate::failure::{self, Result};

/// Reads and verifies a program in any form.
pub fn program(bytes: &[u8]) -> std::result::Result<Program, girih::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Program::from_text(text),
        Err(_) => Err(girih::Error::argument("the program is no tile text")),
    }
}

/// The container of a valid program. Where the program is not valid, `rendered` has one line for each error in the form
/// that front ends look for.
pub fn assemble(bytes: &[u8], options: &Options) -> Result<Vec<u8>> {
    program(bytes).map_err(|e| {
        let rendered = lines(&e);
        let mut failure = failure::from_girih(&e, None).detail("rendered", rendered);
        failure.code = codes::ERROR_INVALID_IMAGE;
        failure
    })?;
    Ok(container::write(options, bytes))
}

/// `loc("file":line:col): error: ...`, a line for each error.
pub fn lines(error: &girih::Error) -> String {
    let girih::Error::Program(diagnostics) = error else { return format!("error: {error}\n") };
    let mut out = String::new();
    for d in diagnostics.iter().filter(|d| d.is_error()) {
        out += &format!("error: {}: {}\n", d.code.text(), d.message);
        if let Some(help) = &d.help {
            out += &format!("help: {help}\n");
        }
    }
    out
}
