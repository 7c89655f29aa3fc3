//! Running compiled kernels.
//!
//! In: a compiled version, fitted arguments and a grid. Out: the blocks run on every core, and a report, a trap, a fault or
//! an interruption.
//!
//! From the bottom up: `pool` (threads), `faults` (accesses to memory that is not there), `blocks` (one launch over the
//! pool), `host` (prints, traps and stalls in words), `simulate` (a kernel on the simulator), `prepared` (a launch made
//! ready, natively, on the evaluator or on the simulator), `profile` (its time beside the machine's limits), `unwritten` (elements that a
//! checked launch left out). `limits` measures the machine's limits, and `work` is the
//! simulator's counts as JSON.

pub mod blocks;
pub mod faults;
pub mod host;
pub mod bandwidth;
pub mod limits;
pub mod pool;
pub mod prepared;
pub mod profile;
pub mod simulate;
pub mod work;
mod unwritten;
