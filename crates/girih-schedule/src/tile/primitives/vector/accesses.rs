//! `vector` on GPUs: a thread accesses `lanes` elements at a time.
//!
//! ```text
//! for v in 0..4: free unroll                       local x_w: f32[4]      for v in 0..4: free vector(4)
//!   x = load A[t*4 + v]                                                     x_w[v] = load A[t*4 + v]
//!   y = exp(x)                              -->    for v in 0..4: free unroll
//!   s[t, v] = y                                      s[t, v] = exp(x_w[v])
//! ```
//!
//! Legal for an unrolled loop of that many iterations, and for a reduction that threads share, whose threads then fold groups of
//! neighbours: where some access is aligned to its size, its elements are masked alike, and it passes no other of the same memory.
//! Other accesses stay.

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::edit::{self, const_trip};
use crate::tile::primitives::line::{LoopRef, replace_each};
use crate::tile::wide;

pub fn apply(kernel: &mut Kernel, ctx: &Context, loops: &[LoopRef], lanes: u32) -> Result<(), String> {
    let lanes = u64::from(lanes);
    replace_each(kernel, loops, &mut |kernel, f| {
        let each = moved_at_once(kernel, ctx, f).ok_or("it is not unrolled, and no reduction that threads share")?;
        let wide: Vec<bool> = each.iter().map(|n| n.is_multiple_of(lanes)).collect();
        if !wide.contains(&true) {
            return Err(format!("nothing in it moves {lanes} elements at once"));
        }
        match f.place {
            Place::Thread => in_groups(kernel, f, lanes, &wide),
            _ if const_trip(f) != Some(lanes) => Err(format!("it does not run {lanes} times")),
            _ => Ok(widen(kernel, f, lanes, &wide)),
        }
    })
}

/// The most elements that a loop's accesses can move at once; `None` where each moves one.
pub fn widest(kernel: &Kernel, ctx: &Context, f: &For) -> Option<u32> {
    let each = moved_at_once(kernel, ctx, f)?;
    let extent = const_trip(f)?;
    let lanes = match (f.place, &f.combine) {
        // A group has no more elements than every wide access takes at once, and is small enough that each thread has one.
        (Place::Thread, Some(combine)) => {
            let most = each.iter().copied().filter(|n| *n > 1).min()?;
            let halves = std::iter::successors(Some(most), |n| Some(n / 2)).take_while(|n| *n > 1);
            halves.into_iter().find(|n| extent / n >= combine.ways.into())?
        }
        _ => Some(extent).filter(|n| each.contains(n))?,
    };
    u32::try_from(lanes).ok()
}

/// How many elements along the loop each of its statements moves at once, 1 for those that move none; `None` for loops of other
/// kinds.
fn moved_at_once(kernel: &Kernel, ctx: &Context, f: &For) -> Option<Vec<u64>> {
    let extent = const_trip(f).filter(|_| f.lo.is_const(0) && f.body.iter().all(|s| walk::bodies(s).is_empty()))?;
    match (f.kind, f.place) {
        (LoopKind::Reduce, Place::Thread) if f.combine.is_some() => {}
        (LoopKind::Free | LoopKind::Reduce, Place::Unroll) if [2, 4, 8, 16].contains(&extent) => {}
        _ => return None,
    }
    let varying = walk::refs(&f.body).vals_defined;
    let walk::Effects { bufs_read: read, bufs_written: written, .. } = walk::effects(&f.body);
    let of = |s: &Stmt| match s {
        Stmt::Write { buf, .. } if !read.contains(buf) => wide::shared_lanes(kernel, ctx, s, f.axis, extent),
        Stmt::Read { buf, .. } if !written.contains(buf) => wide::shared_lanes(kernel, ctx, s, f.axis, extent),
        Stmt::Write { .. } | Stmt::Read { .. } => 1,
        _ => wide::lanes(kernel, ctx, s, f.axis, extent, &varying),
    };
    Some((0..f.body.len()).map(|at| if passes_another(&f.body, at) { 1 } else { of(&f.body[at]) }).collect())
}

/// Returns true if a load that goes before all other statements, or a store that goes behind them, would pass another access of the
/// same memory, an atomic, or an access that orders others.
fn passes_another(body: &[Stmt], at: usize) -> bool {
    let stores = |s: &Stmt, base| matches!(s, Stmt::Store { mem, .. } if mem.base == base);
    let loads = |s: &Stmt, base| matches!(s, Stmt::Load { mem, .. } if mem.base == base);
    let orders = |s: &Stmt| {
        let effects = walk::effects(std::slice::from_ref(s));
        effects.atomic || effects.ordered
    };
    match &body[at] {
        Stmt::Load { mem, .. } => body[..at].iter().any(|s| orders(s) || stores(s, mem.base)),
        Stmt::Store { mem, .. } => {
            body[at + 1..].iter().any(|s| orders(s) || stores(s, mem.base) || loads(s, mem.base))
        }
        _ => false,
    }
}

/// A reduction that the threads share, in groups of neighbours.
fn in_groups(kernel: &mut Kernel, f: &For, lanes: u64, wide: &[bool]) -> Result<Vec<Stmt>, String> {
    let (Some(extent), Some(ways)) = (const_trip(f), f.combine.as_ref().map(|c| u64::from(c.ways))) else {
        return Err("it does not run from 0 to a constant".into());
    };
    if !extent.is_multiple_of(lanes) || extent / lanes < ways {
        return Err(format!("{extent} iterations are not a group of {lanes} for each of {ways} threads"));
    }
    let mut lane = f.axis;
    let group = wide::in_groups(kernel, f, lanes, |axis, body| {
        lane = axis;
        body
    });
    let inner = For {
        axis: lane,
        lo: Ix::Const(0),
        hi: Ix::Const(lanes as i64),
        place: Place::Unroll,
        combine: None,
        body: group.body.clone(),
        ..f.clone()
    };
    let body = widen(kernel, &inner, lanes, wide);
    Ok(vec![Stmt::For(Box::new(For { body, ..group }))])
}

/// The loop with its wide accesses before and after it.
fn widen(kernel: &mut Kernel, f: &For, lanes: u64, wide: &[bool]) -> Vec<Stmt> {
    let (mut before, mut body, mut after) = (vec![], vec![], vec![]);
    for (s, wide) in f.body.iter().zip(wide) {
        let value = match s {
            _ if !wide => {
                body.push(s.clone());
                continue;
            }
            Stmt::Store { value: Opnd::Const { .. }, .. } | Stmt::Write { value: Opnd::Const { .. }, .. } => {
                after.push(moved(kernel, f, lanes, |_| vec![s.clone()]));
                continue;
            }
            Stmt::Load { dst: value, .. }
            | Stmt::Read { dst: value, .. }
            | Stmt::Write { value: Opnd::Val(value), .. }
            | Stmt::Store { value: Opnd::Val(value), .. } => *value,
            _ => continue,
        };
        let Val { ty, name } = kernel.vals[value].clone();
        let buf = kernel.bufs.push(Buf::new(format!("{name}_w"), ty, vec![lanes]));
        let other = kernel.vals.push(Val { ty, name });
        before.push(Stmt::Local { buf });
        let at = vec![Ix::Axis(f.axis)];
        let mut access = s.clone();
        if let Stmt::Write { idx, .. } = &mut access {
            let facts = kernel.facts();
            idx.iter_mut().for_each(|ix| *ix = wide::of_group(ix, f.axis, lanes, &facts));
        }
        walk::parts_mut(&mut access, &mut |part| match part {
            walk::PartMut::DefVal(v) if *v == value => *v = other,
            walk::PartMut::Opnd(o) if *o == Opnd::Val(value) => *o = Opnd::Val(other),
            _ => {}
        });
        if matches!(s, Stmt::Load { .. } | Stmt::Read { .. }) {
            let keep = |at| Stmt::Write { buf, idx: at, value: Opnd::Val(other) };
            before.push(moved(kernel, f, lanes, |at| vec![access, keep(at)]));
            body.push(Stmt::Read { dst: value, buf, idx: at });
        } else {
            body.push(Stmt::Write { buf, idx: at, value: Opnd::Val(value) });
            let read = |at| Stmt::Read { dst: other, buf, idx: at };
            after.push(moved(kernel, f, lanes, |at| vec![read(at), access]));
        }
    }
    before.push(f.around(body));
    before.extend(after);
    before
}

/// Statements that move all elements at once.
fn moved(kernel: &mut Kernel, f: &For, lanes: u64, body: impl FnOnce(Vec<Ix>) -> Vec<Stmt>) -> Stmt {
    let axis = edit::new_axis(kernel, f.axis, "");
    let by = BTreeMap::from([(f.axis, Ix::Axis(axis))]);
    wide::at_once(axis, lanes, edit::place_axes(&body(vec![Ix::Axis(f.axis)]), &by, &BTreeMap::new()))
}
