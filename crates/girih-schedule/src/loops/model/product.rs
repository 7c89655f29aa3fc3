//! Kernels around matrix products: one nest over rows and columns, the whole sum, then what follows.
//!
//! ```text
//! for i in 0..512: free                                          batch axes, rows, columns
//!   for j in 0..3584: free
//!     local acc = 0
//!     for k in 0..3584: reduce contraction m=i n=j k=k            acc <- fma(x[i, k], w[j, k], acc)
//!     store out[..] = epilogue(acc)
//! ```
//!
//! Several products of one shape share the loops; the epilogue reads all their accumulators. Tile IR decides how they
//! run.

use super::builder::{NestBuilder, Result, Source};
use super::roles::Product;
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, Op, ValueId};
use crate::index::{Cond, Ix, Mask};
use crate::loops::ir::*;
use crate::num::ScalarOp;
use crate::num::op::Rounding;

/// Emits a nest for `root`, which needs `products` (of one shape and roles) in its epilogue. `places` are the root's
/// coordinates over the coordinates of the products.
pub(super) fn write(
    e: &mut NestBuilder<'_>,
    root: ValueId,
    out: ValId,
    products: &[Product],
    places: &[Ix],
) -> Result<()> {
    let graph = e.graph;
    let Some(first) = products.first() else { return Err(Refusal::new("no product")) };
    let Some((node, _)) = graph.def(first.dot) else { return Err(Refusal::new("no product")) };
    let Some(Arg::Value(x)) = node.args.first().copied() else { return Err(Refusal::new("no product")) };
    let shape = graph.values[x].shape.clone();
    let depth = e.depth();
    let mut at = vec![Ix::Const(0); shape.len()];
    let [m, n] = e.made_for(first.dot, |e| {
        e.open_axes("b", &first.batch, &shape, LoopKind::Free, &mut at);
        [("i", &first.m), ("j", &first.n)].map(|(name, axes)| e.open_axes(name, axes, &shape, LoopKind::Free, &mut at))
    });
    for p in products {
        let acc = e.made_for(p.dot, |e| contract(e, p, &m, &n, &shape, &at))?;
        e.sources.insert(p.dot, Source::Local(acc, vec![]));
    }
    let origin = graph.def(root).map_or(crate::graph::OriginId(0), |(n, _)| n.origin);
    let coords: Vec<Ix> = places.iter().map(|p| p.at_coords(&at)).map(|c| e.simplify(&c)).collect();
    let value = e.demand(root, &coords)?;
    e.store(out, root, &coords, value, origin);
    e.close_to(depth);
    Ok(())
}

/// The sum of one element of a product, in a new accumulator. `at` are the coordinates of the product's element.
pub(super) fn contract(
    e: &mut NestBuilder<'_>,
    p: &Product,
    m: &[AxisId],
    n: &[AxisId],
    shape: &[Ix],
    at: &[Ix],
) -> Result<BufId> {
    let graph = e.graph;
    let Some((node, _)) = graph.def(p.dot) else { return Err(Refusal::new("no product")) };
    let elem = graph.values[p.dot].elem;
    let dtype = elem.dtype;
    let outer = e.depth();
    let acc = e.local(&graph.values[p.dot].name, dtype, vec![], outer);
    e.push_here(Stmt::Write { buf: acc, idx: vec![], value: Opnd::Const { dtype, bits: 0 } });
    let mut read = at.to_vec();
    let k = e.open_axes("k", &p.k, shape, LoopKind::Reduce, &mut read);
    let here = e.depth();
    let operand = |e: &mut NestBuilder<'_>, arg: Arg| {
        let from = match arg {
            Arg::Value(v) => graph.values[v].elem,
            Arg::Scalar { elem, .. } => elem,
            Arg::Absent => elem,
        };
        let x = if is_load(e, arg) || is_padded_load(e, arg) {
            let x = load_of(e, arg, &read);
            e.mask = Mask::default();
            x?
        } else {
            e.operand(arg, &read)?
        };
        Ok((x, e.widen(x, from, elem)))
    };
    let (a, x) = operand(e, node.args[p.a])?;
    let (b, y) = operand(e, node.args[1 - p.a])?;
    let (Opnd::Val(a), Opnd::Val(b)) = (a, b) else {
        return Err(Refusal::new("an operand of a product is the same everywhere"));
    };
    let old = e.define("acc", dtype, here, |dst| Stmt::Read { dst, buf: acc, idx: vec![] });
    let new = if elem.is_float() {
        let op = ScalarOp::Fma { rounding: Rounding::NearestEven, ftz: false };
        e.define("v", dtype, here, |dst| Stmt::Let { dst, op, args: vec![x, y, old] })
    } else {
        let product = e.define("v", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::MulI, args: vec![x, y] });
        e.define("v", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::AddI, args: vec![product, old] })
    };
    e.push_here(Stmt::Write { buf: acc, idx: vec![], value: new });
    // An operand that turns out not to change along the sum stands before it, which leaves a plain sum.
    let inside = e.depth_of_val(a) > outer && e.depth_of_val(b) > outer;
    let roles = inside.then(|| Contraction { m: m.to_vec(), n: n.to_vec(), k, a, b, acc });
    e.close_with(|f| f.contraction = roles);
    e.close_to(outer);
    Ok(acc)
}

/// Returns true if an operand's element is one load, perhaps converted.
pub(super) fn is_load(e: &NestBuilder<'_>, arg: Arg) -> bool {
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

/// Returns true if it is one load where a condition holds and zero elsewhere: a padded window.
pub(super) fn is_padded_load(e: &NestBuilder<'_>, arg: Arg) -> bool {
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

/// The one load of an operand, through maps and the condition of a padded window.
pub(super) fn load_of(e: &mut NestBuilder<'_>, arg: Arg, coords: &[Ix]) -> Result<Opnd> {
    let Arg::Value(v) = arg else { return Err(Refusal::new("an operand of a product is a scalar")) };
    if e.sources.contains_key(&v) {
        return e.demand(v, coords);
    }
    let graph = e.graph;
    let Some((node, _)) = graph.def(v) else { return Err(Refusal::new("an operand is missing")) };
    let Op::IndexMap(sources) = &node.op else { return e.demand(v, coords) };
    let Some(s) = sources.first() else { return Err(Refusal::new("a map of nothing")) };
    let place = |ix: &Ix| ix.at_coords(coords);
    let conds = s.when.conds.iter().map(|c| Cond::new(place(&c.lhs), c.cmp, place(&c.rhs))).collect();
    e.mask = e.mask.and(&Mask { conds, vals: vec![] });
    let read: Vec<Ix> = s.coords.iter().map(&place).collect();
    let arg = node.args.get(s.arg as usize).copied().unwrap_or(Arg::Absent);
    load_of(e, arg, &read)
}
