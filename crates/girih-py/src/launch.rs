//! `ct.launch`, around cuTile's own.
//!
//! In: the arguments of `cuda.tile.launch`. Out: the launch done, or Girih's exception. It is not a Python function, so
//! a traceback goes from the program's line to the kernel's with nothing between.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::{arrays, host};

/// Calls `native` with the arrays in one argument made arrays of the device, raises its exceptions as `explain`
/// translates them, and warns of what was found.
#[pyclass(frozen, module = "girih._girih")]
pub struct Launcher {
    native: Py<PyAny>,
    /// Which argument holds the kernel's.
    position: usize,
    classify: Py<PyAny>,
    explain: Py<PyAny>,
    /// The findings of launches, and the function that warns of them.
    found: Py<PyList>,
    warn: Py<PyAny>,
}

#[pymethods]
impl Launcher {
    #[new]
    fn new(
        native: Py<PyAny>,
        position: usize,
        classify: Py<PyAny>,
        explain: Py<PyAny>,
        found: Py<PyList>,
        warn: Py<PyAny>,
    ) -> Launcher {
        Launcher { native, position, classify, explain, found, warn }
    }

    #[pyo3(signature = (*args, **options))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        // Drops an exception that an earlier call left.
        drop(host::take_raised());
        let result = self.call(args, options).map_err(|error| {
            if let Some(raised) = host::take_raised() {
                return raised;
            }
            let explained = self.explain.bind(py).call1((error.value(py),));
            explained.map_or_else(|e| e, PyErr::from_value)
        })?;
        if !self.found.bind(py).is_empty() {
            self.warn.bind(py).call0()?;
        }
        Ok(result)
    }

    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyAny> {
        self.native.clone_ref(py)
    }
    #[getter]
    fn __name__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.native.bind(py).getattr("__name__")
    }
    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.native.bind(py).getattr("__doc__")
    }
}

impl Launcher {
    fn call<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let native = self.native.bind(py);
        let Ok(given) = args.get_item(self.position) else { return native.call(args, options) };
        let prepared = arrays::prepare(&given, self.classify.bind(py))?;
        if prepared.is(&given) {
            return native.call(args, options);
        }
        let mut items: Vec<Bound<'py, PyAny>> = args.iter().collect();
        if let Some(slot) = items.get_mut(self.position) {
            *slot = prepared;
        }
        native.call(PyTuple::new(py, items)?, options)
    }
}
