//! Orthogonal polynomials of PyTorch, by their recurrences: a round for each degree up to the greatest, in f64.

use super::Call;
use super::expr::{Loop, Tensor, all};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::MAX_EXTENT;
use crate::index::Ix;

rules! {
    orthogonal_polynomial "The recurrence from one degree to the next, in a loop that ends with the greatest degree; each element stops at its own. A \
         degree below 0 gives 0.\n\n\
         `y = chebyshev_polynomial_t(x, n)` --> `p, q = q, 2*x*q - p` while `k < reduce max n`, `y = select(k == n, q, y)`\n\n\
         Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 22.7." {
        "aten.special_chebyshev_polynomial_t" | "aten.special_chebyshev_polynomial_u" |
        "aten.special_chebyshev_polynomial_v" | "aten.special_chebyshev_polynomial_w" |
        "aten.special_shifted_chebyshev_polynomial_t" | "aten.special_shifted_chebyshev_polynomial_u" |
        "aten.special_shifted_chebyshev_polynomial_v" | "aten.special_shifted_chebyshev_polynomial_w" |
        "aten.special_hermite_polynomial_h" | "aten.special_hermite_polynomial_he" | "aten.special_laguerre_polynomial_l" |
        "aten.special_legendre_polynomial_p" => polynomial,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Family {
    /// One of four kinds: the polynomial of degree 1, as a factor of x and a constant.
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
    fn next<'g>(self, x: Tensor<'g>, [before, last]: [Tensor<'g>; 2], k: Tensor<'g>) -> Tensor<'g> {
        let (up, twice) = (k + 1.0, k * 2.0);
        let odd = twice + 1.0;
        // (factor * last - weight * before) / divisor
        let (factor, weight, divisor) = match self {
            Family::Chebyshev(..) => (x * 2.0, None, None),
            Family::Hermite => (x * 2.0, Some(twice), None),
            Family::HermiteE => (x, Some(k), None),
            Family::Laguerre => (odd - x, Some(k), Some(up)),
            Family::Legendre => (odd * x, Some(k), Some(up)),
        };
        let y = factor * last - weight.map_or(before, |weight| weight * before);
        divisor.map_or(y, |divisor| y / divisor)
    }
}

fn polynomial<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (family, cx) = (Family::of(c.name), c.cx);
    let operand = |name: &str, at: usize| match c.maybe(at) {
        Some(x) => Ok(x),
        None => c.given_number(name)?.ok_or_else(|| Refusal::new(format!("`{name}` is missing"))),
    };
    let (x, n) = (operand("x", 0)?, operand("n", 1)?);
    // Numbers take the type of the tensor beside them.
    let tensors = [x, n].into_iter().filter(|x| !x.is_number()).map(Tensor::elem);
    let elem = tensors.filter(|e| e.is_float()).max_by_key(|e| e.dtype.bits()).unwrap_or(Elem::F32);
    let (x, n) = (x.to(Elem::F64), n.to(Elem::I64));
    let x = if c.name.contains("shifted") { x * 2.0 - 1.0 } else { x };
    let shape = cx.broadcast_shape(&[x.shape()?, n.shape()?])?;
    let (x, n) = (x.spread(&shape), n.spread(&shape));
    let (factor, constant) = family.first();
    let first = x * factor + constant;
    let one = cx.full(Elem::F64, 1.0, shape.clone());
    let (none, single) = (n.equals(0), n.equals(1));
    let y = none.select(1.0, single.select(first, 0.0));
    let most = if shape.is_empty() { n } else { n.greatest(&all(shape.len()), false) };
    let start = cx.int(1);
    let (carried, read) = ([start.below(most), start, one, first, y], [x, n, most]);
    let rounds = Ix::Const(MAX_EXTENT);
    let of = Loop { rounds, conditional: true, carried: &carried, rows: &[], read: &read, given: &[] };
    let results = cx.repeat(&of, |_, round| {
        let ([_, k, before, last, y], &[x, n, most]) = (round.state()?, &round.read[..]) else {
            return Err(Refusal::new("a loop lost its state"));
        };
        let next = family.next(x, [before, last], k.to(Elem::F64));
        let k = k + 1;
        let y = n.equals(k).select(next, y);
        Ok((vec![k.below(most), k, last, next, y], vec![]))
    })?;
    Ok(results[4].to(elem))
}
