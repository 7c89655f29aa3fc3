//! Shared memory that is used again.
//!
//! The stages of a loop are needed until it ends. Buffers that are used only after the loop may have their bytes:
//!
//! ```text
//! for kt in 0..56: serial pipeline(3)
//!   stage a_s: f16[128, 64] shared: ...         bytes 0 to 49151
//! local y_s: f16[128, 128] shared               bytes 0 to 32767
//! ```
//! This does not hold where a loop around both comes back to the stages: then they are filled while other threads may still
//! read the buffers there.

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::walk;

/// The buffers that may have the bytes of others, with those others.
pub fn behind_stages(kernel: &Kernel) -> BTreeMap<BufId, Vec<BufId>> {
    let mut out = BTreeMap::new();
    block(kernel, &kernel.body, &mut out);
    out
}

fn block(kernel: &Kernel, body: &[Stmt], out: &mut BTreeMap<BufId, Vec<BufId>>) {
    let mut staged = vec![];
    for s in body {
        match s {
            Stmt::Local { buf } if kernel.bufs[*buf].space == Space::Shared && !staged.is_empty() => {
                out.insert(*buf, staged.clone());
            }
            Stmt::For(f) if matches!(f.place, Place::Block { .. }) => block(kernel, &f.body, out),
            Stmt::For(f) if f.kind == LoopKind::Serial => staged.extend(stages(kernel, &f.body)),
            _ => {}
        }
    }
}

fn stages(kernel: &Kernel, body: &[Stmt]) -> Vec<BufId> {
    let shared = |s: &Stmt| match s {
        Stmt::Stage { buf, .. } if kernel.bufs[*buf].space == Space::Shared => Some(*buf),
        _ => None,
    };
    walk::stmts(body).filter_map(shared).collect()
}

/// The bytes of shared memory that belong to one buffer alone, with one slot for each stage, and those that may overlap stages.
pub fn bytes(kernel: &Kernel) -> (u64, u64) {
    let behind = behind_stages(kernel);
    let of = |again: bool| {
        let shared = kernel.bufs.iter().filter(|(_, b)| b.space == Space::Shared);
        shared.filter(|(id, _)| behind.contains_key(id) == again).map(|(_, b)| b.bytes()).sum()
    };
    (of(false), of(true))
}

/// Returns the same two numbers, with all slots of pipelines in place of one.
pub fn bytes_with_slots(kernel: &Kernel) -> (u64, u64) {
    let (own, behind) = bytes(kernel);
    let further = |f: &For| match f.place {
        Place::Pipeline { depth, .. } => {
            let size: u64 = stages(kernel, f.stages().0).into_iter().map(|b| kernel.bufs[b].bytes()).sum();
            u64::from(depth.saturating_sub(1)) * size
        }
        _ => 0,
    };
    (own + walk::loops(&kernel.body).map(further).sum::<u64>(), behind)
}

/// The bytes of shared memory that a kernel needs with `more` bytes for buffers that are used after the stages.
pub fn needed(kernel: &Kernel, more: u64) -> u64 {
    let stages: u64 = stages(kernel, &kernel.body).into_iter().map(|b| kernel.bufs[b].bytes()).sum();
    let (own, behind) = bytes(kernel);
    own + (behind + more).saturating_sub(stages)
}
