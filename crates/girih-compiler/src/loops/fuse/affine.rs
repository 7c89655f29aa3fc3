//! Index expressions as linear functions of one axis.

use crate::index::{AxisId, Ix};
use crate::loops::ir::{Kernel, Obligation, Ty};

/// `ix` as `coefficient * axis + rest`, where neither mentions the axis.
pub fn linear(ix: &Ix, axis: AxisId) -> Option<(Ix, Ix)> {
    if !ix.has_axis(axis) {
        return Some((Ix::Const(0), ix.clone()));
    }
    match ix {
        Ix::Axis(_) => Some((Ix::Const(1), Ix::Const(0))),
        Ix::Add(a, b) => {
            let ((ca, ra), (cb, rb)) = (linear(a, axis)?, linear(b, axis)?);
            Some((Ix::add(ca, cb), Ix::add(ra, rb)))
        }
        Ix::Sub(a, b) => {
            let ((ca, ra), (cb, rb)) = (linear(a, axis)?, linear(b, axis)?);
            Some((Ix::sub(ca, cb), Ix::sub(ra, rb)))
        }
        Ix::Mul(a, b) => {
            let (varying, factor) = match (a.has_axis(axis), b.has_axis(axis)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => return None,
            };
            let (c, r) = linear(varying, axis)?;
            Some((Ix::mul(c, (**factor).clone()), Ix::mul(r, (**factor).clone())))
        }
        _ => None,
    }
}

/// Whether no two points of the axes' box give the same value; with what must hold at launch for that. One stride may
/// be symbolic: then the inner axes must fit below it.
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
        let (c, _) = linear(ix, axis)?;
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

/// Whether an expression can be evaluated before the kernel runs: it mentions parameters, block ids, the grid, and
/// axes whose bounds can be evaluated so.
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
