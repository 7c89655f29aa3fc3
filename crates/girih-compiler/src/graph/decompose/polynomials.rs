//! Orthogonal polynomials of PyTorch, by their recurrences: as many rounds as the greatest degree asks, in f64.

use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::repeat::Rounds;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, MAX_EXTENT, ReduceOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[Decomposition {
    name: "orthogonal_polynomial",
    handles: &[
        "aten.special_chebyshev_polynomial_t",
        "aten.special_chebyshev_polynomial_u",
        "aten.special_chebyshev_polynomial_v",
        "aten.special_chebyshev_polynomial_w",
        "aten.special_shifted_chebyshev_polynomial_t",
        "aten.special_shifted_chebyshev_polynomial_u",
        "aten.special_shifted_chebyshev_polynomial_v",
        "aten.special_shifted_chebyshev_polynomial_w",
        "aten.special_hermite_polynomial_h",
        "aten.special_hermite_polynomial_he",
        "aten.special_laguerre_polynomial_l",
        "aten.special_legendre_polynomial_p",
    ],
    doc: "The recurrence from one degree to the next, in a loop that ends with the greatest degree; each element stops at its own. A \
          degree below 0 gives 0.\n\n\
          `y = chebyshev_polynomial_t(x, n)` --> `p, q = q, 2*x*q - p` while `k < reduce max n`, `y = select(k == n, q, y)`\n\n\
          Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 22.7.",
    run: polynomial,
}];

#[derive(Clone, Copy, PartialEq)]
enum Family {
    /// Of the four kinds: what the polynomial of degree 1 is, as a factor of x and a constant.
    Chebyshev(f64, f64),
    Hermite,
    HermiteE,
    Laguerre,
    Legendre,
}

impl Family {
    fn of(name: &str) -> Family {
        match name.rsplit('_').next() {
            Some("t") => Family::Chebyshev(1.0, 0.0),
            Some("u") => Family::Chebyshev(2.0, 0.0),
            Some("v") => Family::Chebyshev(2.0, -1.0),
            Some("w") => Family::Chebyshev(2.0, 1.0),
            Some("h") => Family::Hermite,
            Some("he") => Family::HermiteE,
            Some("l") => Family::Laguerre,
            _ => Family::Legendre,
        }
    }
    /// The polynomial of degree 1: a factor of x, and a constant.
    fn first(self) -> (f64, f64) {
        match self {
            Family::Chebyshev(factor, constant) => (factor, constant),
            Family::Hermite => (2.0, 0.0),
            Family::HermiteE | Family::Legendre => (1.0, 0.0),
            Family::Laguerre => (-1.0, 1.0),
        }
    }
    /// That of degree `k + 1`, of those of degrees `k - 1` and `k`.
    fn next(self, b: &mut Builder<'_>, x: Arg, [before, last]: [Arg; 2], k: Arg) -> Result<Arg> {
        let c = |v: f64| ir::scalar(Elem::F64, v);
        let (up, twice) = (b.add(k, c(1.0))?, b.mul(k, c(2.0))?);
        let odd = b.add(twice, c(1.0))?;
        // (factor * last - weight * before) / divisor
        let (factor, weight, divisor) = match self {
            Family::Chebyshev(..) => (b.mul(x, c(2.0))?, None, None),
            Family::Hermite => (b.mul(x, c(2.0))?, Some(twice), None),
            Family::HermiteE => (x, Some(k), None),
            Family::Laguerre => (b.sub(odd, x)?, Some(k), Some(up)),
            Family::Legendre => (b.mul(odd, x)?, Some(k), Some(up)),
        };
        let first = b.mul(factor, last)?;
        let second = match weight {
            Some(weight) => b.mul(weight, before)?,
            None => before,
        };
        let y = b.sub(first, second)?;
        match divisor {
            Some(divisor) => b.div(y, divisor),
            None => Ok(y),
        }
    }
}

fn polynomial(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let family = Family::of(call.name);
    let c = |v: f64| ir::scalar(Elem::F64, v);
    let operand = |b: &mut Builder<'_>, name: &str, at: usize| match call.opt(at) {
        Some(x) => Ok(x),
        None => call.number(b, name)?.ok_or_else(|| Refusal::new(format!("`{name}` is missing"))),
    };
    let (x, n) = (operand(b, "x", 0)?, operand(b, "n", 1)?);
    // Numbers take the type of the tensor beside them.
    let tensors = [x, n].into_iter().filter(|x| matches!(x, Arg::Value(_))).map(|x| b.elem(x));
    let elem = tensors.filter(|e| e.is_float()).max_by_key(|e| e.dtype.bits()).unwrap_or(Elem::F32);
    let mut x = b.convert(x, Elem::F64)?;
    let n = b.convert(n, Elem::I64)?;
    if call.name.contains("shifted") {
        let twice = b.mul(x, c(2.0))?;
        x = b.sub(twice, c(1.0))?;
    }
    let shape = b.broadcast_shape(&[b.shape(x), b.shape(n)])?;
    let spread = |b: &mut Builder<'_>, x: Arg| match x {
        Arg::Value(_) => b.broadcast_to(x, &shape),
        number => Ok(b.full(number, b.elem(number), shape.clone())),
    };
    let (x, n) = (spread(b, x)?, spread(b, n)?);
    let (factor, constant) = family.first();
    let first = b.mul(x, c(factor))?;
    let first = b.add(first, c(constant))?;
    let one = b.full(c(1.0), Elem::F64, shape.clone());
    let is = |b: &mut Builder<'_>, degree: i64| b.compare(Predicate::Equal, n, ir::int_scalar(Elem::I64, degree));
    let (none, single) = (is(b, 0)?, is(b, 1)?);
    let y = b.select(single, first, c(0.0))?;
    let y = b.select(none, c(1.0), y)?;
    let all: Vec<usize> = (0..shape.len()).collect();
    let most = if all.is_empty() { n } else { b.reduce(ReduceOp::Max, n, &all, false)? };
    let start = ir::int_scalar(Elem::I64, 1);
    let goes = b.compare(Predicate::LessThan, start, most)?;
    let of = Rounds {
        rounds: Ix::Const(MAX_EXTENT),
        conditional: true,
        carried: &[goes, start, one, first, y],
        rows: &[],
        read: &[x, n, most],
        given: &[],
    };
    let results = b.repeat(&of, |b, state, _, read| {
        let ([_, k, before, last, y], [x, n, most]) = (state, read) else {
            return Err(Refusal::new("a loop lost its state"));
        };
        let at = b.convert(*k, Elem::F64)?;
        let next = family.next(b, *x, [*before, *last], at)?;
        let k = b.add(*k, ir::int_scalar(Elem::I64, 1))?;
        let here = b.compare(Predicate::Equal, *n, k)?;
        let y = b.select(here, next, *y)?;
        let goes = b.compare(Predicate::LessThan, k, *most)?;
        Ok((vec![goes, k, *last, next, y], vec![]))
    })?;
    Ok(vec![b.convert(results[4], elem)?])
}
