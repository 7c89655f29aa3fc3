//! Registers that the warpgroups of a block give each other.
//!
//! A kernel whose warpgroups do is compiled with as many registers a thread as leave a multiprocessor room for one block. Those of the
//! block are a pool: `registers fewer` gives some back to it, and `registers more` waits until it has as many.
//!
//! ```text
//! threads 384               168 each, 64512 in all
//! registers fewer 24        a warpgroup gives back 144 * 128 = 18432
//! registers more 240        two take 72 * 256 = 18432; 248 would take 20480, and never return
//! ```

/// Registers of a multiprocessor.
pub const ALL: u32 = 65_536;
/// What a thread may have, and of what that is a multiple.
pub const MOST: u32 = 256;
pub const UNIT: u32 = 8;

/// The registers of each thread when a block of so many begins.
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
