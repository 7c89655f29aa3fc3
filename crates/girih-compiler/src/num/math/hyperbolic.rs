//! sinh, cosh and tanh from `exp`, with odd minimax polynomials near zero where the exponentials would cancel.
//!
//! sinh and cosh of f32 are those of f64, rounded; tanh of f32 stays in f32.

use super::exp::{clamp_exp, exp_within, parts, scale};
use super::machine::{Machine, X};
use super::program::Kind;

/// (sinh x - x) / x^3 on [0, 1], in x^2
const SINH: [f64; 8] = [
    0.16666666666666666,
    0.008333333333333333,
    0.0001984126984126959,
    2.755731922412092e-06,
    2.5052108345481237e-08,
    1.6059050726618964e-10,
    7.646474975882094e-13,
    2.8484355758939236e-15,
];
/// (tanh x - x) / x^3 on [0, 0.55], in x^2
const TANH64: [f64; 12] = [
    -0.3333333333333333,
    0.13333333333333075,
    -0.05396825396804917,
    0.021869488528009823,
    -0.008863235339788932,
    0.0035921252056475336,
    -0.0014558061877028737,
    0.0005898348185352559,
    -0.00023822017891831,
    9.398025971108008e-05,
    -3.298188168820721e-05,
    7.457308096018623e-06,
];
/// The same on [0, 0.625], for f32
const TANH32: [f64; 6] = [
    -0.333333309041302,
    0.13333209657643783,
    -0.053947190116929174,
    0.021702885863906975,
    -0.008182464438722083,
    0.002147337819458107,
];

/// x + x^3 p(x^2)
fn odd<M: Machine>(x: X<M>, p: &[f64]) -> X<M> {
    let z = x * x;
    (x * z).fma(z.poly(p), x)
}

fn in_f64<M: Machine>(x: X<M>, f: impl Fn(X<M>) -> X<M>) -> X<M> {
    if x.kind == Kind::F32 { f(x.convert(Kind::F64)).convert(Kind::F32) } else { f(x) }
}

/// e^|x| / 2, which overflows later than e^|x|.
fn half_exp<M: Machine>(size: X<M>) -> X<M> {
    let (p, n) = parts(clamp_exp(size), None);
    scale(p, n - 1)
}

pub fn sinh<M: Machine>(x: X<M>) -> X<M> {
    in_f64(x, |x| {
        let size = x.abs();
        let half = half_exp(size);
        let large = half - size.float(0.25) / half;
        size.lt(1.0).select(odd(size, &SINH), large).flip(x.sign())
    })
}

pub fn cosh<M: Machine>(x: X<M>) -> X<M> {
    in_f64(x, |x| {
        let half = half_exp(x.abs());
        half + x.float(0.25) / half
    })
}

pub fn tanh<M: Machine>(x: X<M>) -> X<M> {
    let single = x.kind == Kind::F32;
    let size = x.abs();
    // Beyond this the result rounds to 1.
    let end = if single { 10.0 } else { 20.0 };
    let bounded = size.or_if(size.gt(end), end);
    let e = exp_within(bounded + bounded);
    let large = size.float(1.0) - size.float(2.0) / (e + 1.0);
    let small = odd(size, if single { &TANH32 } else { &TANH64 });
    let near = size.lt(if single { 0.625 } else { 0.55 });
    near.select(small, large).flip(x.sign())
}
