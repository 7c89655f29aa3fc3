//! Barriers in shared memory that count arrivals and bytes, phase after phase.
//!
//! In: the operations of the lanes of a warp on mbarriers, and bytes that asynchronous copies bring. Out: the groups
//! that wait and those that go on; the watch is told of both, and of errors.
//!
//! ```text
//!                          phase  arrivals  bytes
//! init full[0] count 1         0  0 of 1        0
//! arrive full[0] expect 8      0  1 of 1        8 to come
//! a copy lands                 1  0 of 1        0          who waits for parity 0 goes on
//! ```
//! Invariant: a phase ends when all arrivals and exactly the expected bytes have come, and only then. A thread knows a
//! phase by its parity alone, so a thread that is two phases behind takes one phase for another.

use std::hash::{Hash, Hasher};

use super::block::{Block, Group, Machine, Wait};
use super::code::Access;
use super::ops::each;
use super::places::Places;
use super::step::At;
use super::watch::{Missing, Sync, Watch, What, Wrong};
use crate::base::launch::Trap;
use crate::kernel::ir::Fence;

#[derive(Clone, Default)]
pub(super) struct Mbarrier {
    /// The arrivals of a phase, 0 before it is initialised; and the arrivals that are still to come.
    count: u32,
    pending: u32,
    /// The bytes that are still to come; the bytes that this phase expects; and the bytes of the copies that began in
    /// it.
    bytes: i64,
    expected: u64,
    brought: u64,
    pub phase: u32,
    /// The thread that initialised it, and whether a fence has made that visible to asynchronous copies.
    by: u32,
    pub fenced: bool,
    /// The phase that each thread waits for next.
    next: Vec<u32>,
    /// Boxes whose phase nobody has waited for yet: the phase that counts them, and who started them.
    unseen: Vec<(u32, At, usize)>,
}

/// The most boxes without a waiter that an mbarrier remembers.
const UNSEEN: usize = 64;

impl Mbarrier {
    pub fn is_ready(&self) -> bool {
        self.count > 0
    }

    pub fn hash_into(&self, state: &mut impl Hasher) {
        (self.count, self.pending, self.bytes, self.phase).hash(state);
    }

    pub fn missing(&self, number: u32) -> Missing {
        let Mbarrier { phase, count, pending, bytes, .. } = *self;
        Missing { number, phase, count, arrivals: pending, bytes }
    }

    /// A lane begins a copy that brings bytes.
    pub fn brings(&mut self, bytes: u64, at: At, lane: usize) {
        self.brought += bytes;
        if self.unseen.len() < UNSEEN {
            self.unseen.push((self.phase, at, lane));
        }
    }

    /// The places and lanes that began boxes whose phase nobody has waited for.
    pub fn unseen(&self) -> impl Iterator<Item = (At, usize)> {
        self.unseen.iter().map(|(_, at, lane)| (*at, *lane))
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// The mbarrier that each lane refers to; lanes whose place is outside are left out.
    pub(super) fn mbarriers(
        &mut self,
        block: &Block<W, V::Local>,
        at: &mut At,
        (on, first): (&Access, u32),
    ) -> Result<[u32; W], Trap> {
        let places: Places<W> = self.places(block, at, on, What::Update)?;
        let (count, member) = (self.program.mbarriers, self.member(at.warp) as u32);
        let numbers: [u32; W] = std::array::from_fn(|l| first.wrapping_add(places.index[l] as u32));
        each::<W>(at.lanes, |l| at.lanes &= !(u32::from(numbers[l] >= count) << l));
        Ok(numbers.map(|number| number.wrapping_add(member * count)))
    }

    /// Tells the watch that a lane does something wrong.
    pub(super) fn wrong(&mut self, at: At, lane: usize, wrong: Wrong) {
        self.watch.wrong(at.block, at.statement, (at.warp * W + lane) as u32, wrong);
    }

    pub(super) fn init(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        on: (&Access, u32),
        count: u32,
    ) -> Result<(), Trap> {
        let numbers = self.mbarriers(block, &mut at, on)?;
        for l in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let (number, by) = (numbers[l], (at.warp * W + l) as u32);
            if block.mbarriers[number as usize].is_ready() {
                self.wrong(at, l, Wrong::Again { number });
            }
            let next = vec![0; block.warps.len() * W];
            block.mbarriers[number as usize] = Mbarrier { count, pending: count, by, next, ..Mbarrier::default() };
            self.watch.sync(&mut block.local, at.statement, at.warp as u32, 1 << l, Sync::Init { number });
        }
        Ok(())
    }

    pub(super) fn fence(&mut self, block: &mut Block<W, V::Local>, at: At, fence: Fence) {
        if fence == Fence::Registers {
            return block.warps[at.warp].products.fence();
        }
        let tensor = matches!(fence, Fence::BeforeSync | Fence::AfterSync);
        let mine =
            |m: &Mbarrier| !tensor && m.by / W as u32 == at.warp as u32 && at.lanes >> (m.by % W as u32) & 1 == 1;
        block.mbarriers.iter_mut().filter(|m| mine(m)).for_each(|m| m.fenced = true);
        let sync = match fence {
            Fence::BeforeSync => Sync::BeforeMeeting,
            Fence::AfterSync => Sync::AfterMeeting,
            Fence::Async => Sync::Fence,
            Fence::Global => Sync::FenceGlobal,
            Fence::Init | Fence::Registers => return,
        };
        self.watch.sync(&mut block.local, at.statement, at.warp as u32, at.lanes, sync);
    }

    /// Returns true if a lane may use an mbarrier: it is initialised, the thread can know that, and its block has not
    /// ended.
    pub(super) fn usable(&mut self, block: &Block<W, V::Local>, at: At, lane: usize, number: u32) -> bool {
        if block.members[(number / self.program.mbarriers.max(1)) as usize].live == 0 {
            self.wrong(at, lane, Wrong::Gone { number });
        }
        let ready = block.mbarriers[number as usize].is_ready();
        if !ready || !self.watch.sees(&block.local, (at.warp * W + lane) as u32, number) {
            self.wrong(at, lane, Wrong::Uninitialised { number });
        }
        ready
    }

    pub(super) fn arrive(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        on: (&Access, u32),
        bytes: Option<u32>,
        of: Option<u32>,
    ) -> Result<(), Trap> {
        let mut numbers = self.mbarriers(block, &mut at, on)?;
        if let Some(member) = of {
            let count = self.program.mbarriers;
            numbers = numbers.map(|number| number % count.max(1) + member * count);
        }
        let mut left = at.lanes;
        while left != 0 {
            // The lanes that arrive at one mbarrier.
            let number = numbers[left.trailing_zeros() as usize];
            let mut same = 0;
            each::<W>(left, |l| same |= u32::from(numbers[l] == number) << l);
            left &= !same;
            let usable = (0..W).filter(|l| same >> l & 1 == 1 && self.usable(block, at, *l, number));
            let usable = usable.fold(0u32, |lanes, l| lanes | 1 << l);
            if usable == 0 {
                continue;
            }
            self.arrivals(block, At { lanes: usable, ..at }, number, bytes.unwrap_or(0));
        }
        Ok(())
    }

    /// Lanes arrive at one mbarrier; when a phase ends, the others arrive at the next.
    fn arrivals(&mut self, block: &mut Block<W, V::Local>, at: At, number: u32, bytes: u32) {
        let mut left = at.lanes;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let m = &mut block.mbarriers[number as usize];
            if m.pending == 0 {
                let count = m.count;
                return self.wrong(at, lane, Wrong::Arrivals { number, count });
            }
            let mut now = left;
            while now.count_ones() > m.pending {
                now &= match self.schedule.last_lane_first() {
                    true => now - 1,
                    false => u32::MAX >> (now.leading_zeros() + 1),
                };
            }
            left &= !now;
            m.pending -= now.count_ones();
            m.bytes += i64::from(bytes) * i64::from(now.count_ones());
            m.expected += u64::from(bytes) * u64::from(now.count_ones());
            self.watch.sync(&mut block.local, at.statement, at.warp as u32, now, Sync::Arrive { number });
            self.ended(block, at, lane, number);
        }
    }

    /// Something that a lane began arrives at an mbarrier when it ends: the lane itself does nothing.
    pub(super) fn arrives_by_itself(&mut self, block: &mut Block<W, V::Local>, at: At, number: u32) {
        let lane = at.lanes.trailing_zeros() as usize % W;
        let m = &mut block.mbarriers[number as usize];
        if m.pending == 0 {
            let count = m.count;
            return self.wrong(at, lane, Wrong::Arrivals { number, count });
        }
        m.pending -= 1;
        self.ended(block, at, lane, number);
    }

    /// Bytes have come.
    pub(super) fn brought(&mut self, block: &mut Block<W, V::Local>, at: At, lane: usize, number: u32, bytes: u64) {
        block.mbarriers[number as usize].bytes -= bytes as i64;
        self.ended(block, at, lane, number);
    }

    /// Ends the phase if nothing is missing.
    fn ended(&mut self, block: &mut Block<W, V::Local>, at: At, lane: usize, number: u32) {
        let m = &mut block.mbarriers[number as usize];
        if m.pending > 0 || m.bytes != 0 || !m.is_ready() {
            return;
        }
        let (expected, brought) = (m.expected, m.brought);
        (m.pending, m.expected, m.brought) = (m.count, 0, 0);
        m.phase = m.phase.wrapping_add(1);
        let phase = m.phase;
        if expected != brought {
            self.wrong(at, lane, Wrong::Bytes { number, expected, brought });
        }
        self.watch.sync(&mut block.local, at.statement, at.warp as u32, 0, Sync::Ended { number, phase });
        for group in block.warps.iter_mut().flat_map(|w| &mut w.groups) {
            if group.waits == Some(Wait::Phase(number)) {
                group.waits = None;
            }
        }
    }

    /// Lanes whose phase has ended go on, the others wait.
    pub(super) fn wait_phase(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        group: usize,
        on: (&Access, u32),
        parity: [i64; W],
    ) -> Result<bool, Trap> {
        let all = at.lanes;
        let numbers = self.mbarriers(block, &mut at, on)?;
        let mut waiting = 0;
        let on = at.lanes;
        for l in (0..W).filter(|l| on >> l & 1 == 1) {
            let (number, thread) = (numbers[l], at.warp * W + l);
            if !self.usable(block, at, l, number) {
                at.lanes &= !(1 << l);
                continue;
            }
            let (m, odd) = (&mut block.mbarriers[number as usize], (parity[l] & 1) as u32);
            let (phase, next) = (m.phase, m.next.get(thread).copied().unwrap_or(0));
            // The phase before the first counts as one that has ended.
            let meant = if next & 1 == odd { i64::from(next) } else { i64::from(next) - 1 };
            let over = phase & 1 != odd;
            if over {
                m.unseen.retain(|(of, ..)| i64::from(*of) > meant);
                m.next.get_mut(thread).into_iter().for_each(|next| *next = phase);
            }
            if i64::from(phase) > meant + 1 {
                self.wrong(at, l, Wrong::Aliased { number, phase, meant: meant.max(0) as u32 });
                if let Some(next) = block.mbarriers[number as usize].next.get_mut(thread) {
                    *next = phase;
                }
            }
            waiting |= u32::from(!over) << l;
        }
        let mut passed = at.lanes & !waiting;
        while passed != 0 {
            let number = numbers[passed.trailing_zeros() as usize];
            let mut same = 0;
            each::<W>(passed, |l| same |= u32::from(numbers[l] == number) << l);
            passed &= !same;
            self.watch.sync(&mut block.local, at.statement, at.warp as u32, same, Sync::Passed { number });
        }
        let groups = &mut block.warps[at.warp].groups;
        if waiting == 0 {
            groups[group].at += 1;
            return Ok(true);
        }
        // Lanes that wait for one mbarrier are a group; the others go on.
        let here = groups[group];
        let on = all & !waiting;
        let mut parts = vec![];
        while waiting != 0 {
            let number = numbers[waiting.trailing_zeros() as usize];
            let mut same = 0;
            each::<W>(waiting, |l| same |= u32::from(numbers[l] == number) << l);
            waiting &= !same;
            parts.push(Group { lanes: same, waits: Some(Wait::Phase(number)), ..here });
        }
        if on != 0 {
            parts.push(Group { lanes: on, at: here.at + 1, waits: None });
        }
        groups.remove(group);
        groups.extend(parts);
        Ok(false)
    }
}
