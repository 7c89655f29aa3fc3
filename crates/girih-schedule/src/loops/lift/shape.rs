//! Operations that only move elements: each is a nest over the result that reads its operand at other indices.

use super::{Lift, Lifted, Result1, bug, dtype_of, global, int_attr, konst, operand, result};
use crate::cuda_tile::ir::{Attr, AttrKey, Op, Signedness, ValueId};
use crate::index::{Ix, Mask};
use crate::loops::ir::{LoopKind, Mem, Opnd, Order, Stmt, Ty};
use crate::num::{DType, ScalarOp};

impl Lift<'_> {
    pub(super) fn constant(&mut self, op: &Op) -> Result1<()> {
        let Some(Attr::Elements(e)) = op.attr(AttrKey::Value) else {
            return Err(bug("a constant without a value", op.span));
        };
        let result = result(op, 0)?;
        if e.is_splat() {
            let value = konst(e.dtype, e.get(0));
            return self.define(result, |_, _| Ok(value));
        }
        // Elements that differ live in a constant global of the kernel, named after it: kernels share one table of globals.
        let shape = self.tile_ty(result)?.shape.clone();
        let index = self.kernel.globals.len() as u32;
        let entry = global(&format!("{}.const.{index}", self.kernel.name), e, e.dtype.bytes(), true);
        self.kernel.globals.push(entry);
        let base = self.new_val(Ty::Ptr(e.dtype), "table");
        self.emit(Stmt::GlobalAddr { dst: base, global: index });
        let site = self.site(op);
        self.define(result, |l, idx| {
            let dst = l.new_val(Ty::Num(e.dtype), "c");
            let mem = Mem { base, index: Ix::row_major(idx, &shape), elem: e.dtype };
            l.emit(Stmt::Load { dst, mem, mask: Mask::default(), other: None, order: Order::Weak, site });
            Ok(Opnd::Val(dst))
        })
    }

    pub(super) fn iota(&mut self, op: &Op) -> Result1<()> {
        let result = result(op, 0)?;
        let dtype = dtype_of(self.elem(result)?);
        self.define(result, |l, idx| Ok(l.index(idx[0].clone(), dtype)))
    }

    pub(super) fn broadcast(&mut self, op: &Op) -> Result1<()> {
        let source = operand(op, 0)?;
        let shape = &self.tile_ty(source)?.shape;
        self.define(result(op, 0)?, |l, idx| {
            let at: Vec<Ix> =
                idx.iter().zip(shape).map(|(ix, &n)| if n == 1 { Ix::Const(0) } else { ix.clone() }).collect();
            l.at(source, &at)
        })
    }

    pub(super) fn permute(&mut self, op: &Op) -> Result1<()> {
        let source = operand(op, 0)?;
        let Some(Attr::I32s(permutation)) = op.attr(AttrKey::Permutation) else {
            return Err(bug("a permute without a permutation", op.span));
        };
        self.define(result(op, 0)?, |l, idx| {
            let mut at = vec![Ix::Const(0); idx.len()];
            for (ix, &p) in idx.iter().zip(permutation) {
                if let Some(slot) = at.get_mut(p as usize) {
                    *slot = ix.clone();
                }
            }
            l.at(source, &at)
        })
    }

    pub(super) fn reshape(&mut self, op: &Op) -> Result1<()> {
        let (source, result) = (operand(op, 0)?, result(op, 0)?);
        let from = self.tile_ty(source)?.shape.clone();
        let to = self.tile_ty(result)?.shape.clone();
        self.define(result, |l, idx| l.at(source, &reindex(idx, &to, &from)))
    }

    /// Two nests, one per operand, into one buffer.
    pub(super) fn cat(&mut self, op: &Op) -> Result1<()> {
        let dim = int_attr(op, AttrKey::Dim)? as usize;
        let result = result(op, 0)?;
        let ty = self.tile_ty(result)?;
        let name = self.name(result, "cat");
        let buf = self.local(&name, ty.elem, &ty.shape);
        let mut start = 0;
        for &part in &op.operands {
            let shape = &self.tile_ty(part)?.shape;
            self.nest(shape, LoopKind::Free, |l, idx| {
                let v = l.at(part, idx)?;
                let mut at = idx.to_vec();
                if let Some(ix) = at.get_mut(dim) {
                    *ix = Ix::add(ix.clone(), Ix::Const(start));
                }
                l.write(buf, &at, v);
                Ok(())
            })?;
            start += shape.get(dim).copied().unwrap_or(0) as i64;
        }
        self.bind(result, Lifted::Tile(buf));
        Ok(())
    }

    /// The subtile's first index along each dimension. An index outside the tile is undefined; natively it is the last.
    fn subtile(&mut self, indices: &[ValueId], whole: &[u64], part: &[u64]) -> Result1<Vec<Ix>> {
        let mut out = Vec::new();
        for ((&v, &whole), &part) in indices.iter().zip(whole).zip(part) {
            let count = (whole / part.max(1)) as i64;
            let at = match self.ix(self.scalar(v)?, true) {
                Ix::Const(c) => Ix::Const(c.min(count - 1)),
                _ if count == 1 => Ix::Const(0),
                ix => Ix::Min(Box::new(ix), Box::new(Ix::Const(count - 1))),
            };
            out.push(Ix::mul(at, Ix::Const(part as i64)));
        }
        Ok(out)
    }

    pub(super) fn extract(&mut self, op: &Op) -> Result1<()> {
        let (source, result) = (operand(op, 0)?, result(op, 0)?);
        let (whole, part) = (&self.tile_ty(source)?.shape, &self.tile_ty(result)?.shape);
        self.check_part(op.group(1), whole, part, op)?;
        let start = self.subtile(op.group(1), whole, part)?;
        self.define(result, |l, idx| {
            let at: Vec<Ix> = start.iter().zip(idx).map(|(s, ix)| Ix::add(s.clone(), ix.clone())).collect();
            l.at(source, &at)
        })
    }

    pub(super) fn insert(&mut self, op: &Op) -> Result1<()> {
        let (source, dest, result) = (operand(op, 0)?, operand(op, 1)?, result(op, 0)?);
        let (whole, part) = (&self.tile_ty(result)?.shape, &self.tile_ty(source)?.shape);
        self.check_part(op.group(2), whole, part, op)?;
        let start = self.subtile(op.group(2), whole, part)?;
        self.define(result, |l, idx| l.at(dest, idx))?;
        let Lifted::Tile(buf) = self.value(result)? else { return self.same_as(source, result) };
        self.nest(part, LoopKind::Free, |l, idx| {
            let v = l.at(source, idx)?;
            let at: Vec<Ix> = start.iter().zip(idx).map(|(s, ix)| Ix::add(s.clone(), ix.clone())).collect();
            l.write(buf, &at, v);
            Ok(())
        })
    }

    fn same_as(&mut self, from: ValueId, to: ValueId) -> Result1<()> {
        let value = self.value(from)?;
        self.bind(to, value);
        Ok(())
    }

    /// Elements of another width become bytes, low byte (or low bits) first.
    pub(super) fn pack(&mut self, op: &Op) -> Result1<()> {
        let source = operand(op, 0)?;
        let from = dtype_of(self.elem(source)?);
        self.define(result(op, 0)?, |l, idx| {
            let i = idx[0].clone();
            if from.bits() > 8 {
                let bytes = from.bytes() as i64;
                let v = l.at(source, &[Ix::floor_div(i.clone(), Ix::Const(bytes))])?;
                let int = int_of(from);
                let v = l.cast(v, from, int);
                let shift = l.index(Ix::mul(Ix::modulo(i, Ix::Const(bytes)), Ix::Const(8)), int);
                let v = l.compute(ScalarOp::Shr { sign: Signedness::Unsigned }, vec![v, shift], Ty::Num(int));
                return Ok(l.compute(ScalarOp::TruncI { to: DType::I8 }, vec![v], Ty::Num(DType::I8)));
            }
            let per = 8 / from.bits();
            let first = Ix::mul(i, Ix::Const(per as i64));
            let parts = (0..per).map(|j| (Ix::add(first.clone(), Ix::Const(j as i64)), j * from.bits())).collect();
            l.compose(source, parts, from, DType::I8)
        })
    }

    /// The inverse of `pack`.
    pub(super) fn unpack(&mut self, op: &Op) -> Result1<()> {
        let (source, result) = (operand(op, 0)?, result(op, 0)?);
        let to = dtype_of(self.elem(result)?);
        let int = int_of(to);
        self.define(result, |l, idx| {
            let i = idx[0].clone();
            if to.bits() > 8 {
                let bytes = to.bytes() as u32;
                let first = Ix::mul(i, Ix::Const(bytes as i64));
                let parts = (0..bytes).map(|j| (Ix::add(first.clone(), Ix::Const(j as i64)), j * 8)).collect();
                let v = l.compose(source, parts, DType::I8, int)?;
                return Ok(l.cast(v, int, to));
            }
            let per = (8 / to.bits()) as i64;
            let v = l.at(source, &[Ix::floor_div(i.clone(), Ix::Const(per))])?;
            let shift = l.index(Ix::mul(Ix::modulo(i, Ix::Const(per)), Ix::Const(to.bits() as i64)), DType::I8);
            let v = l.compute(ScalarOp::Shr { sign: Signedness::Unsigned }, vec![v, shift], Ty::Num(DType::I8));
            let v = match int {
                DType::I8 => v,
                int => l.compute(ScalarOp::TruncI { to: int }, vec![v], Ty::Num(int)),
            };
            Ok(l.cast(v, int, to))
        })
    }

    /// The elements at the given indices, zero-extended to `to` and or'ed together, each shifted left.
    fn compose(&mut self, source: ValueId, parts: Vec<(Ix, u32)>, from: DType, to: DType) -> Result1<Opnd> {
        let int = int_of(from);
        let mut whole: Option<Opnd> = None;
        for (at, shift) in parts {
            let v = self.at(source, &[at])?;
            let v = self.cast(v, from, int);
            let mut v = match int == to {
                true => v,
                false => self.compute(ScalarOp::ExtI { to, sign: Signedness::Unsigned }, vec![v], Ty::Num(to)),
            };
            if shift > 0 {
                v = self.compute(ScalarOp::Shl, vec![v, konst(to, shift as u64)], Ty::Num(to));
            }
            whole = Some(match whole {
                None => v,
                Some(w) => self.compute(ScalarOp::Or, vec![w, v], Ty::Num(to)),
            });
        }
        Ok(whole.unwrap_or(konst(to, 0)))
    }

    fn cast(&mut self, v: Opnd, from: DType, to: DType) -> Opnd {
        if from == to { v } else { self.compute(ScalarOp::Bitcast { to }, vec![v], Ty::Num(to)) }
    }
}

/// The integer type of the same width.
fn int_of(d: DType) -> DType {
    match d.bits() {
        1 => DType::I1,
        4 => DType::I4,
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I64,
    }
}

/// The index in `from` of the element that has the index `idx` in `to`: both are cut into the shortest groups of
/// dimensions with equal products, so that inserting or dropping a dimension costs no arithmetic.
fn reindex(idx: &[Ix], to: &[u64], from: &[u64]) -> Vec<Ix> {
    let mut out = Vec::with_capacity(from.len());
    let (mut t, mut f) = (0, 0);
    while f < from.len() {
        let (t0, f0) = (t, f);
        let (mut nt, mut nf) = (1u64, from[f]);
        f += 1;
        while nt != nf {
            if nt < nf && t < to.len() {
                nt *= to[t];
                t += 1;
            } else if f < from.len() {
                nf *= from[f];
                f += 1;
            } else {
                break;
            }
        }
        let whole = Ix::row_major(&idx[t0..t], &to[t0..t]);
        let mut below = nf;
        for (g, &n) in from[f0..f].iter().enumerate() {
            let above = below;
            below /= n;
            out.push(if n == 1 {
                Ix::Const(0)
            } else {
                let quotient = Ix::floor_div(whole.clone(), Ix::Const(below as i64));
                if g == 0 || above == nf { quotient } else { Ix::modulo(quotient, Ix::Const(n as i64)) }
            });
        }
    }
    out
}
