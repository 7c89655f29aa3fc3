//! Registers that the warpgroups of a block hand to each other.
//!
//! A kernel whose warpgroups do so is compiled with the most registers per thread that still let one block fit on a
//! multiprocessor. The registers of the block are a pool: `registers fewer` returns some to it, and `registers more`
//! waits until the pool has enough.
//!
//! ```text
//! threads 384               168 each, 64512 in all
//! registers fewer 24        a warpgroup gives back 144 * 128 = 18432
//! registers more 240        two take 72 * 256 = 18432; 248 would take 20480, and never return
//! ```

/// Registers of a multiprocessor.
pub const ALL: u32 = 65_536;
/// The most registers of a thread, and the unit they are allocated in.
pub const MOST: u32 = 256;
pub const UNIT: u32 = 8;

/// The registers of each thread when a block of `threads` threads begins.
pub fn at_first(threads: u32) -> u32 {
    (ALL / threads.max(1) / UNIT * UNIT).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_begins_with_what_a_multiprocessor_has() {
        assert_eq!([32, 128, 256, 384, 512, 1024].map(at_first), [256, 256, 256, 168, 128, 64]);
    }
}
