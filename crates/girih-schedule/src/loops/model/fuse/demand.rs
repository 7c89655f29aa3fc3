//! The elements of values that kernels need, and the circumstances in which they need them.

use super::{Fusion, guess};
use std::collections::hash_map::Entry;

use crate::graph::ir::{Arg, Coord, MapSource, Node, Op, ReduceOp};
use crate::index::{AxisId, Cond, Facts, Ix};
use crate::loops::ir::MOST_IN_TURN;

/// One need of a value by a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Demand {
    pub root: usize,
    pub coords: Vec<Ix>,
    /// Needed under a condition.
    pub masked: bool,
    /// `(some, all)`: the value is needed for `some` of every `all` elements in turn, where its condition selects kinds
    /// of elements; the loop is then written out.
    pub share: (i64, i64),
    /// Needed in a loop of a reduction.
    pub folded: bool,
    /// Needed as an operand of a matrix product; how often each element is then computed.
    pub repeats: i64,
    pub operand: bool,
    /// The axes of the loops around a reduction's loop: each of their iterations computes again what the reduction's
    /// terms need.
    pub around: Vec<AxisId>,
    /// How many values stand between this one and the kernel's result.
    pub depth: usize,
}

/// For each source of a map, how many of every few elements in turn it gives, where conditions on one remainder by a
/// small number select the source.
fn in_turn(sources: &[MapSource]) -> Option<Vec<(i64, i64)>> {
    let lhs = &sources.iter().find_map(|s| s.when.conds.first())?.lhs;
    let Ix::Mod(_, by) = lhs else { return None };
    let by = by.as_const().filter(|by| (2..=MOST_IN_TURN).contains(by))?;
    let mut given = vec![(0, by); sources.len()];
    for kind in 0..by {
        for (s, (some, _)) in sources.iter().zip(&mut given) {
            let holds = |c: &Cond| {
                let of_kind = Cond { lhs: Ix::Const(kind), ..c.clone() };
                (c.lhs == *lhs).then(|| Facts::new().decide(&of_kind)).flatten()
            };
            // The first whose conditions all hold.
            if s.when.conds.iter().map(holds).collect::<Option<Vec<_>>>()?.into_iter().all(|on| on) {
                *some += 1;
                break;
            }
        }
    }
    Some(given)
}

impl Fusion<'_> {
    pub(super) fn axis(&mut self, extent: &Ix) -> AxisId {
        let axis = AxisId(self.extents.len() as u32);
        self.extents.push(extent.clone());
        self.facts.set_axis(axis, &Ix::Const(0), extent);
        axis
    }

    pub(super) fn need(&mut self, a: Option<&Arg>, d: Demand) {
        let Some(Arg::Value(v)) = a else { return };
        let coords = d.coords.iter().map(|c| self.simple.simplify(c, &self.facts)).collect();
        let d = Demand { coords, depth: d.depth + 1, ..d };
        // A kernel computes an element once, however many values need it.
        let all = &mut self.demands[v.0 as usize];
        match self.seen.entry((*v, Demand { depth: 0, masked: false, ..d.clone() })) {
            Entry::Occupied(at) => {
                let known = &mut all[*at.get()];
                (known.depth, known.masked) = (known.depth.max(d.depth), known.masked || d.masked);
            }
            Entry::Vacant(at) => {
                at.insert(all.len());
                all.push(d);
            }
        }
    }

    /// Records the operands that a node needs, given a need for the node itself.
    pub(super) fn descend(&mut self, node: &Node, d: &Demand) {
        let place = |ix: &Ix| ix.at_coords(&d.coords);
        match &node.op {
            Op::Elementwise(_) => {
                for a in &node.args {
                    self.need(Some(a), d.clone());
                }
            }
            Op::IndexMap(sources)
                if !self.roots[d.root].parts.is_empty() && node.results == [self.roots[d.root].value] =>
            {
                for part in self.roots[d.root].parts.clone() {
                    let mut at = d.coords.clone();
                    if let Some(c) = at.get_mut(part.axis) {
                        *c = if part.extent.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.axis(&part.extent)) };
                    }
                    if let Some((arg, coords)) = part.read(sources, &node.args, &part.place(at)) {
                        self.need(Some(&arg), Demand { coords, masked: true, ..d.clone() });
                    }
                }
            }
            Op::IndexMap(sources) => {
                let shares = in_turn(sources).unwrap_or_else(|| vec![d.share; sources.len()]);
                for (s, share) in sources.iter().zip(shares) {
                    let coords = s.coords.iter().map(place).collect();
                    let masked = d.masked || !s.when.is_always() || sources.len() > 1;
                    self.need(node.args.get(s.arg as usize), Demand { coords, masked, share, ..d.clone() });
                }
            }
            Op::Gather(at) => {
                let data = node.args.first();
                let mut coords = vec![];
                for c in at {
                    match c {
                        Coord::Ix(ix) => coords.push(place(ix)),
                        Coord::Arg(i) => {
                            self.need(node.args.get(*i as usize), d.clone());
                            // An unknown element: this sum differs from position to position, as the index may.
                            coords.push(d.coords.iter().fold(Ix::Const(0), |a, b| Ix::add(a, b.clone())));
                        }
                    }
                }
                self.need(data, Demand { coords, masked: true, ..d.clone() });
            }
            Op::Reduce { op, axes } => {
                let Some(Arg::Value(x)) = node.args.first() else { return };
                let shape = self.graph.values[*x].shape.clone();
                let mut coords = d.coords.clone();
                for a in axes {
                    if let (Some(c), Some(n)) = (coords.get_mut(*a as usize), shape.get(*a as usize)) {
                        *c = if n.is_const(1) { Ix::Const(0) } else { Ix::Axis(AxisId(self.extents.len() as u32)) };
                        self.extents.push(n.clone());
                        self.facts.set_axis(AxisId(self.extents.len() as u32 - 1), &Ix::Const(0), n);
                    }
                }
                let mut around: Vec<AxisId> =
                    d.coords.iter().flat_map(Ix::axes).chain(d.around.iter().copied()).collect();
                around.sort_unstable();
                around.dedup();
                let product = match op {
                    ReduceOp::Dot => self.product_of(node.results[0]),
                    _ => None,
                };
                for (i, a) in node.args.iter().enumerate() {
                    let mut need = Demand { coords: coords.clone(), folded: true, around: around.clone(), ..d.clone() };
                    if let Some(p) = &product {
                        // Each block of the other side computes this side's operand again. Its own axes matter only.
                        let other = if i == p.a { &p.n } else { &p.m };
                        let blocks = guess(&p.extent(self.graph, other)).max(1) / 128;
                        need.repeats = need.repeats.saturating_mul(blocks.max(1));
                        need.operand = true;
                        need.around.clear();
                        for d in other {
                            if let Some(c) = need.coords.get_mut(*d) {
                                *c = Ix::Const(0);
                            }
                        }
                    }
                    self.need(Some(a), need);
                }
            }
            Op::Scatter { .. } => {
                self.need(node.args.first(), d.clone());
                for a in node.args.iter().skip(1) {
                    let Arg::Value(v) = a else { continue };
                    let shape = self.graph.values[*v].shape.clone();
                    let each = |n: &Ix| if n.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.axis(n)) };
                    let coords = shape.iter().map(each).collect();
                    self.need(Some(a), Demand { coords, ..d.clone() });
                }
            }
            _ => {
                for a in &node.args {
                    if let Arg::Value(v) = a {
                        let shape = &self.graph.values[*v].shape;
                        let coords = vec![Ix::Const(0); shape.len()];
                        self.need(Some(a), Demand { coords, masked: true, ..d.clone() });
                    }
                }
            }
        }
    }
}
