//! The order of events between the warps of a block, and what each thread knows of others.
//!
//! In: barriers, and releases and acquires of threads. Out: whether an earlier access, known by its [`Stamp`], is ordered
//! before one that a thread makes now.
//!
//! Each warp counts its events: a meeting of its lanes or of the block, and a release of one of its threads. An access
//! is stamped with that count. After a barrier all threads of the block know what the block did before it, and after a
//! warp's meeting its lanes know what the warp did before it. A release passes on the knowledge of its thread, and an
//! acquire that reads from it learns that. An mbarrier counts its phases as a warp counts its events: a TMA copy is
//! stamped with the phase that counts its bytes, and a thread that waited for that phase knows of the copy.
//!
//! ```text
//! warp 0: store s[0]  (epoch 0)                          warp 1: load s[0]   0 < barrier[0] = 1: ordered
//!         barrier     (epoch 1, barrier = [1, 1])
//! ```
//! Invariant: the order in which the simulator happens to run threads is never taken for an order between them.

use rustc_hash::FxHashMap;

use super::WARP;
use crate::index::facts::MOST_THREADS;
use crate::kernel::verify::MOST_MBARRIERS;

/// The thread that accessed, and when. `block` 0 is nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Stamp {
    /// The block's linear number and 1.
    pub block: u32,
    /// Thread (or mbarrier), whether the access was atomic, and statement.
    who: u32,
    pub epoch: u32,
}

/// Statements that a stamp can tell apart.
pub(super) const MOST_STATEMENTS: u32 = 1 << 19;
const ATOMIC: u32 = 1 << 12;
/// The first mbarrier counts as the warp behind all others.
const FIRST_MBARRIER: u32 = MOST_THREADS / WARP;
const _: () = assert!((FIRST_MBARRIER + MOST_MBARRIERS as u32) * WARP <= ATOMIC);

/// The epoch of an access that is not over: no barrier orders it.
const LASTS: u32 = u32::MAX;

impl Stamp {
    /// The stamp of an access that goes on until a wait covers it.
    pub fn lasting(self) -> Stamp {
        Stamp { epoch: LASTS, ..self }
    }
    pub fn lasts(self) -> bool {
        self.epoch == LASTS
    }
    /// Ends an access of the same thread and statement that goes on, as if it were made now.
    pub fn end(&mut self, now: Stamp) {
        if self.lasts() && (self.block, self.who) == (now.block, now.who) {
            self.epoch = now.epoch;
        }
    }
    pub fn is_none(self) -> bool {
        self.block == 0
    }
    pub fn thread(self) -> u32 {
        self.who & (ATOMIC - 1)
    }
    pub fn atomic(self) -> bool {
        self.who & ATOMIC != 0
    }
    pub fn statement(self) -> u32 {
        self.who >> 13
    }
    /// The mbarrier that counts the bytes of the access.
    pub fn mbarrier(self) -> Option<u32> {
        self.warp().checked_sub(FIRST_MBARRIER)
    }
    /// The same, as an access of a thread.
    pub fn by(self, thread: u32) -> Stamp {
        Stamp { who: self.who & !(ATOMIC - 1) | thread, ..self }
    }
    pub fn warp(self) -> u32 {
        self.thread() / WARP
    }
}

/// Events of others that are over: of warps, and of single threads, by block.
#[derive(Clone, Default, Debug)]
pub(super) struct Known {
    warps: FxHashMap<(u32, u32), u32>,
    threads: FxHashMap<(u32, u32), u32>,
}

fn raise(at: &mut FxHashMap<(u32, u32), u32>, of: (u32, u32), until: u32) {
    let known = at.entry(of).or_default();
    *known = (*known).max(until);
}

impl Known {
    pub fn is_empty(&self) -> bool {
        self.warps.is_empty() && self.threads.is_empty()
    }

    pub fn learn(&mut self, other: &Known) {
        for (mine, others) in [(&mut self.warps, &other.warps), (&mut self.threads, &other.threads)] {
            others.iter().for_each(|(of, until)| raise(mine, *of, *until));
        }
    }

    /// Adds what lanes of a warp did before an event.
    fn add(&mut self, block: u32, warp: u32, lanes: u32, until: u32) {
        if lanes == u32::MAX {
            return raise(&mut self.warps, (block, warp), until);
        }
        for lane in (0..WARP).filter(|l| lanes >> l & 1 == 1) {
            raise(&mut self.threads, (block, warp * WARP + lane), until);
        }
    }

    /// Adds the phases of an mbarrier that have ended.
    pub fn phases(&mut self, block: u32, mbarrier: u32, ended: u32) {
        raise(&mut self.warps, (block, FIRST_MBARRIER + mbarrier), ended);
    }

    pub fn covers(&self, s: Stamp) -> bool {
        let before = |until: Option<&u32>| until.is_some_and(|until| s.epoch < *until);
        before(self.warps.get(&(s.block, s.warp()))) || before(self.threads.get(&(s.block, s.thread())))
    }
}

/// The clock of a block under way, or of the blocks of a cluster.
#[derive(Default, Debug)]
pub(super) struct Clock {
    block: u32,
    /// Warps of each block of a cluster.
    each: u32,
    /// Events of each warp so far; how many of them the last barrier of its block had behind it, the last one of its cluster, and
    /// the last meeting of the warp.
    events: Vec<u32>,
    barrier: Vec<u32>,
    cluster: Vec<u32>,
    meeting: Vec<u32>,
    /// The knowledge that was acquired: by all threads of each block, of a warp, by one thread.
    of_blocks: Vec<Known>,
    of_warps: FxHashMap<u32, Known>,
    of_threads: FxHashMap<u32, Known>,
    acquired: bool,
}

impl Clock {
    pub fn begin(&mut self, block: u32, warps: u32, blocks: u32, mbarriers: u32) {
        let count = if mbarriers > 0 { FIRST_MBARRIER + mbarriers } else { warps };
        let none = || vec![0; count as usize];
        let (events, barrier, cluster, meeting) = (none(), none(), none(), none());
        let (each, of_blocks) = ((warps / blocks.max(1)).max(1), vec![Known::default(); blocks.max(1) as usize]);
        *self = Clock { block, each, events, barrier, cluster, meeting, of_blocks, ..Clock::default() };
    }

    /// The block of its cluster that a warp is of.
    fn member(&self, warp: u32) -> usize {
        if self.of_blocks.len() == 1 { 0 } else { (warp / self.each) as usize }
    }

    pub fn block(&self) -> u32 {
        self.block
    }

    /// The stamp of an access that a thread makes now.
    pub fn stamp(&self, statement: u32, thread: u32, atomic: bool) -> Stamp {
        let who = statement << 13 | if atomic { ATOMIC } else { 0 } | thread;
        Stamp { block: self.block, who, epoch: self.events[(thread / WARP) as usize] }
    }

    /// The stamp of what TMA copies, in a phase of the mbarrier that counts its bytes.
    pub fn stamp_of_copy(&self, statement: u32, mbarrier: u32, phase: u32) -> Stamp {
        let thread = (FIRST_MBARRIER + mbarrier) * WARP;
        Stamp { block: self.block, who: statement << 13 | thread, epoch: phase }
    }

    /// Returns true if an earlier access is ordered before the thread's current access.
    #[inline]
    pub fn ordered(&self, earlier: Stamp, thread: u32) -> bool {
        if earlier.block == self.block {
            let (theirs, mine) = (earlier.warp() as usize, (thread / WARP) as usize);
            if earlier.thread() == thread
                || earlier.epoch < self.cluster[theirs]
                || (earlier.epoch < self.barrier[theirs] && self.member(earlier.warp()) == self.member(thread / WARP))
                || (theirs == mine && earlier.epoch < self.meeting[theirs])
            {
                return true;
            }
        }
        self.acquired && self.knows(earlier, thread)
    }

    #[cold]
    fn knows(&self, earlier: Stamp, thread: u32) -> bool {
        let of_warp = || self.of_warps.get(&(thread / WARP)).is_some_and(|k| k.covers(earlier));
        let of_thread = || self.of_threads.get(&thread).is_some_and(|k| k.covers(earlier));
        let of_block = || self.of_blocks.get(self.member(thread / WARP)).is_some_and(|k| k.covers(earlier));
        of_block() || of_warp() || of_thread()
    }

    /// All threads of a block of the cluster meet, or of all its blocks.
    pub fn barrier(&mut self, member: Option<u32>) {
        // Mbarriers do not take part.
        let warps = self.events.len().min(FIRST_MBARRIER as usize);
        let whole = member.is_none() || self.of_blocks.len() == 1;
        let (from, to) = match member {
            Some(member) if !whole => ((member * self.each) as usize, ((member + 1) * self.each) as usize),
            _ => (0, warps),
        };
        for w in from..to.min(warps) {
            self.events[w] += 1;
            (self.barrier[w], self.meeting[w]) = (self.events[w], self.events[w]);
            if member.is_none() {
                self.cluster[w] = self.events[w];
            }
        }
        let mut learnt = Known::default();
        let ours = |warp: u32| (from..to).contains(&(warp as usize));
        self.of_warps.retain(|warp, known| {
            !ours(*warp) || {
                learnt.learn(known);
                false
            }
        });
        self.of_threads.retain(|thread, known| {
            !ours(*thread / WARP) || {
                learnt.learn(known);
                false
            }
        });
        match member {
            Some(member) => self.of_blocks.get_mut(member as usize).into_iter().for_each(|k| k.learn(&learnt)),
            None => {
                self.of_blocks.iter().for_each(|k| learnt.learn(k));
                self.of_blocks.iter_mut().for_each(|k| *k = learnt.clone());
            }
        }
    }

    /// The first warps of a block of the cluster meet.
    pub fn first(&mut self, member: u32, warps: u32) {
        let of = member * self.each..member * self.each + warps;
        let mut learnt = Known::default();
        for warp in of.clone() {
            self.meet(warp);
            learnt.learn(&self.release(warp, u32::MAX));
        }
        of.for_each(|warp| self.acquire(warp, u32::MAX, &learnt));
    }

    pub fn meet(&mut self, warp: u32) {
        let at = warp as usize;
        self.events[at] += 1;
        self.meeting[at] = self.events[at];
        if self.acquired {
            for thread in warp * WARP..(warp + 1) * WARP {
                if let Some(known) = self.of_threads.remove(&thread) {
                    self.of_warps.entry(warp).or_default().learn(&known);
                }
            }
        }
    }

    /// An event of some lanes of a warp: what they did before it.
    pub fn event(&mut self, warp: u32, lanes: u32) -> Known {
        let mut known = Known::default();
        self.events[warp as usize] += 1;
        known.add(self.block, warp, lanes, self.events[warp as usize]);
        known
    }

    /// The knowledge that lanes of a warp pass on when they release together.
    pub fn release(&mut self, warp: u32, lanes: u32) -> Known {
        let mut known = self.event(warp, lanes);
        known.learn(&self.known(warp, lanes));
        known
    }

    /// The events of others that lanes of a warp know of.
    pub fn known(&self, warp: u32, lanes: u32) -> Known {
        let mut known = Known::default();
        let member = self.member(warp);
        self.of_blocks.get(member).into_iter().for_each(|k| known.learn(k));
        self.of_warps.get(&warp).into_iter().for_each(|k| known.learn(k));
        for lane in (0..WARP).filter(|l| self.acquired && lanes >> l & 1 == 1) {
            self.of_threads.get(&(warp * WARP + lane)).into_iter().for_each(|k| known.learn(k));
        }
        for (w, (own, all)) in self.barrier.iter().zip(&self.cluster).enumerate() {
            let until = if self.member(w as u32) == member { *own.max(all) } else { *all };
            if until > 0 {
                raise(&mut known.warps, (self.block, w as u32), until);
            }
        }
        if self.meeting[warp as usize] > 0 {
            raise(&mut known.warps, (self.block, warp), self.meeting[warp as usize]);
        }
        known
    }

    /// Lanes of a warp learn what was released.
    pub fn acquire(&mut self, warp: u32, lanes: u32, what: &Known) {
        if what.is_empty() {
            return;
        }
        self.acquired = true;
        if lanes == u32::MAX {
            return self.of_warps.entry(warp).or_default().learn(what);
        }
        for lane in (0..WARP).filter(|l| lanes >> l & 1 == 1) {
            self.of_threads.entry(warp * WARP + lane).or_default().learn(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(block: u32) -> Clock {
        let mut clock = Clock::default();
        clock.begin(block, 2, 1, 0);
        clock
    }

    #[test]
    fn meetings_order_those_who_met() {
        let mut c = clock(1);
        let (a, b) = (c.stamp(0, 3, false), c.stamp(1, 40, false));
        assert!(c.ordered(a, 3) && !c.ordered(a, 4) && !c.ordered(a, 40));
        c.meet(0);
        assert!(c.ordered(a, 4) && !c.ordered(a, 40) && !c.ordered(b, 41));
        c.barrier(None);
        assert!(c.ordered(a, 40) && c.ordered(b, 0));
        let later = c.stamp(2, 3, false);
        assert!(!c.ordered(later, 4));
    }

    #[test]
    fn a_release_passes_on_what_its_thread_knows() {
        let (mut a, mut b) = (clock(1), clock(2));
        let before = a.stamp(0, 5, false);
        let of_other_warp = a.stamp(0, 40, false);
        a.barrier(None);
        let unseen = a.stamp(0, 6, false);
        let message = a.release(0, 1);
        let after = a.stamp(0, 0, false);
        assert!(!b.ordered(before, 33));
        b.acquire(1, 2, &message);
        assert!(b.ordered(before, 33) && b.ordered(of_other_warp, 33));
        assert!(!b.ordered(unseen, 33), "thread 6 is not behind what thread 0 released");
        assert!(!b.ordered(after, 33), "it came after the release");
        assert!(!b.ordered(before, 34), "only thread 33 acquired");
        b.meet(1);
        assert!(b.ordered(before, 34) && !b.ordered(before, 0));
        b.barrier(None);
        assert!(b.ordered(before, 0));
        // And further on, through the second block.
        let mut c = clock(3);
        let passed = b.release(0, 1 << 7);
        c.acquire(0, 1, &passed);
        assert!(c.ordered(before, 0) && !c.ordered(unseen, 0));
    }

    #[test]
    fn a_stamp_keeps_what_it_is_given() {
        let s = clock(9).stamp(MOST_STATEMENTS - 1, 63, true);
        assert_eq!((s.block, s.statement(), s.thread(), s.atomic()), (9, MOST_STATEMENTS - 1, 63, true));
        assert!(Stamp::default().is_none() && !s.is_none());
    }
}
