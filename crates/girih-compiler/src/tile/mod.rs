//! Tile IR: loop nests with placement, and the rules that place them.
//!
//! In: a kernel of loop IR (`loops::ir`), where nothing says how a loop runs. Out: the same kernel with blocks on the
//! worker pool, operands packed next to where they are used ([`Stmt::Stage`]), accumulators held in registers
//! ([`Stmt::RegisterTile`]), loops in vector registers or unrolled ([`Place`]). Each rule is one file of `rules/`, reads
//! the target and the knobs, and leaves the value of the program as it is; only a reduction marked associative is
//! reassociated, by the tree that [`Combine`] fixes.
//!
//! ```text
//! for i in 0..128: free                            stage b_pack: ...
//!   for j in 0..128: free                          for j1 in 0..4: free
//!     for kk in 0..64: reduce contraction   -->      for i1 in 0..16: free
//!       ...                                            register_tile acc (i2 8, j2 32 by 16 lanes):
//!                                                        for kk in 0..64: reduce contraction
//!                                                          ...
//! ```
//!
//! [`Stmt::Stage`]: crate::loops::ir::Stmt::Stage
//! [`Stmt::RegisterTile`]: crate::loops::ir::Stmt::RegisterTile
//! [`Place`]: crate::loops::ir::Place
//! [`Combine`]: crate::loops::ir::Combine

pub mod affine;
pub mod blocking;
pub mod contraction;
pub mod edit;
pub mod open;
pub mod rules;

use crate::base::rule::Rule;
use crate::loops::ir::Kernel;
use crate::loops::model::Plan;

/// The rules that look at all kernels of a model together; they run first.
pub const PLAN_RULES: &[Rule<Plan>] = &[rules::pack_weights::RULE];

/// The rules for a CPU, in the order they run.
pub const RULES: &[Rule<Kernel>] = &[
    rules::tileify::RULE,
    rules::stream_rows::RULE,
    rules::blockify::RULE,
    rules::cache_blocks::RULE,
    rules::stage_inputs::RULE,
    rules::register_tile::RULE,
    rules::interchange::RULE,
    rules::split_edges::RULE,
    rules::transpose::RULE,
    rules::vectorise::RULE,
    rules::mark_unroll::RULE,
];

#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod tests;
