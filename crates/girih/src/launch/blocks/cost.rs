//! The time that a kernel's block takes, learnt from its runs, and the number of threads that a launch is worth.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// How long a block of a kernel takes, learnt from its runs.
#[derive(Debug, Default)]
pub struct Cost {
    /// In nanoseconds; 0 before the first run.
    block: AtomicU64,
    runs: AtomicU32,
}

impl Cost {
    /// Work worth waking a thread for, in nanoseconds.
    const WORTH: u64 = 15_000;
    /// Runs that are all measured; of later ones each sixteenth is. Two looks at the clock take a tenth of a small kernel's time.
    const FIRST: u32 = 16;

    /// How many of `threads` threads are worth their while for `blocks` blocks.
    pub(super) fn threads(&self, threads: usize, blocks: i64) -> usize {
        match self.block.load(Ordering::Relaxed) {
            0 => threads,
            cost => threads.min((cost.saturating_mul(blocks as u64) / Cost::WORTH).max(1) as usize),
        }
    }

    /// True if a run on up to `threads` threads is to be measured: one thread has no choice.
    pub(super) fn asks(&self, threads: usize) -> bool {
        if threads <= 1 {
            return false;
        }
        let before = self.runs.fetch_add(1, Ordering::Relaxed);
        before < Cost::FIRST || before.is_multiple_of(Cost::FIRST)
    }

    /// Learns from a thread's part of a run: fast to believe that blocks are cheap, slow that they are not, since a
    /// thread that was held up seems slow.
    pub(super) fn learn(&self, blocks: i64, took: Duration) {
        let new = (took.as_nanos() as u64 / blocks.max(1) as u64).max(1);
        let old = self.block.load(Ordering::Relaxed);
        self.block.store(if old == 0 || new < old { new } else { old + (new - old) / 4 }, Ordering::Relaxed);
    }
}
