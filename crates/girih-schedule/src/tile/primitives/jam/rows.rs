//! `jam` of rows that fold something: several of them are folded at the same time.
//!
//! ```text
//! for i in 0..4096: free                           for i2 in 0..2048: free
//!   local s                                          local s
//!   s = 0.0                                          local s_1
//!   for k in 0..4096: reduce combine add(s)          s = 0.0
//!     %w = load w[i*4096 + k]              -->       s_1 = 0.0
//!     %x = load x[k]                                 for k in 0..4096: reduce combine add(s, s_1)
//!     s <- %w * %x + s                                 %w = load w[i2*8192 + k]
//!   store y[i] = s                                     %x = load x[k]
//!                                                      s <- %w * %x + s
//!                                                      %w_1 = load w[i2*8192 + 4096 + k]
//!                                                      s_1 <- %w_1 * %x + s_1
//!                                                    store y[i2*2] = s
//!                                                    store y[i2*2 + 1] = s_1
//! ```
//!
//! Values that all rows have alike are computed once for them; each row keeps the order of its sum. Legal for free rows that hold one
//! reduction which may be reassociated, write buffers of their own only, and are all as long.

use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk::{self, refs};
use crate::tile::edit::{self, const_trip, new_axis};

/// The only loop in a row's body, where it is a fold that may be reassociated.
pub fn fold_of(rows: &For) -> Option<&For> {
    let mut loops = rows.body.iter().filter(|s| !walk::bodies(s).is_empty());
    let (Some(Stmt::For(fold)), None) = (loops.next(), loops.next()) else { return None };
    let plain = fold.kind == LoopKind::Reduce && fold.combine.is_some() && fold.place == Place::None;
    (plain && fold.contraction.is_none() && fold.body.iter().all(|s| walk::bodies(s).is_empty())).then_some(fold)
}

pub fn legal(rows: &For, fold: &For) -> Result<(), String> {
    let straight = |s: &Stmt| edit::is_pure(s) || matches!(s, Stmt::Local { .. } | Stmt::Write { .. });
    let outside = |s: &Stmt| straight(s) || matches!(s, Stmt::Store { order: Order::Weak, .. } | Stmt::For(_));
    if rows.place != Place::None || !fold.body.iter().all(straight) || !rows.body.iter().all(outside) {
        return Err("it holds more than one fold of loads and arithmetic".into());
    }
    let bounds = [&fold.lo, &fold.hi, &fold.step];
    let defined = refs(&rows.body).vals_defined;
    if bounds.iter().any(|ix| ix.has_axis(rows.axis) || ix.vals().iter().any(|v| defined.contains(v))) {
        return Err("a row decides how much is folded".into());
    }
    let own: BTreeSet<BufId> =
        rows.body.iter().filter_map(|s| if let Stmt::Local { buf } = s { Some(*buf) } else { None }).collect();
    if refs(&rows.body).bufs_written.iter().any(|b| !own.contains(b)) {
        return Err("rows write what others may read".into());
    }
    Ok(())
}

/// The values of a fold that are the same for all rows.
fn shared(rows: &For, fold: &For) -> BTreeSet<ValId> {
    let all = refs(&rows.body);
    let own = all.vals_defined.difference(&refs(&fold.body).vals_defined).copied().collect();
    let same = edit::invariant(&fold.body, rows.axis, &own, &all.bufs_written);
    fold.body.iter().zip(same).filter(|(_, same)| *same).filter_map(|(s, _)| walk::def(s)).collect()
}

/// `together` rows at a time.
pub fn jammed(kernel: &mut Kernel, rows: &For, fold: &For, together: u64) -> For {
    let group = new_axis(kernel, rows.axis, &together.to_string());
    let same = shared(rows, fold);
    let at = rows.body.iter().position(|s| matches!(s, Stmt::For(_))).unwrap_or(rows.body.len());
    let (mut before, mut folds, mut after, mut accs) = (vec![], vec![], vec![], vec![]);
    for row in 0..together {
        let mut renaming = walk::Renaming::default();
        if row > 0 {
            renaming = walk::Renaming::fresh(kernel, &rows.body);
            renaming.vals.retain(|v, _| !same.contains(v));
            renaming.axes.remove(&fold.axis);
        }
        let place = Ix::Axis(group) * Ix::Const(together as i64) + Ix::Const(row as i64);
        let of_row = |body: &[Stmt]| {
            let mut copy = body.to_vec();
            walk::subst_axis(&mut copy, rows.axis, &place);
            renaming.apply(&mut copy);
            copy
        };
        let is_shared = |s: &Stmt| walk::def(s).is_some_and(|v| same.contains(&v));
        before.extend(of_row(&rows.body[..at]));
        folds.extend(of_row(&fold.body).into_iter().filter(|s| row == 0 || !is_shared(s)));
        after.extend(of_row(rows.body.get(at + 1..).unwrap_or(&[])));
        let own = fold.combine.iter().flat_map(|c| &c.accs);
        accs.extend(own.map(|b| renaming.bufs.get(b).copied().unwrap_or(*b)));
    }
    let combine = fold.combine.as_ref().map(|c| Combine { accs, ..c.clone() });
    let fold = For { combine, body: folds, ..fold.clone() };
    let body = before.into_iter().chain([Stmt::For(Box::new(fold))]).chain(after).collect();
    let hi = Ix::Const(const_trip(rows).map_or(0, |n| n as i64) / together as i64);
    For { axis: group, hi, body, ..rows.clone() }
}
