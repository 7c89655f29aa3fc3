//! Blocks that take several iterations of a nest in turn.
//!
//! ```text
//! for j in 0..32: free block(y, 132 in turn)        grid (132, 1, 1)
//!   for i in 0..32: free block(x)                   for p in 0..2 { fill(0, p) }
//!     for k in 0..64: serial pipeline(3)     -->    for round in 0..ceil((1024 - bx)/132) {
//!       stage s: ...                                  tile = bx + round*132    i = tile%32    j = tile//32
//!       use s                                         for k in 0..64 {
//!     store ..                                          wait    barrier
//!                                                       if k + 2 < 64 { fill(round, k + 2) }
//!                                                       if k + 2 >= 64 and round + 1 < .. { fill(round + 1, k + 2 - 64) }
//!                                                       use s[(round*64 + k)%3]
//!                                                     }
//!                                                     store ..
//!                                                   }
//! ```
//!
//! The pipeline goes on from one round to the next: while the results of one round are stored, the first operands of
//! the next are on their way. Generations, phases of mbarriers and groups of copies are counted through all rounds, so
//! the rules of a pipeline's iterations also hold from one round to the next: the barrier of an iteration says that all
//! threads are done with the generation of the iteration before, in whichever round that was. A warp that fills for the
//! others does so round by round, and is ahead of them by the number of generations.
//!
//! A program's own loop over tiles is such a loop, too. Where its pipeline may have fewer iterations than generations, each round
//! fills the first ones itself.

use super::pipeline::Begun;
use super::{Lower, Res};
use crate::kernel::ir as k;
use crate::loops::ir as l;
use crate::loops::walk;
use crate::tile::persistent_loop::GoesOn;

impl Lower<'_> {
    /// The loop over the iterations that a block takes in turn.
    pub(super) fn rounds_of_block(&mut self, f: &l::For) -> Res<()> {
        let ahead = self.rounds.as_ref().is_some_and(|r| r.ahead);
        let refused = |why| format!("blocks cannot take iterations of {} in turn: {why}", self.src.name);
        let found = match ahead {
            true => GoesOn::of(&f.body).map_err(refused)?,
            false => f.body.iter().find_map(GoesOn::pipeline),
        };
        if let Some(GoesOn { pipeline, depth, roles }) = found.filter(|_| self.begun.is_none()) {
            let overlap = matches!(pipeline.place, l::Place::Pipeline { overlap: true, .. });
            let begun = self.in_round(Some(k::Ix::Const(0)), |s| match roles {
                true => Ok(Begun::by_a_warp(s.begin_roles(pipeline, depth)?)),
                false if ahead => s.begin(pipeline, depth, overlap),
                false => s.declared(pipeline, depth, overlap),
            })?;
            self.begun = Some((pipeline.axis, begun));
        }
        let hi = self.ix(&f.hi)?;
        let axis = self.axis_of(f.axis);
        let body = self.at_axis(f.axis, k::Ix::Axis(axis), vec![], |s| s.block(&f.body))?;
        let (lo, step) = (k::Ix::Const(0), k::Ix::Const(1));
        self.push(k::Stmt::For { axis, lo, hi, step, unroll: 0, body });
        Ok(())
    }

    /// Runs `build` in another round of the block, if one is given.
    pub(super) fn in_round<T>(&mut self, round: Option<k::Ix>, build: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let (Some(round), Some(rounds)) = (round, self.rounds.clone()) else { return build(self) };
        let defined = rounds.numbers.iter().filter_map(walk::def);
        let outer: Vec<_> = defined.map(|val| (val, self.vals.get(&val).copied())).collect();
        let nest = self.nest.clone();
        let done = self.at_axis(rounds.axis, round, nest, |s| {
            s.run(&rounds.numbers)?;
            build(s)
        });
        for (val, loc) in outer {
            match loc {
                Some(loc) => self.vals.insert(val, loc),
                None => self.vals.remove(&val),
            };
        }
        done
    }

    /// The next round, and the conditions under which it exists; `None` where a block has one iteration.
    pub(super) fn next_round(&mut self) -> Res<Option<(k::Ix, Vec<k::Cond>)>> {
        let rounds = self.rounds.as_ref().filter(|r| r.ahead);
        let Some((axis, count)) = rounds.map(|r| (r.axis, r.count.clone())) else { return Ok(None) };
        let next = self.ix(&l::Ix::add(l::Ix::Axis(axis), l::Ix::Const(1)))?;
        let rhs = self.ix(&count)?;
        Ok(Some((next.clone(), vec![k::Cond { lhs: next, cmp: k::Cmp::Lt, rhs }])))
    }

    /// The number of a pipeline's iteration among all its iterations in the block.
    pub(super) fn iteration(&self, f: &l::For) -> l::Ix {
        let own = l::Ix::Axis(f.axis);
        match &self.rounds {
            Some(rounds) => l::Ix::add(l::Ix::mul(l::Ix::Axis(rounds.axis), f.hi.clone()), own),
            None => own,
        }
    }

    /// The same number if the pipeline's own axis has the value `at`.
    pub(super) fn turn(&mut self, f: &l::For, at: &k::Ix) -> Res<k::Ix> {
        let iteration = self.iteration(f);
        self.at_axis(f.axis, at.clone(), vec![], |s| s.ix(&iteration))
    }
}
