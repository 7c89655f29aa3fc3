//! Fusion: the rules that turn lifted Loop IR, in which every tile value is stored, into the loops a person would
//! write.
//!
//! In: a kernel from the lift. Out: the same kernel with fewer buffers and fewer, fuller loops, affine addresses and
//! conditions instead of masks. [`rules`] is the list in order; the pipeline runs it until nothing changes.
//!
//! Invariants: a rule keeps the order of memory accesses that may overlap; it rewrites arithmetic exactly, or turns
//! facts that it cannot prove into an [`Obligation`](super::ir::Obligation), and that only under
//! `Assumptions::no_wrap`.

mod addressed;
mod affine;
mod coalesce_carried;
mod dedup;
mod derive_carried;
mod differing;
mod drop_wraps;
#[cfg(test)]
pub(super) mod harness;
mod merge_nests;
mod nest;
mod producer;
mod promote_index;
pub(super) mod ranges;
mod reuse_buffers;
mod simplify;
mod sink_into_branches;
mod splice_producers;
mod uses;
#[cfg(test)]
mod results_tests;
#[cfg(test)]
mod tests;

use super::ir::{Kernel, Stmt};
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Rules};

/// The rules of Loop IR. Fusion and promotion enable each other, so the list runs more than once.
pub fn rules() -> Rules<Kernel, Assumptions> {
    let list = vec![
        &splice_producers::RULE,
        &derive_carried::RULE,
        &drop_wraps::RULE,
        &promote_index::RULE,
        &dedup::RULE,
        &coalesce_carried::RULE,
        &sink_into_branches::RULE,
        &merge_nests::RULE,
        &reuse_buffers::RULE,
        &simplify::RULE,
    ];
    Rules { letter: 'l', first: 1, rounds: 4, list, record: false }
}

/// The kernel with its body rewritten; `None` where that notes nothing in the log.
fn rewritten(
    kernel: &Kernel,
    log: &mut Log,
    rewrite: impl FnOnce(&mut Kernel, &mut Vec<Stmt>, &mut Log),
) -> Option<Kernel> {
    let (mut kernel, applied) = (kernel.clone(), log.applied.len());
    let mut body = std::mem::take(&mut kernel.body);
    rewrite(&mut kernel, &mut body, log);
    kernel.body = body;
    (log.applied.len() > applied).then_some(kernel)
}
