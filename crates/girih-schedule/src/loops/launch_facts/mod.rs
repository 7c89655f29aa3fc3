//! Derives from a kernel's loop nests how it must be launched.
//!
//! In: a kernel of Loop IR, and for some questions the launch's grid and arguments. Out: whether the facts that its
//! fast version relies on hold ([`holds`]); which of its parameters it reads and writes ([`traffic`]); in which order
//! its blocks may run ([`block_order`]); an access that is certain to lie outside its buffer ([`overrun`]); how much it
//! computes ([`work`]).

mod locks;
mod obligations;
mod overrun;
mod point;
#[cfg(test)]
mod tests;
pub mod work;

use super::addresses::{Origin, Origins};
use super::ir::{Kernel, Mem, Order, Stmt, Ty};
use super::walk;

pub use obligations::holds;
pub use overrun::{Overrun, overrun};

/// How blocks are handed to threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOrder {
    /// Contiguous ranges, any order: blocks that do not talk to each other.
    Ranges,
    /// Any order: a block waits at most until another one gives a lock back.
    Locked,
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
    if locks::only(kernel) {
        return BlockOrder::Locked;
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
    /// Per parameter: elements are not read, and a store can be of no other memory.
    pub fills: Vec<bool>,
}

/// Reads and writes per parameter; an access counts against each parameter that its address may be made of.
pub fn traffic(kernel: &Kernel) -> Traffic {
    let origins = Origins::of(kernel);
    let none = vec![false; kernel.params.len()];
    let mut t = Traffic { reads: none.clone(), writes: none.clone(), fills: none };
    let mut note = |mem: &Mem, read: bool, write: bool| {
        let from = origins.val(mem.base);
        for (i, param) in kernel.params.iter().enumerate().filter(|(_, p)| matches!(p.ty, Ty::Ptr(_))) {
            if from.contains(&Origin::Of(param.val)) || from.contains(&Origin::Unknown) {
                t.reads[i] |= read;
                t.writes[i] |= write;
            }
            t.fills[i] |= write && origins.only(mem.base) == Some(param.val);
        }
    };
    walk::visit(&kernel.body, &mut |stmt| match stmt {
        Stmt::Load { mem, .. } => note(mem, true, false),
        Stmt::Store { mem, .. } => note(mem, false, true),
        Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => note(mem, true, true),
        _ => {}
    });
    for (fills, reads) in t.fills.iter_mut().zip(&t.reads) {
        *fills &= !reads;
    }
    t
}
