//! The time that a kernel's block takes, learnt from its runs, and the number of threads that a launch is worth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a block of a kernel takes, in nanoseconds, learnt from its runs; 0 before the first.
#[derive(Debug, Default)]
pub struct Cost(AtomicU64);

impl Cost {
    /// Work worth waking a thread for, in nanoseconds.
    const WORTH: u64 = 15_000;

    /// How many of `threads` threads are worth their while for `blocks` blocks.
    pub(super) fn threads(&self, threads: usize, blocks: i64) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => threads,
            cost => threads.min((cost.saturating_mul(blocks as u64) / Cost::WORTH).max(1) as usize),
        }
    }

    /// Learns from a thread's part of a run: fast to believe that blocks are cheap, slow that they are not, since a
    /// thread that was held up seems slow.
    pub(super) fn learn(&self, blocks: i64, took: Duration) {
        let new = (took.as_nanos() as u64 / blocks.max(1) as u64).max(1);
        let old = self.0.load(Ordering::Relaxed);
        self.0.store(if old == 0 || new < old { new } else { old + (new - old) / 4 }, Ordering::Relaxed);
    }
}
