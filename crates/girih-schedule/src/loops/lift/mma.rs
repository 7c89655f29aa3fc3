//! Contractions: `mmaf`, `mmai` and `mmaf_scaled`, as a nest over (batch,) m, n whose innermost loop folds over k and
//! carries the roles of its axes and operands.
//!
//! ```text
//! %d = mmaf %a, %b, %c     for i: for j: out[i, j] = c[i, j]
//!                    -->   for i: for j:
//!                            for k:                          # reduce  contraction m=i n=j k=k a=x b=y
//!                              x = a[i, k]
//!                              y = b[k, j]
//!                              out[i, j] = fma(f32(x), f32(y), out[i, j])
//! ```

use super::{Lift, Lifted, Result1, axis_name, bug, counted, dtype_of, operand, result};
use crate::cuda_tile::ir::{AttrKey, Op, Opcode, Rounding, Signedness, ValueId};
use crate::index::{AxisId, Ix};
use crate::loops::ir::{BufId, Contraction, LoopKind, Opnd, Stmt, Ty};
use crate::num::{DType, ScalarOp};

/// The types of one step of a contraction: those of the accumulator and of the operands' signs.
struct Step {
    /// The type of the accumulator while folding.
    acc: DType,
    sign_a: Signedness,
    sign_b: Signedness,
}

impl Lift<'_> {
    pub(super) fn mma(&mut self, op: &Op) -> Result1<()> {
        let [a, b] = [operand(op, 0)?, operand(op, 1)?];
        let step = Step {
            acc: wide(dtype_of(self.elem(result(op, 0)?)?)),
            sign_a: op.signedness(AttrKey::SignednessLhs),
            sign_b: op.signedness(AttrKey::SignednessRhs),
        };
        let a = self.tile(a, op)?;
        let b = self.tile(b, op)?;
        self.contract(op, a, b, step)
    }

    /// Each operand is multiplied by its scales first, as f32.
    pub(super) fn mma_scaled(&mut self, op: &Op) -> Result1<()> {
        let a = self.scaled(operand(op, 0)?, operand(op, 3)?)?;
        let b = self.scaled(operand(op, 1)?, operand(op, 4)?)?;
        let step = Step { acc: DType::F32, sign_a: Signedness::Signed, sign_b: Signedness::Signed };
        self.contract(op, a, b, step)
    }

    fn scaled(&mut self, v: ValueId, scale: ValueId) -> Result1<BufId> {
        let shape = self.tile_ty(v)?.shape.clone();
        let per: Vec<i64> =
            shape.iter().zip(&self.tile_ty(scale)?.shape).map(|(&n, &s)| (n / s.max(1)) as i64).collect();
        let (from, scale_ty) = (dtype_of(self.elem(v)?), dtype_of(self.elem(scale)?));
        let name = self.name(v, "scaled");
        let buf = self.local(&name, Ty::Num(DType::F32), &shape);
        self.nest(&shape, LoopKind::Free, |l, idx| {
            let x = l.at(v, idx)?;
            let at: Vec<Ix> = idx.iter().zip(&per).map(|(ix, &p)| Ix::floor_div(ix.clone(), Ix::Const(p))).collect();
            let s = l.at(scale, &at)?;
            let x = l.widen(x, from, DType::F32, Signedness::Signed);
            let s = l.widen(s, scale_ty, DType::F32, Signedness::Signed);
            let product = ScalarOp::MulF { rounding: Rounding::NearestEven, ftz: false };
            let x = l.compute(product, vec![x, s], Ty::Num(DType::F32));
            l.write(buf, idx, x);
            Ok(())
        })?;
        Ok(buf)
    }

    fn tile(&self, v: ValueId, op: &Op) -> Result1<BufId> {
        match self.value(v)? {
            Lifted::Tile(b) => Ok(b),
            _ => Err(bug("a contraction of scalars", op.span)),
        }
    }

    fn contract(&mut self, op: &Op, a: BufId, b: BufId, step: Step) -> Result1<()> {
        let (init, res) = (operand(op, 2)?, result(op, 0)?);
        let init = self.tile(init, op)?;
        let ty = self.tile_ty(res)?;
        let given = dtype_of(ty.elem);
        let (a_shape, shape) = (self.kernel.bufs[a].shape.clone(), ty.shape.clone());
        let rank = shape.len();
        if rank < 2 || a_shape.len() != rank {
            return Err(bug("a contraction of tiles of other ranks than 2 and 3", op.span));
        }
        let name = self.name(res, "acc");
        let out = self.local(&name, Ty::Num(step.acc), &shape);
        self.nest(&shape, LoopKind::Free, |l, idx| {
            let v = l.read(init, idx);
            let v = l.widen(v, given, step.acc, Signedness::Signed);
            l.write(out, idx, v);
            Ok(())
        })?;

        let axes: Vec<AxisId> = (0..=rank).map(|d| self.new_axis(&axis_name(d))).collect();
        let (k, outer) = (axes[rank], &axes[..rank]);
        let (m, n) = (axes[rank - 2], axes[rank - 1]);
        let batch: Vec<Ix> = axes[..rank - 2].iter().map(|&x| Ix::Axis(x)).collect();
        let at = |x: AxisId, y: AxisId| {
            let mut ix = batch.clone();
            ix.extend([Ix::Axis(x), Ix::Axis(y)]);
            ix
        };
        let mut roles = None;
        let body = self.body(|l| {
            let (x, y) = (l.read(a, &at(m, k)), l.read(b, &at(k, n)));
            let (Opnd::Val(xv), Opnd::Val(yv)) = (x, y) else {
                return Err(bug("an operand that is not a value", op.span));
            };
            roles = Some(Contraction { m: vec![m], n: vec![n], k: vec![k], a: xv, b: yv, acc: out });
            let (x_ty, y_ty) = (dtype_of(l.opnd_ty(x)), dtype_of(l.opnd_ty(y)));
            let x = l.widen(x, x_ty, step.acc, step.sign_a);
            let y = l.widen(y, y_ty, step.acc, step.sign_b);
            let acc = l.read(out, &at(m, n));
            let sum = if op.opcode == Opcode::MmaI {
                let product = l.compute(ScalarOp::MulI, vec![x, y], Ty::Num(step.acc));
                l.compute(ScalarOp::AddI, vec![product, acc], Ty::Num(step.acc))
            } else {
                let fma = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
                l.compute(fma, vec![x, y, acc], Ty::Num(step.acc))
            };
            l.write(out, &at(m, n), sum);
            Ok(())
        })?;
        let mut nest = counted(k, a_shape[rank - 1], LoopKind::Reduce, body);
        if let Stmt::For(f) = &mut nest {
            f.contraction = roles;
        }
        for (&axis, &n) in outer.iter().zip(&shape).rev() {
            nest = counted(axis, n, LoopKind::Free, vec![nest]);
        }
        self.emit(nest);
        if given == step.acc {
            self.bind(res, Lifted::Tile(out));
            return Ok(());
        }
        self.define(res, |l, idx| {
            let v = l.read(out, idx);
            Ok(l.widen(v, step.acc, given, Signedness::Signed))
        })
    }

    /// A conversion between numbers of one kind, to either width.
    fn widen(&mut self, v: Opnd, from: DType, to: DType, sign: Signedness) -> Opnd {
        if from == to {
            return v;
        }
        let op = match from.is_int() {
            true => ScalarOp::ExtI { to, sign },
            false => ScalarOp::FToF { to, rounding: Rounding::NearestEven },
        };
        self.compute(op, vec![v], Ty::Num(to))
    }
}

/// The type a contraction's accumulator has while folding.
fn wide(result: DType) -> DType {
    match result {
        DType::F16 | DType::BF16 => DType::F32,
        d => d,
    }
}
