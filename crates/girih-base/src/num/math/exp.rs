//! exp and exp2: reduction to `[-ln2/2, ln2/2]`, a minimax polynomial, and scaling that rounds once.
//!
//! The method is the standard one (Muller, *Elementary Functions*, "Cody and Waite reduction"); the coefficients come
//! from a Remez exchange in 200-bit arithmetic, weighted for relative error (f32 2^-28, f64 2^-64).

use super::machine::{Machine, X};
use super::program::{Kind, integer_bits};

const LN2_HI: f64 = std::f64::consts::LN_2;
const LN2_LO: f64 = 2.3190468138462996e-17;
const LN2_HI_F32: f64 = 0.6931471824645996;
const LN2_LO_F32: f64 = -1.9046542121259336e-09;

/// e^r = 1 + r + r^2 q(r)
const Q32: [f64; 5] =
    [0.49999993441745544, 0.1666652052528789, 0.04166838907055015, 0.008368729977237902, 0.0013814584513918348];
const Q64: [f64; 11] = [
    0.5,
    0.16666666666666682,
    0.041666666666666095,
    0.00833333333331701,
    0.001388888888911597,
    0.00019841269896445153,
    2.4801586926217197e-05,
    2.7557234798819242e-06,
    2.755758203198531e-07,
    2.5112059394902585e-08,
    2.0826614537235667e-09,
];

/// 2 q(2r), in r
const fn of_twice<const N: usize>(q: [f64; N]) -> [f64; N] {
    let (mut doubled, mut k) = (q, 0);
    while k < N {
        doubled[k] *= (2u64 << k) as f64;
        k += 1;
    }
    doubled
}
const Q32_OF_TWICE: [f64; 5] = of_twice(Q32);
const Q64_OF_TWICE: [f64; 11] = of_twice(Q64);

/// -q(-s), in s
const fn of_negative<const N: usize>(q: [f64; N]) -> [f64; N] {
    let (mut turned, mut k) = (q, 0);
    while k < N {
        turned[k] *= if k % 2 == 0 { -1.0 } else { 1.0 };
        k += 1;
    }
    turned
}
const Q32_OF_NEGATIVE: [f64; 5] = of_negative(Q32);

/// 2^r = 1 + r p(r)
const P32: [f64; 7] = [
    0.6931471838211278,
    0.24022650921054578,
    0.055504003652560044,
    0.009618056861547158,
    0.0013341955777228208,
    0.00015461390776848883,
    1.3359517465078876e-05,
];
const P64: [f64; 12] = [
    std::f64::consts::LN_2,
    0.24022650695910072,
    0.055504108664821736,
    0.009618129107628562,
    0.0013333558146381664,
    0.0001540353039317175,
    1.5252733864917437e-05,
    1.3215487003457061e-06,
    1.0178047500613526e-07,
    7.054814834952365e-09,
    4.457243969459806e-10,
    2.5855206823304186e-11,
];

/// Adding this number rounds to an integer, which is then in the low bits.
pub(super) fn magic<M: Machine>(x: X<M>) -> X<M> {
    x.float(integer_bits(x.kind))
}

fn clamp<M: Machine>(x: X<M>, low: f64, high: f64) -> X<M> {
    x.at_least(low).at_most(high)
}

/// The two parts of ln 2; the first leaves no error in a product with a small integer.
fn ln2<M: Machine>(x: X<M>) -> (f64, f64) {
    if x.kind == Kind::F32 { (LN2_HI_F32, LN2_LO_F32) } else { (LN2_HI, LN2_LO) }
}

/// `(p, n + magic)` with `e^(x + low) = p * 2^n`, for x in a range where 2^n does not overflow and a small correction
/// `low`: `x + low = n ln 2 + r` and `e^r = 1 + r + r^2 q`.
pub(super) fn parts<M: Machine>(x: X<M>, low: Option<X<M>>) -> (X<M>, X<M>) {
    let shifted = x.fma(std::f64::consts::LOG2_E, magic(x));
    let n = shifted - magic(x);
    let (hi, lo) = ln2(x);
    let r = n.fma(-lo, n.fma(-hi, x));
    let r = low.map_or(r, |low| r + low);
    (r.fma(r.fma(r.poly(if x.kind == Kind::F32 { &Q32 } else { &Q64 }), 1.0), 1.0), shifted)
}

/// p * 2^n, by adding n to the exponent bits of p, for numbers p near 1, if the result is a normal number.
pub(super) fn raised<M: Machine>(p: X<M>, shifted: X<M>) -> X<M> {
    let fraction = if p.kind == Kind::F32 { 23i64 } else { 52 };
    (p.as_int() + (shifted.as_int() << fraction)).as_float()
}

/// The nearest integer n to `x * by`, and 2^n: rounding leaves the exponent bits of 2^n in the low bits.
fn nearest_power<M: Machine>(x: X<M>, by: f64) -> (X<M>, X<M>) {
    let (fraction, bias) = if x.kind == Kind::F32 { (23i64, 127.0) } else { (52, 1023.0) };
    let magic = integer_bits(x.kind) + bias;
    let shifted = x.fma(by, magic);
    (shifted - magic, (shifted.as_int() << fraction).as_float())
}

/// (e^2h - 1) / 2 for h, or NaN, between 0 and 40: `h = n/2 ln 2 + r`.
pub(super) fn half_exp_less_1<M: Machine>(h: X<M>) -> X<M> {
    let (n, power) = nearest_power(h, 2.0 * std::f64::consts::LOG2_E);
    let (hi, lo) = ln2(h);
    let r = n.fma(-0.5 * lo, n.fma(-0.5 * hi, h));
    // (e^2r - 1) / 2 = r + 2 r^2 q(2r)
    let square = r * r;
    let twice_q = r.poly_by_pairs(square, if h.kind == Kind::F32 { &Q32_OF_TWICE } else { &Q64_OF_TWICE });
    let small = square.fma(twice_q, r);
    small.fma(power, power.fma(0.5, -0.5))
}

/// 1 - e^-x for f32 between 0 and 40, or NaN: `-x = n ln 2 - s`.
pub(super) fn one_less_exp<M: Machine>(x: X<M>) -> X<M> {
    let (n, power) = nearest_power(x, -std::f64::consts::LOG2_E);
    // The second part of ln 2 would change s, which is small only where 2^n is 1 and n is 0, by less than it is rounded.
    let s = n.fma(LN2_HI_F32, x);
    // 1 - e^-s = s - s^2 q(-s)
    let square = s * s;
    let small = square.fma(s.poly_by_pairs(square, &Q32_OF_NEGATIVE), s);
    small.fma(power, x.float(1.0) - power)
}

/// Clamps x to a range outside which the result is 0 or infinity, with room for a scaling by 2.
pub(super) fn clamp_exp<M: Machine>(x: X<M>) -> X<M> {
    if x.kind == Kind::F32 { clamp(x, -106.0, 91.0) } else { clamp(x, -748.0, 712.0) }
}

pub fn exp<M: Machine>(x: X<M>) -> X<M> {
    let usual = x.abs().lt(if x.kind == Kind::F32 { 87.0 } else { 708.0 });
    let (p, shifted) = parts(clamp_exp(x).usually(usual, x), None);
    p.scale(shifted).usually(usual, raised(p, shifted))
}

/// e^x for x, or NaN, between -80 and 80: no result leaves the range of normal numbers.
pub(super) fn exp_within<M: Machine>(x: X<M>) -> X<M> {
    let (p, shifted) = parts(x, None);
    p.scale_normal(shifted)
}

pub fn exp2<M: Machine>(x: X<M>) -> X<M> {
    let f32 = x.kind == Kind::F32;
    let usual = x.abs().lt(if f32 { 126.0 } else { 1022.0 });
    let x = if f32 { clamp(x, -152.0, 130.0) } else { clamp(x, -1078.0, 1026.0) }.usually(usual, x);
    let shifted = x + magic(x);
    let p = exp2_of(x - (shifted - magic(x)));
    p.scale(shifted).usually(usual, raised(p, shifted))
}

/// 2^r for r between -1/2 and 1/2.
pub(super) fn exp2_of<M: Machine>(r: X<M>) -> X<M> {
    r.fma(r.poly(if r.kind == Kind::F32 { &P32 } else { &P64 }), 1.0)
}
