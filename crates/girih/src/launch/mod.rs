//! Running compiled kernels.
//!
//! In: a compiled version, fitted arguments and a grid. Out: the blocks run on every core, and a report, a trap, a fault or
//! an interruption.
//!
//! From the bottom up: `pool` (threads), `faults` (accesses to memory that is not there), `blocks` (one launch over the
//! pool), `host` (prints, traps and stalls in words), `prepared` (a launch made ready,
//! natively or on the evaluator). `spec` reads launches written as text, `limits` measures what the machine can do.

pub mod blocks;
pub mod faults;
pub mod host;
pub mod limits;
pub mod pool;
pub mod prepared;
pub mod spec;
