//! Tensors of the evaluator, and views of them.

use std::sync::Arc;

use crate::base::budget::elements;
use crate::graph::Elem;
use crate::num::{DType, convert};

/// Elements in row-major order. Floats of 32 and 64 bits are held as such, everything else as bits.
#[derive(Clone, Debug)]
pub enum Data {
    F32(Arc<Vec<f32>>),
    F64(Arc<Vec<f64>>),
    Bits(Arc<Vec<u64>>),
}

impl Data {
    pub fn len(&self) -> usize {
        match self {
            Data::F32(v) => v.len(),
            Data::F64(v) => v.len(),
            Data::Bits(v) => v.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns true if nothing else holds these elements.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Data::F32(v) => Arc::strong_count(v) == 1,
            Data::F64(v) => Arc::strong_count(v) == 1,
            Data::Bits(v) => Arc::strong_count(v) == 1,
        }
    }
    /// The bits of an element; 0 outside.
    pub fn bits(&self, i: usize) -> u64 {
        match self {
            Data::F32(v) => v.get(i).map_or(0, |x| x.to_bits().into()),
            Data::F64(v) => v.get(i).map_or(0, |x| x.to_bits()),
            Data::Bits(v) => v.get(i).copied().unwrap_or(0),
        }
    }
    pub(super) fn of_bits(dtype: DType, bits: Vec<u64>) -> Data {
        match dtype {
            DType::F32 => Data::F32(Arc::new(bits.into_iter().map(|b| f32::from_bits(b as u32)).collect())),
            DType::F64 => Data::F64(Arc::new(bits.into_iter().map(f64::from_bits).collect())),
            _ => Data::Bits(Arc::new(bits)),
        }
    }
}

/// A tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub elem: Elem,
    pub shape: Vec<u64>,
    data: Data,
}

fn count(shape: &[u64]) -> Option<usize> {
    elements(shape).and_then(|n| usize::try_from(n).ok())
}

impl Tensor {
    /// From the bits of each element in row-major order; `None` when their number is not that of the shape.
    pub fn from_bits(elem: Elem, shape: &[u64], bits: Vec<u64>) -> Option<Tensor> {
        let mask = elem.dtype.mask();
        (count(shape)? == bits.len()).then(|| {
            let bits = bits.into_iter().map(|b| b & mask).collect();
            Tensor { elem, shape: shape.to_vec(), data: Data::of_bits(elem.dtype, bits) }
        })
    }

    pub fn from_f32(shape: &[u64], data: Vec<f32>) -> Option<Tensor> {
        (count(shape)? == data.len()).then(|| Tensor {
            elem: Elem::F32,
            shape: shape.to_vec(),
            data: Data::F32(Arc::new(data)),
        })
    }

    pub fn from_f64(shape: &[u64], data: Vec<f64>) -> Option<Tensor> {
        (count(shape)? == data.len()).then(|| Tensor {
            elem: Elem::F64,
            shape: shape.to_vec(),
            data: Data::F64(Arc::new(data)),
        })
    }

    /// From memory: row-major, little-endian, bool one byte, 4-bit types two to a byte. `None` when there are too few
    /// bytes.
    pub fn from_bytes(elem: Elem, shape: &[u64], bytes: &[u8]) -> Option<Tensor> {
        let n = count(shape)?;
        if (bytes.len() as u64) < bytes_of(elem, n as u64)? {
            return None;
        }
        let data = match elem.dtype {
            DType::F32 => {
                let one = |c: &[u8]| f32::from_le_bytes(c.try_into().unwrap_or_default());
                Data::F32(Arc::new(bytes.chunks_exact(4).take(n).map(one).collect()))
            }
            DType::F64 => {
                let one = |c: &[u8]| f64::from_le_bytes(c.try_into().unwrap_or_default());
                Data::F64(Arc::new(bytes.chunks_exact(8).take(n).map(one).collect()))
            }
            d if d.bits() == 4 => {
                let both = bytes.iter().flat_map(|b| [u64::from(b & 15), u64::from(b >> 4)]);
                Data::Bits(Arc::new(both.take(n).collect()))
            }
            d => {
                let one = |c: &[u8]| c.iter().rev().fold(0u64, |acc, b| acc << 8 | u64::from(*b)) & d.mask();
                Data::Bits(Arc::new(bytes.chunks_exact(d.bytes() as usize).take(n).map(one).collect()))
            }
        };
        Some(Tensor { elem, shape: shape.to_vec(), data })
    }

    /// As in memory; see [`Tensor::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; bytes_of(self.elem, self.len() as u64).unwrap_or(0) as usize];
        self.write_bytes(&mut out);
        out
    }

    /// The same into the caller's memory, as far as it reaches.
    pub fn write_bytes(&self, out: &mut [u8]) {
        match &self.data {
            Data::F32(v) => out.chunks_exact_mut(4).zip(&v[..]).for_each(|(o, x)| o.copy_from_slice(&x.to_le_bytes())),
            Data::F64(v) => out.chunks_exact_mut(8).zip(&v[..]).for_each(|(o, x)| o.copy_from_slice(&x.to_le_bytes())),
            Data::Bits(v) if self.elem.dtype.bits() == 4 => {
                let two = |c: &[u64]| c.iter().rev().fold(0, |acc, b| acc << 4 | *b as u8 & 15);
                out.iter_mut().zip(v.chunks(2)).for_each(|(o, c)| *o = two(c));
            }
            Data::Bits(v) => {
                let width = self.elem.dtype.bytes() as usize;
                let one = |(o, x): (&mut [u8], &u64)| o.iter_mut().zip(x.to_le_bytes()).for_each(|(o, b)| *o = b);
                out.chunks_exact_mut(width).zip(&v[..]).for_each(one);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.data.len()
    }
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    pub fn data(&self) -> &Data {
        &self.data
    }
    /// The bits of element `i`, counted in row-major order.
    pub fn bits(&self, i: usize) -> u64 {
        self.data.bits(i)
    }
    /// The value of element `i`; 64-bit integers may round.
    pub fn number(&self, i: usize) -> f64 {
        crate::graph::build::number_of(self.elem, self.bits(i))
    }
    pub fn numbers(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.number(i)).collect()
    }
    /// Returns true if both have one type, one shape and the same bits.
    pub fn same(&self, other: &Tensor) -> bool {
        self.elem == other.elem
            && self.shape == other.shape
            && self.len() == other.len()
            && (0..self.len()).all(|i| self.bits(i) == other.bits(i))
    }

    pub(super) fn of(elem: Elem, shape: Vec<u64>, data: Data) -> Tensor {
        Tensor { elem, shape, data }
    }

    /// Every float made an f64.
    pub(super) fn widened(&self) -> Tensor {
        if !self.elem.is_float() || self.elem == Elem::F64 {
            return self.clone();
        }
        let numbers: Vec<f64> = match &self.data {
            Data::F32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            _ => (0..self.len()).map(|i| convert::to_f64(self.elem.dtype, self.bits(i))).collect(),
        };
        Tensor { elem: Elem::F64, shape: self.shape.clone(), data: Data::F64(Arc::new(numbers)) }
    }
}

/// Bytes of `count` elements in memory.
pub fn bytes_of(elem: Elem, count: u64) -> Option<u64> {
    if elem.dtype.bits() == 4 { Some(count.div_ceil(2)) } else { count.checked_mul(elem.dtype.bytes()) }
}

/// A tensor read with strides: element `[i, j]` is at `offset + i*strides[0] + j*strides[1]` of the data.
///
/// Invariant: every position within the shape has its place inside the data.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub elem: Elem,
    pub data: Data,
    pub offset: i64,
    pub strides: Vec<i64>,
    pub shape: Vec<usize>,
}

impl View {
    pub fn whole(elem: Elem, shape: Vec<usize>, data: Data) -> View {
        View { elem, data, offset: 0, strides: row_major(&shape), shape }
    }

    /// One scalar, of any shape.
    pub fn scalar(elem: Elem, bits: u64, shape: &[usize]) -> View {
        let data = Data::of_bits(elem.dtype, vec![bits]);
        View { elem, data, offset: 0, strides: vec![0; shape.len()], shape: shape.to_vec() }
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }
    pub fn is_whole(&self) -> bool {
        self.offset == 0 && self.data.len() == self.len() && self.strides == row_major(&self.shape)
    }
    /// The data's place of a position.
    pub fn at(&self, pos: &[usize]) -> usize {
        let step = |at: i64, (s, p): (&i64, &usize)| at + s * *p as i64;
        self.strides.iter().zip(pos).fold(self.offset, step) as usize
    }
}

/// Strides of row-major order.
pub(super) fn row_major(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1i64;
    for (s, &n) in strides.iter_mut().zip(shape).rev() {
        *s = step;
        step = step.saturating_mul(n.max(1) as i64);
    }
    strides
}

/// Walks a shape in row-major order, row by row, through several views of it at once. Axes that all views traverse with
/// one stride are joined, so rows are long.
pub(super) struct Rows {
    extents: Vec<usize>,
    /// Strides of each view along the outer axes.
    strides: Vec<Vec<i64>>,
    pos: Vec<usize>,
    starts: Vec<i64>,
    left: usize,
    /// The length of a row, and each view's step along it.
    pub len: usize,
    pub steps: Vec<i64>,
}

impl Rows {
    pub fn new(shape: &[usize], views: &[&View]) -> Rows {
        let all: Vec<(i64, &[i64])> = views.iter().map(|v| (v.offset, &v.strides[..])).collect();
        Rows::of(shape, &all)
    }

    /// The same from offsets and strides.
    pub fn of(shape: &[usize], views: &[(i64, &[i64])]) -> Rows {
        let (mut extents, mut strides): (Vec<usize>, Vec<Vec<i64>>) = (vec![], vec![vec![]; views.len()]);
        let total: usize = shape.iter().product();
        for (d, &n) in shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let stride = |v: usize| views[v].1.get(d).copied().unwrap_or(0);
            let joins = strides.iter().enumerate().all(|(v, s)| s.last() == Some(&stride(v).wrapping_mul(n as i64)));
            match extents.last_mut() {
                Some(last) if joins => {
                    *last *= n;
                    strides.iter_mut().enumerate().for_each(|(v, s)| {
                        s.pop();
                        s.push(stride(v));
                    });
                }
                _ => {
                    extents.push(n);
                    strides.iter_mut().enumerate().for_each(|(v, s)| s.push(stride(v)));
                }
            }
        }
        let len = extents.pop().unwrap_or(1);
        let steps = strides.iter_mut().map(|s| s.pop().unwrap_or(0)).collect();
        let rows = if total == 0 { 0 } else { total / len };
        let starts = views.iter().map(|v| v.0).collect();
        Rows { pos: vec![0; extents.len()], extents, strides, starts, left: rows, len, steps }
    }

    /// Calls `f` with the start of each view's row.
    pub fn each(mut self, mut f: impl FnMut(&[i64])) {
        while self.left > 0 {
            f(&self.starts);
            self.left -= 1;
            for d in (0..self.extents.len()).rev() {
                self.pos[d] += 1;
                let wraps = self.pos[d] == self.extents[d];
                let back = if wraps { self.extents[d] as i64 - 1 } else { 0 };
                for (start, s) in self.starts.iter_mut().zip(&self.strides) {
                    *start += if wraps { -s[d] * back } else { s[d] };
                }
                if !wraps {
                    break;
                }
                self.pos[d] = 0;
            }
        }
    }
}

impl Rows {
    /// Calls `f` with each view's place at every position.
    pub fn each_elements(self, mut f: impl FnMut(&[i64])) {
        let (n, steps) = (self.len, self.steps.clone());
        let mut at = vec![0; steps.len()];
        self.each(|starts| {
            at.copy_from_slice(starts);
            for _ in 0..n {
                f(&at);
                at.iter_mut().zip(&steps).for_each(|(a, s)| *a += s);
            }
        });
    }
    /// The same for one view.
    pub fn each_element(self, mut f: impl FnMut(i64)) {
        self.each_elements(|at| f(at.first().copied().unwrap_or(0)));
    }
}

/// Copies a row; places outside the data, which the view does not contain, are left as they are.
pub(super) fn read_row<T: Copy>(data: &[T], start: i64, step: i64, out: &mut [T]) {
    match step {
        1 => {
            if let Some(row) = data.get(start as usize..).and_then(|d| d.get(..out.len())) {
                out.copy_from_slice(row);
            }
        }
        0 => {
            if let Some(x) = data.get(start as usize) {
                out.fill(*x);
            }
        }
        _ => {
            let mut at = start;
            for o in out {
                if let Some(x) = data.get(at as usize) {
                    *o = *x;
                }
                at += step;
            }
        }
    }
}

/// A row as bits.
pub(super) fn read_bits(data: &Data, start: i64, step: i64, out: &mut [u64]) {
    let mut at = start;
    match data {
        Data::Bits(v) => read_row(v, start, step, out),
        Data::F32(v) => {
            for o in out {
                *o = v.get(at as usize).map_or(0, |x| x.to_bits().into());
                at += step;
            }
        }
        Data::F64(v) => {
            for o in out {
                *o = v.get(at as usize).map_or(0, |x| x.to_bits());
                at += step;
            }
        }
    }
}
