//! Detects blocks that loop for ever.
//!
//! In: the blocks under way, examined now and then while none of them ends. Out: whether their state repeats an earlier
//! one although memory has not changed since. Then it will repeat for ever: only a block's registers, shared memory,
//! scratch and global memory determine what it does next.
//!
//! ```text
//! loop { v = load f[0] acquire; if v == 1 { break } }     with f[0] = 0 and nobody left who writes it
//! ```
//! Invariants: a state is compared with a saved one, which is renewed after 1, 2, 4, ... looks (Brent's algorithm), so
//! that any period is found. A counting loop is not reported: its states differ.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use rustc_hash::FxHasher;

use super::block::{Block, Group, Machine, Wait};
use super::watch::{Stalled, Watch};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::base::memory::{Fault, Memory};
use crate::loops::eval::blocks::SLICE;

/// The looks without a change of memory after which a block that waits for no other counts as looping.
const QUIET: u32 = 64;

/// Instructions of a block that waits for no other, between two looks.
const LOOK: u64 = 2 * SLICE as u64;

/// The data that is kept of former looks.
#[derive(Default)]
pub(super) struct Looks {
    kept: Option<u64>,
    /// The looks since then, and the number after which the next state is kept.
    since: u32,
    until: u32,
    /// The changes of memory at the last look, and the looks since a change.
    changes: u64,
    quiet: u32,
    /// Instructions since the last look that compared.
    instructions: u64,
}

impl Looks {
    /// Returns true if a state equals the saved one.
    fn again(&mut self, state: u64) -> bool {
        if self.kept == Some(state) {
            return true;
        }
        self.since += 1;
        if self.since >= self.until {
            *self = Looks { kept: Some(state), since: 0, until: (self.until * 2).max(1), ..*self };
        }
        false
    }
}

/// Memory that counts its changes; where blocks may wait for each other, only writes that change bytes count.
pub(super) struct Counted<'a> {
    memory: &'a mut dyn Memory,
    changes: Rc<Cell<u64>>,
    compares: bool,
}

impl<'a> Counted<'a> {
    pub fn new(memory: &'a mut dyn Memory, compares: bool) -> (Counted<'a>, Rc<Cell<u64>>) {
        let changes = Rc::new(Cell::new(0));
        (Counted { memory, changes: changes.clone(), compares }, changes)
    }
}

/// Bytes that are compared at once.
const PIECE: usize = 64;

impl Memory for Counted<'_> {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, out)
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut old = [0; PIECE];
        let same = self.compares
            && old.get_mut(..bytes.len()).is_some_and(|old| self.memory.read(addr, old).is_ok() && *old == *bytes);
        if !same {
            self.changes.set(self.changes.get().wrapping_add(1));
        }
        self.memory.write(addr, bytes)
    }
    fn allocate(&mut self, len: u64, align: u64) -> u64 {
        self.memory.allocate(len, align)
    }
    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        self.memory.region(addr)
    }
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Returns true if the blocks, while none has ended for a while, are in the same state as before.
    pub(super) fn goes_round(&mut self, live: &[Block<W, V::Local>]) -> bool {
        let changes = self.changes.get();
        if std::mem::replace(&mut self.looks.changes, changes) != changes {
            self.looks = Looks { changes, ..Looks::default() };
            self.schedule.settle(false);
            return false;
        }
        self.looks.quiet = self.looks.quiet.saturating_add(1);
        // Randomly scheduled threads never repeat a state.
        if self.program.cooperative || self.looks.quiet >= QUIET {
            self.schedule.settle(true);
        }
        // A look hashes all the state of a block: where that is much, looks are rare.
        if !self.program.cooperative {
            self.looks.instructions += LOOK;
            if self.looks.instructions < live.iter().map(Block::bytes).sum::<u64>() / 2 {
                return false;
            }
            self.looks.instructions = 0;
        }
        let mut state = FxHasher::default();
        live.iter().for_each(|block| block.hash_into(&mut state));
        self.looks.again(state.finish())
    }

    /// The trap of a run whose blocks loop for ever; `left` blocks have not begun.
    pub(super) fn stalled(&mut self, live: &[Block<W, V::Local>], left: u64) -> Trap {
        let Some(block) = live.first() else { return self.broken([0; 3], "no block is under way") };
        // A group gives way behind the statement that it waits at.
        let of = |at: u32| self.program.statements.get(at.saturating_sub(1) as usize).copied().unwrap_or(0);
        let groups = block.warps.iter().enumerate().flat_map(|(w, warp)| warp.groups.iter().map(move |g| (w, g)));
        let first = groups.into_iter().find(|(_, g)| g.waits.is_none());
        let (statement, thread) = first.map_or((0, 0), |(w, g)| (of(g.at), (w * W) as u32 + g.lanes.trailing_zeros()));
        // Blocks that wait for no other run one after the other.
        let left = if self.program.cooperative { left } else { 0 };
        let cluster = u64::from(self.program.cluster);
        let (resident, left) = (live.len() as u64 * cluster, left.saturating_mul(cluster));
        let stalled = Stalled { block: block.id, statement, thread, resident, left };
        let message = match (resident, left) {
            (1, 0) => "the block runs in a loop that nothing ends".to_string(),
            (n, 0) => format!("{n} blocks wait in loops that nothing ends"),
            (n, left) => format!(
                "the {n} blocks that the GPU has at once wait for blocks that have not begun: {left} begin only when others end"
            ),
        };
        let id = block.id;
        self.watch.stalled(stalled);
        self.trap(id, Code::OutOfFuel, None, message)
    }
}

impl<const W: usize, L> Block<W, L> {
    fn bytes(&self) -> u64 {
        let registers: usize = self.warps.iter().map(|w| w.regs.len() * W * size_of::<u64>()).sum();
        (self.scratch.len() + self.shared.len() + registers) as u64
    }

    fn hash_into(&self, state: &mut FxHasher) {
        (self.id, self.live, self.waiting, self.out.len()).hash(state);
        (&self.scratch, &self.shared).hash(state);
        for m in &self.mbarriers {
            m.hash_into(state);
        }
        for warp in &self.warps {
            warp.regs.hash(state);
            let mut groups: Vec<&Group> = warp.groups.iter().collect();
            groups.sort_unstable_by_key(|g| g.lanes);
            for Group { at, lanes, waits } in groups {
                let waits = match waits {
                    None => (0, 0),
                    Some(Wait::Warp) => (1, 0),
                    Some(Wait::Block) => (2, 0),
                    Some(Wait::Cluster) => (3, 0),
                    Some(Wait::Phase(number)) => (4, *number),
                    Some(Wait::Registers(count)) => (5, *count),
                    Some(Wait::First(count)) => (6, *count),
                };
                (at, lanes, waits).hash(state);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_period_is_found() {
        for (lead, period) in [(0, 1), (3, 1), (0, 7), (5, 12), (100, 33)] {
            let mut looks = Looks::default();
            let state = |n: u64| if n < lead { 1000 + n } else { (n - lead) % period };
            let found = (0..2000).find(|n| looks.again(state(*n)));
            assert!(
                found.is_some_and(|n| n >= lead + period && n < 4 * (lead + period) + 4),
                "{lead} {period}: {found:?}"
            );
        }
        let mut looks = Looks::default();
        assert!((0..2000).all(|n| !looks.again(n)));
    }
}
