//! pow, powi and rsqrt.
//!
//! `x^y = e^(y log x)`: f64 carries the logarithm and the product as pairs of f64 (Dekker), so that only the last exp
//! rounds; f32 does the same in plain f64. The exceptional cases are C's. powi is pow of the exponent as a float; rsqrt is
//! a root and a division, each rounded.

use super::exp::parts;
use super::log::{log, log_dd};
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
    if x.kind == Kind::F32 {
        pow_f64(x.convert(Kind::F64), y.convert(Kind::F64), true).convert(Kind::F32)
    } else {
        pow_f64(x, y, false)
    }
}

/// `n` is an i32.
pub fn powi<M: Machine>(x: X<M>, n: X<M>) -> X<M> {
    let y = n.convert(Kind::F64);
    if x.kind == Kind::F32 { pow_f64(x.convert(Kind::F64), y, true).convert(Kind::F32) } else { pow_f64(x, y, false) }
}

pub fn rsqrt<M: Machine>(x: X<M>) -> X<M> {
    x.float(1.0) / x.sqrt()
}
