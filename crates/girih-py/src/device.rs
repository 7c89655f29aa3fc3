//! Memory of a CUDA device, and the contents of an array's DLPack capsule.
//!
//! In: sizes and addresses. Out: memory that is freed with its object, copies between the device and the host.

use girih::cuda::device::{self, Device};
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use crate::arrays;

fn raised(error: girih::cuda::Error) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Memory of the device, of any content, freed with the object.
#[pyclass(frozen, module = "girih._girih")]
pub struct DeviceMemory {
    memory: device::Memory,
}

#[pymethods]
impl DeviceMemory {
    #[new]
    fn new(py: Python<'_>, bytes: u64) -> PyResult<DeviceMemory> {
        let device = Device::get().map_err(raised)?;
        let memory = py.detach(|| device.allocate(bytes)).map_err(|e| PyMemoryError::new_err(e.to_string()))?;
        Ok(DeviceMemory { memory })
    }

    /// Where it begins; 0 of no bytes.
    #[getter]
    fn address(&self) -> u64 {
        self.memory.address
    }

    /// Copies all of it to an address of the host, once a stream has come so far.
    fn read(&self, py: Python<'_>, to: u64, stream: u64) -> PyResult<()> {
        let device = Device::get().map_err(raised)?;
        py.detach(|| {
            device.synchronize(stream as usize)?;
            if self.memory.bytes == 0 {
                return Ok(());
            }
            let to = std::ptr::with_exposed_provenance_mut(to as usize);
            // SAFETY: the caller holds an array of as many bytes (`girih.device`).
            self.memory.read(unsafe { std::slice::from_raw_parts_mut(to, self.memory.bytes as usize) })
        })
        .map_err(raised)
    }
}

/// Waits for the work queued on a stream of the device.
#[pyfunction]
pub fn synchronize(py: Python<'_>, stream: u64) -> PyResult<()> {
    let device = Device::get().map_err(raised)?;
    py.detach(|| device.synchronize(stream as usize)).map_err(raised)
}

/// Address, element type (DLPack's code and bits), shape, and strides in elements unless it is row-major without gaps.
type Described = (u64, (u8, u8), Vec<i64>, Option<Vec<i64>>);

/// The description of a DLPack capsule's array; the capsule stays the caller's.
#[pyfunction]
pub fn described(capsule: &Bound<'_, PyAny>) -> PyResult<Described> {
    let tensor = arrays::untaken(capsule)?;
    // SAFETY: `untaken` gives a DLPack tensor that nobody has taken, and the capsule outlives this call; shape and strides have
    // `ndim` numbers each.
    unsafe {
        let tensor = &*tensor;
        let count = usize::try_from(tensor.ndim).map_err(|_| PyBufferError::new_err("a rank below zero"))?;
        let numbers = |at: *const i64| match at.is_null() || count == 0 {
            true => vec![],
            false => std::slice::from_raw_parts(at, count).to_vec(),
        };
        if tensor.lanes != 1 || (count > 0 && tensor.shape.is_null()) {
            return Err(PyBufferError::new_err("the array's elements are vectors, or it says no shape"));
        }
        let address = (tensor.data.expose_provenance() as u64).wrapping_add(tensor.byte_offset);
        let strides = (!tensor.strides.is_null()).then(|| numbers(tensor.strides));
        Ok((address, (tensor.code, tensor.bits), numbers(tensor.shape), strides))
    }
}
