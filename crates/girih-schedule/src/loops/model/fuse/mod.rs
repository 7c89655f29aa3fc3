//! Decides which values share a kernel: producers are spliced into the kernels that need them, where that is right and
//! pays.
//!
//! In: a graph of primitives. Out: the values that get an array (and so a kernel of their own, a [`Root`]); every other
//! value is computed where it is needed. Values are decided from the last to the first, so that all kernels that need a
//! value, and with which coordinates, are known when it is decided.
//!
//! A producer is spliced into a kernel when
//! 1. only that kernel needs it, or computing it again costs less than storing and reading it;
//! 2. a reduction: it is needed once for each of the kernel's outer loops, and those are enough to share among threads;
//! 3. a matrix product: each element is needed exactly once, where the kernel's result is stored, and the kernel's
//!    coordinates follow from the product's (they are turned around, see `roles::invert`).
//!
//! A value that follows a sum element by element is stored in the sum's place, where the sum would be stored otherwise (`epilogue`).
//!
//! Costs are in bytes moved: an operation of a vector counts as one, a transcendental one as sixteen.

mod demand;
mod epilogue;
mod weights;

pub(super) use weights::Panels;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::builder::MOST_KEPT;
use super::concat::{self, MOST_SOURCES, Part};
use super::online_softmax::{self, Stream};
use super::roles::{self, Product};
use crate::base::rule::Log;
use crate::graph::ir::{Arg, Graph, Node, Op, ReduceOp, Role, ValueId};
use crate::index::{AxisId, Facts, Ix, Simple};
use crate::num::ScalarOp;
use demand::Demand;
use weights::{Widened, widened};

/// A kernel to be: the value that it stores.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub value: ValueId,
    /// It depends on constants and parameters alone.
    pub load: bool,
    /// The products it computes.
    pub products: Vec<Product>,
    /// With products: its coordinates over theirs.
    pub places: Vec<Ix>,
    /// The loops that its reductions depend on: axes of the value, and a digit more where one is split.
    pub first: BTreeSet<usize>,
    pub split: Option<Split>,
    /// Values computed in it, itself included, in topological order.
    pub members: Vec<ValueId>,
    /// Rows worth keeping.
    pub keep: Vec<ValueId>,
    /// Its one product is streamed: it is computed while its operand is.
    pub stream: Option<Stream>,
    /// The parts of a map of many sources, each with loops of its own; empty otherwise.
    pub parts: Vec<Part>,
    /// How its elements lie in its array, where they do not lie row after row.
    pub panels: Option<Panels>,
    axes: Vec<AxisId>,
    reduces: bool,
}

/// An axis of a kernel's result that is split into two loops, the inner one of `inner` iterations: groups of channels,
/// whose reductions depend on the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Split {
    pub axis: usize,
    pub inner: i64,
}

/// Returns true if the rows that these elements are in keep the threads busy.
fn shares_out(rows: i64, elements: i64) -> bool {
    rows >= FEW_ROWS || elements / rows.max(1) <= FEW_TERMS
}

impl Split {
    /// The extents of the loops over a shape.
    pub fn extents(split: Option<Split>, shape: &[Ix]) -> Vec<Ix> {
        let each = |(d, n): (usize, &Ix)| match split {
            Some(s) if s.axis == d => {
                vec![Ix::floor_div(n.clone(), Ix::Const(s.inner)), Ix::Const(s.inner)]
            }
            _ => vec![n.clone()],
        };
        shape.iter().enumerate().flat_map(each).collect()
    }

    /// The coordinates of an element, where the loops are at these places.
    pub fn coords(split: Option<Split>, places: Vec<Ix>) -> Vec<Ix> {
        let Some(s) = split else { return places };
        let mut coords = places;
        if s.axis + 1 < coords.len() {
            let inner = coords.remove(s.axis + 1);
            let outer = std::mem::replace(&mut coords[s.axis], Ix::Const(0));
            coords[s.axis] = Ix::add(Ix::mul(outer, Ix::Const(s.inner)), inner);
        }
        coords
    }
}

/// An extent that is not known is taken to be this long.
const GUESS: i64 = 512;
/// A reduction over rows of more than `FEW_TERMS` elements is fused only into a kernel with this many rows or more: fewer such rows keep
/// few threads busy for long.
const FEW_ROWS: i64 = 8;
const FEW_TERMS: i64 = 1 << 16;
/// The cost of starting a kernel, as the bytes moved meanwhile.
const START: i64 = 20_000;
/// The most places at which a value of several operands is computed: their needs can double with each. A value of one operand hands
/// its needs on.
const MOST_DEMANDS: usize = 12;
/// The most values that one kernel computes one from the other: emission asks for operands by recursion.
const DEEPEST: usize = 128;
/// The most rows of a product that weights are unpacked for in registers.
const FEW_TOGETHER: i64 = 8;
/// Elements of the rows of a matrix unit's tile.
const TILE: i64 = 16;
/// The most leaves and operations in the coordinates of one need: through maps that do not compose they can double with
/// each.
pub(super) const LONGEST: usize = 512;

pub(super) struct Fusion<'a> {
    graph: &'a Graph,
    /// Values that must have an array.
    pub force: BTreeSet<ValueId>,
    /// Nothing is fused: every operation is a kernel.
    pub off: bool,
    /// Each worker goes through memory line by line.
    pub in_lines: bool,
    /// Four unsigned bytes are multiplied by four signed ones at once, where these lie side by side.
    pub quads: bool,
    /// Results with an axis that is split into two loops, and results for which a split is wanted.
    pub splits: BTreeMap<ValueId, Split>,
    pub wanted: BTreeMap<ValueId, Split>,
    demands: Vec<Vec<Demand>>,
    /// The place of each need among those of its value; without how deep it is, and whether a condition holds.
    seen: FxHashMap<(ValueId, Demand), usize>,
    pub roots: Vec<Root>,
    facts: Facts,
    simple: Simple,
    extents: Vec<Ix>,
    /// How often each value is used.
    uses: Vec<usize>,
    load: Vec<bool>,
    /// Only rearranges arrays: inputs, constants and values of `force`.
    layout: Vec<bool>,
    /// Computed from positions alone, cheaply: masks and the like.
    bare: Vec<bool>,
    /// Computed from weights, cheaply, and at least twice as wide as these: weights of 8 bits as floats.
    wide: Vec<Widened>,
    streams: BTreeMap<ValueId, Stream>,
    /// Values that a streamed product computes in parts, and its kernel.
    streamed: BTreeMap<ValueId, usize>,
}

/// The source that a value spreads along further axes, or the value itself.
fn in_own_shape(graph: &Graph, v: ValueId) -> ValueId {
    let Some((source, map)) = graph.def(v).and_then(|(node, _)| node.spread()) else { return v };
    let along: BTreeSet<AxisId> = map.coords.iter().flat_map(Ix::axes).collect();
    let mut long = graph.values[v].shape.iter().enumerate().filter(|(_, n)| !n.is_const(1));
    if long.any(|(d, _)| !along.contains(&AxisId(d as u32))) { in_own_shape(graph, source) } else { v }
}

/// Returns true if a node's computation depends on symbols, which are not known when the model is loaded.
fn symbolic(graph: &Graph, node: &Node) -> bool {
    let has = |ix: &Ix| ix.any_leaf(&mut |leaf| matches!(leaf, Ix::Val { .. }));
    let of_op = match &node.op {
        Op::Index(ix) => has(ix),
        Op::IndexMap(sources) => {
            sources.iter().any(|s| s.coords.iter().any(has) || s.when.conds.iter().any(|c| has(&c.lhs) || has(&c.rhs)))
        }
        Op::Gather(coords) | Op::Scatter { coords, .. } => {
            coords.iter().any(|c| matches!(c, crate::graph::ir::Coord::Ix(ix) if has(ix)))
        }
        // Loops run when the model does.
        Op::Repeat(_) => true,
        _ => false,
    };
    of_op || node.results.iter().any(|r| graph.values[*r].shape.iter().any(has))
}

/// The values that only rearrange arrays; those of `force` are arrays.
fn layouts(graph: &Graph, force: &BTreeSet<ValueId>) -> Vec<bool> {
    let mut layout = vec![true; graph.values.len()];
    for node in graph.nodes.values() {
        let of = match &node.op {
            Op::Constant(_) => true,
            Op::IndexMap(_) => node.values().all(|x| force.contains(&x) || layout[x.0 as usize]),
            _ => false,
        };
        node.results.iter().for_each(|r| layout[r.0 as usize] = of);
    }
    layout
}

impl<'a> Fusion<'a> {
    /// Nothing is computed when the model is loaded.
    pub fn at_run(&mut self) {
        self.load.fill(false);
    }

    pub fn new(graph: &'a Graph) -> Fusion<'a> {
        let mut load = vec![false; graph.values.len()];
        let mut bare = vec![false; graph.values.len()];
        for input in &graph.inputs {
            load[input.value.0 as usize] = input.role == Role::Parameter;
        }
        for node in graph.nodes.values() {
            let all = node.values().all(|v| load[v.0 as usize]) && !symbolic(graph, node);
            let cheap = match &node.op {
                Op::Elementwise(op) => op.cost() < 8,
                Op::Index(_) | Op::IndexMap(_) => true,
                _ => false,
            };
            for r in &node.results {
                load[r.0 as usize] = all;
                bare[r.0 as usize] = cheap && node.values().all(|v| bare[v.0 as usize]);
            }
        }
        let wide = widened(graph, &load);
        Fusion {
            graph,
            force: BTreeSet::new(),
            off: false,
            in_lines: false,
            quads: false,
            splits: BTreeMap::new(),
            wanted: BTreeMap::new(),
            demands: vec![vec![]; graph.values.len()],
            seen: FxHashMap::default(),
            roots: vec![],
            facts: graph.facts(),
            simple: Simple::default(),
            extents: vec![],
            uses: graph.uses(),
            load,
            layout: layouts(graph, &BTreeSet::new()),
            bare,
            wide,
            streams: BTreeMap::new(),
            streamed: BTreeMap::new(),
        }
    }

    /// Decides every value. Returns the roots in topological order, and the splits that would have let more be fused.
    pub fn run(mut self, log: &mut Log) -> (Vec<Root>, BTreeMap<ValueId, Split>) {
        self.layout = layouts(self.graph, &self.force);
        let outputs: BTreeSet<ValueId> = self.graph.outputs.iter().map(|o| o.value).collect();
        if !self.off {
            let graph = self.graph;
            let mut say = |v: ValueId, why: &str| log.skipped(format!("stream {}", graph.values[v].name), why);
            let mut streams = online_softmax::find(graph, !self.in_lines, &mut say);
            streams.retain(|_, s| s.inside.iter().all(|v| !self.force.contains(v)));
            streams.retain(|_, s| !self.is_thin(&s.outer) || self.fills_tiles(s));
            self.streams = streams;
        }
        let nodes: Vec<&Node> = self.graph.nodes.values().collect();
        for node in nodes.into_iter().rev() {
            let needs = |v: &ValueId| {
                outputs.contains(v) || self.streamed.contains_key(v) || !self.demands[v.0 as usize].is_empty()
            };
            let needed = node.results.iter().any(needs);
            if !needed || matches!(node.op, Op::Constant(_)) {
                continue;
            }
            let Some(&v) = node.results.first() else { continue };
            let name = &self.graph.values[v].name;
            if let Some(&root) = self.streamed.get(&v) {
                self.roots[root].members.push(v);
                log.applied(format!("{name} streamed into {}", self.graph.values[self.roots[root].value].name));
                continue;
            }
            let verdict = if outputs.contains(&v) {
                Err("it is a result of the model".to_string())
            } else if node.results.len() > 1 {
                Err("it has several results".to_string())
            } else {
                self.decide(v, node)
            };
            match verdict {
                Ok(root) => {
                    log.applied(format!("{name} into {}", self.graph.values[self.roots[root].value].name));
                }
                Err(why) => {
                    log.skipped(name.clone(), why);
                    self.materialise(v, node);
                }
            }
        }
        for (at, root) in self.roots.iter_mut().enumerate() {
            root.members.sort();
            root.members.dedup();
            if root.reduces {
                let again = |v: &ValueId| self.demands[v.0 as usize].iter().filter(|d| d.root == at).count() > 1;
                let dear = |v: &ValueId| match self.graph.def(*v) {
                    Some((node, _)) => matches!(node.op, Op::Elementwise(op) if op.cost() >= 8),
                    None => false,
                };
                root.keep = root.members.iter().copied().filter(|v| again(v) && dear(v)).collect();
            }
        }
        self.roots.reverse();
        (self.roots, self.wanted)
    }

    fn numel(&self, v: ValueId) -> i64 {
        guess(&self.graph.numel(&self.graph.values[v].shape))
    }

    /// Returns the kernel that computes the value inside itself, or the reason why the value gets an array.
    fn decide(&mut self, v: ValueId, node: &Node) -> Result<usize, String> {
        let demands = self.demands[v.0 as usize].clone();
        if self.force.contains(&v) {
            return Err("a kernel could not hold it".into());
        }
        let Some(first) = demands.first() else { return Err("nothing needs it".into()) };
        if demands.iter().any(|d| d.depth > DEEPEST) {
            return Err(format!("the kernel computes {DEEPEST} values from it, one after the other"));
        }
        if demands.iter().any(|d| d.coords.iter().map(Ix::size).sum::<usize>() > LONGEST) {
            return Err("the kernel would read it at coordinates that are too long".into());
        }
        if matches!(&node.op, Op::IndexMap(s) if s.len() > MOST_SOURCES) {
            return Err(format!("it chooses among more than {MOST_SOURCES} sources"));
        }
        if is_turned(node) && demands.iter().any(|d| d.folded && d.coords.iter().any(|c| c.axes().len() > 1)) {
            return Err("windows of a convolution would read its source across".into());
        }
        if is_turned(node) && self.load[v.0 as usize] && self.is_filter(node, &demands) {
            return Err("filters are turned once, when the model is loaded".into());
        }
        if self.across_a_row(v, node).is_some() {
            return Err("bytes that one row is multiplied by are turned once, when the model is loaded".into());
        }
        let roots: BTreeSet<usize> = demands.iter().map(|d| d.root).collect();
        let few = demands.len() <= MOST_DEMANDS || node.values().count() <= 1;
        let free = matches!(node.op, Op::Index(_)) || node.values().next().is_none();
        if self.off && !free {
            return Err("fusion is off".into());
        }
        let crossing = self.load[v.0 as usize] && roots.iter().any(|r| !self.roots[*r].load);
        let repeats = self.repeats(v, node);
        let widened = self.wide[v.0 as usize];
        // Where a product has many rows, weights of several kinds are unpacked once for all of them.
        let in_folds = roots.iter().all(|r| self.roots[*r].products.is_empty());
        let wide = crossing && widened.wide && (in_folds || !widened.of_kinds);
        if crossing
            && !free
            && !self.bare[v.0 as usize]
            && !self.is_layout(v)
            && !repeats
            && !wide
            && !self.is_part(node)
        {
            return Err("it is computed once, when the model is loaded".into());
        }
        match &node.op {
            Op::Index(_) => {}
            Op::IndexMap(_) | Op::Elementwise(_) if wide && few => {}
            Op::IndexMap(_) if free || crossing && (repeats || self.is_part(node)) => {}
            Op::IndexMap(_) | Op::Elementwise(_) | Op::Gather(_) if !few => {
                return Err(format!("it is needed in {} places", demands.len()));
            }
            Op::IndexMap(_) | Op::Elementwise(_) | Op::Gather(_) => self.pointwise(v, node, &demands, &roots)?,
            Op::Reduce { op, axes } => {
                if roots.len() > 1 {
                    return Err("several kernels need it".into());
                }
                if self.in_lines && demands.iter().any(|d| self.windows_across(node, axes, d)) {
                    return Err("its windows run along another axis than the kernel's result".into());
                }
                match self.product_of(v).filter(|_| *op == ReduceOp::Dot) {
                    Some(product) => self.product(product, &demands)?,
                    None => self.reduction(v, &demands)?,
                }
            }
            _ => return Err("it is computed as a whole".into()),
        }
        let root = first.root;
        for d in &demands {
            self.roots[d.root].members.push(v);
            if !self.stream(v, d) {
                self.descend(node, d);
            }
        }
        Ok(root)
    }

    /// Returns true if a value repeats the elements of another one: weights for each element of a batch. Its source is
    /// worth an array, and the value is not.
    fn repeats(&self, v: ValueId, node: &Node) -> bool {
        match (&node.op, node.values().next()) {
            (Op::IndexMap(sources), Some(source)) => sources.len() == 1 && self.numel(v) > self.numel(source),
            _ => false,
        }
    }

    /// Returns true if a map reads some lines of its source where they lie: those at one place along an axis before the last. Its source
    /// is worth an array, and the lines are not.
    fn is_part(&self, node: &Node) -> bool {
        let Some((of, source)) = node.spread() else { return false };
        let axes: Vec<AxisId> = source.coords.iter().flat_map(Ix::axes).collect();
        let shape = &self.graph.values[of].shape;
        let fixed = source.coords.iter().zip(shape).any(|(c, n)| c.as_const().is_some() && !n.is_const(1));
        let lines = matches!(source.coords.last(), Some(Ix::Axis(_)));
        fixed && lines && axes.is_sorted()
    }

    /// Returns true if a value only rearranges an array.
    pub fn is_layout(&self, v: ValueId) -> bool {
        self.layout[v.0 as usize]
    }

    /// How often a need computes the value.
    fn count(&self, d: &Demand) -> i64 {
        let mut axes: BTreeSet<AxisId> = BTreeSet::new();
        for c in &d.coords {
            axes.extend(c.axes());
        }
        // A value that depends on none of a reduction's terms is computed before its loop.
        if axes.iter().any(|a| !self.roots[d.root].axes.contains(a)) {
            axes.extend(&d.around);
        }
        let product = axes
            .iter()
            .filter_map(|a| self.extents.get(a.0 as usize))
            .fold(1i64, |n, e| n.saturating_mul(guess(e).max(1)));
        let (some, all) = d.share;
        (product / all).saturating_mul(some).saturating_mul(d.repeats)
    }

    /// Returns true if a node converts integers to a type of `size` bytes that has more bytes than theirs.
    fn widens(&self, node: &Node, size: i64) -> bool {
        matches!(node.op, Op::Elementwise(ScalarOp::ExtI { .. }))
            && node.values().all(|x| (self.graph.values[x].elem.dtype.bytes() as i64) < size)
    }

    fn pointwise(&self, v: ValueId, node: &Node, demands: &[Demand], roots: &BTreeSet<usize>) -> Result<(), String> {
        let numel = self.numel(v).max(1);
        let size = self.graph.values[v].elem.dtype.bytes() as i64;
        let times: i64 = demands.iter().map(|d| self.count(d)).fold(0, i64::saturating_add);
        let layout = matches!(node.op, Op::IndexMap(_));
        if layout && self.is_layout(v) || self.bare[v.0 as usize] {
            return Ok(());
        }
        // A product converts integers as it reads them: a wider array would be longer to read, and hide the type that bytes are
        // multiplied in. (1024^3 of int8 takes 0.45 of the time on a processor with VNNI.)
        if self.widens(node, size) && roots.iter().all(|r| !self.roots[*r].products.is_empty()) {
            return Ok(());
        }
        if roots.len() > 1 && self.holds_product(v, 8) {
            return Err("several kernels need it, and it follows a matrix product".into());
        }
        if let Some(sum) = self.stored_sum(v, node, demands) {
            return Err(format!("it follows {}, which is stored in any case", self.graph.values[sum].name));
        }
        let bytes: i64 = node
            .values()
            .filter(|x| self.numel(*x) * 2 > numel)
            .map(|x| self.graph.values[x].elem.dtype.bytes() as i64)
            .sum();
        let work = match &node.op {
            Op::Elementwise(op) => op.cost(),
            Op::Gather(_) => 8,
            // Each source is looked at.
            Op::IndexMap(sources) if sources.len() > 1 => 4 * sources.len() as i64,
            _ => 0,
        };
        // A transcendental that is needed again in the same row is kept there.
        let kept = roots.len() == 1 && work >= 8 && self.row_is_short(v);
        let most = demands.iter().map(|d| self.count(d)).max().unwrap_or(0);
        let again = if kept { most } else { times };
        let inline = again.saturating_mul(work + bytes);
        let reads = times.min(numel.saturating_mul(demands.len() as i64));
        let store =
            numel.saturating_mul(work + bytes + size).saturating_add(reads.saturating_mul(size)).saturating_add(START);
        if inline > store {
            return Err(format!("computing it where it is needed costs {inline} bytes' time, storing it {store}"));
        }
        Ok(())
    }

    /// Returns true if the last axis has a known extent that is short enough to keep a row.
    fn row_is_short(&self, v: ValueId) -> bool {
        let last = self.graph.values[v].shape.last().and_then(Ix::as_const);
        last.is_some_and(|n| n > 1 && n as u64 <= MOST_KEPT)
    }

    /// Returns true if a value is computed from a matrix product by operations on single elements.
    fn holds_product(&self, v: ValueId, left: usize) -> bool {
        let (mut now, mut seen) = (vec![v], BTreeSet::new());
        for _ in 0..left {
            let mut next = vec![];
            for v in now {
                let Some((node, _)) = self.graph.def(v) else { continue };
                match &node.op {
                    Op::Reduce { op: ReduceOp::Dot, .. } => return true,
                    Op::Elementwise(_) => next.extend(node.values().filter(|x| seen.insert(*x))),
                    Op::IndexMap(_) if seen.len() < DEEPEST => {
                        let all = |x: &ValueId| self.numel(*x) >= self.numel(v);
                        next.extend(node.values().filter(|x| all(x) && seen.insert(*x)));
                    }
                    _ => {}
                }
            }
            now = next;
        }
        false
    }

    /// A product that is better computed as sums along its rows: one row or column, k contiguous in both operands. A worker unpacks
    /// weights in registers for a few rows too: as blocks in a cache they would be used seldom.
    pub fn is_thin(&self, p: &Product) -> bool {
        let one = |axes: &[usize]| p.extent(self.graph, axes).is_const(1);
        let few = |axes: &[usize], other: usize| {
            let rows = p.extent(self.graph, axes).as_const();
            self.in_lines && rows.is_some_and(|n| n <= FEW_TOGETHER) && self.is_unpacked(p.dot, other)
        };
        let small = |axes: &[usize]| p.extent(self.graph, axes).as_const();
        let tiny = match (small(&p.m), small(&p.n), small(&p.k)) {
            (Some(m), Some(n), Some(k)) => m * n < 16 || k < 4 && m * n * k < 1 << 12,
            _ => false,
        };
        one(&p.m) || one(&p.n) || tiny || few(&p.m, 1 - p.a) || few(&p.n, p.a)
    }

    /// The roles of a product that gets blocks: a streamed one may have one row.
    fn product_of(&self, v: ValueId) -> Option<Product> {
        match self.streams.get(&v) {
            Some(s) => Some(s.outer.clone()),
            None => roles::product(self.graph, v).filter(|p| !self.is_thin(p)),
        }
    }

    /// True if a streamed product of one row is worth the tiles of a matrix unit, though it fills one row of each: its operands have elements
    /// of two bytes, in rows of whole tiles, keys and values are copied as they lie in memory, and blocks can share the keys, since their
    /// number is known.
    fn fills_tiles(&self, s: &Stream) -> bool {
        let Some((inner, _)) = s.inner.as_ref().filter(|_| s.outer.m.is_empty()) else { return false };
        let known = |p: &Product, axes: &[usize]| p.extent(self.graph, axes).as_const();
        let of_two_bytes = |v: ValueId| self.graph.values[v].elem.dtype.bits() == 16;
        let fits = |p: &Product| {
            let Some((node, _)) = self.graph.def(p.dot) else { return false };
            let copied = matches!(node.args.get(1 - p.a), Some(Arg::Value(v)) if self.lies_in_memory(*v));
            copied && node.values().all(of_two_bytes)
        };
        let whole = |n: Option<i64>| n.is_some_and(|n| n % TILE == 0);
        fits(&s.outer)
            && fits(inner)
            && known(&s.outer, &s.outer.k).is_some()
            && whole(known(&s.outer, &s.outer.n))
            && whole(known(inner, &inner.k))
    }

    /// True if a value only rearranges an array, as far as that is known before any kernel is.
    fn lies_in_memory(&self, v: ValueId) -> bool {
        let identity = (0..self.graph.values[v].shape.len()).map(crate::graph::ir::axis).collect();
        let (of, _) = online_softmax::through_maps(self.graph, v, identity, &mut vec![]);
        let given = self.graph.outputs.iter().any(|o| o.value == of);
        given
            || self.graph.def(of).is_none_or(|(node, _)| {
                !matches!(node.op, Op::IndexMap(_) | Op::Elementwise(_) | Op::Gather(_) | Op::Index(_))
            })
    }

    /// Returns true if a reduction is over windows along lines of memory, and the kernel's result runs along another axis.
    fn windows_across(&self, node: &Node, summed: &[u32], d: &Demand) -> bool {
        let root = &self.roots[d.root];
        let shape = &self.graph.values[root.value].shape;
        let along = (0..root.axes.len().min(shape.len())).rfind(|at| !shape[*at].is_const(1)).map(|at| root.axes[at]);
        let map = node.values().next().and_then(|x| self.graph.def(x)).map(|(map, _)| &map.op);
        let Some((Op::IndexMap(sources), along)) = map.zip(along) else { return false };
        let is_window = |c: &Ix| c.axes().len() > 1 && c.axes().iter().any(|a| summed.contains(&a.0));
        let Some(last) = sources.iter().find_map(|s| s.coords.last()).filter(|c| is_window(c)) else { return false };
        let own = last.axes().into_iter().filter(|a| !summed.contains(&a.0));
        let at: Vec<&Ix> = own.filter_map(|a| d.coords.get(a.0 as usize)).collect();
        !at.is_empty() && at.iter().all(|c| !c.axes().is_empty() && !c.has_axis(along))
    }

    fn reduction(&mut self, v: ValueId, demands: &[Demand]) -> Result<(), String> {
        let root = demands[0].root;
        if !self.roots[root].products.is_empty() {
            return Err("the kernel's blocks do not hold whole rows".into());
        }
        if demands.iter().any(|d| d.masked) {
            return Err("it is needed only under a condition".into());
        }
        if demands.iter().any(|d| d.operand) {
            return Err("a matrix product needs it".into());
        }
        let own: BTreeSet<AxisId> = self.roots[root].axes.iter().copied().collect();
        let mut first = BTreeSet::new();
        let mut product = 1i64;
        for d in demands {
            let mut axes: BTreeSet<AxisId> = BTreeSet::new();
            for c in &d.coords {
                axes.extend(c.axes());
            }
            if !axes.is_subset(&own) {
                return Err("another reduction needs it for each of its terms".into());
            }
            product = axes.iter().filter_map(|a| self.extents.get(a.0 as usize)).map(guess).product();
            let places = self.roots[root].axes.iter().enumerate().filter(|(_, a)| axes.contains(a));
            first.extend(places.map(|(d, _)| d));
        }
        if product > self.numel(v).max(1) {
            if let Some(split) = self.group(root, v, demands) {
                self.wanted.insert(self.roots[root].value, split);
            }
            return Err("the kernel would compute it again and again".into());
        }
        let have = &self.roots[root].first;
        if self.roots[root].reduces && !(first.is_subset(have) || have.is_subset(&first)) {
            return Err("the kernel's reductions are over rows in another direction".into());
        }
        // Threads share the rows; a reduction that leaves few rows would be computed by one thread, or by each.
        let outer: BTreeSet<usize> =
            if self.roots[root].reduces { first.intersection(have).copied().collect() } else { first.clone() };
        let extents = Split::extents(self.roots[root].split, &self.graph.values[self.roots[root].value].shape);
        let rows: i64 = outer.iter().filter_map(|d| extents.get(*d)).map(guess).product();
        let total = self.numel(self.roots[root].value).max(self.terms(v));
        if !shares_out(rows, total) {
            return Err(format!("its {rows} rows are too few to share out"));
        }
        let root = &mut self.roots[root];
        root.first.extend(first);
        root.reduces = true;
        Ok(())
    }

    /// The axis of a kernel's result to split, if a reduction depends on it only through a quotient, and otherwise only
    /// on axes before it.
    fn group(&self, root: usize, v: ValueId, demands: &[Demand]) -> Option<Split> {
        let root = &self.roots[root];
        let shape = &self.graph.values[root.value].shape;
        if !root.products.is_empty() || root.split.is_some() || !root.parts.is_empty() || shape.len() != root.axes.len()
        {
            return None;
        }
        let mut found: Option<Split> = None;
        for c in demands.iter().flat_map(|d| &d.coords) {
            match c {
                Ix::Axis(_) | Ix::Const(_) => {}
                Ix::FloorDiv(a, by) => {
                    let (Ix::Axis(a), Some(inner)) = (&**a, by.as_const()) else { return None };
                    let axis = root.axes.iter().position(|own| own == a)?;
                    let split = Split { axis, inner };
                    let whole = shape[axis].as_const().is_some_and(|n| n % inner == 0 && n > inner);
                    if !whole || found.is_some_and(|other| other != split) {
                        return None;
                    }
                    found = Some(split);
                }
                _ => return None,
            }
        }
        let split = found?;
        // Apart from the group, the reduction depends only on axes before it.
        let before = |c: &Ix| match c {
            Ix::Axis(a) => root.axes.iter().position(|own| own == a).is_some_and(|at| at < split.axis),
            _ => true,
        };
        let enough = shares_out(self.numel(v), self.terms(v));
        (enough && demands.iter().flat_map(|d| &d.coords).all(before)).then_some(split)
    }

    /// Elements that a reduction reads.
    fn terms(&self, v: ValueId) -> i64 {
        match self.graph.def(v).and_then(|(n, _)| n.values().next()) {
            Some(x) => self.numel(x),
            None => 1,
        }
    }

    fn product(&mut self, p: Product, demands: &[Demand]) -> Result<(), String> {
        let d = &demands[0];
        if self.roots[d.root].split.is_some() {
            return Err("the kernel's loops are over groups of an axis".into());
        }
        if demands.iter().any(|x| x.masked) {
            return Err("it is needed only under a condition".into());
        }
        if demands.iter().any(|x| x.operand) {
            return Err("another matrix product needs it".into());
        }
        if demands.iter().any(|x| x.folded) || self.roots[d.root].reduces {
            return Err("a reduction over its columns follows".into());
        }
        if demands.iter().any(|x| x.coords != d.coords) {
            return Err("it is needed at several places".into());
        }
        let root = &self.roots[d.root];
        let extents: Vec<Ix> = self.graph.values[root.value].shape.clone();
        if self.numel(root.value) != self.numel(p.dot) {
            return Err("its elements are needed more than once, or not all".into());
        }
        // The coordinates are over the root's axes; number those from 0.
        let own = &root.axes;
        let local: Vec<Ix> = d
            .coords
            .iter()
            .map(|c| c.subst_axes(&mut |a| own.iter().position(|b| *b == a).map(crate::graph::ir::axis)))
            .collect();
        let of = &self.graph.values[p.dot].shape;
        let Some(places) = roles::invert(&local, &extents, of, &self.graph.facts()) else {
            return Err("its elements are needed in an order that cannot be turned around".into());
        };
        if let Some(other) = root.products.first() {
            let same = |a: &[usize], b: &[usize]| a == b;
            let fits = same(&other.batch, &p.batch)
                && same(&other.m, &p.m)
                && same(&other.n, &p.n)
                && root.places == places
                && self.graph.values[other.dot].shape == self.graph.values[p.dot].shape
                && other.extent(self.graph, &other.k) == p.extent(self.graph, &p.k);
            if !fits {
                return Err("the kernel computes a product of another shape".into());
            }
        }
        let streamed = self.streams.contains_key(&p.dot);
        let root = &mut self.roots[d.root];
        if root.stream.is_some() || streamed && !root.products.is_empty() {
            return Err("a streamed product has a kernel of its own".into());
        }
        root.products.push(p);
        root.places = places;
        Ok(())
    }

    fn materialise(&mut self, v: ValueId, node: &Node) {
        let shape = self.graph.values[v].shape.clone();
        let split = self.splits.get(&v).copied();
        let extents = Split::extents(split, &shape);
        let axes: Vec<AxisId> = extents.iter().map(|n| self.axis(n)).collect();
        let at = self.roots.len();
        let places = axes.iter().zip(&extents);
        let places = places.map(|(a, n)| if n.is_const(1) { Ix::Const(0) } else { Ix::Axis(*a) }).collect();
        let coords = Split::coords(split, places);
        let mut root = Root {
            value: v,
            load: self.load[v.0 as usize],
            products: vec![],
            places: vec![],
            first: BTreeSet::new(),
            split,
            members: node.results.clone(),
            keep: vec![],
            stream: None,
            parts: concat::of(self.graph, v).unwrap_or_default(),
            panels: self.panels(v, node),
            axes,
            reduces: false,
        };
        match &node.op {
            Op::Reduce { op, .. } => match self.product_of(v).filter(|_| *op == ReduceOp::Dot) {
                Some(p) => {
                    root.places = (0..shape.len()).map(crate::graph::ir::axis).collect();
                    root.products.push(p);
                }
                None => {
                    root.first = (0..extents.len()).filter(|d| !extents[*d].is_const(1)).collect();
                    root.reduces = true;
                }
            },
            Op::Scan { .. } | Op::Sort { .. } | Op::Scatter { .. } | Op::Repeat(_) => {
                // Computed as a whole, from arrays. An operand that a scatter reads only once, or that is merged, may
                // be an array in another order, or spread along further axes.
                let scatter = matches!(node.op, Op::Scatter { .. } | Op::Sort { runs: Some(_), .. });
                for x in node.values() {
                    let x = if scatter { in_own_shape(self.graph, x) } else { x };
                    let ready = |n: &Node| matches!(n.op, Op::Constant(_)) || scatter && self.layout[x.0 as usize];
                    if self.graph.def(x).is_some_and(|(n, _)| !ready(n)) {
                        self.force.insert(x);
                    }
                }
            }
            _ => {}
        }
        self.roots.push(root);
        let d = Demand {
            root: at,
            coords,
            masked: false,
            share: (1, 1),
            folded: false,
            repeats: 1,
            operand: false,
            around: vec![],
            depth: 0,
        };
        if self.roots[at].products.is_empty() || !self.stream(v, &d) {
            self.descend(node, &d);
        }
    }

    /// Takes a streamed product into a kernel, with all values that it computes in parts. Returns false if it is not
    /// one.
    fn stream(&mut self, v: ValueId, d: &Demand) -> bool {
        let Some(s) = self.streams.get(&v).cloned() else { return false };
        for x in &s.inside {
            self.streamed.insert(*x, d.root);
        }
        let rows = guess(&s.outer.extent(self.graph, &s.outer.m)).max(1);
        let numel = self.numel(v);
        for &x in &s.leaves {
            let shape = self.graph.values[x].shape.clone();
            let coords =
                shape.iter().map(|n| if n.is_const(1) { Ix::Const(0) } else { Ix::Axis(self.axis(n)) }).collect();
            // The side of the rows is read once, the other side once for each block of rows.
            let of_rows = self.numel(x) == numel;
            let repeats = if of_rows { 1 } else { (rows / 64).max(1) };
            let (root, depth) = (d.root, d.depth + s.inside.len());
            let share = (1, 1);
            let need = Demand {
                root,
                coords,
                masked: true,
                share,
                folded: true,
                repeats,
                operand: true,
                around: vec![],
                depth,
            };
            self.need(Some(&Arg::Value(x)), need);
        }
        self.roots[d.root].stream = Some(s);
        true
    }
}

/// Returns true if a map only moves the last axis of its source before others: see `graph::channels_first`.
fn is_turned(node: &Node) -> bool {
    let Op::IndexMap(sources) = &node.op else { return false };
    let [source] = &sources[..] else { return false };
    let own = |c: &Ix| matches!(c, Ix::Axis(_)) || c.is_const(0);
    let last = source.coords.last();
    let moved = (0..source.coords.len().saturating_sub(1)).any(|d| last == Some(&crate::graph::ir::axis(d)));
    source.when.is_always() && moved && source.coords.iter().all(own)
}

fn guess(ix: &Ix) -> i64 {
    ix.eval(&|leaf| match leaf {
        Ix::Const(c) => *c,
        _ => GUESS,
    })
}
