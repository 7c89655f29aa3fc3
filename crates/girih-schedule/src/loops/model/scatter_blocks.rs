//! Scatters turned around: each element of the result looks for its own updates.
//!
//! Updates that may meet cannot run in parallel. Where it costs less, every element goes over all of them instead:
//!
//! ```text
//! for i in 0..64: free                              each alone: a fold over all updates, of which those of others count nothing
//!   local acc = -0.0
//!   for f in 0..5000: reduce combine add(acc)
//!     acc <- select(index[f] == i, updates[f], -0.0) + acc
//!   out[i] = x[i] + acc
//! ```
//!
//! Where an index is the same for a row of elements, a row first lists its updates, stretch by stretch of the indices
//! (a scan counts them), and then each element of the row folds the listed updates in their order:
//!
//! ```text
//! for i in 0..1024: free                            by lists
//!   for s in 0..8: serial
//!     places[f + 1] = how many of index[s*2048 ..= s*2048 + f] are i
//!     list[places[f]] = s*2048 + f                  where places[f + 1] is another number
//!     for c in 0..512: free
//!       for j in 0..places[2048]: serial
//!         acc[c] = updates[list[j], c] + acc[c]
//! ```
//!
//! Where updates replace, an element takes only the last one: that at the greatest position that is the element's own.

use super::builder::{NestBuilder, Result, fold_of};
use super::scan_sort_scatter::{first, fold_of_scatter};
use super::sort_rows::{constant, val};
use crate::graph::ValueId;
use crate::graph::ir::{Arg, Coord, Graph, Node, Op, ReduceOp, ScatterOp};
use crate::index::{Ix, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

/// Positions that a row examines together: their places and the row's list lie in shared memory.
const STRETCH: i64 = 2048;
/// Elements of a row that a block has at most.
const COLUMNS: i64 = 4096;
/// The most positions that are counted in 32 bits.
const MOST: i64 = 1 << 30;

/// How a scatter is computed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Way {
    /// One update after the other.
    InOrder,
    Alone,
    Lists,
}

/// The roles of a scatter's coordinates.
struct Roles {
    /// Axes of the updates that are axes of the result too: along them no two updates meet.
    own: Vec<(usize, usize)>,
    /// The other axes of the updates, and of the result.
    met: Vec<usize>,
    keys: Vec<usize>,
    /// True if the indices are the same along the own axes.
    rows: bool,
    /// Positions along the axes where updates meet, elements of the result, and elements of a row.
    positions: i64,
    elements: i64,
    columns: i64,
    row: Row,
}

/// The elements of a row that one block has: along the last of the result's own axes, and perhaps an equal part of the
/// axis before.
struct Row {
    whole: Vec<usize>,
    part: Option<(usize, i64)>,
    columns: i64,
}

impl Row {
    fn of(own: &[(usize, usize)], shape: &[i64]) -> Row {
        let mut row = Row { whole: vec![], part: None, columns: 1 };
        for (_, of) in own.iter().rev() {
            let room = COLUMNS / row.columns;
            if shape[*of] > room {
                let part = (1..=room).rev().find(|n| shape[*of] % n == 0).unwrap_or(1);
                row.columns *= part;
                row.part = (part > 1).then_some((*of, part));
                break;
            }
            row.columns *= shape[*of].max(1);
            row.whole.insert(0, *of);
        }
        row
    }
}

/// The costs of each way on a GPU of some hundred multiprocessors: cycles of one update after the other by one block,
/// where each waits for the store of the one before; comparisons that all threads make in a cycle, with indices from L2;
/// cycles of a step of a block's threads.
const UPDATE: i64 = 500;
const COMPARISONS: i64 = 350;
const STEP: i64 = 100;
const MULTIPROCESSORS: i64 = 128;
const START: i64 = 3000;

impl Roles {
    fn of(graph: &Graph, node: &Node, coords: &[Coord]) -> Option<Roles> {
        let (Some(Arg::Value(updates)), &[root]) = (node.args.last().copied(), &node.results[..]) else { return None };
        let extents = |v: ValueId| graph.values[v].shape.iter().map(Ix::as_const).collect::<Option<Vec<i64>>>();
        let (from, shape) = (extents(updates)?, extents(root)?);
        let uses = |d: usize| {
            let in_coord = |c: &&Coord| matches!(c, Coord::Ix(ix) if ix.has_axis(crate::index::AxisId(d as u32)));
            coords.iter().filter(in_coord).count()
        };
        let mut own = vec![];
        for (to, c) in coords.iter().enumerate() {
            if let Coord::Ix(Ix::Axis(a)) = c
                && uses(a.0 as usize) == 1
                && from.get(a.0 as usize).is_some_and(|n| shape.get(to).is_some_and(|m| n <= m))
            {
                own.push((a.0 as usize, to));
            }
        }
        let met: Vec<usize> = (0..from.len()).filter(|d| !own.iter().any(|(a, _)| a == d)).collect();
        let keys = (0..shape.len()).filter(|d| !own.iter().any(|(_, to)| to == d)).collect();
        let product = |all: Vec<i64>| all.into_iter().try_fold(1i64, i64::checked_mul);
        let positions = product(met.iter().map(|d| from[*d]).collect())?;
        let elements = product(shape.clone())?;
        let columns = product(own.iter().map(|(d, _)| from[*d]).collect())?;
        let whole = own.iter().all(|(d, to)| from[*d] == shape[*to]);
        let same = |c: &Coord| match c {
            Coord::Arg(i) => {
                own.iter().all(|(d, _)| node.args.get(*i as usize).is_some_and(|a| same_along(graph, *a, *d)))
            }
            Coord::Ix(_) => true,
        };
        let rows = whole && coords.iter().all(same);
        let row = Row::of(&own, &shape);
        (0..MOST).contains(&positions).then_some(Roles { own, met, keys, rows, positions, elements, columns, row })
    }

    /// The cheapest way.
    fn way(&self, op: ScatterOp) -> (Way, [i64; 3]) {
        let Roles { positions, elements, columns, .. } = *self;
        let wide = |n: i64, by: i64| n.saturating_add(by - 1) / by;
        // One block copies all elements, too.
        let in_order =
            positions.saturating_mul(UPDATE).saturating_mul(wide(columns, 256).max(1)).saturating_add(elements / 8);
        let looked_at = if op == ScatterOp::Set && self.rows { elements / columns.max(1) } else { elements };
        let alone = (looked_at.saturating_mul(positions) / COMPARISONS)
            .max(wide(positions, 256).saturating_mul(STEP))
            .saturating_add(elements / COMPARISONS + START);
        let blocks = elements / self.row.columns;
        let stretches = wide(positions, STRETCH).max(1);
        let lists = match self.rows && op != ScatterOp::Set && self.row.columns > 1 {
            true => wide(blocks, MULTIPROCESSORS).saturating_mul(stretches * STRETCH / 2 + START).saturating_add(START),
            false => i64::MAX,
        };
        let least = in_order.min(alone).min(lists);
        let way = match least {
            n if n == in_order => Way::InOrder,
            n if n == alone => Way::Alone,
            _ => Way::Lists,
        };
        (way, [in_order, alone, lists])
    }
}

/// Returns true if the elements of an operand are the same along an axis.
pub(super) fn same_along(graph: &Graph, arg: Arg, axis: usize) -> bool {
    let Arg::Value(v) = arg else { return true };
    if graph.values[v].shape.get(axis).is_none_or(|n| n.is_const(1)) {
        return true;
    }
    match graph.def(v).map(|(node, _)| (&node.op, &node.args[..])) {
        Some((Op::IndexMap(sources), _)) => {
            let axis = crate::index::AxisId(axis as u32);
            sources.iter().all(|s| s.coords.iter().all(|c| !c.has_axis(axis)) && s.when.conds.is_empty())
        }
        Some((Op::Elementwise(_), args)) => args.iter().all(|a| same_along(graph, *a, axis)),
        _ => false,
    }
}

/// How a scatter is computed by blocks of threads, for the trace.
pub(super) fn text(graph: &Graph, node: &Node) -> Option<String> {
    let Op::Scatter { coords, op } = &node.op else { return None };
    let roles = Roles::of(graph, node, coords)?;
    let (way, costs) = roles.way(*op);
    let name = node.results.first().map_or("", |v| &graph.values[*v].name);
    let how = match way {
        Way::InOrder => "its updates are made in order",
        Way::Alone => "each of its elements looks at all updates",
        Way::Lists => "each of its rows lists its updates",
    };
    let cost = |n: i64| if n == i64::MAX { "none".to_string() } else { n.to_string() };
    let [in_order, alone, lists] = costs.map(cost);
    Some(format!("{name}: {how} (cycles: in order {in_order}, each element {alone}, lists {lists})"))
}

/// Emits a scatter in whose kernel no two threads update the same element; does nothing if making the updates in order
/// costs less.
pub(super) fn write(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId]) -> Result<bool> {
    let Op::Scatter { coords, op } = &node.op else { return Ok(false) };
    let (Some(roles), Some(Arg::Value(updates))) = (Roles::of(e.graph, node, coords), node.args.last().copied()) else {
        return Ok(false);
    };
    let (x, root) = (first(node)?, node.results[0]);
    let elem = e.graph.values[root].elem;
    let way = roles.way(*op).0;
    let fold = match fold_of_scatter(*op) {
        Some(reduce) => fold_of(reduce, elem)?.0,
        None => fold_of(ReduceOp::Max, crate::graph::Elem::I64)?.0,
    };
    let of = if *op == ScatterOp::Set { DType::I64 } else { elem.dtype };
    let Some(neutral) = fold.neutral(of).filter(|_| way != Way::InOrder && elem.dtype.bits() != 4) else {
        return Ok(false);
    };
    let neutral = if *op == ScatterOp::Set { constant(DType::I64, u64::MAX) } else { constant(of, neutral) };
    let shape = e.graph.values[root].shape.clone();
    let from = e.graph.values[updates].shape.clone();
    let mut s = Scatter { e, node, at: coords, roles, x, root, updates, shape, from, fold, of, neutral, out: outs[0] };
    s.checks()?;
    match way {
        Way::Lists => s.lists()?,
        _ if *op == ScatterOp::Set => s.last_ones()?,
        _ => s.alone()?,
    }
    s.e.close_to(0);
    Ok(true)
}

struct Scatter<'e, 'g> {
    e: &'e mut NestBuilder<'g>,
    node: &'e Node,
    at: &'e [Coord],
    roles: Roles,
    x: ValueId,
    root: ValueId,
    updates: ValueId,
    shape: Vec<Ix>,
    from: Vec<Ix>,
    fold: ScalarOp,
    /// The type of the folded values, and the neutral value.
    of: DType,
    neutral: Opnd,
    out: ValId,
}

impl Scatter<'_, '_> {
    /// All indices lie inside the result. The check has a nest of its own, since an element that looks for its own
    /// updates also meets those of others.
    fn checks(&mut self) -> Result<()> {
        if !self.at.iter().any(|c| matches!(c, Coord::Arg(_))) {
            return Ok(());
        }
        let rows = self.roles.rows;
        let axes: Vec<usize> = (0..self.from.len()).filter(|d| !rows || self.roles.met.contains(d)).collect();
        let mut place = vec![Ix::Const(0); self.from.len()];
        self.e.open_axes("u", &axes, &self.from, LoopKind::Free, &mut place);
        for (d, c) in self.at.iter().enumerate() {
            if let Coord::Arg(i) = c {
                self.e.index_operand(self.node, *i, &place, self.shape[d].clone())?;
            }
        }
        self.e.close_to(0);
        Ok(())
    }

    /// The place of the update at a position along the axes where updates meet, and at an element of the result.
    fn place(&self, position: &Ix, to: &[Ix]) -> Vec<Ix> {
        let mut place = vec![Ix::Const(0); self.from.len()];
        let extents: Vec<Ix> = self.roles.met.iter().map(|d| self.from[*d].clone()).collect();
        for (d, ix) in self.roles.met.iter().zip(position.unravel(&extents)) {
            place[*d] = ix;
        }
        for (d, of) in &self.roles.own {
            place[*d] = to[*of].clone();
        }
        place
    }

    /// The conditions under which there are updates along the own axes.
    fn within(&self, to: &[Ix]) -> Vec<Cond> {
        let own = self.roles.own.iter().filter(|(d, of)| self.from[*d] != self.shape[*of]);
        own.map(|(d, of)| Cond::new(to[*of].clone(), Cmp::Lt, self.from[*d].clone())).collect()
    }

    /// The mask under which the update at a position belongs to an element; it may be read where `conds` hold.
    fn mine(&mut self, place: &[Ix], to: &[Ix], mut conds: Vec<Cond>) -> Result<Mask> {
        self.e.mask = Mask { conds: conds.clone(), vals: vec![] };
        for (d, c) in self.at.iter().enumerate() {
            if !self.roles.keys.contains(&d) {
                continue;
            }
            let ix = match c {
                Coord::Ix(ix) => ix.at_coords(place),
                Coord::Arg(i) => {
                    let arg = self.node.args.get(*i as usize).copied().unwrap_or(Arg::Absent);
                    let zext = matches!(arg, Arg::Value(v) if self.e.graph.values[v].elem.unsigned);
                    match self.e.operand(arg, place)? {
                        Opnd::Val(val) => Ix::Val { val, zext },
                        Opnd::Const { dtype, bits } => Ix::Const(crate::num::convert::sign_extend(dtype, bits)),
                    }
                }
            };
            conds.push(Cond::new(ix, Cmp::Eq, to[d].clone()));
        }
        self.e.mask = Mask::default();
        Ok(Mask { conds, vals: vec![] })
    }

    fn test(&mut self, mask: Mask) -> Opnd {
        let here = self.e.depth();
        self.e.define("mine", DType::I1, here, |dst| Stmt::Test { dst, mask })
    }

    /// Folds, over all positions, the result of `own` where a position is an element's own.
    fn folded(&mut self, to: &[Ix], own: impl FnOnce(&mut Self, &Ix, &[Ix], &Mask) -> Result<Opnd>) -> Result<Opnd> {
        let at = self.e.depth();
        let acc = self.e.local("acc", self.of, vec![], at);
        self.e.push_here(Stmt::Write { buf: acc, idx: vec![], value: self.neutral });
        let f = Ix::Axis(self.e.open("f", Ix::Const(self.roles.positions), LoopKind::Reduce));
        let here = self.e.depth();
        let place = self.place(&f, to);
        let mask = self.mine(&place, to, self.within(to))?;
        let value = own(self, &f, &place, &mask)?;
        let mine = self.test(mask);
        let (of, op) = (self.of, self.fold);
        let args = vec![mine, value, self.neutral];
        let value = self.e.define("v", of, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args });
        self.e.fold_step(acc, op, of, vec![value], here);
        let identity = match self.neutral {
            Opnd::Const { bits, .. } => bits,
            Opnd::Val(_) => return Err(crate::graph::Refusal::new("a fold starts from a constant")),
        };
        let combine = Combine { accs: vec![acc], op: CombineOp::Scalar { op, identity }, ways: 1 };
        self.e.close_with(|f| f.combine = Some(combine));
        Ok(self.e.define("acc", of, at, |dst| Stmt::Read { dst, buf: acc, idx: vec![] }))
    }

    fn alone(&mut self) -> Result<()> {
        let mut to = vec![Ix::Const(0); self.shape.len()];
        let all: Vec<usize> = (0..self.shape.len()).collect();
        self.e.open_axes("a", &all, &self.shape, LoopKind::Free, &mut to);
        let updates = self.updates;
        let sum = self.folded(&to, |s, _, place, mask| {
            s.e.mask = mask.clone();
            let value = s.e.demand(updates, place);
            s.e.mask = Mask::default();
            value
        })?;
        let old = self.e.demand(self.x, &to)?;
        let new = self.e.apply(self.fold, self.of, vec![sum, old]);
        self.e.store(self.out, self.root, &to, new, self.node.origin);
        Ok(())
    }

    /// Updates that replace.
    fn last_ones(&mut self) -> Result<()> {
        let mut to = vec![Ix::Const(0); self.shape.len()];
        let keys = self.roles.keys.clone();
        let own: Vec<usize> = self.roles.own.iter().map(|(_, of)| *of).collect();
        let (outer, inner): (Vec<usize>, Vec<usize>) = match self.roles.rows {
            true => (keys, own),
            false => ((0..self.shape.len()).collect(), vec![]),
        };
        self.e.open_axes("a", &outer, &self.shape, LoopKind::Free, &mut to);
        let position = self.folded(&to, |s, f, _, _| {
            let here = s.e.depth();
            Ok(s.e.define("position", DType::I64, here, |dst| Stmt::Index { dst, ix: f.clone() }))
        })?;
        self.e.open_axes("c", &inner, &self.shape, LoopKind::Free, &mut to);
        let here = self.e.depth();
        let position = val(position)?;
        let mask = Mask { conds: vec![Cond::new(position.clone(), Cmp::Ge, Ix::Const(0))], vals: vec![] };
        let place = self.place(&position, &to);
        self.e.mask = mask.clone();
        let new = self.e.demand(self.updates, &place)?;
        self.e.mask = Mask::default();
        let some = self.test(mask);
        let old = self.e.demand(self.x, &to)?;
        let dtype = self.e.graph.values[self.root].elem.dtype;
        let args = vec![some, new, old];
        let new = self.e.define("v", dtype, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args });
        self.e.store(self.out, self.root, &to, new, self.node.origin);
        Ok(())
    }

    fn lists(&mut self) -> Result<()> {
        let mut to = vec![Ix::Const(0); self.shape.len()];
        let Row { whole, part, columns } = &self.roles.row;
        let (columns, part) = (*columns, *part);
        let row: Vec<usize> = part.iter().map(|(d, _)| *d).chain(whole.iter().copied()).collect();
        let outer: Vec<usize> = (0..self.shape.len()).filter(|d| !row.contains(d)).collect();
        self.e.open_axes("a", &outer, &self.shape, LoopKind::Free, &mut to);
        let mut extents: Vec<Ix> = row.iter().map(|d| self.shape[*d].clone()).collect();
        if let Some((d, n)) = part {
            let parts = Ix::floor_div(self.shape[d].clone(), Ix::Const(n));
            let b = Ix::Axis(self.e.open("b", parts, LoopKind::Free));
            (to[d], extents[0]) = (Ix::mul(b, Ix::Const(n)), Ix::Const(n));
        }
        let at = self.e.depth();
        let positions = self.roles.positions;
        let stretch = positions.min(STRETCH);
        let acc = self.e.local("acc", self.of, vec![columns as u64], at);
        let places = self.e.local("places", DType::I32, vec![stretch as u64 + 1], at);
        let list = self.e.local("list", DType::I32, vec![stretch as u64], at);
        let count = self.e.local("count", DType::I32, vec![], at);
        let element = |to: &[Ix], c: &Ix| {
            let mut to = to.to_vec();
            for (d, ix) in row.iter().zip(c.unravel(&extents)) {
                to[*d] = Ix::add(to[*d].clone(), ix);
            }
            to
        };
        let c = Ix::Axis(self.e.open("c", Ix::Const(columns), LoopKind::Free));
        let old = self.e.demand(self.x, &element(&to, &c))?;
        self.e.push_here(Stmt::Write { buf: acc, idx: vec![c], value: old });
        self.e.close();

        let stretches = (positions + stretch - 1) / stretch;
        let s = Ix::Axis(self.e.open("s", Ix::Const(stretches), LoopKind::Serial));
        let begin = Ix::mul(s, Ix::Const(stretch));
        let zero = constant(DType::I32, 0);
        self.e.push_here(Stmt::Write { buf: count, idx: vec![], value: zero });
        self.e.push_here(Stmt::Write { buf: places, idx: vec![Ix::Const(0)], value: zero });
        // Counts the row's own positions in the stretch, up to each position.
        let f = Ix::Axis(self.e.open("f", Ix::Const(stretch), LoopKind::Serial));
        let here = self.e.depth();
        let position = Ix::add(begin.clone(), f.clone());
        let exists = match positions % stretch {
            0 => vec![],
            _ => vec![Cond::new(position.clone(), Cmp::Lt, Ix::Const(positions))],
        };
        let place = self.place(&position, &to);
        let mask = self.mine(&place, &to, exists)?;
        let mine = self.test(mask);
        let one = ScalarOp::ExtI { to: DType::I32, sign: Signedness::Unsigned };
        let one = self.e.define("one", DType::I32, here, |dst| Stmt::Let { dst, op: one, args: vec![mine] });
        let old = self.e.define("count", DType::I32, here, |dst| Stmt::Read { dst, buf: count, idx: vec![] });
        let args = vec![one, old];
        let new = self.e.define("count", DType::I32, here, |dst| Stmt::Let { dst, op: ScalarOp::AddI, args });
        self.e.push_here(Stmt::Write { buf: places, idx: vec![Ix::add(f, Ix::Const(1))], value: new });
        self.e.push_here(Stmt::Write { buf: count, idx: vec![], value: new });
        self.e.close();
        // Lists the positions whose updates are the row's own.
        let f = Ix::Axis(self.e.open("f", Ix::Const(stretch), LoopKind::Free));
        let here = self.e.depth();
        let read = |e: &mut NestBuilder<'_>, buf: BufId, ix: Ix| {
            e.define("place", DType::I32, here, |dst| Stmt::Read { dst, buf, idx: vec![ix] })
        };
        let before = read(self.e, places, f.clone());
        let after = read(self.e, places, Ix::add(f.clone(), Ix::Const(1)));
        let grown = ScalarOp::CmpI { pred: Predicate::NotEqual, sign: Signedness::Signed };
        let cond = self.e.apply(grown, DType::I1, vec![after, before]);
        let value = self.e.define("position", DType::I32, here, |dst| Stmt::Index { dst, ix: Ix::add(begin, f) });
        let then = vec![Stmt::Write { buf: list, idx: vec![val(before)?], value }];
        self.e.push_here(Stmt::If { cond, then, els: vec![] });
        self.e.close();
        let here = self.e.depth();
        let all = vec![Ix::Const(stretch)];
        let count = self.e.define("count", DType::I32, here, |dst| Stmt::Read { dst, buf: places, idx: all });
        let count = val(count)?;
        let c = Ix::Axis(self.e.open("c", Ix::Const(columns), LoopKind::Free));
        let inner = self.e.depth();
        let sum = self.e.local("sum", self.of, vec![], inner);
        let of = self.of;
        let old = self.e.define("acc", of, inner, |dst| Stmt::Read { dst, buf: acc, idx: vec![c.clone()] });
        self.e.push_here(Stmt::Write { buf: sum, idx: vec![], value: old });
        let j = Ix::Axis(self.e.open("j", count, LoopKind::Serial));
        let here = self.e.depth();
        let position = self.e.define("position", DType::I32, here, |dst| Stmt::Read { dst, buf: list, idx: vec![j] });
        let place = self.place(&val(position)?, &element(&to, &c));
        let update = self.e.demand(self.updates, &place)?;
        self.e.fold_step(sum, self.fold, of, vec![update], here);
        self.e.close();
        let new = self.e.define("sum", of, inner, |dst| Stmt::Read { dst, buf: sum, idx: vec![] });
        self.e.push_here(Stmt::Write { buf: acc, idx: vec![c], value: new });
        self.e.close();
        self.e.close();

        let c = Ix::Axis(self.e.open("c", Ix::Const(columns), LoopKind::Free));
        let here = self.e.depth();
        let new = self.e.define("acc", of, here, |dst| Stmt::Read { dst, buf: acc, idx: vec![c.clone()] });
        self.e.store(self.out, self.root, &element(&to, &c), new, self.node.origin);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, eval as plans, lower};
    use super::*;
    use crate::base::rule::Log;
    use crate::graph::build::Builder;
    use crate::graph::eval::{self, Tensor};
    use crate::graph::ir::axis;
    use crate::graph::{Elem, Output, Role};

    /// A scatter of integers along axis 0: of whole rows, each sent to its place by an index, or of single elements.
    fn graph(op: ScatterOp, to: [i64; 2], from: [i64; 2], rows: bool) -> Graph {
        let mut graph = Graph { name: "test".into(), ..Graph::default() };
        let shape = |s: &[i64]| s.iter().copied().map(Ix::Const).collect::<Vec<_>>();
        let x = graph.add_input("x", Elem::I32, shape(&to), Role::Argument);
        let index = if rows { shape(&from[..1]) } else { shape(&from) };
        let at = graph.add_input("at", Elem::I64, index, Role::Argument);
        let updates = graph.add_input("u", Elem::I32, shape(&from), Role::Argument);
        let origin = graph.add_origin("aten.scatter", "", None);
        let mut b = Builder::new(&mut graph, origin);
        let at = if rows { b.map("at", at.into(), shape(&from), vec![axis(0)]) } else { at.into() };
        let coords = vec![Coord::Arg(1), Coord::Ix(axis(1))];
        let value = b.scatter(x.into(), &[at], updates.into(), coords, op).unwrap();
        let Arg::Value(value) = value else { panic!() };
        graph.outputs.push(Output { name: "y".into(), value });
        graph
    }

    fn way(graph: &Graph) -> Way {
        let (node, _) = graph.def(graph.outputs[0].value).unwrap();
        let Op::Scatter { coords, op } = &node.op else { panic!() };
        Roles::of(graph, node, coords).unwrap().way(*op).0
    }

    #[test]
    fn each_way_gives_what_the_order_gives() {
        let mut seen = vec![];
        for (op, to, from, rows) in [
            (ScatterOp::Add, [7, 5], [300, 5], false),
            (ScatterOp::Add, [7, 5], [300, 3], false),
            (ScatterOp::Max, [7, 5], [30, 5], true),
            (ScatterOp::Set, [7, 5], [30, 5], true),
            (ScatterOp::Set, [7, 5], [30, 4], false),
            (ScatterOp::Mul, [9, 1], [40, 1], false),
            (ScatterOp::Add, [40, 700], [2500, 700], true),
            (ScatterOp::Min, [40, 5000], [60, 5000], true),
            (ScatterOp::Add, [900, 900], [2, 900], true),
            (ScatterOp::Add, [30_000, 30], [60, 30], false),
        ] {
            let graph = graph(op, to, from, rows);
            seen.push(way(&graph));
            // The evaluation below uses smaller shapes.
            let [to, from] = [to, from].map(|s| [s[0], if s[1] == 5000 { 5000 } else { s[1].min(20) }]);
            let graph = self::graph(op, [to[0].min(40), to[1]], from, rows);
            let count = |s: &[u64]| s.iter().product::<u64>();
            let inputs: Vec<Tensor> = graph
                .inputs
                .iter()
                .map(|input| {
                    let v = &graph.values[input.value];
                    let shape: Vec<u64> = v.shape.iter().map(|n| n.as_const().unwrap() as u64).collect();
                    let most = if v.elem == Elem::I64 { to[0].min(40) as u64 } else { 1000 };
                    let bits = (0..count(&shape)).map(|i| (i * 7919 + i / 11) % most).collect();
                    Tensor::from_bits(v.elem, &shape, bits).unwrap()
                })
                .collect();
            let want = eval::evaluate(&graph, &inputs, &eval::no_files, &eval::Options::default()).unwrap();
            let plan = lower(&graph, &Options { workers: false, ..Options::default() }, &mut Log::default()).unwrap();
            let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
            let got = plans::run(&plan, &[], &bytes, &|_| vec![]).unwrap();
            assert!(got == want.iter().map(Tensor::to_bytes).collect::<Vec<_>>(), "{op:?} {to:?} {from:?} {rows}");
        }
        assert!(seen.contains(&Way::Alone) && seen.contains(&Way::Lists), "{seen:?}");
    }

    #[test]
    fn the_way_is_chosen_by_cost() {
        let of = |to, from, rows| way(&graph(ScatterOp::Add, to, from, rows));
        assert_eq!(of([64, 1], [5000, 1], false), Way::Alone);
        assert_eq!(of([1024, 512], [16384, 512], true), Way::Lists);
        assert_eq!(of([1 << 20, 1], [1 << 20, 1], false), Way::InOrder);
        assert_eq!(of([4096, 4096], [1, 4096], true), Way::Alone);
    }
}
