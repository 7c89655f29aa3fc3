//! A function of C called after a while, though Python's lock may be held all along.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The function is called again at this interval: the work that it stops may not have begun at the first call.
const AGAIN: Duration = Duration::from_millis(50);

/// Calls the function at an address, `void f(void)`, once `seconds` have passed, and again and again until it is
/// cancelled.
#[pyclass(frozen, module = "girih._girih")]
pub struct Alarm {
    cancel: Sender<()>,
    rang: Arc<AtomicBool>,
}

#[pymethods]
impl Alarm {
    #[new]
    fn new(seconds: f64, function: usize) -> PyResult<Alarm> {
        let wait = Duration::try_from_secs_f64(seconds).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let (cancel, cancelled) = mpsc::channel::<()>();
        let rang = Arc::new(AtomicBool::new(false));
        let ringing = rang.clone();
        let wakes = move || {
            let mut wait = wait;
            while cancelled.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                ringing.store(true, Ordering::SeqCst);
                wait = AGAIN;
                // SAFETY: the caller gives the address of a function without arguments that any thread may call, in a
                // library that stays loaded.
                unsafe { std::mem::transmute::<usize, extern "C" fn()>(function)() };
            }
        };
        std::thread::Builder::new().name("girih-alarm".into()).spawn(wakes)?;
        Ok(Alarm { cancel, rang })
    }

    /// Returns true if the function was called.
    fn rang(&self) -> bool {
        self.rang.load(Ordering::SeqCst)
    }

    fn cancel(&self) {
        // The thread has gone where it has already called.
        let _ = self.cancel.send(());
    }
}
