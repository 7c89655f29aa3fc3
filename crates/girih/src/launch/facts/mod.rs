//! What a kernel's loop nests say about how it must be launched.

mod overrun;
mod point;
#[cfg(test)]
mod tests;
mod work;

use girih_compiler::loops::ir::{Kernel, Mem, Order, Stmt, Ty};

use crate::launch::blocks::BlockOrder;

pub use overrun::overrun;
pub use work::{contraction_work, longest_accumulation};

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
            for_each_body(stmt, &mut |inner| scan(inner, in_loop || matches!(stmt, Stmt::Loop { .. }), found));
        }
    }
    let mut found = BlockOrder::Ranges;
    scan(&kernel.body, false, &mut found);
    found
}

fn for_each_body<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a [Stmt])) {
    match stmt {
        Stmt::For(l) => f(&l.body),
        Stmt::Loop { body } | Stmt::Stage { body, .. } | Stmt::RegisterTile { body, .. } => f(body),
        Stmt::If { then, els, .. } => {
            f(then);
            f(els);
        }
        _ => {}
    }
}

/// What a kernel does to the memory of its parameters.
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
    fn scan(body: &[Stmt], note: &mut dyn FnMut(&Mem, bool, bool)) {
        for stmt in body {
            match stmt {
                Stmt::Load { mem, .. } => note(mem, true, false),
                Stmt::Store { mem, .. } => note(mem, false, true),
                Stmt::Rmw { mem, .. } | Stmt::Cas { mem, .. } => note(mem, true, true),
                _ => {}
            }
            for_each_body(stmt, &mut |inner| scan(inner, note));
        }
    }
    scan(&kernel.body, &mut note);
    t
}
