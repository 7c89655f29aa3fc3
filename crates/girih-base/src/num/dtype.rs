//! Element types.

/// An element type. A value is held as its bits in a `u64`, zero-extended from [`DType::bits`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    I1,
    I4,
    I8,
    I16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    TF32,
    F64,
    F8E4M3FN,
    F8E5M2,
    F8E8M0FNU,
    F8E5M3FNU,
    F4E2M1FN,
    /// Without infinities and without a negative zero, whose code is NaN; only models use it, Tile IR has no such type.
    F8E4M3FNUZ,
    /// See [`DType::F8E4M3FNUZ`].
    F8E5M2FNUZ,
}

impl DType {
    pub const ALL: [DType; 18] = [
        DType::I1,
        DType::I4,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::TF32,
        DType::F64,
        DType::F8E4M3FN,
        DType::F8E5M2,
        DType::F8E8M0FNU,
        DType::F8E5M3FNU,
        DType::F4E2M1FN,
        DType::F8E4M3FNUZ,
        DType::F8E5M2FNUZ,
    ];

    /// The types that Tile IR's specification has. Girih's text has the others too, for Triton's programs.
    pub fn of_tile_ir() -> impl Iterator<Item = DType> + Clone {
        DType::ALL.into_iter().filter(|d| !matches!(d, DType::F8E4M3FNUZ | DType::F8E5M2FNUZ))
    }

    /// The name in Tile IR text.
    pub fn name(self) -> &'static str {
        match self {
            DType::I1 => "i1",
            DType::I4 => "i4",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::TF32 => "tf32",
            DType::F64 => "f64",
            DType::F8E4M3FN => "f8E4M3FN",
            DType::F8E5M2 => "f8E5M2",
            DType::F8E8M0FNU => "f8E8M0FNU",
            DType::F8E5M3FNU => "fnv8E5M3FNU",
            DType::F4E2M1FN => "f4E2M1FN",
            DType::F8E4M3FNUZ => "f8E4M3FNUZ",
            DType::F8E5M2FNUZ => "f8E5M2FNUZ",
        }
    }

    /// The type with a name; `f8E5M3FNU` is one of two names of the same format.
    pub fn from_name(name: &str) -> Option<DType> {
        match name {
            "f8E5M3FNU" => Some(DType::F8E5M3FNU),
            _ => DType::ALL.into_iter().find(|d| d.name() == name),
        }
    }

    /// Significant bits of the value's representation. `tf32` is held as the 32 bits of an f32.
    pub fn bits(self) -> u32 {
        match self {
            DType::I1 => 1,
            DType::I4 | DType::F4E2M1FN => 4,
            DType::I8
            | DType::F8E4M3FN
            | DType::F8E5M2
            | DType::F8E8M0FNU
            | DType::F8E5M3FNU
            | DType::F8E4M3FNUZ
            | DType::F8E5M2FNUZ => 8,
            DType::I16 | DType::F16 | DType::BF16 => 16,
            DType::I32 | DType::F32 | DType::TF32 => 32,
            DType::I64 | DType::F64 => 64,
        }
    }

    /// Bytes one element takes in a local buffer, and in memory except for the 4-bit types (two to a byte there).
    pub fn bytes(self) -> u64 {
        (self.bits() as u64).div_ceil(8)
    }

    pub fn is_int(self) -> bool {
        matches!(self, DType::I1 | DType::I4 | DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }
    pub fn is_float(self) -> bool {
        !self.is_int()
    }
    /// f16, bf16, f32 and f64: the types arithmetic is defined on.
    pub fn is_base_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }
    /// All bits of the representation.
    pub fn mask(self) -> u64 {
        if self.bits() == 64 { u64::MAX } else { (1 << self.bits()) - 1 }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value: a number, or an address of elements of the type, in 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Ty {
    Num(DType),
    Ptr(DType),
}

impl Ty {
    /// The type of a number; `None` of an address.
    pub fn num(self) -> Option<DType> {
        match self {
            Ty::Num(d) => Some(d),
            Ty::Ptr(_) => None,
        }
    }

    /// The type whose bits the value has.
    pub fn held(self) -> DType {
        match self {
            Ty::Num(d) => d,
            Ty::Ptr(_) => DType::I64,
        }
    }
}
