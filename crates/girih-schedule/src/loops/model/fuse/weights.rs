//! Weights: which values that are computed from them are computed where they are needed, and which are turned when the model is loaded.

use std::collections::BTreeSet;

use super::demand::Demand;
use super::{Fusion, guess};
use crate::graph::ir::{Graph, Node, Op, ReduceOp, Role, ValueId, axis};
use crate::index::Ix;
use crate::num::DType;

/// A value computed at load that is wider than its sources is nevertheless stored if it takes fewer than `LITTLE`
/// bytes, or if all such values together take fewer than `LITTLE_TOGETHER` bytes or than the part `OF_WEIGHTS` of the
/// weights: computing it once saves time in every run.
const LITTLE: i64 = 1 << 16;
const LITTLE_TOGETHER: i64 = 1 << 20;
const OF_WEIGHTS: (i64, i64) = (3, 10);
/// The most that computing one of its elements may cost, if it is computed when it is needed.
const UNPACKING: i64 = 16;
/// How often in turn an element of a line is repeated, at most, where a value computed from the repetitions is worth an array: lanes of a
/// vector would be loaded one by one.
const FEW_TIMES: i64 = 8;
/// Bytes of a word.
const WORD: i64 = 4;
/// Words of a panel that lie side by side, the first number that divides the sums: four vectors of accumulators hide the time that one
/// addition takes. (1 x 256 by 256 x 1024 takes 0.86 of the time of sums whose terms follow each other, and ends without sums of lanes.)
const SIDE_BY_SIDE: [i64; 3] = [64, 32, 16];
/// The most kinds of elements that such a value takes in turn.
const MOST_KINDS: usize = 4;

/// A value that is computed from weights and takes at least twice the memory of these.
#[derive(Clone, Copy, Default)]
pub(super) struct Widened {
    /// It may be computed where it is needed.
    pub wide: bool,
    /// Neighbouring elements are computed in different ways, as the two weights of a byte.
    pub of_kinds: bool,
}

/// The values that are computed from weights by a few cheap operations, and that take at least twice the memory of
/// these.
pub(super) fn widened(graph: &Graph, load: &[bool]) -> Vec<Widened> {
    let numel = |v: ValueId| guess(&graph.numel(&graph.values[v].shape));
    let bits = |v: ValueId| numel(v).saturating_mul(graph.values[v].elem.dtype.bits() as i64);
    // For each value, the bits of its sources and the cost of computing all of its elements.
    let mut from: Vec<(i64, i64)> = graph.values.iter().map(|(v, _)| (bits(v), 0)).collect();
    let mut out = vec![Widened::default(); graph.values.len()];
    let mut on_the_way = BTreeSet::new();
    let few = |c: &Ix| match c {
        Ix::FloorDiv(x, by) => matches!(**x, Ix::Axis(_)) && by.as_const().is_some_and(|n| n <= FEW_TIMES),
        _ => false,
    };
    for node in graph.nodes.values() {
        let work = match &node.op {
            Op::Elementwise(op) if op.cost() < 8 => op.cost(),
            Op::IndexMap(sources) if sources.len() == 1 && sources[0].coords.last().is_some_and(few) => continue,
            Op::IndexMap(sources) if sources.len() == 1 => 0,
            Op::IndexMap(sources) if sources.len() <= MOST_KINDS => sources.len() as i64,
            // A position is read from nowhere.
            Op::Index(_) => {
                node.results.iter().for_each(|r| from[r.0 as usize] = (0, 0));
                continue;
            }
            _ => continue,
        };
        let of_kinds = matches!(&node.op, Op::IndexMap(sources) if sources.len() > 1)
            || node.values().any(|x| out[x.0 as usize].of_kinds);
        // A value that only repeats elements of another gets no array.
        let repeats = matches!(&node.op, Op::IndexMap(sources) if sources.len() == 1)
            && node.results.iter().any(|r| node.values().any(|x| bits(*r) > bits(x)));
        for r in node.results.iter().filter(|r| load[r.0 as usize]) {
            let all = node.values().fold((0i64, work.saturating_mul(numel(*r))), |(bits, work), x| {
                let (b, w) = from[x.0 as usize];
                (bits.saturating_add(b), work.saturating_add(w))
            });
            let own = bits(*r);
            if all.1 <= UNPACKING.saturating_mul(numel(*r)) && all.0.saturating_mul(2) <= own {
                from[r.0 as usize] = all;
                out[r.0 as usize].of_kinds = of_kinds;
                if own >= 8 * LITTLE && !repeats {
                    out[r.0 as usize].wide = true;
                    on_the_way.extend(node.values());
                }
            }
        }
    }
    let last = (0..graph.values.len()).map(|v| ValueId(v as u32)).filter(|v| out[v.0 as usize].wide);
    let together = last.filter(|v| !on_the_way.contains(v)).fold(0i64, |sum, v| sum.saturating_add(bits(v)));
    let weights = graph.inputs.iter().filter(|input| input.role == Role::Parameter);
    let weights = weights.fold(0i64, |sum, input| sum.saturating_add(bits(input.value)));
    let (part, of) = OF_WEIGHTS;
    if together < (8 * LITTLE_TOGETHER).max(weights / of * part) {
        out.fill(Widened::default());
    }
    out
}

/// How bytes lie that one row is multiplied by: four terms of a sum are a word, words of several sums lie side by side, as the lanes of
/// vectors do, and the words of their next terms follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::loops::model) struct Panels {
    /// The axis of the sums, and the one of their terms.
    sums: usize,
    terms: usize,
    /// Words that lie side by side.
    side: i64,
}

impl Panels {
    fn of((sums, terms): (usize, usize), shape: &[Ix]) -> Option<Panels> {
        let n = shape.get(sums)?.as_const()?;
        let side = SIDE_BY_SIDE.into_iter().find(|side| n % side == 0)?;
        Some(Panels { sums, terms, side })
    }

    /// The coordinates of an element, over the array's own axes.
    pub fn coords(self, of: &[Ix]) -> Vec<Ix> {
        self.apart(of, |x, by| [Ix::floor_div(x.clone(), Ix::Const(by)), Ix::modulo(x.clone(), Ix::Const(by))])
    }

    pub fn shape(self, of: &[Ix]) -> Vec<Ix> {
        self.apart(of, |n, by| [Ix::floor_div(n.clone(), Ix::Const(by)), Ix::Const(by)])
    }

    fn apart(self, of: &[Ix], split: impl Fn(&Ix, i64) -> [Ix; 2]) -> Vec<Ix> {
        let others = of.iter().enumerate().filter(|(d, _)| ![self.sums, self.terms].contains(d));
        let [panel, side] = split(&of[self.sums], self.side);
        let [word, byte] = split(&of[self.terms], WORD);
        others.map(|(_, x)| x.clone()).chain([panel, word, side, byte]).collect()
    }
}

impl Fusion<'_> {
    /// True if an operand of a product is made of weights that take less memory.
    pub(super) fn is_unpacked(&self, product: ValueId, operand: usize) -> bool {
        let mut now = self.graph.def(product).and_then(|(node, _)| node.values().nth(operand));
        while let Some(v) = now {
            if self.load[v.0 as usize] && self.wide[v.0 as usize].wide {
                return true;
            }
            now = match self.graph.def(v) {
                Some((Node { op: Op::IndexMap(sources), .. }, _)) if sources.len() == 1 => {
                    self.graph.def(v).and_then(|(node, _)| node.values().next())
                }
                _ => None,
            };
        }
        false
    }

    /// Returns true if a map is of a parameter or a constant, and all needs are of products.
    pub(super) fn is_filter(&self, node: &Node, demands: &[Demand]) -> bool {
        let constant = |x| self.graph.def(x).is_some_and(|(node, _)| matches!(node.op, Op::Constant(_)));
        let parameter = node.values().all(|x| constant(x) || self.graph.inputs.iter().any(|i| i.value == x));
        let of_windows = |d: &Demand| d.operand && d.coords.iter().filter(|c| !c.axes().is_empty()).count() > 2;
        parameter && demands.iter().all(of_windows)
    }

    /// Panels for the array of a value that [`Fusion::across_a_row`] finds; else its terms follow each other.
    pub(super) fn panels(&self, v: ValueId, node: &Node) -> Option<Panels> {
        Panels::of(self.across_a_row(v, node)?, &self.graph.values[v].shape)
    }

    /// The axes of the sums and of their terms, where a map reads bytes across the sums of products of one row and bytes, one of them
    /// unsigned.
    pub(super) fn across_a_row(&self, v: ValueId, node: &Node) -> Option<(usize, usize)> {
        let result = self.graph.outputs.iter().any(|o| o.value == v);
        let (of, source) = node.spread().filter(|_| self.quads && self.load[v.0 as usize] && !result)?;
        let sign = |x: ValueId| {
            let elem = self.graph.values[x].elem;
            (elem.dtype == DType::I8).then_some(elem.unsigned)
        };
        let own = sign(v).filter(|_| self.numel(v) == self.numel(of))?;
        let shape = &self.graph.values[v].shape;
        let sums = (0..shape.len()).find(|d| source.coords.last() == Some(&axis(*d)))?;
        let terms = |user: &Node| {
            let Op::Reduce { op: ReduceOp::Dot, axes } = &user.op else { return None };
            let (&[k], Some(result)) = (&axes[..], user.results.first()) else { return None };
            let k = k as usize;
            let once = self.numel(*result).saturating_mul(guess(shape.get(k)?)) == self.numel(v);
            let others = user.values().filter(|x| *x != v).all(|x| sign(x) == Some(!own));
            let across = k != sums && source.coords.contains(&axis(k));
            let whole = shape[k].as_const().is_some_and(|n| n % WORD == 0);
            (once && others && across && whole).then_some(k)
        };
        let mut found = self.graph.nodes.values().filter(|n| n.values().any(|x| x == v)).map(terms);
        let terms = found.next()??;
        found.all(|k| k == Some(terms)).then_some((sums, terms))
    }
}
