//! Memory of results, which is taken again once nothing refers to it: a system clears memory that it hands out, which takes
//! longer than many a kernel.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use girih::pages::Pages;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// Bytes that are kept for one model, at most.
const KEPT: usize = 256 << 20;

type Free = Mutex<Vec<Pages>>;

/// Where a model's results go.
#[pyclass(frozen, module = "girih._girih")]
#[derive(Default)]
pub struct Results {
    free: Arc<Free>,
}

#[pymethods]
impl Results {
    #[new]
    fn new() -> Results {
        Results::default()
    }

    /// So many bytes of any content.
    fn take(&self, bytes: usize) -> PyResult<Memory> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.iter().position(|pages| pages.len() == bytes).map(|at| free.remove(at));
        drop(free);
        let pages = found.or_else(|| Pages::zeroed(bytes));
        let pages = pages.ok_or_else(|| PyMemoryError::new_err(format!("no memory for a result of {bytes} bytes")))?;
        Ok(Memory { pages: Some(pages), home: Arc::downgrade(&self.free) })
    }
}

/// One result's memory.
#[pyclass(frozen, module = "girih._girih")]
pub struct Memory {
    /// There until the memory is dropped.
    pages: Option<Pages>,
    home: Weak<Free>,
}

#[pymethods]
impl Memory {
    /// Where it begins. It stays there as long as the object lives.
    #[getter]
    fn address(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.as_ptr().expose_provenance())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let (Some(pages), Some(home)) = (self.pages.take(), self.home.upgrade()) else { return };
        let mut free = home.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(pages);
        while free.iter().map(Pages::len).sum::<usize>() > KEPT {
            free.remove(0);
        }
    }
}
