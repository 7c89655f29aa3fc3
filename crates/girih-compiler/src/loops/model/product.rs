//! Kernels around matrix products: blocks of rows and columns, the sum in stretches of k, then what follows.
//!
//! ```text
//! local acc: f32[32, 128] = 0                                    grid: x rows, y columns, z batch
//! for kt in 0..8: serial
//!   for i: for j: for kk: reduce contraction m=i n=j k=kk        acc[i, j] <- fma(a, b, acc[i, j])
//! for i: for j: free
//!   store out[..] = epilogue(acc[i, j])
//! ```
//!
//! Several products of one shape share the blocks; the epilogue reads all their accumulators. An operand that is more
//! than a load is computed into a local slab first.

use super::emit::{Emitter, Result, Source};
use super::roles::{Product, split};
use crate::base::target::Target;
use crate::graph::Elem;
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, Op, ValueId};
use crate::index::{Cmp, Cond, Interval, Ix, Mask};
use crate::loops::blocking::{Blocks, OperandLayout, contraction_blocks};
use crate::loops::ir::*;
use crate::num::ScalarOp;
use crate::num::op::Rounding;

/// Where a product's position along its rows, columns and batch is, in a block.
struct Frame {
    blocks: Blocks,
    m: Ix,
    n: Ix,
    k: Ix,
    m_extents: Vec<Ix>,
    n_extents: Vec<Ix>,
    k_extents: Vec<Ix>,
    /// Coordinates along the batch axes.
    batch: Vec<Ix>,
}

/// Emits a kernel for `root`, which needs `products` (of one shape and roles) in its epilogue, and gives its grid.
/// `places` are the root's coordinates over the coordinates of the products; `before`, how many blocks along y belong to
/// others. The blocks of all statements are opened in the innermost scope.
#[allow(clippy::too_many_arguments)]
pub(super) fn emit(
    e: &mut Emitter<'_>,
    root: ValueId,
    out: ValId,
    products: &[Product],
    places: &[Ix],
    layout: OperandLayout,
    target: &Target,
    before: &Ix,
) -> Result<[Ix; 3]> {
    let graph = e.graph;
    let Some(first) = products.first() else { return Err(Refusal::new("no product")) };
    let Some((node, _)) = graph.def(first.dot) else { return Err(Refusal::new("no product")) };
    let Some(Arg::Value(x)) = node.args.first().copied() else { return Err(Refusal::new("no product")) };
    let shape = graph.values[x].shape.clone();
    let of = |axes: &[usize]| axes.iter().filter_map(|d| shape.get(*d)).cloned().collect::<Vec<Ix>>();
    let extents = |axes: &[usize]| first.extent(graph, axes);
    let (m, n, k) = (extents(&first.m), extents(&first.n), extents(&first.k));
    let acc_dtype = graph.values[first.dot].elem.dtype;
    let guess = |ix: &Ix, default: u64| ix.as_const().map_or(default, |c| c.max(0) as u64);
    let mut blocks = contraction_blocks(
        target,
        m.as_const().map(|m| m.max(0) as u64),
        guess(&n, 4096),
        guess(&k, 4096),
        acc_dtype,
        layout,
    );
    if layout != OperandLayout::Panels {
        blocks.bk = blocks.bk.min(guess(&k, u64::MAX).max(1));
    }
    let batch_extents = of(&first.batch);
    let batch = split(&Ix::Block(2), &batch_extents);
    e.facts.blocks[2] = graph.numel(&batch_extents).as_const().map(|b| Interval::new(0, i128::from(b.max(1) - 1)));
    let frame = Frame {
        blocks,
        m_extents: of(&first.m),
        n_extents: of(&first.n),
        k_extents: of(&first.k),
        m,
        n,
        k,
        batch: batch.iter().map(|b| e.simplify(b)).collect(),
    };
    let grid = [
        Ix::ceil_div(frame.m.clone(), Ix::Const(blocks.bm as i64)),
        Ix::ceil_div(frame.n.clone(), Ix::Const(blocks.bn as i64)),
        graph.numel(&batch_extents),
    ];
    e.facts.blocks[0] = grid[0].as_const().map(|g| Interval::new(0, i128::from(g.max(1) - 1)));
    let end = |g: i64| before.as_const().map(|b| Interval::new(b.into(), i128::from(b + g.max(1) - 1)));
    e.facts.blocks[1] = grid[1].as_const().and_then(end);
    let grid = grid.map(|g| e.simplify(&g));
    let column = |j: &Ix| {
        let block = Ix::sub(Ix::Block(1), before.clone());
        Ix::add(Ix::mul(block, Ix::Const(blocks.bn as i64)), j.clone())
    };
    // The accumulators, zeroed.
    let mut accs = vec![];
    for p in products {
        let name = graph.values[p.dot].name.clone();
        let acc = e.local(&name, acc_dtype, vec![blocks.bm, blocks.bn], e.depth());
        let (i, j) = open_tile(e, &frame);
        e.emit_here(Stmt::Write { buf: acc, idx: vec![i, j], value: Opnd::Const { dtype: acc_dtype, bits: 0 } });
        e.close();
        e.close();
        accs.push(acc);
    }
    let steps = e.simplify(&Ix::ceil_div(frame.k.clone(), Ix::Const(blocks.bk as i64)));
    let kt = if steps.is_const(1) { Ix::Const(0) } else { Ix::Axis(e.open("kt", steps.clone(), LoopKind::Serial)) };
    for (p, acc) in products.iter().zip(&accs) {
        let Some((node, _)) = graph.def(p.dot) else { return Err(Refusal::new("no product")) };
        let zero = Ix::Const(0);
        let k_at = |kk: &Ix| Ix::add(Ix::mul(kt.clone(), Ix::Const(blocks.bk as i64)), kk.clone());
        let rank = shape.len();
        let at_a = |i: &Ix, kk: &Ix| {
            let (row, k) = (position(0, blocks.bm, i), k_at(kk));
            let mask = inside(&[(&row, &frame.m, blocks.bm), (&k, &frame.k, blocks.bk)]);
            (coordinates(p, &frame, &row, &zero, Some(&k), rank), mask)
        };
        let at_b = |j: &Ix, kk: &Ix| {
            let (col, k) = (column(j), k_at(kk));
            let mask = inside(&[(&col, &frame.n, blocks.bn), (&k, &frame.k, blocks.bk)]);
            (coordinates(p, &frame, &zero, &col, Some(&k), rank), mask)
        };
        let part = Part {
            a: node.args[p.a],
            b: node.args[1 - p.a],
            elem: graph.values[p.dot].elem,
            rows: blocks.bm,
            cols: blocks.bn,
            depth: blocks.bk,
            acc: *acc,
            at_a: &at_a,
            at_b: &at_b,
            left: None,
        };
        contract(e, &part)?;
    }
    if !steps.is_const(1) {
        e.close();
    }
    // The epilogue.
    let origin = graph.def(root).map_or(crate::graph::OriginId(0), |(n, _)| n.origin);
    let (i, j) = open_tile(e, &frame);
    let (row, col) = (position(0, blocks.bm, &i), column(&j));
    e.mask = inside(&[(&row, &frame.m, blocks.bm), (&col, &frame.n, blocks.bn)]);
    for (p, acc) in products.iter().zip(&accs) {
        e.sources.insert(p.dot, Source::Local(*acc, vec![i.clone(), j.clone()]));
    }
    let dims = coordinates(first, &frame, &row, &col, None, shape.len());
    let coords: Vec<Ix> =
        places.iter().map(|p| p.subst_axes(&mut |a| dims.get(a.0 as usize).cloned())).map(|c| e.simplify(&c)).collect();
    let value = e.demand(root, &coords)?;
    e.store(out, root, &coords, value, origin);
    e.mask = Mask::default();
    e.close();
    e.close();
    Ok(grid)
}

fn open_tile(e: &mut Emitter<'_>, frame: &Frame) -> (Ix, Ix) {
    let i = e.open("i", Ix::Const(frame.blocks.bm as i64), LoopKind::Free);
    let j = e.open("j", Ix::Const(frame.blocks.bn as i64), LoopKind::Free);
    (Ix::Axis(i), Ix::Axis(j))
}

pub(super) fn position(block: u8, size: u64, within: &Ix) -> Ix {
    Ix::add(Ix::mul(Ix::Block(block), Ix::Const(size as i64)), within.clone())
}

/// The conditions that positions lie inside; none where the blocks divide the extent.
pub(super) fn inside(positions: &[(&Ix, &Ix, u64)]) -> Mask {
    let open = positions.iter().filter(|(_, n, by)| n.as_const().is_none_or(|n| n % *by as i64 != 0));
    Mask { conds: open.map(|(p, n, _)| Cond::new((*p).clone(), Cmp::Lt, (*n).clone())).collect(), vals: vec![] }
}

/// The coordinates of an operand (or, without `k`, of the product) at a position.
fn coordinates(p: &Product, frame: &Frame, row: &Ix, col: &Ix, k: Option<&Ix>, rank: usize) -> Vec<Ix> {
    let mut out = vec![Ix::Const(0); rank];
    let mut put = |axes: &[usize], places: Vec<Ix>| {
        for (d, ix) in axes.iter().zip(places) {
            if let Some(slot) = out.get_mut(*d) {
                *slot = ix;
            }
        }
    };
    put(&p.batch, frame.batch.clone());
    put(&p.m, split(row, &frame.m_extents));
    put(&p.n, split(col, &frame.n_extents));
    if let Some(k) = k {
        put(&p.k, split(k, &frame.k_extents));
    }
    out
}

/// Whether an operand's element is one load, perhaps converted.
fn is_load(e: &Emitter<'_>, arg: Arg) -> bool {
    let Arg::Value(v) = arg else { return false };
    if e.sources.contains_key(&v) {
        return true;
    }
    match e.graph.def(v) {
        Some((node, _)) => match &node.op {
            Op::IndexMap(s) => {
                s.len() == 1 && s[0].when.is_always() && node.args.first().is_some_and(|a| is_load(e, *a))
            }
            _ => false,
        },
        None => false,
    }
}

/// Whether it is one load where a condition holds and zero elsewhere: a padded window.
fn is_padded_load(e: &Emitter<'_>, arg: Arg) -> bool {
    let Arg::Value(v) = arg else { return false };
    let Some((node, _)) = e.graph.def(v).filter(|_| !e.sources.contains_key(&v)) else { return false };
    match &node.op {
        Op::IndexMap(s) if s.len() == 1 && s[0].when.is_always() => {
            node.args.first().is_some_and(|a| is_padded_load(e, *a))
        }
        Op::IndexMap(s) => match (&s[..], &node.args[..]) {
            ([_, pad], args) if pad.coords.is_empty() => {
                matches!(args.get(pad.arg as usize), Some(Arg::Scalar { bits: 0, .. }))
                    && args.get(s[0].arg as usize).is_some_and(|a| is_load(e, *a) || is_padded_load(e, *a))
            }
            _ => false,
        },
        _ => false,
    }
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
    let roles = Contraction { m: i_axis, n: j_axis, k: k_axis, a: a_val, b: b_val, acc };
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

/// The one load of an operand, through maps and the condition of a padded window.
fn load_of(e: &mut Emitter<'_>, arg: Arg, coords: &[Ix]) -> Result<Opnd> {
    let Arg::Value(v) = arg else { return Err(Refusal::new("an operand of a product is a scalar")) };
    if e.sources.contains_key(&v) {
        return e.demand(v, coords);
    }
    let graph = e.graph;
    let Some((node, _)) = graph.def(v) else { return Err(Refusal::new("an operand is missing")) };
    let Op::IndexMap(sources) = &node.op else { return e.demand(v, coords) };
    let Some(s) = sources.first() else { return Err(Refusal::new("a map of nothing")) };
    let place = |ix: &Ix| ix.subst_axes(&mut |a| coords.get(a.0 as usize).cloned());
    let conds = s.when.conds.iter().map(|c| Cond::new(place(&c.lhs), c.cmp, place(&c.rhs))).collect();
    e.mask = e.mask.and(&Mask { conds, vals: vec![] });
    let read: Vec<Ix> = s.coords.iter().map(&place).collect();
    let arg = node.args.get(s.arg as usize).copied().unwrap_or(Arg::Absent);
    load_of(e, arg, &read)
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
