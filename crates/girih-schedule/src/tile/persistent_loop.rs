//! Pipelines that go on from one iteration of a nest of blocks to the next, where a block takes several in turn.
//!
//! In: what a block does. Out: its pipeline, whose first operands for the next iteration are fetched while the block is still
//! at the one before; or why that cannot be.
//!
//! Invariants: what such a pipeline fetches depends on nothing that the block computes, and it has as many iterations for each
//! block, no fewer than are filled ahead.

use crate::loops::ir::*;
use crate::loops::walk;

/// The pipeline of a block.
#[derive(Clone, Copy)]
pub struct GoesOn<'a> {
    pub pipeline: &'a For,
    pub depth: u32,
    /// A warp of its own fills it.
    pub roles: bool,
}

impl<'a> GoesOn<'a> {
    /// `None` where a block has no pipeline.
    pub fn of(body: &'a [Stmt]) -> Result<Option<GoesOn<'a>>, &'static str> {
        let count = walk::stmts(body).filter(|s| GoesOn::pipeline(s).is_some()).count();
        if count == 0 {
            return Ok(None);
        }
        let Some(found) = body.iter().find_map(GoesOn::pipeline).filter(|_| count == 1) else {
            return Err("its blocks have several pipelines, or one in another loop");
        };
        if walk::effects(body).leaves {
            return Err("its blocks may end early");
        }
        let GoesOn { pipeline: f, depth, roles } = found;
        if f.hi.as_const().is_none_or(|n| n < 1 || n < i64::from(depth) - 1) {
            return Err("its pipeline is not known to have an iteration for each slot");
        }
        // All threads meet before the next tile, and no slot is filled twice before that.
        if roles && f.hi.as_const().is_some_and(|n| n <= i64::from(depth)) {
            return Err(
                "a warp fills its pipeline, which has a slot for each iteration: nothing would be fetched ahead",
            );
        }
        let (stages, _) = f.stages();
        let (all, own) = (walk::refs(body), walk::refs(stages));
        let of_block = |v: &ValId| all.vals_defined.contains(v) && !own.vals_defined.contains(v);
        let computed = |b: &BufId| all.bufs_written.contains(b) && !own.bufs_written.contains(b);
        if own.vals_used.iter().any(of_block) || own.bufs_read.iter().any(computed) {
            return Err("what is fetched depends on what the block computes");
        }
        Ok(Some(found))
    }

    /// The pipeline that a statement is.
    pub fn pipeline(s: &'a Stmt) -> Option<GoesOn<'a>> {
        match s {
            Stmt::For(f) => match f.place {
                Place::Pipeline { depth, roles, .. } => Some(GoesOn { pipeline: f, depth, roles }),
                _ => None,
            },
            _ => None,
        }
    }
}
