//! The cost of a kernel, by counting: statements, banks of shared memory, sectors of global memory.
//!
//! In: the addresses of the lanes of a warp. Out: the sectors of global memory that they take, and the fewest sectors
//! that the same number of bytes could take; [`crate::base::banks`] counts shared memory.
//!
//! ```text
//! x[tx*2]       f32: 256 bytes are crossed             8 sectors; 4 would do
//! ```

use rustc_hash::FxHashMap;

use super::WARP;
use super::report::Touched;
use crate::base::memory::Memory;

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

/// The counts of a statement, or of a run.
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

pub(super) const SECTOR: u64 = 32;

/// A set of sectors.
#[derive(Default)]
pub(super) struct Sectors {
    words: FxHashMap<u64, u64>,
    /// The last one added; neighbours follow each other.
    last: Option<u64>,
}

impl Sectors {
    /// Adds the sectors of some bytes, and returns the number of those that are new.
    pub fn add(&mut self, address: u64, bytes: u64) -> u32 {
        let mut new = 0;
        for sector in address / SECTOR..=address.saturating_add(bytes.max(1) - 1) / SECTOR {
            if self.last != Some(sector) {
                let word = self.words.entry(sector / 64).or_default();
                new += u32::from(*word >> (sector % 64) & 1 == 0);
                *word |= 1 << (sector % 64);
                self.last = Some(sector);
            }
        }
        new
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.last = None;
    }

    /// The sectors of each region, in order of their addresses; those of no region count with the one before.
    pub fn by_region(&self, memory: &dyn Memory) -> Vec<Touched> {
        let mut words: Vec<(u64, u64)> = self.words.iter().map(|(at, w)| (at * 64 * SECTOR, *w)).collect();
        words.sort_unstable();
        let mut out: Vec<Touched> = vec![];
        let mut end = 0;
        for (at, word) in words {
            let first = at + u64::from(word.trailing_zeros()) * SECTOR;
            if first >= end
                && let Some((_, start, bytes)) = memory.region(first).or_else(|| memory.region(first + SECTOR - 1))
            {
                end = start.saturating_add(bytes);
                out.push(Touched { sectors: 0, bytes });
            }
            if out.is_empty() {
                out.push(Touched { sectors: 0, bytes: u64::MAX });
            }
            out.last_mut().into_iter().for_each(|t| t.sectors += u64::from(word.count_ones()));
        }
        out
    }
}

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
