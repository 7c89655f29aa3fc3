//! Queries of the rules about statements: perfect nests, the origin of an address, and substitution.

use std::collections::BTreeMap;

use crate::base::launch::Assumptions;
use crate::index::{AxisId, Cmp, Cond, Ix, ValId};
use crate::loops::ir::{For, Kernel, LoopKind, Opnd, Order, Place, Stmt, Ty};
use crate::loops::walk;
use crate::num::ScalarOp;

/// The most statements of a nest that is made by joining nests. A chain of many thousand operations becomes several
/// nests with a buffer between them: the time of a rule, and of the C compiler, grows with the nest.
pub const LARGEST: usize = 512;

/// A loop from 0 to a constant by 1, unplaced.
pub fn counted(f: &For) -> Option<i64> {
    match (&f.lo, &f.hi, &f.step) {
        (Ix::Const(0), Ix::Const(n), Ix::Const(1)) if f.place == Place::None => Some(*n),
        _ => None,
    }
}

/// The free loops that enclose nothing but each other, with their extents, and the innermost body.
pub fn perfect(stmt: &Stmt) -> (Vec<(AxisId, i64)>, &[Stmt]) {
    let mut axes = Vec::new();
    let mut at = std::slice::from_ref(stmt);
    while let [Stmt::For(f)] = at
        && f.kind == LoopKind::Free
        && let Some(n) = counted(f)
    {
        axes.push((f.axis, n));
        at = &f.body;
    }
    (axes, at)
}

/// The buffer's index is each of the axes once, and zeros.
pub fn is_bare(idx: &[Ix], axes: &[(AxisId, i64)]) -> bool {
    let mut seen = Vec::new();
    for ix in idx {
        match ix {
            Ix::Axis(a) if !seen.contains(a) && axes.iter().any(|(b, _)| a == b) => seen.push(*a),
            Ix::Const(0) => {}
            _ => return false,
        }
    }
    seen.len() == axes.len()
}

/// The origin of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    Param(ValId),
    Global { index: u32, constant: bool },
    Alloca(ValId),
    Unknown,
}

/// The definitions of pointer values, to trace addresses with.
pub struct Roots {
    defs: BTreeMap<ValId, Result<ValId, Root>>,
}

impl Roots {
    /// Finds the roots of the pointers in a kernel's statements.
    pub fn of(kernel: &Kernel, body: &[Stmt]) -> Roots {
        let mut defs = BTreeMap::new();
        for p in &kernel.params {
            if let Ty::Ptr(_) = p.ty {
                defs.insert(p.val, Err(Root::Param(p.val)));
            }
        }
        walk::visit(body, &mut |s| match s {
            Stmt::Let { dst, op: ScalarOp::PtrAdd | ScalarOp::Copy | ScalarOp::IntToPtr { .. }, args } => {
                if let Some(Opnd::Val(from)) = args.first()
                    && matches!(kernel.vals[*from].ty, Ty::Ptr(_))
                {
                    defs.insert(*dst, Ok(*from));
                }
            }
            Stmt::GlobalAddr { dst, global } => {
                let constant = kernel.globals.get(*global as usize).is_some_and(|g| g.constant);
                defs.insert(*dst, Err(Root::Global { index: *global, constant }));
            }
            Stmt::Alloca { dst, .. } => {
                defs.insert(*dst, Err(Root::Alloca(*dst)));
            }
            _ => {}
        });
        Roots { defs }
    }

    /// A copy of a value has the address of the original.
    pub fn copied(&mut self, from: ValId, to: ValId) {
        if let Some(&def) = self.defs.get(&from) {
            self.defs.insert(to, def);
        }
    }

    pub fn root(&self, mut base: ValId) -> Root {
        loop {
            match self.defs.get(&base) {
                Some(Ok(from)) => base = *from,
                Some(Err(root)) => return *root,
                None => return Root::Unknown,
            }
        }
    }

    /// Returns true if no access through one base can touch the memory that an access through the other touches.
    pub fn disjoint(&self, a: ValId, b: ValId, assume: Assumptions) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        let constant = |r| matches!(r, Root::Global { constant: true, .. });
        if constant(a) || constant(b) {
            return true;
        }
        if a == b || a == Root::Unknown || b == Root::Unknown {
            return false;
        }
        let fresh = |r| matches!(r, Root::Alloca(_));
        fresh(a) || fresh(b) || assume.no_alias
    }
}

/// A condition that never holds.
pub fn never() -> Cond {
    Cond { lhs: Ix::Const(0), cmp: Cmp::Ne, rhs: Ix::Const(0) }
}

/// Replaces uses of values by operands, constants in masks included.
pub fn replace(body: &mut [Stmt], map: &BTreeMap<ValId, Opnd>) {
    if map.is_empty() {
        return;
    }
    let find = |mut v: ValId| {
        let mut out = None;
        while let Some(&o) = map.get(&v) {
            out = Some(o);
            match o {
                Opnd::Val(next) if next != v => v = next,
                _ => break,
            }
        }
        out
    };
    walk::visit_mut(body, &mut |s| {
        if let Some(mask) = walk::mask_mut(s) {
            let mut vals = Vec::new();
            for &v in &mask.vals {
                match find(v) {
                    None => vals.push(v),
                    Some(Opnd::Val(new)) => vals.push(new),
                    Some(Opnd::Const { bits: 0, .. }) => mask.conds.push(never()),
                    Some(Opnd::Const { .. }) => {}
                }
            }
            mask.vals = vals;
        }
    });
    walk::subst_vals(body, &mut |v| find(v));
}

/// Returns true if the statements hold an access that other accesses must not move across: any order but weak and
/// relaxed.
pub fn has_fence(body: &[Stmt]) -> bool {
    walk::stmts(body).any(|s| match s {
        Stmt::Load { order, .. } | Stmt::Store { order, .. } | Stmt::Rmw { order, .. } | Stmt::Cas { order, .. } => {
            !matches!(order, Order::Weak | Order::Relaxed)
        }
        _ => false,
    })
}
