//! Special functions of PyTorch: gamma, Bessel, and inverses of error functions. Single operations are programs of
//! `num/math`; polygamma is a sum over them. Narrow floats are computed in f32, integers become f32.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use super::Call;
use super::arithmetic::raised;
use super::expr::Tensor;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::num::ScalarOp;

rules! {
    special_function "One operation each; the Bessel functions that are not scaled are multiplied by their scale.\n\n\
         `y = lgamma(x)` --> `y = lgamma x`\n\n`y = i0(x)` --> `y = i0e(x) * exp(abs x)`" {
        "aten.lgamma" => |c| c.x(0).widened(|x| x.apply(ScalarOp::LogGamma, &[])),
        "aten.digamma" => |c| c.x(0).widened(|x| x.apply(ScalarOp::Digamma, &[])),
        "aten.erfinv" => |c| c.x(0).widened(|x| x.apply(ScalarOp::ErfInv, &[])),
        "aten.special_ndtri" => |c| c.x(0).widened(|x| x.apply(ScalarOp::NormalQuantile, &[])),
        "aten.i0" | "aten.special_modified_bessel_i0" => |c| c.x(0).widened(|x| x.apply(ScalarOp::BesselI0e, &[]) * x.abs().exp()),
        "aten.special_i0e" => |c| c.x(0).widened(|x| x.apply(ScalarOp::BesselI0e, &[])),
        "aten.special_i1" | "aten.special_modified_bessel_i1" =>
            |c| c.x(0).widened(|x| x.apply(ScalarOp::BesselI1e, &[]) * x.abs().exp()),
        "aten.special_i1e" => |c| c.x(0).widened(|x| x.apply(ScalarOp::BesselI1e, &[])),
    }
    polygamma "The n-th derivative of digamma: terms of its series, the rest by Euler's and Maclaurin's formula, computed in \
         f64; negative arguments are reflected.\n\n\
         `y = polygamma(1, x)` --> `y = 1/x^2 + 1/(x + 1)^2 + .. + 1/z + 1/(2*z^2) + ..` with `z = x + 12`\n\n\
         Refuses n above 20.\n\nSource: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4.6, 6.4.7, 6.4.11." {
        "aten.polygamma" => polygamma,
    }
    erfcx "The scaled complement of the error function, in f64: by its definition up to 2, and by its continued fraction above \
         that, where the factors of the definition lose precision.\n\n\
         `y = special_erfcx(x)` --> `y = select(x > 2, 1/sqrt(pi)/(x + 1/2/(x + 2/2/(x + 3/2/(x + ..)))), exp(x*x) * (1 - erf x))`\n\n\
         Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.14." {
        "aten.special_erfcx" => |c| in_f64(c.x(0), erfcx),
    }
}

/// `f` of it in f64, in its own float type.
fn in_f64<'g>(x: Tensor<'g>, f: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
    let x = x.floating();
    f(x.to(Elem::F64)).to(x.elem())
}

/// Terms of the continued fraction, with which it is right to the last place from 2 on.
const TERMS: i32 = 60;

/// The scaled complement of the error function from 2 on.
fn fraction(x: Tensor<'_>) -> Tensor<'_> {
    let fraction = (1..=TERMS).rev().fold(x, |fraction, k| x + 0.5 * f64::from(k) / fraction);
    FRAC_2_SQRT_PI / 2.0 / fraction
}

fn erfcx(x: Tensor<'_>) -> Tensor<'_> {
    let near = (x * x).exp() * (1.0 - x.erf());
    x.above(2.0).select(fraction(x), near)
}

/// The complement of the error function, to its own last places also where the function itself is nearly 1.
pub fn erfc(x: Tensor<'_>) -> Tensor<'_> {
    in_f64(x, |x| x.above(2.0).select(fraction(x) * (0.0 - x * x).exp(), 1.0 - x.erf()))
}

/// B(2j) / (2j)! for j from 1.
const BERNOULLI: [f64; 10] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30240.0,
    -1.0 / 1209600.0,
    1.0 / 47900160.0,
    -691.0 / 1307674368000.0,
    1.0 / 74724249600.0,
    -3617.0 / 10670622842880000.0,
    43867.0 / 5109094217170944000.0,
    -174611.0 / 802857662698291200000.0,
];

/// The greatest order of polygamma: the series is as long as the order asks.
const MOST: i64 = 20;

fn polygamma<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let n = c.int("n", 0)?;
    if !(0..=MOST).contains(&n) {
        return Err(Refusal::new(format!("polygamma of order {n} is not supported; the order must be 0 to {MOST}")));
    }
    if n == 0 {
        return Ok(c.x(0).widened(|x| x.apply(ScalarOp::Digamma, &[])));
    }
    Ok(in_f64(c.x(0), |x| {
        let negative = x.below(0.0);
        let z = negative.select(1.0 - x, x);
        let factorial: f64 = (1..=n).map(|k| k as f64).product();
        let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
        let value = zeta(n + 1, z) * (sign * factorial);
        // psi_n(x) = (-1)^n psi_n(1 - x) - pi^(n + 1) P_n(cot(pi x)), where P_n are the cotangent's derivatives.
        let rest = x - x.round_even();
        let cot = 1.0 / (rest * PI).tan();
        let scaled = cotangent(n).into_iter().map(|k| k * PI.powi(n as i32 + 1));
        let derivative = horner(scaled, cot);
        let reflected = value * -sign - derivative;
        let reflected = rest.equals(0.0).select(sign * f64::INFINITY, reflected);
        negative.select(reflected, value)
    }))
}

/// The value of a polynomial, whose factors are given from the constant up.
fn horner(factors: impl DoubleEndedIterator<Item = f64>, x: Tensor<'_>) -> Tensor<'_> {
    factors.rev().fold(x.like(0.0), |sum, k| sum * x + k)
}

/// `sum over k of (z + k)^-s` for positive `z`, an f64, and a whole `s` above 1.
fn zeta(s: i64, z: Tensor<'_>) -> Tensor<'_> {
    let power = |x| raised(x, s as u32);
    let terms = 10 + s;
    let sum = (1..terms).fold(power(1.0 / z), |sum, k| sum + power(1.0 / (z + k as f64)));
    let far = z + terms as f64;
    let inverse = 1.0 / far;
    let square = inverse * inverse;
    // y^-s * (y / (s - 1) + 1/2 + sum of B(2j)/(2j)! s (s + 1) .. (s + 2j - 2) y^(1 - 2j))
    let mut rising = s as f64;
    let factors = BERNOULLI.iter().enumerate().map(|(j, bernoulli)| {
        let factor = bernoulli * rising;
        let at = s as f64 + 2.0 * j as f64;
        rising *= (at + 1.0) * (at + 2.0);
        factor
    });
    let factors: Vec<f64> = factors.collect();
    let series = horner(factors.into_iter(), square) * inverse;
    let rest = far * (1.0 / (s - 1) as f64) + (series + 0.5);
    let rest = rest * power(inverse);
    // At infinity the factors are infinity and 0, which PyTorch takes for 0 in the first derivative only.
    sum + if s == 2 { z.equals(f64::INFINITY).select(0.0, rest) } else { rest }
}

/// The polynomial in `cot x` that is the n-th derivative of `cot x`, from the constant up: that of `c` is `-(1 + c^2)`.
fn cotangent(n: i64) -> Vec<f64> {
    let mut p = vec![0.0, 1.0];
    for _ in 0..n {
        let derived: Vec<f64> = p.iter().enumerate().skip(1).map(|(i, k)| k * i as f64).collect();
        p = vec![0.0; derived.len() + 2];
        for (i, k) in derived.into_iter().enumerate() {
            p[i] -= k;
            p[i + 2] -= k;
        }
    }
    p
}

#[cfg(test)]
mod tests {
    use super::cotangent;

    /// -1 - c^2, and 2c + 2c^3.
    #[test]
    fn derivatives_of_the_cotangent() {
        assert_eq!(cotangent(0), [0.0, 1.0]);
        assert_eq!(cotangent(1), [-1.0, 0.0, -1.0]);
        assert_eq!(cotangent(2), [0.0, 2.0, 0.0, 2.0]);
    }
}
