//! Derives from a kernel's loop nests how it must be launched.
//!
//! In: a kernel of Loop IR, and for some questions the launch's grid and arguments. Out: whether the facts that its
//! fast version relies on hold ([`holds`]); which of its parameters it reads and writes ([`traffic`]); in which order
//! its blocks may run ([`block_order`]); an access that is certain to lie outside its buffer ([`overrun`]); how much it
//! computes ([`work`]).

mod obligations;
mod overrun;
mod point;
#[cfg(test)]
mod tests;
pub mod work;

use super::ir::{Kernel, Mem, Order, Stmt, Ty};
use super::walk;

pub use obligations::holds;
pub use overrun::{Overrun, overrun};

/// How blocks are handed to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOrder {
    /// Contiguous ranges, any order: blocks that do not talk to each other.
    Ranges,
    /// One at a time in increasing linear index: a block may wait for any lower one.
    Increasing,
    /// A thread each, where the grid is small enough: blocks may wait for any other. Else as `Increasing`.
    Together,
}

/// Which blocks may run together, and in which order.
pub fn block_order(kernel: &Kernel) -> BlockOrder {
    fn scan(body: &[Stmt], in_loop: bool, found: &mut BlockOrder) {
        for stmt in body {
            let ordered = match stmt {
                Stmt::Rmw { .. } | Stmt::Cas { .. } => true,
                Stmt::Load { order, .. } | Stmt::Store { order, .. } => *order != Order::Weak,
                _ => false,
            };
            if ordered && in_loop {
                *found = BlockOrder::Together;
            } else if ordered && *found == BlockOrder::Ranges {
                *found = BlockOrder::Increasing;
            }
            for inner in walk::bodies(stmt) {
                scan(inner, in_loop || matches!(stmt, Stmt::Loop { .. }), found);
            }
        }
    }
    let mut found = BlockOrder::Ranges;
    scan(&kernel.body, false, &mut found);
    found
}

/// The parameters whose memory a kernel may read or write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Per parameter: elements may be read.
    pub reads: Vec<bool>,
    /// Per parameter: elements may be written.
    pub writes: Vec<bool>,
}

/// Reads and writes per parameter; an access whose address is computed counts against every pointer parameter.
pub fn traffic(kernel: &Kernel) -> Traffic {
    let pointer: Vec<bool> = kernel.params.iter().map(|p| matches!(p.ty, Ty::Ptr(_))).collect();
    let mut t = Traffic { reads: vec![false; pointer.len()], writes: vec![false; pointer.len()] };
    let mut note = |mem: &Mem, read: bool, write: bool| {
        let direct = kernel.params.iter().position(|p| p.val == mem.base);
        for (i, &is_pointer) in pointer.iter().enumerate() {
            if is_pointer && direct.is_none_or(|d| d == i) {
                t.reads[i] |= read;
                t.writes[i] |= write;
            }
        }
    };
    walk::visit(&kernel.body, &mut |stmt| match stmt {
        Stmt::Load { mem, .. } => note(mem, true, false),
        Stmt::Store { mem, .. } => note(mem, false, true),
        Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => note(mem, true, true),
        _ => {}
    });
    t
}
