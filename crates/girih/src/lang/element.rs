//! The types that a tile's elements have.

pub use half::{bf16, f16};

pub use crate::memory::float8::{F8E4M3, F8E5M2};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
    Pointer,
}

/// An element type as messages and as Tile IR spell it; of an address, the type that it points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType {
    pub name: &'static str,
    pub ir: &'static str,
    pub kind: Kind,
    pub bits: u32,
}

impl ElementType {
    pub fn ir(self) -> String {
        if self.kind == Kind::Pointer { format!("ptr<{}>", self.ir) } else { self.ir.to_string() }
    }
    pub fn is_float(self) -> bool {
        self.kind == Kind::Float
    }
    /// The word that operations on integers take.
    pub fn signedness(self) -> &'static str {
        if self.kind == Kind::Signed { "signed" } else { "unsigned" }
    }
    /// `f32[64, 32]`.
    pub fn spell(self, shape: &[i32]) -> String {
        let name = if self.kind == Kind::Pointer { format!("Ptr<{}>", self.name) } else { self.name.to_string() };
        if shape.is_empty() { name } else { format!("{name}{shape:?}") }
    }
    /// `tile<64x32xf32>`.
    pub fn tile_ir(self, shape: &[i32]) -> String {
        let extents: String = shape.iter().map(|n| format!("{n}x")).collect();
        format!("tile<{extents}{}>", self.ir())
    }
}

/// Element types of tiles: numbers, booleans, addresses.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of kernels",
    label = "not an element type",
    note = "kernels compute with i8 to i64, u8 to u64, f16, bf16, f32, f64 and bool, and load and store F8E4M3 and F8E5M2"
)]
pub trait Elem: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    const TYPE: ElementType;
}

/// An element type with constants: numbers and booleans.
pub trait Constant: Elem {
    /// As Tile IR writes it.
    #[doc(hidden)]
    fn spell(self) -> String;
    #[doc(hidden)]
    const ZERO: Self;
}

/// A number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of kernels",
    label = "not a number",
    note = "kernels compute with i8 to i64, u8 to u64, f16, bf16, f32, f64"
)]
pub trait Number: Constant + crate::Element {
    #[doc(hidden)]
    const ONE: Self;
    /// The least value, and the greatest: for floats the infinities.
    #[doc(hidden)]
    const LEAST: Self;
    #[doc(hidden)]
    const GREATEST: Self;
    /// The type of sums and products of such numbers: at least 32 bits wide.
    type Wide: Number;
}

/// A float of 16, 32 or 64 bits.
pub trait Float: Number {}

/// An integer.
pub trait Integer: Number + Word {}

/// Types with bit operations: integers and booleans.
pub trait Word: Constant {}

impl Word for bool {}

/// The address of elements that are only read.
#[derive(Clone, Copy, Debug)]
pub struct Ptr<T>(std::marker::PhantomData<T>);

/// The address of elements that can be written.
#[derive(Clone, Copy, Debug)]
pub struct PtrMut<T>(std::marker::PhantomData<T>);

impl<T: Elem> Elem for Ptr<T> {
    const TYPE: ElementType = ElementType { kind: Kind::Pointer, ..T::TYPE };
}
impl<T: Elem> Elem for PtrMut<T> {
    const TYPE: ElementType = ElementType { kind: Kind::Pointer, ..T::TYPE };
}

impl Elem for bool {
    const TYPE: ElementType = ElementType { name: "bool", ir: "i1", kind: Kind::Bool, bits: 1 };
}
impl Constant for bool {
    fn spell(self) -> String {
        self.to_string()
    }
    const ZERO: bool = false;
}

macro_rules! integers {
    ($($t:ident $ir:literal $kind:ident $bits:literal $wide:ident;)*) => {$(
        impl Elem for $t {
            const TYPE: ElementType = ElementType { name: stringify!($t), ir: $ir, kind: Kind::$kind, bits: $bits };
        }
        impl Constant for $t {
            fn spell(self) -> String {
                self.to_string()
            }
            const ZERO: $t = 0;
        }
        impl Number for $t {
            const ONE: $t = 1;
            const LEAST: $t = $t::MIN;
            const GREATEST: $t = $t::MAX;
            type Wide = $wide;
        }
        impl Word for $t {}
        impl Integer for $t {}
    )*};
}

integers! {
    i8 "i8" Signed 8 i32;
    i16 "i16" Signed 16 i32;
    i32 "i32" Signed 32 i32;
    i64 "i64" Signed 64 i64;
    u8 "i8" Unsigned 8 u32;
    u16 "i16" Unsigned 16 u32;
    u32 "i32" Unsigned 32 u32;
    u64 "i64" Unsigned 64 u64;
}

macro_rules! floats {
    ($($t:ident $ir:literal $bits:literal $wide:ident $value:expr;)*) => {$(
        impl Elem for $t {
            const TYPE: ElementType = ElementType { name: stringify!($t), ir: $ir, kind: Kind::Float, bits: $bits };
        }
        impl Constant for $t {
            fn spell(self) -> String {
                if !self.is_finite() {
                    return format!("0x{:0width$X}", self.to_bits(), width = $bits / 4);
                }
                let shown: fn($t) -> String = $value;
                let text = shown(self);
                if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
            }
            const ZERO: $t = <$t as Zero>::ZERO;
        }
        impl Number for $t {
            const ONE: $t = <$t as Zero>::ONE;
            const LEAST: $t = $t::NEG_INFINITY;
            const GREATEST: $t = $t::INFINITY;
            type Wide = $wide;
        }
        impl Float for $t {}
    )*};
}

floats! {
    f16 "f16" 16 f32 |x| format!("{:?}", x.to_f32());
    bf16 "bf16" 16 f32 |x| format!("{:?}", x.to_f32());
    f32 "f32" 32 f32 |x| format!("{x:?}");
    f64 "f64" 64 f64 |x| format!("{x:?}");
}

// Loaded, stored, converted and multiplied; other arithmetic must convert them first.
macro_rules! small_floats {
    ($($t:ident $ir:literal;)*) => {$(
        impl Elem for $t {
            const TYPE: ElementType = ElementType { name: stringify!($t), ir: $ir, kind: Kind::Float, bits: 8 };
        }
        impl Constant for $t {
            fn spell(self) -> String {
                format!("0x{:02X}", self.to_bits())
            }
            const ZERO: $t = $t::from_bits(0);
        }
    )*};
}
small_floats! { F8E4M3 "f8E4M3FN"; F8E5M2 "f8E5M2"; }

trait Zero {
    const ZERO: Self;
    const ONE: Self;
}
impl Zero for f16 {
    const ZERO: f16 = f16::ZERO;
    const ONE: f16 = f16::ONE;
}
impl Zero for bf16 {
    const ZERO: bf16 = bf16::ZERO;
    const ONE: bf16 = bf16::ONE;
}
impl Zero for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}
impl Zero for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}
