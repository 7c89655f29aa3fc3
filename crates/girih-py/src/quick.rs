//! A run of a model on arrays of NumPy that look as those of the last run did: without Python between the call and the kernels.

use std::sync::Arc;

use girih::model::Model as Native;
use girih_compiler::graph::Elem;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::jit::key::{class_of, descriptor_of, plain_array, results_memory};
use crate::model::{Addressed, Model};

struct Expected {
    elem: Elem,
    /// NumPy's element type, kept alive: an array of another object is looked at by Python.
    descriptor: Py<PyAny>,
    shape: Vec<u64>,
}

/// Facts about the arrays of a run that serve the next run.
#[pyclass(frozen, module = "girih._girih")]
pub struct Quick {
    model: Arc<Native>,
    /// NumPy's type of arrays, and its function `empty`.
    class: usize,
    empty: Py<PyAny>,
    inputs: Vec<Expected>,
    /// The arguments of `empty` for each output.
    outputs: Vec<Py<PyTuple>>,
}

#[pymethods]
impl Quick {
    /// For arrays of NumPy in the order of the model's arguments, and the element types and shapes of its results.
    #[new]
    fn new(
        model: &Model,
        empty: Py<PyAny>,
        arrays: Vec<(Bound<'_, PyAny>, Vec<u64>)>,
        results: Vec<Bound<'_, PyTuple>>,
    ) -> PyResult<Quick> {
        let class = arrays.first().map_or(0, |(array, _)| class_of(array));
        let same = arrays.len() == model.arguments.len() && arrays.iter().all(|(array, _)| class_of(array) == class);
        if !same {
            return Err(PyRuntimeError::new_err("these are not the arguments of the model"));
        }
        let expected = |(elem, (array, shape)): (&Elem, (Bound<'_, PyAny>, Vec<u64>))| {
            let descriptor = descriptor_of(&array).unbind();
            Expected { elem: *elem, descriptor, shape }
        };
        let inputs = model.arguments.iter().zip(arrays).map(expected).collect();
        let outputs = results.into_iter().map(Bound::unbind).collect();
        Ok(Quick { model: model.model.clone(), class, empty, inputs, outputs })
    }

    /// The list of results; None where an array looks otherwise.
    fn __call__<'py>(&self, py: Python<'py>, args: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyList>>> {
        if args.len() != self.inputs.len() {
            return Ok(None);
        }
        let mut tensors = Vec::with_capacity(self.inputs.len());
        for (array, expected) in args.iter_borrowed().zip(&self.inputs) {
            if class_of(&array) != self.class {
                return Ok(None);
            }
            match plain_array(&array, expected.descriptor.as_ptr(), &expected.shape) {
                Some(data) => tensors.push((expected.elem, data, expected.shape.as_slice())),
                None => return Ok(None),
            }
        }
        let results = PyList::empty(py);
        let mut places = Vec::with_capacity(self.outputs.len());
        for shape_and_type in &self.outputs {
            let array = self.empty.bind(py).call1(shape_and_type.bind(py))?;
            if class_of(&array) != self.class {
                return Ok(None);
            }
            places.push(results_memory(&array));
            results.append(array)?;
        }
        let call = Addressed { inputs: &tensors, symbols: &[], outputs: &places, stream: None, on_device: false };
        // SAFETY: the tuple holds the arguments and the list the results, which nobody else has seen, until this returns; types
        // and shapes were compared above.
        unsafe { call.run(py, &self.model) }?;
        Ok(Some(results))
    }
}
