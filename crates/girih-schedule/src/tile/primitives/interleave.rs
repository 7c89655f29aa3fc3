//! `interleave`: an innermost loop over a few kinds of elements is written out, and all that it stores stands behind.
//!
//! ```text
//! for r in 0..512: free                            for r in 0..512: free
//!   for c in 0..2: free                              %a = load re[r]
//!     %a = load re[r] where c < 1 else 0     -->     %b = load im[r]
//!     %b = load im[r] where c >= 1 else 0            store z[r*2] = %a
//!     %in = test c < 1                               store z[r*2 + 1] = %b
//!     store z[r*2 + c] = select(%in, %a, %b)
//! ```
//!
//! The loop around it can then run in vectors: one of each kind, which are interleaved when they are stored. Legal for two to four
//! iterations that load, compute and then store the next elements, at the end of a free loop of straight statements.

use std::collections::BTreeMap;

use super::line::{LoopRef, ends_with, replace};
use crate::index::Facts;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::tile::affine::{self, MOST_APART, Stride};
use crate::tile::edit::{self, const_trip};

pub fn apply(kernel: &mut Kernel, at: LoopRef) -> Result<(), String> {
    let facts = kernel.facts();
    let (over, _) = ends_with(kernel, at)?;
    replace(kernel, over, &mut |kernel, outer| {
        let (inner, count) = kinds(outer).ok_or("it does not store a few kinds of elements in turn")?;
        let body = written_out(kernel, &facts, outer, inner, count)?;
        let before = &outer.body[..outer.body.len() - 1];
        Ok(vec![outer.around([before, &body].concat())])
    })
}

/// The loop at the end of a free loop that stores a few kinds of elements in turn, and how many there are.
pub fn kinds(outer: &For) -> Option<(&For, i64)> {
    let (Stmt::For(inner), before) = outer.body.split_last()? else { return None };
    let plain = |f: &For| f.is_free_unplaced() && f.step == Ix::Const(1);
    let count = const_trip(inner).and_then(|n| i64::try_from(n).ok()).filter(|n| (2..=MOST_APART).contains(n))?;
    let straight = |body: &[Stmt]| body.iter().all(|s| walk::bodies(s).is_empty());
    let stores = inner.body.iter().any(|s| matches!(s, Stmt::Store { .. }));
    let fits = plain(outer) && plain(inner) && straight(&inner.body) && straight(before) && stores;
    fits.then_some((&**inner, count))
}

/// The iterations of the inner loop one after the other, with all that they store behind them: as iterations of a free loop, none
/// loads what another one stores.
fn written_out(
    kernel: &mut Kernel,
    facts: &Facts,
    outer: &For,
    inner: &For,
    count: i64,
) -> Result<Vec<Stmt>, &'static str> {
    let lo = inner.lo.as_const().ok_or("its bounds are not constants")?;
    let varying = walk::refs(&inner.body).vals_defined;
    let mut stores = 0;
    for s in &inner.body {
        match s {
            Stmt::Store { mem, order: Order::Weak, .. } => {
                let next = affine::stride(&mem.index, inner.axis, &varying) == Stride::Unit
                    && affine::coef(&mem.index, outer.axis, &varying) == Some(Ix::Const(count));
                if !next {
                    return Err("it stores to elements that do not follow one another");
                }
                stores += 1;
            }
            // It could load what it has stored.
            Stmt::Load { .. } if stores > 0 => return Err("it loads after it has stored"),
            Stmt::Load { order: Order::Weak, .. } | Stmt::Let { .. } | Stmt::Index { .. } | Stmt::Test { .. } => {}
            _ => return Err("it does more than load, compute and store"),
        }
    }
    let (mut body, mut stored): (Vec<Stmt>, Vec<Vec<Stmt>>) = (vec![], vec![vec![]; stores]);
    for at in lo..lo + count {
        let by = BTreeMap::from([(inner.axis, Ix::Const(at))]);
        let mut copy = edit::place_axes(&walk::clone_fresh(kernel, &inner.body), &by, &BTreeMap::new());
        edit::decide(&mut copy, facts);
        edit::choose(&mut copy);
        edit::drop_unused(&mut copy);
        let mut of = stored.iter_mut();
        for s in copy {
            match s {
                Stmt::Store { ref mask, .. } if !mask.is_always() => return Err("it stores under a condition"),
                Stmt::Store { .. } => of.next().ok_or("it stores more than once")?.push(s),
                s => body.push(s),
            }
        }
    }
    body.extend(stored.into_iter().flatten());
    Ok(body)
}
