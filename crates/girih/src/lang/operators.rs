//! Operators, element by element: arithmetic, comparisons, choices, functions of floats, conversions.

use std::ops;

use super::builder::{Builder, Id, WRONG, here};
use super::element::{Constant, Elem, ElementType, Float, Integer, Kind, Number, Ptr, PtrMut, Word, bf16, f16};
use super::tile::{Operand, Tile};

/// `op x, y` of two tiles in their common shape.
pub(super) fn binary(b: &mut Builder, op: &str, x: Id, y: Id, words: &str) -> Id {
    let ([x, y], shape) = b.together([x, y]);
    if x == WRONG || y == WRONG {
        return WRONG;
    }
    let (ty, types) = (b.ty(x), format!("{words} : {}", b.ir_type(x)));
    b.compute(ty, &shape, vec![format!("{op} ").into(), x.into(), ", ".into(), y.into(), types.into()])
}

pub(super) fn unary(b: &mut Builder, op: &str, x: Id) -> Id {
    let (ty, shape, types) = (b.ty(x), b.shape(x), format!(" : {}", b.ir_type(x)));
    b.compute(ty, &shape, vec![format!("{op} ").into(), x.into(), types.into()])
}

/// `op` with the letter of the type, such as `addf` or `addi`.
fn arithmetic(b: &mut Builder, op: &str, x: Id, y: Id) -> Id {
    let float = b.ty(x).is_float();
    binary(b, &format!("{op}{}", if float { 'f' } else { 'i' }), x, y, "")
}
/// The same with the sign of integers.
fn signed(b: &mut Builder, float: &str, integer: &str, x: Id, y: Id) -> Id {
    let ty = b.ty(x);
    match ty.is_float() {
        true => binary(b, float, x, y, ""),
        false => binary(b, integer, x, y, &format!(" {}", ty.signedness())),
    }
}

macro_rules! operators {
    ($($bound:ident: $trait:ident $method:ident, $assign:ident $assign_method:ident, $($t:ident)*: |$b:ident, $x:ident, $y:ident| $make:expr;)*) => {$(
        impl<T: $bound> ops::$trait<Tile<T>> for Tile<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $method(self, other: Tile<T>) -> Tile<T> {
                here(|$b| { let ($x, $y) = (self.id, other.id); Tile::of($make) })
            }
        }
        impl<T: $bound> ops::$trait<T> for Tile<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $method(self, other: T) -> Tile<T> {
                here(|$b| { let ($x, $y) = (self.id, $b.constant(other, &[])); Tile::of($make) })
            }
        }
        impl<T: $bound> ops::$assign<Tile<T>> for Tile<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: Tile<T>) {
                *self = ops::$trait::$method(*self, other);
            }
        }
        impl<T: $bound> ops::$assign<T> for Tile<T> {
            #[track_caller]
            fn $assign_method(&mut self, other: T) {
                *self = ops::$trait::$method(*self, other);
            }
        }
        $(impl ops::$trait<Tile<$t>> for $t {
            type Output = Tile<$t>;
            #[track_caller]
            fn $method(self, other: Tile<$t>) -> Tile<$t> {
                here(|$b| { let ($x, $y) = ($b.constant(self, &[]), other.id); Tile::of($make) })
            }
        })*
    )*};
}

operators! {
    Number: Add add, AddAssign add_assign, i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64: |b, x, y| arithmetic(b, "add", x, y);
    Number: Sub sub, SubAssign sub_assign, i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64: |b, x, y| arithmetic(b, "sub", x, y);
    Number: Mul mul, MulAssign mul_assign, i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64: |b, x, y| arithmetic(b, "mul", x, y);
    Number: Div div, DivAssign div_assign, i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64: |b, x, y| signed(b, "divf", "divi", x, y);
    Number: Rem rem, RemAssign rem_assign, i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64: |b, x, y| signed(b, "remf", "remi", x, y);
    Word: BitAnd bitand, BitAndAssign bitand_assign, i8 i16 i32 i64 u8 u16 u32 u64 bool: |b, x, y| binary(b, "andi", x, y, "");
    Word: BitOr bitor, BitOrAssign bitor_assign, i8 i16 i32 i64 u8 u16 u32 u64 bool: |b, x, y| binary(b, "ori", x, y, "");
    Word: BitXor bitxor, BitXorAssign bitxor_assign, i8 i16 i32 i64 u8 u16 u32 u64 bool: |b, x, y| binary(b, "xori", x, y, "");
    Integer: Shl shl, ShlAssign shl_assign, i8 i16 i32 i64 u8 u16 u32 u64: |b, x, y| binary(b, "shli", x, y, "");
    Integer: Shr shr, ShrAssign shr_assign, i8 i16 i32 i64 u8 u16 u32 u64: |b, x, y| signed(b, "shri", "shri", x, y);
}

impl<T: Number> ops::Neg for Tile<T> {
    type Output = Tile<T>;
    #[track_caller]
    fn neg(self) -> Tile<T> {
        here(|b| Tile::of(unary(b, if T::TYPE.is_float() { "negf" } else { "negi" }, self.id)))
    }
}

impl<T: Word> ops::Not for Tile<T> {
    type Output = Tile<T>;
    #[track_caller]
    fn not(self) -> Tile<T> {
        here(|b| {
            let ones = match T::TYPE.kind {
                Kind::Bool => "true".to_string(),
                Kind::Signed => "-1".to_string(),
                _ => (u64::MAX >> (64 - T::TYPE.bits)).to_string(),
            };
            let ones = b.spelled(T::TYPE, ones, &[]);
            Tile::of(binary(b, "xori", self.id, ones, ""))
        })
    }
}

// ---- addresses

/// An address some elements further on.
pub(super) fn offset(b: &mut Builder, address: Id, by: Id) -> Id {
    // Offsets are signed.
    let by = if b.ty(by).kind == Kind::Unsigned { convert(b, by, <i64 as Elem>::TYPE) } else { by };
    let ([address, by], shape) = b.together([address, by]);
    if address == WRONG || by == WRONG {
        return WRONG;
    }
    let (ty, here) = (b.ty(address), b.ir_type(address));
    let types = format!(" : {here}, {} -> {here}", b.ir_type(by));
    b.compute(ty, &shape, vec!["offset ".into(), address.into(), ", ".into(), by.into(), types.into()])
}

macro_rules! addresses {
    ($($address:ident)*) => {$(
        impl<T: Elem, I: Integer> ops::Add<Tile<I>> for Tile<$address<T>> {
            type Output = Self;
            #[track_caller]
            fn add(self, by: Tile<I>) -> Self {
                here(|b| Tile::of(offset(b, self.id, by.id)))
            }
        }
        impl<T: Elem> ops::Add<i32> for Tile<$address<T>> {
            type Output = Self;
            #[track_caller]
            fn add(self, by: i32) -> Self {
                here(|b| { let by = b.constant(by, &[]); Tile::of(offset(b, self.id, by)) })
            }
        }
        impl<T: Elem, I: Integer> ops::Sub<Tile<I>> for Tile<$address<T>> {
            type Output = Self;
            #[track_caller]
            fn sub(self, by: Tile<I>) -> Self {
                here(|b| { let by = unary(b, "negi", by.id); Tile::of(offset(b, self.id, by)) })
            }
        }
        impl<T: Elem, I> ops::AddAssign<I> for Tile<$address<T>> where Self: ops::Add<I, Output = Self> {
            #[track_caller]
            fn add_assign(&mut self, by: I) {
                *self = *self + by;
            }
        }
    )*};
}
addresses!(Ptr PtrMut);

// ---- comparisons

/// `<` and its like, which give a truth for each element.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be compared with `{Rhs}`",
    label = "no comparison of `{Self}` and `{Rhs}`",
    note = "tiles are compared with tiles and numbers of their own element type; convert one: `x.to::<f32>()`"
)]
pub trait Compare<Rhs> {
    type Output;
    #[doc(hidden)]
    fn compare(self, other: Rhs, how: How) -> Self::Output;
}

#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum How {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

pub(super) fn compare_ids(b: &mut Builder, how: How, x: Id, y: Id) -> Id {
    let ([x, y], shape) = b.together([x, y]);
    if x == WRONG || y == WRONG {
        return WRONG;
    }
    let predicate = match how {
        How::Less => "less_than",
        How::LessOrEqual => "less_than_or_equal",
        How::Greater => "greater_than",
        How::GreaterOrEqual => "greater_than_or_equal",
        How::Equal => "equal",
        How::NotEqual => "not_equal",
    };
    let ty = b.ty(x);
    let result = <bool as Elem>::TYPE;
    let (head, sign) = if ty.is_float() {
        let order = if matches!(how, How::NotEqual) { "unordered" } else { "ordered" };
        (format!("cmpf {predicate} {order} "), String::new())
    } else {
        (format!("cmpi {predicate} "), format!(", {}", ty.signedness()))
    };
    let types = format!("{sign} : {} -> {}", b.ir_type(x), result.tile_ir(&shape));
    b.compute(result, &shape, vec![head.into(), x.into(), ", ".into(), y.into(), types.into()])
}

impl<T: Constant> Compare<Tile<T>> for Tile<T> {
    type Output = Tile<bool>;
    #[track_caller]
    fn compare(self, other: Tile<T>, how: How) -> Tile<bool> {
        here(|b| Tile::of(compare_ids(b, how, self.id, other.id)))
    }
}
impl<T: Constant> Compare<T> for Tile<T> {
    type Output = Tile<bool>;
    #[track_caller]
    fn compare(self, other: T, how: How) -> Tile<bool> {
        here(|b| {
            let other = b.constant(other, &[]);
            Tile::of(compare_ids(b, how, self.id, other))
        })
    }
}
macro_rules! comparisons {
    (tiles: $($t:ty)*; others: $($o:ty)*) => {
        $(impl Compare<Tile<$t>> for $t {
            type Output = Tile<bool>;
            #[track_caller]
            fn compare(self, other: Tile<$t>, how: How) -> Tile<bool> {
                here(|b| { let own = b.constant(self, &[]); Tile::of(compare_ids(b, how, own, other.id)) })
            }
        })*
        comparisons!(@ $($t)* $($o)*);
    };
    (@ $($t:ty)*) => {$(
        impl Compare<$t> for $t {
            type Output = bool;
            fn compare(self, other: $t, how: How) -> bool {
                match how {
                    How::Less => self < other,
                    How::LessOrEqual => self <= other,
                    How::Greater => self > other,
                    How::GreaterOrEqual => self >= other,
                    How::Equal => self == other,
                    How::NotEqual => self != other,
                }
            }
        }
    )*};
}
comparisons!(tiles: i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 bool; others: usize isize char &'static str String);

macro_rules! compared {
    ($($name:ident $how:ident;)*) => {$(
        #[doc(hidden)]
        #[track_caller]
        pub fn $name<L: Compare<R>, R>(left: L, right: R) -> L::Output {
            left.compare(right, How::$how)
        }
    )*};
}
compared! {
    less Less;
    less_or_equal LessOrEqual;
    greater Greater;
    greater_or_equal GreaterOrEqual;
    equal Equal;
    not_equal NotEqual;
}

// ---- truths

/// `&&` and `||` of conditions: tiles of `bool`, or a tile and a `bool` of Rust.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` are of truths, not of `{Self}` and `{Rhs}`",
    label = "not truths"
)]
pub trait Truths<Rhs> {
    type Output;
    #[doc(hidden)]
    fn both(self, other: impl FnOnce() -> Rhs, and: bool) -> Self::Output;
}
impl Truths<bool> for bool {
    type Output = bool;
    fn both(self, other: impl FnOnce() -> bool, and: bool) -> bool {
        if self == and { other() } else { self }
    }
}
impl Truths<Tile<bool>> for bool {
    type Output = Tile<bool>;
    #[track_caller]
    fn both(self, other: impl FnOnce() -> Tile<bool>, and: bool) -> Tile<bool> {
        if self == and { other() } else { here(|b| Tile::of(b.constant(self, &[]))) }
    }
}
impl Truths<bool> for Tile<bool> {
    type Output = Tile<bool>;
    #[track_caller]
    fn both(self, other: impl FnOnce() -> bool, and: bool) -> Tile<bool> {
        let other = other();
        if other == and { self } else { here(|b| Tile::of(b.constant(other, &[]))) }
    }
}
impl Truths<Tile<bool>> for Tile<bool> {
    type Output = Tile<bool>;
    #[track_caller]
    fn both(self, other: impl FnOnce() -> Tile<bool>, and: bool) -> Tile<bool> {
        let other = other();
        if and { self & other } else { self | other }
    }
}
#[doc(hidden)]
#[track_caller]
pub fn and<L: Truths<R>, R>(left: L, right: impl FnOnce() -> R) -> L::Output {
    left.both(right, true)
}
#[doc(hidden)]
#[track_caller]
pub fn or<L: Truths<R>, R>(left: L, right: impl FnOnce() -> R) -> L::Output {
    left.both(right, false)
}

// ---- choices

/// `x` where the condition holds, else `y`: all three broadcast. Both are computed.
#[track_caller]
pub fn select<T: Elem, X: Operand<T>, Y: Operand<T>>(condition: Tile<bool>, x: X, y: Y) -> Tile<T> {
    here(|b| {
        let (x, y) = (x.id(b), y.id(b));
        Tile::of(choose(b, condition.id, x, y))
    })
}

pub(super) fn choose(b: &mut Builder, condition: Id, x: Id, y: Id) -> Id {
    let ([x, y], _) = b.together([x, y]);
    let ([condition, x, y], shape) = b.together([condition, x, y]);
    let (ty, types) = (b.ty(x), format!(" : {}, {}", b.ir_type(condition), b.ir_type(x)));
    let pieces = vec!["select ".into(), condition.into(), ", ".into(), x.into(), ", ".into(), y.into(), types.into()];
    b.compute(ty, &shape, pieces)
}

/// The greater of two, element by element; of a number and a NaN the number.
#[track_caller]
pub fn maximum<T: Number>(x: Tile<T>, y: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let y = y.id(b);
        Tile::of(signed(b, "maxf", "maxi", x.id, y))
    })
}
/// The lesser of two, element by element; of a number and a NaN the number.
#[track_caller]
pub fn minimum<T: Number>(x: Tile<T>, y: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let y = y.id(b);
        Tile::of(signed(b, "minf", "mini", x.id, y))
    })
}
/// `x` brought into `least` to `greatest`.
#[track_caller]
pub fn clamp<T: Number>(x: Tile<T>, least: impl Operand<T>, greatest: impl Operand<T>) -> Tile<T> {
    minimum(maximum(x, least), greatest)
}

// ---- functions

macro_rules! float_functions {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: Float>(x: Tile<T>) -> Tile<T> {
            here(|b| Tile::of(unary(b, stringify!($name), x.id)))
        }
    )*};
}
float_functions! {
    /// e to the power of each element.
    exp;
    /// 2 to the power of each element.
    exp2;
    /// The natural logarithm.
    log;
    /// The logarithm to base 2.
    log2;
    /// The square root, correctly rounded.
    sqrt;
    /// `1 / sqrt(x)`.
    rsqrt;
    /// The sine, in radians.
    sin;
    /// The cosine, in radians.
    cos;
    /// The tangent, in radians.
    tan;
    /// The hyperbolic sine.
    sinh;
    /// The hyperbolic cosine.
    cosh;
    /// The hyperbolic tangent.
    tanh;
    /// The greatest whole number not above.
    floor;
    /// The least whole number not below.
    ceil;
}

/// The absolute value; of the least signed integer, itself.
#[track_caller]
pub fn abs<T: Number>(x: Tile<T>) -> Tile<T> {
    here(|b| match T::TYPE.kind {
        Kind::Float => Tile::of(unary(b, "absf", x.id)),
        Kind::Signed => Tile::of(unary(b, "absi", x.id)),
        _ => x,
    })
}

/// `1 / (1 + exp(-x))`, 16-bit floats in f32.
#[track_caller]
pub fn sigmoid<T: Float>(x: Tile<T>) -> Tile<T> {
    let wide = x.to::<T::Wide>();
    here(|b| {
        let minus = unary(b, "negf", wide.id);
        let e = unary(b, "exp", minus);
        let one = b.constant(T::Wide::ONE, &[]);
        let below = binary(b, "addf", one, e, "");
        let y = binary(b, "divf", one, below, "");
        Tile::of(convert(b, y, T::TYPE))
    })
}

/// `x * y + z` with one rounding; of floats.
#[track_caller]
pub fn fma<T: Float>(x: Tile<T>, y: impl Operand<T>, z: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let (y, z) = (y.id(b), z.id(b));
        let ([x, y, z], shape) = b.together([x.id, y, z]);
        let types = format!(" : {}", b.ir_type(x));
        let pieces = vec!["fma ".into(), x.into(), ", ".into(), y.into(), ", ".into(), z.into(), types.into()];
        Tile::of(b.compute(T::TYPE, &shape, pieces))
    })
}
/// x to the power of y.
#[track_caller]
pub fn pow<T: Float>(x: Tile<T>, y: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let y = y.id(b);
        Tile::of(binary(b, "pow", x.id, y, ""))
    })
}
/// The angle of the point (x, y), in radians.
#[track_caller]
pub fn atan2<T: Float>(y: Tile<T>, x: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let x = x.id(b);
        Tile::of(binary(b, "atan2", y.id, x, ""))
    })
}
/// The upper half of the product of unsigned integers.
#[track_caller]
pub fn umulhi<T: Integer>(x: Tile<T>, y: impl Operand<T>) -> Tile<T> {
    here(|b| {
        let y = y.id(b);
        Tile::of(binary(b, "mulhii", x.id, y, ""))
    })
}

/// Division that rounds up, of numbers of Rust and of tiles.
pub trait CeilDiv<Rhs = Self> {
    type Output;
    #[doc(hidden)]
    fn ceil_div(self, by: Rhs) -> Self::Output;
}
macro_rules! ceil_divisions {
    ($($t:ty)*) => {$(
        impl CeilDiv for $t {
            type Output = $t;
            fn ceil_div(self, by: $t) -> $t {
                self / by + <$t>::from(self % by != 0)
            }
        }
    )*};
}
ceil_divisions!(i32 i64 u32 u64 usize);
impl<T: Integer, R: Operand<T>> CeilDiv<R> for Tile<T> {
    type Output = Tile<T>;
    #[track_caller]
    fn ceil_div(self, by: R) -> Tile<T> {
        let by = here(|b| Tile::of(by.id(b)));
        (self + (by - T::ONE)) / by
    }
}
/// `x / by` rounded up, of positive integers: on the host and in a kernel.
#[track_caller]
pub fn cdiv<X: CeilDiv<Y>, Y>(x: X, by: Y) -> X::Output {
    x.ceil_div(by)
}

/// The least power of two that is not below `n`.
pub fn next_power_of_2(n: i32) -> i32 {
    // A tile never has 2^30 elements, the largest value here.
    (n.max(1) as u32).checked_next_power_of_two().map_or(i32::MAX, |n| n.min(1 << 30) as i32)
}

// ---- conversions

/// Between numbers: floats round to nearest even, floats become integers towards zero, integers keep their low bits.
pub(super) fn convert(b: &mut Builder, x: Id, to: ElementType) -> Id {
    let from = b.ty(x);
    if x == WRONG || from == to {
        return x;
    }
    let (op, words) = match (from.kind, to.kind) {
        (_, Kind::Bool) => {
            let zero = if from.is_float() { "0.0" } else { "0" };
            let zero = b.spelled(from, zero.to_string(), &[]);
            return compare_ids(b, How::NotEqual, x, zero);
        }
        (Kind::Float, Kind::Float) => ("ftof", String::new()),
        (Kind::Float, _) => ("ftoi", format!(" {}", to.signedness())),
        (Kind::Bool, Kind::Float) => {
            let byte = convert(b, x, <u8 as Elem>::TYPE);
            return convert(b, byte, to);
        }
        (_, Kind::Float) => ("itof", format!(" {}", from.signedness())),
        // The same bits under another sign.
        _ if from.bits == to.bits => return b.renamed(x, to),
        _ if from.bits < to.bits => ("exti", format!(" {}", from.signedness())),
        _ => ("trunci", String::new()),
    };
    conversion(b, op, x, to, &words)
}

fn conversion(b: &mut Builder, op: &str, x: Id, to: ElementType, words: &str) -> Id {
    let shape = b.shape(x);
    let types = format!("{words} : {} -> {}", b.ir_type(x), to.tile_ir(&shape));
    b.compute(to, &shape, vec![format!("{op} ").into(), x.into(), types.into()])
}

impl<T: Constant> Tile<T> {
    /// The values as another type: floats round to the nearest, ties to even; floats become integers towards zero; integers
    /// keep their low bits; numbers other than 0 become true.
    #[track_caller]
    pub fn to<U: Constant>(self) -> Tile<U> {
        here(|b| Tile::of(convert(b, self.id, U::TYPE)))
    }

    /// The bits as another type of the same width.
    #[track_caller]
    pub fn bitcast<U: Number>(self) -> Tile<U> {
        here(|b| {
            if T::TYPE.bits != U::TYPE.bits {
                let (t, u) = (T::TYPE, U::TYPE);
                let message =
                    format!("a bitcast keeps the width, but {} has {} bits and {} {}", t.name, t.bits, u.name, u.bits);
                return Tile::of(b.fail(message, None));
            }
            if T::TYPE.ir == U::TYPE.ir {
                return Tile::of(b.renamed(self.id, U::TYPE));
            }
            Tile::of(conversion(b, "bitcast", self.id, U::TYPE, ""))
        })
    }
}
