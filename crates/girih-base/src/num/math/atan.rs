//! atan2: the quotient of the smaller by the larger operand, for f64 folded once more at tan(pi/8), a minimax polynomial
//! (f32 2^-28, f64 2^-59), and the multiple of pi/4 that the folds and the signs require. In f64 the rounding
//! errors of the quotient and of the multiple are computed, too, and added.

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
/// Coefficients of the polynomial on [0, 1], for f32
const ATAN32: [f64; 9] = [
    -0.33333298563957214,
    0.19998548924922943,
    -0.14264242351055145,
    0.10952185839414597,
    -0.0840345025062561,
    0.05795758590102196,
    -0.031177837401628494,
    0.010914601385593414,
    -0.0017936205258592963,
];
/// pi/2 in two f32
const PIO2_32: [f64; 2] = [1.5707963705062866, -4.371138828673793e-08];
const PIO4: f64 = std::f64::consts::FRAC_PI_4;
const PIO4_LO: f64 = 3.061616997868383e-17;

/// The angle of the point (b, a).
pub fn atan2<M: Machine>(a: X<M>, b: X<M>) -> X<M> {
    if a.kind == Kind::F32 { atan2_f32(a, b) } else { atan2_f64(a, b) }
}

/// The operands by size, the larger one first; infinities count as 1 against 0, and zeros as 0 against 1. The mask holds where the
/// angle is nearer to the upright axis.
fn by_size<M: Machine>(a: X<M>, b: X<M>) -> (X<M>, X<M>, X<M>) {
    let (rise, run) = (a.abs(), b.abs());
    let steep = run.lt(rise);
    let large = run.or_if(steep, rise);
    let small = rise.or_if(steep, run);
    let infinite = large.eq(f64::INFINITY);
    let small = small.or_if(infinite, small.eq(f64::INFINITY).select(small.float(1.0), small.float(0.0)));
    (large.or_if(infinite | large.eq(0.0), 1.0), small, steep)
}

fn atan2_f32<M: Machine>(a: X<M>, b: X<M>) -> X<M> {
    let (large, small, steep) = by_size(a, b);
    let q = small / large;
    let z = q * q;
    let turn = (q * z).fma(z.poly_by_pairs(z * z, &ATAN32), q);
    // From the axis that the point lies nearest to, forwards or backwards.
    let backward = b.sign().ne(0);
    let turn = turn.flip((steep ^ backward).select(b.int(i64::from(i32::MIN)), b.int(0)));
    let axis = |part: f64| steep.select(b.float(part), backward.select(b.float(part * 2.0), b.float(0.0)));
    let angle = (axis(PIO2_32[0]) + (turn + axis(PIO2_32[1]))).flip(a.sign());
    angle.or_if(a.is_nan() | b.is_nan(), f64::NAN)
}

fn atan2_f64<M: Machine>(a: X<M>, b: X<M>) -> X<M> {
    let (large, small, steep) = by_size(a, b);
    // Operands near the ends of the range are scaled to keep the residual exact.
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
