//! Tensors of PyTorch as arguments of a kernel, without running Python.
//!
//! In: an argument of PyTorch's own classes. Out: where it is and how it lies, from the functions that PyTorch offers C for this
//! (DLPack's exchange interface, since PyTorch 2.10). Anything out of the ordinary is left to Python, which describes it or says
//! why it cannot be passed (`girih.kernel`): other classes and devices, tensors that PyTorch negates when they are read, memory
//! that begins between two elements, and releases of PyTorch without that interface.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

use girih_compiler::graph::Elem;
use girih_compiler::num::DType;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::key::{Array, type_number};
use super::layout::Layout;
use crate::arrays::Tensor;

const CAPSULE: &CStr = c"dlpack_exchange_api";
/// The version of the interface whose functions stand as below.
const VERSION: u32 = 1;
/// DLPack's number of the host.
pub const CPU: i32 = 1;
/// DLPack's codes of element types.
const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;

/// DLPack's table of functions.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    older: *const c_void,
    allocate: *const c_void,
    export: *const c_void,
    import: *const c_void,
    /// Describes a tensor, which must stay alive; 0, or -1 with an exception.
    describe: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    stream: *const c_void,
}

/// PyTorch's classes of tensors and their function, once a tensor was met.
pub struct Torch {
    classes: [usize; 2],
    describe: unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int,
    negation: Negation,
    _alive: Vec<Py<PyAny>>,
}

/// How PyTorch is asked whether it negates a tensor when that is read.
enum Negation {
    /// `Tensor.is_neg`, of a tensor and nothing. It lets go of Python's lock, and programs may intercept it.
    Method(ffi::PyCFunction),
    /// The function behind it, `bool is_neg(const Tensor&)`, and where in a Python object the `Tensor` is, in bytes.
    Function(unsafe extern "C" fn(*const c_void) -> u8, usize),
}

static TORCH: OnceLock<Option<Torch>> = OnceLock::new();

impl Torch {
    /// PyTorch, if it has the interface and `value` is one of its tensors.
    fn of(value: &Bound<'_, PyAny>) -> PyResult<Option<Torch>> {
        let torch = value.py().import("torch")?;
        let tensor = torch.getattr("Tensor")?;
        let parameter = torch.getattr("nn")?.getattr("Parameter")?;
        let Ok(capsule) = tensor.getattr("__dlpack_c_exchange_api__") else { return Ok(None) };
        if !capsule.is_instance_of::<PyCapsule>() {
            return Ok(None);
        }
        // SAFETY: it is a capsule, whose name the call checks.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE.as_ptr()) }.cast::<Exchange>();
        if table.is_null() {
            drop(PyErr::take(value.py()));
            return Ok(None);
        }
        // SAFETY: a capsule of that name holds the table, which stays for ever; its version stands first in every version.
        let describe = unsafe { ((*table).major == VERSION).then(|| (*table).describe) }.flatten();
        let method = value.getattr("is_neg")?;
        let Some(method) = without_arguments(&method) else { return Ok(None) };
        let negation = Negation::function(value.py(), &tensor).ok().flatten().unwrap_or(Negation::Method(method));
        let classes = [tensor.as_ptr() as usize, parameter.as_ptr() as usize];
        let alive = vec![tensor.unbind(), parameter.unbind(), capsule.unbind()];
        Ok(describe.map(|describe| Torch { classes, describe, negation, _alive: alive }))
    }

    /// DLPack's description of a tensor of these classes.
    fn raw(&self, value: &Bound<'_, PyAny>) -> Option<Tensor> {
        let mut found = Tensor::EMPTY;
        // SAFETY: the object is a tensor, which the caller keeps alive; the function fills the place or sets an exception.
        if unsafe { (self.describe)(value.as_ptr().cast(), &raw mut found) } != 0 {
            drop(PyErr::take(value.py()));
            return None;
        }
        Some(found)
    }

    /// The array of a tensor of these classes, and its layout unless it is row-major without gaps.
    fn describe(&self, value: &Bound<'_, PyAny>) -> Option<(Array, Option<Layout>)> {
        let found = self.raw(value)?;
        let (dtype, size) = type_number(found.code, found.bits).filter(|_| found.lanes == 1)?;
        let rank = found.ndim;
        if found.device().0 != CPU || found.strides.is_null() && rank > 0 {
            return None;
        }
        // SAFETY: the tensor lives, and has strides if it has axes.
        let (shape, strides) = unsafe { found.layout() };
        let address = found.address();
        let bytes = spanned(shape, strides, size)?;
        let odd = bytes > 0 && (address == 0 || !address.is_multiple_of(size));
        if odd || is_signed(&found) && self.negation.of(value)? {
            return None;
        }
        let layout = (!row_major(shape, strides)).then(|| Layout { shape: shape.to_vec(), strides: strides.to_vec() });
        Some((Array { address, bytes, before: 0, writable: true, whole: layout.is_none(), dtype }, layout))
    }
}

impl Negation {
    /// PyTorch's function, where this release of PyTorch has it and it gives the right answers for a tensor and its negation.
    fn function(py: Python<'_>, class: &Bound<'_, PyAny>) -> PyResult<Option<Negation>> {
        type Probes<'py> = (usize, Bound<'py, PyAny>, Bound<'py, PyAny>);
        let (address, plain, negated): Probes<'_> = py.import("girih._tensors")?.call_method0("negation")?.extract()?;
        let exact = |tensor: &Bound<'_, PyAny>| tensor.get_type().is(class);
        if address == 0 || !exact(&plain) || !exact(&negated) {
            return Ok(None);
        }
        let size: usize = class.getattr("__basicsize__")?.extract()?;
        let (first, second): (usize, usize) =
            (plain.getattr("_cdata")?.extract()?, negated.getattr("_cdata")?.extract()?);
        // A `Tensor` is one pointer, whose value `_cdata` tells.
        let holds = |tensor: &Bound<'_, PyAny>, at: usize, wanted: usize| {
            // SAFETY: the object is as large as its class says, and its words are aligned.
            unsafe { tensor.as_ptr().byte_add(at).cast::<usize>().read() == wanted }
        };
        let word = size_of::<usize>();
        let mut places = (size_of::<ffi::PyObject>()..=size.saturating_sub(word)).step_by(word);
        let Some(at) = places.find(|&at| holds(&plain, at, first) && holds(&negated, at, second)) else {
            return Ok(None);
        };
        // SAFETY: the address is that of the function of this name in PyTorch's library, which stays loaded; it takes one
        // pointer and returns a bool, for which C++ and C have one convention.
        let function = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*const c_void) -> u8>(address) };
        let found = Negation::Function(function, at);
        let right = found.of(&plain) == Some(false) && found.of(&negated) == Some(true);
        Ok(right.then_some(found))
    }

    /// Returns true if PyTorch negates a tensor of its own classes when that is read; `None` if it does not say.
    fn of(&self, value: &Bound<'_, PyAny>) -> Option<bool> {
        match *self {
            // SAFETY: objects of these classes have a `Tensor` there, which lives as long as they do.
            Negation::Function(function, at) => Some(unsafe { function(value.as_ptr().byte_add(at).cast()) } != 0),
            Negation::Method(method) => {
                // SAFETY: the method is that of the tensor's class and takes nothing; it gives an object or sets an exception.
                let found =
                    unsafe { Bound::from_owned_ptr_or_err(value.py(), method(value.as_ptr(), std::ptr::null_mut())) };
                found.ok()?.is_truthy().ok()
            }
        }
    }
}

/// The C function of a method without arguments: calling it costs a tenth of a call through Python.
fn without_arguments(method: &Bound<'_, PyAny>) -> Option<ffi::PyCFunction> {
    // SAFETY: the flags and the function are asked for of a function in C only.
    unsafe {
        let is_c = ffi::PyCFunction_Check(method.as_ptr()) != 0;
        (is_c && ffi::PyCFunction_GetFlags(method.as_ptr()) == ffi::METH_NOARGS)
            .then(|| ffi::PyCFunction_GetFunction(method.as_ptr()))
            .flatten()
    }
}

/// The description of a value of PyTorch's own classes of tensors; `None` for other values, and for tensors that PyTorch negates
/// when they are read. It holds while the tensor lives and is not changed; its strides are there if it has axes.
pub fn plain(value: &Bound<'_, PyAny>) -> Option<Tensor> {
    let class = value.get_type_ptr() as usize;
    let torch = TORCH.get()?.as_ref().filter(|torch| torch.classes.contains(&class))?;
    let found = torch.raw(value)?;
    let laid = found.ndim == 0 || !found.strides.is_null();
    let negated = is_signed(&found) && torch.negation.of(value)?;
    (laid && !negated).then_some(found)
}

/// The bytes of a tensor's storage from its first element on, counted from the storage's beginning. `size` is an element's.
pub fn room(value: &Bound<'_, PyAny>, size: u64) -> Option<Range<u64>> {
    let py = value.py();
    let offset: u64 = value.call_method0(pyo3::intern!(py, "storage_offset")).ok()?.extract().ok()?;
    let storage = value.call_method0(pyo3::intern!(py, "untyped_storage")).ok()?;
    let held: u64 = storage.call_method0(pyo3::intern!(py, "nbytes")).ok()?.extract().ok()?;
    Some(offset.checked_mul(size)?..held)
}

/// DLPack's code and bits of an element type that PyTorch has, too, and stores in the same bytes.
pub fn type_of(elem: Elem) -> Option<(u8, u8)> {
    let code = match elem.dtype {
        _ if elem.text || elem.two_bits => return None,
        DType::I1 => return Some((BOOL, 8)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 if elem.unsigned => UNSIGNED,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => SIGNED,
        DType::F16 | DType::F32 | DType::F64 => FLOAT,
        DType::BF16 => BFLOAT,
        _ => return None,
    };
    Some((code, u8::try_from(elem.dtype.bits()).ok()?))
}

/// Returns true if elements may be parts of complex numbers, whose conjugates PyTorch negates when they are read.
fn is_signed(tensor: &Tensor) -> bool {
    matches!(tensor.code, FLOAT | BFLOAT)
}

/// The argument, if it is a tensor of PyTorch that can be described here.
pub fn described(value: &Bound<'_, PyAny>) -> Option<(Array, Option<Layout>)> {
    let class = value.get_type_ptr() as usize;
    let torch = TORCH.get()?.as_ref()?;
    torch.classes.contains(&class).then(|| torch.describe(value)).flatten()
}

/// Looks for PyTorch's interface, the first time that a tensor is met.
pub fn meet(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let class = value.get_type();
    if TORCH.get().is_none() && class.name()? == "Tensor" && class.module()? == "torch" {
        let found = Torch::of(value).unwrap_or_default();
        let _ = TORCH.set(found);
    }
    Ok(())
}

/// The bytes from the first element to the end of the last; `None` where they are too many or lie before the first.
fn spanned(shape: &[i64], strides: &[i64], size: u64) -> Option<u64> {
    let mut last = 0u64;
    for (&extent, &stride) in shape.iter().zip(strides) {
        let far = u64::try_from(extent).ok()?.checked_sub(1);
        let Some(far) = far else { return Some(0) };
        last = last.checked_add(far.checked_mul(u64::try_from(stride).ok()?)?)?;
    }
    last.checked_add(1)?.checked_mul(size)
}

/// Returns true if a tensor is row-major without gaps.
pub fn row_major(shape: &[i64], strides: &[i64]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1i64;
    shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || stride == expected;
        expected = expected.saturating_mul(extent);
        fits
    })
}
