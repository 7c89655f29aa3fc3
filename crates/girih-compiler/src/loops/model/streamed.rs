//! Kernels of streamed products: attention in one pass.
//!
//! ```text
//! local acc: f32[64, 64] = 0, m: f32[64] = -inf, l: f32[64] = 0          a block of rows
//! for kt: serial                                                         blocks of the summed axis
//!   s[i, j] = scores of the block, from a contraction of their own
//!   for i: shrink = exp(m[i] - max(m[i], max over j of s[i, j])) ...     the algebra of stream.rs
//!   acc[i, n] = acc[i, n] * shrink + sum over j of exp(s[i, j] - m[i]) * v[j, n]
//! for i: for n: store out[..] = epilogue(acc[i, n] / l[i])
//! ```

use super::blocked::{Part, contract, inside, position};
use super::emit::{Emitter, Result, Source};
use super::roles::split;
use super::stream::Stream;
use crate::base::target::Target;
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, ValueId};
use crate::index::{Cmp, Cond, Interval, Ix, Mask, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

const NEAREST: Rounding = Rounding::NearestEven;

/// Rows of a block, and how much of the summed axis it takes at once.
fn sizes(m: &Ix, keys: &Ix, target: &Target) -> (u64, u64) {
    let rows = match m.as_const() {
        Some(m) => (m.max(1) as u64).next_multiple_of(8).min(64),
        None => 32,
    };
    // The scores and the keys' block stay in the second cache with room to spare.
    let most = if target.l2_bytes >= 1 << 20 { 128 } else { 64 };
    let keys = match keys.as_const() {
        Some(k) => (k.max(1) as u64).next_multiple_of(16).min(most),
        None => most,
    };
    (rows, keys)
}

pub(super) fn emit(
    e: &mut Emitter<'_>,
    root: ValueId,
    out: ValId,
    s: &Stream,
    places: &[Ix],
    target: &Target,
) -> Result<[Ix; 3]> {
    let graph = e.graph;
    let refuse = || Refusal::new("no product");
    let p = &s.outer;
    let (node, _) = graph.def(p.dot).ok_or_else(refuse)?;
    let Some((inner, inner_at)) = &s.inner else { return Err(refuse()) };
    let (inner_node, _) = graph.def(inner.dot).ok_or_else(refuse)?;
    let Some(Arg::Value(x)) = node.args.first().copied() else { return Err(refuse()) };
    let shape = graph.values[x].shape.clone();
    let Some(Arg::Value(y)) = inner_node.args.first().copied() else { return Err(refuse()) };
    let inner_shape = graph.values[y].shape.clone();
    let of = |axes: &[usize], shape: &[Ix]| axes.iter().filter_map(|d| shape.get(*d)).cloned().collect::<Vec<Ix>>();
    let elem = graph.values[p.dot].elem;
    let dtype = elem.dtype;
    let (m, keys) = (p.extent(graph, &p.m), p.extent(graph, &p.k));
    let width = p.extent(graph, &p.n).as_const().ok_or_else(refuse)? as u64;
    let depth = inner.extent(graph, &inner.k).as_const().ok_or_else(refuse)? as u64;
    let (bm, bk) = sizes(&m, &keys, target);

    // Positions, and coordinates of the outer product's operands.
    let batch_extents = of(&p.batch, &shape);
    let batches = graph.numel(&batch_extents);
    e.facts.blocks[2] = batches.as_const().map(|b| Interval::new(0, i128::from(b.max(1) - 1)));
    let blocks = e.simplify(&Ix::ceil_div(m.clone(), Ix::Const(bm as i64)));
    e.facts.blocks[0] = blocks.as_const().map(|b| Interval::new(0, i128::from(b.max(1) - 1)));
    let batch: Vec<Ix> = split(&Ix::Block(2), &batch_extents).iter().map(|b| e.simplify(b)).collect();
    let (m_extents, n_extents) = (of(&p.m, &shape), of(&p.n, &shape));
    let rank = shape.len();
    let coordinates = |row: &Ix, col: &Ix, key: &Ix| {
        let mut at = vec![Ix::Const(0); rank];
        let pairs = p.batch.iter().copied().zip(batch.iter().cloned());
        let pairs = pairs.chain(p.m.iter().copied().zip(split(row, &m_extents)));
        let pairs = pairs.chain(p.n.iter().copied().zip(split(col, &n_extents)));
        for (d, ix) in pairs.chain(p.k.iter().copied().zip([key.clone()])) {
            if let Some(slot) = at.get_mut(d) {
                *slot = ix;
            }
        }
        at
    };
    // Those of the inner product's operands: its own coordinates, and the position along its sum.
    let inner_k = of(&inner.k, &inner_shape);
    let inner_coordinates = |row: &Ix, key: &Ix, k: &Ix| {
        let outer = coordinates(row, &Ix::Const(0), key);
        let mut at: Vec<Ix> =
            inner_at.iter().map(|c| c.subst_axes(&mut |a| outer.get(a.0 as usize).cloned())).collect();
        for (d, ix) in inner.k.iter().zip(split(k, &inner_k)) {
            if let Some(slot) = at.get_mut(*d) {
                *slot = ix;
            }
        }
        at
    };
    // The operand of the inner product that belongs to the rows; its roles were bound without knowing that.
    let of_rows = |axes: &[usize]| {
        axes.iter().any(|d| inner_at.get(*d).is_some_and(|c| c.axes().iter().any(|a| p.m.contains(&(a.0 as usize)))))
    };
    let rows_first = if of_rows(&inner.m) { inner.a } else { 1 - inner.a };

    // State of the rows.
    let rows = Ix::Const(bm as i64);
    let acc = e.local(&graph.values[p.dot].name, dtype, vec![bm, width], 0);
    let constant = |x: f64| Opnd::Const { dtype, bits: crate::num::convert::from_f64(dtype, x, NEAREST) };
    let i = Ix::Axis(e.open("i", rows.clone(), LoopKind::Free));
    let n = Ix::Axis(e.open("n", Ix::Const(width as i64), LoopKind::Free));
    e.emit_here(Stmt::Write { buf: acc, idx: vec![i, n], value: constant(0.0) });
    e.close();
    e.close();
    let state = match s.max {
        None => None,
        Some(_) => {
            let greatest = e.local("m", dtype, vec![bm], 0);
            let total = e.local("l", dtype, vec![bm], 0);
            let i = Ix::Axis(e.open("i", rows.clone(), LoopKind::Free));
            e.emit_here(Stmt::Write { buf: greatest, idx: vec![i.clone()], value: constant(f64::NEG_INFINITY) });
            e.emit_here(Stmt::Write { buf: total, idx: vec![i], value: constant(0.0) });
            e.close();
            Some((greatest, total))
        }
    };

    let steps = e.simplify(&Ix::ceil_div(keys.clone(), Ix::Const(bk as i64)));
    let kt = if steps.is_const(1) { Ix::Const(0) } else { Ix::Axis(e.open("kt", steps.clone(), LoopKind::Serial)) };
    let key_at = |j: &Ix| Ix::add(Ix::mul(kt.clone(), Ix::Const(bk as i64)), j.clone());
    let row_at = |i: &Ix| position(0, bm, i);
    let row_mask = |i: &Ix| inside(&[(&row_at(i), &m, bm)]);
    let key_mask = |j: &Ix| inside(&[(&key_at(j), &keys, bk)]);

    // The scores of the block.
    let scores = e.local("s", dtype, vec![bm, bk], e.depth());
    let i = Ix::Axis(e.open("i", rows.clone(), LoopKind::Free));
    let j = Ix::Axis(e.open("j", Ix::Const(bk as i64), LoopKind::Free));
    e.emit_here(Stmt::Write { buf: scores, idx: vec![i, j], value: constant(0.0) });
    e.close();
    e.close();
    let zero = Ix::Const(0);
    let at_rows = |i: &Ix, k: &Ix| (inner_coordinates(&row_at(i), &zero, k), row_mask(i));
    let at_keys = |j: &Ix, k: &Ix| (inner_coordinates(&zero, &key_at(j), k), key_mask(j));
    contract(
        e,
        &Part {
            a: inner_node.args[rows_first],
            b: inner_node.args[1 - rows_first],
            elem,
            rows: bm,
            cols: bk,
            depth,
            acc: scores,
            at_a: &at_rows,
            at_b: &at_keys,
            left: None,
        },
    )?;
    // What single elements make of them, and, with a maximum, the terms of the sum.
    let i = Ix::Axis(e.open("i", rows.clone(), LoopKind::Free));
    let at_i = e.depth();
    let best = match state {
        Some(_) => {
            let best = e.local("best", dtype, vec![], at_i);
            e.emit(at_i, Stmt::Write { buf: best, idx: vec![], value: constant(f64::NEG_INFINITY) });
            Some(best)
        }
        None => None,
    };
    let kind = if best.is_some() { LoopKind::Reduce } else { LoopKind::Free };
    let j = Ix::Axis(e.open("j", Ix::Const(bk as i64), kind));
    let here = e.depth();
    let edge = e.facts.simplify_mask(&key_mask(&j)).unwrap_or_default();
    e.mask = row_mask(&i).and(&key_mask(&j));
    let outer = coordinates(&row_at(&i), &zero, &key_at(&j));
    let at: Vec<Ix> = s.at.iter().map(|c| c.subst_axes(&mut |a| outer.get(a.0 as usize).cloned())).collect();
    e.sources.insert(inner.dot, Source::Local(scores, vec![i.clone(), j.clone()]));
    let score = e.demand(s.scores, &at);
    e.mask = Mask::default();
    e.sources.remove(&inner.dot);
    let mut score = score?;
    if !edge.is_always() {
        // Positions past the end are no terms of the sum: their exponential is 0.
        let on = e.define("in", DType::I1, here, |dst| Stmt::Test { dst, mask: edge });
        let none = constant(if best.is_some() { f64::NEG_INFINITY } else { 0.0 });
        score = e.define("s", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args: vec![on, score, none] });
    }
    e.emit_here(Stmt::Write { buf: scores, idx: vec![i.clone(), j.clone()], value: score });
    let of = |e: &mut Emitter<'_>, depth: usize, op: ScalarOp, args: Vec<Opnd>| {
        e.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args })
    };
    let read = |e: &mut Emitter<'_>, depth: usize, buf: BufId, idx: Vec<Ix>| {
        e.define("v", dtype, depth, |dst| Stmt::Read { dst, buf, idx })
    };
    let max = ScalarOp::MaxF { nan: true, ftz: false };
    let add = ScalarOp::AddF { rounding: NEAREST, ftz: false };
    let sub = ScalarOp::SubF { rounding: NEAREST, ftz: false };
    let mul = ScalarOp::MulF { rounding: NEAREST, ftz: false };
    if let (Some(best), Some((greatest, total))) = (best, state) {
        let old = read(e, here, best, vec![]);
        let new = of(e, here, max, vec![score, old]);
        e.emit_here(Stmt::Write { buf: best, idx: vec![], value: new });
        let identity = crate::num::convert::from_f64(dtype, f64::NEG_INFINITY, NEAREST);
        e.close_with(|f| {
            f.combine = Some(Combine { accs: vec![best], op: CombineOp::Scalar { op: max, identity }, ways: 1 });
        });
        let old = read(e, at_i, greatest, vec![i.clone()]);
        let met = read(e, at_i, best, vec![]);
        let now = of(e, at_i, max, vec![old, met]);
        e.emit(at_i, Stmt::Write { buf: greatest, idx: vec![i.clone()], value: now });
        // A row without any score yet: distances from -inf would be NaN, where the terms are 0.
        let none = constant(f64::NEG_INFINITY);
        let equal = ScalarOp::CmpF { pred: Predicate::Equal, ordered: true };
        let empty = e.define("empty", DType::I1, at_i, |dst| Stmt::Let { dst, op: equal, args: vec![now, none] });
        let from = of(e, at_i, ScalarOp::Select, vec![empty, constant(0.0), now]);
        let behind = of(e, at_i, sub, vec![old, from]);
        let shrink = of(e, at_i, ScalarOp::Exp, vec![behind]);
        let sum = e.local("sum", dtype, vec![], at_i);
        e.emit(at_i, Stmt::Write { buf: sum, idx: vec![], value: constant(0.0) });
        let j = Ix::Axis(e.open("j", Ix::Const(bk as i64), LoopKind::Reduce));
        let here = e.depth();
        let score = read(e, here, scores, vec![i.clone(), j.clone()]);
        let d = of(e, here, sub, vec![score, from]);
        let term = of(e, here, ScalarOp::Exp, vec![d]);
        e.emit_here(Stmt::Write { buf: scores, idx: vec![i.clone(), j], value: term });
        let old = read(e, here, sum, vec![]);
        let new = of(e, here, add, vec![term, old]);
        e.emit_here(Stmt::Write { buf: sum, idx: vec![], value: new });
        let identity = crate::num::convert::from_f64(dtype, 0.0, NEAREST);
        e.close_with(|f| {
            f.combine = Some(Combine { accs: vec![sum], op: CombineOp::Scalar { op: add, identity }, ways: 1 });
        });
        let before = read(e, at_i, total, vec![i.clone()]);
        let kept = of(e, at_i, mul, vec![before, shrink]);
        let more = read(e, at_i, sum, vec![]);
        let after = of(e, at_i, add, vec![kept, more]);
        e.emit(at_i, Stmt::Write { buf: total, idx: vec![i.clone()], value: after });
        let n = Ix::Axis(e.open("n", Ix::Const(width as i64), LoopKind::Free));
        let here = e.depth();
        let old = read(e, here, acc, vec![i.clone(), n.clone()]);
        let new = of(e, here, mul, vec![old, shrink]);
        e.emit_here(Stmt::Write { buf: acc, idx: vec![i, n], value: new });
    }
    e.close();
    e.close();
    let at_b = |n: &Ix, j: &Ix| (coordinates(&zero, n, &key_at(j)), key_mask(j));
    let at_a = |_: &Ix, _: &Ix| (vec![], Mask::default());
    let (a, b) = (node.args[p.a], node.args[1 - p.a]);
    let (rows_of, cols) = (bm, width);
    contract(
        e,
        &Part { a, b, elem, rows: rows_of, cols, depth: bk, acc, at_a: &at_a, at_b: &at_b, left: Some(scores) },
    )?;
    if !steps.is_const(1) {
        e.close();
    }

    // The epilogue.
    let i = Ix::Axis(e.open("i", rows, LoopKind::Free));
    let at_i = e.depth();
    let n = Ix::Axis(e.open("n", Ix::Const(width as i64), LoopKind::Free));
    let here = e.depth();
    if let Some((_, total)) = state.filter(|_| s.divided) {
        let l = read(e, at_i, total, vec![i.clone()]);
        let x = read(e, here, acc, vec![i.clone(), n.clone()]);
        let y = of(e, here, ScalarOp::DivF { rounding: NEAREST, ftz: false }, vec![x, l]);
        e.emit_here(Stmt::Write { buf: acc, idx: vec![i.clone(), n.clone()], value: y });
    }
    let row = row_at(&i);
    let m_inside: Vec<Cond> = match m.as_const() {
        Some(m) if m % bm as i64 == 0 => vec![],
        _ => vec![Cond::new(row.clone(), Cmp::Lt, m.clone())],
    };
    e.mask = Mask { conds: m_inside, vals: vec![] };
    e.sources.insert(p.dot, Source::Local(acc, vec![i.clone(), n.clone()]));
    let dims = coordinates(&row, &n, &zero);
    let coords: Vec<Ix> =
        places.iter().map(|c| c.subst_axes(&mut |a| dims.get(a.0 as usize).cloned())).map(|c| e.simplify(&c)).collect();
    let value = e.demand(root, &coords)?;
    let origin = graph.def(root).map_or(crate::graph::OriginId(0), |(n, _)| n.origin);
    e.store(out, root, &coords, value, origin);
    e.mask = Mask::default();
    e.close();
    e.close();
    Ok([blocks, Ix::Const(1), e.simplify(&batches)])
}
