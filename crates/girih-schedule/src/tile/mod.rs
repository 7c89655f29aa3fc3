//! Tile IR: loop nests with placement, and the rules that place them.
//!
//! In: a kernel of loop IR (`loops::ir`), where nothing says how a loop runs. Out: the same kernel with blocks on the
//! worker pool, operands packed next to where they are used ([`Stmt::Stage`]), accumulators held in registers ([`Space`]),
//! loops in vector registers or unrolled ([`Place`]). Each rule is one file of `rules/`, reads the target and the knobs, and
//! leaves the value of the program as it is; only a reduction marked associative is reassociated, by the tree that
//! [`Combine`] fixes.
//!
//! ```text
//! for i in 0..128: free                            stage b_pack: ...
//!   for j in 0..128: free                          for j1 in 0..4: free
//!     for kk in 0..64: reduce contraction   -->      for i1 in 0..16: free
//!       ...                                            local acc_r: f32[8, 32] register(16)
//!                                                      for kk in 0..64: reduce
//!                                                        ...
//! ```
//!
//! [`Stmt::Stage`]: crate::loops::ir::Stmt::Stage
//! [`Space`]: crate::loops::ir::Space
//! [`Place`]: crate::loops::ir::Place
//! [`Combine`]: crate::loops::ir::Combine

pub mod accumulator;
pub mod affine;
pub mod blocking;
pub mod boxes;
pub mod conflicts;
pub mod contraction;
pub mod cost;
pub mod edit;
pub mod heuristics;
pub mod knobs;
pub mod matrix;
pub mod numbered;
pub mod tile_nest;
pub mod primitives;
pub mod causal_bounds;
pub mod reuse;
pub mod persistent_loop;
pub mod rows;
pub mod rules;
pub mod schedule;
pub mod sharing;
pub mod steps;
pub mod target;
pub mod l2_reuse;
pub mod lines;
pub mod wide;

use crate::base::launch::Assumptions;
use crate::base::rule::{Rule, Rules};
use crate::loops::ir::Kernel;
use crate::loops::model::Plan;
use knobs::Knobs;
use rules::{Entry, OF_KERNELS, OF_PLANS};
use target::Target;

/// The machine and the options that a rule of Tile IR may look at besides the program.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub target: Target,
    pub knobs: Knobs,
    /// Wrong accesses of the block's memory stop the kernel: accesses are checked, or the simulator runs it.
    pub check: bool,
    /// Facts that rules may assume about the launch.
    pub assume: Assumptions,
}

fn applicable<P>(entries: &'static [Entry<P>], target: &Target) -> Vec<&'static Rule<P, Context>> {
    let has = |(_, needs): &&Entry<P>| needs.iter().any(|all| all.iter().all(|c| target.has(*c)));
    entries.iter().filter(has).map(|(rule, _)| rule).collect()
}

/// The rules for a target that look at all kernels of a model together; they run first.
pub fn plan_rules(target: &Target) -> Rules<Plan, Context> {
    Rules { letter: 't', first: 1, rounds: 1, list: applicable(OF_PLANS, target), record: false }
}

/// The rules for a target that place single kernels. Placement is decided once: the list runs in one round.
pub fn rules(target: &Target) -> Rules<Kernel, Context> {
    let first = 1 + plan_rules(target).list.len();
    Rules { letter: 't', first, rounds: 1, list: applicable(OF_KERNELS, target), record: false }
}

#[cfg(any(test, feature = "testing"))]
pub mod tests;
