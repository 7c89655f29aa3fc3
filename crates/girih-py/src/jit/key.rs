//! A kernel's view of its arguments: the words that tell specialisations apart, and the bits handed over.
//!
//! A specialisation depends on an array's element type and whether its address is divisible by 16, on an integer's
//! width and whether it is 1 or divisible by 16, and on the values of constants. Two calls with equal words share one.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::collections::BTreeMap;

use super::layout::Layout;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The kind of parameter that an argument is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Constant,
    Runtime,
    /// A number that is not specialised on.
    Unspecialised,
}

/// The first of an argument's words.
mod tag {
    pub const ARRAY: u64 = 1;
    pub const INT: u64 = 2;
    pub const ONE: u64 = 3;
    pub const FLOAT: u64 = 4;
    pub const BOOL: u64 = 5;
    pub const NONE: u64 = 6;
    pub const TEXT: u64 = 7;
    pub const TUPLE: u64 = 8;
    pub const OBJECT: u64 = 9;
    pub const BIG: u64 = 10;
}

/// An array: where it is, how far it reaches, and whether it may be written.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    pub address: u64,
    /// From the address on, and before it, where strides are negative.
    pub bytes: u64,
    pub before: u64,
    pub writable: bool,
    /// Its elements follow each other without gaps.
    pub whole: bool,
    /// The number of its element type among those met.
    pub dtype: u64,
}

/// The arguments of a call, as they are collected.
#[derive(Default)]
pub struct Collected {
    pub words: Vec<u64>,
    /// One per run-time parameter.
    pub slots: Vec<u64>,
    pub arrays: Vec<Option<Array>>,
    /// The arrays that are not contiguous in row-major order: the parameter's name and the layout.
    pub layouts: Vec<(Py<PyString>, Layout)>,
    /// The first parameter whose array is on a CUDA device, and that array's stream.
    pub on_device: Option<(Py<PyString>, u64)>,
    /// The owners of memory that stands for arguments.
    pub alive: Vec<Py<PyAny>>,
}

/// The element types that were met: by the address of NumPy's descriptor, with the descriptor kept alive, and their
/// names by number.
#[derive(Default)]
struct Types {
    by_descriptor: BTreeMap<usize, u64>,
    names: Vec<String>,
    alive: Vec<Py<PyAny>>,
}

static TYPES: Mutex<Types> = Mutex::new(Types { by_descriptor: BTreeMap::new(), names: Vec::new(), alive: Vec::new() });

impl Types {
    fn number(&mut self, name: &str) -> u64 {
        let at = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        });
        at as u64
    }
}

/// The name of an element type by its number.
pub fn type_name(number: u64) -> String {
    let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    types.names.get(number as usize).cloned().unwrap_or_default()
}

/// Girih's element types by DLPack's code and bits.
const BY_DLPACK: [(u8, u8, &str); 15] = [
    (0, 8, "int8"),
    (0, 16, "int16"),
    (0, 32, "int32"),
    (0, 64, "int64"),
    (1, 8, "uint8"),
    (1, 16, "uint16"),
    (1, 32, "uint32"),
    (1, 64, "uint64"),
    (2, 16, "float16"),
    (2, 32, "float32"),
    (2, 64, "float64"),
    (4, 16, "bfloat16"),
    (6, 8, "int1"),
    (10, 8, "float8e4nv"),
    (12, 8, "float8e5"),
];

/// The number of an element type that DLPack describes so, and its size in bytes; `None` where kernels do not take it.
pub fn type_number(code: u8, bits: u8) -> Option<(u64, u64)> {
    static NUMBERS: OnceLock<Vec<u64>> = OnceLock::new();
    let at = BY_DLPACK.iter().position(|(c, b, _)| (*c, *b) == (code, bits))?;
    let numbers = NUMBERS.get_or_init(|| {
        let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
        BY_DLPACK.iter().map(|(_, _, name)| types.number(name)).collect()
    });
    Some((*numbers.get(at)?, u64::from(bits / 8)))
}

/// The head of NumPy's array object, which has been the same since 1.7.
#[repr(C)]
struct ArrayObject {
    head: ffi::PyObject,
    data: *mut u8,
    rank: i32,
    dimensions: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    descriptor: *mut ffi::PyObject,
    flags: i32,
}

const C_CONTIGUOUS: i32 = 0x1;
const WRITEABLE: i32 = 0x400;
const ALIGNED: i32 = 0x100;
/// Addresses divisible by this are said to be so.
const ALIGNMENT: u64 = 16;

/// NumPy's array type, once an array has been seen.
pub struct Numpy {
    pub class: usize,
    _alive: Py<PyAny>,
}

impl Numpy {
    pub fn new(class: Bound<'_, PyAny>) -> Numpy {
        Numpy { class: class.as_ptr() as usize, _alive: class.unbind() }
    }
}

/// The address of an object's type.
pub fn class_of(value: &Bound<'_, PyAny>) -> usize {
    value.get_type_ptr() as usize
}

/// The address of the elements of an array of NumPy whose element type is this object, of this shape, row-major without gaps.
pub fn plain_array(array: &Bound<'_, PyAny>, descriptor: *mut ffi::PyObject, shape: &[u64]) -> Option<u64> {
    // SAFETY: the caller found the object's type to be NumPy's array, whose objects begin so; rank and dimensions are valid
    // while the interpreter's lock is held.
    unsafe {
        let array = &*array.as_ptr().cast::<ArrayObject>();
        let wanted = C_CONTIGUOUS | ALIGNED;
        let fits = array.descriptor == descriptor
            && array.flags & wanted == wanted
            && usize::try_from(array.rank) == Ok(shape.len())
            && shape.iter().enumerate().all(|(i, n)| *array.dimensions.add(i) as u64 == *n);
        fits.then_some(array.data as u64)
    }
}

/// The element type of an array of NumPy.
pub fn descriptor_of<'py>(array: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    // SAFETY: as above; an array owns a reference to its descriptor.
    unsafe { Bound::from_borrowed_ptr(array.py(), (*array.as_ptr().cast::<ArrayObject>()).descriptor) }
}

/// The address of an array of NumPy that `empty` has made, and how many bytes it has from there.
pub fn results_memory(array: &Bound<'_, PyAny>) -> (u64, u64) {
    // SAFETY: as above; such an array is row-major without gaps, so its first stride is the size of the other dimensions.
    unsafe {
        let array = &*array.as_ptr().cast::<ArrayObject>();
        let bytes = match array.rank {
            // A scalar: no type of ours has larger elements.
            0 => 8,
            _ => (*array.dimensions as u64).saturating_mul(*array.strides as u64),
        };
        (array.data as u64, bytes)
    }
}

/// The description of a NumPy array, and its layout unless that is row-major without gaps; `name_of(dtype)` names an
/// element type that was not met before, or raises.
pub fn numpy_array(value: &Bound<'_, PyAny>, name_of: &Bound<'_, PyAny>) -> PyResult<(Array, Option<Layout>)> {
    // SAFETY: the caller found the object's type to be NumPy's array, whose objects begin so; rank, dimensions and
    // strides are valid while the interpreter's lock is held.
    let (address, flags, descriptor, span, layout) = unsafe {
        let array = &*value.as_ptr().cast::<ArrayObject>();
        let rank = usize::try_from(array.rank).unwrap_or(0);
        let axes = (0..rank).map(|i| (*array.dimensions.add(i), *array.strides.add(i)));
        let layout = (array.flags & C_CONTIGUOUS == 0).then(|| {
            let (shape, strides) = axes.clone().map(|(n, s)| (n as i64, s as i64)).unzip();
            Layout { shape, strides }
        });
        (array.data as u64, array.flags, array.descriptor, span(axes), layout)
    };
    let number = known_type(value.py(), descriptor, name_of)?;
    if flags & ALIGNED == 0 {
        return Err(PyValueError::new_err("an array whose elements are not aligned cannot be passed to a kernel"));
    }
    let (dtype, itemsize) = (number >> 16, number & 0xffff);
    let (before, bytes) = span.map_or((0, 0), |(below, above)| (below, above.saturating_add(itemsize)));
    let layout = layout.map(|mut layout| {
        let size = (itemsize as i64).max(1);
        layout.strides.iter_mut().for_each(|s| *s /= size);
        layout
    });
    Ok((Array { address, bytes, before, writable: flags & WRITEABLE != 0, whole: layout.is_none(), dtype }, layout))
}

/// How many bytes before the first element the lowest one begins, and after it the highest; `None` for an empty array.
fn span(axes: impl Iterator<Item = (isize, isize)>) -> Option<(u64, u64)> {
    let (mut below, mut above) = (0u64, 0u64);
    for (extent, stride) in axes {
        if extent == 0 {
            return None;
        }
        let far = (extent.unsigned_abs() as u64 - 1).saturating_mul(stride.unsigned_abs() as u64);
        let side = if stride < 0 { &mut below } else { &mut above };
        *side = side.saturating_add(far);
    }
    Some((below, above))
}

/// The number of an element type, and its size in the lowest 16 bits.
fn known_type(py: Python<'_>, descriptor: *mut ffi::PyObject, name_of: &Bound<'_, PyAny>) -> PyResult<u64> {
    let address = descriptor as usize;
    if let Some(&number) = TYPES.lock().unwrap_or_else(PoisonError::into_inner).by_descriptor.get(&address) {
        return Ok(number);
    }
    // SAFETY: an array owns a reference to its descriptor.
    let descriptor = unsafe { Bound::from_borrowed_ptr(py, descriptor) };
    let (name, size): (String, u64) = name_of.call1((&descriptor,))?.extract()?;
    let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    let number = types.number(&name) << 16 | size.min(0xffff);
    types.by_descriptor.insert(address, number);
    types.alive.push(descriptor.unbind());
    Ok(number)
}

/// `(address, (bytes before it, bytes from it on), writable, dtype name, layout, stream, owner)`: the layout `(shape, strides in
/// elements)` where it is not row-major without gaps, the stream of an array that is on a CUDA device, and the owner of the memory.
pub type Described = (u64, (u64, u64), bool, String, Option<(Vec<i64>, Vec<i64>)>, Option<u64>, Py<PyAny>);

impl Collected {
    /// An array other than NumPy's.
    pub fn described(&mut self, found: Described, parameter: &Bound<'_, PyString>) {
        let (address, (before, bytes), writable, name, layout, stream, owner) = found;
        self.alive.push(owner);
        if let Some(stream) = stream {
            self.on_device.get_or_insert_with(|| (parameter.clone().unbind(), stream));
        }
        let dtype = TYPES.lock().unwrap_or_else(PoisonError::into_inner).number(&name);
        self.array(Array { address, bytes, before, writable, whole: layout.is_none(), dtype });
        if let Some((shape, strides)) = layout {
            self.layouts.push((parameter.clone().unbind(), Layout { shape, strides }));
        }
    }

    /// With room for the arguments of a number of parameters.
    pub fn with_room(parameters: usize) -> Collected {
        let words = Vec::with_capacity(parameters + 8);
        Collected {
            words,
            slots: Vec::with_capacity(parameters),
            arrays: Vec::with_capacity(parameters),
            ..Collected::default()
        }
    }

    /// An array that was looked at.
    pub fn look(&mut self, (array, layout): (Array, Option<Layout>), parameter: &Py<PyString>, py: Python<'_>) {
        self.array(array);
        if let Some(layout) = layout {
            self.layouts.push((parameter.clone_ref(py), layout));
        }
    }

    pub fn array(&mut self, array: Array) {
        let aligned = u64::from(array.address.is_multiple_of(ALIGNMENT));
        self.words.push(tag::ARRAY | aligned << 8 | array.dtype << 16);
        self.slots.push(array.address);
        self.arrays.push(Some(array));
    }

    fn scalar(&mut self, word: u64, bits: u64) {
        self.words.push(word);
        self.slots.push(bits);
        self.arrays.push(None);
    }

    /// A number for a run-time parameter; false when it is something else.
    pub fn number(&mut self, value: &Bound<'_, PyAny>, role: Role) -> PyResult<bool> {
        if value.is_instance_of::<PyBool>() {
            self.scalar(tag::BOOL, value.is_truthy()?.into());
        } else if value.is_instance_of::<PyInt>() {
            let (bits, width) = integer(value)?;
            let special = role == Role::Runtime;
            if special && bits == 1 {
                self.words.push(tag::ONE);
                return Ok(true);
            }
            let divisible = u64::from(special && bits.is_multiple_of(ALIGNMENT));
            self.scalar(tag::INT | divisible << 8 | width << 16, bits);
        } else if let Ok(float) = value.cast::<PyFloat>() {
            self.scalar(tag::FLOAT, (float.value() as f32).to_bits().into());
        } else if value.is_none() {
            self.words.push(tag::NONE);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The value of a constant, so that equal ones give equal words. A value that is neither a number, a text nor a tuple of
    /// them is told apart by its identity; `alive` keeps it.
    pub fn constant(&mut self, value: &Bound<'_, PyAny>, alive: &mut Vec<Py<PyAny>>) -> PyResult<()> {
        if value.is_none() {
            self.words.push(tag::NONE);
        } else if value.is_instance_of::<PyBool>() {
            self.words.extend([tag::BOOL, value.is_truthy()?.into()]);
        } else if value.is_instance_of::<PyInt>() {
            match value.extract::<i64>() {
                Ok(i) => self.words.extend([tag::INT, i as u64]),
                Err(_) => self.text(tag::BIG, &value.str()?.to_string()),
            }
        } else if let Ok(float) = value.cast::<PyFloat>() {
            self.words.extend([tag::FLOAT, float.value().to_bits()]);
        } else if let Ok(text) = value.cast::<PyString>() {
            self.text(tag::TEXT, text.to_str()?);
        } else if let Ok(items) = value.cast::<PyTuple>() {
            self.words.extend([tag::TUPLE, items.len() as u64, items.get_type().as_ptr() as u64]);
            for item in items {
                self.constant(&item, alive)?;
            }
        } else if let Ok(items) = value.cast::<PyList>() {
            self.words.extend([tag::TUPLE, items.len() as u64, 1]);
            for item in items {
                self.constant(&item, alive)?;
            }
        } else if let Some(number) = scalar_item(value)? {
            self.constant(&number, alive)?;
        } else {
            self.words.extend([tag::OBJECT, value.as_ptr() as u64]);
            alive.push(value.clone().unbind());
        }
        Ok(())
    }

    /// A text among the words.
    pub fn name(&mut self, text: &str) {
        self.text(tag::TEXT, text);
    }

    fn text(&mut self, tag: u64, text: &str) {
        self.words.extend([tag, text.len() as u64]);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_le_bytes(word));
        }
    }
}

/// The number in one of NumPy's scalars, or in an array without axes.
fn scalar_item<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Ok(shape), Ok(item)) = (value.getattr("shape"), value.getattr("item")) else { return Ok(None) };
    if !shape.eq(PyTuple::empty(value.py()))? {
        return Ok(None);
    }
    item.call0().map(|number| (!number.is(value)).then_some(number))
}

/// An integer's bits, and its type: 0 for i32, 1 for i64, 2 for u64.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
    if let Ok(i) = value.extract::<i64>() {
        return Ok((i as u64, u64::from(i32::try_from(i).is_err())));
    }
    match value.extract::<u64>() {
        Ok(u) => Ok((u, 2)),
        Err(_) => Err(PyOverflowError::new_err(format!("{value} does not fit 64 bits"))),
    }
}

/// The kind of a run-time argument, for the Python side that compiles the specialisation: ("ptr", dtype, divisible),
/// ("int", bits, signed, divisible), ("one",), ("float",), ("bool",) or ("none",).
pub fn spelled<'py>(py: Python<'py>, word: u64) -> PyResult<Bound<'py, PyTuple>> {
    let divisible = if word >> 8 & 1 == 1 { ALIGNMENT } else { 1 };
    let rest = word >> 16;
    match word & 0xff {
        tag::ARRAY => ("ptr", type_name(rest), divisible).into_pyobject(py),
        tag::INT => ("int", if rest == 0 { 32 } else { 64 }, rest != 2, divisible).into_pyobject(py),
        tag::ONE => ("one",).into_pyobject(py),
        tag::FLOAT => ("float",).into_pyobject(py),
        tag::BOOL => ("bool",).into_pyobject(py),
        tag::NONE => ("none",).into_pyobject(py),
        _ => Err(PyTypeError::new_err("an argument of an unknown kind")),
    }
}
