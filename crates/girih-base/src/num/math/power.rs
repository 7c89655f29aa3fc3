//! pow, powi and rsqrt.
//!
//! `x^y = e^(y log x)`: f64 carries the logarithm and the product as pairs of f64 (Dekker), so that only the last exp
//! rounds. pow of f32 takes the logarithm to base 2 and the product in f64, and all else in f32; powi of f32 computes in
//! plain f64. The exceptional cases are C's. powi is pow of the exponent as a float; rsqrt is a root and a division, each
//! rounded.

use super::exp::{exp2_of, magic, parts, raised};
use super::log::{log, log_dd, log2_wide};
use super::machine::{Machine, X};
use super::program::Kind;

/// e^(hi + lo) for hi in any range.
fn exp_pair<M: Machine>(hi: X<M>, lo: X<M>) -> X<M> {
    let limit = 750.0;
    let inside = hi.abs().lt(limit);
    let (p, shifted) = parts(hi.at_most(limit).at_least(-limit), Some(inside.select(lo, lo.float(0.0))));
    p.scale(shifted)
}

fn pow_f64<M: Machine>(x: X<M>, y: X<M>, single: bool) -> X<M> {
    let size = x.abs();
    let magnitude = if single {
        let product = y * log(size);
        exp_pair(product, product.float(0.0))
    } else {
        let (hi, lo) = log_dd(size);
        let product = y * hi;
        exp_pair(product, y.fma(hi, -product) + y * lo)
    };
    with_exceptions(x, y, magnitude)
}

/// `x^y` from the power of the size of x, where that is a number like others.
fn with_exceptions<M: Machine>(x: X<M>, y: X<M>, magnitude: X<M>) -> X<M> {
    let size = x.abs();
    let infinity = x.float(f64::INFINITY);
    let zero = x.float(0.0);
    let falling = y.lt(0.0);
    // A zero or infinite base, or an infinite exponent: the result is zero or infinity, depending on the side of 1 that
    // the base lies on.
    let extreme = size.eq(0.0) | size.eq(infinity) | y.abs().eq(infinity);
    let grows = size.gt(1.0) ^ falling;
    let magnitude = magnitude.or_if(extreme, grows.select(infinity, zero));
    let magnitude = magnitude.or_if(size.eq(1.0), 1.0);
    let half = y * 0.5;
    let odd = y.rint().eq(y) & half.rint().ne(half);
    let negative = x.sign().ne(0);
    let signed = magnitude.flip((odd & negative).select(x.sign(), x.int(0)));
    let no_power = x.lt(0.0) & size.lt(infinity) & y.rint().ne(y);
    let value = signed.or_if(no_power | x.is_nan() | y.is_nan(), f64::NAN);
    value.or_if(y.eq(0.0) | x.eq(1.0), 1.0)
}

pub fn pow<M: Machine>(x: X<M>, y: X<M>) -> X<M> {
    if x.kind == Kind::F32 { pow_f32(x, y) } else { pow_f64(x, y, false) }
}

fn pow_f32<M: Machine>(x: X<M>, y: X<M>) -> X<M> {
    let product = y.convert(Kind::F64) * log2_wide(x.abs());
    let size = product.convert(Kind::F32);
    // No operand is exceptional, and the result is a normal number.
    let usual = size.abs().lt(126.0) & x.lt(f64::INFINITY) & x.float(f32::MIN_POSITIVE.into()).le(x);
    // From 2^128 on all results are infinite, and below 2^-150 they are zero.
    let size = size.at_least(-200.0).at_most(200.0).usually(usual, size);
    let shifted = size + magic(size);
    let rest = product - (shifted - magic(size)).convert(Kind::F64);
    let rest = rest.convert(Kind::F32);
    let p = exp2_of(rest.at_least(-1.0).at_most(1.0).usually(usual, rest));
    with_exceptions(x, y, p.scale(shifted)).usually(usual, raised(p, shifted))
}

/// `n` is an i32.
pub fn powi<M: Machine>(x: X<M>, n: X<M>) -> X<M> {
    let y = n.convert(Kind::F64);
    if x.kind == Kind::F32 { pow_f64(x.convert(Kind::F64), y, true).convert(Kind::F32) } else { pow_f64(x, y, false) }
}

pub fn rsqrt<M: Machine>(x: X<M>) -> X<M> {
    x.float(1.0) / x.sqrt()
}
