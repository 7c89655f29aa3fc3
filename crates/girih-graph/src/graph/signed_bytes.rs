//! Turns products of signed bytes into products of unsigned bytes by signed ones, for processors that multiply four of
//! those at a time but only two signed pairs.
//!
//! In: Tensor IR. Out: the same graph, where 128 is added to the rows before the product, and 128 times the sums of the
//! columns is subtracted from it. The numbers are integers, so that the result is the same even if they overflow.
//!
//! ```text
//! p [64, 32, 1] = dot x, y over 2                    x, y: i8
//!   -->
//! u = x ^ 128                                        u8: x + 128
//! s [1, 32, 1] = sum i32(y) over 2                   of weights, once
//! p = (dot u, y over 2) - 128*s
//! ```

use super::Elem;
use super::build::{Builder, Result};
use super::copy::Copying;
use super::ir::{Arg, Graph, MapSource, Node, Op, ReduceOp, ValueId, axis, int_scalar};
use crate::base::rule::Log;
use crate::index::{Ix, Mask};
use crate::num::{DType, ScalarOp};

/// The fewest rows that make the sums of the columns worth their time.
const ENOUGH_ROWS: i64 = 32;
/// Terms that are multiplied at once.
const TERMS: i64 = 4;

/// Replaces the products of signed bytes; `log` gets their names.
pub fn shifted(graph: &Graph, log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        if shift(&mut copy, graph, node).is_some() {
            let name = node.results.first().map_or("", |v| &graph.values[*v].name);
            log.applied(format!("{name}: its rows are multiplied as unsigned bytes"));
            changed = true;
        } else {
            copy.node(node);
        }
    }
    changed.then(|| copy.finish())
}

fn shift(copy: &mut Copying<'_>, graph: &Graph, node: &Node) -> Option<()> {
    let Op::Reduce { op: ReduceOp::Dot, axes } = &node.op else { return None };
    let ([Arg::Value(x), Arg::Value(y)], [result]) = (&node.args[..], &node.results[..]) else { return None };
    let (of_x, of_y) = (Operand::of(graph, *x)?, Operand::of(graph, *y)?);
    let elem = graph.values[*result].elem;
    let bytes = [x, y].iter().all(|v| graph.values[**v].elem == Elem::of(DType::I8));
    let shape = &graph.values[*x].shape;
    let extent = |axes: &[usize]| axes.iter().try_fold(1i64, |n, d| n.checked_mul(shape[*d].as_const()?));
    let k: Vec<usize> = axes.iter().map(|d| *d as usize).collect();
    if !bytes || elem != Elem::of(DType::I32) || extent(&k)? % TERMS != 0 {
        return None;
    }
    let side = |own: &Operand, other: &Operand| -> Vec<usize> {
        (0..shape.len()).filter(|d| !k.contains(d) && own.counts(*d) && !other.counts(*d)).collect()
    };
    let sides = [side(&of_x, &of_y), side(&of_y, &of_x)];
    // Rows are the side that the result's last axis does not belong to.
    let rows = usize::from(sides[0].last() > sides[1].last());
    let columns = if rows == 0 { &of_y } else { &of_x };
    if extent(&sides[rows])? < ENOUGH_ROWS || sides[1 - rows].is_empty() || !columns.when.is_always() {
        return None;
    }
    let operands = [*x, *y].map(|v| copy.arg(Arg::Value(v)));
    let source = copy.arg(columns.source);
    let mut b = Builder::new(&mut copy.out, node.origin);
    let made = columns.sums(&mut b, source, &sides[rows], shape, &k).and_then(|sums| {
        let flipped = int_scalar(Elem::of(DType::I8), -128);
        let rows_of = b.elementwise_to(ScalarOp::Xor, &[operands[rows], flipped], Elem::U8)?;
        let pair = if rows == 0 { [rows_of, operands[1]] } else { [operands[0], rows_of] };
        let dot = b.dot(pair[0], pair[1], elem, &k, true)?;
        let more = b.mul(sums, int_scalar(elem, 128))?;
        b.sub(dot, more)
    });
    let named = b.name(made.ok()?, &graph.values[*result].name);
    copy.bind(*result, named);
    Some(())
}

/// An operand of a product: a tensor, read at coordinates over the axes of the product.
struct Operand {
    source: Arg,
    coords: Vec<Ix>,
    when: Mask,
}

impl Operand {
    fn of(graph: &Graph, value: ValueId) -> Option<Operand> {
        let rank = graph.values[value].shape.len();
        let read = graph.def(value).map(|(node, _)| node).filter(|n| matches!(n.op, Op::IndexMap(_)));
        let Some(node) = read else {
            let coords = (0..rank).map(axis).collect();
            return Some(Operand { source: Arg::Value(value), coords, when: Mask::default() });
        };
        let Op::IndexMap(sources) = &node.op else { return None };
        let MapSource { arg, coords, when } = sources.first()?;
        Some(Operand { source: *node.args.get(*arg as usize)?, coords: coords.clone(), when: when.clone() })
    }

    /// Returns true if elements differ along an axis of the product.
    fn counts(&self, d: usize) -> bool {
        let Ix::Axis(at) = axis(d) else { return false };
        let tested = self.when.conds.iter().flat_map(|c| [&c.lhs, &c.rhs]);
        self.coords.iter().chain(tested).any(|ix| ix.has_axis(at))
    }

    /// The sums along the axes `k`, with extent 1 along axes that the operand does not depend on.
    fn sums(&self, b: &mut Builder<'_>, source: Arg, idle: &[usize], shape: &[Ix], k: &[usize]) -> Result<Arg> {
        let mut shape = shape.to_vec();
        idle.iter().for_each(|d| shape[*d] = Ix::Const(1));
        let read = b.map("columns", source, shape, self.coords.clone());
        let wide = b.convert(read, Elem::of(DType::I32))?;
        b.reduce(ReduceOp::Sum, wide, k, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::eval::{self, Tensor};
    use crate::graph::{Output, Role};

    /// `[m, k]` by `[k, n]`, or by `[n, k]`, with the columns last or first.
    fn product(m: i64, k: i64, n: i64, turned: bool, columns_first: bool) -> Graph {
        let mut graph = Graph { name: "test".into(), ..Graph::default() };
        let byte = Elem::of(DType::I8);
        let y_shape = if turned { [n, k] } else { [k, n] };
        let x = graph.add_input("x", byte, vec![Ix::Const(m), Ix::Const(k)], Role::Argument);
        let y = graph.add_input("y", byte, y_shape.map(Ix::Const).to_vec(), Role::Parameter);
        let origin = graph.add_origin("aten._int_mm", "", None);
        let mut b = Builder::new(&mut graph, origin);
        let (row, column) = if columns_first { (1, 0) } else { (0, 1) };
        let extents = if columns_first { [n, m, k] } else { [m, n, k] }.map(Ix::Const).to_vec();
        let of_y = if turned { vec![axis(column), axis(2)] } else { vec![axis(2), axis(column)] };
        let x = b.map("x", x.into(), extents.clone(), vec![axis(row), axis(2)]);
        let y = b.map("y", y.into(), extents, of_y);
        let Arg::Value(value) = b.dot(x, y, Elem::of(DType::I32), &[2], true).unwrap() else { panic!("a value") };
        graph.outputs.push(Output { name: "p".into(), value });
        graph
    }

    #[test]
    fn the_products_are_the_same() {
        for (m, k, n) in [(32, 4, 3), (40, 64, 33), (64, 12, 1 << 6)] {
            for (turned, first) in [(false, false), (true, false), (false, true), (true, true)] {
                let plain = product(m, k, n, turned, first);
                let made = shifted(&plain, &mut Log::default());
                // Where the columns come first, the rows are the other operand.
                assert_eq!(made.is_some(), (if first { n } else { m }) >= ENOUGH_ROWS, "{m} {k} {n} {turned} {first}");
                let Some(made) = made else { continue };
                let tensors: Vec<Tensor> = plain
                    .inputs
                    .iter()
                    .map(|i| {
                        let shape: Vec<u64> =
                            plain.values[i.value].shape.iter().map(|n| n.as_const().unwrap() as u64).collect();
                        let count = shape.iter().product::<u64>();
                        // -128 and 127 among them.
                        let bits = (0..count).map(|at| (at * 37 + at / 7 + 128) % 256).collect();
                        Tensor::from_bits(Elem::of(DType::I8), &shape, bits).unwrap()
                    })
                    .collect();
                let run = |g: &Graph| {
                    let out = eval::evaluate(g, &tensors, &eval::no_files, &eval::Options::default());
                    out.unwrap().iter().map(Tensor::to_bytes).collect::<Vec<_>>()
                };
                assert!(run(&plain) == run(&made), "{m} {k} {n} {turned} {first}");
            }
        }
    }

    #[test]
    fn few_rows_and_odd_sums_stay() {
        for (m, k, n) in [(31, 64, 64), (64, 62, 64), (64, 64, 1)] {
            assert!(shifted(&product(m, k, n, false, n == 1), &mut Log::default()).is_none(), "{m} {k} {n}");
        }
    }
}
