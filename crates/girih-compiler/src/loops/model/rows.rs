//! Kernels without a matrix product: one loop for each axis of the result, reductions in the rows that need them.
//!
//! ```text
//! for a0 in 0..32: free                       the rows, which blocks share
//!   for k in 0..2048: reduce                  what a whole row needs, once
//!     ...
//!   for a1 in 0..2048: free
//!     store out[a0*2048 + a1] = ...
//! ```

use std::collections::BTreeSet;

use super::emit::{Emitter, Result};
use crate::graph::ir::{Graph, ValueId};
use crate::index::{AxisId, Facts, Ix, simplify};
use crate::loops::ir::*;
use crate::loops::walk;

/// Emits the loops of one result. `first` are the axes that reductions depend on; their loops stand outside.
pub(super) fn emit(e: &mut Emitter<'_>, root: ValueId, out: ValId, first: &BTreeSet<usize>) -> Result<()> {
    let shape = e.graph.values[root].shape.clone();
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
    let value = e.demand(root, &coords)?;
    e.store(out, root, &coords, value, origin);
    Ok(())
}

/// A kernel whose outer loops are bound to the grid, and the blocks it takes.
pub(super) struct Bound {
    pub kernel: Kernel,
    pub grid: [Ix; 3],
}

/// Elements that a block should at least compute, so that starting it does not show.
const BLOCK_WORK: i64 = 1 << 14;
/// Elements of an innermost loop from which it is shared among blocks.
const SPLIT_FROM: i64 = 1 << 13;
/// Extents that are not known are taken to be this long.
const GUESS: i64 = 512;

/// Merges neighbouring loops whose accesses walk on from one to the other.
pub(super) fn collapse(kernel: &mut Kernel, facts: &Facts) {
    for s in &mut kernel.body {
        collapse_stmt(s, facts);
    }
}

fn collapse_stmt(s: &mut Stmt, facts: &Facts) {
    let Stmt::For(outer) = s else { return };
    for inner in &mut outer.body {
        collapse_stmt(inner, facts);
    }
    let merged = match &outer.body[..] {
        [Stmt::For(inner)] if outer.kind == LoopKind::Free && inner.kind == LoopKind::Free => {
            merged(outer, inner, facts)
        }
        _ => None,
    };
    if let Some(f) = merged {
        *s = Stmt::For(Box::new(f));
    }
}

/// `for i: for j: x[.. i*n + j ..]` as one loop, where every use of `i` and `j` has that form.
fn merged(outer: &For, inner: &For, facts: &Facts) -> Option<For> {
    let n = &inner.hi;
    if !outer.lo.is_const(0) || !inner.lo.is_const(0) || n.has_axis(outer.axis) {
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
    walk::subst_axes(&mut f.body, &mut |a| (a == outer).then_some(Ix::Const(0)));
    Some(f)
}

/// Binds the outer loops to the grid: a chain of free loops becomes blocks of rows, and a long innermost loop is cut.
pub(super) fn bind(graph: &Graph, mut kernel: Kernel, threads: u32) -> Bound {
    let one = Ix::Const(1);
    let mut body = std::mem::take(&mut kernel.body);
    let at = body.iter().rposition(|s| matches!(s, Stmt::For(f) if f.kind == LoopKind::Free));
    let whole = |kernel: Kernel, body| Bound {
        kernel: Kernel { body, ..kernel },
        grid: [one.clone(), one.clone(), one.clone()],
    };
    // Reductions before the loop are made by whoever needs them: more than one block would repeat them.
    let Some(at) = at.filter(|at| !body[..*at].iter().any(|s| matches!(s, Stmt::For(_)))) else {
        return whole(kernel, body);
    };
    let Stmt::For(first) = body.remove(at) else { return whole(kernel, body) };
    let rest = body.split_off(at);
    let (mut chain, mut inner) = (vec![], *first);
    let inner = loop {
        match inner.body.pop() {
            Some(Stmt::For(next))
                if inner.body.is_empty() && next.kind == LoopKind::Free && inner.contraction.is_none() =>
            {
                chain.push(inner);
                inner = *next;
            }
            last => {
                inner.body.extend(last);
                break inner;
            }
        }
    };
    let leaf = !inner.body.iter().any(|s| matches!(s, Stmt::For(_)));
    let guess = |ix: &Ix| {
        ix.eval(&|leaf| match leaf {
            Ix::Const(c) => *c,
            _ => GUESS,
        })
    };
    // The loop that stays in the block as a vector; without one, everything but the loop's body is rows.
    let (rows, vector) = if leaf { (chain, Some(inner)) } else { (chain.into_iter().chain([inner]).collect(), None) };
    let work: i64 = match &vector {
        Some(f) => guess(&f.hi).max(1),
        None => rows.last().map_or(1, |f| work_of(&f.body, &guess)),
    };
    if rows.iter().any(|f| f.hi.is_const(0)) {
        let body = body.into_iter().chain(rest).collect();
        return whole(kernel, body);
    }
    let total = rows.iter().fold(Ix::Const(1), |n, f| Ix::mul(n, f.hi.clone()));
    let facts = graph.facts();
    let total = simplify(&total, &facts);
    let count = guess(&total).max(1);
    let wanted = i64::from(threads.max(1)) * 4;
    let mut facts = facts;
    facts.blocks = Default::default();

    let mut out = body;
    let mut grid = [one.clone(), one.clone(), one.clone()];
    // A power of two, so that blocks are even where the rows are.
    let per_block = (BLOCK_WORK / work).clamp(1, (count / wanted).max(1));
    let per_block = 1 << per_block.ilog2();
    let mut body = match vector {
        Some(mut f) => {
            // Few rows of many elements: blocks share them.
            if work >= SPLIT_FROM && count < wanted {
                let chunk = ((work * count / wanted).clamp(1, work) + 255) / 256 * 256;
                let chunk = chunk.max(BLOCK_WORK / 4);
                let start = Ix::mul(Ix::Block(1), Ix::Const(chunk));
                grid[1] = simplify(&Ix::ceil_div(f.hi.clone(), Ix::Const(chunk)), &facts);
                let left = Ix::sub(f.hi.clone(), start.clone());
                f.hi = Ix::min(Ix::Const(chunk), left);
                let axis = f.axis;
                let moved = Ix::add(start, Ix::Axis(axis));
                walk::subst_axes(&mut f.body, &mut |a| (a == axis).then(|| moved.clone()));
                if grid[1].as_const().is_some_and(|g| g * chunk == work) {
                    f.hi = Ix::Const(chunk);
                }
            }
            vec![Stmt::For(Box::new(f))]
        }
        None => match rows.last() {
            Some(f) => f.body.clone(),
            None => vec![],
        },
    };
    if !rows.is_empty() {
        grid[0] = if per_block == 1 {
            total.clone()
        } else {
            simplify(&Ix::ceil_div(total.clone(), Ix::Const(per_block)), &facts)
        };
        let row_axis = (per_block > 1).then(|| kernel.axes.push(Axis { name: "r".into(), from: None }));
        let row = match row_axis {
            Some(axis) => Ix::add(Ix::mul(Ix::Block(0), Ix::Const(per_block)), Ix::Axis(axis)),
            None => Ix::Block(0),
        };
        // The row's number gives each loop's position, the last loop running fastest.
        let mut stride = Ix::Const(1);
        let mut places: Vec<(AxisId, Ix)> = vec![];
        for (i, f) in rows.iter().enumerate().rev() {
            let q = Ix::floor_div(row.clone(), stride.clone());
            places.push((f.axis, if i == 0 { q } else { Ix::modulo(q, f.hi.clone()) }));
            stride = simplify(&Ix::mul(stride, f.hi.clone()), &facts);
        }
        walk::subst_axes(&mut body, &mut |a| places.iter().find(|(b, _)| *b == a).map(|(_, ix)| ix.clone()));
        let mut known = facts.clone();
        known.blocks[0] = Some(crate::index::Interval::new(0, i128::from(u32::MAX)));
        if let Some(axis) = row_axis {
            known.set_axis(axis, &Ix::Const(0), &Ix::Const(per_block));
        }
        simplify_all(&mut body, &known);
        if let Some(axis) = row_axis {
            let left = Ix::sub(total.clone(), Ix::mul(Ix::Block(0), Ix::Const(per_block)));
            let hi = match total.as_const() {
                Some(n) if n % per_block == 0 => Ix::Const(per_block),
                _ => Ix::min(Ix::Const(per_block), left),
            };
            let (lo, step, place) = (Ix::Const(0), Ix::Const(1), Place::None);
            let kind = LoopKind::Free;
            body = vec![Stmt::For(Box::new(For {
                axis,
                lo,
                hi,
                step,
                kind,
                place,
                combine: None,
                contraction: None,
                body,
            }))];
        }
    }
    out.extend(body);
    out.extend(rest);
    kernel.body = out;
    Bound { kernel, grid }
}

/// Iterations of the loops in a body, roughly.
fn work_of(body: &[Stmt], guess: &dyn Fn(&Ix) -> i64) -> i64 {
    let of = |s: &Stmt| match s {
        Stmt::For(f) => guess(&f.hi).max(1).saturating_mul(work_of(&f.body, guess)),
        _ => 0,
    };
    body.iter().map(of).fold(1, i64::saturating_add)
}

pub(super) fn simplify_all(body: &mut [Stmt], facts: &Facts) {
    walk::map_ixs(body, &mut |ix| *ix = simplify(ix, facts));
}
