//! The tile rules, one file each, in the order they run.

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
pub mod fold_columns;
pub mod fold_rows;
pub mod group_blocks;
pub mod interchange;
pub mod interleave_stores;
pub mod keep_rows;
pub mod keep_stages;
pub mod keep_tiles;
pub mod mark_unroll;
pub mod merge_folds;
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
pub mod split_matmul_k;
pub mod split_reduction;
pub mod spread_threads;
pub mod stage_inputs;
pub mod stage_outputs;
pub mod stream_rows;
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

use crate::loops::ir::*;
use crate::loops::walk;

/// How the trace names a loop nest: the innermost contraction's accumulator, or the loop's axis.
pub(crate) fn site_of(kernel: &Kernel, s: &Stmt) -> String {
    if let Stmt::For(f) = s { site_of_loop(kernel, f) } else { "body".to_string() }
}

pub(crate) fn site_of_loop(kernel: &Kernel, f: &For) -> String {
    let mut acc = f.contraction.as_ref().map(|c| c.acc);
    walk::visit(&f.body, &mut |s| {
        if let Stmt::For(f) = s
            && let Some(c) = &f.contraction
        {
            acc.get_or_insert(c.acc);
        }
    });
    match acc.and_then(|b| kernel.bufs.get(b)) {
        Some(buf) => format!("contraction into {}", buf.name),
        None => axis_site(kernel, f.axis),
    }
}

pub(crate) fn axis_site(kernel: &Kernel, axis: AxisId) -> String {
    let place = |a: &Axis| a.place().map_or(String::new(), |from| format!("  # {from}"));
    kernel.axes.get(axis).map_or("loop ?".to_string(), |a| format!("loop {}{}", a.name, place(a)))
}
