//! Kernels of streamed products: attention in one pass.
//!
//! ```text
//! for i in 0..128: free                                          batch axes, rows
//!   local acc: f32[64] = 0, m = -inf, l = 0
//!   for key in 0..128: serial stream score=s value=v greatest=m total=l acc=acc
//!     s = scale * (sum over k of q[i, k] * k[key, k])            a contraction of its own, and what single scores become
//!     shrink = exp(m - max(m, s)) ...                            the algebra of online_softmax.rs
//!     for n: acc[n] = acc[n]*shrink + exp(s - m)*v[key, n]
//!   for n: store out[..] = epilogue(acc[n] / l)
//! ```
//!
//! Tile IR decides how many rows and keys are taken at once.

use super::builder::{NestBuilder, Result, Source};
use super::online_softmax::Stream as Found;
use super::product::contract;
use super::roles::Product;
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, ValueId};
use crate::index::{Ix, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

const NEAREST: Rounding = Rounding::NearestEven;

pub(super) fn write(e: &mut NestBuilder<'_>, root: ValueId, out: ValId, s: &Found, places: &[Ix]) -> Result<()> {
    let graph = e.graph;
    let refuse = || Refusal::new("no product");
    let p = &s.outer;
    let (node, _) = graph.def(p.dot).ok_or_else(refuse)?;
    let Some((inner, inner_at)) = &s.inner else { return Err(refuse()) };
    let (inner_node, _) = graph.def(inner.dot).ok_or_else(refuse)?;
    let (Some(Arg::Value(x)), Some(Arg::Value(y))) = (node.args.first().copied(), inner_node.args.first().copied())
    else {
        return Err(refuse());
    };
    let (shape, inner_shape) = (graph.values[x].shape.clone(), graph.values[y].shape.clone());
    let elem = graph.values[p.dot].elem;
    let dtype = elem.dtype;
    let keys = p.extent(graph, &p.k);
    let width = p.extent(graph, &p.n).as_const().ok_or_else(refuse)? as u64;
    let constant = |x: f64| Opnd::Const { dtype, bits: crate::num::convert::from_f64(dtype, x, NEAREST) };

    // The rows, and the positions of the elements of the outer product's operands.
    let outside = e.depth();
    let mut at = vec![Ix::Const(0); shape.len()];
    e.open_axes("b", &p.batch, &shape, LoopKind::Free, &mut at);
    let mut m = e.open_axes("i", &p.m, &shape, LoopKind::Free, &mut at);
    if m.is_empty() {
        m.push(e.open("i", Ix::Const(1), LoopKind::Free));
    }
    let n_extents: Vec<Ix> = p.n.iter().filter_map(|d| shape.get(*d)).cloned().collect();
    let place = |at: &[Ix], key: Option<&Ix>, n: Option<&Ix>| {
        let mut at = at.to_vec();
        let n = n.map_or(vec![], |n| n.unravel(&n_extents));
        for (d, ix) in p.n.iter().copied().zip(n).chain(p.k.iter().copied().zip(key.cloned())) {
            if let Some(slot) = at.get_mut(d) {
                *slot = ix;
            }
        }
        at
    };
    let open_n = |e: &mut NestBuilder<'_>| Ix::Axis(e.open("n", Ix::Const(width as i64), LoopKind::Free));

    // The state of a row.
    let rows = e.depth();
    let acc = e.local(&graph.values[p.dot].name, dtype, vec![width], rows);
    let n = open_n(e);
    e.push_here(Stmt::Write { buf: acc, idx: vec![n], value: constant(0.0) });
    e.close();
    let greatest = e.local("m", dtype, vec![], rows);
    e.push_here(Stmt::Write { buf: greatest, idx: vec![], value: constant(f64::NEG_INFINITY) });
    let total = e.local("l", dtype, vec![], rows);
    e.push_here(Stmt::Write { buf: total, idx: vec![], value: constant(0.0) });

    // One key: its score, from the inner product, whose roles were bound without knowing which side the rows are.
    let key_axis = e.open("key", keys, LoopKind::Serial);
    let (key, here) = (Ix::Axis(key_axis), e.depth());
    let with_key = place(&at, Some(&key), None);
    let subst = |c: &Ix| c.at_coords(&with_key);
    let of_keys = |axes: &[usize]| {
        axes.iter().any(|d| inner_at.get(*d).is_some_and(|c| c.axes().iter().any(|a| p.k.contains(&(a.0 as usize)))))
    };
    let inner = match of_keys(&inner.m) {
        false => inner.clone(),
        true => Product { a: 1 - inner.a, m: inner.n.clone(), n: inner.m.clone(), ..inner.clone() },
    };
    let inner_coords: Vec<Ix> = inner_at.iter().map(subst).collect();
    let sum = e.made_for(inner.dot, |e| contract(e, &inner, &m, &[key_axis], &inner_shape, &inner_coords))?;
    e.sources.insert(inner.dot, Source::Local(sum, vec![]));
    let score_at: Vec<Ix> = s.at.iter().map(subst).collect();
    let score = e.demand(s.scores, &score_at);
    e.sources.remove(&inner.dot);
    let Opnd::Val(score) = score? else { return Err(Refusal::new("its scores are the same everywhere")) };

    // The recurrence. For a row without any score yet, distances from -inf would be NaN where the terms are 0.
    let (max, add) = (ScalarOp::MaxF { nan: true, ftz: false }, ScalarOp::AddF { rounding: NEAREST, ftz: false });
    let (sub, mul) =
        (ScalarOp::SubF { rounding: NEAREST, ftz: false }, ScalarOp::MulF { rounding: NEAREST, ftz: false });
    let of = |e: &mut NestBuilder<'_>, op: ScalarOp, args: Vec<Opnd>| {
        e.define("v", dtype, here, |dst| Stmt::Let { dst, op, args })
    };
    let before = e.define("v", dtype, here, |dst| Stmt::Read { dst, buf: greatest, idx: vec![] });
    let now = of(e, max, vec![before, Opnd::Val(score)]);
    let equal = ScalarOp::CmpF { pred: Predicate::Equal, ordered: true };
    let none = constant(f64::NEG_INFINITY);
    let empty = e.define("empty", DType::I1, here, |dst| Stmt::Let { dst, op: equal, args: vec![now, none] });
    let from = of(e, ScalarOp::Select, vec![empty, constant(0.0), now]);
    let behind = of(e, sub, vec![before, from]);
    let shrink = of(e, ScalarOp::Exp, vec![behind]);
    let distance = of(e, sub, vec![Opnd::Val(score), from]);
    let term = of(e, ScalarOp::Exp, vec![distance]);
    e.push_here(Stmt::Write { buf: greatest, idx: vec![], value: now });
    let old = e.define("v", dtype, here, |dst| Stmt::Read { dst, buf: total, idx: vec![] });
    let kept = of(e, mul, vec![old, shrink]);
    let after = of(e, add, vec![kept, term]);
    e.push_here(Stmt::Write { buf: total, idx: vec![], value: after });
    let weight = match s.rounded {
        Some(to) => {
            let op = ScalarOp::FToF { to: to.dtype, rounding: NEAREST };
            let narrow = e.define("weight", to.dtype, here, |dst| Stmt::Let { dst, op, args: vec![term] });
            e.widen(narrow, to, elem)
        }
        None => term,
    };
    let n = open_n(e);
    let inside = e.depth();
    let operand = node.args.get(1 - p.a).copied().unwrap_or(Arg::Absent);
    let from_elem = match operand {
        Arg::Value(v) => graph.values[v].elem,
        _ => elem,
    };
    let x = e.operand(operand, &place(&at, Some(&key), Some(&n)))?;
    let Opnd::Val(value) = e.widen(x, from_elem, elem) else {
        return Err(Refusal::new("an operand of a product is the same everywhere"));
    };
    let old = e.define("v", dtype, inside, |dst| Stmt::Read { dst, buf: acc, idx: vec![n.clone()] });
    let kept = e.define("v", dtype, inside, |dst| Stmt::Let { dst, op: mul, args: vec![old, shrink] });
    let fma = ScalarOp::Fma { rounding: NEAREST, ftz: false };
    let args = vec![weight, Opnd::Val(value), kept];
    let new = e.define("v", dtype, inside, |dst| Stmt::Let { dst, op: fma, args });
    e.push_here(Stmt::Write { buf: acc, idx: vec![n], value: new });
    e.close();
    e.close_with(|f| f.stream = Some(Stream { score, value, greatest, total, acc }));

    // After the last key.
    let sum = s.divided.then(|| e.define("v", dtype, rows, |dst| Stmt::Read { dst, buf: total, idx: vec![] }));
    let n = open_n(e);
    let inside = e.depth();
    if let Some(sum) = sum {
        let x = e.define("v", dtype, inside, |dst| Stmt::Read { dst, buf: acc, idx: vec![n.clone()] });
        let div = ScalarOp::DivF { rounding: NEAREST, ftz: false };
        let y = e.define("v", dtype, inside, |dst| Stmt::Let { dst, op: div, args: vec![x, sum] });
        e.push_here(Stmt::Write { buf: acc, idx: vec![n.clone()], value: y });
    }
    e.sources.insert(p.dot, Source::Local(acc, vec![n.clone()]));
    let dims = place(&at, None, Some(&n));
    let coords: Vec<Ix> = places.iter().map(|c| c.at_coords(&dims)).map(|c| e.simplify(&c)).collect();
    let value = e.demand(root, &coords)?;
    let origin = graph.def(root).map_or(crate::graph::OriginId(0), |(n, _)| n.origin);
    e.store(out, root, &coords, value, origin);
    e.close_to(outside);
    Ok(())
}
