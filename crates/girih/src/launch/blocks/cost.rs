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
    /// Work worth sharing with a thread that is awake: it begins within half a microsecond. An LSTM's products of 9 us took 6.
    const WORTH_AWAKE: u64 = 3_000;
    /// Runs that are all measured; of later ones each sixteenth is. Two looks at the clock take a tenth of a small kernel's time.
    const FIRST: u32 = 16;

    /// How many of `threads` threads are worth their while for `blocks` blocks. `awake()` workers need not be woken.
    pub(super) fn threads(&self, threads: usize, blocks: i64, awake: impl FnOnce() -> usize) -> usize {
        let cost = self.block.load(Ordering::Relaxed);
        if cost == 0 {
            return threads;
        }
        let work = cost.saturating_mul(blocks as u64);
        let worth = |each: u64| (work / each).clamp(1, threads as u64) as usize;
        match (worth(Cost::WORTH), worth(Cost::WORTH_AWAKE)) {
            (woken, most) if woken < most => woken.max(most.min(awake() + 1)),
            (woken, _) => woken,
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
