//! Exact arithmetic in integers, rounded once: the definition of every rounding mode in every arithmetic format.
//!
//! In: the bits of f16, bf16, f32 or f64 operands. Out: the bits of the result. For example
//! `add(F32, 1.0, 2^-60, PositiveInf)` is the successor of 1. Bits that do not fit below 128 bits are folded into the
//! lowest bit ("jamming"), far enough below the rounding position that the result is the correctly rounded one.

use super::DType;
use super::convert::{Value, decode, encode, encode_value, nan};
use super::op::Rounding;

fn infinite(ty: DType, negative: bool) -> u64 {
    encode_value(ty, Value::Infinite { negative }, Rounding::NearestEven)
}

fn zero(ty: DType, negative: bool) -> u64 {
    encode(ty, negative, 0, 0, Rounding::NearestEven)
}

/// Shifts right; nonzero bits that are shifted out set the last bit.
fn jam(x: u128, by: i32) -> u128 {
    match by {
        0 => x,
        1..=127 => x >> by | (x & ((1 << by) - 1) != 0) as u128,
        _ => (x != 0) as u128,
    }
}

/// A nonzero term shifted so that its top bit is bit 124.
fn normalise(mantissa: u128, exponent: i32) -> (u128, i32) {
    let shift = mantissa.leading_zeros() as i32 - 3;
    (mantissa << shift, exponent - shift)
}

/// The sum of two signed finite terms of at most 107 bits each.
fn sum(ty: DType, a: (bool, u128, i32), b: (bool, u128, i32), rounding: Rounding) -> u64 {
    let down = rounding == Rounding::NegativeInf;
    match (a.1, b.1) {
        (0, 0) => return zero(ty, if a.0 == b.0 { a.0 } else { down }),
        (0, _) => return encode(ty, b.0, b.1, b.2, rounding),
        (_, 0) => return encode(ty, a.0, a.1, a.2, rounding),
        _ => {}
    }
    let (ma, ea) = normalise(a.1, a.2);
    let (mb, eb) = normalise(b.1, b.2);
    let (sx, x, ex, sy, y, ey) = if ea >= eb { (a.0, ma, ea, b.0, mb, eb) } else { (b.0, mb, eb, a.0, ma, ea) };
    let y = jam(y, ex - ey);
    if sx == sy {
        encode(ty, sx, x + y, ex, rounding)
    } else if x == y {
        zero(ty, down)
    } else if x > y {
        encode(ty, sx, x - y, ex, rounding)
    } else {
        encode(ty, sy, y - x, ex, rounding)
    }
}

pub fn add(ty: DType, a: u64, b: u64, rounding: Rounding) -> u64 {
    use Value::*;
    match (decode(ty, a), decode(ty, b)) {
        (Nan, _) | (_, Nan) => nan(ty),
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => nan(ty),
        (Infinite { negative }, _) | (_, Infinite { negative }) => infinite(ty, negative),
        (Finite { negative: sa, mantissa: ma, exponent: ea }, Finite { negative: sb, mantissa: mb, exponent: eb }) => {
            sum(ty, (sa, ma as u128, ea), (sb, mb as u128, eb), rounding)
        }
    }
}

pub fn fma(ty: DType, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    use Value::*;
    let (a, b, c) = (decode(ty, a), decode(ty, b), decode(ty, c));
    let negative = |v| match v {
        Nan => false,
        Infinite { negative } | Finite { negative, .. } => negative,
    };
    let is_zero = |v| matches!(v, Finite { mantissa: 0, .. });
    let sign = negative(a) != negative(b);
    match (a, b, c) {
        (Nan, _, _) | (_, Nan, _) | (_, _, Nan) => nan(ty),
        (Infinite { .. }, _, _) | (_, Infinite { .. }, _) => {
            let opposite = matches!(c, Infinite { negative } if negative != sign);
            if is_zero(a) || is_zero(b) || opposite { nan(ty) } else { infinite(ty, sign) }
        }
        (_, _, Infinite { negative }) => infinite(ty, negative),
        (
            Finite { mantissa: ma, exponent: ea, .. },
            Finite { mantissa: mb, exponent: eb, .. },
            Finite { negative: sc, mantissa: mc, exponent: ec },
        ) => sum(ty, (sign, ma as u128 * mb as u128, ea + eb), (sc, mc as u128, ec), rounding),
    }
}

pub fn mul(ty: DType, a: u64, b: u64, rounding: Rounding) -> u64 {
    use Value::*;
    match (decode(ty, a), decode(ty, b)) {
        (Nan, _) | (_, Nan) => nan(ty),
        (Infinite { .. }, Finite { mantissa: 0, .. }) | (Finite { mantissa: 0, .. }, Infinite { .. }) => nan(ty),
        (Infinite { negative: x }, Infinite { negative: y } | Finite { negative: y, .. })
        | (Finite { negative: x, .. }, Infinite { negative: y }) => infinite(ty, x != y),
        (Finite { negative: sa, mantissa: ma, exponent: ea }, Finite { negative: sb, mantissa: mb, exponent: eb }) => {
            encode(ty, sa != sb, ma as u128 * mb as u128, ea + eb, rounding)
        }
    }
}

pub fn div(ty: DType, a: u64, b: u64, rounding: Rounding) -> u64 {
    use Value::*;
    match (decode(ty, a), decode(ty, b)) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Infinite { .. }) => nan(ty),
        (Finite { mantissa: 0, .. }, Finite { mantissa: 0, .. }) => nan(ty),
        (Infinite { negative: x }, Finite { negative: y, .. })
        | (Finite { negative: x, .. }, Finite { negative: y, mantissa: 0, .. }) => infinite(ty, x != y),
        (Finite { negative: x, .. }, Infinite { negative: y })
        | (Finite { negative: x, mantissa: 0, .. }, Finite { negative: y, .. }) => zero(ty, x != y),
        (Finite { negative: sa, mantissa: ma, exponent: ea }, Finite { negative: sb, mantissa: mb, exponent: eb }) => {
            let up = ma.leading_zeros() as i32;
            let dividend = ((ma << up) as u128) << 64;
            let divisor = mb as u128;
            let quotient = (dividend / divisor) | !dividend.is_multiple_of(divisor) as u128;
            encode(ty, sa != sb, quotient, ea - up - 64 - eb, rounding)
        }
    }
}

pub fn sqrt(ty: DType, a: u64, rounding: Rounding) -> u64 {
    match decode(ty, a) {
        Value::Finite { mantissa: 0, .. } => a,
        Value::Nan | Value::Infinite { negative: true } | Value::Finite { negative: true, .. } => nan(ty),
        Value::Infinite { negative: false } => a,
        Value::Finite { mantissa, exponent, .. } => {
            let up = mantissa.leading_zeros() as i32 + 62;
            let up = if (exponent - up) & 1 == 0 { up } else { up - 1 };
            let square = (mantissa as u128) << up;
            let root = square.isqrt();
            encode(ty, false, root | (root * root != square) as u128, (exponent - up) / 2, rounding)
        }
    }
}

#[cfg(test)]
mod tests;
