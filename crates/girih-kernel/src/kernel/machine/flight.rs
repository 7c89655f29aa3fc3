//! Copies from global to shared memory that go on while their thread does, and the groups that a thread waits for.
//!
//! In: `copy async`, `commit` and `wait groups` of the lanes of a warp. Out: bytes of shared memory, at a moment that the
//! schedule draws between the copy and the wait that covers it; the watch is told of both.
//!
//! ```text
//! copy async s[0] = a[0] bytes 16     in flight: the bytes may come now ...
//! commit                              group 0 of the thread
//! copy async s[4] = a[4] bytes 16
//! commit                              group 1
//! wait groups 1                       ... or only here, where group 0 ends; group 1 goes on
//! ```
//! Invariant: the groups of a thread are numbered from 0 in the order of its commits. A copy that no wait covers may
//! outlast its block; the end of the block reports it.

use super::block::{Block, Machine};
use super::code::Access;
use super::ops::each;
use super::places::Places;
use super::step::At;
use super::watch::{Landing, Watch, What};
use crate::base::launch::Trap;
use crate::base::memory::Memory;

/// The copies that the lanes of a warp began with one statement.
pub(super) struct Flight<const W: usize> {
    statement: u32,
    /// Lanes whose copies are in flight, and those of them that write zeros.
    lanes: u32,
    zeros: u32,
    bytes: u32,
    /// The group that each lane's next commit makes.
    group: [u32; W],
    to: [u64; W],
    from: [u64; W],
    landed: bool,
}

/// The copies in flight for the threads of a warp.
pub(super) struct Flights<const W: usize> {
    /// In the order in which they began.
    all: Vec<Flight<W>>,
    /// Groups that each lane has made.
    groups: [u32; W],
}

impl<const W: usize> Flights<W> {
    pub fn none() -> Flights<W> {
        Flights { all: vec![], groups: [0; W] }
    }

    pub fn commit(&mut self, lanes: u32) {
        each::<W>(lanes, |l| self.groups[l] += 1);
    }
}

impl<const W: usize> Flights<W> {
    /// Copies that no wait covers, and a lane of each.
    pub fn left(&self) -> impl Iterator<Item = (u32, u32)> {
        self.all.iter().map(|f| (f.statement, f.lanes))
    }
}

/// The most bytes of one copy.
const MOST: usize = 16;

impl<const W: usize> Flight<W> {
    /// Moves the bytes of some lanes. The source existed when the copy began; if it does not any more, nothing is
    /// written.
    fn land(&self, memory: &dyn Memory, shared: &mut [u8], lanes: u32) {
        let bytes = (self.bytes as usize).min(MOST);
        each::<W>(lanes, |l| {
            let mut moved = [0; MOST];
            let there = self.zeros >> l & 1 == 1 || memory.read(self.from[l], &mut moved[..bytes]).is_ok();
            let at = self.to[l] as usize;
            if let (true, Some(to)) = (there, shared.get_mut(at..at.saturating_add(bytes))) {
                to.copy_from_slice(&moved[..bytes]);
            }
        });
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Begins the copies of a group of lanes.
    pub(super) fn copy(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        (to, from): (&Access, &Access),
        bytes: u32,
    ) -> Result<(), Trap> {
        let mut writes = At { lasts: true, ..at };
        let on = at.lanes & from.mask.lanes(&block.warps[at.warp].regs);
        let target = self.places(block, &mut writes, to, What::Write)?;
        let mut reads = At { lanes: writes.lanes & on, ..writes };
        let source = self.places(block, &mut reads, from, What::Read)?;
        let mut faults = vec![];
        each::<W>(reads.lanes, |l| {
            let there = self.memory.read(source.address(l), &mut [0; MOST][..(bytes as usize).min(MOST)]);
            faults.extend(there.err().map(|fault| (l, fault)));
        });
        self.refused(&mut reads, &faults, What::Read)?;
        if writes.lanes == 0 {
            return Ok(());
        }
        let address = |p: &Places<W>| std::array::from_fn(|l| p.address(l));
        let flights = &block.warps[at.warp].flights;
        let mut flight = Flight {
            statement: at.statement,
            lanes: writes.lanes,
            zeros: writes.lanes & !reads.lanes,
            bytes,
            group: flights.groups,
            to: address(&target),
            from: address(&source),
            landed: false,
        };
        self.touched(block, reads, (&source, from), What::Read, 0);
        self.touched(block, writes, (&target, to), What::Write, writes.lanes);
        if self.schedule.lands_at_once() {
            flight.land(self.memory, &mut block.shared, flight.lanes);
            flight.landed = true;
        }
        block.warps[at.warp].flights.all.push(flight);
        Ok(())
    }

    /// Ends the copies of all groups of the lanes but the newest `left`.
    pub(super) fn wait_groups(&mut self, block: &mut Block<W, V::Local>, at: At, left: u32) {
        let Block { warps, shared, local, .. } = &mut *block;
        let Flights { all, groups } = &mut warps[at.warp].flights;
        let backwards = self.schedule.last_lane_first();
        let count = all.len();
        for n in 0..count {
            let flight = &mut all[if backwards { count - 1 - n } else { n }];
            let mut over = 0;
            each::<W>(at.lanes & flight.lanes, |l| {
                over |= u32::from(u64::from(flight.group[l]) + u64::from(left) < u64::from(groups[l])) << l;
            });
            if over == 0 {
                continue;
            }
            if !flight.landed {
                flight.land(self.memory, shared, over);
            }
            flight.lanes &= !over;
            let Flight { statement, bytes, to, from, zeros, .. } = &*flight;
            let (statement, warp, bytes) = (*statement, at.warp as u32, *bytes);
            self.watch.landed(local, &Landing { statement, warp, lanes: over, read: over & !zeros, bytes, to, from });
        }
        all.retain(|flight| flight.lanes != 0);
    }
}
