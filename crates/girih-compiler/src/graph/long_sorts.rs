//! Sorts of long rows as sorts of parts, for machines whose blocks put short rows in order in a memory of their own.
//!
//! In: Tensor IR. Out: the same graph, in which no sort has longer rows than [`LONGEST`], where lengths are constants.
//!
//! ```text
//! y, at [64, 8] = sort x [64, 32000] descending      first 8
//!   -->
//! a, i [64, 16, 8] = sort x' [64, 16, 2000] descending       the first 8 of each part
//! y, j [64, 8] = sort a' [64, 128] descending                the first 8 of those
//! at = (i + 2000*part)[j]
//! ```
//!
//! Where many are asked for, sorted parts are merged two by two instead: a binary search finds for each place of a merged part how
//! many elements before it are the left part's (the merge path of Odeh, Green, Mwassi, Shmueli and Birk, 2012).
//!
//! A last part that is not full is filled with what comes last, and comes last among equals.

use super::build::{Builder, Result};
use super::copy::Copying;
use super::Elem;
use super::ir::{self, Arg, Coord, Graph, Node, Op, ReduceOp};
use crate::base::rule::Log;
use crate::index::Ix;
use crate::num::op::Predicate;

/// The longest rows that a block puts in order: every target's shared memory holds their numbers.
pub const LONGEST: i64 = 8192;
/// The longest of which few elements are asked for: parts of a row go to different blocks.
const LONGEST_OF_FEW: i64 = 4096;
/// Elements of a part of such a row, at least, and four times as many as are asked for.
const PART: i64 = 2048;
/// The most that are few.
const FEW: i64 = 1024;

/// Replaces the sorts of long rows; `log` says which.
pub fn in_parts(graph: &Graph, log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        match split(&mut copy, graph, node) {
            Some(parts) => {
                let name = node.results.first().map_or("", |v| &graph.values[*v].name);
                log.applied(format!("{name}: its rows are sorted in {parts} parts"));
                changed = true;
            }
            None => copy.node(node),
        }
    }
    changed.then(|| copy.finish())
}

fn split(copy: &mut Copying<'_>, graph: &Graph, node: &Node) -> Option<i64> {
    let Op::Sort { axis, descending } = node.op else { return None };
    let ([Arg::Value(x)], [sorted, order]) = (&node.args[..], &node.results[..]) else { return None };
    let axis = axis as usize;
    let n = graph.values[*x].shape.get(axis)?.as_const()?;
    let k = graph.values[*sorted].shape.get(axis)?.as_const()?;
    if n <= longest(k) || n > i32::MAX.into() || k < 1 {
        return None;
    }
    let from = copy.arg(Arg::Value(*x));
    let rows = Rows { axis, descending };
    let (parts, values, places) = rows.sorted(&mut Builder::new(&mut copy.out, node.origin), from, n, k).ok()?;
    for (old, new) in [(sorted, values), (order, places)] {
        let named = Builder::new(&mut copy.out, node.origin).name(new, &graph.values[*old].name);
        copy.bind(*old, named);
    }
    Some(parts)
}

fn longest(k: i64) -> i64 {
    if k <= FEW { LONGEST_OF_FEW } else { LONGEST }
}

struct Rows {
    axis: usize,
    descending: bool,
}

impl Rows {
    /// In how many parts, the first `k` elements in order, and their places.
    fn sorted(&self, b: &mut Builder<'_>, x: Arg, n: i64, k: i64) -> Result<(i64, Arg, Arg)> {
        if n <= longest(k) {
            let (values, places) = b.sort_first(x, self.axis, self.descending, Ix::Const(k))?;
            return Ok((1, values, places));
        }
        let few = k <= FEW;
        let most = if few { PART.max(4 * k.unsigned_abs().next_power_of_two() as i64) } else { LONGEST };
        let parts = (n + most - 1) / most;
        let parts = if few { parts } else { parts.unsigned_abs().next_power_of_two() as i64 };
        let length = (n + parts - 1) / parts;
        let kept = k.min(length);
        let x = self.filled(b, x, parts * length - n)?;
        let x = self.cut(b, x, [parts, length])?;
        let (values, places) = b.sort_first(x, self.axis + 1, self.descending, Ix::Const(kept))?;
        let shape = b.shape(places);
        let first = b.index(Ix::mul(ir::axis(self.axis), Ix::Const(length)), Elem::I64, shape);
        let places = b.add(places, first)?;
        let (values, places) = (self.joined(b, values)?, self.joined(b, places)?);
        if few {
            let (_, values, at) = self.sorted(b, values, parts * kept, k)?;
            let places = self.taken(b, places, at)?;
            return Ok((parts, values, places));
        }
        let (mut values, mut places, mut length, mut left) = (values, places, kept, parts);
        while left > 1 {
            let from = self.merged(b, values, length, left, k)?;
            (values, places) = (self.taken(b, values, from)?, self.taken(b, places, from)?);
            (length, left) = ((2 * length).min(k), left / 2);
        }
        Ok((parts, values, places))
    }

    /// With so many elements behind that come last.
    fn filled(&self, b: &mut Builder<'_>, x: Arg, count: i64) -> Result<Arg> {
        if count == 0 {
            return Ok(x);
        }
        let elem = b.elem(x);
        let last = match (elem.is_float(), self.descending) {
            (true, false) => b.scalar_like(x, f64::NAN),
            (_, true) => Arg::Scalar { elem, bits: ReduceOp::Max.identity(elem) },
            _ => Arg::Scalar { elem, bits: ReduceOp::Min.identity(elem) },
        };
        let before = vec![Ix::Const(0); b.rank(x)];
        let mut after = before.clone();
        after[self.axis] = Ix::Const(count);
        b.pad(x, &before, &after, last)
    }

    /// The axis as two.
    fn cut(&self, b: &mut Builder<'_>, x: Arg, into: [i64; 2]) -> Result<Arg> {
        let mut shape = b.shape(x);
        shape.splice(self.axis..=self.axis, into.map(Ix::Const));
        b.reshape(x, &shape)
    }

    /// The axis and the one behind it as one.
    fn joined(&self, b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
        let mut shape = b.shape(x);
        let own = shape.remove(self.axis);
        shape[self.axis] = b.simplify(&Ix::mul(own, shape[self.axis].clone()));
        b.reshape(x, &shape)
    }

    /// The elements at places along the axis.
    fn taken(&self, b: &mut Builder<'_>, x: Arg, at: Arg) -> Result<Arg> {
        let coords = (0..b.rank(x)).map(|d| if d == self.axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) });
        let (coords, shape) = (coords.collect(), b.shape(at));
        b.gather(x, &[at], coords, shape)
    }

    /// Where the elements of merged parts are, of which each has the first `k` of two.
    fn merged(&self, b: &mut Builder<'_>, x: Arg, length: i64, parts: i64, k: i64) -> Result<Arg> {
        let whole = (2 * length).min(k);
        let mut shape = b.shape(x);
        shape[self.axis] = Ix::Const(whole * (parts / 2));
        let own = ir::axis(self.axis);
        let place = Ix::modulo(own.clone(), Ix::Const(whole));
        let left = Ix::mul(Ix::floor_div(own, Ix::Const(whole)), Ix::Const(2 * length));
        let index = |b: &mut Builder<'_>, ix: Ix| b.index(ix, Elem::I64, shape.clone());
        let int = |n: i64| ir::int_scalar(Elem::I64, n);
        let start = index(b, left.clone());
        let right = index(b, Ix::add(left, Ix::Const(length)));
        let at = index(b, place.clone());
        let mut lo = index(b, Ix::max(Ix::Const(0), Ix::sub(place.clone(), Ix::Const(length))));
        let mut hi = index(b, Ix::min(place, Ix::Const(length)));
        let end = int(length - 1);
        let inside = |b: &mut Builder<'_>, i: Arg| -> Result<Arg> {
            let i = b.max(i, int(0))?;
            b.min(i, end)
        };
        // Whether the right part's element at `j` comes before the left one's at `i`.
        let turned = |b: &mut Builder<'_>, i: Arg, j: Arg| -> Result<Arg> {
            let (i, j) = (inside(b, i)?, inside(b, j)?);
            let (i, j) = (b.add(start, i)?, b.add(right, j)?);
            let (own, other) = (self.taken(b, x, i)?, self.taken(b, x, j)?);
            self.before(b, other, own)
        };
        let steps = 64 - (length as u64).leading_zeros();
        for _ in 0..steps {
            let open = b.compare(Predicate::LessThan, lo, hi)?;
            let sum = b.add(lo, hi)?;
            let middle = b.div(sum, int(2))?;
            let behind = b.sub(at, middle)?;
            let behind = b.sub(behind, int(1))?;
            let turned = turned(b, middle, behind)?;
            let down = b.and(open, turned)?;
            let stays = b.not(turned)?;
            let up = b.and(open, stays)?;
            let next = b.add(middle, int(1))?;
            lo = b.select(up, next, lo)?;
            hi = b.select(down, middle, hi)?;
        }
        let j = b.sub(at, lo)?;
        let turned = turned(b, lo, j)?;
        let none = b.compare(Predicate::GreaterThanOrEqual, lo, int(length))?;
        let some = b.compare(Predicate::LessThan, j, int(length))?;
        let turned = b.and(turned, some)?;
        let other = b.or(none, turned)?;
        let (i, j) = (b.add(start, lo)?, b.add(right, j)?);
        b.select(other, j, i)
    }

    /// Whether an element comes before another one, where the order says so.
    fn before(&self, b: &mut Builder<'_>, x: Arg, y: Arg) -> Result<Arg> {
        let (x, y) = if self.descending { (y, x) } else { (x, y) };
        let less = b.compare(Predicate::LessThan, x, y)?;
        if !b.elem(x).is_float() {
            return Ok(less);
        }
        let number = b.compare(Predicate::Equal, x, x)?;
        let nan = b.compare(Predicate::NotEqual, y, y)?;
        let last = b.and(number, nan)?;
        b.or(less, last)
    }
}
