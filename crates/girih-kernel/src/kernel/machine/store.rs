//! Boxes of tensors that TMA copies from shared memory.
//!
//! In: a copy that a thread begins, its groups and its waits. Out: the bytes of global memory, copied from shared
//! memory at a moment that the schedule draws between the copy and the wait that covers it; the watch is told of both.
//!
//! ```text
//! copy tensor m[0, 0] = s[0]     shared memory is read now ...
//! copy commit                    group 0 of the thread
//! copy wait 0                    ... or only here
//! ```
//! Invariant: a copy that no wait covers may read the memory of a later block where its block had shared memory, so the
//! end of a block reports it.

use super::block::{Block, Machine};
use super::code::Access;
use super::step::At;
use super::tensor::{Given, TensorCode};
use super::watch::{Boxed, Run, Watch, What};
use crate::base::launch::Trap;
use crate::loops::eval::expr::Expr;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A copy under way.
struct Flight {
    at: At,
    lane: usize,
    tensor: usize,
    from: u64,
    runs: Vec<Run>,
    /// The number of the group that its thread has closed with it.
    group: Option<u32>,
    landed: bool,
}

/// The copies out of shared memory that the threads of a block have started.
#[derive(Default)]
pub(super) struct Stores {
    all: Vec<Flight>,
    /// Groups that each thread has made.
    groups: FxHashMap<usize, u32>,
}

impl Stores {
    pub fn clear(&mut self) {
        self.all.clear();
        self.groups.clear();
    }
}

fn thread<const W: usize>(warp: usize, lane: usize) -> usize {
    warp * W + lane
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Each lane begins to copy a box.
    pub(super) fn store_box(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        from: &Access,
        tensor: usize,
        to: &[Expr],
    ) -> Result<(), Trap> {
        let Some(code) = self.program.tensors.get(tensor) else { return Ok(()) };
        let source = self.places(block, &mut at, from, What::Read)?;
        let given = Given::of(code, &block.warps[at.warp].regs, to);
        for lane in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let from = source.address(lane);
            let (runs, whole) = self.runs(at, lane, code, &given, from, What::Write)?;
            if !whole {
                continue;
            }
            let mut flight = Flight { at, lane, tensor, from, runs, group: None, landed: false };
            self.watch.boxed(&mut block.local, &boxed::<W>(&flight, code), None);
            if self.schedule.lands_at_once() {
                self.store_now(block, &mut flight);
            }
            block.stores.all.push(flight);
        }
        Ok(())
    }

    /// Each lane closes a group with the copies that it has begun.
    pub(super) fn commit_stores(&mut self, block: &mut Block<W, V::Local>, at: At) {
        let Stores { all, groups } = &mut block.stores;
        for lane in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let thread = thread::<W>(at.warp, lane);
            let number = groups.entry(thread).or_default();
            let own = |f: &&mut Flight| f.group.is_none() && self::thread::<W>(f.at.warp, f.lane) == thread;
            all.iter_mut().filter(own).for_each(|f| f.group = Some(*number));
            *number += 1;
        }
    }

    /// Ends the copies of all groups of the lanes but the newest `left`.
    pub(super) fn wait_stores(&mut self, block: &mut Block<W, V::Local>, at: At, left: u32) {
        let mut all = std::mem::take(&mut block.stores.all);
        all.retain_mut(|flight| {
            let made = block.stores.groups.get(&thread::<W>(flight.at.warp, flight.lane)).copied().unwrap_or(0);
            let waits = flight.at.warp == at.warp && at.lanes >> flight.lane & 1 == 1;
            if !waits || flight.group.is_none_or(|group| group + left >= made) {
                return true;
            }
            self.store_now(block, flight);
            if let Some(code) = self.program.tensors.get(flight.tensor) {
                self.watch.boxed(&mut block.local, &boxed::<W>(flight, code), Some(0));
            }
            false
        });
        block.stores.all = all;
    }

    /// Takes out the copies that threads of some warps began, with their places and lanes.
    pub(super) fn stores_left(&mut self, block: &mut Block<W, V::Local>, of: &Range<usize>) -> Vec<(At, usize)> {
        let (left, others) = std::mem::take(&mut block.stores.all).into_iter().partition(|f| of.contains(&f.at.warp));
        block.stores.all = others;
        let mut ended: Vec<Flight> = left;
        ended.iter_mut().for_each(|flight| self.store_now(block, flight));
        ended.iter().map(|flight| (flight.at, flight.lane)).collect()
    }

    fn store_now(&mut self, block: &mut Block<W, V::Local>, flight: &mut Flight) {
        let Some(TensorCode { tensor, .. }) = self.program.tensors.get(flight.tensor) else { return };
        if std::mem::replace(&mut flight.landed, true) {
            return;
        }
        for run in &flight.runs {
            let place = |byte: u64| (flight.from + tensor.swizzled(run.to + byte)) as usize;
            let bytes: Option<Vec<u8>> = (0..run.bytes).map(|n| block.shared.get(place(n)).copied()).collect();
            // The target existed when the copy began; if it does not any more, nothing is written.
            let _ = bytes.map(|bytes| self.memory.write(run.from, &bytes));
        }
    }
}

fn boxed<'a, const W: usize>(flight: &'a Flight, code: &TensorCode) -> Boxed<'a> {
    Boxed {
        statement: flight.at.statement,
        thread: thread::<W>(flight.at.warp, flight.lane) as u32,
        mbarrier: None,
        at: flight.from,
        bytes: code.tensor.bytes(),
        elem: code.tensor.elem.bytes() as u32,
        runs: &flight.runs,
    }
}
