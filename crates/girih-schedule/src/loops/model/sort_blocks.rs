//! Sorts of rows, each by the threads of a block.
//!
//! The elements of a row become numbers with their places behind them, as in [`super::sort_rows`], in an array of the
//! row. A bitonic network sorts them (Batcher, "Sorting networks and their applications", 1968): runs of two, of four,
//! and so on are merged, each by comparing pairs that are half as far apart every time. All pairs of a step are
//! independent of each other.
//!
//! ```text
//! for p in 0..12: serial                           runs of 2^(p + 1)
//!   for q in 0..p + 1: serial
//!     h = 1 << (p - q)
//!     m = q == 0 ? 2*h - 1 : h                     the first step compares with the run behind from its end
//!     for t in 0..2048: free
//!       a = 2*t - (t & (h - 1)); b = a ^ m
//!       items[a], items[b] = min(items[a], items[b]), max(items[a], items[b])
//! ```
//!
//! If only the first k elements of a row are asked for, runs of k elements (k rounded up to a power of two) are put in
//! order; then the lesser half of every two runs is kept, until one run is left.
//!
//! Two runs that are in order already are merged by one thread per element: a binary search finds for each place how
//! many elements before it come from the first run (the merge path of Odeh, Green, Mwassi, Shmueli and Birk, 2012).
//!
//! Elements of 64 bits leave no room for a place: numbers and places are compared and moved side by side.

use super::builder::{NestBuilder, Result};
use super::scan_sort_scatter::{first, open_rows};
use super::sort_rows::{self, Rows, constant, val};
use crate::graph::ir::{Node, Op};
use crate::graph::long_sorts::LONGEST;
use crate::index::Ix;
use crate::loops::ir::*;
use crate::num::op::{Predicate, Signedness};
use crate::num::{DType, ScalarOp};

/// The shortest rows that threads share. In a shorter row each thread finds the place of one element by counting: a row
/// of 256 takes 256 steps of a few instructions each, and the network takes 36 steps with a barrier between them.
const SHORTEST: i64 = 256;

/// Emits a sort whose rows a block can put in order; otherwise does nothing.
pub(super) fn write(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId]) -> Result<bool> {
    let Op::Sort { axis, descending, runs } = node.op else { return Ok(false) };
    if let Some(run) = runs {
        return merge(e, node, outs, run.into());
    }
    let (x, axis) = (first(node)?, axis as usize);
    let (elem, shape) = (e.graph.values[x].elem, e.graph.values[x].shape.clone());
    let n = shape.get(axis).and_then(Ix::as_const).filter(|n| (SHORTEST..=LONGEST).contains(n));
    let k = e.graph.values[node.results[0]].shape.get(axis).and_then(Ix::as_const);
    let (Some(n), Some(k)) = (n, k.filter(|k| *k > 0)) else { return Ok(false) };
    let mut coords = open_rows(e, &shape, &[axis]);
    let at = e.depth();
    let length = (n as u64).next_power_of_two();
    let run = (k as u64).next_power_of_two().min(length);
    let packed = elem.dtype.bits() <= 32;
    let mut rows = Rows { e, x, elem, axis, descending, n: Ix::Const(n) };
    let mut items = [Items::new(rows.e, packed, "", length, at); 2];
    if run < length {
        items[1] = Items::new(rows.e, packed, "_kept", length / 2, at);
    }
    let of = items[0];
    let i = Ix::Axis(rows.e.open("i", Ix::Const(n), LoopKind::Free));
    coords[axis] = i.clone();
    let number = rows.number(&coords)?;
    if packed {
        let item = rows.placed(number, i.clone());
        rows.e.push_here(Stmt::Write { buf: of.items, idx: vec![i], value: item });
    } else {
        let turned = rows.e.apply(ScalarOp::Xor, DType::I64, vec![number, constant(DType::I64, 1 << 63)]);
        let here = rows.e.depth();
        let place = rows.e.define("place", DType::I32, here, |dst| Stmt::Index { dst, ix: i.clone() });
        of.write(rows.e, i, [turned, place]);
    }
    rows.e.close();
    let e = rows.e;
    if (n as u64) < length {
        // The places behind the row's elements.
        let i = Ix::Axis(e.open("i", Ix::Const(length as i64 - n), LoopKind::Free));
        let most = [constant(DType::I64, i64::MAX as u64), constant(DType::I32, i32::MAX as u64)];
        of.write(e, Ix::add(i, Ix::Const(n)), most);
        e.close();
    }
    levels(e, of, length, run)?;
    let (mut at, mut left) = (0, length);
    while left > run {
        let [from, to] = [items[at], items[1 - at]];
        left /= 2;
        keep_lesser(e, [from, to], left, run)?;
        at = 1 - at;
    }
    let i = Ix::Axis(e.open("i", Ix::Const(k), LoopKind::Free));
    let place = items[at].place(e, i.clone());
    sort_rows::store(e, node, outs, coords, axis, i, place)
}

/// Numbers and the places of their elements.
#[derive(Clone, Copy)]
struct Items {
    items: BufId,
    /// The places, if they are not the low halves of the numbers.
    places: Option<BufId>,
}

impl Items {
    fn new(e: &mut NestBuilder<'_>, packed: bool, name: &str, length: u64, at: usize) -> Items {
        let items = e.local(&format!("items{name}"), DType::I64, vec![length], at);
        let places = (!packed).then(|| e.local(&format!("places{name}"), DType::I32, vec![length], at));
        Items { items, places }
    }

    /// A number and its place; if the place is its low half, the number is given twice.
    fn read(&self, e: &mut NestBuilder<'_>, i: Ix) -> [Opnd; 2] {
        let here = e.depth();
        let idx = vec![i.clone()];
        let item = e.define("item", DType::I64, here, |dst| Stmt::Read { dst, buf: self.items, idx });
        let place =
            self.places.map(|buf| e.define("place", DType::I32, here, |dst| Stmt::Read { dst, buf, idx: vec![i] }));
        [item, place.unwrap_or(item)]
    }

    fn write(&self, e: &mut NestBuilder<'_>, i: Ix, [item, place]: [Opnd; 2]) {
        e.push_here(Stmt::Write { buf: self.items, idx: vec![i.clone()], value: item });
        if let Some(buf) = self.places {
            e.push_here(Stmt::Write { buf, idx: vec![i], value: place });
        }
    }

    /// The place of an element, as a number of the result's type.
    fn place(&self, e: &mut NestBuilder<'_>, i: Ix) -> Opnd {
        let [item, place] = self.read(e, i);
        match self.places {
            None => e.apply(ScalarOp::And, DType::I64, vec![item, constant(DType::I64, u32::MAX.into())]),
            Some(_) => {
                let op = ScalarOp::ExtI { to: DType::I64, sign: Signedness::Unsigned };
                e.apply(op, DType::I64, vec![place])
            }
        }
    }

    /// Two numbers, the lesser one first.
    fn ordered(&self, e: &mut NestBuilder<'_>, a: [Opnd; 2], b: [Opnd; 2]) -> [[Opnd; 2]; 2] {
        let sign = Signedness::Signed;
        if self.places.is_none() {
            let of = |e: &mut NestBuilder<'_>, op| e.apply(op, DType::I64, vec![a[0], b[0]]);
            let (least, most) = (of(e, ScalarOp::MinI { sign }), of(e, ScalarOp::MaxI { sign }));
            return [[least; 2], [most; 2]];
        }
        let is = |e: &mut NestBuilder<'_>, pred, at: usize| {
            e.apply(ScalarOp::CmpI { pred, sign }, DType::I1, vec![b[at], a[at]])
        };
        let (less, same) = (is(e, Predicate::LessThan, 0), is(e, Predicate::Equal, 0));
        let earlier = is(e, Predicate::LessThan, 1);
        let tie = e.apply(ScalarOp::And, DType::I1, vec![same, earlier]);
        let turned = e.apply(ScalarOp::Or, DType::I1, vec![less, tie]);
        let mut one = |x: [Opnd; 2], y: [Opnd; 2]| {
            [0, 1].map(|n| {
                let dtype = if n == 0 { DType::I64 } else { DType::I32 };
                e.apply(ScalarOp::Select, dtype, vec![turned, x[n], y[n]])
            })
        };
        [one(b, a), one(a, b)]
    }
}

/// Puts runs of `run` elements in order: merges runs of one, of two, and so on.
fn levels(e: &mut NestBuilder<'_>, items: Items, length: u64, run: u64) -> Result<()> {
    if run < 2 {
        return Ok(());
    }
    let p = Ix::Axis(e.open("p", Ix::Const(run.ilog2().into()), LoopKind::Serial));
    let q = Ix::Axis(e.open("q", Ix::add(p.clone(), Ix::Const(1)), LoopKind::Serial));
    let here = e.depth();
    let apart = index(e, Ix::sub(p, q.clone()), here);
    let [one, zero] = [1, 0].map(|n| constant(DType::I32, n));
    let half = e.apply(ScalarOp::Shl, DType::I32, vec![one, apart]);
    let q = index(e, q, here);
    let is = ScalarOp::CmpI { pred: Predicate::Equal, sign: Signedness::Signed };
    let begins = e.apply(is, DType::I1, vec![q, zero]);
    let both = e.apply(ScalarOp::AddI, DType::I32, vec![half, half]);
    let all = e.apply(ScalarOp::SubI, DType::I32, vec![both, one]);
    let turn = e.apply(ScalarOp::Select, DType::I32, vec![begins, all, half]);
    pairs(e, items, length, half, turn)?;
    e.close();
    e.close();
    Ok(())
}

fn index(e: &mut NestBuilder<'_>, ix: Ix, here: usize) -> Opnd {
    e.define("v", DType::I32, here, |dst| Stmt::Index { dst, ix })
}

/// A step: of each pair, whose places differ by these bits, the lesser number goes to the first place.
fn pairs(e: &mut NestBuilder<'_>, items: Items, length: u64, half: Opnd, turn: Opnd) -> Result<()> {
    let low = e.apply(ScalarOp::SubI, DType::I32, vec![half, constant(DType::I32, 1)]);
    let t = Ix::Axis(e.open("t", Ix::Const(length as i64 / 2), LoopKind::Free));
    let here = e.depth();
    let t = index(e, t, here);
    let low = e.apply(ScalarOp::And, DType::I32, vec![t, low]);
    let twice = e.apply(ScalarOp::AddI, DType::I32, vec![t, t]);
    let a = e.apply(ScalarOp::SubI, DType::I32, vec![twice, low]);
    let b = e.apply(ScalarOp::Xor, DType::I32, vec![a, turn]);
    let (a, b) = (val(a)?, val(b)?);
    let (x, y) = (items.read(e, a.clone()), items.read(e, b.clone()));
    let [x, y] = items.ordered(e, x, y);
    items.write(e, a, x);
    items.write(e, b, y);
    e.close();
    Ok(())
}

/// Keeps the lesser half of every two runs, and puts it in order.
fn keep_lesser(e: &mut NestBuilder<'_>, [from, to]: [Items; 2], left: u64, run: u64) -> Result<()> {
    let t = Ix::Axis(e.open("t", Ix::Const(left as i64), LoopKind::Free));
    let length = Ix::Const(run as i64);
    let first = Ix::mul(Ix::floor_div(t.clone(), length.clone()), Ix::Const(2 * run as i64));
    let within = Ix::modulo(t.clone(), length);
    let last = Ix::sub(Ix::add(first.clone(), Ix::Const(2 * run as i64 - 1)), within.clone());
    let (x, y) = (from.read(e, Ix::add(first, within)), from.read(e, last));
    let [x, _] = from.ordered(e, x, y);
    to.write(e, t, x);
    e.close();
    if run < 2 {
        return Ok(());
    }
    let steps = run.ilog2();
    let q = Ix::Axis(e.open("q", Ix::Const(steps.into()), LoopKind::Serial));
    let here = e.depth();
    let apart = index(e, Ix::sub(Ix::Const(i64::from(steps) - 1), q), here);
    let half = e.apply(ScalarOp::Shl, DType::I32, vec![constant(DType::I32, 1), apart]);
    pairs(e, to, left, half, half)?;
    e.close();
    Ok(())
}

/// Two runs of a row become one.
fn merge(e: &mut NestBuilder<'_>, node: &Node, outs: &[ValId], run: i64) -> Result<bool> {
    let Op::Sort { axis, descending, .. } = node.op else { return Ok(false) };
    let (x, axis) = (first(node)?, axis as usize);
    let (elem, shape) = (e.graph.values[x].elem, e.graph.values[x].shape.clone());
    let Some(k) = e.graph.values[node.results[0]].shape.get(axis).cloned() else { return Ok(false) };
    let mut coords = open_rows(e, &shape, &[axis]);
    let i = Ix::Axis(e.open("i", k, LoopKind::Free));
    let at = e.depth();
    let [lo, hi] = ["lo", "hi"].map(|name| e.local(name, DType::I64, vec![], at));
    let n = Ix::Const(run);
    for (buf, ix) in [(lo, Ix::max(Ix::Const(0), Ix::sub(i.clone(), n.clone()))), (hi, Ix::min(i.clone(), n.clone()))] {
        let value = e.define("end", DType::I64, at, |dst| Stmt::Index { dst, ix });
        e.push_here(Stmt::Write { buf, idx: vec![], value });
    }
    let mut rows = Rows { e, x, elem, axis, descending, n };
    // Halved until nothing is left: once for each bit of the length.
    let steps = 64 - i64::from(run.leading_zeros());
    rows.e.open("s", Ix::Const(steps), LoopKind::Serial);
    let here = rows.e.depth();
    let read = |e: &mut NestBuilder<'_>, buf, here| {
        e.define("end", DType::I64, here, |dst| Stmt::Read { dst, buf, idx: vec![] })
    };
    let (low, high) = (read(rows.e, lo, here), read(rows.e, hi, here));
    let both = rows.e.apply(ScalarOp::AddI, DType::I64, vec![low, high]);
    let half = ScalarOp::Shr { sign: Signedness::Unsigned };
    let middle = rows.e.apply(half, DType::I64, vec![both, constant(DType::I64, 1)]);
    let is = |pred| ScalarOp::CmpI { pred, sign: Signedness::Signed };
    let open = rows.e.apply(is(Predicate::LessThan), DType::I1, vec![low, high]);
    let m = val(middle)?;
    let behind = Ix::sub(Ix::sub(i.clone(), m.clone()), Ix::Const(1));
    let turned = rows.turned(&mut coords, m.clone(), behind, run)?;
    let e = &mut *rows.e;
    let one = constant(DType::I1, 1);
    let stays = e.apply(ScalarOp::Xor, DType::I1, vec![turned, one]);
    let up = e.apply(ScalarOp::And, DType::I1, vec![open, stays]);
    let down = e.apply(ScalarOp::And, DType::I1, vec![open, turned]);
    let next = e.define("end", DType::I64, here, |dst| Stmt::Index { dst, ix: Ix::add(m, Ix::Const(1)) });
    for (buf, cond, then, els) in [(lo, up, next, low), (hi, down, middle, high)] {
        let args = vec![cond, then, els];
        let value = e.define("end", DType::I64, here, |dst| Stmt::Let { dst, op: ScalarOp::Select, args });
        e.push_here(Stmt::Write { buf, idx: vec![], value });
    }
    e.close();
    let from = val(read(rows.e, lo, at))?;
    let other = Ix::sub(i.clone(), from.clone());
    let turned = rows.turned(&mut coords, from.clone(), other.clone(), run)?;
    let e = rows.e;
    let test = |e: &mut NestBuilder<'_>, ix: &Ix, cmp| {
        let mask = Mask { conds: vec![Cond::new(ix.clone(), cmp, Ix::Const(run))], vals: vec![] };
        e.define("left", DType::I1, at, |dst| Stmt::Test { dst, mask })
    };
    let (none, some) = (test(e, &from, Cmp::Ge), test(e, &other, Cmp::Lt));
    let turned = e.apply(ScalarOp::And, DType::I1, vec![turned, some]);
    let second = e.apply(ScalarOp::Or, DType::I1, vec![none, turned]);
    let at_second = e.define("place", DType::I64, at, |dst| Stmt::Index { dst, ix: Ix::add(other, Ix::Const(run)) });
    let at_first = e.define("place", DType::I64, at, |dst| Stmt::Index { dst, ix: from });
    let args = vec![second, at_second, at_first];
    let place = e.define("place", DType::I64, at, |dst| Stmt::Let { dst, op: ScalarOp::Select, args });
    sort_rows::store(e, node, outs, coords, axis, i, place)
}

impl Rows<'_, '_> {
    /// Returns true if the second run's element at `j` comes before the first run's element at `i`; a position outside
    /// a run stands for the run's nearest element.
    fn turned(&mut self, coords: &mut [Ix], i: Ix, j: Ix, run: i64) -> Result<Opnd> {
        let inside = |ix| Ix::max(Ix::Const(0), Ix::min(ix, Ix::Const(run - 1)));
        coords[self.axis] = inside(i);
        let own = self.number(coords)?;
        coords[self.axis] = Ix::add(inside(j), Ix::Const(run));
        let other = self.number(coords)?;
        let less = ScalarOp::CmpI { pred: Predicate::LessThan, sign: Signedness::Unsigned };
        Ok(self.e.apply(less, DType::I1, vec![other, own]))
    }
}
