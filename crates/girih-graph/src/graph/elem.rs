//! The element type of a tensor: a format, and for integers a sign, which kernels do not have.
//!
//! Integers of two bits are held in bytes, as NumPy holds them, and have the format of bytes: kernels see an `i8` that
//! is -2 to 1, or 0 to 3. A conversion to such an integer wraps ([`crate::graph::Builder::convert`]).

use crate::num::DType;
use crate::num::op::Signedness;

/// An element type of a tensor. Kernels see the [`DType`]; the sign chooses the operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Elem {
    pub dtype: DType,
    /// Meaningful for the integers wider than one bit.
    pub unsigned: bool,
    /// An integer of two bits in a byte of its own; only with [`DType::I8`].
    pub two_bits: bool,
    /// A [`DType::I64`] that is the number of a string; see [`super::Graph::strings`].
    pub text: bool,
}

impl Elem {
    pub const BOOL: Elem = Elem::of(DType::I1);
    pub const I8: Elem = Elem::of(DType::I8);
    pub const I16: Elem = Elem::of(DType::I16);
    pub const I32: Elem = Elem::of(DType::I32);
    pub const I64: Elem = Elem::of(DType::I64);
    pub const U8: Elem = Elem::unsigned(DType::I8);
    pub const U16: Elem = Elem::unsigned(DType::I16);
    pub const U32: Elem = Elem::unsigned(DType::I32);
    pub const U64: Elem = Elem::unsigned(DType::I64);
    pub const I4: Elem = Elem::of(DType::I4);
    pub const U4: Elem = Elem::unsigned(DType::I4);
    pub const I2: Elem = Elem { two_bits: true, ..Elem::I8 };
    pub const U2: Elem = Elem { two_bits: true, ..Elem::U8 };
    /// A string, as its number.
    pub const STRING: Elem = Elem { text: true, ..Elem::I64 };
    pub const F16: Elem = Elem::of(DType::F16);
    pub const BF16: Elem = Elem::of(DType::BF16);
    pub const F32: Elem = Elem::of(DType::F32);
    pub const F64: Elem = Elem::of(DType::F64);

    /// The signed type of a format (for floats and booleans: the type).
    pub const fn of(dtype: DType) -> Elem {
        Elem { dtype, unsigned: false, two_bits: false, text: false }
    }
    /// The unsigned integer of a format.
    pub const fn unsigned(dtype: DType) -> Elem {
        Elem { unsigned: true, ..Elem::of(dtype) }
    }

    /// The name in printed graphs: `f32`, `i64`, `u8`, `bool`.
    pub fn name(self) -> &'static str {
        match (self.dtype, self.unsigned) {
            (DType::I8, unsigned) if self.two_bits => ["i2", "u2"][usize::from(unsigned)],
            (DType::I64, _) if self.text => "string",
            (DType::I1, _) => "bool",
            (DType::I4, true) => "u4",
            (DType::I8, true) => "u8",
            (DType::I16, true) => "u16",
            (DType::I32, true) => "u32",
            (DType::I64, true) => "u64",
            (dtype, _) => dtype.name(),
        }
    }

    pub fn from_name(name: &str) -> Option<Elem> {
        match name {
            "bool" => return Some(Elem::BOOL),
            "string" => return Some(Elem::STRING),
            "i2" => return Some(Elem::I2),
            "u2" => return Some(Elem::U2),
            "u4" => return Some(Elem::U4),
            "u8" => return Some(Elem::U8),
            "u16" => return Some(Elem::U16),
            "u32" => return Some(Elem::U32),
            "u64" => return Some(Elem::U64),
            _ => {}
        }
        DType::from_name(name).map(Elem::of)
    }

    pub fn is_float(self) -> bool {
        self.dtype.is_float()
    }
    pub fn is_bool(self) -> bool {
        self.dtype == DType::I1
    }
    /// The bits of a number: fewer than those of the format if the type does not use them all.
    pub fn bits(self) -> u32 {
        if self.two_bits { 2 } else { self.dtype.bits() }
    }
    /// The least and the greatest integer of the type.
    pub fn bounds(self) -> Option<(i128, i128)> {
        let all = 1i128 << self.bits();
        self.dtype.is_int().then_some(if self.unsigned || self.is_bool() {
            (0, all - 1)
        } else {
            (-all / 2, all / 2 - 1)
        })
    }
    /// An integer of more than one bit.
    pub fn is_int(self) -> bool {
        self.dtype.is_int() && !self.is_bool()
    }
    pub fn sign(self) -> Signedness {
        if self.unsigned || self.is_bool() { Signedness::Unsigned } else { Signedness::Signed }
    }
}

impl std::fmt::Display for Elem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
