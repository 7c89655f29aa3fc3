//! How an index expression depends on one axis.
//!
//! `coef(ix, axis)` is the factor of the axis when the expression is linear in it: for `(bx*128 + i)*K + j` it is `K` in
//! `i` and 1 in `j`. Expressions that hold the axis under a quotient, a remainder, a minimum or a maximum are not linear.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::gcd;
use crate::loops::ir::*;

/// How far apart elements may lie that whole vectors side by side are loaded for.
pub const MOST_APART: i64 = MOST_IN_TURN;

/// The factor of `axis` in `ix`, 0 when it does not occur; `None` when `ix` is not linear in it or mentions a value of
/// `varying` (values that may depend on the axis).
pub fn coef(ix: &Ix, axis: AxisId, varying: &BTreeSet<ValId>) -> Option<Ix> {
    if ix.any_leaf(&mut |leaf| matches!(leaf, Ix::Val { val, .. } if varying.contains(val))) {
        return None;
    }
    ix.linear(axis).map(|(factor, _)| factor)
}

/// `ix` with the axis at 0.
pub fn rest(ix: &Ix, axis: AxisId) -> Ix {
    ix.subst_axes(&mut |a| (a == axis).then_some(Ix::Const(0)))
}

/// How far apart two neighbouring iterations of an axis access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stride {
    /// The same element each time.
    Same,
    /// The next element each time.
    Unit,
    /// A constant or launch-time number of elements.
    Far,
    /// Not linear in the axis.
    Irregular,
}

/// The stride of a global index along an axis.
pub fn stride(ix: &Ix, axis: AxisId, varying: &BTreeSet<ValId>) -> Stride {
    match coef(ix, axis, varying) {
        None => Stride::Irregular,
        Some(Ix::Const(0)) => Stride::Same,
        Some(Ix::Const(1)) => Stride::Unit,
        Some(_) => Stride::Far,
    }
}

/// The stride of an access to a row-major buffer along an axis. Dimensions of one element do not count.
pub fn buf_stride(buf: &Buf, idx: &[Ix], axis: AxisId, varying: &BTreeSet<ValId>) -> Stride {
    let mut out = Stride::Same;
    for (d, ix) in idx.iter().enumerate() {
        let last = buf.shape.iter().skip(d + 1).all(|&n| n == 1);
        match stride(ix, axis, varying) {
            Stride::Same => {}
            Stride::Irregular => return Stride::Irregular,
            Stride::Unit if last && out == Stride::Same => out = Stride::Unit,
            _ => out = Stride::Far,
        }
    }
    out
}

/// The width of the panels that an index walks along an axis: 32 for `(j // 32)*K*32 + kk*32 + j % 32` along `j`.
pub fn panels(ix: &Ix, axis: AxisId) -> Option<i64> {
    if let Ix::Mod(a, w) = ix
        && let (Some(width), Some((Ix::Const(1), _))) = (w.as_const(), a.linear(axis))
    {
        return (width > 0).then_some(width);
    }
    let (a, b) = ix.operands()?;
    panels(a, axis).or_else(|| panels(b, axis))
}

/// An index as it stands within one panel of `width` iterations of the axis.
pub fn in_panel(ix: &Ix, axis: AxisId, width: i64) -> Ix {
    // No axis of a kernel has this number; it stands for the panel's.
    let panel = Ix::Axis(AxisId(u32::MAX)) * Ix::Const(width) + Ix::Axis(axis);
    tidy(&ix.subst_axes(&mut |a| (a == axis).then(|| panel.clone())), &BTreeMap::from([(axis, width)]))
}

/// Resolves quotients and remainders by constants where the extents of axes (which run from 0) show the answer:
/// `(j1*32 + j2) // 32` is `j1` when `j2` stays below 32. Where they show only a part of it, the result has fewer axes:
/// `(t*224 + j1*56 + j2) // 3136` is `(t*4 + j1) // 56` when `j2` stays below 56. Multiples of the divisor never stay inside.
pub fn tidy(ix: &Ix, extents: &BTreeMap<AxisId, i64>) -> Ix {
    let Some((a, b)) = ix.operands() else { return ix.clone() };
    let (a, b) = (tidy(a, extents), tidy(b, extents));
    if let (Ix::FloorDiv(..) | Ix::Mod(..), Ix::Const(c)) = (ix, &b)
        && *c > 0
    {
        let is_quotient = matches!(ix, Ix::FloorDiv(..));
        if let Some((quotient, remainder)) = split(&a, *c, extents) {
            return if is_quotient { quotient } else { remainder };
        }
        if let Some((part, quotient, remainder)) = split_by_part(&a, *c, extents) {
            let (rest, part) = (Ix::Const(c / part), Ix::Const(part));
            return match is_quotient {
                true => Ix::floor_div(quotient, rest),
                false => Ix::add(Ix::mul(Ix::modulo(quotient, rest), part), remainder),
            };
        }
        if let Some((quotient, rest)) = multiples(&a, *c) {
            return match is_quotient {
                true => Ix::add(quotient, Ix::floor_div(rest, b)),
                false => Ix::modulo(rest, b),
            };
        }
    }
    ix.with_operands(a, b)
}

/// `ix = quotient*part + remainder` with `0 < remainder < part` somewhere, for the greatest such part of `c`.
fn split_by_part(ix: &Ix, c: i64, extents: &BTreeMap<AxisId, i64>) -> Option<(i64, Ix, Ix)> {
    let mut terms = Vec::new();
    collect(ix, 1, &mut terms)?;
    let parts: BTreeSet<i64> = terms.iter().map(|(_, by)| gcd(c, *by)).filter(|part| 1 < *part && *part < c).collect();
    let split = |part: &i64| split(ix, *part, extents).map(|(quotient, remainder)| (*part, quotient, remainder));
    parts.iter().rev().find_map(split).filter(|(.., remainder)| !remainder.is_const(0))
}

/// `ix = quotient*c + remainder` with `0 <= remainder < c`, where that can be seen.
fn split(ix: &Ix, c: i64, extents: &BTreeMap<AxisId, i64>) -> Option<(Ix, Ix)> {
    let mut terms = Vec::new();
    collect(ix, 1, &mut terms)?;
    let (mut quotient, mut remainder, mut most) = (Ix::Const(0), Ix::Const(0), 0i64);
    for (term, by) in terms {
        if by % c == 0 {
            quotient = Ix::add(quotient, Ix::mul(term, Ix::Const(by / c)));
            continue;
        }
        let extent = match &term {
            Ix::Axis(a) => *extents.get(a)?,
            Ix::Const(1) => 2,
            _ => return None,
        };
        if by < 0 || extent < 1 {
            return None;
        }
        most = most.checked_add(by.checked_mul(extent - 1)?)?;
        remainder = Ix::add(remainder, Ix::mul(term, Ix::Const(by)));
    }
    (most < c).then_some((quotient, remainder))
}

/// `ix = quotient*c + rest`, where no term of the rest is a multiple of `c`; `None` if no term of `ix` is.
fn multiples(ix: &Ix, c: i64) -> Option<(Ix, Ix)> {
    let mut terms = Vec::new();
    collect(ix, 1, &mut terms)?;
    let (of, rest): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, by)| by % c == 0);
    let sum = |terms: Vec<(Ix, i64)>, by: i64| {
        terms.into_iter().fold(Ix::Const(0), |sum, (t, n)| Ix::add(sum, Ix::mul(t, Ix::Const(n / by))))
    };
    (!of.is_empty()).then(|| (sum(of, c), sum(rest, 1)))
}

fn collect(ix: &Ix, by: i64, out: &mut Vec<(Ix, i64)>) -> Option<()> {
    match ix {
        Ix::Add(a, b) => {
            collect(a, by, out)?;
            collect(b, by, out)?;
        }
        Ix::Sub(a, b) => {
            collect(a, by, out)?;
            collect(b, by.checked_neg()?, out)?;
        }
        Ix::Mul(a, b) if b.as_const().is_some() => collect(a, by.checked_mul(b.as_const()?)?, out)?,
        Ix::Const(c) => out.push((Ix::Const(1), by.checked_mul(*c)?)),
        other => out.push((other.clone(), by)),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ax(n: u32) -> Ix {
        Ix::Axis(AxisId(n))
    }

    #[test]
    fn coefficients_follow_products_of_symbols() {
        let k = Ix::val(ValId(0));
        let ix = (Ix::Block(0) * 128.into() + ax(0)) * k.clone() + ax(1) - 3.into();
        let none = BTreeSet::new();
        assert_eq!(coef(&ix, AxisId(0), &none), Some(k));
        assert_eq!(stride(&ix, AxisId(1), &none), Stride::Unit);
        assert_eq!(stride(&ix, AxisId(2), &none), Stride::Same);
        assert_eq!(stride(&(ax(0) * ax(0)), AxisId(0), &none), Stride::Irregular);
        assert_eq!(stride(&Ix::val(ValId(3)), AxisId(0), &BTreeSet::from([ValId(3)])), Stride::Irregular);
    }

    #[test]
    fn panels_are_walked_element_by_element() {
        let (j, kk, none) = (AxisId(0), ax(1), BTreeSet::new());
        let at = Ix::Block(1) * 128.into() + ax(0);
        let ix = Ix::floor_div(at.clone(), 32.into()) * 512.into() + kk * 32.into() + Ix::modulo(at, 32.into());
        assert_eq!(stride(&ix, j, &none), Stride::Irregular);
        assert_eq!(panels(&ix, j), Some(32));
        assert_eq!(stride(&in_panel(&ix, j, 32), j, &none), Stride::Unit);
        assert_eq!(panels(&ix, AxisId(1)), None);
    }

    #[test]
    fn quotients_resolve_when_the_remainder_is_known() {
        let extents = BTreeMap::from([(AxisId(1), 32)]);
        let j = ax(0) * 32.into() + ax(1);
        assert_eq!(tidy(&Ix::floor_div(j.clone(), 32.into()), &extents), ax(0));
        assert_eq!(tidy(&Ix::modulo(j, 32.into()), &extents), ax(1));
        let wide = Ix::modulo(ax(1), 16.into());
        assert_eq!(tidy(&wide, &extents), wide);
        // Rows of 32 elements, and planes of five rows.
        let at = ax(2) * 64.into() + ax(3) * 32.into() + ax(1);
        let row = ax(2) * 2.into() + ax(3);
        assert_eq!(tidy(&Ix::floor_div(at.clone(), 160.into()), &extents), Ix::floor_div(row.clone(), 5.into()));
        let within = Ix::add(Ix::mul(Ix::modulo(row, 5.into()), 32.into()), ax(1));
        assert_eq!(tidy(&Ix::modulo(at, 160.into()), &extents), within);
    }
}
