//! Reductions: each becomes a loop of its own, before the loop that needs it.

use super::{NestBuilder, Result};
use crate::graph::Elem;
use crate::graph::build::Refusal;
use crate::graph::ir::{self as g, Arg, ReduceOp, ValueId};
use crate::index::Ix;
use crate::loops::ir::*;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

impl NestBuilder<'_> {
    pub(super) fn reduce(
        &mut self,
        v: ValueId,
        node: &g::Node,
        op: ReduceOp,
        axes: &[u32],
        coords: &[Ix],
    ) -> Result<Opnd> {
        let graph = self.graph;
        let Some(Arg::Value(arg)) = node.args.first().copied() else {
            return Err(Refusal::new("a reduction of a scalar"));
        };
        if !self.mask.is_always() {
            return Err(Refusal::new("a reduction is needed only under a condition"));
        }
        let shape = graph.values[arg].shape.clone();
        let elem = graph.values[v].elem;
        let name = graph.values[v].name.clone();
        let mut depth = coords.iter().map(|c| self.depth_of(c)).max().unwrap_or(0);
        // Of a dimension that may be empty, position 0 is there only where the loop over it runs.
        let of = graph.values[v].shape.iter().zip(coords);
        if of.into_iter().any(|(n, c)| c.as_const().is_some() && self.facts.range(n).lo <= 0) {
            depth = self.depth();
        }
        // The loops go before those that are open further in.
        let inner_scopes = self.scopes.split_off(depth + 1);
        let inner_open = self.open.split_off(depth);
        let pending = self.pending.len();
        self.pending.extend(inner_open.iter().map(|f| f.axis));
        let outcome = self.fold(&name, node, op, axes, coords, &shape, elem);
        self.pending.truncate(pending);
        self.scopes.truncate(depth + 1);
        self.open.truncate(depth);
        self.scopes.extend(inner_scopes);
        self.open.extend(inner_open);
        outcome
    }

    #[allow(clippy::too_many_arguments)]
    fn fold(
        &mut self,
        name: &str,
        node: &g::Node,
        op: ReduceOp,
        axes: &[u32],
        coords: &[Ix],
        shape: &[Ix],
        elem: Elem,
    ) -> Result<Opnd> {
        let at = self.depth();
        let dtype = elem.dtype;
        let (fold, start) = fold_of(op, elem)?;
        let accs: Vec<BufId> = match op {
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => {
                let of = self.arg_elem(node)?;
                let best = self.local("best", of.dtype, vec![], at);
                let place = self.local(name, DType::I64, vec![], at);
                vec![best, place]
            }
            _ => vec![self.local(name, dtype, vec![], at)],
        };
        let init = |buf, value| Stmt::Write { buf, idx: vec![], value };
        if let [best, place] = accs[..] {
            let of = self.arg_elem(node)?;
            self.push(at, init(best, Opnd::Const { dtype: of.dtype, bits: 0 }));
            self.push(at, init(place, Opnd::Const { dtype: DType::I64, bits: u64::MAX }));
        } else {
            self.push(at, init(accs[0], Opnd::Const { dtype, bits: start }));
        }
        let mut read = coords.to_vec();
        let mut opened = 0;
        for &a in axes {
            let extent = shape.get(a as usize).cloned().unwrap_or(Ix::Const(1));
            let slot = read.get_mut(a as usize).ok_or_else(|| Refusal::new("a reduction over no axis"))?;
            *slot = Ix::Const(0);
            if !extent.is_const(1) {
                *slot = Ix::Axis(self.open("k", extent, LoopKind::Reduce));
                opened += 1;
            }
        }
        let here = self.depth();
        match op {
            ReduceOp::ArgMax { last } | ReduceOp::ArgMin { last } => {
                let less = matches!(op, ReduceOp::ArgMin { .. });
                let position = axes.first().and_then(|a| read.get(*a as usize)).cloned().unwrap_or(Ix::Const(0));
                self.arg_step(node, &read, position, &accs, less, last)?;
            }
            ReduceOp::Dot => {
                let a = self.operand(node.args[0], &read)?;
                let b = self.operand(node.args[1], &read)?;
                let from = self.arg_elem(node)?;
                let (a, b) = (self.widen(a, from, elem), self.widen(b, from, elem));
                let product = if elem.is_float() {
                    ScalarOp::MulF { rounding: Rounding::NearestEven, ftz: false }
                } else {
                    ScalarOp::MulI
                };
                let p = self.define("v", dtype, here, |dst| Stmt::Let { dst, op: product, args: vec![a, b] });
                self.fold_step(accs[0], fold, dtype, p, here);
            }
            _ => {
                let x = self.operand(node.args[0], &read)?;
                self.fold_step(accs[0], fold, dtype, x, here);
            }
        }
        let combine = match op {
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => None,
            _ => Some(Combine { accs: accs.clone(), op: CombineOp::Scalar { op: fold, identity: start }, ways: 1 }),
        };
        for i in 0..opened {
            let combine = combine.clone().filter(|_| i == 0);
            self.close_with(|f| f.combine = combine);
        }
        let last = accs[accs.len() - 1];
        Ok(self.define(name, dtype, at, |dst| Stmt::Read { dst, buf: last, idx: vec![] }))
    }

    fn arg_elem(&self, node: &g::Node) -> Result<Elem> {
        match node.args.first() {
            Some(Arg::Value(v)) => Ok(self.graph.values[*v].elem),
            _ => Err(Refusal::new("a reduction of a scalar")),
        }
    }

    /// An operand of a product in the type that the sum is made in.
    pub fn widen(&mut self, x: Opnd, from: Elem, to: Elem) -> Opnd {
        if from.dtype == to.dtype {
            return x;
        }
        let op = if to.is_float() {
            ScalarOp::FToF { to: to.dtype, rounding: Rounding::NearestEven }
        } else {
            ScalarOp::ExtI { to: to.dtype, sign: from.sign() }
        };
        self.apply(op, to.dtype, vec![x])
    }

    /// `acc = op(x, acc)`
    fn fold_step(&mut self, acc: BufId, op: ScalarOp, dtype: DType, x: Opnd, depth: usize) {
        let old = self.define("acc", dtype, depth, |dst| Stmt::Read { dst, buf: acc, idx: vec![] });
        let new = self.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args: vec![x, old] });
        self.push(depth, Stmt::Write { buf: acc, idx: vec![], value: new });
    }

    /// One step of a search for the position of the greatest or least element. The position is -1 before the first.
    fn arg_step(&mut self, node: &g::Node, read: &[Ix], at: Ix, accs: &[BufId], less: bool, last: bool) -> Result<()> {
        let of = self.arg_elem(node)?;
        let x = self.operand(node.args[0], read)?;
        let depth = self.depth();
        let (best_buf, place_buf) = (accs[0], accs[1]);
        let bool_ty = DType::I1;
        let best = self.define("best", of.dtype, depth, |dst| Stmt::Read { dst, buf: best_buf, idx: vec![] });
        let place = self.define("place", DType::I64, depth, |dst| Stmt::Read { dst, buf: place_buf, idx: vec![] });
        let pred = match (less, last) {
            (false, false) => Predicate::GreaterThan,
            (false, true) => Predicate::GreaterThanOrEqual,
            (true, false) => Predicate::LessThan,
            (true, true) => Predicate::LessThanOrEqual,
        };
        let compare =
            |e: &mut Self, op, a, b| e.define("v", bool_ty, depth, |dst| Stmt::Let { dst, op, args: vec![a, b] });
        let mut better = if of.is_float() {
            let wins = compare(self, ScalarOp::CmpF { pred, ordered: true }, x, best);
            let x_nan = compare(self, ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false }, x, x);
            let mut take = x_nan;
            if !last {
                let fine = compare(self, ScalarOp::CmpF { pred: Predicate::Equal, ordered: true }, best, best);
                take = compare(self, ScalarOp::And, x_nan, fine);
            }
            compare(self, ScalarOp::Or, wins, take)
        } else {
            compare(self, ScalarOp::CmpI { pred, sign: of.sign() }, x, best)
        };
        let none = Opnd::Const { dtype: DType::I64, bits: u64::MAX };
        let first = compare(
            self,
            ScalarOp::CmpI { pred: Predicate::Equal, sign: crate::num::op::Signedness::Signed },
            place,
            none,
        );
        better = compare(self, ScalarOp::Or, better, first);
        let here = self.define("at", DType::I64, depth, |dst| Stmt::Index { dst, ix: at });
        let select = ScalarOp::Select;
        let b = self.define("v", of.dtype, depth, |dst| Stmt::Let { dst, op: select, args: vec![better, x, best] });
        let p =
            self.define("v", DType::I64, depth, |dst| Stmt::Let { dst, op: select, args: vec![better, here, place] });
        self.push(depth, Stmt::Write { buf: best_buf, idx: vec![], value: b });
        self.push(depth, Stmt::Write { buf: place_buf, idx: vec![], value: p });
        Ok(())
    }
}

/// The fold of a reduction, and what it starts from.
pub(in crate::loops::model) fn fold_of(op: ReduceOp, elem: Elem) -> Result<(ScalarOp, u64)> {
    let (rounding, ftz, sign) = (Rounding::NearestEven, false, elem.sign());
    let fold = match (op, elem.is_float()) {
        (ReduceOp::Sum | ReduceOp::Dot, true) => ScalarOp::AddF { rounding, ftz },
        (ReduceOp::Sum | ReduceOp::Dot, false) => ScalarOp::AddI,
        (ReduceOp::Prod, true) => ScalarOp::MulF { rounding, ftz },
        (ReduceOp::Prod, false) => ScalarOp::MulI,
        (ReduceOp::Max, true) => ScalarOp::MaxF { nan: true, ftz },
        (ReduceOp::Min, true) => ScalarOp::MinF { nan: true, ftz },
        (ReduceOp::Max, false) => ScalarOp::MaxI { sign },
        (ReduceOp::Min, false) => ScalarOp::MinI { sign },
        (ReduceOp::And, false) => ScalarOp::And,
        (ReduceOp::Or, false) => ScalarOp::Or,
        (ReduceOp::Xor, false) => ScalarOp::Xor,
        (ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. }, _) => ScalarOp::Copy,
        _ => return Err(Refusal::new("a bitwise reduction of floats")),
    };
    Ok((fold, op.identity(elem)))
}
