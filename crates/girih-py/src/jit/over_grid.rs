//! `kernel[grid]`: a launch without Python between the call and the kernel.
//!
//! Calls with settings (`device`, `check`, ...) go through `JITFunction.run`.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::dispatch::{Dispatcher, Launch, Outside};

#[pyclass(frozen, module = "girih._girih")]
pub struct OverGrid {
    dispatcher: Py<Dispatcher>,
    grid: Py<PyAny>,
    /// `JITFunction.run`.
    run: Py<PyAny>,
    outside: Outside,
}

#[pymethods]
impl OverGrid {
    #[new]
    fn new(dispatcher: Py<Dispatcher>, grid: Py<PyAny>, run: Py<PyAny>, outside: Outside) -> OverGrid {
        OverGrid { dispatcher, grid, run, outside }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<()> {
        let py = args.py();
        let dispatcher = self.dispatcher.get();
        let grid = self.grid.bind(py);
        let nothing;
        let kwargs = match kwargs {
            Some(kwargs) => kwargs,
            None => {
                nothing = PyDict::new(py);
                &nothing
            }
        };
        if !dispatcher.takes(py, kwargs) {
            let mut all = vec![grid.clone()];
            all.extend(args.iter());
            return self.run.bind(py).call(PyTuple::new(py, all)?, Some(kwargs)).map(drop);
        }
        self.outside.look(py)?;
        let bound = dispatcher.bind(py, args, kwargs, None)?;
        let launch = Launch { grid, settings: None, bound: &bound, looks: Vec::new(), live: Vec::new(), level: 1 };
        dispatcher.launch_bound(py, launch)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.grid)?;
        visit.call(&self.run)?;
        self.outside.traverse(&visit)
    }
}
