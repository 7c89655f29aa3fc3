//! The configurations that `@girih.autotune` chose, found again without running Python.
//!
//! In: a call. Out: the configuration that an earlier call of the same key had, and the launch under it. Each array is looked at
//! once, for the key and for the launch. Calls that these words do not describe (an array of another library, an argument of the key
//! that is neither a number nor a text) are left to Python.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyTuple};

use super::dispatch::{Dispatcher, Launch, Look, Outside, looked_at};
use super::key::Collected;

/// A configuration, and its constants by name.
struct Choice {
    config: Py<PyAny>,
    constants: Py<PyDict>,
}

#[pyclass(frozen, module = "girih._girih")]
pub struct Choices {
    dispatcher: Py<Dispatcher>,
    outside: Outside,
    /// The positions of the parameters whose values are the key.
    positions: Vec<usize>,
    known: Mutex<HashMap<Vec<u64>, Choice, rustc_hash::FxBuildHasher>>,
}

#[pymethods]
impl Choices {
    #[new]
    fn new(dispatcher: Py<Dispatcher>, outside: Outside, positions: Vec<usize>) -> Choices {
        Choices { dispatcher, outside, positions, known: Mutex::default() }
    }

    /// Notes which configuration calls like this one have.
    fn add(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
        config: Py<PyAny>,
        constants: Py<PyDict>,
    ) -> PyResult<()> {
        if let Some((words, _)) = self.key(args, kwargs)? {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(words, Choice { config, constants });
        }
        Ok(())
    }

    /// Launches as an earlier call like this one was, with `tuner.best_config` set; False where there was none.
    fn launch<'py>(
        &self,
        tuner: &Bound<'py, PyAny>,
        grid: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
    ) -> PyResult<bool> {
        let py = args.py();
        let dispatcher = self.dispatcher.get();
        if !dispatcher.takes(py, kwargs) {
            return Ok(false);
        }
        let Some((words, looks)) = self.key(args, kwargs)? else { return Ok(false) };
        let chosen = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(&words).map(|choice| (choice.config.clone_ref(py), choice.constants.clone_ref(py)))
        };
        let Some((config, constants)) = chosen else { return Ok(false) };
        tuner.setattr("best_config", config)?;
        self.outside.look(py)?;
        let bound = dispatcher.bind(py, args, kwargs, Some(constants.bind(py)))?;
        // Above is `Autotuner.run`, and above that its caller.
        let launch = Launch { grid, settings: None, bound: &bound, looks, live: Vec::new(), level: 2 };
        dispatcher.launch_bound(py, launch).map(|()| true)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.outside.traverse(&visit)
    }
}

/// Words of a key, and the arrays of the arguments as they were found.
type Key = (Vec<u64>, Vec<Option<Look>>);

impl Choices {
    /// The words that calls of one key share: element types, values of the key and arguments by name; and the arrays as they were
    /// found. None for calls that Python has to look at.
    fn key(&self, args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> PyResult<Option<Key>> {
        let py = args.py();
        let name_of = self.dispatcher.get().name_of(py).clone();
        let mut words = Collected::with_room(2 * args.len());
        let mut looks = Vec::with_capacity(args.len());
        for value in args.iter_borrowed() {
            let look = looked_at(&value, &name_of);
            match &look {
                Some((array, _)) => words.words.push(array.dtype),
                None if value.is_none() || is_simple(&value) => words.words.push(u64::MAX),
                None => return Ok(None),
            }
            looks.push(look);
        }
        let mut alive = Vec::new();
        for &at in &self.positions {
            match args.get_item(at) {
                Ok(value) if is_simple(&value) => words.constant(&value, &mut alive)?,
                _ => return Ok(None),
            }
        }
        for (name, value) in kwargs.iter() {
            if !is_simple(&value) {
                return Ok(None);
            }
            words.name(name.cast::<PyString>()?.to_str()?);
            words.constant(&value, &mut alive)?;
        }
        Ok(Some((words.words, looks)))
    }
}

/// Returns true for a number or a text.
fn is_simple(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyString>()
}
