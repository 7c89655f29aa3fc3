//! `if`, `for` and `while` of a kernel: the functions that the code of `#[girih::kernel]` calls at each of their steps.
//!
//! A branch whose condition is a tile runs its body twice, once for each side, a loop over a runtime range once. The variables
//! that a body assigns are handed over at each step: their tiles become arguments and results of Tile IR's `if`, `for` and `loop`;
//! what else they hold must be the same before and after. A loop that is left early becomes a `loop` with its counter among the
//! carried values, since Tile IR's `for` has no `break`; which of the two is settled when the body is known.

mod branch;
mod carried;
mod loops;

pub use branch::{Branch, Condition, end_of_block};
pub(super) use carried::saved;
pub use carried::{Carried, Leaf};
pub use loops::{Counted, Each, Range, Repeat, While, range, range_by};
