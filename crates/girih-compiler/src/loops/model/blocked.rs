//! Contributions to a tile of a product, for attention in blocks.

use super::emit::{Emitter, Result};
use super::product::{is_load, is_padded_load, load_of};
use crate::graph::Elem;
use crate::graph::build::Refusal;
use crate::graph::ir::Arg;
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::loops::ir::*;
use crate::num::ScalarOp;
use crate::num::op::Rounding;

pub(super) fn position(block: u8, size: u64, within: &Ix) -> Ix {
    Ix::add(Ix::mul(Ix::Block(block), Ix::Const(size as i64)), within.clone())
}

/// The conditions that positions lie inside; none where the blocks divide the extent.
pub(super) fn inside(positions: &[(&Ix, &Ix, u64)]) -> Mask {
    let open = positions.iter().filter(|(_, n, by)| n.as_const().is_none_or(|n| n % *by as i64 != 0));
    Mask { conds: open.map(|(p, n, _)| Cond::new((*p).clone(), Cmp::Lt, (*n).clone())).collect(), vals: vec![] }
}

/// Gives an operand's coordinates, and where they lie inside, from a position in the tile and one along k.
pub(super) type Place<'p> = &'p dyn Fn(&Ix, &Ix) -> (Vec<Ix>, Mask);

/// One contribution to a tile of a product: `acc[i, j] += sum over kk of a[i, kk] * b[kk, j]`.
pub(super) struct Part<'p> {
    pub a: Arg,
    pub b: Arg,
    /// The type of the sum.
    pub elem: Elem,
    pub rows: u64,
    pub cols: u64,
    pub depth: u64,
    pub acc: BufId,
    /// Of `a` at (i, kk).
    pub at_a: Place<'p>,
    /// Of `b` at (j, kk).
    pub at_b: Place<'p>,
    /// The left operand, where it lies in a local buffer already: `[i, kk]`.
    pub left: Option<BufId>,
}

/// Emits the loops of one contribution. Operands that are more than a load are computed into slabs first.
pub(super) fn contract(e: &mut Emitter<'_>, p: &Part<'_>) -> Result<()> {
    let graph = e.graph;
    let elem = p.elem;
    let arg_elem = |x: Arg| match x {
        Arg::Value(v) => graph.values[v].elem,
        Arg::Scalar { elem, .. } => elem,
        Arg::Absent => elem,
    };
    let direct = |e: &Emitter<'_>, x: Arg| is_load(e, x) || is_padded_load(e, x);
    let a_slab = match p.left {
        Some(buf) => Some(buf),
        None if direct(e, p.a) => None,
        None => Some(slab(e, "a", p.a, arg_elem(p.a), elem, p.rows, p.depth, false, p.at_a)?),
    };
    let b_slab = if direct(e, p.b) {
        None
    } else {
        Some(slab(e, "b", p.b, arg_elem(p.b), elem, p.cols, p.depth, true, p.at_b)?)
    };
    let i_axis = e.open("i", Ix::Const(p.rows as i64), LoopKind::Free);
    let j_axis = e.open("j", Ix::Const(p.cols as i64), LoopKind::Free);
    let k_axis = e.open("kk", Ix::Const(p.depth as i64), LoopKind::Reduce);
    let (i, j, kk) = (Ix::Axis(i_axis), Ix::Axis(j_axis), Ix::Axis(k_axis));
    let here = e.depth();
    let operand = |e: &mut Emitter<'_>, slab: Option<BufId>, idx: Vec<Ix>, arg: Arg, place: (Vec<Ix>, Mask)| match slab
    {
        Some(buf) => Ok(e.define("x", elem.dtype, here, |dst| Stmt::Read { dst, buf, idx })),
        None => {
            e.mask = place.1;
            let x = load_of(e, arg, &place.0);
            e.mask = Mask::default();
            x
        }
    };
    let a = operand(e, a_slab, vec![i.clone(), kk.clone()], p.a, (p.at_a)(&i, &kk))?;
    let b = operand(e, b_slab, vec![kk.clone(), j.clone()], p.b, (p.at_b)(&j, &kk))?;
    let (Opnd::Val(a_val), Opnd::Val(b_val)) = (a, b) else {
        return Err(Refusal::new("an operand of a product is the same everywhere"));
    };
    let x = if a_slab.is_some() { a } else { e.widen(a, arg_elem(p.a), elem) };
    let y = if b_slab.is_some() { b } else { e.widen(b, arg_elem(p.b), elem) };
    let dtype = elem.dtype;
    let at = vec![i, j];
    let acc = p.acc;
    let old = e.define("acc", dtype, here, |dst| Stmt::Read { dst, buf: acc, idx: at.clone() });
    let new = if elem.is_float() {
        let op = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
        e.define("v", dtype, here, |dst| Stmt::Let { dst, op, args: vec![x, y, old] })
    } else {
        let product = e.define("v", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::MulI, args: vec![x, y] });
        e.define("v", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::AddI, args: vec![product, old] })
    };
    e.emit_here(Stmt::Write { buf: acc, idx: at, value: new });
    let roles = Contraction { m: vec![i_axis], n: vec![j_axis], k: vec![k_axis], a: a_val, b: b_val, acc };
    e.close_with(|f| f.contraction = Some(roles));
    e.close();
    e.close();
    Ok(())
}

/// Computes an operand into a local buffer, `[position, kk]` or, for the right one, `[kk, position]`.
#[allow(clippy::too_many_arguments)]
fn slab(
    e: &mut Emitter<'_>,
    name: &str,
    arg: Arg,
    from: Elem,
    to: Elem,
    size: u64,
    depth: u64,
    right: bool,
    place: Place<'_>,
) -> Result<BufId> {
    let (outer, inner) = if right { (depth, size) } else { (size, depth) };
    let buf = e.local(name, to.dtype, vec![outer, inner], e.depth());
    let x = Ix::Axis(e.open(if right { "kk" } else { "i" }, Ix::Const(outer as i64), LoopKind::Free));
    let y = Ix::Axis(e.open(if right { "j" } else { "kk" }, Ix::Const(inner as i64), LoopKind::Free));
    let (coords, mask) = if right { place(&y, &x) } else { place(&x, &y) };
    e.mask = mask;
    let value = padded(e, arg, &coords, from, to);
    e.mask = Mask::default();
    e.emit_here(Stmt::Write { buf, idx: vec![x, y], value: value? });
    e.close();
    e.close();
    Ok(buf)
}

/// An operand's element for a slab: zero where the mask does not hold, and in the type of the sum.
fn padded(e: &mut Emitter<'_>, arg: Arg, coords: &[Ix], from: Elem, to: Elem) -> Result<Opnd> {
    let x = e.operand(arg, coords)?;
    let x = e.widen(x, from, to);
    let mask = e.facts.simplify_mask(&e.mask).unwrap_or_default();
    if mask.is_always() {
        return Ok(x);
    }
    let here = e.depth();
    let on = e.define("in", crate::num::DType::I1, here, |dst| Stmt::Test { dst, mask });
    let zero = Opnd::Const { dtype: to.dtype, bits: 0 };
    Ok(e.define("x", to.dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args: vec![on, x, zero] }))
}
