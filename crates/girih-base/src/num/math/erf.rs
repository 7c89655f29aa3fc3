//! The error function: in f32 `1 - exp(-q(x))` everywhere, in f64 an odd polynomial near zero and `1 - exp(q(x))` beyond.
//!
//! `q` approximates `-log(erfc(x))`. As `x + x g(x)` it has a small relative error near zero, and `1 - e^-q` computed as one
//! function keeps it: one polynomial and one exponential are enough, without a choice. Larger x need less of `q`, since erfc falls.
//! The coefficients come from a Remez exchange in 200-bit arithmetic, weighted for the relative error of the result: f32 2^-27.8
//! after each coefficient was rounded to f32 and the rest fitted anew, f64 2^-62 and 2^-59.

use super::exp::{exp_within, one_less_exp};
use super::machine::{Machine, X};
use super::program::Kind;

/// -log(erfc(x))/x - 1 on [0, 3.925]
const G32: [f64; 9] = [
    0.12837916612625122,
    0.6366195678710938,
    0.10277630388736725,
    -0.019147824496030807,
    -0.00016949485871009529,
    0.001675660372711718,
    -0.0006373520591296256,
    0.00011885829735547304,
    -9.387831596541218e-06,
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
    let size = x.abs();
    let single = x.kind == Kind::F32;
    let of_size = if single { in_f32(size) } else { in_f64(size) };
    of_size.flip(x.sign())
}

/// erf of a size, or NaN.
fn in_f32<M: Machine>(size: X<M>) -> X<M> {
    // Beyond this the result rounds to 1.
    let t = size.at_most(3.925);
    one_less_exp(t.fma(t.poly_by_pairs(t * t, &G32), t))
}

fn in_f64<M: Machine>(size: X<M>) -> X<M> {
    let z = size * size;
    let small = size.fma(z.poly(&SMALL64), size);
    // Beyond this the result rounds to 1.
    let t = size.at_most(6.0);
    let large = size.float(1.0) - exp_within(t.poly(&LARGE64));
    size.lt(1.0).select(small, large)
}
