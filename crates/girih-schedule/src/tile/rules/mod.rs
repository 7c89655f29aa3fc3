//! The tile rules, one file each, and the order they run in.

pub mod approximate_weights;
pub mod async_copy;
pub mod blockify;
pub mod blockify_launch;
pub mod bound_alloca;
pub mod cache_blocks;
pub mod chunk_matmul_k;
pub mod cluster_blocks;
pub mod cluster_rows;
pub mod compute_once;
pub mod cooperative_reduce;
pub mod cooperative_scan;
pub mod count_bins;
pub mod double_buffer;
pub mod fission_rows;
pub mod fold_columns;
pub mod fold_rows;
pub mod group_blocks;
pub mod interchange;
pub mod interleave_stores;
pub mod jam_terms;
pub mod keep_rows;
pub mod keep_stages;
pub mod keep_tiles;
pub mod mark_unroll;
pub mod merge_folds;
pub mod normalize_loops;
pub mod overlap_products;
pub mod pack_weights;
pub mod pad_smem;
pub mod pair_terms;
pub mod persist_blocks;
pub mod prefetch;
pub mod promote_alloca;
pub mod register_tile;
pub mod reload_rows;
pub mod rows_in_turn;
pub mod share_rows;
pub mod sink_rows;
pub mod split_blocks;
pub mod split_digits;
pub mod split_edges;
pub mod split_inner_for_swizzle;
pub mod split_keys;
pub mod split_matmul_k;
pub mod split_reduction;
pub mod spread_threads;
pub mod stage_inputs;
pub mod stage_outputs;
pub mod stream_rows;
pub mod strip_carried;
pub mod swap_operands;
pub mod swizzle;
pub mod tensor_core;
pub mod tileify;
pub mod tma_copy;
pub mod transpose;
pub mod trim_tiles;
pub mod unroll_and_jam;
pub mod unroll_batch;
pub mod unroll_windows;
pub mod vectorise;
pub mod warp_specialize;
pub mod wgmma;
pub mod wide_access;

use crate::base::rule::Rule;
use crate::loops::ir::*;
use crate::loops::model::Plan;
use crate::loops::walk;
use crate::tile::Context;
use crate::tile::target::Capability::{self, *};

/// The capabilities that a rule needs: all of one of these sets.
type Needs = &'static [&'static [Capability]];

/// A rule, and what a machine must have for it.
pub(super) type Entry<P> = (Rule<P, Context>, Needs);

/// The rules that look at all kernels of a model together.
pub(super) const OF_PLANS: &[Entry<Plan>] = &[
    (swap_operands::RULE, &[&[Caches, VectorArithmetic]]),
    (pack_weights::RULE, &[&[Caches, VectorArithmetic]]),
    (merge_folds::RULE, &[&[Threads], &[Caches, Workers]]),
    (split_matmul_k::RULE, &[&[Threads]]),
    (split_reduction::RULE, &[&[Threads], &[Caches, Workers]]),
    (split_keys::RULE, &[&[Threads]]),
];

/// The rules of single kernels, in the order they run.
pub(super) const OF_KERNELS: &[Entry<Kernel>] = &[
    (bound_alloca::RULE, &[&[]]),
    (promote_alloca::RULE, &[&[Threads]]),
    (rows_in_turn::RULE, &[&[Threads]]),
    (reload_rows::RULE, &[&[Threads]]),
    (unroll_batch::RULE, &[&[Threads]]),
    (pair_terms::RULE, &[&[Caches, Workers]]),
    (tileify::RULE, &[&[Caches, Workers], &[Threads]]),
    (stream_rows::RULE, &[&[Caches, Workers], &[Threads]]),
    (sink_rows::RULE, &[&[Threads]]),
    (group_blocks::RULE, &[&[Threads]]),
    (unroll_windows::RULE, &[&[Workers, VectorArithmetic]]),
    (jam_terms::RULE, &[&[Workers, VectorArithmetic]]),
    (unroll_and_jam::RULE, &[&[Workers, VectorArithmetic]]),
    (blockify::RULE, &[&[Workers]]),
    (compute_once::RULE, &[&[Caches, Workers]]),
    (fission_rows::RULE, &[&[Caches, Workers, VectorArithmetic]]),
    (count_bins::RULE, &[&[Caches, Workers], &[Threads]]),
    (cache_blocks::RULE, &[&[Caches]]),
    (normalize_loops::RULE, &[&[Threads, Products]]),
    (chunk_matmul_k::RULE, &[&[Threads]]),
    (stage_inputs::RULE, &[&[Caches, VectorArithmetic], &[Threads]]),
    (tma_copy::RULE, &[&[Threads, TensorCopies]]),
    (stage_outputs::RULE, &[&[Threads, Products]]),
    (approximate_weights::RULE, &[&[Threads, Products]]),
    (tensor_core::RULE, &[&[Threads, Products]]),
    (register_tile::RULE, &[&[VectorArithmetic], &[Threads]]),
    (fold_columns::RULE, &[&[Threads]]),
    (fold_rows::RULE, &[&[Threads]]),
    (share_rows::RULE, &[&[Threads]]),
    (cluster_rows::RULE, &[&[Threads, TensorCopies]]),
    (cooperative_reduce::RULE, &[&[Threads]]),
    (cooperative_scan::RULE, &[&[Threads]]),
    (keep_rows::RULE, &[&[Threads]]),
    (blockify_launch::RULE, &[&[Threads]]),
    (keep_tiles::RULE, &[&[Threads]]),
    (spread_threads::RULE, &[&[Threads]]),
    (wide_access::RULE, &[&[Threads]]),
    (split_inner_for_swizzle::RULE, &[&[Threads, TensorCopies]]),
    (swizzle::RULE, &[&[Threads, TensorCopies]]),
    (pad_smem::RULE, &[&[Threads]]),
    (double_buffer::RULE, &[&[Threads]]),
    (async_copy::RULE, &[&[Threads, AsyncCopies]]),
    (wgmma::RULE, &[&[Threads, Products, TensorCopies]]),
    (overlap_products::RULE, &[&[Threads, Products, TensorCopies]]),
    (warp_specialize::RULE, &[&[Threads, TensorCopies]]),
    (cluster_blocks::RULE, &[&[Threads, TensorCopies]]),
    (persist_blocks::RULE, &[&[Threads]]),
    (split_digits::RULE, &[&[Caches]]),
    (interleave_stores::RULE, &[&[VectorArithmetic]]),
    (interchange::RULE, &[&[Caches]]),
    (strip_carried::RULE, &[&[Caches, Workers, VectorArithmetic]]),
    (split_edges::RULE, &[&[VectorArithmetic]]),
    (transpose::RULE, &[&[VectorArithmetic]]),
    (vectorise::RULE, &[&[VectorArithmetic]]),
    (trim_tiles::RULE, &[&[VectorArithmetic]]),
    (prefetch::RULE, &[&[Caches, Workers]]),
    (keep_stages::RULE, &[&[Caches, Workers]]),
    (split_blocks::RULE, &[&[Threads]]),
    (mark_unroll::RULE, &[&[]]),
];

/// How the trace names a loop nest: the innermost contraction's accumulator, or the loop's axis.
pub(crate) fn site_of(kernel: &Kernel, s: &Stmt) -> String {
    if let Stmt::For(f) = s { site_of_loop(kernel, f) } else { "body".to_string() }
}

pub(crate) fn site_of_loop(kernel: &Kernel, f: &For) -> String {
    let inside = || walk::contractions(&f.body).next().map(|(_, c)| c.acc);
    match f.contraction.as_ref().map(|c| c.acc).or_else(inside).and_then(|b| kernel.bufs.get(b)) {
        Some(buf) => format!("contraction into {}", buf.name),
        None => axis_site(kernel, f.axis),
    }
}

pub(crate) fn axis_site(kernel: &Kernel, axis: AxisId) -> String {
    let place = |a: &Axis| a.place().map_or(String::new(), |from| format!("  # {from}"));
    kernel.axes.get(axis).map_or("loop ?".to_string(), |a| format!("loop {}{}", a.name, place(a)))
}
