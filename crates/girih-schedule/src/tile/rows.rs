//! Rows: what is done for each iteration of free loops that stand in each other, such as a reduction.
//!
//! ```text
//! for i in 0..4: for j in 0..512: free        the loops, `i` and `j`
//!   local s = 0.0                             what is done in a row
//!   for k in 0..3584: reduce ...
//! ```

use super::Context;
use super::edit::{self, const_trip};
use super::primitives::bind::{self, To};
use super::primitives::rfactor::Fold;
use super::primitives::{self, LoopRef, Script, Step};
use super::rules::cooperative_reduce;
use super::tile_nest::check_bounds;
use crate::base::rule::Log;
use crate::loops::ir::*;

/// Free loops around what is done in a row, which is all that a kernel does but for values.
pub struct Around<'a> {
    /// Where the statement is that does it; `None` where there is one row, and the whole kernel does it.
    pub at: Option<usize>,
    /// The loops over the rows, outermost first.
    pub free: Vec<&'a For>,
    pub body: &'a [Stmt],
}

impl<'a> Around<'a> {
    /// `None` of a kernel whose grid the launch gives, and of one with several nests. `alone`: what is not free stands for one row.
    pub fn of(p: &'a Kernel, alone: &dyn Fn(&Stmt) -> bool) -> Option<Around<'a>> {
        if !p.open {
            return None;
        }
        if p.body.iter().any(alone) {
            return Some(Around { at: None, free: vec![], body: &p.body });
        }
        let mut nests = p.body.iter().enumerate().filter(|(_, s)| is_nest(s));
        let (Some((at, Stmt::For(f))), None) = (nests.next(), nests.next()) else { return None };
        if p.body.iter().enumerate().any(|(n, s)| n != at && !edit::is_pure(s)) {
            return None;
        }
        let free = edit::free_chain(f);
        let body = &free.last()?.body[..];
        Some(Around { at: Some(at), free, body })
    }

    /// How many rows there are, where that is known.
    pub fn count(&self) -> Option<u64> {
        self.free.iter().try_fold(1u64, |n, f| n.checked_mul(edit::const_trip(f)?))
    }
}

/// The rows of a kernel that reduces each of them.
pub struct ReducedRows<'a> {
    /// Where the statement is that does it; `None` where there is one row.
    pub at: Option<usize>,
    /// The loops over the rows, outermost first; none where there is one row.
    pub free: Vec<&'a For>,
    /// The work of a row before and after its reduction.
    pub before: &'a [Stmt],
    pub reduce: &'a For,
    pub after: &'a [Stmt],
    pub fold: Fold,
    /// Elements of a row.
    pub length: u64,
}

impl<'a> ReducedRows<'a> {
    /// `None` where a kernel does anything else.
    pub fn of(kernel: &'a Kernel, ctx: &Context) -> Option<ReducedRows<'a>> {
        let reduced = |s: &Stmt| matches!(s, Stmt::For(f) if f.kind != LoopKind::Free);
        let Around { at, free, body } = Around::of(kernel, &reduced)?;
        let mut inner = body.iter().enumerate().filter(|(_, s)| matches!(s, Stmt::For(_)));
        let (Some((n, Stmt::For(reduce))), None) = (inner.next(), inner.next()) else { return None };
        if reduce.kind != LoopKind::Reduce || cooperative_reduce::refusal(reduce, ctx.target.axes.lanes).is_some() {
            return None;
        }
        let fold = Fold::of(kernel, reduce).ok().filter(|fold| fold.dtype.bits() >= 8)?;
        let acc = fold.acc;
        let (before, after) = (&body[..n], &body[n + 1..]);
        let of_acc = |s: &Stmt| match s {
            Stmt::Local { buf } | Stmt::Write { buf, .. } => *buf == acc,
            _ => false,
        };
        let stored = |s: &Stmt| matches!(s, Stmt::Store { order: Order::Weak, .. });
        let ok = before.iter().all(|s| edit::is_pure(s) || of_acc(s))
            && before.iter().filter(|s| matches!(s, Stmt::Local { .. })).count() == 1
            && reduce.body.iter().all(|s| edit::is_pure(s) || of_acc(s))
            && after.iter().all(|s| edit::is_pure(s) || stored(s))
            && free.iter().all(|f| f.lo.is_const(0) && f.place == Place::None)
            && check_bounds(&free).is_ok();
        let length = const_trip(reduce).filter(|_| ok)?;
        Some(ReducedRows { at, free, before, reduce, after, fold, length })
    }
}

fn is_nest(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.is_free_unplaced())
}

/// A rule's test of a nest, given its loops and the body of a row.
pub type Wanted<'w> = dyn FnMut(&[&For], &[Stmt], &mut Log) -> bool + 'w;

/// Gives a block to each iteration of loops that stand in each other.
pub fn bind_blocks(script: &mut Script<'_>, loops: Vec<LoopRef>) -> Result<(), String> {
    let loops = script.step(Step::Fuse { loops, name: "b".into() })?;
    script.step(Step::Bind { loops, to: To::Block(0) }).map(drop)
}

/// Gives a block to each row of the nests that `wanted` accepts. Returns true if it accepts any.
pub fn to_blocks(script: &mut Script<'_>, p: &Kernel, wanted: &mut Wanted<'_>) -> bool {
    if bind::nests_apart(p).is_err() {
        return false;
    }
    let mut nests = vec![];
    for s in p.body.iter().filter(|s| is_nest(s)) {
        let Stmt::For(f) = s else { continue };
        let chain = edit::free_chain(f);
        if wanted(&chain, chain.last().map_or(&[], |f| &f.body[..]), script.log) {
            nests.push(primitives::names_of(p, &chain));
        }
    }
    // The last one first: loops before it keep their names.
    for loops in nests.into_iter().rev() {
        if let Err(why) = bind_blocks(script, loops) {
            script.log.skipped("rows", why);
        }
    }
    script.changed()
}
