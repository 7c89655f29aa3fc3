//! sinh and cosh from `exp`, with an odd minimax polynomial near zero where the exponentials would cancel; tanh from
//! `e^2x - 1`, which loses nothing there.
//!
//! sinh and cosh of f32 are those of f64, rounded; tanh of f32 stays in f32.

use super::exp::{clamp_exp, half_exp_less_1, parts};
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
    let (p, shifted) = parts(clamp_exp(size), None);
    p.scale(shifted - 1.0)
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

/// `e / (e + 1)` of `e = (e^2x - 1) / 2`
pub fn tanh<M: Machine>(x: X<M>) -> X<M> {
    // Beyond this the result rounds to 1.
    let size = x.abs().at_most(if x.kind == Kind::F32 { 10.0 } else { 20.0 });
    let e = half_exp_less_1(size);
    (e / (e + 1.0)).flip(x.sign())
}
