//! A run of a model on arrays of NumPy, or tensors of PyTorch, that look as those of the last run did: without Python between the call
//! and the kernels.

use std::sync::Arc;

use girih::model::Model as Native;
use girih_compiler::graph::Elem;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::interface;
use crate::jit::key::{class_of, descriptor_of, plain_array, results_memory};
use crate::jit::torch::{self, CPU, row_major};
use crate::model::{Addressed, Chosen, Model};

struct Expected {
    elem: Elem,
    /// NumPy's element type, kept alive: an array of another object is looked at by Python.
    descriptor: Py<PyAny>,
    shape: Vec<u64>,
}

impl Expected {
    /// The address of the elements of a tensor of PyTorch on the host that looks so.
    fn in_tensor(&self, value: &Bound<'_, PyAny>) -> Option<u64> {
        let found = torch::plain(value)?;
        // SAFETY: the tensor lives as long as `value`.
        let (shape, strides) = unsafe { found.layout() };
        let like = self.shape.iter().copied().eq(shape.iter().map(|n| *n as u64)) && row_major(shape, strides);
        let typed = torch::type_of(self.elem) == Some((found.code, found.bits)) && found.lanes == 1;
        if !like || !typed || found.device().0 != CPU {
            return None;
        }
        let size = u64::from(found.bits / 8);
        let count = self.shape.iter().try_fold(1u64, |n, extent| n.checked_mul(*extent))?;
        let address = found.address();
        if count == 0 {
            return Some(address);
        }
        // Somebody may have made the storage smaller.
        let room = torch::room(value, size)?;
        let whole = count.checked_mul(size).is_some_and(|bytes| bytes <= room.end.saturating_sub(room.start));
        (whole && address != 0 && address.is_multiple_of(size)).then_some(address)
    }
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

    /// The list of results; None where an array looks otherwise, or the caller has arrays for results.
    #[pyo3(signature = (args, out = None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        if args.len() != self.inputs.len() || out.is_some() {
            return Ok(None);
        }
        let mut tensors = Vec::with_capacity(self.inputs.len());
        for (array, expected) in args.iter_borrowed().zip(&self.inputs) {
            let found = if class_of(&array) == self.class {
                plain_array(&array, expected.descriptor.as_ptr(), &expected.shape)
            } else {
                torch::meet(&array)?;
                expected.in_tensor(&array)
            };
            match found {
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
        let call = Addressed {
            inputs: &tensors,
            parameters: Chosen::Held,
            symbols: &[],
            outputs: &places,
            stream: None,
            on_device: false,
        };
        // SAFETY: the tuple holds the arguments and the list the results, which nobody else has seen, until this returns; types
        // and shapes were compared above.
        unsafe { call.run(py, &self.model) }?;
        Ok(Some(results))
    }
}

/// As [`Quick`], for a model on a GPU and arrays in its memory.
#[pyclass(frozen, module = "girih._girih")]
pub struct QuickOnDevice {
    model: Arc<Native>,
    elems: Vec<Elem>,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    /// Makes an array of the device of a shape, an element type and a stream.
    empty: Py<PyAny>,
    types: Vec<(Py<PyAny>, Py<PyAny>)>,
}

/// NumPy's name of an element type, and a shape.
type Array = (String, Vec<u64>);

impl QuickOnDevice {
    /// An object's array, if it is one of this type and shape on this stream, or the first.
    fn array(value: &Bound<'_, PyAny>, (name, shape): &Array, stream: &mut Option<u64>) -> Option<interface::Found> {
        let found = interface::read(value)?;
        let fits = found.numpy == name && found.shape == *shape && *stream.get_or_insert(found.stream) == found.stream;
        fits.then_some(found)
    }
}

#[pymethods]
impl QuickOnDevice {
    /// For these arguments of a run and the element types and shapes of its results.
    #[new]
    fn new(
        model: &Model,
        empty: Py<PyAny>,
        arguments: Vec<(Bound<'_, PyAny>, String, Vec<u64>)>,
        results: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>, String)>,
    ) -> PyResult<QuickOnDevice> {
        let mut inputs = vec![];
        for (array, name, shape) in arguments {
            interface::meet(&array)?;
            inputs.push((name, shape));
        }
        if inputs.len() != model.arguments.len() {
            return Err(PyRuntimeError::new_err("these are not the arguments of the model"));
        }
        let (mut outputs, mut types) = (vec![], vec![]);
        for (shape, dtype, name) in results {
            outputs.push((name, shape.extract()?));
            types.push((shape.unbind(), dtype.unbind()));
        }
        Ok(QuickOnDevice { model: model.model.clone(), elems: model.arguments.clone(), inputs, outputs, empty, types })
    }

    /// The list of results: new arrays, or those of `out`. None where an array looks otherwise, or shares memory with one of `out`.
    #[pyo3(signature = (args, out = None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        if args.len() != self.inputs.len() {
            return Ok(None);
        }
        let (mut stream, mut taken, mut inputs) = (None, vec![], vec![]);
        for ((value, expected), elem) in args.iter_borrowed().zip(&self.inputs).zip(&self.elems) {
            let Some(found) = QuickOnDevice::array(&value, expected, &mut stream) else { return Ok(None) };
            taken.push((found.address, found.bytes));
            inputs.push((*elem, found.address, expected.1.as_slice()));
        }
        let results = PyList::empty(py);
        match out {
            None => {
                for (shape, dtype) in &self.types {
                    results.append(self.empty.bind(py).call1((shape, dtype, stream.unwrap_or(0)))?)?;
                }
            }
            Some(one) if self.outputs.len() == 1 => results.append(one)?,
            Some(_) => return Ok(None),
        }
        let mut places = vec![];
        for (value, expected) in results.iter().zip(&self.outputs) {
            interface::meet(&value)?;
            let Some(found) = QuickOnDevice::array(&value, expected, &mut stream).filter(|found| found.writable) else {
                return Ok(None);
            };
            let (first, end) = (found.address, found.address.saturating_add(found.bytes));
            if taken.iter().any(|(at, bytes)| *at < end && first < at.saturating_add(*bytes)) {
                return Ok(None);
            }
            taken.push((found.address, found.bytes));
            places.push((found.address, found.bytes));
        }
        let call = Addressed {
            inputs: &inputs,
            parameters: Chosen::Held,
            symbols: &[],
            outputs: &places,
            stream,
            on_device: true,
        };
        // SAFETY: the caller holds the arguments and the list the results until this returns, and their libraries keep memory of a
        // stream until that has used it; types and shapes were compared above.
        unsafe { call.run(py, &self.model) }?;
        Ok(Some(results))
    }
}
