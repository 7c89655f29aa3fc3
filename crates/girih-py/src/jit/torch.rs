//! Tensors of PyTorch as arguments of a kernel, without running Python.
//!
//! In: an argument of PyTorch's own classes. Out: where it is and how it lies, from the functions that PyTorch offers C for this
//! (DLPack's exchange interface, since PyTorch 2.10). Anything out of the ordinary is left to Python, which describes it or says
//! why it cannot be passed (`girih.kernel`): other classes and devices, tensors that PyTorch negates when they are read, memory
//! that begins between two elements, and releases of PyTorch without that interface.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::key::{Array, type_number};
use super::layout::Layout;
use crate::arrays::Tensor;

const CAPSULE: &CStr = c"dlpack_exchange_api";
/// The version of the interface whose functions stand as below.
const VERSION: u32 = 1;
const CPU: i32 = 1;
/// DLPack's codes of floats.
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;

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
    /// `Tensor.is_neg`, of a tensor and nothing.
    is_neg: ffi::PyCFunction,
    _alive: Vec<Py<PyAny>>,
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
        let Some(is_neg) = without_arguments(&method) else { return Ok(None) };
        let classes = [tensor.as_ptr() as usize, parameter.as_ptr() as usize];
        let alive = vec![tensor.unbind(), parameter.unbind(), capsule.unbind()];
        Ok(describe.map(|describe| Torch { classes, describe, is_neg, _alive: alive }))
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
        let rank = usize::try_from(found.ndim).ok()?;
        if found.device() != CPU || found.strides.is_null() && rank > 0 {
            return None;
        }
        let (shape, strides) = match rank {
            0 => (&[][..], &[][..]),
            // SAFETY: both have an element for each axis while the tensor lives.
            _ => unsafe {
                (std::slice::from_raw_parts(found.shape, rank), std::slice::from_raw_parts(found.strides, rank))
            },
        };
        let address = (found.data as u64).wrapping_add(found.byte_offset);
        let bytes = spanned(shape, strides, size)?;
        let odd = bytes > 0 && (address == 0 || !address.is_multiple_of(size));
        // Only floats come from complex numbers, whose conjugates PyTorch negates when they are read.
        let negated = || {
            // SAFETY: the method is that of the tensor's class and takes nothing; it gives an object or sets an exception.
            let found = unsafe {
                Bound::from_owned_ptr_or_err(value.py(), (self.is_neg)(value.as_ptr(), std::ptr::null_mut()))
            };
            found.ok()?.is_truthy().ok()
        };
        if odd || matches!(found.code, FLOAT | BFLOAT) && negated()? {
            return None;
        }
        let layout = (!row_major(shape, strides)).then(|| Layout { shape: shape.to_vec(), strides: strides.to_vec() });
        Some((Array { address, bytes, before: 0, writable: true, whole: layout.is_none(), dtype }, layout))
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

/// The argument, if it is a tensor of PyTorch that can be described here.
pub fn described(value: &Bound<'_, PyAny>) -> Option<(Array, Option<Layout>)> {
    let class = value.get_type_ptr() as usize;
    let torch = TORCH.get()?.as_ref()?;
    torch.classes.contains(&class).then(|| torch.describe(value)).flatten()
}

/// The number of the element type of an argument that is a tensor of PyTorch.
pub fn element(value: &Bound<'_, PyAny>) -> Option<u64> {
    let torch = TORCH.get()?.as_ref()?;
    let found = torch.classes.contains(&(value.get_type_ptr() as usize)).then(|| torch.raw(value)).flatten()?;
    type_number(found.code, found.bits).map(|(number, _)| number)
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

fn row_major(shape: &[i64], strides: &[i64]) -> bool {
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
