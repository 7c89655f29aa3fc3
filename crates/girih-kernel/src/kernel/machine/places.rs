//! The targets of a warp's accesses: bytes of the thread's scratch, of the block's shared memory, or addresses.

use super::code::{Access, At};
use super::ops::each;
use crate::base::memory::{Fault, Memory};
use crate::kernel::ir::{BufId, Space};
use crate::loops::eval::access;
use crate::num::DType;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Scratch,
    Shared,
    Memory,
    /// Slots of the thread.
    Own,
}

/// The first element that each lane of a warp touches.
pub(super) struct Places<const W: usize> {
    pub kind: Kind,
    pub elem: DType,
    /// The origin of the index: a byte of the block's scratch or shared memory, or an address.
    pub base: [u64; W],
    pub index: [i64; W],
    /// The slot and the number of its elements; `None` in memory, which knows its own bounds.
    pub slot: Option<(BufId, u64)>,
}

impl<const W: usize> Places<W> {
    /// `first_thread` is the first thread of the warp, and `shared` the place where the shared memory of its block
    /// begins.
    pub fn of(access: &Access, regs: &[[u64; W]], first_thread: u32, scratch_bytes: u64, shared: u64) -> Places<W> {
        match &access.at {
            At::Memory { base, index, elem } => {
                let (base, index) = (regs[*base as usize], index.lanes(regs));
                Places { kind: Kind::Memory, elem: *elem, base, index, slot: None }
            }
            At::Slot { buf, space, offset, len, index, elem, of } => {
                let (index, slot) = (index.lanes(regs), Some((*buf, *len)));
                let (kind, base) = match space {
                    Space::Shared | Space::Mbarrier => {
                        let begins = of.map_or(shared, |(_, begins)| begins);
                        (Kind::Shared, [begins + *offset; W])
                    }
                    Space::Scratch | Space::Kept { .. } => {
                        let thread = |l| u64::from(first_thread) + l as u64;
                        (Kind::Scratch, std::array::from_fn(|l| thread(l) * scratch_bytes + offset))
                    }
                };
                Places { kind, elem: *elem, base, index, slot }
            }
            At::Own { buf, first, len, index, elem } => {
                let (index, slot) = (index.lanes(regs), Some((*buf, *len)));
                Places { kind: Kind::Own, elem: *elem, base: [u64::from(*first); W], index, slot }
            }
        }
    }

    /// Returns true if `count` elements of a lane's place lie in its slot.
    pub fn inside(&self, lane: usize, count: u32) -> bool {
        self.slot.is_none_or(|(_, len)| {
            let first = u64::try_from(self.index[lane]).ok();
            first.and_then(|at| at.checked_add(u64::from(count))).is_some_and(|end| end <= len)
        })
    }

    /// The slot.
    pub fn buf(&self) -> Option<BufId> {
        self.slot.map(|(buf, _)| buf)
    }

    /// The lanes whose place is the upper half of a byte, where two elements share a byte of memory.
    pub fn upper(&self, lanes: u32) -> Option<u32> {
        if self.elem.bits() != 4 || self.kind != Kind::Memory {
            return None;
        }
        let mut upper = 0;
        each::<W>(lanes, |l| upper |= ((self.index[l] & 1) as u32) << l);
        Some(upper)
    }

    /// The byte or the address of a lane's first element.
    pub fn address(&self, lane: usize) -> u64 {
        let index = self.index[lane] as u64;
        let bytes = if self.elem.bits() == 4 { index >> 1 } else { index.wrapping_mul(self.elem.bytes()) };
        self.base[lane].wrapping_add(bytes)
    }
}

/// The memory that a thread can read and write.
pub(super) struct Stores<'a, const W: usize> {
    pub memory: &'a mut dyn Memory,
    pub scratch: &'a mut [u8],
    pub shared: &'a mut [u8],
    /// The slots of the warp.
    pub regs: &'a mut [[u64; W]],
}

impl<const W: usize> Stores<'_, W> {
    /// The element `v` behind a lane's first one; the index is inside its slot.
    pub fn read(&self, p: &Places<W>, lane: usize, v: u32) -> Result<u64, Fault> {
        let index = p.index[lane].wrapping_add(i64::from(v));
        match p.kind {
            Kind::Memory => access::load(self.memory, p.base[lane], index, p.elem),
            Kind::Own => Ok(self.regs.get(own(p.base[lane], index)).map_or(0, |lanes| lanes[lane])),
            Kind::Scratch => Ok(element(self.scratch, p.base[lane], index, p.elem)),
            Kind::Shared => Ok(element(self.shared, p.base[lane], index, p.elem)),
        }
    }

    pub fn write(&mut self, p: &Places<W>, lane: usize, v: u32, bits: u64) -> Result<(), Fault> {
        let index = p.index[lane].wrapping_add(i64::from(v));
        let bytes = match p.kind {
            Kind::Memory => return access::store(self.memory, p.base[lane], index, p.elem, bits),
            Kind::Own => {
                if let Some(to) = self.regs.get_mut(own(p.base[lane], index)) {
                    to[lane] = bits & p.elem.mask();
                }
                return Ok(());
            }
            Kind::Scratch => &mut *self.scratch,
            Kind::Shared => &mut *self.shared,
        };
        let (at, bits) = (byte(p.base[lane], index, p.elem), bits & p.elem.mask());
        let size = p.elem.bytes() as usize;
        if let Some(to) = bytes.get_mut(at..at.saturating_add(size)) {
            to.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        Ok(())
    }
}

/// The slot of an element.
fn own(first: u64, index: i64) -> usize {
    first.wrapping_add(index as u64) as usize
}

fn byte(base: u64, index: i64, elem: DType) -> usize {
    base.wrapping_add((index as u64).wrapping_mul(elem.bytes())) as usize
}

/// An element of a slot.
pub(super) fn element(bytes: &[u8], base: u64, index: i64, elem: DType) -> u64 {
    let (at, size) = (byte(base, index, elem), elem.bytes() as usize);
    let mut word = [0u8; 8];
    if let Some(from) = bytes.get(at..at.saturating_add(size)) {
        word[..size].copy_from_slice(from);
    }
    match elem {
        DType::I1 => u64::from(word[0] != 0),
        elem => u64::from_le_bytes(word) & elem.mask(),
    }
}
