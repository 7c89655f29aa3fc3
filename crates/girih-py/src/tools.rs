//! The command `girih`'s operations on files, as functions: `assemble`, `disassemble`, `check`.
//!
//! A program is text or bytecode, as `str` or bytes. An invalid one raises `girih.ProgramError` with every diagnostic; a line and
//! a column point into text, an offset into bytecode.

use girih::{Diagnostic, Error, Program};
use girih_compiler::cuda_tile::bytecode::{self, Version};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// A program as Python gave it.
fn bytes(program: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = program.cast::<PyString>() {
        return Ok(text.to_cow()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = program.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(bytes) = program.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    let kind = program.get_type().name()?;
    Err(PyTypeError::new_err(format!("a program is str, bytes or bytearray, not {kind}")))
}

/// 1-based line and column, in characters.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// `girih.Diagnostic` for each, in the order they were found.
fn diagnostics<'py>(
    py: Python<'py>,
    source: &[u8],
    filename: &str,
    all: &[Diagnostic],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let class = py.import("girih._diagnostics")?.getattr("Diagnostic")?;
    let text = if bytecode::is_bytecode(source) { None } else { std::str::from_utf8(source).ok() };
    all.iter()
        .map(|d| {
            let offset = d.span.map(|span| span.start as usize);
            let place = text.zip(offset).map(|(text, offset)| line_and_column(text, offset));
            let severity = format!("{:?}", d.severity).to_lowercase();
            class.call1((
                severity,
                d.code.text(),
                d.message.as_str(),
                filename,
                place.map(|p| p.0),
                place.map(|p| p.1),
                offset,
                d.help.as_deref(),
            ))
        })
        .collect()
}

/// The exception for an error of the library.
pub(crate) fn raised(py: Python<'_>, source: &[u8], filename: &str, error: Error) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let all = match &error {
            Error::Program(all) => all.clone(),
            other => match other.code() {
                Some(code) => {
                    let message = Diagnostic::error(code, other.to_string());
                    vec![message.maybe_help(other.help("check=True"))]
                }
                None => return Ok(pyo3::exceptions::PyRuntimeError::new_err(other.to_string())),
            },
        };
        let all = diagnostics(py, source, filename, &all)?;
        let class = py.import("girih._diagnostics")?.getattr("ProgramError")?;
        Ok(PyErr::from_value(class.call1((all,))?))
    };
    build().unwrap_or_else(|e| e)
}

/// Tile text, or bytecode, as bytecode of a version such as "13.3"; without one, of the oldest that can express it.
#[pyfunction]
#[pyo3(signature = (program, version = None, *, filename = "<program>"))]
pub fn assemble<'py>(
    py: Python<'py>,
    program: &Bound<'py, PyAny>,
    version: Option<&str>,
    filename: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let version = version.map(named).transpose()?;
    let source = bytes(program)?;
    let written = py.detach(|| Program::from_bytes(&source)?.bytecode(version));
    let (bytes, _) = written.map_err(|e| raised(py, &source, filename, e))?;
    Ok(PyBytes::new(py, &bytes))
}

fn named(version: &str) -> PyResult<Version> {
    let known = bytecode::write::VERSIONS;
    known.into_iter().find(|v| v.to_string() == version).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(Version::to_string).collect();
        PyValueError::new_err(format!(
            "unknown bytecode version `{version}`; the versions that girih writes are {}",
            names.join(", ")
        ))
    })
}

/// A program as text, in the words and layout of NVIDIA's tools; `debug` adds where each operation comes from.
#[pyfunction]
#[pyo3(signature = (program, debug = false, *, filename = "<program>"))]
pub fn disassemble(py: Python<'_>, program: &Bound<'_, PyAny>, debug: bool, filename: &str) -> PyResult<String> {
    let source = bytes(program)?;
    let text = py.detach(|| {
        let program = Program::from_bytes(&source)?;
        Ok(if debug { program.nvidia_debug_text() } else { program.nvidia_text() })
    });
    text.map_err(|e| raised(py, &source, filename, e))
}

/// Reads and verifies a program; gives its warnings.
#[pyfunction]
#[pyo3(signature = (program, *, filename = "<program>"))]
pub fn check<'py>(py: Python<'py>, program: &Bound<'py, PyAny>, filename: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let source = bytes(program)?;
    let program = py.detach(|| Program::from_bytes(&source)).map_err(|e| raised(py, &source, filename, e))?;
    diagnostics(py, &source, filename, program.warnings())
}
