//! Operations with a region that runs per element: reductions, scans and `generate`.

use super::{Lift, Lifted, Result1, axis_name, bug, counted, int_attr, konst, operand, result};
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::{AttrKey, Op, Opcode};
use crate::cuda_tile::ops::scalar_op;
use crate::index::Ix;
use crate::loops::ir::{BufId, Combine, CombineOp, LoopKind, Opnd, Stmt, Ty};
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

/// The initial value of a fold's accumulators. A fold starts from its first element: either the body leaves that
/// element unchanged, or the element replaces the result of the body.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    /// A neutral value, with which the body leaves every element unchanged.
    Neutral(u64),
    Element,
}

impl Lift<'_> {
    /// Rank-0 accumulators.
    fn accumulators(&mut self, op: &Op, names: &[String], start: Start) -> Result1<Vec<BufId>> {
        let mut accs = Vec::new();
        for (name, &v) in names.iter().zip(&op.operands) {
            let ty = self.elem(v)?;
            let acc = self.local(name, ty, &[]);
            let bits = match start {
                Start::Neutral(bits) => bits,
                Start::Element => 0,
            };
            self.write(acc, &[], konst(super::dtype_of(ty), bits));
            accs.push(acc);
        }
        Ok(accs)
    }

    /// One step, the `nth` from 0: the region applied to (element, accumulator) of each operand, its results written
    /// back.
    fn fold_step(&mut self, op: &Op, at: &[Ix], accs: &[BufId], start: Start, nth: &Ix) -> Result1<Vec<Opnd>> {
        let mut args = Vec::new();
        for (&v, &acc) in op.operands.iter().zip(accs) {
            args.push(self.at(v, at)?);
            args.push(self.read(acc, &[]));
        }
        let mut next = self.inline(op, &args)?;
        if start == Start::Element {
            let nth = self.index(nth.clone(), DType::I32);
            let equal = ScalarOp::CmpI { pred: Predicate::Equal, sign: Signedness::Signed };
            let first = self.compute(equal, vec![nth, konst(DType::I32, 0)], Ty::Num(DType::I1));
            for (value, (&v, &element)) in next.iter_mut().zip(op.operands.iter().zip(args.iter().step_by(2))) {
                let ty = self.elem(v)?;
                *value = self.compute(ScalarOp::Select, vec![first, element, *value], ty);
            }
        }
        for (&acc, &value) in accs.iter().zip(&next) {
            self.write(acc, &[], value);
        }
        Ok(next)
    }

    /// The operation and neutral element of a body that is one associative operation on its two arguments.
    fn associative(&self, op: &Op) -> Option<CombineOp> {
        let func = self.func();
        let ([source], [region]) = (&op.operands[..], &op.regions[..]) else { return None };
        let body = &func.regions[*region];
        let [fold, end] = body.ops[..] else { return None };
        let (fold, end) = (&func.ops[fold], &func.ops[end]);
        let of_arguments =
            matches!(fold.operands[..], [a, b] if a != b && body.args.contains(&a) && body.args.contains(&b));
        if end.opcode != Opcode::Yield || end.operands != fold.results || !of_arguments {
            return None;
        }
        let ty = self.elem(*source).ok()?;
        let Ty::Num(dtype) = ty else { return None };
        let (Ty::Num(to) | Ty::Ptr(to)) = ty;
        let scalar = scalar_op(fold, to)?;
        Some(CombineOp::Scalar { op: scalar, identity: scalar.neutral(dtype)? })
    }

    pub(super) fn reduce(&mut self, op: &Op) -> Result1<()> {
        let source = self.tile_ty(operand(op, 0)?)?.shape.clone();
        let dim = int_attr(op, AttrKey::Dim)? as usize;
        let Some(&extent) = source.get(dim) else { return Err(bug("a dimension out of range", op.span)) };
        let kept: Vec<u64> = source.iter().enumerate().filter(|&(d, _)| d != dim).map(|(_, &n)| n).collect();
        // The verifier only warns of a result with the shape of reducing another dimension; it cannot run.
        for &r in &op.results {
            if self.tile_ty(r)?.shape != kept {
                let text = format!("this `reduce` keeps {kept:?}, which its result does not have");
                return Err(Diagnostic::error(Code::TypeMismatch, text).at(op.span));
            }
        }
        let combine = self.associative(op);
        let names: Vec<String> = op.results.iter().map(|&r| self.name(r, "acc")).collect();
        let mut outs = Vec::new();
        if !kept.is_empty() {
            for (&r, name) in op.results.iter().zip(&names) {
                let ty = self.elem(r)?;
                outs.push(self.local(name, ty, &kept));
            }
        }
        let mut scalars = Vec::new();
        // The only element of a line is the result itself, unflushed, even if it is a NaN that is not canonical.
        let start = match combine {
            Some(CombineOp::Scalar { identity, .. }) if extent > 1 => Start::Neutral(identity),
            _ => Start::Element,
        };
        self.nest(&kept, LoopKind::Free, |l, idx| {
            let accs = l.accumulators(op, &names, start)?;
            let axis = l.new_axis(&axis_name(dim));
            let mut at = idx.to_vec();
            at.insert(dim, Ix::Axis(axis));
            let body = l.body(|l| l.fold_step(op, &at, &accs, start, &Ix::Axis(axis)).map(drop))?;
            let mut fold = counted(axis, extent, LoopKind::Reduce, body);
            if let Stmt::For(f) = &mut fold {
                f.combine =
                    combine.filter(|_| start != Start::Element).map(|op| Combine { accs: accs.clone(), op, ways: 1 });
            }
            l.emit(fold);
            for (i, &acc) in accs.iter().enumerate() {
                let total = l.read(acc, &[]);
                match outs.get(i) {
                    Some(&out) => l.write(out, idx, total),
                    None => scalars.push(total),
                }
            }
            Ok(())
        })?;
        for (i, &r) in op.results.iter().enumerate() {
            match (outs.get(i), scalars.get(i)) {
                (Some(&out), _) => self.bind(r, Lifted::Tile(out)),
                (None, Some(&o)) => self.bind(r, Lifted::Scalar(o)),
                (None, None) => return Err(bug("a result without an operand", op.span)),
            }
        }
        Ok(())
    }

    /// An inclusive prefix fold along one dimension, in order or from the end.
    pub(super) fn scan(&mut self, op: &Op) -> Result1<()> {
        let shape = self.tile_ty(operand(op, 0)?)?.shape.clone();
        let dim = int_attr(op, AttrKey::Dim)? as usize;
        let Some(&extent) = shape.get(dim) else { return Err(bug("a dimension out of range", op.span)) };
        let reverse = op.flag(AttrKey::Reverse);
        let mut kept = shape.clone();
        kept[dim] = 1;
        let names: Vec<String> = op.results.iter().map(|&r| self.name(r, "scan")).collect();
        let mut outs = Vec::new();
        for (&r, name) in op.results.iter().zip(&names) {
            let ty = self.elem(r)?;
            outs.push(self.local(name, ty, &shape));
        }
        // The first elements are results too; a neutral element would flush them, and replace every NaN by one.
        let start = match (self.associative(op), self.elem(operand(op, 0)?)?) {
            (Some(CombineOp::Scalar { identity, .. }), Ty::Num(d)) if d.is_int() => Start::Neutral(identity),
            _ => Start::Element,
        };
        self.nest(&kept, LoopKind::Free, |l, idx| {
            let accs = l.accumulators(op, &names, start)?;
            let axis = l.new_axis(&axis_name(dim));
            let mut at = idx.to_vec();
            at[dim] = match reverse {
                false => Ix::Axis(axis),
                true => Ix::Sub(Box::new(Ix::Const(extent as i64 - 1)), Box::new(Ix::Axis(axis))),
            };
            let body = l.body(|l| {
                let next = l.fold_step(op, &at, &accs, start, &Ix::Axis(axis))?;
                for (&out, &value) in outs.iter().zip(&next) {
                    l.write(out, &at, value);
                }
                Ok(())
            })?;
            l.emit(counted(axis, extent, LoopKind::Serial, body));
            Ok(())
        })?;
        for (&r, &out) in op.results.iter().zip(&outs) {
            self.bind(r, Lifted::Tile(out));
        }
        Ok(())
    }

    pub(super) fn generate(&mut self, op: &Op) -> Result1<()> {
        self.define(result(op, 0)?, |l, idx| {
            let args: Vec<Opnd> = idx.iter().map(|ix| l.index(ix.clone(), DType::I32)).collect();
            let values = l.inline(op, &args)?;
            values.first().copied().ok_or_else(|| bug("a region that yields nothing", op.span))
        })
    }
}
