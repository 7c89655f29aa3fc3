//! The results of all scalar operations.
//!
//! In: an operation, the type of its value operands, and their bits (zero-extended into u64). Out: the result's bits.
//! For example `apply(AddI, I8, &[0xff, 2])` is `1`.
//!
//! [`apply`] is total: if the specification calls a result undefined, it gives the value that native code gives, and
//! [`is_undefined`] returns true. Invariants: results are masked to the result type's width; a float operation that
//! computes (not `NegF`, `AbsF`, `Select`, `Copy`, `Bitcast`, `MaxF`, `MinF` of numbers) gives the canonical quiet NaN
//! for any NaN.
//!
//! f16 and bf16 add, subtract, multiply, divide and take roots in f32 and round once, which is exact for nearest-even;
//! their fused multiply-add and every directed rounding are computed exactly in integers. Flush-to-zero makes subnormal
//! operands and results (after rounding) the zero of their sign. Nearest-even is native IEEE arithmetic.

use std::cmp::Ordering;

use super::convert::{convert, encode, is_nan, nan, sign_extend, to_f64};
use super::op::{Predicate, Rounding, Signedness};
use super::{DType, ScalarOp, math, soft};

/// Returns true if the specification leaves this result undefined: division by zero, the one quotient that overflows,
/// and a float that does not fit its integer type; also a shift by the width or more, which the specification does not
/// mention. (A saturating conversion is defined: its caller does not ask.)
pub fn is_undefined(op: ScalarOp, ty: DType, args: &[u64]) -> bool {
    match op {
        ScalarOp::RemI { .. } => args[1] == 0,
        ScalarOp::DivI { sign, .. } => {
            args[1] == 0 || (sign == Signedness::Signed && args[0] == minimum(ty) && args[1] == ty.mask())
        }
        ScalarOp::Shl | ScalarOp::Shr { .. } => args[1] >= ty.bits() as u64,
        // Every float converts to true or false.
        ScalarOp::FToI { to: DType::I1, .. } => false,
        ScalarOp::FToI { to, sign } => {
            let value = to_f64(ty, args[0]).trunc();
            let bits = to.bits() as i32;
            let (low, high) = match sign {
                Signedness::Signed => (-2f64.powi(bits - 1), 2f64.powi(bits - 1)),
                Signedness::Unsigned => (0.0, 2f64.powi(bits)),
            };
            !(low <= value && value < high)
        }
        _ => false,
    }
}

/// The smallest signed integer's bits.
fn minimum(ty: DType) -> u64 {
    1 << (ty.bits() - 1)
}

/// The bits of the result; see `ScalarOp` for the operands. `ty` is the type of the value operands: for `Select` the
/// type of the two choices, for `PtrAdd` the pointee; the index of `PtrAdd` is sign-extended to 64 bits.
pub fn apply(op: ScalarOp, ty: DType, args: &[u64]) -> u64 {
    use ScalarOp::*;
    let a = args[0];
    let b = || args[1];
    match op {
        AddF { rounding, ftz } => float(Arithmetic::Add, ty, args, rounding, ftz),
        SubF { rounding, ftz } => float(Arithmetic::Sub, ty, args, rounding, ftz),
        MulF { rounding, ftz } => float(Arithmetic::Mul, ty, args, rounding, ftz),
        DivF { rounding, ftz } => float(Arithmetic::Div, ty, args, rounding, ftz),
        Fma { rounding, ftz } => float(Arithmetic::Fma, ty, args, rounding, ftz),
        DotF => dot_of_floats(a, b(), args[2]),
        DotI => dot_of_integers(a, b(), args[2]),
        DotB => dot_of_bytes(a, b(), args[2]),
        Sqrt { rounding, ftz } => float(Arithmetic::Sqrt, ty, args, rounding, ftz),
        MaxF { nan, ftz } => extremum(ty, a, b(), nan, ftz, Ordering::Greater),
        MinF { nan, ftz } => extremum(ty, a, b(), nan, ftz, Ordering::Less),
        NegF => a ^ minimum(ty),
        AbsF => a & !minimum(ty),
        Ceil => from_exact(ty, to_f64(ty, a).ceil()),
        Floor => from_exact(ty, to_f64(ty, a).floor()),
        RoundEven => from_exact(ty, to_f64(ty, a).round_ties_even()),
        RemF => from_exact(ty, to_f64(ty, a) % to_f64(ty, b())),
        Rsqrt { .. }
        | Exp
        | Exp2 { .. }
        | Exp2Approx
        | Log
        | Log2
        | Sin
        | Cos
        | Tan
        | Sinh
        | Cosh
        | Tanh
        | Erf
        | ErfInv
        | NormalQuantile
        | LogGamma
        | Digamma
        | BesselI0e
        | BesselI1e
        | Pow
        | Atan2
        | PowI => transcendental(op, ty, args),
        CmpF { pred, ordered } => match to_f64(ty, a).partial_cmp(&to_f64(ty, b())) {
            Some(order) => holds(pred, order) as u64,
            None => !ordered as u64,
        },

        AddI => a.wrapping_add(b()) & ty.mask(),
        SubI => a.wrapping_sub(b()) & ty.mask(),
        MulI => a.wrapping_mul(b()) & ty.mask(),
        MulHi => ((a as u128 * b() as u128) >> ty.bits()) as u64,
        DivI { sign, rounding } => divide(ty, a, b(), sign, rounding),
        RemI { .. } if b() == 0 => 0,
        RemI { sign: Signedness::Unsigned } => a % b(),
        RemI { sign: Signedness::Signed } => sign_extend(ty, a).wrapping_rem(sign_extend(ty, b())) as u64 & ty.mask(),
        MaxI { sign } if compare(ty, sign, a, b()) == Ordering::Less => b(),
        MinI { sign } if compare(ty, sign, a, b()) == Ordering::Greater => b(),
        MaxI { .. } | MinI { .. } => a,
        Shl if b() >= ty.bits() as u64 => 0,
        Shl => (a << b()) & ty.mask(),
        Shr { sign: Signedness::Unsigned } if b() >= ty.bits() as u64 => 0,
        Shr { sign: Signedness::Unsigned } => a >> b(),
        Shr { sign: Signedness::Signed } => (sign_extend(ty, a) >> b().min(63)) as u64 & ty.mask(),
        NegI => a.wrapping_neg() & ty.mask(),
        AbsI => sign_extend(ty, a).unsigned_abs() & ty.mask(),
        And => a & b(),
        Or => a | b(),
        Xor => a ^ b(),
        CmpI { pred, sign } => holds(pred, compare(ty, sign, a, b())) as u64,

        Select => args[if a != 0 { 1 } else { 2 }],
        Copy | Bitcast { .. } | PtrToInt | IntToPtr { .. } => a,
        FToF { to, rounding } => convert(ty, a, to, rounding),
        FToI { to, sign } => float_to_int(to_f64(ty, a), to, sign),
        IToF { to, sign } => int_to_float(ty, a, to, sign),
        ExtI { to, sign: Signedness::Signed } => sign_extend(ty, a) as u64 & to.mask(),
        ExtI { .. } => a,
        TruncI { to } => a & to.mask(),
        PtrAdd => a.wrapping_add(b().wrapping_mul(ty.bytes())),
    }
}

fn holds(pred: Predicate, order: Ordering) -> bool {
    match pred {
        Predicate::Equal => order.is_eq(),
        Predicate::NotEqual => order.is_ne(),
        Predicate::LessThan => order.is_lt(),
        Predicate::LessThanOrEqual => order.is_le(),
        Predicate::GreaterThan => order.is_gt(),
        Predicate::GreaterThanOrEqual => order.is_ge(),
    }
}

fn compare(ty: DType, sign: Signedness, a: u64, b: u64) -> Ordering {
    match sign {
        Signedness::Unsigned => a.cmp(&b),
        Signedness::Signed => sign_extend(ty, a).cmp(&sign_extend(ty, b)),
    }
}

fn divide(ty: DType, a: u64, b: u64, sign: Signedness, rounding: Rounding) -> u64 {
    if b == 0 {
        return 0;
    }
    let (quotient, remainder, negative) = match sign {
        Signedness::Unsigned => (a / b, a % b, false),
        Signedness::Signed => {
            let (x, y) = (sign_extend(ty, a), sign_extend(ty, b));
            (x.wrapping_div(y) as u64, x.wrapping_rem(y) as u64, (x < 0) != (y < 0))
        }
    };
    let adjust = match rounding {
        Rounding::NegativeInf if remainder != 0 && negative => u64::MAX,
        Rounding::PositiveInf if remainder != 0 && !negative => 1,
        _ => 0,
    };
    quotient.wrapping_add(adjust) & ty.mask()
}

fn float_to_int(value: f64, to: DType, sign: Signedness) -> u64 {
    match sign {
        _ if to == DType::I1 => (value != 0.0) as u64,
        Signedness::Unsigned => (value as u64).min(to.mask()),
        Signedness::Signed => {
            let low = sign_extend(to, minimum(to));
            (value as i64).clamp(low, !low) as u64 & to.mask()
        }
    }
}

fn int_to_float(ty: DType, a: u64, to: DType, sign: Signedness) -> u64 {
    match (to, sign) {
        (DType::F32, Signedness::Signed) => return (sign_extend(ty, a) as f32).to_bits() as u64,
        (DType::F64, Signedness::Signed) => return (sign_extend(ty, a) as f64).to_bits(),
        (DType::F32, Signedness::Unsigned) => return (a as f32).to_bits() as u64,
        (DType::F64, Signedness::Unsigned) => return (a as f64).to_bits(),
        _ => {}
    }
    let (negative, magnitude) = match sign {
        Signedness::Unsigned => (false, a),
        Signedness::Signed => (sign_extend(ty, a) < 0, sign_extend(ty, a).unsigned_abs()),
    };
    encode(to, negative, magnitude as u128, 0, Rounding::NearestEven)
}

/// A value that the type holds exactly, or NaN.
fn from_exact(ty: DType, value: f64) -> u64 {
    convert(DType::F64, value.to_bits(), ty, Rounding::NearestEven)
}

/// A subnormal f32 becomes the zero of its sign.
fn flush(bits: u64) -> u64 {
    if f32::from_bits(bits as u32).is_subnormal() { bits & 0x8000_0000 } else { bits }
}

/// IEEE 754-2019 maximum and minimum (`propagate`) or maximumNumber and minimumNumber; `better` is the order of the
/// winner relative to the other operand.
fn extremum(ty: DType, a: u64, b: u64, propagate: bool, ftz: bool, better: Ordering) -> u64 {
    let (a, b) = if ftz { (flush(a), flush(b)) } else { (a, b) };
    match (is_nan(ty, a), is_nan(ty, b)) {
        (true, true) => nan(ty),
        (true, false) | (false, true) if propagate => nan(ty),
        (true, false) => b,
        (false, true) => a,
        (false, false) => {
            let order = to_f64(ty, a).total_cmp(&to_f64(ty, b));
            if order == better || order.is_eq() { a } else { b }
        }
    }
}

fn transcendental(op: ScalarOp, ty: DType, args: &[u64]) -> u64 {
    let result = match ty {
        DType::F32 | DType::F64 => math::run(op, ty, args),
        _ => {
            let widen = |bits| convert(ty, bits, DType::F32, Rounding::NearestEven);
            let wide = [widen(args[0]), args.get(1).map_or(0, |&x| if op == ScalarOp::PowI { x } else { widen(x) })];
            let result = math::run(op, DType::F32, &wide[..args.len().min(2)]);
            convert(DType::F32, result, ty, Rounding::NearestEven)
        }
    };
    if is_nan(ty, result) { nan(ty) } else { result }
}

/// The sum of the products of two pairs of bf16, added to `sum`.
fn dot_of_floats(x: u64, y: u64, sum: u64) -> u64 {
    let fma = |x: u64, y: u64, sum: u64| float(Arithmetic::Fma, DType::F32, &[x, y, sum], Rounding::NearestEven, true);
    let high = |pair: u64| pair & 0xffff_0000;
    let low = |pair: u64| (pair & 0xffff) << 16;
    fma(low(x), low(y), fma(high(x), high(y), sum))
}

/// The same for two pairs of i16.
fn dot_of_integers(x: u64, y: u64, sum: u64) -> u64 {
    let product = |at: u32| i32::from((x >> at) as i16) * i32::from((y >> at) as i16);
    u64::from((sum as u32).wrapping_add(product(0) as u32).wrapping_add(product(16) as u32))
}

/// The same for four unsigned bytes and four signed ones.
fn dot_of_bytes(x: u64, y: u64, sum: u64) -> u64 {
    let product = |at: u32| i32::from((x >> at) as u8) * i32::from((y >> at) as i8);
    u64::from([0, 8, 16, 24].into_iter().fold(sum as u32, |sum, at| sum.wrapping_add(product(at) as u32)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Sqrt,
}

/// Arithmetic with a rounding mode.
#[inline]
fn float(op: Arithmetic, ty: DType, args: &[u64], rounding: Rounding, ftz: bool) -> u64 {
    if ftz {
        let mut flushed = [0; 3];
        flushed.iter_mut().zip(args).for_each(|(to, &from)| *to = flush(from));
        return flush(float(op, ty, &flushed[..args.len().min(3)], rounding, false));
    }
    let directed =
        matches!(rounding, Rounding::Zero | Rounding::NegativeInf | Rounding::PositiveInf | Rounding::NearestAway);
    macro_rules! native {
        ($x:expr) => {
            match op {
                Arithmetic::Add => $x(0) + $x(1),
                Arithmetic::Sub => $x(0) - $x(1),
                Arithmetic::Mul => $x(0) * $x(1),
                Arithmetic::Div => $x(0) / $x(1),
                Arithmetic::Sqrt => $x(0).sqrt(),
                Arithmetic::Fma => $x(0).mul_add($x(1), $x(2)),
            }
        };
    }
    match ty {
        DType::F32 if !directed => {
            let result = native!(|i: usize| f32::from_bits(args[i] as u32));
            if result.is_nan() { nan(ty) } else { result.to_bits() as u64 }
        }
        DType::F64 if !directed => {
            let result = native!(|i: usize| f64::from_bits(args[i]));
            if result.is_nan() { nan(ty) } else { result.to_bits() }
        }
        DType::F16 | DType::BF16 if !directed && op != Arithmetic::Fma => {
            let result = native!(|i: usize| to_f64(ty, args[i]) as f32);
            convert(DType::F32, result.to_bits() as u64, ty, Rounding::NearestEven)
        }
        _ => match op {
            Arithmetic::Add => soft::add(ty, args[0], args[1], rounding),
            Arithmetic::Sub => soft::add(ty, args[0], args[1] ^ minimum(ty), rounding),
            Arithmetic::Mul => soft::mul(ty, args[0], args[1], rounding),
            Arithmetic::Div => soft::div(ty, args[0], args[1], rounding),
            Arithmetic::Sqrt => soft::sqrt(ty, args[0], rounding),
            Arithmetic::Fma => soft::fma(ty, args[0], args[1], args[2], rounding),
        },
    }
}

#[cfg(test)]
mod tests;
