//! The element type of a tensor: a format, and for integers a sign, which kernels do not have.

use crate::num::DType;
use crate::num::op::Signedness;

/// An element type of a tensor. Kernels see the [`DType`]; the sign chooses the operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Elem {
    pub dtype: DType,
    /// Meaningful for the integers wider than one bit.
    pub unsigned: bool,
}

impl Elem {
    pub const BOOL: Elem = Elem::of(DType::I1);
    pub const I8: Elem = Elem::of(DType::I8);
    pub const I16: Elem = Elem::of(DType::I16);
    pub const I32: Elem = Elem::of(DType::I32);
    pub const I64: Elem = Elem::of(DType::I64);
    pub const U8: Elem = Elem { dtype: DType::I8, unsigned: true };
    pub const U16: Elem = Elem { dtype: DType::I16, unsigned: true };
    pub const U32: Elem = Elem { dtype: DType::I32, unsigned: true };
    pub const U64: Elem = Elem { dtype: DType::I64, unsigned: true };
    pub const F16: Elem = Elem::of(DType::F16);
    pub const BF16: Elem = Elem::of(DType::BF16);
    pub const F32: Elem = Elem::of(DType::F32);
    pub const F64: Elem = Elem::of(DType::F64);

    /// The signed type of a format (for floats and booleans: the type).
    pub const fn of(dtype: DType) -> Elem {
        Elem { dtype, unsigned: false }
    }

    /// The name in printed graphs: `f32`, `i64`, `u8`, `bool`.
    pub fn name(self) -> &'static str {
        match (self.dtype, self.unsigned) {
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
            "u4" => return Some(Elem { dtype: DType::I4, unsigned: true }),
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
