//! atan2: the quotient of the smaller by the larger operand, folded once more at tan(pi/8), a minimax polynomial
//! (2^-59), and the multiple of pi/4 that the folds and the signs require. The rounding errors of the quotient and the
//! multiple are carried along. f32 computes in f64.

use super::machine::{Machine, X};
use super::program::Kind;

/// (atan x - x) / x^3 on [0, tan(pi/8)], in x^2
const ATAN: [f64; 11] = [
    -0.333333333333332,
    0.19999999999954002,
    -0.14285714280239875,
    0.1111111078568324,
    -0.09090897822801468,
    0.07692061385276609,
    -0.06663117428248487,
    0.05847986792667953,
    -0.05039743258767002,
    0.03807566232313475,
    -0.017919305499445176,
];
const PIO4: f64 = std::f64::consts::FRAC_PI_4;
const PIO4_LO: f64 = 3.061616997868383e-17;

/// The angle of the point (b, a).
pub fn atan2<M: Machine>(a: X<M>, b: X<M>) -> X<M> {
    if a.kind == Kind::F32 {
        atan2_f64(a.convert(Kind::F64), b.convert(Kind::F64)).convert(Kind::F32)
    } else {
        atan2_f64(a, b)
    }
}

fn atan2_f64<M: Machine>(a: X<M>, b: X<M>) -> X<M> {
    let (rise, run) = (a.abs(), b.abs());
    let steep = run.lt(rise);
    let large = run.or_if(steep, rise);
    let small = rise.or_if(steep, run);
    // Infinities count as 1 against 0; operands near the ends of the range are scaled to keep the residual exact.
    let infinite = large.eq(f64::INFINITY);
    let small = small.or_if(infinite, small.eq(f64::INFINITY).select(small.float(1.0), small.float(0.0)));
    let large = large.or_if(infinite | large.eq(0.0), 1.0);
    let factor = large.float(1.0);
    let factor = factor.or_if(large.gt(2f64.powi(1000)), 2f64.powi(-200));
    let factor = factor.or_if(large.lt(2f64.powi(-900)), 2f64.powi(120));
    let (large, small) = (large * factor, small * factor);

    let fold = small.gt(large * (std::f64::consts::SQRT_2 - 1.0));
    let difference = small - large;
    let difference_low = small - (difference + large);
    let sum = large + small;
    let sum_low = small - (sum - large);
    let zero = a.float(0.0);
    let numerator = fold.select(difference, small);
    let denominator = fold.select(sum, large);
    let q = numerator / denominator;
    let residual = (-q).fma(denominator, numerator);
    let residual = residual + fold.select(difference_low - q * sum_low, zero);
    let correction = residual / denominator;
    let z = q * q;
    let rest = (q * z).fma(z.poly(&ATAN), correction);

    // The angle is a count of pi/4, plus or minus the angle of q.
    let backward = b.sign().ne(0);
    let minus = (steep ^ backward).select(a.int(i64::MIN), a.int(0));
    let eighth = fold.select(a.float(1.0), zero);
    let count = steep.select(a.float(2.0), backward.select(a.float(4.0), zero)) + eighth.flip(minus);
    let base = count * PIO4;
    let base_low = count.fma(PIO4_LO, count.fma(PIO4, -base));
    let q = q.flip(minus);
    let angle = base + q;
    let low = ((base - angle) + q) + (base_low + rest.flip(minus));
    let angle = (angle + low).flip(a.sign());
    angle.or_if(a.is_nan() | b.is_nan(), f64::NAN)
}
