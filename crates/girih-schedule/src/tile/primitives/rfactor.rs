//! `rfactor`: the iterations of a reduction that one of its axes counts fold into results of their own, which are then combined.
//!
//! In: a reduction into a scalar with an associative operation, cut in two (`split`). Out: the part of it that folds into one
//! partial result, and the loop that folds the partial results.
//!
//! ```text
//! s = 0.0                                  for t in 0..8: free
//! for t in 0..8: reduce combine add(s)       local s_part = 0.0
//!   for e in 0..32: reduce          -->      for e in 0..32: reduce
//!     s <- x[e*8 + t] + s                      s_part <- x[e*8 + t] + s_part
//!                                            s_parts[t] = s_part
//!                                          s = 0.0
//!                                          for t in 0..8: reduce combine add(s)
//!                                            s <- s_parts[t] + s
//! ```
//!
//! Legal where the reduction may be reassociated ([`Combine`]). A partial result begins at the operation's identity, so that the
//! accumulator's first value counts once.

pub mod in_turn;

use std::collections::BTreeMap;

use super::line::{LoopRef, replace};
use super::split::Pieces;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use crate::tile::edit;

/// Folds a reduction in stretches of `size` iterations, each into a result of its own, which is then added to those before.
pub fn apply(kernel: &mut Kernel, at: LoopRef, size: u32, names: &[String; 2]) -> Result<(), String> {
    let facts = kernel.facts();
    replace(kernel, at, &mut |kernel, f| {
        let sum = legal(kernel, f)?;
        let name = format!("{}_part", kernel.bufs[sum.acc].name);
        let part = kernel.bufs.push(Buf::new(name, Ty::Num(sum.dtype), vec![]));
        let axes = names.clone().map(|name| edit::named_axis(kernel, f.axis, name));
        let pieces = Pieces::of(f, size.into());
        let at = pieces.at(axes[0], axes[1]);
        let [over, one] = pieces.loops(f, axes, &facts);
        let mut body = f.body.clone();
        walk::subst_axis(&mut body, f.axis, &at);
        let renaming = walk::Renaming { bufs: BTreeMap::from([(sum.acc, part)]), ..Default::default() };
        let mut inner = vec![Stmt::For(Box::new(For { body, ..one }))];
        renaming.apply(&mut inner);
        let clear = Stmt::Write { buf: part, idx: vec![], value: sum.neutral() };
        let add = sum.add_part(kernel, vec![], Parts::Buffer { buf: part, idx: vec![] });
        let body = [Stmt::Local { buf: part }, clear].into_iter().chain(inner).chain(add).collect();
        Ok(vec![Stmt::For(Box::new(For { combine: None, body, ..over }))])
    })
}

fn legal(kernel: &Kernel, f: &For) -> Result<Fold, String> {
    let sum = Fold::of(kernel, f)?;
    let counts = f.counts_from_zero() && f.contraction.is_none() && f.stream.is_none();
    match f.kind == LoopKind::Reduce && f.place == Place::None && counts {
        true => Ok(sum),
        false => Err("it is placed already, a product, or does not count from 0".into()),
    }
}

/// What a loop folds into one accumulator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fold {
    pub acc: BufId,
    pub op: ScalarOp,
    pub identity: u64,
    pub dtype: DType,
    /// Whether the accumulator is the operation's first operand where partial results are added.
    pub first: bool,
}

/// Where the partial results are kept.
pub enum Parts {
    Array { mem: Mem, site: SiteId },
    Buffer { buf: BufId, idx: Vec<Ix> },
}

impl Parts {
    fn put(self, value: Opnd) -> Stmt {
        match self {
            Parts::Array { mem, site } => Stmt::Store { mem, value, mask: Mask::default(), order: Order::Weak, site },
            Parts::Buffer { buf, idx } => Stmt::Write { buf, idx, value },
        }
    }

    fn get(self, dst: ValId) -> Stmt {
        match self {
            Parts::Array { mem, site } => {
                Stmt::Load { dst, mem, mask: Mask::default(), other: None, order: Order::Weak, site }
            }
            Parts::Buffer { buf, idx } => Stmt::Read { dst, buf, idx },
        }
    }
}

impl Fold {
    /// Refuses a loop whose order is fixed, and one that folds several things.
    pub fn of(kernel: &Kernel, f: &For) -> Result<Fold, &'static str> {
        let Some(Combine { accs, op: CombineOp::Scalar { op, identity }, .. }) = &f.combine else {
            return Err("the order of its reduction is fixed");
        };
        let [acc] = accs[..] else { return Err("it folds several things at once") };
        match kernel.bufs.get(acc).map(|b| b.ty) {
            Some(Ty::Num(dtype)) => Ok(Fold { acc, op: *op, identity: *identity, dtype, first: false }),
            _ => Err("it folds addresses"),
        }
    }

    /// What leaves a result as it is.
    pub fn neutral(&self) -> Opnd {
        Opnd::Const { dtype: self.dtype, bits: self.identity }
    }

    /// A value of the result's type.
    fn value(&self, kernel: &mut Kernel, name: &str) -> ValId {
        kernel.vals.push(Val { ty: Ty::Num(self.dtype), name: name.into() })
    }

    /// Folds into an accumulator of the part's own, from the identity on, and keeps what that comes to.
    pub fn into_part(&self, kernel: &mut Kernel, part: BufId, mut fold: Stmt, to: Parts) -> Vec<Stmt> {
        let renaming = walk::Renaming { bufs: BTreeMap::from([(self.acc, part)]), ..Default::default() };
        renaming.apply(std::slice::from_mut(&mut fold));
        let name = kernel.bufs[part].name.clone();
        let own = self.value(kernel, &name);
        vec![
            Stmt::Local { buf: part },
            Stmt::Write { buf: part, idx: vec![], value: self.neutral() },
            fold,
            Stmt::Read { dst: own, buf: part, idx: vec![] },
            to.put(Opnd::Val(own)),
        ]
    }

    /// Combines the accumulator, which lies at `at`, with a partial result.
    pub fn add_part(&self, kernel: &mut Kernel, at: Vec<Ix>, from: Parts) -> Vec<Stmt> {
        let [one, old, new] = ["part", "acc", "v"].map(|name| self.value(kernel, name));
        let args = if self.first { [old, one] } else { [one, old] };
        vec![
            from.get(one),
            Stmt::Read { dst: old, buf: self.acc, idx: at.clone() },
            Stmt::Let { dst: new, op: self.op, args: args.map(Opnd::Val).into() },
            Stmt::Write { buf: self.acc, idx: at, value: Opnd::Val(new) },
        ]
    }
}
