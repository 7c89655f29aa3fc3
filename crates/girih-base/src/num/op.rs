//! Scalar operations: one enum that every stage shares, so that arithmetic is defined once.
//!
//! An operation is applied to operands of one type (given beside it) unless its comment says otherwise; conversions
//! carry their destination. `num::eval` defines the result, `emit` prints the same in C.

use super::DType;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rounding {
    NearestEven,
    Zero,
    NegativeInf,
    PositiveInf,
    /// The result may be approximate; we compute the accurate operation.
    Approx,
    Full,
    NearestIntToZero,
    NearestAway,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Signedness {
    Unsigned,
    Signed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Predicate {
    Equal,
    NotEqual,
    LessThan,
    LessThanOrEqual,
    GreaterThan,
    GreaterThanOrEqual,
}

use Rounding as R;
use Signedness as S;

/// A pure scalar operation. Comments give the operand types; `T` is the operation's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ScalarOp {
    // Float, T in f16 bf16 f32 f64. `ftz` is allowed on f32 only.
    AddF {
        rounding: R,
        ftz: bool,
    },
    SubF {
        rounding: R,
        ftz: bool,
    },
    MulF {
        rounding: R,
        ftz: bool,
    },
    DivF {
        rounding: R,
        ftz: bool,
    },
    /// (a, b, c): a*b + c rounded once.
    Fma {
        rounding: R,
        ftz: bool,
    },
    /// (x, y, sum), x and y i32: pairs of bf16 in one word each, the first in the low half. The sum, an f32, plus the
    /// product of the high halves, then plus the product of the low halves, each rounded once; subnormal numbers count
    /// as zeros, as in the instructions of processors.
    DotF,
    Sqrt {
        rounding: R,
        ftz: bool,
    },
    Rsqrt {
        ftz: bool,
    },
    /// `nan`: IEEE maximum (NaN wins); otherwise maximumNumber.
    MaxF {
        nan: bool,
        ftz: bool,
    },
    MinF {
        nan: bool,
        ftz: bool,
    },
    NegF,
    AbsF,
    Ceil,
    Floor,
    /// The nearest integer, ties to even.
    RoundEven,
    /// Truncated remainder, as C's fmod.
    RemF,
    Exp,
    Exp2 {
        ftz: bool,
    },
    /// 2 to the power of an f32 as a GPU's unit for such functions has it, with an error of 2^-22 of the result; subnormal
    /// numbers are zeros. Here it is `Exp2` with `ftz`: compare by that bound.
    Exp2Approx,
    Log,
    Log2,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    /// The error function.
    Erf,
    /// The inverse of the error function.
    ErfInv,
    /// The inverse of the normal distribution's cumulative function.
    NormalQuantile,
    /// log |gamma(x)|.
    LogGamma,
    /// The derivative of log |gamma(x)|.
    Digamma,
    /// The modified Bessel functions I0 and I1, times e^-|x|.
    BesselI0e,
    BesselI1e,
    Pow,
    /// (x, y): the angle of x/y, C's atan2(x, y).
    Atan2,
    /// (T, i32): x to an integer power.
    PowI,
    /// -> i1. `ordered`: false when an operand is NaN; not `ordered`: true when an operand is NaN.
    CmpF {
        pred: Predicate,
        ordered: bool,
    },

    // Integer, T in i1 i8 i16 i32 i64; all wrap.
    AddI,
    SubI,
    MulI,
    /// (x, y, sum), i32: pairs of signed i16 in one word each; the sum plus the two products.
    DotI,
    /// (x, y, sum), i32: four unsigned bytes in the first word, four signed bytes in the second; the sum plus the four
    /// products.
    DotB,
    /// High half of the unsigned product.
    MulHi,
    /// Quotient rounded to zero, or towards an infinity. x/0 = 0; MIN/-1 = MIN.
    DivI {
        sign: S,
        rounding: R,
    },
    /// Truncated remainder; x rem 0 = 0; MIN rem -1 = 0.
    RemI {
        sign: S,
    },
    MaxI {
        sign: S,
    },
    MinI {
        sign: S,
    },
    /// Shifts by the width or more give 0 (or, arithmetic right, the sign).
    Shl,
    Shr {
        sign: S,
    },
    NegI,
    AbsI,
    And,
    Or,
    Xor,
    /// -> i1
    CmpI {
        pred: Predicate,
        sign: S,
    },

    /// (i1, T, T) -> T; T may be a pointer.
    Select,
    /// The operand unchanged (any type).
    Copy,

    // Conversions: operand type T to `to`.
    FToF {
        to: DType,
        rounding: R,
    },
    /// Saturates, NaN gives 0 (the same as an out-of-range plain conversion natively). To i1 the result is true if the
    /// number is not zero; for NaN it is false.
    FToI {
        to: DType,
        sign: S,
    },
    IToF {
        to: DType,
        sign: S,
    },
    ExtI {
        to: DType,
        sign: S,
    },
    TruncI {
        to: DType,
    },
    /// Same width; also ptr_to_int, int_to_ptr and ptr_to_ptr, where `to` is i64 or the pointee.
    Bitcast {
        to: DType,
    },
    /// `(ptr<T>, i) -> ptr<T>`: the address plus i (any integer type, sign-extended) elements.
    PtrAdd,
    /// (ptr) -> i64
    PtrToInt,
    /// `(i64) -> ptr<to>`; also `ptr -> ptr<to>`
    IntToPtr {
        to: DType,
    },
}
