//! Folds down the columns of something row-major: which loops they are, and how they become row after row.
//!
//! A free loop whose iterations fold, once or several times in turn, what lies a row apart, while neighbouring iterations fold what lies
//! side by side. `distribute` puts it into its folds; a long sum of floats goes in stretches before (`rfactor`), and rows are folded
//! together after (`jam`).

use std::collections::BTreeSet;

use crate::loops::ir::*;
use crate::loops::walk::refs;
use crate::num::ScalarOp;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, at_most, const_trip};
use crate::tile::heuristics::interchange::{CHAIN, MOST_KEPT, MOST_STATEMENTS};
use crate::tile::primitives::rfactor::Fold;
use crate::tile::primitives::{self, LoopRef, Names, Script, Step, jam};

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

    /// Returns true for a read of what an iteration has of its own.
    fn is_own(&self, s: &Stmt) -> bool {
        matches!(s, Stmt::Read { buf, .. } if self.own.contains(buf))
    }

    /// Whether the folds walk memory the wrong way, and the free loop walks it the right way.
    fn side_by_side(&self, kernel: &Kernel, f: &For) -> bool {
        let varying = refs(&f.body).vals_defined;
        let (mut down, mut other) = (false, false);
        for part in &self.parts {
            let Part::Fold(fold) = part else { continue };
            let along = strides(kernel, &fold.body, fold.axis, &varying, &self.own);
            let mut across = strides(kernel, &fold.body, f.axis, &varying, &self.own);
            let loads = fold.body.iter().filter(|s| matches!(s, Stmt::Load { .. } | Stmt::Read { .. }));
            // Elements close together come out of whole vectors.
            for (s, across) in loads.filter(|s| !self.is_own(s)).zip(&mut across.loads) {
                let Stmt::Load { mem, .. } = s else { continue };
                let apart = affine::coef(&mem.index, f.axis, &varying).and_then(|c| c.as_const());
                let down = affine::coef(&mem.index, fold.axis, &varying).and_then(|c| c.as_const());
                if apart.is_some_and(|n| (2..=MOST_APART).contains(&n)) && down.is_some_and(|n| n > MOST_APART) {
                    *across = Stride::Unit;
                }
            }
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

/// Makes row after row of a loop that folds columns.
pub(super) fn fold_rows(script: &mut Script<'_>, at: LoopRef) -> Result<(), String> {
    let kernel = script.kernel.clone();
    let names = Names::of(&kernel);
    let f = primitives::loop_at(&kernel, at)?;
    let Columns { parts, own } = Columns::of(&kernel, f).ok_or("it folds no columns")?;
    let Some(extent) = at_most(&f.hi).filter(|n| *n >= 4) else {
        return Err("its free loop has no constant bound, or few iterations".into());
    };
    if kept_bytes(&kernel, &own).saturating_mul(extent as u64) > MOST_KEPT {
        return Err("what it keeps of its columns fills the caches".into());
    }
    let mut folds = vec![];
    for part in &parts {
        let Part::Fold(fold) = part else { continue };
        let found = names.name(fold).ok_or("a fold has no name")?;
        folds.push(match is_chain(&kernel, fold) {
            true => {
                let name = &kernel.axes[fold.axis].name;
                let names = ["1", "2"].map(|n| format!("{name}{n}"));
                let step = Step::Rfactor { at: found, size: CHAIN as u32, names };
                *script.step(step)?.last().ok_or("it makes two loops")?
            }
            false => found,
        });
    }
    script.step(Step::Distribute { at })?;
    for fold in folds {
        let Some(together) = script.find(fold).and_then(|f| together(&f)) else { continue };
        script.step(Step::Jam { at: fold, together })?;
    }
    Ok(())
}

/// Rows that are folded together, so that the values kept of a column are read and written once for them; the first number that
/// divides all. Memory is read from as many places at a time: with eight a core takes a fifth more of it than with four.
const TOGETHER: [u64; 2] = [8, 4];

fn together(fold: &For) -> Option<u32> {
    let columns = jam::legal(fold).ok()?;
    jam::kept_once(&columns.body, fold.axis).filter(|_| columns.body.len() <= MOST_STATEMENTS)?;
    let trip = const_trip(fold)?;
    TOGETHER.into_iter().find(|t| trip > *t && trip % t == 0).map(|t| t as u32)
}

/// Returns true for a sum of floats of more terms than should go in one chain.
fn is_chain(kernel: &Kernel, fold: &For) -> bool {
    let sum = Fold::of(kernel, fold).is_ok_and(|sum| matches!(sum.op, ScalarOp::AddF { .. }));
    sum && fold.counts_from_zero() && at_most(&fold.hi).is_none_or(|n| n > 2 * CHAIN)
}
