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
pub mod warp_rows;
pub mod l2_reuse;
pub mod wide;

use crate::base::launch::Assumptions;
use crate::base::rule::{Rule, Rules};
use crate::loops::ir::Kernel;
use crate::loops::model::Plan;
use knobs::Knobs;
use target::Capability::{AsyncCopies, Caches, Products, TensorCopies, Threads, VectorArithmetic, Workers};
use target::{Capability, Target};

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

/// The capabilities that a rule needs: all of one of these sets.
type Needs = &'static [&'static [Capability]];

/// A rule, and what a machine must have for it.
type Entry<P> = (Rule<P, Context>, Needs);

/// The rules that look at all kernels of a model together.
const OF_PLANS: &[Entry<Plan>] = &[
    (rules::swap_operands::RULE, &[&[Caches, VectorArithmetic]]),
    (rules::pack_weights::RULE, &[&[Caches, VectorArithmetic]]),
    (rules::merge_folds::RULE, &[&[Threads], &[Caches, Workers]]),
    (rules::split_matmul_k::RULE, &[&[Threads]]),
    (rules::split_reduction::RULE, &[&[Threads], &[Caches, Workers]]),
];

/// The rules of single kernels, in the order they run.
const OF_KERNELS: &[Entry<Kernel>] = &[
    (rules::bound_alloca::RULE, &[&[]]),
    (rules::promote_alloca::RULE, &[&[Threads]]),
    (rules::rows_in_turn::RULE, &[&[Threads]]),
    (rules::reload_rows::RULE, &[&[Threads]]),
    (rules::unroll_batch::RULE, &[&[Threads]]),
    (rules::pair_terms::RULE, &[&[Caches, Workers]]),
    (rules::tileify::RULE, &[&[Caches, Workers], &[Threads]]),
    (rules::stream_rows::RULE, &[&[Caches, Workers], &[Threads]]),
    (rules::sink_rows::RULE, &[&[Threads]]),
    (rules::group_blocks::RULE, &[&[Threads]]),
    (rules::unroll_windows::RULE, &[&[Workers, VectorArithmetic]]),
    (rules::unroll_and_jam::RULE, &[&[Workers, VectorArithmetic]]),
    (rules::blockify::RULE, &[&[Workers]]),
    (rules::compute_once::RULE, &[&[Caches, Workers]]),
    (rules::count_bins::RULE, &[&[Caches, Workers], &[Threads]]),
    (rules::cache_blocks::RULE, &[&[Caches]]),
    (rules::chunk_matmul_k::RULE, &[&[Threads]]),
    (rules::stage_inputs::RULE, &[&[Caches, VectorArithmetic], &[Threads]]),
    (rules::tma_copy::RULE, &[&[Threads, TensorCopies]]),
    (rules::stage_outputs::RULE, &[&[Threads, Products]]),
    (rules::tensor_core::RULE, &[&[Threads, Products]]),
    (rules::register_tile::RULE, &[&[VectorArithmetic], &[Threads]]),
    (rules::fold_columns::RULE, &[&[Threads]]),
    (rules::fold_rows::RULE, &[&[Threads]]),
    (rules::share_rows::RULE, &[&[Threads]]),
    (rules::cluster_rows::RULE, &[&[Threads, TensorCopies]]),
    (rules::cooperative_reduce::RULE, &[&[Threads]]),
    (rules::cooperative_scan::RULE, &[&[Threads]]),
    (rules::keep_rows::RULE, &[&[Threads]]),
    (rules::blockify_launch::RULE, &[&[Threads]]),
    (rules::keep_tiles::RULE, &[&[Threads]]),
    (rules::spread_threads::RULE, &[&[Threads]]),
    (rules::wide_access::RULE, &[&[Threads]]),
    (rules::split_inner_for_swizzle::RULE, &[&[Threads, TensorCopies]]),
    (rules::swizzle::RULE, &[&[Threads, TensorCopies]]),
    (rules::pad_smem::RULE, &[&[Threads]]),
    (rules::double_buffer::RULE, &[&[Threads]]),
    (rules::async_copy::RULE, &[&[Threads, AsyncCopies]]),
    (rules::wgmma::RULE, &[&[Threads, Products, TensorCopies]]),
    (rules::overlap_products::RULE, &[&[Threads, Products, TensorCopies]]),
    (rules::warp_specialize::RULE, &[&[Threads, TensorCopies]]),
    (rules::cluster_blocks::RULE, &[&[Threads, TensorCopies]]),
    (rules::persist_blocks::RULE, &[&[Threads]]),
    (rules::split_digits::RULE, &[&[Caches]]),
    (rules::interleave_stores::RULE, &[&[VectorArithmetic]]),
    (rules::interchange::RULE, &[&[Caches]]),
    (rules::split_edges::RULE, &[&[VectorArithmetic]]),
    (rules::transpose::RULE, &[&[VectorArithmetic]]),
    (rules::vectorise::RULE, &[&[VectorArithmetic]]),
    (rules::trim_tiles::RULE, &[&[VectorArithmetic]]),
    (rules::prefetch::RULE, &[&[Caches, Workers]]),
    (rules::keep_stages::RULE, &[&[Caches, Workers]]),
    (rules::split_blocks::RULE, &[&[Threads]]),
    (rules::mark_unroll::RULE, &[&[]]),
];

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
