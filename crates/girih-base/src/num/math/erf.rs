//! The error function: an odd polynomial near zero, `1 - exp(q(x))` beyond.
//!
//! `q` approximates `log(erfc(x))`, so the second part needs one exponential and loses nothing to cancellation: there
//! erfc is below 1/5. The coefficients come from a Remez exchange in 200-bit arithmetic, weighted for the relative error
//! of the result (f32 2^-30 and 2^-34, f64 2^-62 and 2^-59).

use super::exp::exp_within;
use super::machine::{Machine, X};
use super::program::Kind;

/// erf(x)/x - 1 on [0, 0.9375], in x^2
const SMALL32: [f64; 7] = [
    0.12837916652177328,
    -0.3761263264323767,
    0.11283679013726382,
    -0.0268584984454914,
    0.005198831522138731,
    -0.0008118081911185065,
    8.26745486273015e-05,
];
/// log(erfc(x)) on [0.93, 4.05]
const LARGE32: [f64; 8] = [
    0.00017735081811358984,
    -1.1295277306734408,
    -0.6333210725887741,
    -0.10830848227786298,
    0.02513776772447414,
    -0.004178021572028256,
    0.00043589776135441824,
    -2.1219117490465722e-05,
];
/// erf(x)/x - 1 on [0, 1], in x^2
const SMALL64: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954858,
    -0.02686617064507296,
    0.00522397762478137,
    -0.0008548326978765149,
    0.00012055331037551108,
    -1.4925593518728226e-05,
    1.6460972954153765e-06,
    -1.635002619207727e-07,
    1.4657883530919653e-08,
    -1.136567067182716e-09,
    5.945255584223488e-11,
];
/// log(erfc(x)) on [1, 6]
const LARGE64: [f64; 19] = [
    -1.782179204035535e-07,
    -1.1283773428089015,
    -0.6366284279461109,
    -0.1027474220454269,
    0.019078483430170705,
    0.0002800221935686652,
    -0.001768493932254762,
    0.0006407430752563525,
    -4.453433648919224e-05,
    -7.05205942921118e-05,
    4.5103076325705195e-05,
    -1.6536281605228433e-05,
    4.333054102335451e-06,
    -8.518372186786273e-07,
    1.2590753320070183e-07,
    -1.3650640070296428e-08,
    1.0276624587391767e-09,
    -4.805986407624703e-11,
    1.0519714692453956e-12,
];

pub fn erf<M: Machine>(x: X<M>) -> X<M> {
    let single = x.kind == Kind::F32;
    let size = x.abs();
    let z = size * size;
    let small = size.fma(z.poly(if single { &SMALL32 } else { &SMALL64 }), size);
    // Beyond this the result rounds to 1.
    let end = if single { 4.0 } else { 6.0 };
    let t = size.at_most(end);
    let large = x.float(1.0) - exp_within(t.poly(if single { &LARGE32 } else { &LARGE64 }));
    let near = size.lt(if single { 0.9375 } else { 1.0 });
    near.select(small, large).flip(x.sign())
}
