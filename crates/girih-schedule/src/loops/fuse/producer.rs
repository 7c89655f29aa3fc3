//! Nests that compute the elements of a buffer, each once, from values that do not change meanwhile.

use super::nest::{is_bare, perfect};
use crate::index::{AxisId, Ix};
use crate::loops::ir::{BufId, Kernel, Opnd, Order, Stmt};
use crate::loops::walk;
use crate::num::ScalarOp;
use crate::num::table::Repeat;

/// `for axes: pure...; buf[idx] = value`
pub struct Producer {
    pub buf: BufId,
    pub idx: Vec<Ix>,
    pub pure: Vec<Stmt>,
    pub value: Opnd,
}

/// The kinds of work in a producer's computation; the later the kind, the less it may be repeated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cost {
    /// Reads, constants and integer arithmetic.
    Index,
    /// Conversions between number types.
    Convert,
    /// A load, with the computation of its address.
    Load,
    /// Anything else.
    Work,
}

pub fn producer(kernel: &Kernel, stmt: &Stmt) -> Option<Producer> {
    let (axes, body) = perfect(stmt);
    let (Stmt::Write { buf, idx, value }, pure) = body.split_last()? else { return None };
    let movable = pure.iter().all(|s| {
        matches!(
            s,
            Stmt::Let { .. }
                | Stmt::Index { .. }
                | Stmt::Test { .. }
                | Stmt::Read { .. }
                | Stmt::Load { order: Order::Weak, .. }
        )
    });
    let reads_itself = pure.iter().any(|s| matches!(s, Stmt::Read { buf: b, .. } if b == buf));
    if !movable || reads_itself || !is_bare(idx, &axes) {
        return None;
    }
    let shape = &kernel.bufs[*buf].shape;
    let whole = idx.len() == shape.len()
        && idx.iter().zip(shape).all(|(ix, &n)| match ix {
            Ix::Axis(a) => axes.iter().any(|&(b, m)| *a == b && m as u64 == n),
            _ => n == 1,
        });
    whole.then(|| Producer { buf: *buf, idx: idx.clone(), pure: pure.to_vec(), value: *value })
}

pub fn cost(p: &Producer) -> Cost {
    let mut worst = Cost::Index;
    for s in &p.pure {
        let c = match s {
            Stmt::Load { .. } => Cost::Load,
            Stmt::Let { op, .. } => op_cost(*op),
            _ => Cost::Index,
        };
        worst = worst.max(c);
    }
    worst
}

fn op_cost(op: ScalarOp) -> Cost {
    match op.repeat() {
        Repeat::Index => Cost::Index,
        Repeat::Convert => Cost::Convert,
        Repeat::Compute => Cost::Work,
    }
}

impl Producer {
    /// The computation of one element as it is, for the only place that takes it, and the operand that holds the element.
    pub fn moved_to(&self, idx: &[Ix]) -> (Vec<Stmt>, Opnd) {
        let mut stmts = self.pure.clone();
        walk::subst_axes(&mut stmts, &mut |a| position(self, a).and_then(|d| idx.get(d).cloned()));
        (stmts, self.value)
    }

    /// The computation of one element: fresh statements, and the operand that holds it.
    pub fn at(&self, kernel: &mut Kernel, idx: &[Ix]) -> (walk::Renaming, Vec<Stmt>, Opnd) {
        let renaming = walk::Renaming::fresh(kernel, &self.pure);
        let mut copy = self.pure.clone();
        renaming.apply(&mut copy);
        walk::subst_axes(&mut copy, &mut |a| position(self, a).and_then(|d| idx.get(d).cloned()));
        let value = match self.value {
            Opnd::Val(v) => Opnd::Val(renaming.vals.get(&v).copied().unwrap_or(v)),
            constant => constant,
        };
        (renaming, copy, value)
    }
}

/// The dimension of the buffer that one of the producer's axes runs over.
pub fn position(p: &Producer, axis: AxisId) -> Option<usize> {
    p.idx.iter().position(|ix| *ix == Ix::Axis(axis))
}

/// An expression of the producer, seen from a read at `at`.
pub fn moved(ix: &Ix, p: &Producer, at: &[Ix]) -> Ix {
    ix.subst_axes(&mut |a| position(p, a).and_then(|d| at.get(d).cloned()))
}
