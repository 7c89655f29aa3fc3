//! What a kernel costs, by counting: statements, banks of shared memory, sectors of global memory.
//!
//! In: the addresses of the lanes of a warp. Out: how many passes of shared memory, or sectors of global memory, they take,
//! and the least that any addresses for as many bytes take.
//!
//! ```text
//! tile[tx*32]   f32, 32 lanes: one bank, 32 words     32 wavefronts; 1 would do
//! tile[tx*33]   32 banks                               1 wavefront
//! x[tx*2]       f32: 256 bytes are crossed             8 sectors; 4 would do
//! ```
//! Shared memory has 32 banks of 4-byte words. Lanes that move 8 bytes are served by halves of a warp, those that move 16 by
//! quarters; lanes that want the same word are served together.

use crate::kernel::ir::WARP;

/// Requests of warps to one kind of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Statements that a warp ran and that touched memory.
    pub requests: u64,
    /// Bytes that the lanes asked for.
    pub bytes: u64,
    /// Wavefronts of shared memory, or 32-byte sectors of global memory.
    pub taken: u64,
    /// The same, if the addresses were as good as can be.
    pub least: u64,
}

impl Requests {
    pub(super) fn add(&mut self, bytes: u64, (taken, least): (u32, u32)) {
        self.requests += 1;
        self.bytes += bytes;
        self.taken += u64::from(taken);
        self.least += u64::from(least);
    }

    /// How many times the least is taken; 1 where nothing is asked for.
    pub fn ratio(&self) -> f64 {
        if self.least == 0 { 1.0 } else { self.taken as f64 / self.least as f64 }
    }
}

/// What a statement, or a run, took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Threads times statements: how often threads ran it.
    pub executions: u64,
    pub shared: Requests,
    pub global: Requests,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, o: Counts) {
        self.executions += o.executions;
        for (mine, other) in [(&mut self.shared, o.shared), (&mut self.global, o.global)] {
            mine.requests += other.requests;
            mine.bytes += other.bytes;
            mine.taken += other.taken;
            mine.least += other.least;
        }
    }
}

const BANKS: usize = 32;
/// Bytes of a wavefront that uses every bank.
pub(super) const BANK_BYTES: u64 = 4 * BANKS as u64;
const NONE: u8 = u8::MAX;

/// Wavefronts of one request to shared memory, and the least.
pub(super) fn wavefronts(address: &[u64], lanes: u32, bytes: u32) -> (u32, u32) {
    let at_once = if bytes <= 4 { WARP } else { (WARP * 4 / bytes).max(1) };
    let (mut taken, mut least) = (0, 0);
    for first in (0..WARP).step_by(at_once as usize) {
        let some = lanes & (u32::MAX >> (WARP - at_once)) << first;
        if some != 0 {
            taken += conflicts(address, some, bytes);
            least += 1;
        }
    }
    (taken, least)
}

/// The most words that lanes want of one bank.
fn conflicts(address: &[u64], lanes: u32, bytes: u32) -> u32 {
    // The words of a bank are a chain, its head by bank.
    let mut heads = [NONE; BANKS];
    let mut words = [(0u64, NONE); 64];
    let mut counts = [0u8; BANKS];
    let (mut used, mut most) = (0usize, 0);
    let mut left = lanes;
    while left != 0 {
        let l = left.trailing_zeros() as usize;
        left &= left - 1;
        let last = (address[l] + u64::from(bytes.max(1)) - 1) / 4;
        for word in address[l] / 4..=last {
            let bank = (word % BANKS as u64) as usize;
            let mut at = heads[bank];
            while at != NONE && words[at as usize].0 != word {
                at = words[at as usize].1;
            }
            if at != NONE || used == words.len() {
                continue;
            }
            words[used] = (word, heads[bank]);
            heads[bank] = used as u8;
            used += 1;
            counts[bank] += 1;
            most = most.max(counts[bank]);
        }
    }
    u32::from(most)
}

pub(super) const SECTOR: u64 = 32;

/// Sectors of one request to global memory, and the least for as many different bytes.
pub(super) fn sectors(address: &[u64], lanes: u32, bytes: u32) -> (u32, u32) {
    let mut sorted = [0; WARP as usize];
    let mut count = 0;
    let mut left = lanes;
    while left != 0 {
        sorted[count] = address[left.trailing_zeros() as usize];
        count += 1;
        left &= left - 1;
    }
    let sorted = &mut sorted[..count];
    if !sorted.is_sorted() {
        sorted.sort_unstable();
    }
    let (mut different, mut taken) = (0u64, 0u32);
    let (mut before, mut next) = (None, 0);
    for a in sorted.iter() {
        different += u64::from(before != Some(*a));
        before = Some(*a);
        let first = (a / SECTOR).max(next);
        let end = a.saturating_add(u64::from(bytes.max(1)) - 1) / SECTOR + 1;
        taken += end.saturating_sub(first) as u32;
        next = next.max(end);
    }
    (taken, (different * u64::from(bytes)).div_ceil(SECTOR) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(f: impl Fn(u64) -> u64) -> [u64; 32] {
        std::array::from_fn(|l| f(l as u64))
    }

    #[test]
    fn banks() {
        let all = u32::MAX;
        assert_eq!(wavefronts(&at(|l| l * 4), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), all, 4), (32, 1));
        assert_eq!(wavefronts(&at(|l| l * 132), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 8), all, 4), (2, 1));
        assert_eq!(wavefronts(&at(|_| 64), all, 4), (1, 1));
        assert_eq!(wavefronts(&at(|l| (l % 2) * 128), all, 4), (2, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), 0b111, 4), (3, 1));
        // Two lanes share a word.
        assert_eq!(wavefronts(&at(|l| l * 2), all, 2), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 8), all, 8), (2, 2));
        assert_eq!(wavefronts(&at(|l| l * 16), all, 16), (4, 4));
        assert_eq!(wavefronts(&at(|l| l * 16), 0xff, 16), (1, 1));
        assert_eq!(wavefronts(&at(|l| l * 128), all, 16), (32, 4));
        assert_eq!(wavefronts(&at(|l| l * 144), all, 16), (4, 4));
        assert_eq!(wavefronts(&at(|l| l * 4), 0, 4), (0, 0));
    }

    #[test]
    fn sectors_of_global_memory() {
        let all = u32::MAX;
        assert_eq!(sectors(&at(|l| l * 4), all, 4), (4, 4));
        assert_eq!(sectors(&at(|l| (31 - l) * 4), all, 4), (4, 4));
        assert_eq!(sectors(&at(|l| l * 8), all, 4), (8, 4));
        assert_eq!(sectors(&at(|l| l * 4 + 16), all, 4), (5, 4));
        assert_eq!(sectors(&at(|l| l * 4096), all, 4), (32, 4));
        assert_eq!(sectors(&at(|_| 100), all, 4), (1, 1));
        assert_eq!(sectors(&at(|l| l * 16), all, 16), (16, 16));
        assert_eq!(sectors(&at(|l| l * 4), 1, 4), (1, 1));
        assert_eq!(sectors(&at(|l| l * 32 + 24), all, 16), (33, 16));
    }
}
