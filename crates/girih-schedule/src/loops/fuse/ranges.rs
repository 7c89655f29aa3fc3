//! The ranges of index expressions.

use crate::index::{AxisId, Facts, Interval, Ix};
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

/// The facts that hold for a kernel's values in every launch; the axes are entered loop by loop.
pub fn facts(kernel: &Kernel) -> Facts {
    let mut facts = Facts::new();
    for (v, val) in kernel.vals.iter() {
        if let Ty::Num(d) = val.ty
            && d.is_int()
        {
            let (lo, hi) = signed_range(d);
            facts.vals.insert(v, Interval::new(lo, hi));
        }
    }
    kernel.add_facts(&mut facts);
    facts.blocks = [Some(Interval::new(0, MAX_GRID - 1)); 3];
    facts.grids = [Some(Interval::new(1, MAX_GRID)); 3];
    facts
}
