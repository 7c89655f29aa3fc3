//! Splits sorts of long rows into sorts of parts, for machines whose blocks sort short rows in a memory of their own.
//!
//! In: Tensor IR. Out: the same graph, without sorts of rows longer than [`LONGEST`] where lengths are constants.
//!
//! ```text
//! y, at [64, 8] = sort x [64, 32000] descending      first 8
//!   -->
//! a, i [64, 16, 8] = sort x' [64, 16, 2000] descending       the first 8 of each part
//! y, j [64, 8] = sort a' [64, 128] descending                the first 8 of those
//! at = (i + 2000*part)[j]
//! ```
//!
//! If many elements are asked for, sorted parts are merged two by two instead (`sort .. runs 5000`).
//!
//! A last part that is not full is filled with elements that come last in the order, and last among equals.

use super::Elem;
use super::build::{Builder, Refusal, Result};
use super::copy::Copying;
use super::ir::{self, Arg, Coord, Graph, Node, Op, ReduceOp};
use crate::base::rule::Log;
use crate::index::Ix;

/// The longest rows that a block sorts: every target's shared memory holds their numbers.
pub const LONGEST: i64 = 8192;
/// The longest rows that one block sorts where few elements are asked for: the parts of a longer row go to different
/// blocks.
const LONGEST_OF_FEW: i64 = 4096;
/// The most elements of a part of such a row, unless four times the elements asked for are more.
const PART: i64 = 2048;
/// The most elements asked for that count as few.
const FEW: i64 = 1024;

/// Replaces the sorts of long rows; `log` gets their names.
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
    let Op::Sort { axis, descending, runs: None } = node.op else { return None };
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
    /// The number of parts, the first `k` elements in order, and their places.
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
            left /= 2;
            let whole = (2 * length).min(k);
            let run = u32::try_from(length).map_err(|_| Refusal::new("a part is too long"))?;
            let x = self.cut(b, values, [left, 2 * length])?;
            let (merged, at) = b.merge(x, self.axis + 1, self.descending, Ix::Const(whole), run)?;
            let shape = b.shape(at);
            let first = b.index(Ix::mul(ir::axis(self.axis), Ix::Const(2 * length)), Elem::I64, shape);
            let at = b.add(at, first)?;
            let at = self.joined(b, at)?;
            places = self.taken(b, places, at)?;
            values = self.joined(b, merged)?;
            length = whole;
        }
        Ok((parts, values, places))
    }

    /// Appends `count` elements that come last in the order.
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

    /// Splits the axis in two.
    fn cut(&self, b: &mut Builder<'_>, x: Arg, into: [i64; 2]) -> Result<Arg> {
        let mut shape = b.shape(x);
        shape.splice(self.axis..=self.axis, into.map(Ix::Const));
        b.reshape(x, &shape)
    }

    /// Joins the axis and the next one.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::eval::{self, Tensor};
    use crate::graph::{Output, Role};
    use crate::num::DType;

    fn graph(elem: Elem, shape: [i64; 2], axis: usize, k: i64, descending: bool) -> Graph {
        let mut graph = Graph { name: "test".into(), ..Graph::default() };
        let x = graph.add_input("x", elem, shape.map(Ix::Const).to_vec(), Role::Argument);
        let origin = graph.add_origin("aten.sort", "", None);
        let sort = Builder::new(&mut graph, origin).sort_first(x.into(), axis, descending, Ix::Const(k));
        for (name, value) in ["sorted", "order"].into_iter().zip(<[Arg; 2]>::from(sort.unwrap())) {
            let Arg::Value(value) = value else { panic!("{name}") };
            graph.outputs.push(Output { name: name.into(), value });
        }
        graph
    }

    fn longest_of(graph: &Graph) -> i64 {
        let sorts = graph.nodes.values().filter_map(|n| match (&n.op, &n.args[..]) {
            (Op::Sort { axis, runs: None, .. }, [Arg::Value(x)]) => graph.values[*x].shape[*axis as usize].as_const(),
            _ => None,
        });
        sorts.max().unwrap_or(0)
    }

    /// Many equal numbers, NaNs and infinities, which are what the last part is filled with.
    fn check(elem: Elem, shape: [i64; 2], axis: usize, k: i64, descending: bool) -> Graph {
        let whole = graph(elem, shape, axis, k, descending);
        let parts = in_parts(&whole, &mut Log::default()).expect("a long sort");
        assert!(longest_of(&parts) <= LONGEST);
        let (nan, infinity) = if elem == Elem::F32 { (0x7fc0_0000, 0xff80_0000) } else { (u64::MAX, 1 << 63) };
        let bits = (0..shape[0] * shape[1]).map(|i| match (i * 7919 + i / 13) % 1001 {
            0..20 => nan & elem.dtype.mask(),
            20..40 => infinity & elem.dtype.mask(),
            n => (n as u64 * 0x0001_0003) & elem.dtype.mask(),
        });
        let x = Tensor::from_bits(elem, &shape.map(|n| n as u64), bits.collect()).unwrap();
        let run = |g: &Graph| {
            let out = eval::evaluate(g, std::slice::from_ref(&x), &eval::no_files, &eval::Options::default());
            out.unwrap().iter().map(Tensor::to_bytes).collect::<Vec<_>>()
        };
        assert!(run(&whole) == run(&parts), "{elem} {shape:?} along {axis}, first {k}, descending {descending}");
        parts
    }

    #[test]
    fn parts_are_sorted_and_the_first_few_of_each_are_too() {
        for (elem, descending) in
            [(Elem::F32, true), (Elem::F32, false), (Elem::I64, true), (Elem::of(DType::I8), false)]
        {
            check(elem, [2, 5001], 1, 9, descending);
        }
        check(Elem::F32, [20_000, 1], 0, 1000, true);
        check(Elem::F32, [1, 4097], 1, 1024, false);
    }

    #[test]
    fn sorted_parts_are_merged() {
        for (elem, descending) in [(Elem::F32, true), (Elem::F32, false), (Elem::I64, false)] {
            check(elem, [1, 8193], 1, 8193, descending);
        }
        check(Elem::F32, [17_000, 1], 0, 9000, true);
        check(Elem::F32, [1, 17_000], 1, 1025, true);
    }

    #[test]
    fn short_rows_stay() {
        assert!(in_parts(&graph(Elem::F32, [2, 8192], 1, 8192, false), &mut Log::default()).is_none());
        assert!(in_parts(&graph(Elem::F32, [2, 4096], 1, 5, false), &mut Log::default()).is_none());
    }
}
