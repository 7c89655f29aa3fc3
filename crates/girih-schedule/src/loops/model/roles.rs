//! Finds the role of each axis of a matrix product: batch, m, n or k.
//!
//! In: a `Dot` reduction, whose operands are maps of tensors. An axis that only one operand depends on belongs to its
//! side; one that both depend on is a batch axis (or, reduced, part of k).

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::graph::ir::{Arg, Graph, Op, ReduceOp, ValueId};
use crate::index::{Ix, Mask};

/// The roles of the axes of a product, bound once.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    pub dot: ValueId,
    /// Position in the node's arguments of the operand that depends on `m`; the other is the one of `n`.
    pub a: usize,
    pub batch: Vec<usize>,
    /// Empty for a product of one row ([`with_one_row`]).
    pub m: Vec<usize>,
    pub n: Vec<usize>,
    pub k: Vec<usize>,
}

/// The axes of a value that its elements depend on.
pub(super) fn axes_of(graph: &Graph, v: ValueId, coords: &[Ix], out: &mut BTreeSet<usize>, left: usize) {
    let mut todo = vec![(v, coords.to_vec(), left)];
    // Each way to a value is followed once; a longer way to the same place adds nothing.
    let mut seen: FxHashMap<(ValueId, Vec<Ix>), usize> = FxHashMap::default();
    while let Some((v, coords, left)) = todo.pop() {
        let key = (v, coords);
        if seen.get(&key).is_some_and(|before| *before >= left) {
            continue;
        }
        // Long coordinates and many ways are not followed further: the answer may then have more axes.
        let long = seen.len() > MOST_WAYS || key.1.iter().map(Ix::size).sum::<usize>() > super::fuse::LONGEST;
        axes_at(graph, v, &key.1, out, if long { 0 } else { left }, &mut todo);
        seen.insert(key, left);
    }
}

/// The most ways to operands that are followed.
const MOST_WAYS: usize = 1024;

/// The axes at one value, and in `todo` its operands, which are to be asked.
fn axes_at(
    graph: &Graph,
    v: ValueId,
    coords: &[Ix],
    out: &mut BTreeSet<usize>,
    left: usize,
    todo: &mut Vec<(ValueId, Vec<Ix>, usize)>,
) {
    let all = |out: &mut BTreeSet<usize>| {
        for (c, n) in coords.iter().zip(&graph.values[v].shape) {
            if !n.is_const(1) {
                out.extend(c.axes().into_iter().map(|a| a.0 as usize));
            }
        }
    };
    let Some((node, _)) = graph.def(v).filter(|_| left > 0) else { return all(out) };
    let place = |ix: &Ix| ix.at_coords(coords);
    let masked = |when: &Mask, out: &mut BTreeSet<usize>| {
        for c in &when.conds {
            out.extend(place(&c.lhs).axes().into_iter().map(|a| a.0 as usize));
            out.extend(place(&c.rhs).axes().into_iter().map(|a| a.0 as usize));
        }
    };
    match &node.op {
        Op::IndexMap(sources) => {
            for s in sources {
                masked(&s.when, out);
                if let Some(Arg::Value(x)) = node.args.get(s.arg as usize) {
                    let read: Vec<Ix> = s.coords.iter().map(place).collect();
                    todo.push((*x, read, left - 1));
                }
            }
        }
        Op::Elementwise(_) => {
            todo.extend(node.values().map(|x| (x, coords.to_vec(), left - 1)));
        }
        Op::Index(ix) => out.extend(place(ix).axes().into_iter().map(|a| a.0 as usize)),
        Op::Reduce { axes, .. } => {
            // The folded axes have the coordinate 0 here.
            for (d, c) in coords.iter().enumerate() {
                if !axes.contains(&(d as u32)) {
                    out.extend(c.axes().into_iter().map(|a| a.0 as usize));
                }
            }
        }
        _ => all(out),
    }
}

/// How far operands are followed.
pub(super) const FAR: usize = 64;

/// The fewest windows in a row that is worth a block.
const LONG_ROW: i64 = 24;

/// The coordinates at which an operand is read, from itself down to where it is no longer a map or a function of one value.
fn reads(graph: &Graph, v: ValueId, coords: &[Ix]) -> Vec<Vec<Ix>> {
    let (mut now, mut coords) = (v, coords.to_vec());
    let mut out = vec![coords.clone()];
    for _ in 0..FAR {
        let Some((node, _)) = graph.def(now) else { break };
        let source = match &node.op {
            Op::IndexMap(sources) => sources.first().map(|s| (s.arg as usize, s.coords.clone())),
            Op::Elementwise(_) => {
                node.args.iter().position(|a| matches!(a, Arg::Value(_))).map(|at| (at, identity(coords.len())))
            }
            _ => None,
        };
        let Some((at, read)) = source else { break };
        let Some(Arg::Value(next)) = node.args.get(at) else { break };
        coords = read.iter().map(|ix| ix.at_coords(&coords)).collect();
        if coords.iter().map(Ix::size).sum::<usize>() > super::fuse::LONGEST {
            break;
        }
        out.push(coords.clone());
        now = *next;
    }
    out
}

fn counts(ix: &Ix, by: &[usize]) -> bool {
    ix.axes().iter().any(|a| by.contains(&(a.0 as usize)))
}

/// Returns true if an operand is read in windows: some coordinate depends on both an axis of the columns and an axis of
/// the sum.
fn slides(reads: &[Vec<Ix>], n: &[usize], k: &[usize]) -> bool {
    reads.iter().flatten().any(|c| counts(c, n) && counts(c, k))
}

/// The fewest adjacent columns that are worth products of their own.
const LONG_PLANE: i64 = 96;

/// The number of the columns' axes, outermost first, between whose elements terms of the sum lie, as in images whose
/// channels are summed; the other axes count adjacent elements.
fn apart(reads: &[Vec<Ix>], n: &[usize], k: &[usize]) -> usize {
    let Some(read) = reads.last() else { return 0 };
    let last = read.iter().rposition(|c| counts(c, k)).unwrap_or(0);
    let inside = |axis: &usize| read[last..].iter().any(|c| counts(c, &[*axis]));
    let outer = n.iter().take_while(|axis| !inside(axis)).count();
    if n[outer..].is_empty() { 0 } else { outer }
}

fn identity(rank: usize) -> Vec<Ix> {
    (0..rank).map(crate::graph::ir::axis).collect()
}

/// The roles of a product, if it has both rows and columns. `n` gets the last axis of the result that has a side.
pub fn product(graph: &Graph, dot: ValueId) -> Option<Product> {
    with_one_row(graph, dot).filter(|p| !p.m.is_empty())
}

/// The roles of a product that may have one row: then no axis is a row's, and those of the other operand are columns.
pub(super) fn with_one_row(graph: &Graph, dot: ValueId) -> Option<Product> {
    let (node, _) = graph.def(dot)?;
    let Op::Reduce { op: ReduceOp::Dot, axes } = &node.op else { return None };
    let (Arg::Value(x), Arg::Value(y)) = (*node.args.first()?, *node.args.get(1)?) else { return None };
    let shape = &graph.values[x].shape;
    let identity = identity(shape.len());
    let (mut of_x, mut of_y) = (BTreeSet::new(), BTreeSet::new());
    axes_of(graph, x, &identity, &mut of_x, FAR);
    axes_of(graph, y, &identity, &mut of_y, FAR);
    let (mut batch, mut left, mut right, mut k) = (vec![], vec![], vec![], vec![]);
    for (d, n) in shape.iter().enumerate() {
        if axes.contains(&(d as u32)) {
            k.push(d);
        } else if n.is_const(1) {
        } else {
            match (of_x.contains(&d), of_y.contains(&d)) {
                (true, false) => left.push(d),
                (false, true) => right.push(d),
                _ => batch.push(d),
            }
        }
    }
    if left.is_empty() && right.is_empty() || k.iter().all(|&d| shape[d].is_const(1)) {
        return None;
    }
    // An operand that is the same along the whole sum is not part of a product's inner loop.
    let summed = |of: &BTreeSet<usize>| k.iter().any(|d| of.contains(d));
    if !summed(&of_x) || !summed(&of_y) {
        return None;
    }
    // The columns are the side that the result's last axis belongs to, so that stores and vectors run along it.
    let (a, m, mut n) = if right.last() > left.last() { (0, left, right) } else { (1, right, left) };
    let reads = reads(graph, if a == 0 { y } else { x }, &identity);
    // Long rows of windows are blocks of their own: then the data that a block reads is contiguous. So are images. An
    // extent that is not known is taken to be long.
    let length = |axes: &[usize]| axes.iter().try_fold(1i64, |all, d| all.checked_mul(shape[*d].as_const()?));
    let (outer, least) = match slides(&reads, &n, &k) {
        true => (n.len() - 1, LONG_ROW),
        false => (apart(&reads, &n, &k), LONG_PLANE),
    };
    if length(&n[outer..]).is_none_or(|length| length >= least) {
        batch.extend(n.drain(..outer));
        batch.sort_unstable();
    }
    Some(Product { dot, a, batch, m, n, k })
}

impl Product {
    /// The extents of some axes, multiplied.
    pub fn extent(&self, graph: &Graph, axes: &[usize]) -> Ix {
        let Some((node, _)) = graph.def(self.dot) else { return Ix::Const(1) };
        let Some(Arg::Value(x)) = node.args.first() else { return Ix::Const(1) };
        let shape = &graph.values[*x].shape;
        let parts: Vec<Ix> = axes.iter().filter_map(|d| shape.get(*d)).cloned().collect();
        graph.numel(&parts)
    }
}

/// The result's axes as expressions over another's, given the other's coordinates over the result's: `d = 64*h + e`
/// and the extents of `h` and `e` give `h = d // 64`, `e = d % 64`.
///
/// `coords[d]` is over axes `0..extents.len()`; the answer has one expression for each of those, over axes that number
/// the coordinates. `None` where the coordinates do not determine the axes one to one in a form that is known.
pub(super) fn invert(coords: &[Ix], extents: &[Ix], of: &[Ix], facts: &crate::index::Facts) -> Option<Vec<Ix>> {
    use crate::index::simplify;
    let mut out: Vec<Option<Ix>> = extents.iter().map(|n| n.is_const(1).then_some(Ix::Const(0))).collect();
    let mut done = vec![false; coords.len()];
    // An expression taken apart by several coordinates: gather it again, from the last (which holds the remainder).
    for d in (0..coords.len()).rev() {
        if done[d] || of[d].is_const(1) {
            continue;
        }
        let mut whole = coords[d].clone();
        let mut position = crate::graph::ir::axis(d);
        let mut stride = of[d].clone();
        done[d] = true;
        if let Ix::Mod(inner, _) = &coords[d] {
            let base = match &**inner {
                Ix::FloorDiv(b, _) => (**b).clone(),
                b => b.clone(),
            };
            whole = base.clone();
            let mut e = d;
            while e > 0 {
                e -= 1;
                if of[e].is_const(1) {
                    continue;
                }
                let from_base = match &coords[e] {
                    Ix::FloorDiv(b, s) => **b == base && simplify(s, facts) == simplify(&stride, facts),
                    Ix::Mod(q, n) => {
                        simplify(n, facts) == simplify(&of[e], facts)
                            && matches!(&**q, Ix::FloorDiv(b, s)
                                if **b == base && simplify(s, facts) == simplify(&stride, facts))
                    }
                    _ => false,
                };
                if !from_base {
                    return None;
                }
                done[e] = true;
                position = Ix::add(position, Ix::mul(crate::graph::ir::axis(e), stride.clone()));
                stride = simplify(&Ix::mul(stride, of[e].clone()), facts);
                if matches!(coords[e], Ix::FloorDiv(..)) {
                    break;
                }
            }
        }
        // Mixed radix: each term's factor is the product of the extents of those with smaller factors.
        let mut terms: Vec<(crate::index::AxisId, Ix)> = vec![];
        let mut rest = whole.clone();
        for axis in whole.axes() {
            let (factor, without) = rest.linear(axis)?;
            terms.push((axis, simplify(&factor, facts)));
            rest = without;
        }
        if !simplify(&rest, facts).is_const(0) {
            return None;
        }
        let mut stride = Ix::Const(1);
        while !terms.is_empty() {
            let at = terms.iter().position(|(_, f)| *f == stride)?;
            let (axis, _) = terms.remove(at);
            let n = extents.get(axis.0 as usize)?;
            let q = Ix::floor_div(position.clone(), stride.clone());
            let place = if terms.is_empty() { q } else { Ix::modulo(q, n.clone()) };
            let slot = out.get_mut(axis.0 as usize)?;
            if slot.is_some() {
                return None;
            }
            *slot = Some(place);
            stride = simplify(&Ix::mul(stride, n.clone()), facts);
        }
    }
    out.into_iter().collect()
}
