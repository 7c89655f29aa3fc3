//! Registers that the warps of a block give each other.
//!
//! In: `registers more` and `registers fewer` of the lanes of a warp. Out: the groups that wait and those that go on;
//! the watch is told of a count that changes the registers in the wrong direction. Values do not change.

use super::block::{Block, Machine, Wait};
use super::step::At;
use super::watch::{Lacks, Watch, Wrong};
use crate::base::launch::Trap;

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Changes the registers of a warp. Returns true if the group goes on: its warp now has `count` registers per
    /// thread.
    pub(super) fn registers(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        group: usize,
        (count, more): (u32, bool),
    ) -> Result<bool, Trap> {
        let member = self.member(at.warp);
        let (warp, free) = (&mut block.warps[at.warp], &mut block.members[member].registers);
        let has = warp.registers;
        if (more && count < has) || (!more && count > has) {
            self.watch.wrong(at.block, at.statement, (at.warp * W) as u32, Wrong::Change { count, more, has });
        } else if more {
            let needs = (count - has) * W as u32;
            if needs > *free {
                warp.groups[group].waits = Some(Wait::Registers(count));
                return Ok(false);
            }
            *free -= needs;
        } else {
            *free += (has - count) * W as u32;
        }
        warp.registers = count;
        warp.groups[group].at += 1;
        if !more {
            // Groups that wait for registers look again.
            let each = self.program.warps(W);
            for group in block.warps[member * each..(member + 1) * each].iter_mut().flat_map(|w| &mut w.groups) {
                if matches!(group.waits, Some(Wait::Registers(_))) {
                    group.waits = None;
                }
            }
        }
        Ok(true)
    }

    /// The registers that a waiting warp lacks.
    pub(super) fn lacks_registers(&self, block: &Block<W, V::Local>, warp: usize, asks: u32) -> Lacks {
        let (has, free) = (block.warps[warp].registers, block.members[self.member(warp)].registers);
        Lacks::Registers { asks, has, free, first: self.program.registers, threads: self.program.threads }
    }
}
