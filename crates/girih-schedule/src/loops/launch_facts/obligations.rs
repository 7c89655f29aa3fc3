//! Checks whether the facts that a kernel's fast version relies on hold for a launch.
//!
//! In: a kernel with obligations, the launch's grid and arguments. Out: one truth value, by interval arithmetic in 128
//! bits: it may be false although every single value fits, but is never true if one does not.

use std::collections::BTreeMap;

use crate::base::launch::Launch;
use crate::loops::fuse::ranges::{Range, interval};
use crate::loops::ir::{AxisId, Ix, Kernel, Obligation, Ty};
use crate::num::convert::sign_extend;

/// Returns true if every obligation of the kernel holds for the launch.
pub fn holds(kernel: &Kernel, launch: &Launch) -> bool {
    kernel.obligations.iter().all(|o| fulfilled(o, kernel, launch))
}

fn fulfilled(o: &Obligation, kernel: &Kernel, launch: &Launch) -> bool {
    let mut axes: BTreeMap<AxisId, Range> = BTreeMap::new();
    for (axis, lo, hi) in &o.axes {
        let (lo, hi) = (value(lo, &axes, kernel, launch), value(hi, &axes, kernel, launch));
        let (Some(lo), Some(hi)) = (lo, hi) else { return false };
        if hi.1 <= lo.0 {
            // The loop never runs.
            return true;
        }
        axes.insert(*axis, (lo.0, hi.1 - 1));
    }
    let Some((least, most)) = value(&o.ix, &axes, kernel, launch) else { return false };
    o.lo as i128 <= least && most <= o.hi as i128
}

/// The values an expression takes over the launch; `None` when it mentions something that a launch does not determine.
fn value(ix: &Ix, axes: &BTreeMap<AxisId, Range>, kernel: &Kernel, launch: &Launch) -> Option<Range> {
    let leaf = |leaf: &Ix| -> Option<Range> {
        let one = |v: i128| Some((v, v));
        match leaf {
            Ix::Axis(a) => axes.get(a).copied(),
            Ix::Block(d) => Some((0, *launch.grid.get(*d as usize)? as i128 - 1)),
            Ix::Grid(d) => one(*launch.grid.get(*d as usize)? as i128),
            Ix::Val { val, zext } => {
                let at = kernel.params.iter().position(|p| p.val == *val)?;
                let (Ty::Num(d), bits) = (kernel.params[at].ty, *launch.args.get(at)?) else { return None };
                let bits = bits & d.mask();
                one(if *zext { bits as i128 } else { sign_extend(d, bits) as i128 })
            }
            _ => None,
        }
    };
    let known = !ix.any_leaf(&mut |l| !matches!(l, Ix::Const(_)) && leaf(l).is_none());
    known.then(|| interval(ix, &|l| leaf(l).unwrap_or((0, 0))))
}
