//! Rows: what is done for each iteration of free loops that stand in each other, such as a reduction.
//!
//! ```text
//! for i in 0..4: for j in 0..512: free        the loops, `i` and `j`
//!   local s = 0.0                             what is done in a row
//!   for k in 0..3584: reduce ...
//! ```

use super::edit;
use super::primitives::bind::{self, To};
use super::primitives::{self, Script, Step};
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

fn is_nest(s: &Stmt) -> bool {
    matches!(s, Stmt::For(f) if f.kind == LoopKind::Free && f.place == Place::None)
}

/// A rule's test of a nest, given its loops and the body of a row.
pub type Wanted<'w> = dyn FnMut(&[&For], &[Stmt], &mut Log) -> bool + 'w;

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
        let fused = script.step(Step::Fuse { loops, name: "b".into() });
        let bound = fused.and_then(|loops| script.step(Step::Bind { loops, to: To::Block(0) }));
        if let Err(why) = bound {
            script.log.skipped("rows", why);
        }
    }
    script.changed()
}
