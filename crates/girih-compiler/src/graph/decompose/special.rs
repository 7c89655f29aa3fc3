//! Special functions of PyTorch: gamma, Bessel, and inverses of error functions. Those of one operation are programs of
//! `num/math`; polygamma is a sum over them. Narrow floats are computed in f32, integers become f32.

use super::types::{floating, widened};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
use crate::num::ScalarOp;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "special_function",
        handles: &[
            "aten.lgamma",
            "aten.digamma",
            "aten.erfinv",
            "aten.special_ndtri",
            "aten.i0",
            "aten.special_modified_bessel_i0",
            "aten.special_i0e",
            "aten.special_i1",
            "aten.special_modified_bessel_i1",
            "aten.special_i1e",
        ],
        doc: "One operation each; the Bessel functions that are not scaled are multiplied by their scale.\n\n\
              `y = lgamma(x)` --> `y = lgamma x`\n\n`y = i0(x)` --> `y = i0e(x) * exp(abs x)`",
        run: special,
    },
    Decomposition {
        name: "polygamma",
        handles: &["aten.polygamma"],
        doc: "The n-th derivative of digamma: terms of its series, the rest by Euler's and Maclaurin's formula, computed in \
              f64; negative arguments are reflected.\n\n\
              `y = polygamma(1, x)` --> `y = 1/x^2 + 1/(x + 1)^2 + .. + 1/z + 1/(2*z^2) + ..` with `z = x + 12`\n\n\
              Refuses n above 20.\n\nSource: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4.6, 6.4.7, 6.4.11.",
        run: polygamma,
    },
    Decomposition {
        name: "erfcx",
        handles: &["aten.special_erfcx"],
        doc: "The complement of the error function, scaled, in f64: of its definition up to 2, and above that, where the factors lose \
              what they share, of its continued fraction.\n\n\
              `y = special_erfcx(x)` --> `y = select(x > 2, 1/sqrt(pi)/(x + 1/2/(x + 2/2/(x + 3/2/(x + ..)))), exp(x*x) * (1 - erf x))`\n\n\
              Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.14.",
        run: erfcx,
    },
];

fn special(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let y = widened(b, call.arg(0)?, |b, x| {
        let op = match call.name {
            "aten.lgamma" => ScalarOp::LogGamma,
            "aten.digamma" => ScalarOp::Digamma,
            "aten.erfinv" => ScalarOp::ErfInv,
            "aten.special_ndtri" => ScalarOp::NormalQuantile,
            "aten.special_i1" | "aten.special_i1e" | "aten.special_modified_bessel_i1" => ScalarOp::BesselI1e,
            _ => ScalarOp::BesselI0e,
        };
        let y = b.elementwise(op, &[x])?;
        let is_bessel = matches!(op, ScalarOp::BesselI0e | ScalarOp::BesselI1e);
        if !is_bessel || call.name.ends_with('e') {
            return Ok(y);
        }
        let size = b.abs(x)?;
        let scale = b.exp(size)?;
        b.mul(y, scale)
    })?;
    Ok(vec![y])
}

/// Terms of the continued fraction, with which it is right to the last place from 2 on.
const TERMS: i32 = 60;

fn erfcx(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = floating(b, call.arg(0)?)?;
    let narrow = b.elem(x);
    let x = b.convert(x, Elem::F64)?;
    let c = |v: f64| crate::graph::ir::scalar(Elem::F64, v);
    let square = b.mul(x, x)?;
    let scale = b.exp(square)?;
    let erf = b.elementwise(ScalarOp::Erf, &[x])?;
    let rest = b.sub(c(1.0), erf)?;
    let near = b.mul(scale, rest)?;
    let mut fraction = x;
    for k in (1..=TERMS).rev() {
        let term = b.div(c(0.5 * f64::from(k)), fraction)?;
        fraction = b.add(x, term)?;
    }
    let far = b.div(c(std::f64::consts::FRAC_2_SQRT_PI / 2.0), fraction)?;
    let large = b.compare(Predicate::GreaterThan, x, c(2.0))?;
    let y = b.select(large, far, near)?;
    Ok(vec![b.convert(y, narrow)?])
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

fn polygamma(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let n = call.int("n", 0)?;
    let x = call.arg(0)?;
    if !(0..=MOST).contains(&n) {
        return Err(Refusal::new(format!("polygamma of order {n} is not supported; the order must be 0 to {MOST}")));
    }
    if n == 0 {
        return Ok(vec![widened(b, x, |b, x| b.elementwise(ScalarOp::Digamma, &[x]))?]);
    }
    let x = floating(b, x)?;
    let narrow = b.elem(x);
    let x = b.convert(x, Elem::F64)?;
    let c = |v: f64| crate::graph::ir::scalar(Elem::F64, v);
    let negative = b.compare(Predicate::LessThan, x, c(0.0))?;
    let mirrored = b.sub(c(1.0), x)?;
    let z = b.select(negative, mirrored, x)?;
    let sum = zeta(b, n + 1, z)?;
    let factorial: f64 = (1..=n).map(|k| k as f64).product();
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    let value = b.mul(sum, c(sign * factorial))?;
    // psi_n(x) = (-1)^n psi_n(1 - x) - pi^(n + 1) P_n(cot(pi x)), where P_n are the cotangent's derivatives.
    let nearest = b.round_even(x)?;
    let rest = b.sub(x, nearest)?;
    let angle = b.mul(rest, c(std::f64::consts::PI))?;
    let tangent = b.elementwise(ScalarOp::Tan, &[angle])?;
    let cot = b.div(c(1.0), tangent)?;
    let mut derivative = c(0.0);
    for k in cotangent(n).into_iter().rev() {
        let raised = b.mul(derivative, cot)?;
        derivative = b.add(raised, c(k * std::f64::consts::PI.powi(n as i32 + 1)))?;
    }
    let other = b.mul(value, c(-sign))?;
    let reflected = b.sub(other, derivative)?;
    let pole = b.compare(Predicate::Equal, rest, c(0.0))?;
    let reflected = b.select(pole, c(sign * f64::INFINITY), reflected)?;
    let y = b.select(negative, reflected, value)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `sum over k of (z + k)^-s` for positive `z`, an f64, and a whole `s` above 1.
fn zeta(b: &mut Builder<'_>, s: i64, z: Arg) -> Result<Arg> {
    let c = |v: f64| crate::graph::ir::scalar(Elem::F64, v);
    let terms = 10 + s;
    let mut sum = None;
    for k in 0..terms {
        let at = if k == 0 { z } else { b.add(z, c(k as f64))? };
        let term = b.div(c(1.0), at)?;
        let term = power(b, term, s)?;
        sum = Some(match sum {
            Some(sum) => b.add(sum, term)?,
            None => term,
        });
    }
    let far = b.add(z, c(terms as f64))?;
    let inverse = b.div(c(1.0), far)?;
    let square = b.mul(inverse, inverse)?;
    // y^-s * (y / (s - 1) + 1/2 + sum of B(2j)/(2j)! s (s + 1) .. (s + 2j - 2) y^(1 - 2j))
    let mut factors = vec![];
    let mut rising = s as f64;
    for (j, bernoulli) in BERNOULLI.iter().enumerate() {
        factors.push(bernoulli * rising);
        let at = s as f64 + 2.0 * j as f64;
        rising *= (at + 1.0) * (at + 2.0);
    }
    let mut series = c(0.0);
    for k in factors.into_iter().rev() {
        let raised = b.mul(series, square)?;
        series = b.add(raised, c(k))?;
    }
    let series = b.mul(series, inverse)?;
    let first = b.mul(far, c(1.0 / (s - 1) as f64))?;
    let rest = b.add(series, c(0.5))?;
    let rest = b.add(first, rest)?;
    let scale = power(b, inverse, s)?;
    let mut rest = b.mul(rest, scale)?;
    // At infinity the factors are infinity and 0, which PyTorch takes for 0 in the first derivative only.
    if s == 2 {
        let end = b.compare(Predicate::Equal, z, c(f64::INFINITY))?;
        rest = b.select(end, c(0.0), rest)?;
    }
    match sum {
        Some(sum) => b.add(sum, rest),
        None => Ok(rest),
    }
}

/// A whole positive power, by squaring.
fn power(b: &mut Builder<'_>, x: Arg, n: i64) -> Result<Arg> {
    let (mut result, mut square, mut n) = (None, x, n);
    while n > 0 {
        if n % 2 == 1 {
            result = Some(match result {
                Some(r) => b.mul(r, square)?,
                None => square,
            });
        }
        n /= 2;
        if n > 0 {
            square = b.mul(square, square)?;
        }
    }
    Ok(result.unwrap_or(x))
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
