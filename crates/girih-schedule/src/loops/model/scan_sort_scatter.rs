//! Kernels of operations that are computed as a whole: scans, sorts, scatters.

use super::builder::{NestBuilder, Result, fold_of};
use super::{scatter_blocks, sort_blocks, sort_rows};
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, Coord, Graph, Node, Op, ReduceOp, ScanOp, ScatterOp, axis};
use crate::graph::{Elem, ValueId};
use crate::index::{Ix, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

pub(super) fn first(node: &Node) -> Result<ValueId> {
    match node.args.first() {
        Some(Arg::Value(v)) => Ok(*v),
        _ => Err(Refusal::new("the operand is a scalar")),
    }
}

/// Opens a free loop for each axis but those in `but`, whose coordinates stay 0.
pub(super) fn open_rows(e: &mut NestBuilder<'_>, shape: &[Ix], but: &[usize]) -> Vec<Ix> {
    open_others(e, shape, |_, d| but.contains(&d).then_some(Ix::Const(0)))
}

/// Opens a free loop for each axis that `given` has no coordinate for, in the order of the axes.
fn open_others(
    e: &mut NestBuilder<'_>,
    shape: &[Ix],
    mut given: impl FnMut(&mut NestBuilder<'_>, usize) -> Option<Ix>,
) -> Vec<Ix> {
    let mut coords = vec![];
    for (d, n) in shape.iter().enumerate() {
        coords.push(match given(e, d) {
            Some(ix) => ix,
            None if n.is_const(1) => Ix::Const(0),
            None => Ix::Axis(e.open(&format!("a{d}"), n.clone(), LoopKind::Free)),
        });
    }
    coords
}

/// Emits an operation; `outs` are the pointers of its results.
pub(super) fn write(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId], workers: bool) -> Result<()> {
    match &node.op {
        Op::Sort { .. } if workers && sort_rows::write(e, node, outs)? => Ok(()),
        Op::Sort { .. } if !workers && sort_blocks::write(e, node, outs)? => Ok(()),
        Op::Scan { op, axis, exclusive, reverse } => scan(e, node, outs, *op, *axis as usize, *exclusive, *reverse),
        Op::Sort { axis, descending, .. } => sort(e, node, outs, *axis as usize, *descending),
        Op::Scatter { .. } if !workers && scatter_blocks::write(e, node, outs)? => Ok(()),
        Op::Scatter { coords, op } => scatter(e, node, outs, coords, *op, workers),
        _ => Err(Refusal::new("this operation has a form of its own")),
    }
}

fn scan(
    e: &mut NestBuilder<'_>,
    node: &Node,
    outs: &[ValId],
    op: ScanOp,
    axis: usize,
    exclusive: bool,
    reverse: bool,
) -> Result<()> {
    let (x, root) = (first(node)?, node.results[0]);
    let (elem, shape) = (e.graph.values[root].elem, e.graph.values[root].shape.clone());
    let reduce = match op {
        ScanOp::Sum => ReduceOp::Sum,
        ScanOp::Prod => ReduceOp::Prod,
        ScanOp::Max => ReduceOp::Max,
        ScanOp::Min => ReduceOp::Min,
    };
    let (fold, start) = fold_of(reduce, elem)?;
    let mut coords = open_rows(e, &shape, &[axis]);
    let depth = e.depth();
    let acc = e.local("acc", elem.dtype, vec![], depth);
    e.push_here(Stmt::Write { buf: acc, idx: vec![], value: Opnd::Const { dtype: elem.dtype, bits: start } });
    let n = shape.get(axis).cloned().unwrap_or(Ix::Const(1));
    let k = Ix::Axis(e.open("k", n.clone(), LoopKind::Serial));
    coords[axis] = if reverse { Ix::sub(Ix::sub(n, Ix::Const(1)), k) } else { k };
    let here = e.depth();
    let value = e.demand(x, &coords)?;
    let old = e.define("acc", elem.dtype, here, |dst| Stmt::Read { dst, buf: acc, idx: vec![] });
    let new = e.define("v", elem.dtype, here, |dst| Stmt::Let { dst, op: fold, args: vec![value, old] });
    e.store(outs[0], root, &coords, if exclusive { old } else { new }, node.origin);
    e.push_here(Stmt::Write { buf: acc, idx: vec![], value: new });
    e.close_to(0);
    Ok(())
}

/// The place of each element is the number of elements that come before it: the order is stable, and every place is
/// found independently.
fn sort(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId], axis: usize, descending: bool) -> Result<()> {
    let (x, sorted, order) = (first(node)?, node.results[0], node.results[1]);
    let (elem, shape) = (e.graph.values[sorted].elem, e.graph.values[sorted].shape.clone());
    let (most, n) = (shape[axis].clone(), e.graph.values[x].shape[axis].clone());
    let mut coords = open_rows(e, &shape, &[axis]);
    let i = Ix::Axis(e.open("i", n.clone(), LoopKind::Free));
    let at = e.depth();
    coords[axis] = i.clone();
    let own = e.demand(x, &coords)?;
    let count = e.local("place", DType::I64, vec![], at);
    e.push(at, Stmt::Write { buf: count, idx: vec![], value: Opnd::Const { dtype: DType::I64, bits: 0 } });
    let k = Ix::Axis(e.open("k", n.clone(), LoopKind::Reduce));
    let here = e.depth();
    let mut other = coords.clone();
    other[axis] = k.clone();
    let theirs = e.demand(x, &other)?;
    let (before, same) = compare(e, elem, theirs, own, descending, here);
    let ki = e.define("k", DType::I64, here, |dst| Stmt::Index { dst, ix: k });
    let ii = e.define("i", DType::I64, at, |dst| Stmt::Index { dst, ix: i.clone() });
    let bool_of = |e: &mut NestBuilder<'_>, op, a, b| {
        e.define("v", DType::I1, here, |dst| Stmt::Let { dst, op, args: vec![a, b] })
    };
    let earlier = bool_of(e, ScalarOp::CmpI { pred: Predicate::LessThan, sign: Signedness::Signed }, ki, ii);
    let tie = bool_of(e, ScalarOp::And, same, earlier);
    let before = bool_of(e, ScalarOp::Or, before, tie);
    let one = e.define("v", DType::I64, here, |dst| Stmt::Let {
        dst,
        op: ScalarOp::ExtI { to: DType::I64, sign: Signedness::Unsigned },
        args: vec![before],
    });
    let old = e.define("acc", DType::I64, here, |dst| Stmt::Read { dst, buf: count, idx: vec![] });
    let new = e.define("v", DType::I64, here, |dst| Stmt::Let { dst, op: ScalarOp::AddI, args: vec![one, old] });
    e.push_here(Stmt::Write { buf: count, idx: vec![], value: new });
    e.close_with(|f| {
        let op = CombineOp::Scalar { op: ScalarOp::AddI, identity: 0 };
        f.combine = Some(Combine { accs: vec![count], op, ways: 1 });
    });
    let place = e.define("place", DType::I64, at, |dst| Stmt::Read { dst, buf: count, idx: vec![] });
    let Opnd::Val(val) = place else { return Err(Refusal::new("no place")) };
    let mut to = coords;
    to[axis] = Ix::Val { val, zext: false };
    if most != n {
        e.mask = Mask { conds: vec![Cond::new(to[axis].clone(), Cmp::Lt, most)], vals: vec![] };
    }
    e.store(outs[0], sorted, &to, own, node.origin);
    e.store(outs[1], order, &to, ii, node.origin);
    e.close_to(0);
    Ok(())
}

/// Returns two booleans: `a` comes strictly before `b`, and the two are equal. NaN is greater than any number.
fn compare(e: &mut NestBuilder<'_>, elem: Elem, a: Opnd, b: Opnd, descending: bool, here: usize) -> (Opnd, Opnd) {
    let (x, y) = if descending { (b, a) } else { (a, b) };
    let of = |e: &mut NestBuilder<'_>, op, a, b| {
        e.define("v", DType::I1, here, |dst| Stmt::Let { dst, op, args: vec![a, b] })
    };
    if !elem.is_float() {
        let sign = elem.sign();
        let less = of(e, ScalarOp::CmpI { pred: Predicate::LessThan, sign }, x, y);
        let same = of(e, ScalarOp::CmpI { pred: Predicate::Equal, sign }, x, y);
        return (less, same);
    }
    let less = of(e, ScalarOp::CmpF { pred: Predicate::LessThan, ordered: true }, x, y);
    let same = of(e, ScalarOp::CmpF { pred: Predicate::Equal, ordered: true }, x, y);
    let x_nan = of(e, ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false }, x, x);
    let y_nan = of(e, ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false }, y, y);
    let x_fine = of(e, ScalarOp::CmpF { pred: Predicate::Equal, ordered: true }, x, x);
    let up = of(e, ScalarOp::And, x_fine, y_nan);
    let less = of(e, ScalarOp::Or, less, up);
    let both = of(e, ScalarOp::And, x_nan, y_nan);
    (less, of(e, ScalarOp::Or, same, both))
}

/// Columns that one worker copies and updates, where the columns of rows are shared out.
const COLUMNS: i64 = 256;
/// Columns of a row that are worth one more worker, which looks at every index: a look takes a nanosecond, an update of 64 columns ten.
const COLUMNS_FOR_A_LOOK: i64 = 64;
/// The most workers that look at every index.
const MOST_LOOKS: i64 = 16;

/// How workers share the updates, and the copy of the updated tensor before them: each has positions of its own along an axis of
/// the result.
struct Shares {
    axis: usize,
    /// The axis of the updates that is the same axis, so that no two updates meet along it. Without one an index names a
    /// whole row of the result, and each worker looks at all indices and makes the updates of its own rows.
    of_updates: Option<usize>,
    /// The length of the axis, how many positions along it one worker has at most, and the number of workers.
    length: Ix,
    each: i64,
    workers: Ix,
}

impl Shares {
    fn of(graph: &Graph, node: &Node, at: &[Coord], result: &[Ix], updates: &[Ix]) -> Option<Shares> {
        Shares::rows(graph, node, at, result, updates).or_else(|| Shares::apart(at, result, updates))
    }

    fn rows(graph: &Graph, node: &Node, at: &[Coord], result: &[Ix], updates: &[Ix]) -> Option<Shares> {
        let (Some(Coord::Arg(index)), Some(rows)) = (at.first(), result.first()?.as_const()) else { return None };
        let index = *node.args.get(*index as usize)?;
        // The updates' last axes are the result's, in this order.
        let own = updates.len().checked_sub(result.len() - 1)?;
        let whole = (1..at.len()).all(|to| {
            let d = own + to - 1;
            at[to] == Coord::Ix(axis(d)) && updates[d] == result[to] && scatter_blocks::same_along(graph, index, d)
        });
        let columns = updates[own..].iter().try_fold(1i64, |n, e| n.checked_mul(e.as_const()?))?;
        let shares = rows.min(MOST_LOOKS).min(columns / COLUMNS_FOR_A_LOOK);
        if !whole || shares < 2 {
            return None;
        }
        let each = (rows + shares - 1) / shares;
        let workers = Ix::Const((rows + each - 1) / each);
        Some(Shares { axis: 0, of_updates: None, length: Ix::Const(rows), each, workers })
    }

    /// The outermost axis along which no two updates meet: rows one by one, the columns of the innermost in stretches.
    fn apart(at: &[Coord], result: &[Ix], updates: &[Ix]) -> Option<Shares> {
        at.iter().enumerate().find_map(|(of_result, c)| {
            let Coord::Ix(Ix::Axis(axis)) = c else { return None };
            let of_updates = axis.0 as usize;
            let n = updates.get(of_updates).filter(|n| **n == result[of_result] && !n.is_const(1))?;
            let shares = |each, workers| Shares {
                axis: of_result,
                of_updates: Some(of_updates),
                length: n.clone(),
                each,
                workers,
            };
            if result[of_result + 1..].iter().any(|n| !n.is_const(1)) {
                return Some(shares(1, n.clone()));
            }
            let workers = n.as_const().filter(|n| n % COLUMNS == 0)? / COLUMNS;
            (workers > 1).then(|| shares(COLUMNS, Ix::Const(workers)))
        })
    }

    /// Opens the rest of the axis within a worker's share.
    fn within(&self, e: &mut NestBuilder<'_>, share: &Ix, name: &str) -> Ix {
        if self.each == 1 {
            return share.clone();
        }
        let first = Ix::mul(share.clone(), Ix::Const(self.each));
        let mut here = Ix::Const(self.each);
        if self.length.as_const().is_none_or(|n| n % self.each != 0) {
            here = Ix::min(here, Ix::sub(self.length.clone(), first.clone()));
        }
        Ix::add(first, Ix::Axis(e.open(name, here, LoopKind::Free)))
    }

    /// Tests if a row is the worker's own.
    fn owns(&self, e: &mut NestBuilder<'_>, share: &Ix, row: &Ix) -> Opnd {
        let first = Ix::mul(share.clone(), Ix::Const(self.each));
        let end = Ix::add(first.clone(), Ix::Const(self.each));
        let conds = vec![Cond::new(row.clone(), Cmp::Ge, first), Cond::new(row.clone(), Cmp::Lt, end)];
        let here = e.depth();
        e.define("own", DType::I1, here, |dst| Stmt::Test { dst, mask: Mask { conds, vals: vec![] } })
    }
}

/// Copies the updated tensor, unless the result lies where that does, and then makes the updates one after the other. Workers
/// share both where they can: [`Shares`].
fn scatter(
    e: &mut NestBuilder<'_>,
    node: &Node,
    outs: &[ValId],
    at: &[Coord],
    op: ScatterOp,
    workers: bool,
) -> Result<()> {
    let (x, root) = (first(node)?, node.results[0]);
    let (elem, shape) = (e.graph.values[root].elem, e.graph.values[root].shape.clone());
    let Some(Arg::Value(updates)) = node.args.last().copied() else {
        return Err(Refusal::new("the updates are a scalar"));
    };
    let from = e.graph.values[updates].shape.clone();
    let shares = if workers { Shares::of(e.graph, node, at, &shape, &from) } else { None };
    let shared = shares.map(|s| (Ix::Axis(e.open("own", s.workers.clone(), LoopKind::Free)), s));
    let outside = e.depth();
    if e.replaced != Some(x) {
        let coords = open_others(e, &shape, |e, d| {
            let (share, shares) = shared.as_ref().filter(|(_, shares)| shares.axis == d)?;
            Some(shares.within(e, share, if d == 0 { "row" } else { "column" }))
        });
        let value = e.demand(x, &coords)?;
        e.store(outs[0], root, &coords, value, node.origin);
        e.close_to(outside);
    }
    let (mut place, mut serial) = (vec![Ix::Const(0); from.len()], false);
    let (mut to, mut mine) = (vec![], None);
    for (d, n) in from.iter().enumerate() {
        // Along an axis that is also an axis of the result, no two updates meet. The outermost loop stays serial
        // nevertheless if it follows the copy of the updated tensor: blocks of its own would not wait for the copy.
        let own = at.iter().any(|c| matches!(c, Coord::Ix(Ix::Axis(a)) if a.0 as usize == d));
        if let Some((share, shares)) = &shared {
            if shares.of_updates == Some(d) {
                place[d] = shares.within(e, share, "u");
                continue;
            }
            if shares.of_updates.is_none() && own && mine.is_none() {
                to = e.indexed(node, &at[..1], &place, &shape)?;
                mine = to.first().map(|row| (e.depth(), shares.owns(e, share, row)));
            }
        }
        if !n.is_const(1) {
            let kind = if serial && own { LoopKind::Free } else { LoopKind::Serial };
            serial |= kind == LoopKind::Serial;
            place[d] = Ix::Axis(e.open("u", n.clone(), kind));
        }
    }
    let here = e.depth();
    let known = to.len();
    to.extend(e.indexed(node, &at[known..], &place, &shape[known..])?);
    let update = e.demand(updates, &place)?;
    let new = match fold_of_scatter(op) {
        None => update,
        Some(reduce) => {
            let (fold, _) = fold_of(reduce, elem)?;
            let index = e.row_major(&to, &shape);
            let site = e.site(node.origin);
            let mem = Mem { base: outs[0], index, elem: elem.dtype };
            let mask = e.mask.clone();
            let order = Order::Weak;
            let old = e.define("old", elem.dtype, here, |dst| Stmt::Load { dst, mem, mask, other: None, order, site });
            e.define("v", elem.dtype, here, |dst| Stmt::Let { dst, op: fold, args: vec![update, old] })
        }
    };
    e.store(outs[0], root, &to, new, node.origin);
    if let Some((depth, cond)) = mine {
        e.close_to(depth + 1);
        e.close_into(|f| Stmt::If { cond, then: vec![Stmt::For(Box::new(f))], els: vec![] });
    }
    e.close_to(0);
    Ok(())
}

pub(super) fn fold_of_scatter(op: ScatterOp) -> Option<ReduceOp> {
    Some(match op {
        ScatterOp::Set => return None,
        ScatterOp::Add => ReduceOp::Sum,
        ScatterOp::Mul => ReduceOp::Prod,
        ScatterOp::Max => ReduceOp::Max,
        ScatterOp::Min => ReduceOp::Min,
    })
}
