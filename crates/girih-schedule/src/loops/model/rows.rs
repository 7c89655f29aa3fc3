//! Kernels without a matrix product: one loop for each axis of the result, reductions in the rows that need them.
//!
//! ```text
//! for a0 in 0..32: free                       the rows
//!   for k in 0..2048: reduce                  what a whole row needs, once
//!     ...
//!   for a1 in 0..2048: free
//!     store out[a0*2048 + a1] = ...
//! ```

use super::builder::{NestBuilder, Result};
use super::fuse::{Root, Split};
use crate::index::{Facts, Ix, simplify};
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::ScalarOp;

/// Emits the loops of one result, one for each axis, or two for an axis that is split. The loops `first`, which
/// reductions depend on, stand outside.
pub(super) fn write(e: &mut NestBuilder<'_>, of: &Root, out: ValId) -> Result<()> {
    let (root, first) = (of.value, &of.first);
    let shape = Split::extents(of.split, &e.graph.values[root].shape);
    let origin = e.graph.def(root).map_or(crate::graph::OriginId(0), |(n, _)| n.origin);
    let mut order: Vec<usize> = first.iter().copied().collect();
    order.extend((0..shape.len()).filter(|d| !first.contains(d)));
    let mut coords = vec![Ix::Const(0); shape.len()];
    for d in order {
        if let (Some(n), Some(c)) = (shape.get(d), coords.get_mut(d))
            && !n.is_const(1)
        {
            *c = Ix::Axis(e.open(&format!("a{d}"), n.clone(), LoopKind::Free));
        }
    }
    let coords = Split::coords(of.split, coords);
    let value = e.demand(root, &coords)?;
    e.store(out, root, &coords, value, origin);
    Ok(())
}

/// Merges neighbouring loops whose accesses continue from one to the other. `alone`: one worker folds a row, not many
/// together.
pub(super) fn collapse(body: &mut [Stmt], facts: &Facts, alone: bool) {
    for s in body {
        collapse_stmt(s, facts, alone);
    }
}

fn collapse_stmt(s: &mut Stmt, facts: &Facts, alone: bool) {
    let Stmt::For(outer) = s else { return };
    for inner in &mut outer.body {
        collapse_stmt(inner, facts, alone);
    }
    let merged = match &outer.body[..] {
        [Stmt::For(inner)] if outer.kind == inner.kind && outer.combine.is_none() && outer.contraction.is_none() => {
            merged(outer, inner, facts, alone)
        }
        _ => None,
    };
    if let Some(f) = merged {
        *s = Stmt::For(Box::new(f));
    }
}

/// The terms of a row from which on the cost of starting its loop does not matter.
const LONG: i64 = 512;

/// `for i: for j: x[.. i*n + j ..]` as one loop, where every use of `i` and `j` has that form.
fn merged(outer: &For, inner: &For, facts: &Facts, alone: bool) -> Option<For> {
    let n = &inner.hi;
    if !outer.lo.is_const(0) || !inner.lo.is_const(0) || n.has_axis(outer.axis) || inner.contraction.is_some() {
        return None;
    }
    // Rows that are long enough for one worker are folded on their own: rounding errors grow with the length of a
    // chain.
    let rounds = inner.combine.as_ref().is_none_or(|c| match c.op {
        CombineOp::Scalar { op, .. } => matches!(op, ScalarOp::AddF { .. } | ScalarOp::MulF { .. }),
    });
    if alone && outer.kind == LoopKind::Reduce && rounds && n.as_const().is_none_or(|n| n >= LONG) {
        return None;
    }
    let mut fits = true;
    walk::visit(&inner.body, &mut |s| {
        let mut ixs: Vec<Ix> = vec![];
        let is_access = matches!(s, Stmt::Load { .. } | Stmt::Store { .. });
        walk::parts(s, &mut |p| {
            if let walk::Part::Ix(ix) = p {
                ixs.push(ix.clone());
            }
        });
        for ix in ixs {
            let (a, b) = (ix.has_axis(outer.axis), ix.has_axis(inner.axis));
            if !a && !b {
                continue;
            }
            let form = match (ix.linear(outer.axis), ix.linear(inner.axis)) {
                (Some((c, _)), Some((d, _))) => {
                    let want = simplify(&Ix::mul(d.clone(), n.clone()), facts);
                    !d.has_axis(outer.axis) && !c.has_axis(inner.axis) && simplify(&c, facts) == want
                }
                _ => false,
            };
            fits &= is_access && form;
        }
    });
    if !fits {
        return None;
    }
    let mut f = inner.clone();
    f.hi = simplify(&Ix::mul(outer.hi.clone(), n.clone()), facts);
    let outer = outer.axis;
    walk::subst_axis(&mut f.body, outer, &Ix::Const(0));
    Some(f)
}
