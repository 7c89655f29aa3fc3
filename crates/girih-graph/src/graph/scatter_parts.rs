//! Splits scatters of many updates into few elements, for machines whose workers would make them one after the other.
//!
//! In: Tensor IR. Out: the same graph, where each part of the updates has elements of its own, which are folded afterwards.
//! The number of parts does not depend on the number of workers, so that sums of floats do not either.
//!
//! ```text
//! y [64] = scatter add x[at] from u [1048576]
//!   -->
//! z [8, 64] = scatter add 0[part, at'] from u' [8, 131072]
//! y = x + z[0] + .. + z[7]
//! ```

use super::build::{Builder, Refusal, Result};
use super::copy::Copying;
use super::ir::{Arg, Coord, Graph, Node, Op, axis};
use crate::base::rule::Log;
use crate::index::{AxisId, Ix};
use crate::num::ScalarOp;

/// The most parts.
const PARTS: i64 = 8;
/// The fewest updates that are worth a second kernel.
const ENOUGH: i64 = 1 << 15;
/// Updates for each element of all parts.
const FOR_EACH: i64 = 16;
/// Workers share longer rows of updates themselves.
const LONGEST_ROW: i64 = 64;

/// Replaces the scatters of many updates; `log` gets their names.
pub fn in_parts(graph: &Graph, log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        match Split::of(graph, node).and_then(|split| split.make(&mut copy, node).ok().map(|y| (split, y))) {
            Some((split, y)) => {
                let [root] = node.results[..] else { continue };
                let name = &graph.values[root].name;
                let named = Builder::new(&mut copy.out, node.origin).name(y, name);
                copy.bind(root, named);
                log.applied(format!("{name}: its updates are made in {} parts", split.parts));
                changed = true;
            }
            None => copy.node(node),
        }
    }
    changed.then(|| copy.finish())
}

/// An axis of the updates that is split into parts, and how an element and its update combine.
struct Split {
    along: usize,
    parts: i64,
    combines: ScalarOp,
}

impl Split {
    fn of(graph: &Graph, node: &Node) -> Option<Split> {
        let Op::Scatter { coords, op } = &node.op else { return None };
        let (Some(Arg::Value(updates)), &[root]) = (node.args.last().copied(), &node.results[..]) else { return None };
        let extents = |v| graph.values[v].shape.iter().map(Ix::as_const).collect::<Option<Vec<i64>>>();
        let (from, into) = (extents(updates)?, extents(root)?);
        let numel = |shape: &[i64]| shape.iter().try_fold(1i64, |n, m| n.checked_mul(*m));
        let updates = numel(&from)?;
        let combines = op.combines(graph.values[root].elem)?;
        // Narrow floats are rounded after each update: parts would round them otherwise.
        if graph.values[root].elem.dtype.bits() < 32 || updates < ENOUGH {
            return None;
        }
        let met = |d: &usize| !coords.iter().any(|c| matches!(c, Coord::Ix(ix) if ix.has_axis(AxisId(*d as u32))));
        let along = (0..from.len()).filter(met).max_by_key(|d| from[*d])?;
        let row: Vec<i64> = (0..from.len()).filter(|d| !met(d)).map(|d| from[d]).collect();
        let parts = (2..=PARTS).rev().find(|p| from[along] % p == 0)?;
        let elements = numel(&into)?.checked_mul(parts * FOR_EACH)?;
        if numel(&row)? >= LONGEST_ROW {
            return None;
        }
        (elements <= updates).then_some(Split { along, parts, combines })
    }

    fn make(&self, copy: &mut Copying<'_>, node: &Node) -> Result<Arg> {
        let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
        let mut b = Builder::new(&mut copy.out, node.origin);
        let (Op::Scatter { coords, op }, [x, indices @ .., updates]) = (&node.op, &args[..]) else {
            return Err(Refusal::new("not a scatter"));
        };
        let indices = indices.iter().map(|i| self.cut(&mut b, *i)).collect::<Result<Vec<_>>>()?;
        let updates = self.cut(&mut b, *updates)?;
        let (elem, mut shape) = (b.elem(*x), b.shape(*x));
        shape.insert(0, Ix::Const(self.parts));
        let bits = self.combines.neutral(elem.dtype).ok_or_else(|| Refusal::new("no element is neutral"))?;
        let neutral = b.full(Arg::Scalar { elem, bits }, elem, shape);
        // The part is the first axis of the updates.
        let moved: Vec<Ix> = (1..=b.rank(updates)).map(axis).collect();
        let at = coords.iter().map(|c| match c {
            Coord::Ix(ix) => Coord::Ix(ix.at_coords(&moved)),
            Coord::Arg(i) => Coord::Arg(*i),
        });
        let at = std::iter::once(Coord::Ix(axis(0))).chain(at).collect();
        let parts = b.scatter(neutral, &indices, updates, at, *op)?;
        (0..self.parts).try_fold(*x, |y, part| {
            let part = b.slice(parts, 0, Ix::Const(part), 1, Ix::Const(1))?;
            let part = b.squeeze(part, &[0])?;
            b.elementwise(self.combines, &[y, part])
        })
    }

    /// The updates, or their indices, with the parts as the first axis.
    fn cut(&self, b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
        if b.rank(x) == 0 {
            return Ok(x);
        }
        let mut shape = b.shape(x);
        let n = b.number(&shape[self.along]).unwrap_or(1);
        if n == 1 {
            shape.insert(0, Ix::Const(1));
            return b.reshape(x, &shape);
        }
        shape.splice(self.along..=self.along, [self.parts, n / self.parts].map(Ix::Const));
        let cut = b.reshape(x, &shape)?;
        let mut order: Vec<usize> = (0..shape.len()).collect();
        let part = order.remove(self.along);
        order.insert(0, part);
        b.transpose(cut, &order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::eval::{self, Tensor};
    use crate::graph::ir::ScatterOp;
    use crate::graph::{Elem, Output, Role};

    /// `n` updates of rows of `row` elements into a table of `to` rows; the graph's inputs are all three tensors.
    fn graph(elem: Elem, op: ScatterOp, to: i64, n: [i64; 2], row: i64) -> Graph {
        let mut graph = Graph { name: "test".into(), ..Graph::default() };
        let mut input = |name: &str, elem, shape: &[i64]| {
            graph.add_input(name, elem, shape.iter().copied().map(Ix::Const).collect(), Role::Argument)
        };
        let x = input("x", elem, &[to, row]);
        let at = input("at", Elem::I64, &[n[0], n[1], 1]);
        let updates = input("u", elem, &[n[0], n[1], row]);
        let origin = graph.add_origin("aten.scatter", "", None);
        let coords = vec![Coord::Arg(1), Coord::Ix(axis(2))];
        let y = Builder::new(&mut graph, origin).scatter(x.into(), &[at.into()], updates.into(), coords, op).unwrap();
        let Arg::Value(value) = y else { panic!("a scalar") };
        graph.outputs.push(Output { name: "y".into(), value });
        graph
    }

    fn run(graph: &Graph, inputs: &[Tensor]) -> Vec<u8> {
        let out = eval::evaluate(graph, inputs, &eval::no_files, &eval::Options::default());
        out.unwrap()[0].to_bytes()
    }

    /// Small integers, whose sums no order rounds; zeros of both signs and NaN among them.
    fn check(elem: Elem, op: ScatterOp, to: i64, n: [i64; 2], row: i64, parts: usize) {
        let whole = graph(elem, op, to, n, row);
        let mut log = Log { record: true, ..Log::default() };
        let split = in_parts(&whole, &mut log).expect("parts");
        assert!(format!("{log:?}").contains(&format!("in {parts} parts")), "{log:?}");
        let float = |i: i64| match i % 97 {
            0 => f32::NAN.to_bits(),
            1..20 => (-0.0f32).to_bits(),
            _ if op == ScatterOp::Mul => [1.0f32, -1.0, 2.0, 0.5][i as usize % 4].to_bits(),
            k => (k as f32 - 60.0).to_bits(),
        };
        let bits = |i: i64| if elem.is_float() { u64::from(float(i)) } else { (i * 7919) as u64 & elem.dtype.mask() };
        let tensor = |elem, shape: &[i64], of: &dyn Fn(i64) -> u64| {
            let shape: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
            Tensor::from_bits(elem, &shape, (0..shape.iter().product::<u64>() as i64).map(of).collect()).unwrap()
        };
        // The last row gets no update.
        let inputs = [
            tensor(elem, &[to, row], &|i| bits(i + 1)),
            tensor(Elem::I64, &[n[0], n[1], 1], &|i| (i * 31 / 7 % (to - 1)) as u64),
            tensor(elem, &[n[0], n[1], row], &|i| bits(i + i / 13)),
        ];
        assert!(run(&whole, &inputs) == run(&split, &inputs), "{elem} {op:?} {to} {n:?} {row}");
    }

    #[test]
    fn parts_have_elements_of_their_own() {
        for op in [ScatterOp::Add, ScatterOp::Mul, ScatterOp::Max, ScatterOp::Min] {
            check(Elem::F32, op, 40, [1, 1 << 15], 1, 8);
            check(Elem::I64, op, 5, [3, 5000], 4, 8);
        }
        check(Elem::I64, ScatterOp::Add, 2, [7007, 6], 1, 7);
    }

    #[test]
    fn few_updates_long_rows_and_narrow_floats_stay_whole() {
        let stays = |elem, op, to, n, row| in_parts(&graph(elem, op, to, n, row), &mut Log::default()).is_none();
        assert!(stays(Elem::F32, ScatterOp::Add, 40, [1, 1 << 14], 1), "few updates");
        assert!(stays(Elem::F32, ScatterOp::Add, 1 << 12, [1, 1 << 15], 1), "many elements");
        assert!(stays(Elem::F32, ScatterOp::Add, 4, [1, 1 << 15], 64), "workers share rows");
        assert!(stays(Elem::F32, ScatterOp::Set, 40, [1, 1 << 15], 1), "the last one counts");
        assert!(stays(Elem::F32, ScatterOp::Add, 40, [1, 32_771], 1), "a prime number of updates");
        assert!(stays(Elem::of(crate::num::DType::F16), ScatterOp::Add, 40, [1, 1 << 15], 1), "narrow floats");
    }
}
