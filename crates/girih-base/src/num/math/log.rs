//! log and log2: `x = 2^e m` with m in `[sqrt(1/2), sqrt(2))`, then a series in `f = m - 1` (f32) or `s = f/(2 + f)` (f64).
//!
//! The f64 scheme `log(1+f) = f - f^2/2 + s (f^2/2 + R(s^2))` is that of Sun's fdlibm; the coefficients come from a Remez
//! exchange of our own (f32 2^-30, f64 2^-59 of the result). [`log_dd`] keeps a pair of f64, for `pow`.

use super::exp::magic;
use super::machine::{Machine, X};
use super::program::Kind;
use super::trig::two_sum;

/// (log(1+f) - f + f^2/2) / f^3
const Q32: [f64; 9] = [
    0.33333312622246175,
    -0.250000096581027,
    0.20002117975828515,
    -0.1666799389273443,
    0.14219558739955554,
    -0.12405607212226236,
    0.11888152332949584,
    -0.11675617452289196,
    0.06746637159159675,
];
/// (log((1+s)/(1-s)) - 2s) / s^3, in s^2
const P64: [f64; 7] = [
    0.6666666666666735,
    0.3999999999941107,
    0.2857142874326696,
    0.22222198475617314,
    0.18183569756972742,
    0.1531390283408348,
    0.1479751172504523,
];
/// (log((1+s)/(1-s)) - 2s - 2/3 s^3) / s^5, in s^2
const P_DD: [f64; 8] = [
    0.3999999999999998,
    0.2857142857144522,
    0.22222222217510737,
    0.18181818873477482,
    0.15384556654824907,
    0.13336325750704126,
    0.11674649081657633,
    0.11990426636391685,
];
/// log2((1+s)/(1-s)) / s, in s^2
const P_LOG2: [f64; 6] = [
    2.88539008177785,
    0.9617966941135077,
    0.5770779423142293,
    0.4122092577882809,
    0.31990546264814157,
    0.2829036810440985,
];
/// ln 2 in two parts: multiples of the first by an exponent are exact.
const LN2_HI: f64 = 0.6931471803691238;
const LN2_LO: f64 = 1.9082149292705877e-10;
const LN2_HI_F32: f64 = 0.693359375;
const LN2_LO_F32: f64 = -0.00021219444005469057;

/// `(e, m)` as floats for a positive finite x.
fn split<M: Machine>(x: X<M>) -> (X<M>, X<M>) {
    let (tiny, up, sqrt_half, fraction) = if x.kind == Kind::F32 {
        (f32::MIN_POSITIVE as f64, 25, 0x3f3504f3, 23)
    } else {
        (f64::MIN_POSITIVE, 54, 0x3fe6a09e667f3bcd, 52)
    };
    let subnormal = x.lt(tiny);
    let scaled = x.or_if(subnormal, x * (1i64 << up) as f64).as_int();
    let e = (scaled - sqrt_half).sar(fraction);
    let m = (scaled - (e << fraction)).as_float();
    let e = (e + magic(x).as_int()).as_float() - magic(x);
    (e.or_if(subnormal, e - up as f64), m)
}

/// Replaces the result for x at 0, below 0, at infinity and at NaN.
fn edges<M: Machine>(x: X<M>, y: X<M>) -> X<M> {
    let y = x.lt(f64::INFINITY).select(y, x);
    let y = y.or_if(x.eq(0.0), f64::NEG_INFINITY);
    y.or_if(x.lt(0.0), f64::NAN)
}

pub fn log<M: Machine>(x: X<M>) -> X<M> {
    let (e, m) = split(x);
    let f = m - 1.0;
    let square = f * f;
    let y = if x.kind == Kind::F32 {
        let rest = square * f.fma(f.poly(&Q32), -0.5);
        let big = e * LN2_HI_F32;
        let sum = big + f;
        let low = (big - sum) + f;
        sum + (e.fma(LN2_LO_F32, low) + rest)
    } else {
        let (half, s_term) = series(f);
        e * LN2_HI - ((half - (s_term + e * LN2_LO)) - f)
    };
    edges(x, y)
}

/// `f^2/2` and `s (f^2/2 + R)`.
fn series<M: Machine>(f: X<M>) -> (X<M>, X<M>) {
    let half = f * f * 0.5;
    let s = f / (f + 2.0);
    let z = s * s;
    (half, s * z.fma(z.poly(&P64), half))
}

pub fn log2<M: Machine>(x: X<M>) -> X<M> {
    let (e, m) = split(x);
    let f = m - 1.0;
    let y = if x.kind == Kind::F32 {
        const LOG2E: f64 = 1.4426950216293335;
        const LOG2E_LO: f64 = 1.925963033500011e-08;
        let rest = f * f * f.fma(f.poly(&Q32), -0.5);
        let p = f * LOG2E;
        let p_low = f.fma(LOG2E, -p);
        let sum = e + p;
        let low = (e - sum) + p;
        sum + rest.fma(LOG2E, f.fma(LOG2E_LO, p_low + low))
    } else {
        const LOG2E: f64 = 1.4426950407214463;
        const LOG2E_LO: f64 = 1.6751713164886512e-10;
        let (half, s_term) = series(f);
        let hi = (f - half).as_int();
        let hi = (hi & hi.int(!0xffff_ffff)).as_float();
        let lo = (f - hi) - half + s_term;
        let p = hi * LOG2E;
        let p_low = (lo + hi) * LOG2E_LO + lo * LOG2E;
        let sum = e + p;
        (p_low + ((e - sum) + p)) + sum
    };
    edges(x, y)
}

/// log2 of a positive finite f32 as an f64, to about 2^-44 of itself.
pub(super) fn log2_wide<M: Machine>(x: X<M>) -> X<M> {
    let (e, m) = split(x);
    let f = m - 1.0;
    // One division of f32, and what it leaves.
    let reciprocal = x.float(1.0) / (f + 2.0);
    let near = (f * reciprocal).convert(Kind::F64);
    let f = f.convert(Kind::F64);
    let s = (-near).fma(f + 2.0, f).fma(reciprocal.convert(Kind::F64), near);
    s.fma((s * s).poly(&P_LOG2), e.convert(Kind::F64))
}

/// log of a positive finite f64 as an unevaluated sum, to about 2^-66 of itself.
pub(super) fn log_dd<M: Machine>(x: X<M>) -> (X<M>, X<M>) {
    let (e, m) = split(x);
    let f = m - 1.0;
    let (d, d_low) = two_sum(m, m.float(1.0));
    let s = f / d;
    let s_low = ((-s).fma(d, f) - s * d_low) / d;
    let z = s * s;
    let z_low = s.fma(s, -z) + s * s_low * 2.0;
    let t = z * z.poly(&P_DD);
    const TWO_THIRDS: f64 = 0.6666666666666666;
    let c = t + TWO_THIRDS;
    let c_low = (t - (c - TWO_THIRDS)) + 3.700743415417188e-17;
    let w = z * c;
    let w_low = z.fma(c, -w) + (z * c_low + z_low * c);
    let u = s * w;
    let u_low = s.fma(w, -u) + (s * w_low + s_low * w);
    let twice = s * 2.0;
    let y = twice + u;
    let y_low = ((twice - y) + u) + (s_low * 2.0 + u_low);
    let big = e * LN2_HI;
    let sum = big + y;
    let low = ((big - sum) + y) + e.fma(LN2_LO, y_low);
    let hi = sum + low;
    (hi, (sum - hi) + low)
}
