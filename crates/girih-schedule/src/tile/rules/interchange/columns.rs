//! Folds down the columns of something row-major, as row after row.
//!
//! In: a free loop whose iterations fold, once or several times in turn, what lies a row apart, while neighbouring iterations
//! fold what lies side by side. Out: the loop cut at its loops. Each part runs over all columns, a fold goes over rows outside
//! and columns inside, and what an iteration keeps for itself is an array with an element, or a row of them, for each column.
//! A free loop inside makes a nest of two loops, whose order `interchange` chooses in turn.
//!
//! ```text
//! for j in 0..256: free                          local s: f32[256]
//!   local s                                      local t_of: f32[256]
//!   s = 0.0                                      for j in 0..256: free
//!   for i in 0..64: reduce combine add(s)          s[j] = 0.0
//!     s <- x[i, j] + s                           for i in 0..64: reduce
//!   t = s / 64                            -->      for j in 0..256: free
//!   for i in 0..64: reduce combine max(g)            s[j] <- x[i, j] + s[j]
//!     g <- max(x[i, j] - t, g)                   for j in 0..256: free
//!   ...                                            t_of[j] = s[j] / 64
//!                                                ...
//! ```
//!
//! Iterations of a free loop are independent, so its parts may run one after the other; each column keeps its order, but for
//! the stretches of a long sum of floats.

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::num::ScalarOp;
use crate::tile::affine::Stride;
use crate::tile::edit::{self, at_most, const_trip, new_axis};
use crate::tile::heuristics::interchange::{CHAIN, MOST_KEPT, MOST_STATEMENTS};
use crate::tile::primitives::rfactor::{Fold, Parts};
use crate::tile::primitives::split::Pieces;

use super::strides;

/// A free loop whose iterations each fold a column, and their neighbours the columns beside it.
struct Columns<'a> {
    /// The loop's body, cut at its folds.
    parts: Vec<Part<'a>>,
    /// What each iteration has of its own.
    own: BTreeSet<BufId>,
}

enum Part<'a> {
    Straight(&'a [Stmt]),
    Fold(&'a For),
    /// A free loop, over rows that are stored or kept.
    Each(&'a For),
}

impl Part<'_> {
    fn body(&self) -> &[Stmt] {
        match self {
            Part::Straight(body) => body,
            Part::Fold(f) | Part::Each(f) => &f.body,
        }
    }
}

fn straight(body: &[Stmt]) -> bool {
    body.iter().all(|s| edit::is_pure(s) || matches!(s, Stmt::Write { .. } | Stmt::Store { .. }))
}

impl<'a> Columns<'a> {
    fn of(kernel: &Kernel, f: &'a For) -> Option<Columns<'a>> {
        let (mut parts, mut own, mut from) = (vec![], BTreeSet::new(), 0);
        for (at, s) in f.body.iter().enumerate() {
            match s {
                Stmt::Local { buf } => _ = own.insert(*buf),
                Stmt::For(inner) if inner.place == Place::None && straight(&inner.body) => {
                    let own = if inner.kind == LoopKind::Free { Part::Each(inner) } else { Part::Fold(inner) };
                    parts.extend([Part::Straight(&f.body[from..at]), own]);
                    from = at + 1;
                }
                _ if straight(std::slice::from_ref(s)) => {}
                _ => return None,
            }
        }
        parts.push(Part::Straight(&f.body[from..]));
        parts.retain(|p| !p.body().is_empty());
        let columns = Columns { parts, own };
        columns.side_by_side(kernel, f).then_some(columns)
    }

    /// Whether the folds walk memory the wrong way, and the free loop walks it the right way.
    fn side_by_side(&self, kernel: &Kernel, f: &For) -> bool {
        let varying = refs(&f.body).vals_defined;
        let (mut down, mut other) = (false, false);
        for part in &self.parts {
            let Part::Fold(fold) = part else { continue };
            let along = strides(kernel, &fold.body, fold.axis, &varying, &self.own);
            let across = strides(kernel, &fold.body, f.axis, &varying, &self.own);
            if !across.loads.iter().all(|s| matches!(s, Stride::Unit | Stride::Same))
                || !across.stores.iter().all(|s| *s == Stride::Unit)
            {
                return false;
            }
            for (along, across) in along.loads.iter().zip(&across.loads) {
                match (along, across) {
                    (Stride::Unit, Stride::Same) => other = true,
                    (Stride::Unit | Stride::Same, Stride::Unit) => {}
                    (_, Stride::Unit) => down = true,
                    _ => {}
                }
            }
            // Neighbours that fold what overlaps are as well side by side.
            down |= !other && across.loads.contains(&Stride::Unit);
        }
        down
    }
}

/// How a free loop folds its columns, where its iterations are best run side by side.
pub(in crate::tile) struct ColumnFolds {
    pub folds: usize,
    /// The bytes of what it keeps of each column in rows.
    pub kept: u64,
}

pub(in crate::tile) fn column_folds(kernel: &Kernel, f: &For) -> Option<ColumnFolds> {
    let columns = Columns::of(kernel, f)?;
    let folds = columns.parts.iter().filter(|p| matches!(p, Part::Fold(_))).count();
    Some(ColumnFolds { folds, kept: kept_bytes(kernel, &columns.own) })
}

/// The bytes of the buffers that are not scalars.
fn kept_bytes(kernel: &Kernel, own: &BTreeSet<BufId>) -> u64 {
    let bufs = own.iter().map(|b| &kernel.bufs[*b]).filter(|b| !b.shape.is_empty());
    bufs.map(Buf::bytes).fold(0, u64::saturating_add)
}

/// A loop that folds columns, as row after row; `Ok(None)` where it folds none.
pub(super) fn fold_rows(kernel: &mut Kernel, f: &For) -> Result<Option<Vec<Stmt>>, &'static str> {
    let Some(Columns { parts, own }) = Columns::of(kernel, f) else { return Ok(None) };
    let Some(extent) = at_most(&f.hi).filter(|n| *n >= 4) else {
        return Err("its free loop has no constant bound, or few iterations");
    };
    if !f.lo.is_const(0) {
        return Err("its free loop does not start at 0");
    }
    if kept_bytes(kernel, &own).saturating_mul(extent as u64) > MOST_KEPT {
        return Err("what it keeps of its columns fills the caches");
    }
    let defined = refs(&f.body).vals_defined;
    for part in &parts {
        let (Part::Fold(fold) | Part::Each(fold)) = part else { continue };
        let bounds = [&fold.lo, &fold.hi, &fold.step];
        if bounds.iter().any(|ix| ix.has_axis(f.axis)) {
            return Err("the bounds of its loops depend on each other");
        }
        if bounds.iter().any(|ix| ix.vals().iter().any(|v| defined.contains(v))) {
            return Err("a column decides how many rows are folded");
        }
    }
    // What one part computes for another: an array with an element for each column.
    let (mut of, mut home) = (BTreeMap::new(), BTreeMap::new());
    for (at, part) in parts.iter().enumerate() {
        let here = refs(part.body());
        for v in here.vals_used.iter().filter(|v| home.get(*v).is_some_and(|h| *h != at)) {
            let Val { ty, name } = kernel.vals[*v].clone();
            if !matches!(ty, Ty::Num(_)) {
                return Err("a part of it passes a pointer to another");
            }
            of.entry(*v).or_insert_with(|| kernel.bufs.push(Buf::new(format!("{name}_of"), ty, vec![extent as u64])));
        }
        home.extend(here.vals_defined.iter().map(|v| (*v, at)));
    }
    for &b in &own {
        kernel.bufs[b].shape.push(extent as u64);
    }
    let mut out: Vec<Stmt> = own.iter().chain(of.values()).map(|&buf| Stmt::Local { buf }).collect();
    let mut first = true;
    for (at, part) in parts.iter().enumerate() {
        let here = refs(part.body());
        let mut body = vec![];
        let mut renaming = walk::Renaming::default();
        for (v, buf) in of.iter().filter(|(v, _)| here.vals_used.contains(v) && home.get(v) != Some(&at)) {
            let copy = kernel.vals[*v].clone();
            let dst = kernel.vals.push(copy);
            renaming.vals.insert(*v, dst);
            body.push(Stmt::Read { dst, buf: *buf, idx: vec![Ix::Axis(f.axis)] });
        }
        let from = body.len();
        body.extend(part.body().iter().filter(|s| !matches!(s, Stmt::Local { .. })).cloned());
        renaming.apply(&mut body[from..]);
        for (v, buf) in of.iter().filter(|(v, _)| home.get(v) == Some(&at)) {
            body.push(Stmt::Write { buf: *buf, idx: vec![Ix::Axis(f.axis)], value: Opnd::Val(*v) });
        }
        for s in &mut body {
            match s {
                Stmt::Read { buf, idx, .. } | Stmt::Write { buf, idx, .. } if own.contains(buf) => {
                    idx.push(Ix::Axis(f.axis));
                }
                _ => {}
            }
        }
        if body.is_empty() {
            continue;
        }
        // Each loop gets an axis of its own; the first to need one keeps the old.
        let columns = For { body, ..f.clone() };
        let columns = if std::mem::take(&mut first) { columns } else { over_new_axis(kernel, columns) };
        match part {
            Part::Straight(_) => out.push(Stmt::For(Box::new(columns))),
            Part::Each(inner) => {
                let each = For { body: columns.body, ..(*inner).clone() };
                out.push(Stmt::For(Box::new(For { body: vec![Stmt::For(Box::new(each))], ..columns })));
            }
            Part::Fold(fold) => match chained(kernel, fold) {
                Some(sum) => out.extend(in_stretches(kernel, sum, fold, columns, extent)),
                None => out.push(rows(kernel, For { body: vec![], ..(*fold).clone() }, columns)),
            },
        }
    }
    Ok(Some(out))
}

/// Rows that are folded together, so that what is kept of a column is read and written once for them; the first number that
/// divides all. Memory is read from as many places at a time: with eight a core takes a fifth more of it than with four.
const TOGETHER: [i64; 2] = [8, 4];

/// `columns` for each iteration of a fold.
fn rows(kernel: &mut Kernel, fold: For, columns: For) -> Stmt {
    let of = |fold: For, columns| {
        Stmt::For(Box::new(For { combine: None, contraction: None, body: vec![Stmt::For(Box::new(columns))], ..fold }))
    };
    let kept = kept_once(&columns.body, fold.axis).filter(|_| columns.body.len() <= MOST_STATEMENTS);
    let trip = const_trip(&fold).map(|n| n as i64);
    let together = trip.and_then(|n| TOGETHER.into_iter().find(|t| n > *t && n % t == 0));
    let (Some(trip), Some(together), Some(kept)) = (trip, together, kept) else { return of(fold, columns) };
    let group = new_axis(kernel, fold.axis, &together.to_string());
    let mut body = vec![];
    // What the row before left of each buffer.
    let mut left: BTreeMap<BufId, Opnd> = BTreeMap::new();
    for row in 0..together {
        let renaming = walk::Renaming::fresh(kernel, &columns.body);
        let mut copy = columns.body.clone();
        let place = Ix::Axis(group) * Ix::Const(together) + Ix::Const(row);
        walk::subst_axes(&mut copy, &mut |a| (a == fold.axis).then(|| place.clone()));
        renaming.apply(&mut copy);
        let mut known = BTreeMap::new();
        for s in copy {
            match &s {
                Stmt::Read { dst, buf, .. } if left.contains_key(buf) => _ = known.insert(*dst, left[buf]),
                Stmt::Write { buf, value, .. } if kept.contains(buf) => {
                    let value = match value {
                        Opnd::Val(v) => known.get(v).copied().unwrap_or(*value),
                        _ => *value,
                    };
                    left.insert(*buf, value);
                    if row == together - 1 {
                        body.push(s);
                    }
                }
                _ => body.push(s),
            }
        }
        walk::subst_vals(&mut body, &mut |v| known.get(&v).copied());
    }
    // What all columns have alike is loaded before them.
    let alike = edit::invariant(&body, columns.axis, &BTreeSet::new(), &refs(&body).bufs_read);
    let mut alike = alike.into_iter();
    let (before, body): (Vec<Stmt>, Vec<Stmt>) = body.into_iter().partition(|_| alike.next() == Some(true));
    let columns = Stmt::For(Box::new(For { body, ..columns }));
    let body = before.into_iter().chain([columns]).collect();
    let hi = Ix::Const(trip / together);
    Stmt::For(Box::new(For { axis: group, hi, combine: None, contraction: None, body, ..fold }))
}

/// The buffers that straight statements read once and then write at the same element for every row. None where they store, or
/// where what one row writes of another buffer may be read for the next.
fn kept_once(body: &[Stmt], fold: AxisId) -> Option<BTreeSet<BufId>> {
    let (mut reads, mut written) = (BTreeMap::<BufId, Vec<&[Ix]>>::new(), BTreeMap::<BufId, &[Ix]>::new());
    for s in body {
        match s {
            Stmt::Read { buf, .. } if written.contains_key(buf) => return None,
            Stmt::Read { buf, idx, .. } => reads.entry(*buf).or_default().push(idx),
            Stmt::Write { buf, idx, .. } if written.insert(*buf, idx).is_some() => return None,
            Stmt::Store { .. } => return None,
            _ => {}
        }
    }
    let of_all_rows = |ix: &Ix| !ix.has_axis(fold) && ix.vals().is_empty();
    written.retain(|buf, _| reads.contains_key(buf));
    let kept = |(buf, idx): (&BufId, &&[Ix])| reads[buf][..] == [*idx] && idx.iter().all(of_all_rows);
    written.iter().all(kept).then(|| written.into_keys().collect())
}

/// Whether a fold is a sum of floats, of more terms than should go in one chain.
fn chained(kernel: &Kernel, fold: &For) -> Option<Fold> {
    let sum = Fold::of(kernel, fold).ok().filter(|sum| matches!(sum.op, ScalarOp::AddF { .. }))?;
    let long = fold.lo.is_const(0) && fold.step.is_const(1) && at_most(&fold.hi).is_none_or(|n| n > 2 * CHAIN);
    long.then_some(sum)
}

/// The rows of a sum in stretches: each is summed up on its own, and then added to what was before.
fn in_stretches(kernel: &mut Kernel, sum: Fold, fold: &For, mut columns: For, extent: i64) -> Vec<Stmt> {
    let name = format!("{}_part", kernel.bufs[sum.acc].name);
    let part = kernel.bufs.push(Buf::new(name, Ty::Num(sum.dtype), vec![extent as u64]));
    let renaming = walk::Renaming { bufs: BTreeMap::from([(sum.acc, part)]), ..Default::default() };
    renaming.apply(&mut columns.body);
    let [stretch, within] = ["1", "2"].map(|suffix| new_axis(kernel, fold.axis, suffix));
    let pieces = Pieces::of(fold, CHAIN);
    let at = pieces.at(stretch, within);
    walk::subst_axes(&mut columns.body, &mut |a| (a == fold.axis).then(|| at.clone()));
    let [over, one] = pieces.loops(fold, [stretch, within], &kernel.facts());
    let (like, end) = (columns.axis, columns.hi.clone());
    let inner = rows(kernel, one, columns);

    let of = |kernel: &mut Kernel, body: &dyn Fn(&mut Kernel, Ix) -> Vec<Stmt>| {
        let axis = new_axis(kernel, like, "");
        let body = body(kernel, Ix::Axis(axis));
        edit::free_loop(axis, end.clone(), body)
    };
    let clear = of(kernel, &|_, j| vec![Stmt::Write { buf: part, idx: vec![j], value: sum.neutral() }]);
    let add = of(kernel, &|kernel, j| {
        let own = Parts::Buffer { buf: part, idx: vec![j.clone()] };
        sum.add_part(kernel, vec![j], own)
    });
    let over = For { combine: None, contraction: None, body: vec![clear, inner, add], ..over };
    vec![Stmt::Local { buf: part }, Stmt::For(Box::new(over))]
}

/// The same loop over a new axis of the same name.
fn over_new_axis(kernel: &mut Kernel, f: For) -> For {
    let fresh = new_axis(kernel, f.axis, "");
    let renaming = walk::Renaming { axes: BTreeMap::from([(f.axis, fresh)]), ..Default::default() };
    let mut body = f.body;
    renaming.apply(&mut body);
    For { axis: fresh, body, ..f }
}
