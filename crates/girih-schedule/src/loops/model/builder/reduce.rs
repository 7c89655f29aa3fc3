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
        // In a dimension that may be empty, position 0 exists only where the loop over it runs.
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
        let fold = Fold { axes, coords, shape, node };
        match op {
            ReduceOp::ArgMax { last } => self.position(name, &fold, ReduceOp::Max, last),
            ReduceOp::ArgMin { last } => self.position(name, &fold, ReduceOp::Min, last),
            ReduceOp::Dot => self.fold_by(name, &fold, op, elem, |e, read, _| {
                let here = e.depth();
                let a = e.operand(node.args[0], read)?;
                let b = e.operand(node.args[1], read)?;
                let (a, b) = (e.widen(a, e.arg_elem(node, 0)?, elem), e.widen(b, e.arg_elem(node, 1)?, elem));
                if elem.is_float() {
                    return Ok((ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false }, vec![a, b]));
                }
                let args = vec![a, b];
                let product = e.define("v", elem.dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::MulI, args });
                Ok((ScalarOp::AddI, vec![product]))
            }),
            _ => self.fold_by(name, &fold, op, elem, |e, read, _| {
                let (scalar, _) = fold_of(op, elem)?;
                Ok((scalar, vec![e.operand(node.args[0], read)?]))
            }),
        }
    }

    /// A loop that folds the terms of `step` for each position: the operation and its operands before the accumulator. `step` also
    /// gets the position along the last axis.
    fn fold_by(
        &mut self,
        name: &str,
        fold: &Fold<'_>,
        op: ReduceOp,
        elem: Elem,
        step: impl FnOnce(&mut Self, &[Ix], &Ix) -> Result<(ScalarOp, Vec<Opnd>)>,
    ) -> Result<Opnd> {
        let (at, dtype) = (self.depth(), elem.dtype);
        let (scalar, identity) = fold_of(op, elem)?;
        let acc = self.local(name, dtype, vec![], at);
        let init = Opnd::Const { dtype, bits: identity };
        self.push(at, Stmt::Write { buf: acc, idx: vec![], value: init });
        let (mut read, mut along) = (fold.coords.to_vec(), Ix::Const(0));
        let mut opened = 0;
        for &a in fold.axes {
            let extent = fold.shape.get(a as usize).cloned().unwrap_or(Ix::Const(1));
            let slot = read.get_mut(a as usize).ok_or_else(|| Refusal::new("a reduction over no axis"))?;
            *slot = Ix::Const(0);
            if !extent.is_const(1) {
                *slot = Ix::Axis(self.open("k", extent, LoopKind::Reduce));
                opened += 1;
            }
            along = slot.clone();
        }
        let here = self.depth();
        let (one, operands) = step(self, &read, &along)?;
        self.fold_step(acc, one, dtype, operands, here);
        let combine = Combine { accs: vec![acc], op: CombineOp::Scalar { op: scalar, identity }, ways: 1 };
        for i in 0..opened {
            let combine = (i == 0).then(|| combine.clone());
            self.close_with(|f| f.combine = combine);
        }
        Ok(self.define(name, dtype, at, |dst| Stmt::Read { dst, buf: acc, idx: vec![] }))
    }

    /// The position of the greatest or least element: that element first, then the first or last place where it stands. A NaN
    /// is greater and less than all others.
    fn position(&mut self, name: &str, fold: &Fold<'_>, of: ReduceOp, last: bool) -> Result<Opnd> {
        let (node, elem) = (fold.node, self.arg_elem(fold.node, 0)?);
        let (greater, _) = fold_of(of, elem)?;
        let best =
            self.fold_by("best", fold, of, elem, |e, read, _| Ok((greater, vec![e.operand(node.args[0], read)?])))?;
        let test = |e: &mut Self, depth, op, a, b| {
            e.define("is", DType::I1, depth, |dst| Stmt::Let { dst, op, args: vec![a, b] })
        };
        let differs = ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false };
        // The position takes half as many bits where they hold it.
        let extent = fold.axes.first().and_then(|a| fold.shape.get(*a as usize));
        let short = extent.is_some_and(|n| self.facts.range(n).hi <= i32::MAX.into());
        let place = Elem::of(if short { DType::I32 } else { DType::I64 });
        let pick = if last { ReduceOp::Max } else { ReduceOp::Min };
        let (first, none) = fold_of(pick, place)?;
        let found = self.fold_by(name, fold, pick, place, |e, read, along| {
            let here = e.depth();
            let x = e.operand(node.args[0], read)?;
            let mut is = match elem.is_float() {
                true => test(e, here, ScalarOp::CmpF { pred: Predicate::Equal, ordered: true }, x, best),
                false => test(e, here, ScalarOp::CmpI { pred: Predicate::Equal, sign: elem.sign() }, x, best),
            };
            if elem.is_float() {
                // If one element is NaN, so is the best.
                let is_nan = test(e, here, differs, x, x);
                is = test(e, here, ScalarOp::Or, is, is_nan);
            }
            let along = along.clone();
            let k = e.define("at", place.dtype, here, |dst| Stmt::Index { dst, ix: along });
            let none = Opnd::Const { dtype: place.dtype, bits: none };
            let args = vec![is, k, none];
            let found = e.define("v", place.dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args });
            Ok((first, vec![found]))
        })?;
        Ok(if short { self.widen(found, place, Elem::of(DType::I64)) } else { found })
    }

    fn arg_elem(&self, node: &g::Node, at: usize) -> Result<Elem> {
        match node.args.get(at) {
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

    /// `acc = op(x, acc)`, or of a product `op(x, y, acc)`
    pub(in crate::loops::model) fn fold_step(
        &mut self,
        acc: BufId,
        op: ScalarOp,
        dtype: DType,
        mut operands: Vec<Opnd>,
        depth: usize,
    ) {
        operands.push(self.define("acc", dtype, depth, |dst| Stmt::Read { dst, buf: acc, idx: vec![] }));
        let new = self.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args: operands });
        self.push(depth, Stmt::Write { buf: acc, idx: vec![], value: new });
    }
}

/// The operands of a reduction.
struct Fold<'a> {
    axes: &'a [u32],
    coords: &'a [Ix],
    shape: &'a [Ix],
    node: &'a g::Node,
}

/// The fold of a reduction, and its initial value.
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
