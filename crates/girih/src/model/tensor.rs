//! Inputs and outputs of models: arrays with their element type and shape.

use girih_compiler::graph::{Elem, Role};
use girih_compiler::num::DType;

use crate::error::{Error, Result};
use crate::memory::buffer::{Buffer, storage_bytes};

/// An array with memory of its own: elements in row-major order.
#[derive(Debug)]
pub struct Tensor {
    elem: Elem,
    buffer: Buffer,
}

impl Tensor {
    /// The elements of a buffer, whose integers are unsigned where `elem` says so.
    pub fn new(elem: Elem, buffer: Buffer) -> Result<Tensor> {
        if elem.dtype != buffer.dtype() {
            return Err(Error::argument(format!("a buffer of {} does not hold {elem}", buffer.dtype())));
        }
        Ok(Tensor { elem, buffer })
    }
    /// An array of zeros.
    pub fn zeroed(elem: Elem, shape: &[u64]) -> Result<Tensor> {
        Ok(Tensor { elem, buffer: Buffer::zeroed(elem.dtype, shape)? })
    }
    /// The elements of a slice, in a shape of as many.
    pub fn from_slice<T: crate::Element>(values: &[T], shape: &[u64]) -> Result<Tensor> {
        let mut buffer = Buffer::zeroed(T::DTYPE, shape)?;
        if buffer.elements() != values.len() as u64 {
            return Err(Error::argument(format!("{} elements do not make the shape {shape:?}", values.len())));
        }
        for (i, v) in values.iter().enumerate() {
            buffer.set(i as u64, v.bits());
        }
        Ok(Tensor { elem: Elem::of(T::DTYPE), buffer })
    }

    pub fn elem(&self) -> Elem {
        self.elem
    }
    pub fn dtype(&self) -> DType {
        self.elem.dtype
    }
    pub fn shape(&self) -> &[u64] {
        self.buffer.shape()
    }
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
    pub fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// The same memory by its address.
    pub fn raw(&self) -> RawTensor<'_> {
        RawTensor { elem: self.elem, shape: self.shape(), data: self.buffer.as_ptr() }
    }
}

/// Memory that holds an array in row-major order.
#[derive(Clone, Copy, Debug)]
pub struct RawTensor<'a> {
    pub elem: Elem,
    pub shape: &'a [u64],
    pub data: *const u8,
}

/// How many bytes an array takes; `None` when that is more than can be counted.
pub fn bytes_of(elem: Elem, shape: &[u64]) -> Option<u64> {
    let count = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
    storage_bytes(elem.dtype, count)
}

/// An input or output of a model, as it is described to people.
#[derive(Clone, PartialEq, Debug)]
pub struct Port {
    pub name: String,
    pub elem: Elem,
    /// Extents: numbers, and expressions over symbols.
    pub shape: Vec<Extent>,
    /// For inputs: given at every run, or once.
    pub role: Role,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    Known(u64),
    /// `batch`, `s0*2 + 1`.
    Symbolic(String),
}

impl std::fmt::Display for Port {
    /// `f32[batch, 128]`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[", self.elem)?;
        for (i, extent) in self.shape.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match extent {
                Extent::Known(n) => write!(f, "{comma}{n}")?,
                Extent::Symbolic(text) => write!(f, "{comma}{text}")?,
            }
        }
        write!(f, "]")
    }
}
