//! Arrays in main memory, handed to a program that asks for arrays of a CUDA device.
//!
//! In: the tuple of a launch's arguments. Out: the same tuple, or one where each array of main memory is inside a
//! [`DeviceArray`], whose DLPack capsule names a CUDA device. Girih's device memory is main memory, so only the label
//! differs: nothing is copied.
//!
//! Invariant: what a type of argument is, is asked once (the Python function `classify`) and kept by the type's address;
//! a type that was asked about is kept alive, so no other type takes its address.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple, PyType};

/// How arguments of a type are handled.
enum Kind {
    /// Nothing: a scalar, or something cuTile itself knows or refuses.
    Pass,
    /// An array of main memory: the class of its stand-in, and the function that makes a DLPack capsule of the array.
    Array(Py<PyAny>, Py<PyAny>),
    Tuple,
    List,
}

struct Known {
    kind: Kind,
    _alive: Py<PyAny>,
}

static KINDS: Mutex<BTreeMap<usize, Known>> = Mutex::new(BTreeMap::new());

/// The capsule's name while nobody has taken its tensor.
const UNUSED: &CStr = c"dltensor";
const CUDA: i32 = 2;

/// The head of DLPack's `DLManagedTensor`.
#[repr(C)]
pub struct Tensor {
    pub data: *mut u8,
    device_type: i32,
    device_id: i32,
    pub ndim: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *const i64,
    /// In elements; null where it is row-major without gaps.
    pub strides: *const i64,
    pub byte_offset: u64,
}

impl Tensor {
    /// A place for a description.
    pub const EMPTY: Tensor = Tensor {
        data: std::ptr::null_mut(),
        device_type: 0,
        device_id: 0,
        ndim: 0,
        code: 0,
        bits: 0,
        lanes: 0,
        shape: std::ptr::null(),
        strides: std::ptr::null(),
        byte_offset: 0,
    };

    /// DLPack's number of the kind of device, and the device's among those.
    pub fn device(&self) -> (i32, i32) {
        (self.device_type, self.device_id)
    }

    /// Where the first element is.
    pub fn address(&self) -> u64 {
        (self.data as u64).wrapping_add(self.byte_offset)
    }

    /// The shape, and the strides in elements.
    ///
    /// # Safety
    /// The tensor lives as long as the slices are used, and has strides if it has axes.
    pub unsafe fn layout<'a>(&self) -> (&'a [i64], &'a [i64]) {
        match usize::try_from(self.ndim) {
            // SAFETY: both have an element for each axis.
            Ok(rank @ 1..) => unsafe {
                (std::slice::from_raw_parts(self.shape, rank), std::slice::from_raw_parts(self.strides, rank))
            },
            _ => (&[], &[]),
        }
    }
}

/// The tensor of a DLPack capsule that nobody has taken.
pub fn untaken(capsule: &Bound<'_, PyAny>) -> PyResult<*mut Tensor> {
    if !capsule.is_instance_of::<PyCapsule>() {
        return Err(PyTypeError::new_err("__dlpack__ returned no capsule"));
    }
    // SAFETY: it is a capsule, whose name the call checks.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), UNUSED.as_ptr()) }.cast::<Tensor>();
    if tensor.is_null() {
        PyErr::take(capsule.py());
        return Err(PyBufferError::new_err("the array's DLPack capsule has an unknown version"));
    }
    Ok(tensor)
}

/// An array of main memory that says it is one of a CUDA device. Each class of arrays has a subclass of its own name, which is what
/// messages about an argument show.
#[pyclass(frozen, subclass, module = "girih._girih")]
pub struct DeviceArray {
    array: Py<PyAny>,
    /// Makes the capsule.
    export: Py<PyAny>,
}

#[pymethods]
impl DeviceArray {
    #[new]
    fn new(array: Py<PyAny>, export: Py<PyAny>) -> DeviceArray {
        DeviceArray { array, export }
    }

    #[pyo3(signature = (**_asked))]
    fn __dlpack__<'py>(&self, py: Python<'py>, _asked: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        relabel(self.export.bind(py).call1((&self.array,))?, None)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (CUDA, 0)
    }
}

/// The capsule, with the CUDA device, and an element type (DLPack's code and bits) if one is given, written into it.
#[pyfunction]
#[pyo3(signature = (capsule, element = None))]
pub fn relabel<'py>(capsule: Bound<'py, PyAny>, element: Option<(u8, u8)>) -> PyResult<Bound<'py, PyAny>> {
    let tensor = untaken(&capsule)?;
    // SAFETY: the capsule holds a DLManagedTensor, which begins with the fields of `Tensor`, and this thread holds the
    // interpreter's lock, so nobody else has it.
    unsafe {
        (*tensor).device_type = CUDA;
        (*tensor).device_id = 0;
        if let Some((code, bits)) = element {
            (*tensor).code = code;
            (*tensor).bits = bits;
        }
    }
    Ok(capsule)
}

impl Kind {
    fn clone_ref(&self, py: Python<'_>) -> Kind {
        match self {
            Kind::Pass => Kind::Pass,
            Kind::Array(stand_in, export) => Kind::Array(stand_in.clone_ref(py), export.clone_ref(py)),
            Kind::Tuple => Kind::Tuple,
            Kind::List => Kind::List,
        }
    }
}

/// A subclass of [`DeviceArray`] that is called as a class of arrays is.
fn stand_in(class: &Bound<'_, PyType>) -> PyResult<Py<PyAny>> {
    let py = class.py();
    let body = PyDict::new(py);
    body.set_item("__module__", class.module()?)?;
    body.set_item("__slots__", PyTuple::empty(py))?;
    let made = py.get_type::<PyType>().call1((class.name()?, (py.get_type::<DeviceArray>(),), body))?;
    Ok(made.unbind())
}

/// How arguments of `of`'s type are handled; `classify` is asked about a type never seen.
fn kind(of: &Bound<'_, PyAny>, classify: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let py = of.py();
    let class = of.get_type();
    let address = class.as_ptr() as usize;
    if let Some(known) = KINDS.lock().unwrap_or_else(PoisonError::into_inner).get(&address) {
        return Ok(known.kind.clone_ref(py));
    }
    let (name, function): (String, Py<PyAny>) = classify.call1((&class,))?.extract()?;
    let kind = match &*name {
        "array" => Kind::Array(stand_in(&class)?, function),
        "tuple" => Kind::Tuple,
        "list" => Kind::List,
        _ => Kind::Pass,
    };
    let entry = Known { kind: kind.clone_ref(py), _alive: class.into_any().unbind() };
    KINDS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, entry);
    Ok(kind)
}

/// The argument to pass instead, if it is another one.
fn replaced<'py>(argument: &Bound<'py, PyAny>, classify: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = argument.py();
    Ok(match kind(argument, classify)? {
        Kind::Pass => None,
        Kind::Array(stand_in, export) => Some(stand_in.bind(py).call1((argument, export))?),
        Kind::Tuple => {
            let items = argument.cast::<PyTuple>()?;
            let changed = items_replaced(items.iter(), items.len(), classify)?;
            changed.map(|items| PyTuple::new(py, items)).transpose()?.map(Bound::into_any)
        }
        Kind::List => {
            let items = argument.cast::<PyList>()?;
            let changed = items_replaced(items.iter(), items.len(), classify)?;
            changed.map(|items| PyList::new(py, items)).transpose()?.map(Bound::into_any)
        }
    })
}

fn items_replaced<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    count: usize,
    classify: &Bound<'py, PyAny>,
) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    let mut changed = false;
    let mut out = Vec::with_capacity(count);
    for item in items {
        let other = replaced(&item, classify)?;
        changed |= other.is_some();
        out.push(other.unwrap_or(item));
    }
    Ok(changed.then_some(out))
}

/// The arguments of a launch with arrays of main memory made arrays of the device; anything but a tuple as it is.
///
/// `classify(type)` gives what to do with arguments of a type and the function to do it with: `("array", export)`,
/// `("tuple", None)`, `("list", None)` or `("pass", None)`.
#[pyfunction]
pub fn prepare<'py>(arguments: &Bound<'py, PyAny>, classify: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(items) = arguments.cast_exact::<PyTuple>() else { return Ok(arguments.clone()) };
    match items_replaced(items.iter(), items.len(), classify)? {
        Some(items) => Ok(PyTuple::new(arguments.py(), items)?.into_any()),
        None => Ok(arguments.clone()),
    }
}
