//! The least and the greatest number that an integer operand may hold.
//!
//! In: an operand of a graph. Out: an interval that holds all its elements, from constants, positions, and the operations that keep
//! numbers within limits: `min(max(x, 0), 127)` is in 0..=127, whatever x is.

use super::build::{constant_bits, int_of};
use super::ir::{Arg, Graph, Op};
use super::{Elem, simplify};
use crate::index::Interval;
use crate::num::ScalarOp;
use crate::num::op::Signedness::Signed;

/// Operations that are looked through, one after the other.
const DEPTH: u32 = 6;

/// An interval that holds every element of an operand of integers. Constants of more than `elements` elements may hold any number.
pub fn bounds(graph: &Graph, x: Arg, elements: u64) -> Interval {
    to_depth(graph, x, elements, DEPTH)
}

/// All numbers of a type of integers.
fn of_type(elem: Elem) -> Interval {
    match elem {
        _ if elem.is_bool() => Interval::new(0, 1),
        _ if elem.unsigned => Interval::new(0, (1 << elem.dtype.bits()) - 1),
        _ => Interval::signed(elem.dtype.bits()),
    }
}

fn to_depth(graph: &Graph, x: Arg, elements: u64, depth: u32) -> Interval {
    let v = match x {
        Arg::Scalar { elem, bits } if elem.unsigned => return Interval::point((bits & elem.dtype.mask()).into()),
        Arg::Scalar { elem, bits } => return Interval::point(int_of(elem, bits).into()),
        Arg::Value(v) => v,
        Arg::Absent => return Interval::ALL,
    };
    let value = &graph.values[v];
    let all = of_type(value.elem);
    let Some((node, _)) = graph.def(v).filter(|_| depth > 0) else { return all };
    let of = |at: usize| node.args.get(at).map_or(Interval::ALL, |x| to_depth(graph, *x, elements, depth - 1));
    let signed = !value.elem.unsigned && !value.elem.is_bool();
    let found = match &node.op {
        Op::Constant(c) => {
            let c = &graph.constants[*c];
            let numbers = |bits: Vec<u64>| {
                let one = |bits| to_depth(graph, Arg::Scalar { elem: c.elem, bits }, elements, 0);
                bits.into_iter().map(one).reduce(Interval::union)
            };
            let few = c.shape.iter().product::<u64>() <= elements;
            few.then(|| constant_bits(c)).flatten().and_then(numbers)
        }
        Op::Index(ix) if signed => Some(simplify::facts_in(graph, &value.shape).range(ix)),
        Op::Gather(_) => Some(of(0)),
        Op::IndexMap(sources) => {
            let read = |s: &super::ir::MapSource| of(s.arg as usize);
            let read = sources.iter().map(read).reduce(Interval::union);
            // Where no source is read the element is 0.
            let always = sources.last().is_some_and(|s| s.when.is_always());
            read.map(|read| if always { read } else { read.union(Interval::point(0)) })
        }
        Op::Elementwise(op) => match op {
            ScalarOp::Select => Some(of(1).union(of(2))),
            ScalarOp::Copy => Some(of(0)),
            ScalarOp::MaxI { sign: Signed } if signed => Some(of(0).max(of(1))),
            ScalarOp::MinI { sign: Signed } if signed => Some(of(0).min(of(1))),
            ScalarOp::AddI if signed => Some(of(0).add(of(1))),
            ScalarOp::SubI if signed => Some(of(0).sub(of(1))),
            ScalarOp::MulI if signed => Some(of(0).mul(of(1))),
            ScalarOp::ExtI { sign: Signed, .. } | ScalarOp::TruncI { .. } if signed => Some(of(0)),
            _ => None,
        },
        _ => None,
    };
    // Numbers beyond the type wrap.
    found.filter(|found| found.within(all)).unwrap_or(all)
}
