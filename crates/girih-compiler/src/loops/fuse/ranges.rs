//! Interval arithmetic over index expressions, and the simplification that it allows.

use crate::index::{AxisId, Cmp, Cond, Ix};
use crate::loops::ir::{Kernel, Ty};
use crate::num::DType;

/// Least and greatest value.
pub type Range = (i128, i128);

/// The largest grid has 2^24 - 1 blocks along a dimension.
const MAX_GRID: i128 = (1 << 24) - 1;

pub fn signed_range(d: DType) -> Range {
    let half = 1i128 << (d.bits() - 1);
    (-half, half - 1)
}

/// The values an expression may have, whatever the launch; `axes` gives those of a loop axis.
pub fn range(ix: &Ix, kernel: &Kernel, axes: &dyn Fn(AxisId) -> Option<Range>) -> Range {
    interval(ix, &|leaf| match leaf {
        Ix::Axis(a) => axes(*a).unwrap_or(ALL),
        Ix::Val { val, zext } => match (kernel.vals[*val].ty, zext) {
            (Ty::Num(d), true) if d.is_int() && d.bits() < 64 => (0, d.mask() as i128),
            (Ty::Num(d), false) if d.is_int() => signed_range(d),
            _ => ALL,
        },
        Ix::Block(_) => (0, MAX_GRID - 1),
        Ix::Grid(_) => (1, MAX_GRID),
        _ => ALL,
    })
}

const ALL: Range = (i64::MIN as i128, i64::MAX as i128);

/// The values an expression may have, given those of its leaves.
pub fn interval(ix: &Ix, leaf: &dyn Fn(&Ix) -> Range) -> Range {
    let corners = |x: Range, y: Range, f: fn(i128, i128) -> i128| {
        let c = [f(x.0, y.0), f(x.0, y.1), f(x.1, y.0), f(x.1, y.1)];
        c.into_iter().fold((i128::MAX, i128::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)))
    };
    let Some((a, b)) = ix.operands() else {
        return match ix {
            Ix::Const(c) => (*c as i128, *c as i128),
            _ => leaf(ix),
        };
    };
    let (x, y) = (interval(a, leaf), interval(b, leaf));
    match ix {
        Ix::Add(..) => (x.0.saturating_add(y.0), x.1.saturating_add(y.1)),
        Ix::Sub(..) => (x.0.saturating_sub(y.1), x.1.saturating_sub(y.0)),
        Ix::Mul(..) => corners(x, y, i128::saturating_mul),
        Ix::FloorDiv(..) if y.0 > 0 => corners(x, y, i128::div_euclid),
        Ix::FloorDiv(..) => (x.0.min(x.1.saturating_neg()).min(0), x.1.max(x.0.saturating_neg()).max(0)),
        Ix::Mod(..) => {
            let most = (y.1 - 1).max(0);
            (0, if x.0 >= 0 { most.min(x.1) } else { most })
        }
        Ix::Min(..) => (x.0.min(y.0), x.1.min(y.1)),
        _ => (x.0.max(y.0), x.1.max(y.1)),
    }
}

/// Whether a condition always, or never, holds.
pub fn decide(c: &Cond, kernel: &Kernel, axes: &dyn Fn(AxisId) -> Option<Range>) -> Option<bool> {
    let (l, r) = (range(&c.lhs, kernel, axes), range(&c.rhs, kernel, axes));
    let (below, above) = (l.1 < r.0, l.0 > r.1);
    let equal = c.lhs == c.rhs || (l.0 == l.1 && l == r);
    let (at_most, at_least) = (l.1 <= r.0 || equal, l.0 >= r.1 || equal);
    let pick = |yes: bool, no: bool| {
        if yes {
            Some(true)
        } else if no {
            Some(false)
        } else {
            None
        }
    };
    match c.cmp {
        Cmp::Eq => pick(equal, below || above),
        Cmp::Ne => pick(below || above, equal),
        Cmp::Lt => pick(below, at_least),
        Cmp::Le => pick(at_most, above),
        Cmp::Gt => pick(above, at_most),
        Cmp::Ge => pick(at_least, below),
    }
}

/// The same value, written more simply: multiples leave divisions and remainders, decided minima and maxima go.
pub fn simplify(ix: &Ix, kernel: &Kernel, axes: &dyn Fn(AxisId) -> Option<Range>) -> Ix {
    let Some((a, b)) = ix.operands() else { return ix.clone() };
    let (a, b) = (simplify(a, kernel, axes), simplify(b, kernel, axes));
    let of = |ix: &Ix| range(ix, kernel, axes);
    match (ix, &b) {
        (Ix::FloorDiv(..), Ix::Const(d)) if *d > 0 => {
            let (multiples, rest) = split(&a, *d);
            let r = of(&rest);
            let d128 = *d as i128;
            if r.0 >= 0 && r.1 < d128 {
                return multiples;
            }
            Ix::floor_div(a, b)
        }
        (Ix::Mod(..), Ix::Const(d)) if *d > 0 => {
            let (_, rest) = split(&a, *d);
            let r = of(&rest);
            if r.0 >= 0 && r.1 < *d as i128 { rest } else { Ix::modulo(rest, b) }
        }
        (Ix::Min(..), _) if of(&a).1 <= of(&b).0 => a,
        (Ix::Min(..), _) if of(&b).1 <= of(&a).0 => b,
        (Ix::Max(..), _) if of(&a).0 >= of(&b).1 => a,
        (Ix::Max(..), _) if of(&b).0 >= of(&a).1 => b,
        _ => ix.with_operands(a, b),
    }
}

/// `ix` as `multiples * d + rest`.
fn split(ix: &Ix, d: i64) -> (Ix, Ix) {
    match ix {
        Ix::Const(c) => (Ix::Const(c.div_euclid(d)), Ix::Const(c.rem_euclid(d))),
        Ix::Add(a, b) => {
            let ((ma, ra), (mb, rb)) = (split(a, d), split(b, d));
            (Ix::add(ma, mb), Ix::add(ra, rb))
        }
        Ix::Mul(a, b) => match b.as_const() {
            Some(c) if c % d == 0 => (Ix::mul((**a).clone(), Ix::Const(c / d)), Ix::Const(0)),
            _ => (Ix::Const(0), ix.clone()),
        },
        _ => (Ix::Const(0), ix.clone()),
    }
}
