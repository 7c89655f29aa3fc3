//! Simplification of Tensor IR: rules that keep every bit of the results.
//!
//! In: a graph of primitives. Out: an equal one with fewer maps, no work done twice, and none that nobody reads. For
//! example
//!
//! ```text
//!   a: f32[4, 3] = map x[i1, i0]
//!   b: f32[3, 4] = map a[i1, i0]         -->    y: f32[3, 4] = mul x, x
//!   y: f32[3, 4] = mul b, x
//! ```
//!
//! [`rules`] run in order until nothing changes. Invariants: outputs keep names, types and values (NaN for NaN); running
//! them again changes nothing; inputs stay, used or not.

mod algebra;
mod common_subexpressions;
mod compose_maps;
mod dead_code;
mod empty_tensors;
mod fold_constants;
mod gather_to_map;
mod hoist_maps;
mod loop_bodies;
#[cfg(test)]
mod tests;

use super::ir::{Arg, Graph, Node, Op, ValueId};
use crate::base::rule::Rules;
use crate::index::{AxisId, Facts, Ix};

/// The rules of Tensor IR.
pub fn rules() -> Rules<Graph, ()> {
    let list = vec![
        &empty_tensors::RULE,
        &fold_constants::RULE,
        &compose_maps::RULE,
        &gather_to_map::RULE,
        &algebra::RULE,
        &common_subexpressions::RULE,
        &hoist_maps::RULE,
        &dead_code::RULE,
        &loop_bodies::RULE,
    ];
    Rules { letter: 'n', first: 1, rounds: 12, list, record: false }
}

/// The name of a node in the trace: that of its first result.
fn site(graph: &Graph, node: &Node) -> String {
    node.results.first().and_then(|v| graph.values.get(*v)).map(|v| v.name.clone()).unwrap_or_default()
}

/// The facts about symbols, and about the positions in a shape.
pub(super) fn facts_in(graph: &Graph, shape: &[Ix]) -> Facts {
    let mut facts = graph.facts();
    for (d, extent) in shape.iter().enumerate() {
        facts.set_axis(AxisId(d as u32), &Ix::Const(0), extent);
    }
    facts
}

/// The node that computes an operand.
fn def(graph: &Graph, x: Arg) -> Option<&Node> {
    match x {
        Arg::Value(v) => graph.def(v).map(|(node, _)| node),
        _ => None,
    }
}

/// The only result of a node.
fn result(node: &Node) -> Option<ValueId> {
    match node.results[..] {
        [v] => Some(v),
        _ => None,
    }
}

/// The scalar that a map repeats, if it does nothing else.
fn repeated_scalar(graph: &Graph, x: Arg) -> Option<Arg> {
    let node = def(graph, x)?;
    match (&node.op, &node.args[..]) {
        (Op::IndexMap(sources), args) => match &sources[..] {
            [only] => match args.get(only.arg as usize) {
                Some(s @ Arg::Scalar { .. }) => Some(*s),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
