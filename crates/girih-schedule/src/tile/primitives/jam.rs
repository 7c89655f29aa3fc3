//! `jam`: some iterations of a loop together in each iteration of the free loop inside.
//!
//! ```text
//! for i in 0..64: reduce                         for i8 in 0..8: reduce
//!   for j in 0..256: free                          for j in 0..256: free
//!     s[j] <- x[i, j] + s[j]              -->        a = x[i8*8, j] + s[j]
//!                                                    ...
//!                                                    s[j] <- x[i8*8 + 7, j] + a
//! ```
//!
//! An element that one iteration leaves for the next stays in a register. Legal where the number divides the iterations,
//! and statements read once and then write the same element of a buffer in all of them, or only read it. Rows that fold something are
//! folded at the same time: [`rows`]. An innermost reduction folds several terms in each iteration: [`terms`].

pub mod rows;
pub mod terms;

use std::collections::{BTreeMap, BTreeSet};

use super::line::{LoopRef, replace};
use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::edit::{self, const_trip, new_axis};
use crate::tile::primitives::digits::has_role;

pub fn apply(kernel: &mut Kernel, at: LoopRef, together: u32) -> Result<(), String> {
    let together = i64::from(together);
    replace(kernel, at, &mut |kernel, f| {
        let counts = f.counts_from_zero();
        let trip = const_trip(f).filter(|_| counts).map_or(0, |n| n as i64);
        if !(2..=64).contains(&together) || trip % together != 0 || trip == 0 {
            return Err(format!("{together} of {trip} iterations cannot be taken together"));
        }
        if let Some(fold) = rows::fold_of(f).filter(|_| f.kind == LoopKind::Free) {
            rows::legal(f, fold)?;
            return Ok(vec![Stmt::For(Box::new(rows::jammed(kernel, f, fold, together as u64)))]);
        }
        if terms::are_of(f) {
            return Ok(vec![Stmt::For(Box::new(terms::jammed(kernel, f, together)))]);
        }
        let columns = legal(f)?;
        let kept = kept_once(&columns.body, f.axis)
            .ok_or("an iteration needs more of the one before than an element of each buffer")?;
        Ok(vec![jammed(kernel, f, columns, together, &kept)])
    })
}

/// The free loop whose iterations take several of the outer one together.
pub fn legal(f: &For) -> Result<&For, String> {
    match &f.body[..] {
        [Stmt::For(inner)] if f.place == Place::None && f.lo.is_const(0) && f.combine.is_none() && !has_role(f) => {
            let straight = inner.body.iter().all(|s| edit::is_pure(s) || matches!(s, Stmt::Write { .. }));
            let free = inner.is_free_unplaced();
            let bound = [&inner.lo, &inner.hi, &inner.step].iter().any(|ix| ix.has_axis(f.axis));
            if straight && free && !bound {
                Ok(inner)
            } else {
                Err("no free loop of straight statements stands in it".into())
            }
        }
        _ => Err("it holds more than a free loop, or is placed already".into()),
    }
}

/// The buffers that straight statements read once and then write at the same element for every row. None where they store, or
/// where what one row writes of another buffer may be read for the next.
pub fn kept_once(body: &[Stmt], fold: AxisId) -> Option<BTreeSet<BufId>> {
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

fn jammed(kernel: &mut Kernel, fold: &For, columns: &For, together: i64, kept: &BTreeSet<BufId>) -> Stmt {
    let group = new_axis(kernel, fold.axis, &together.to_string());
    let mut body = vec![];
    // The value that the row before left of each buffer.
    let mut left: BTreeMap<BufId, Opnd> = BTreeMap::new();
    for row in 0..together {
        let renaming = walk::Renaming::fresh(kernel, &columns.body);
        let mut copy = columns.body.clone();
        let place = Ix::Axis(group) * Ix::Const(together) + Ix::Const(row);
        walk::subst_axis(&mut copy, fold.axis, &place);
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
    // Values that all columns have alike are loaded before them.
    let alike = edit::invariant(&body, columns.axis, &BTreeSet::new(), &refs(&body).bufs_read);
    let mut alike = alike.into_iter();
    let (before, body): (Vec<Stmt>, Vec<Stmt>) = body.into_iter().partition(|_| alike.next() == Some(true));
    let columns = columns.around(body);
    let body = before.into_iter().chain([columns]).collect();
    let hi = Ix::Const(const_trip(fold).map_or(0, |n| n as i64) / together);
    Stmt::For(Box::new(For { axis: group, hi, body, ..fold.clone() }))
}
