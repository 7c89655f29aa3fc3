//! Work shared among the threads of a block: what the rules for targets with threads have in common.

use std::collections::BTreeMap;

use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::DType;

/// Threads of a warp.
pub const WARP: u32 = 32;

/// Perfectly nested free loops, outermost first.
pub fn chain(nest: &For) -> Vec<&For> {
    let mut out = vec![nest];
    let mut at = nest;
    while let [Stmt::For(inner)] = &at.body[..] {
        if inner.kind != LoopKind::Free || inner.place != Place::None {
            break;
        }
        out.push(inner);
        at = inner;
    }
    out
}

/// Drops the roles of contractions whose loops are gone.
pub fn forget_roles(body: &mut [Stmt], gone: &BTreeMap<AxisId, Ix>) {
    walk::visit_mut(body, &mut |s| {
        if let Stmt::For(f) = s
            && f.contraction.as_ref().is_some_and(|c| c.m.iter().chain(&c.n).any(|a| gone.contains_key(a)))
        {
            f.contraction = None;
        }
    });
}

/// `if cond: body`
pub fn guarded(kernel: &mut Kernel, cond: Cond, body: Vec<Stmt>) -> Vec<Stmt> {
    let dst = kernel.vals.push(Val { ty: Ty::Num(DType::I1), name: "mine".into() });
    let test = Stmt::Test { dst, mask: Mask { conds: vec![cond], vals: vec![] } };
    vec![test, Stmt::If { cond: Opnd::Val(dst), then: body, els: vec![] }]
}
