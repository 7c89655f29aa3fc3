//! Owned, typed, aligned arrays, and the values they can be filled with.

pub use girih_compiler::num::values::storage_bytes;
use girih_compiler::num::{DType, values};
pub use girih_compiler::spec::Fill;

use crate::error::{Error, Result};
use crate::memory::pages::Pages;

/// A row-major array of one element type. 4-bit elements lie two to a byte, the lower one first.
#[derive(Debug)]
pub struct Buffer {
    dtype: DType,
    shape: Vec<u64>,
    pages: Pages,
}

impl Buffer {
    /// An array of zeros.
    pub fn zeroed(dtype: DType, shape: &[u64]) -> Result<Buffer> {
        let elements = shape.iter().try_fold(1u64, |a, &b| a.checked_mul(b));
        let bytes = elements.and_then(|n| storage_bytes(dtype, n)).and_then(|n| usize::try_from(n).ok());
        let pages = bytes.and_then(Pages::zeroed).ok_or_else(|| {
            Error::argument(format!("there is no memory for a buffer of {dtype} with shape {shape:?}"))
        })?;
        Ok(Buffer { dtype, shape: shape.to_vec(), pages })
    }

    /// An array filled as `fill` says; random fills depend on `seed` and each element's place alone.
    pub fn filled(fill: Fill, dtype: DType, shape: &[u64], seed: u64) -> Result<Buffer> {
        if let Some(why) = fill.refusal(dtype) {
            return Err(Error::argument(why));
        }
        let mut buffer = Buffer::zeroed(dtype, shape)?;
        if fill != Fill::Zeros {
            (0..buffer.elements()).for_each(|i| buffer.set(i, fill.element(dtype, seed, i)));
        }
        Ok(buffer)
    }

    /// A one-dimensional copy of a slice.
    pub fn from_slice<T: Element>(values: &[T]) -> Result<Buffer> {
        let mut buffer = Buffer::zeroed(T::DTYPE, &[values.len() as u64])?;
        for (i, v) in values.iter().enumerate() {
            buffer.set(i as u64, v.bits());
        }
        Ok(buffer)
    }

    /// A copy with memory of its own.
    pub fn duplicate(&self) -> Result<Buffer> {
        let mut copy = Buffer::zeroed(self.dtype, &self.shape)?;
        copy.bytes_mut().copy_from_slice(self.bytes());
        Ok(copy)
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
    pub fn bytes(&self) -> &[u8] {
        self.pages.bytes()
    }
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pages.bytes_mut()
    }
    pub fn as_ptr(&self) -> *mut u8 {
        self.pages.as_ptr()
    }

    /// The same bits under another element type of the same width.
    pub fn reinterpret(mut self, dtype: DType) -> Result<Buffer> {
        if dtype.bytes() != self.dtype.bytes() || dtype.bits() < 8 {
            return Err(Error::argument(format!("elements of {} cannot hold bit patterns of {dtype}", self.dtype)));
        }
        self.dtype = dtype;
        Ok(self)
    }

    /// The bits of element `i`; 0 past the end.
    pub fn get(&self, i: u64) -> u64 {
        values::read(self.dtype, self.bytes(), i)
    }
    /// Sets the bits of element `i`; past the end nothing happens.
    pub fn set(&mut self, i: u64, bits: u64) {
        let dtype = self.dtype;
        values::write(dtype, self.bytes_mut(), i, bits);
    }

    /// The elements as a slice of the matching Rust type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype {
            return Err(Error::argument(format!("the buffer holds {}, not {}", self.dtype, T::DTYPE)));
        }
        Ok((0..self.elements()).map(|i| T::from_bits(self.get(i))).collect())
    }
}

/// Rust types that are element types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of arrays",
    label = "not an element type of arrays",
    note = "arrays hold i8 to i64, u8 to u64, F8E4M3, F8E5M2, f16, bf16, f32 and f64"
)]
pub trait Element: Copy + sealed::Sealed {
    const DTYPE: DType;
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($t:ty, $dtype:ident, $to:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            fn bits(self) -> u64 { let f: fn($t) -> u64 = $to; f(self) }
            fn from_bits(bits: u64) -> $t { let f: fn(u64) -> $t = $from; f(bits) }
        }
    )*};
}

elements! {
    i8, I8, |x| u64::from(x as u8), |b| b as i8;
    u8, I8, u64::from, |b| b as u8;
    half::f16, F16, |x| u64::from(x.to_bits()), |b| half::f16::from_bits(b as u16);
    half::bf16, BF16, |x| u64::from(x.to_bits()), |b| half::bf16::from_bits(b as u16);
    super::float8::F8E4M3, F8E4M3FN, |x| u64::from(x.to_bits()), |b| super::float8::F8E4M3::from_bits(b as u8);
    super::float8::F8E5M2, F8E5M2, |x| u64::from(x.to_bits()), |b| super::float8::F8E5M2::from_bits(b as u8);
    i16, I16, |x| u64::from(x as u16), |b| b as i16;
    u16, I16, u64::from, |b| b as u16;
    i32, I32, |x| u64::from(x as u32), |b| b as i32;
    u32, I32, u64::from, |b| b as u32;
    i64, I64, |x| x as u64, |b| b as i64;
    u64, I64, |x| x, |b| b;
    f32, F32, |x| u64::from(x.to_bits()), |b| f32::from_bits(b as u32);
    f64, F64, f64::to_bits, f64::from_bits;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_bit_elements_share_a_byte() {
        let mut b = Buffer::zeroed(DType::I4, &[5]).unwrap();
        assert_eq!(b.bytes().len(), 3);
        for i in 0..5 {
            b.set(i, i + 1);
        }
        assert_eq!(b.bytes(), [0x21, 0x43, 0x05]);
        assert_eq!((0..5).map(|i| b.get(i)).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn fills_are_what_they_say() {
        let ones = Buffer::filled(Fill::Ones, DType::F16, &[3], 0).unwrap();
        assert_eq!(ones.to_vec_bits(), [0x3c00; 3]);
        let arange = Buffer::filled(Fill::Arange, DType::I8, &[300], 0).unwrap();
        assert_eq!((arange.get(255), arange.get(256), arange.get(299)), (255, 0, 43));
        assert_eq!(
            Buffer::filled(Fill::Arange, DType::F32, &[3], 0).unwrap().to_vec::<f32>().unwrap(),
            [0.0, 1.0, 2.0]
        );
        assert!(Buffer::filled(Fill::Randn, DType::I32, &[3], 0).is_err());
        assert!(Buffer::zeroed(DType::F32, &[1 << 40, 1 << 40]).is_err());
    }

    #[test]
    fn random_fills_are_random_enough_and_repeatable() {
        let n = 20_000u64;
        let normal = Buffer::filled(Fill::Randn, DType::F32, &[n], 7).unwrap().to_vec::<f32>().unwrap();
        let mean = normal.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
        let var = normal.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>() / n as f64 - mean * mean;
        assert!(mean.abs() < 0.03 && (var - 1.0).abs() < 0.05, "{mean} {var}");
        let uniform = Buffer::filled(Fill::Rand, DType::F32, &[n], 7).unwrap().to_vec::<f32>().unwrap();
        assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
        assert!((uniform.iter().sum::<f32>() / n as f32 - 0.5).abs() < 0.01);
        let again = Buffer::filled(Fill::Rand, DType::F32, &[n], 7).unwrap().to_vec::<f32>().unwrap();
        let other = Buffer::filled(Fill::Rand, DType::F32, &[n], 8).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(uniform, again);
        assert_ne!(uniform, other);
        // An element depends on its place, not on the shape around it.
        assert_eq!(Buffer::filled(Fill::Rand, DType::F32, &[10], 7).unwrap().to_vec::<f32>().unwrap(), uniform[..10]);
    }

    impl Buffer {
        fn to_vec_bits(&self) -> Vec<u64> {
            (0..self.elements()).map(|i| self.get(i)).collect()
        }
    }
}
