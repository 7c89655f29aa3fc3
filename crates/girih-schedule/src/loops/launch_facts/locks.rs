//! Locks: a block waits until another one gives back what it took.
//!
//! In: a kernel. Out: whether its blocks wait for nothing else ([`only`]), so that they may run in any order and on any number of
//! threads.
//!
//! ```text
//! loop:                                      a take: waits while the word is 1
//!   old: i32 = cas lock[bx%64], 0, 1
//!   taken: i1 = old == 1
//!   if taken:
//!     pass
//!   else:
//!     break
//! ...                                        waits for nothing, and is not left
//! gone: i32 = atomic xchg lock[bx%64], 0     the give
//! ```
//!
//! A block that has a lock comes to the give, whatever other blocks do. Nothing but gives writes the value that a take waits for:
//! else the word could be a gate, which a later block opens.

use std::collections::BTreeMap;

use crate::loops::ir::{Kernel, Mask, Mem, Opnd, Order, RmwOp, Stmt, ValId};
use crate::loops::walk;
use crate::num::eval;

/// Returns true if a kernel's blocks wait for locks, and for nothing else.
pub(super) fn only(kernel: &Kernel) -> bool {
    let mut found = Found::default();
    if found.body(&kernel.body, false).is_none() || found.takes.is_empty() {
        return false;
    }
    let opens = |bits: &Option<u64>| found.takes.iter().any(|take| bits.is_none_or(|bits| bits == take.free));
    !found.writes.iter().any(opens)
}

#[derive(Default)]
struct Found<'a> {
    takes: Vec<Take<'a>>,
    /// The values that other ordered writes store; `None` for one that is not a constant.
    writes: Vec<Option<u64>>,
}

impl<'a> Found<'a> {
    /// Statements in order; `None` where one may wait for more than a lock.
    fn body(&mut self, body: &'a [Stmt], in_loop: bool) -> Option<()> {
        let mut held: Option<Take<'a>> = None;
        for stmt in body {
            if let Some(take) = Take::of(stmt) {
                if held.is_some() {
                    return None;
                }
                self.takes.push(take);
                held = Some(take);
            } else if held.is_some_and(|take| take.given_by(stmt)) {
                held = None;
            } else {
                if held.is_some() && leaves(stmt) {
                    return None;
                }
                self.other(stmt, in_loop, held.is_some())?;
            }
        }
        held.is_none().then_some(())
    }

    fn other(&mut self, stmt: &'a Stmt, in_loop: bool, held: bool) -> Option<()> {
        let known = |value: &Opnd| if let Opnd::Const { bits, .. } = value { Some(*bits) } else { None };
        let write = match stmt {
            Stmt::Rmw { op: RmwOp::Xchg, value, .. } | Stmt::Cas { value, .. } => Some(known(value)),
            Stmt::Rmw { .. } => Some(None),
            Stmt::Store { value, order, .. } if *order != Order::Weak => Some(known(value)),
            _ => None,
        };
        let ordered = write.is_some() || matches!(stmt, Stmt::Load { order, .. } if *order != Order::Weak);
        if ordered && in_loop {
            return None;
        }
        self.writes.extend(write);
        let before = self.takes.len();
        for inner in walk::bodies(stmt) {
            self.body(inner, in_loop || matches!(stmt, Stmt::Loop { .. }))?;
        }
        // Who has a lock waits for no other.
        (!held || self.takes.len() == before).then_some(())
    }
}

/// True if what follows a statement may not run.
fn leaves(stmt: &Stmt) -> bool {
    let mut found = false;
    walk::visit(std::slice::from_ref(stmt), &mut |s| {
        found |= matches!(s, Stmt::Return | Stmt::Break | Stmt::Continue);
    });
    found
}

/// A loop that waits until a word is `free`, and writes another value to it then.
#[derive(Clone, Copy)]
struct Take<'a> {
    mem: &'a Mem,
    mask: &'a Mask,
    free: u64,
}

impl<'a> Take<'a> {
    fn of(stmt: &'a Stmt) -> Option<Take<'a>> {
        let Stmt::Loop { body } = stmt else { return None };
        let [Stmt::Cas { dst, mem, cmp, value, mask, .. }, rest @ ..] = &body[..] else { return None };
        let (Opnd::Const { bits: free, .. }, Opnd::Const { bits: taken, .. }) = (cmp, value) else { return None };
        let ends = |old: u64| ends(rest, &mut BTreeMap::from([(*dst, old)]), mem);
        (ends(*free)? && !ends(*taken)?).then_some(Take { mem, mask, free: *free })
    }

    fn given_by(&self, stmt: &Stmt) -> bool {
        let (mem, value, mask) = match stmt {
            Stmt::Rmw { op: RmwOp::Xchg, mem, value, mask, .. } => (mem, value, mask),
            Stmt::Store { mem, value, mask, order, .. } if *order != Order::Weak => (mem, value, mask),
            _ => return false,
        };
        let gives = matches!(value, Opnd::Const { bits, .. } if *bits == self.free);
        gives && mem == self.mem && (mask.is_always() || mask == self.mask)
    }
}

/// Returns true if the loop ends in this iteration; `None` if the known values do not decide it.
fn ends(body: &[Stmt], known: &mut BTreeMap<ValId, u64>, mem: &Mem) -> Option<bool> {
    for stmt in body {
        match stmt {
            Stmt::Let { dst, op, args } => {
                let value = |arg: &Opnd| match arg {
                    Opnd::Val(val) => known.get(val).copied(),
                    Opnd::Const { bits, .. } => Some(*bits),
                };
                let bits = args.iter().map(value).collect::<Option<Vec<u64>>>()?;
                let constant = |arg: &Opnd| if let Opnd::Const { dtype, .. } = arg { Some(*dtype) } else { None };
                let ty = args.iter().find_map(constant).unwrap_or(mem.elem);
                known.insert(*dst, eval::apply(*op, ty, &bits));
            }
            Stmt::If { cond, then, els } => {
                let truth = match cond {
                    Opnd::Val(val) => *known.get(val)?,
                    Opnd::Const { bits, .. } => *bits,
                };
                match (if truth != 0 { then } else { els })[..] {
                    [] => {}
                    [Stmt::Break] => return Some(true),
                    [Stmt::Continue] => return Some(false),
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some(false)
}
