//! Models: what the compiler makes of a graph of PyTorch.

use girih_compiler::graph::decompose;
use girih_compiler::source::torch::{self, Failure};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The names of the ATen operations that have a decomposition, as `aten.linear`.
#[pyfunction]
pub fn torch_operations() -> Vec<&'static str> {
    let handles = decompose::RULES.iter().flat_map(|rules| rules.iter()).flat_map(|rule| rule.handles.iter());
    handles.copied().filter(|name| name.starts_with("aten.")).collect()
}

/// The nodes of a graph of PyTorch (the JSON of `girih_compiler::source::torch`) that are refused, by position, and why.
/// A document that is malformed is a ValueError: a bug of whoever wrote it.
#[pyfunction]
pub fn torch_refusals(py: Python<'_>, json: &str) -> PyResult<Vec<(usize, String)>> {
    match py.detach(|| torch::examine(json)) {
        Ok(_) => Ok(vec![]),
        Err(Failure::Nodes(refused)) => Ok(refused.into_iter().map(|r| (r.node, r.reason)).collect()),
        Err(Failure::Document(problem)) => Err(PyValueError::new_err(problem.message)),
    }
}
