//! The logarithm of the gamma function and its derivative.
//!
//! Stirling's series from 8 on. An argument below is raised by 8, `gamma(z + 8) = z (z + 1) ... (z + 7) gamma(z)`, and a
//! negative one is reflected, `gamma(x) gamma(1 - x) = pi / sin(pi x)`. f32 is computed in f64. lgamma has zeros at 1 and
//! 2 and digamma one near 1.46: beside them the error is absolute, some 1e-15.
//!
//! Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.15, 6.1.17, 6.1.41, 6.3.5, 6.3.7, 6.3.18.

use std::f64::consts::PI;

use super::log::log;
use super::machine::{Machine, X};
use super::program::Kind;
use super::trig::{Function, trig};

/// B(2k) / (2k (2k - 1)) for k from 1
const STIRLING: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 360.0,
    1.0 / 1260.0,
    -1.0 / 1680.0,
    1.0 / 1188.0,
    -691.0 / 360360.0,
    1.0 / 156.0,
    -3617.0 / 122400.0,
    43867.0 / 244188.0,
    -174611.0 / 125400.0,
];
/// B(2k) / 2k for k from 1
const DERIVED: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
    43867.0 / 14364.0,
    -174611.0 / 6600.0,
];
/// log(2 pi) / 2
const HALF_LOG_2PI: f64 = 0.9189385332046727;
/// log pi
const LOG_PI: f64 = 1.1447298858494002;

/// Computes the function in f64, also for an f32.
fn wide<M: Machine>(x: X<M>, f: impl FnOnce(X<M>) -> X<M>) -> X<M> {
    if x.kind == Kind::F32 { f(x.convert(Kind::F64)).convert(Kind::F32) } else { f(x) }
}

/// The mask of negative arguments, which are reflected; the positive argument to compute with; the mask of arguments
/// below 8, which are raised by 8; and the raised argument.
fn raised<M: Machine>(x: X<M>) -> (X<M>, X<M>, X<M>, X<M>) {
    let negative = x.lt(0.0);
    let z = negative.select(x.float(1.0) - x, x);
    let small = z.lt(8.0);
    (negative, z, small, small.select(z + 8.0, z))
}

pub fn lgamma<M: Machine>(x: X<M>) -> X<M> {
    wide(x, |x| {
        let (negative, z, small, y) = raised(x);
        let mut product = z;
        for k in 1..8 {
            product = product * (z + f64::from(k));
        }
        let inverse = x.float(1.0) / y;
        let series = (inverse * inverse).poly(&STIRLING) * inverse;
        let log_y = log(y);
        let stirling = (y - 0.5).fma(log_y, -y) + (series + HALF_LOG_2PI);
        let value = stirling - log(small.select(product, x.float(1.0)));
        let infinite = x.abs().eq(f64::INFINITY);
        let rest = x - x.rint();
        let sine = trig(Function::Sin, rest * PI).abs();
        let reflected = (x.float(LOG_PI) - log(sine)) - value;
        negative.select(reflected, value).or_if(infinite, f64::INFINITY)
    })
}

pub fn digamma<M: Machine>(x: X<M>) -> X<M> {
    wide(x, |x| {
        let (negative, z, small, y) = raised(x);
        let one = x.float(1.0);
        let mut sum = one / z;
        for k in 1..8 {
            sum = sum + one / (z + f64::from(k));
        }
        let inverse = one / y;
        let square = inverse * inverse;
        let series = square.poly(&DERIVED) * square;
        let value = (log(y) - inverse * 0.5) - series;
        let value = small.select(value - sum, value);
        // No value at the poles, and none at -infinity.
        let rest = x - x.rint();
        let pole = rest.eq(0.0) | x.eq(f64::NEG_INFINITY);
        let reflected = value - x.float(PI) / trig(Function::Tan, rest * PI);
        negative.select(reflected.or_if(pole, f64::NAN), value)
    })
}
