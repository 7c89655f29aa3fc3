//! Arrays of a CUDA device by their `__cuda_array_interface__` (CuPy, Numba, `girih.device.Array`), read without Python's part.
//!
//! In: an object of a class that was met before. Out: where its elements are. Tensors of PyTorch, arrays with gaps, and element types
//! that the interface spells otherwise are left to Python (`girih.device`), which describes them or says what is wrong.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The interface's names of element types, NumPy's and those of kernels.
const TYPES: [(&str, &str, &str, u64); 12] = [
    ("|b1", "bool", "int1", 1),
    ("|i1", "int8", "int8", 1),
    ("|u1", "uint8", "uint8", 1),
    ("<i2", "int16", "int16", 2),
    ("<u2", "uint16", "uint16", 2),
    ("<i4", "int32", "int32", 4),
    ("<u4", "uint32", "uint32", 4),
    ("<i8", "int64", "int64", 8),
    ("<u8", "uint64", "uint64", 8),
    ("<f2", "float16", "float16", 2),
    ("<f4", "float32", "float32", 4),
    ("<f8", "float64", "float64", 8),
];

/// An array without gaps.
pub struct Found {
    pub address: u64,
    /// NumPy's name of its element type, and that of kernels.
    pub numpy: &'static str,
    pub kernels: &'static str,
    pub shape: Vec<u64>,
    pub bytes: u64,
    pub writable: bool,
    /// The driver's stream; 0 is the legacy stream.
    pub stream: u64,
}

/// The classes that were met, by their addresses, kept alive.
static CLASSES: Mutex<BTreeMap<usize, Py<PyAny>>> = Mutex::new(BTreeMap::new());

/// Remembers the class of an array of a CUDA device.
pub fn meet(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = value.get_type();
    let has = |name: &str| class.hasattr(name);
    if has("__cuda_array_interface__")? && !has("data_ptr")? && !has("requires_grad")? {
        let class = class.into_any();
        CLASSES.lock().unwrap_or_else(PoisonError::into_inner).insert(class.as_ptr() as usize, class.unbind());
    }
    Ok(())
}

/// The array of an object whose class was met; `None` for everything that Python must look at.
pub fn read(value: &Bound<'_, PyAny>) -> Option<Found> {
    let class = value.get_type_ptr() as usize;
    if !CLASSES.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&class) {
        return None;
    }
    let py = value.py();
    let interface = value.getattr(pyo3::intern!(py, "__cuda_array_interface__")).ok()?;
    let interface = interface.cast::<PyDict>().ok()?;
    let item = |name| interface.get_item(name).ok().flatten().filter(|item| !item.is_none());
    let spelled = item(pyo3::intern!(py, "typestr"))?;
    let spelled: &str = &spelled.extract::<std::borrow::Cow<'_, str>>().ok()?;
    let &(_, numpy, kernels, size) = TYPES.iter().find(|(name, ..)| *name == spelled)?;
    let shape: Vec<u64> = item(pyo3::intern!(py, "shape"))?.extract().ok()?;
    let data = item(pyo3::intern!(py, "data"))?;
    let data = data.cast::<PyTuple>().ok()?;
    let address: u64 = data.get_item(0).ok()?.extract().ok()?;
    let writable = !data.get_item(1).ok()?.is_truthy().ok()?;
    if let Some(strides) = item(pyo3::intern!(py, "strides")) {
        let strides: Vec<u64> = strides.extract().ok()?;
        let mut step = size;
        for (extent, stride) in shape.iter().zip(&strides).rev() {
            if *stride != step {
                return None;
            }
            step = step.checked_mul(*extent)?;
        }
    }
    let stream: u64 = item(pyo3::intern!(py, "stream")).map_or(Some(0), |stream| stream.extract().ok())?;
    let bytes = shape.iter().try_fold(size, |n, d| n.checked_mul(*d))?;
    let lies = address.is_multiple_of(size) && (address != 0 || bytes == 0);
    // The interface calls the legacy stream 1.
    let stream = if stream == 1 { 0 } else { stream };
    lies.then_some(Found { address, numpy, kernels, shape, bytes, writable, stream })
}
