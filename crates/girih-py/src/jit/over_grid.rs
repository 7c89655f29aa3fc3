//! `kernel[grid]`: a launch without Python between the call and the kernel.
//!
//! Calls with settings (`device`, `check`, ...) go through `JITFunction.run`. [`Quiet`] is a call of Python that, like a
//! launch, leaves the package's own frames out of the traceback of an exception: only a function that is not Python's can do
//! so without a frame of its own.

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
        self.launch(args, kwargs).map_err(|error| without_frames(args.py(), error))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.grid)?;
        visit.call(&self.run)?;
        self.outside.traverse(&visit)
    }
}

impl OverGrid {
    fn launch<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<()> {
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
}

/// `kernel[grid]` of a kernel that Python launches: a function and the argument that it takes before those of a call.
#[pyclass(frozen, module = "girih._girih")]
pub struct Quiet {
    function: Py<PyAny>,
    first: Py<PyAny>,
}

#[pymethods]
impl Quiet {
    #[new]
    fn new(function: Py<PyAny>, first: Py<PyAny>) -> Quiet {
        Quiet { function, first }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let mut all = vec![self.first.bind(py).clone()];
        all.extend(args.iter());
        let called = self.function.bind(py).call(PyTuple::new(py, all)?, kwargs);
        called.map_err(|error| without_frames(py, error))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.first)
    }
}

/// The same exception; the package's frames are left out of its traceback where the mistake is the user's.
fn without_frames(py: Python<'_>, error: PyErr) -> PyErr {
    let value = error.into_value(py).into_bound(py);
    let hidden = py.import("girih.frontend.errors").and_then(|m| m.call_method1("hide_frames", (&value,)));
    match hidden {
        Ok(_) => PyErr::from_value(value.into_any()),
        Err(failed) => failed,
    }
}
