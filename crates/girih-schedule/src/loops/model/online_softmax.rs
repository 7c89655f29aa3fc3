//! Products whose left operand is normalised over the summed axis, as in attention, computed in one pass.
//!
//! The sum `out = sum over j of p[j] * v[j]` cannot start before `p` is known, and `p = exp(s[j] - m) / l` needs the
//! maximum `m` and the sum `l` of the whole row. The algebra that lets it run ahead: a term `t(j, m)` that depends on the
//! maximum only through a factor `exp(s[j] - m)` satisfies `t(j, m') = t(j, m) * exp(m - m')`, so what was summed
//! under an old maximum is corrected by one factor when a greater one is met; and a factor that does not depend on `j`,
//! such as `1 / l`, is applied once, at the end.
//!
//! In: the graph. Out: for each product that has this form, its parts ([`Stream`]). Nothing here looks for attention:
//! the form is read off the operand's factors.
//!
//! Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al., FlashAttention, 2022.

use std::collections::{BTreeMap, BTreeSet};

use super::fuse::LONGEST;
use super::roles::{self, Product};
use crate::graph::Elem;
use crate::graph::ir::{Arg, Graph, Node, Op, ReduceOp, ValueId};
use crate::index::Ix;
use crate::num::ScalarOp;

/// A product in the form above.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub outer: Product,
    /// The scores: the operand of the exponential.
    pub scores: ValueId,
    /// `scores` at these coordinates, over the axes of the outer product's operands.
    pub at: Vec<Ix>,
    /// True if the product is divided by the sum.
    pub divided: bool,
    /// The type that the weights are rounded to before they are multiplied. The weights of a stream are rounded before
    /// they are divided.
    pub rounded: Option<Elem>,
    /// The product that the scores are computed from, with its coordinates over the outer operands' axes.
    pub inner: Option<(Product, Vec<Ix>)>,
    /// Values that only this product needs, and that exist only in parts.
    pub inside: BTreeSet<ValueId>,
    /// The values that `inside` is computed from.
    pub leaves: BTreeSet<ValueId>,
}

/// The most values between attention's two products that are looked at, and maps of them that are visited again.
const MOST_VISITS: usize = 4096;

/// How many nodes read each value, outputs of the graph included.
fn readers(graph: &Graph) -> BTreeMap<ValueId, Vec<ValueId>> {
    let mut out: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
    for node in graph.nodes.values() {
        for v in node.values() {
            out.entry(v).or_default().extend(node.results.first());
        }
    }
    for o in &graph.outputs {
        // A reader that nothing contains.
        out.entry(o.value).or_default().push(ValueId(u32::MAX));
    }
    out
}

/// Every product of the graph that can be streamed, products of one row only if `one_row`; for products that look alike but cannot, `say`
/// gets the reason.
pub(super) fn find(graph: &Graph, one_row: bool, say: &mut dyn FnMut(ValueId, &str)) -> BTreeMap<ValueId, Stream> {
    let readers = readers(graph);
    let mut out = BTreeMap::new();
    for node in graph.nodes.values() {
        let Op::Reduce { op: ReduceOp::Dot, .. } = node.op else { continue };
        let Some(&dot) = node.results.first() else { continue };
        let outer = if one_row { roles::with_one_row(graph, dot) } else { roles::product(graph, dot) };
        let Some(outer) = outer else { continue };
        match stream(graph, outer, &readers) {
            Ok(Some(s)) => {
                out.insert(dot, s);
            }
            Ok(None) => {}
            Err(why) => say(dot, why),
        }
    }
    out
}

fn operands(node: &Node) -> Option<(ValueId, ValueId)> {
    match &node.args[..] {
        [Arg::Value(a), Arg::Value(b)] => Some((*a, *b)),
        _ => None,
    }
}

/// Follows maps with one source down to what they read, the coordinates going along.
pub(super) fn through_maps(
    graph: &Graph,
    mut v: ValueId,
    mut at: Vec<Ix>,
    passed: &mut Vec<ValueId>,
) -> (ValueId, Vec<Ix>) {
    while let Some((node, _)) = graph.def(v) {
        let Op::IndexMap(sources) = &node.op else { break };
        let ([s], [Arg::Value(x)]) = (&sources[..], &node.args[..]) else { break };
        if !s.when.is_always() {
            break;
        }
        let next: Vec<Ix> = s.coords.iter().map(|c| c.at_coords(&at)).collect();
        // Coordinates through maps that do not compose can double with each.
        if next.iter().map(Ix::size).sum::<usize>() > LONGEST {
            break;
        }
        passed.push(v);
        (at, v) = (next, *x);
    }
    (v, at)
}

fn mentions(at: &[Ix], axes: &[usize]) -> bool {
    at.iter().any(|c| c.axes().iter().any(|a| axes.contains(&(a.0 as usize))))
}

/// A row statistic: a reduction of the given kind over the summed axes, broadcast back.
fn statistic(
    graph: &Graph,
    v: ValueId,
    at: &[Ix],
    k: &[usize],
    kind: ReduceOp,
    passed: &mut Vec<ValueId>,
) -> Option<(ValueId, ValueId, Vec<Ix>)> {
    let (v, at) = through_maps(graph, v, at.to_vec(), passed);
    if mentions(&at, k) {
        return None;
    }
    let (node, _) = graph.def(v)?;
    let Op::Reduce { op, axes } = &node.op else { return None };
    let [Arg::Value(x)] = &node.args[..] else { return None };
    (*op == kind && axes.len() == 1).then(|| {
        // The operand's coordinates: the statistic's, and the summed axis where it was folded.
        let mut inner = at.clone();
        if let (Some(slot), [k]) = (inner.get_mut(axes[0] as usize), k) {
            *slot = crate::graph::ir::axis(*k);
        }
        (v, *x, inner)
    })
}

/// The dividend and the divisor of a quotient, with the divisor's coordinates: `e / l`, or `e * (1 / l)`.
fn quotient(graph: &Graph, v: ValueId, at: &[Ix], passed: &mut Vec<ValueId>) -> Option<(ValueId, ValueId, Vec<Ix>)> {
    let (node, _) = graph.def(v)?;
    let (e, l) = operands(node)?;
    match node.op {
        Op::Elementwise(ScalarOp::DivF { .. }) => Some((e, l, at.to_vec())),
        Op::Elementwise(ScalarOp::MulF { .. }) => {
            let (factor, at) = through_maps(graph, l, at.to_vec(), passed);
            let (node, _) = graph.def(factor)?;
            let [one @ Arg::Scalar { elem, .. }, Arg::Value(l)] = node.args[..] else { return None };
            let inverts =
                matches!(node.op, Op::Elementwise(ScalarOp::DivF { .. })) && one == crate::graph::ir::scalar(elem, 1.0);
            passed.push(factor);
            inverts.then_some((e, l, at))
        }
        _ => None,
    }
}

fn stream(
    graph: &Graph,
    outer: Product,
    readers: &BTreeMap<ValueId, Vec<ValueId>>,
) -> Result<Option<Stream>, &'static str> {
    let Some((node, _)) = graph.def(outer.dot) else { return Ok(None) };
    let Some((x, y)) = operands(node) else { return Ok(None) };
    let left = if outer.a == 0 { x } else { y };
    let [k] = outer.k[..] else { return Ok(None) };
    let rank = graph.values[left].shape.len();
    let identity: Vec<Ix> = (0..rank).map(crate::graph::ir::axis).collect();
    let mut inside = vec![];
    let (mut v, mut at) = through_maps(graph, left, identity, &mut inside);
    let elem = graph.values[outer.dot].elem;
    // The values of the narrow type.
    let mut narrow = vec![];
    let rounding = |v| graph.def(v).filter(|(n, _)| matches!(n.op, Op::Elementwise(ScalarOp::FToF { .. })));
    let rounded = match rounding(v).map(|(node, _)| &node.args[..]) {
        Some([Arg::Value(wide)]) if graph.values[*wide].elem == elem => {
            let to = graph.values[v].elem;
            inside.push(v);
            narrow = std::mem::take(&mut inside);
            (v, at) = through_maps(graph, *wide, at, &mut inside);
            Some(to)
        }
        _ => None,
    };
    // A division by the row's sum.
    let mut divided = false;
    let mut passed = vec![];
    if let Some((e, l, l_at)) = quotient(graph, v, &at, &mut passed)
        && let Some((total, of, of_at)) = statistic(graph, l, &l_at, &[k], ReduceOp::Sum, &mut passed)
    {
        let mut skipped = vec![];
        let (e_base, e_at) = through_maps(graph, e, at.clone(), &mut skipped);
        let (of_base, of_at) = through_maps(graph, of, of_at, &mut skipped);
        if e_base != of_base || e_at != of_at {
            return Err("its left operand is divided by the sum of something else");
        }
        inside.push(v);
        inside.extend(passed);
        inside.extend(skipped);
        inside.push(total);
        divided = true;
        (v, at) = (e_base, e_at);
    }
    // An exponential of the distance from the row's maximum.
    let mut max = None;
    if let Some((node, _)) = graph.def(v)
        && matches!(node.op, Op::Elementwise(ScalarOp::Exp))
        && let [Arg::Value(d)] = &node.args[..]
        && let Some((sub, _)) = graph.def(*d)
        && matches!(sub.op, Op::Elementwise(ScalarOp::SubF { .. }))
        && let Some((s, m)) = operands(sub)
    {
        let mut passed = vec![];
        if let Some((greatest, of, of_at)) = statistic(graph, m, &at, &[k], ReduceOp::Max, &mut passed) {
            let mut skipped = vec![];
            let (s_base, s_at) = through_maps(graph, s, at.clone(), &mut skipped);
            let (of_base, of_at) = through_maps(graph, of, of_at, &mut skipped);
            if s_base != of_base || s_at != of_at {
                return Err("the maximum is not of the values that the exponential is taken of");
            }
            inside.extend([v, *d]);
            inside.extend(passed);
            inside.extend(skipped);
            inside.push(greatest);
            max = Some(greatest);
            (v, at) = (s_base, s_at);
        }
    }
    if divided && max.is_none() {
        return Err("its left operand is normalised, but not by an exponential of the distance from the maximum");
    }
    // The computation of the scores: operations on single elements, down to a product of the same rows.
    let scores = v;
    let mut inner: Option<(Product, Vec<Ix>)> = None;
    let mut todo = vec![(scores, at.clone())];
    let (mut seen, mut visits) = (BTreeSet::new(), 0);
    while let Some((v, at)) = todo.pop() {
        visits += 1;
        if visits > MOST_VISITS || at.iter().map(Ix::size).sum::<usize>() > LONGEST {
            return Err("its scores are computed in too many steps");
        }
        let Some((node, _)) = graph.def(v) else { continue };
        match &node.op {
            Op::Reduce { op: ReduceOp::Dot, .. } => match (roles::with_one_row(graph, v), &inner) {
                (Some(p), None) if mentions(&at, &[k]) && (outer.m.is_empty() || mentions(&at, &outer.m)) => {
                    inner = Some((p, at));
                    inside.push(v);
                }
                _ => {}
            },
            Op::Elementwise(_) if seen.insert(v) => {
                inside.push(v);
                todo.extend(node.values().map(|x| (x, at.clone())));
            }
            // A map of the whole plane of scores belongs to it; others bring masks and biases, which are read.
            Op::IndexMap(sources) => {
                let one = match (&sources[..], &node.args[..]) {
                    ([s], [Arg::Value(x)]) if s.when.is_always() => Some((s, *x)),
                    _ => None,
                };
                let base = one.map(|(_, x)| through_maps(graph, x, vec![], &mut vec![]).0);
                let computed = base
                    .and_then(|b| graph.def(b))
                    .is_some_and(|(n, _)| matches!(n.op, Op::Elementwise(_) | Op::Reduce { op: ReduceOp::Dot, .. }));
                if let Some((s, x)) = one.filter(|_| computed) {
                    inside.push(v);
                    let at = s.coords.iter().map(|c| c.at_coords(&at));
                    todo.push((x, at.collect()));
                }
            }
            _ => {}
        }
    }
    // A product of a product alone would be computed again for each block of columns.
    if max.is_none() {
        return Ok(None);
    }
    let Some((p, places)) = &inner else { return Err("its scores are not computed from a product") };
    if !fits(&outer, p, places) {
        return Err("its scores are a product with other rows");
    }
    // The parts of one block must cover whole rows of the result and of the inner sum.
    let extent = |p: &Product, axes: &[usize]| p.extent(graph, axes).as_const();
    match (extent(&outer, &outer.n), extent(p, &p.k)) {
        (Some(n), Some(k)) if n <= 256 && k <= 512 => {}
        _ => return Err("its rows are too long, or their length is not known"),
    }
    if !elem.is_float() || inside.iter().any(|v| graph.values[*v].elem != elem && !graph.values[*v].elem.is_bool()) {
        return Err("it computes in several types");
    }
    // The nodes between: none of them may be needed elsewhere. Masks and other cheap operands stay outside.
    let mut inside: BTreeSet<ValueId> = inside.into_iter().chain(narrow).collect();
    let carries = computed_from(p.dot, readers, &inside);
    inside.retain(|v| carries.contains(v));
    inside.insert(p.dot);
    for v in &inside {
        let all = readers.get(v).map(|r| r.iter().all(|r| inside.contains(r) || *r == outer.dot));
        if all != Some(true) {
            return Err("something else needs its scores");
        }
    }
    let mut leaves: BTreeSet<ValueId> =
        inside.iter().filter_map(|v| graph.def(*v)).flat_map(|(n, _)| n.values()).collect();
    leaves.insert(if outer.a == 0 { y } else { x });
    leaves.retain(|v| !inside.contains(v));
    Ok(Some(Stream { scores, at, divided, rounded, inner, inside, leaves, outer }))
}

/// The values of a set that are computed from a value by way of others of the set, and that value.
fn computed_from(
    of: ValueId,
    readers: &BTreeMap<ValueId, Vec<ValueId>>,
    within: &BTreeSet<ValueId>,
) -> BTreeSet<ValueId> {
    let (mut found, mut todo) = (BTreeSet::from([of]), vec![of]);
    while let Some(v) = todo.pop() {
        for r in readers.get(&v).into_iter().flatten() {
            if within.contains(r) && found.insert(*r) {
                todo.push(*r);
            }
        }
    }
    found
}

/// Returns true if the inner product's rows are the outer product's rows, and its columns the summed axis.
fn fits(outer: &Product, inner: &Product, at: &[Ix]) -> bool {
    let of = |axes: &[usize]| -> BTreeSet<usize> {
        axes.iter().filter_map(|d| at.get(*d)).flat_map(|c| c.axes()).map(|a| a.0 as usize).collect()
    };
    let (m, n) = (of(&inner.m), of(&inner.n));
    let k: BTreeSet<usize> = outer.k.iter().copied().collect();
    let rows: BTreeSet<usize> = outer.m.iter().copied().collect();
    (m == rows && n == k) || (n == rows && m == k)
}
