//! Python while a kernel runs: its lock is free for other threads, and its signals are handled.
//!
//! Python runs a signal's handler on the main thread and between two instructions; a thread that launches is between two
//! for as long as the kernel runs. So it looks up every now and then, and a handler that raises ends the launch.

use std::cell::RefCell;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeWarning};
use pyo3::ffi;
use pyo3::prelude::*;

/// Does `work` without Python's lock; an exception that a signal's handler raises meanwhile ends it and is the error.
pub fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let slot = || raised.lock().unwrap_or_else(PoisonError::into_inner);
    let done = py.detach(|| {
        let ask = || {
            Python::attach(|py| {
                if let Err(error) = py.check_signals() {
                    slot().get_or_insert(error);
                }
            });
            slot().is_some()
        };
        girih::attentive(&ask, work)
    });
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => warned(py).map(|()| done),
    }
}

/// Issues the warnings about the cache of compiled kernels, as Python warnings.
pub fn warned(py: Python<'_>) -> PyResult<()> {
    for text in girih::cache::take_warnings() {
        let text = CString::new(format!("girih: {text}"))?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    Ok(())
}

/// As `detached`, for work that returns Girih's errors; `make` turns them into exceptions.
pub fn run<R: Send>(
    py: Python<'_>,
    make: impl FnOnce(girih::Error) -> PyErr,
    work: impl FnOnce() -> girih::Result<R> + Send,
) -> PyResult<R> {
    match detached(py, work)? {
        Ok(done) => Ok(done),
        Err(girih::Error::Interrupted) => {
            py.check_signals()?;
            Err(PyKeyboardInterrupt::new_err(()))
        }
        Err(error) => Err(make(error)),
    }
}

thread_local! {
    /// The exception that a handler raised while this thread launched through the driver.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Takes the exception that a handler raised while this thread launched through the driver.
pub fn take_raised() -> Option<PyErr> {
    RAISED.take()
}

// The driver is called by an extension that knows nothing of it, and PyO3 nothing of the lock that is released below it: so
// these three are Python's own functions.

unsafe extern "C" {
    /// Returns nonzero if this thread has Python's lock. It is outside of the limited interface, but in every version
    /// of Python.
    fn PyGILState_Check() -> c_int;
}

/// Lets go of Python's lock where this thread has it.
extern "C" fn release() -> *mut c_void {
    // SAFETY: asks, and releases the lock if this thread has it.
    unsafe {
        match PyGILState_Check() {
            1 => ffi::PyEval_SaveThread().cast(),
            _ => std::ptr::null_mut(),
        }
    }
}

extern "C" fn restore(state: *mut c_void) {
    if !state.is_null() {
        // SAFETY: what `release` gave, on the same thread.
        unsafe { ffi::PyEval_RestoreThread(state.cast()) };
    }
}

/// Handles signals; nonzero when a handler has raised.
extern "C" fn ask() -> c_int {
    // SAFETY: takes the lock, whether this thread had released it or not, and gives it back.
    unsafe {
        let state = ffi::PyGILState_Ensure();
        let raised = ffi::PyErr_CheckSignals() != 0;
        if raised {
            let error = PyErr::fetch(Python::assume_attached());
            RAISED.set(Some(error));
        }
        ffi::PyGILState_Release(state);
        c_int::from(raised)
    }
}

/// The addresses of the functions that the driver's `girih_shim_set_host` takes.
#[pyfunction]
pub fn driver_host() -> (usize, usize, usize) {
    (release as *const () as usize, restore as *const () as usize, ask as *const () as usize)
}
