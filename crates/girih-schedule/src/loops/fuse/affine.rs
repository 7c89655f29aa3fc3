//! The properties of an index expression that a splice and a promotion need: are its values distinct, can it be
//! evaluated at launch?

use crate::index::{AxisId, Ix};
use crate::loops::ir::{Kernel, Obligation, Ty};

/// Returns the conditions at launch under which no two points of the axes' box give the same value; `None` if two may.
/// One stride may be symbolic: then the inner axes must fit below it.
pub fn injective(
    ix: &Ix,
    axes: &[(AxisId, i64)],
    outer: &[(AxisId, Ix, Ix)],
    kernel: &Kernel,
    no_wrap: bool,
) -> Option<Vec<Obligation>> {
    let mut strides = Vec::new();
    let mut symbolic = None;
    for &(axis, n) in axes {
        let (c, _) = ix.linear(axis)?;
        match c {
            Ix::Const(c) => strides.push((c.unsigned_abs() as i128, n as i128)),
            c if symbolic.is_none() => symbolic = Some(c),
            _ => return None,
        }
    }
    strides.sort();
    let mut span = 0i128;
    for (c, n) in strides {
        if c <= span {
            return None;
        }
        span += c * (n - 1);
    }
    let Some(stride) = symbolic else { return Some(Vec::new()) };
    if !no_wrap || !at_launch(&stride, outer, kernel) {
        return None;
    }
    let axes = outer.iter().filter(|(a, _, _)| stride.has_axis(*a)).cloned().collect();
    Some(vec![Obligation { ix: stride, axes, lo: i64::try_from(span + 1).ok()?, hi: i64::MAX }])
}

/// Returns true if an expression can be evaluated before the kernel runs: it mentions only parameters, block ids, the
/// grid, and axes whose bounds can be evaluated so.
pub fn at_launch(ix: &Ix, outer: &[(AxisId, Ix, Ix)], kernel: &Kernel) -> bool {
    !ix.any_leaf(&mut |leaf| match leaf {
        Ix::Val { val, .. } => !kernel.params.iter().any(|p| p.val == *val && matches!(p.ty, Ty::Num(_))),
        Ix::Axis(a) => {
            let Some(at) = outer.iter().position(|(b, _, _)| a == b) else { return true };
            let (_, lo, hi) = &outer[at];
            !at_launch(lo, &outer[..at], kernel) || !at_launch(hi, &outer[..at], kernel)
        }
        _ => false,
    })
}
