//! `merge KERNEL.LOOP`: a reduction and the one inside it become one.
//!
//! ```text
//! for k in 0..8: reduce                              for k in 0..32: reduce combine add(s)
//!   for k1 in 0..4: reduce combine add(s)    -->       s <- x[k] + s
//!     s <- x[k*4 + k1] + s
//! ```
//!
//! Legal where the inner reduction is all that an iteration does, may be reassociated, and both are of constant length; a contraction is
//! not, since its axes have roles.

use crate::index::simplify;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::edit::const_trip;
use crate::tile::numbered::Numbered;
use crate::tile::primitives::line::{LoopRef, replace};

/// Merges a loop with the one inside it; gives the axis of the loop that it makes.
pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<AxisId, String> {
    let mut made = None;
    replace(kernel, at, &mut |kernel, f| {
        let merged = merged(kernel, f)?;
        made = Some(merged.axis);
        Ok(vec![Stmt::For(Box::new(merged))])
    })?;
    made.ok_or_else(|| "the loop is gone".into())
}

/// The loop that a reduction holds and nothing else, where the two can be merged.
pub fn inner(outer: &For) -> Result<&For, String> {
    let [Stmt::For(inner)] = &outer.body[..] else { return Err("it does more than the loop inside".into()) };
    let plain =
        |f: &For| f.kind == LoopKind::Reduce && f.place == Place::None && f.contraction.is_none() && f.stream.is_none();
    if !plain(outer) || !plain(inner) {
        return Err("the two are not reductions along axes without roles".into());
    }
    if outer.combine.is_some() || innermost(inner).is_none_or(|f| f.combine.is_none()) {
        return Err("it may not be reassociated".into());
    }
    Ok(inner)
}

/// A reduction and the one inside it as one.
pub fn merged(kernel: &mut Kernel, outer: &For) -> Result<For, String> {
    let inner = inner(outer)?;
    let (Some(a), Some(b)) = (const_trip(outer), const_trip(inner)) else {
        return Err("an extent is not a constant".into());
    };
    if a.checked_mul(b).is_none_or(|total| i32::try_from(total).is_err()) {
        return Err("it would count beyond 32 bits".into());
    }
    let mut facts = kernel.facts();
    let numbered = Numbered::new([outer, inner], &facts);
    let axis = kernel.axes.push(Axis { name: kernel.axes[outer.axis].name.clone(), from: None });
    facts.set_axis(axis, &Ix::Const(0), &numbered.total);
    let mut body = inner.body.clone();
    numbered.place(&mut body, &Ix::Axis(axis), &facts);
    walk::map_ixs(&mut body, &mut |ix| *ix = simplify(ix, &facts));
    let (lo, hi) = (Ix::Const(0), numbered.total.clone());
    Ok(For { axis, lo, hi, body, ..inner.clone() })
}

/// The last of nested reductions, which says how parts combine.
fn innermost(f: &For) -> Option<&For> {
    match &f.body[..] {
        [Stmt::For(inner)] if inner.kind == LoopKind::Reduce && inner.contraction.is_none() => innermost(inner),
        [Stmt::For(_)] => None,
        _ => Some(f),
    }
}
