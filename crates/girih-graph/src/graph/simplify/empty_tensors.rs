//! 008: tensors without elements.

use super::site;
use crate::base::rule::{Log, Rule};
use crate::graph::build::Builder;
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, MapSource, Node, Op, ValueId, scalar};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "empty_tensors",
    doc: "Computes tensors without elements from nothing, and reads nothing from them: later operations never touch the \
          memory of an empty array, which may have no address.\n\n\
          `y [0, 3] = gather x[at, i1]` --> `y [0, 3] = map 0`\n\n`y [3] = reduce sum x [0, 3] over 0` --> `y [3] = map 0`\n\n\
          `y = scatter x [4], at [0], u [0]` --> `y = x`",
    run,
};

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        if replace(&mut copy, graph, node) {
            log.applied(site(graph, node));
            changed = true;
        } else {
            copy.node(node);
        }
    }
    changed.then(|| copy.finish())
}

/// Returns true if it is known that there is no element.
fn is_empty(graph: &Graph, v: ValueId) -> bool {
    graph.values.get(v).is_some_and(|v| v.shape.iter().any(|n| n.is_const(0)))
}

fn reads_empty(graph: &Graph, arg: Option<&Arg>) -> bool {
    matches!(arg, Some(Arg::Value(v)) if is_empty(graph, *v))
}

/// Binds the results of a node that reads or makes an empty tensor. Returns false if it does neither.
fn replace(copy: &mut Copying<'_>, graph: &Graph, node: &Node) -> bool {
    if !node.results.is_empty() && node.results.iter().all(|v| is_empty(graph, *v)) {
        if matches!(node.op, Op::IndexMap(_)) && node.values().next().is_none() {
            return false;
        }
        for v in &node.results {
            let zero = scalar(graph.values[*v].elem, 0.0);
            fill(copy, graph, node, *v, zero);
        }
        return true;
    }
    let &[out] = &node.results[..] else { return false };
    match &node.op {
        Op::Reduce { op, .. } if reads_empty(graph, node.args.first()) => {
            let elem = graph.values[out].elem;
            fill(copy, graph, node, out, Arg::Scalar { elem, bits: op.identity(elem) });
        }
        Op::Scatter { .. } if reads_empty(graph, node.args.last()) => match node.args.first() {
            Some(Arg::Value(x)) => copy.bind(out, copy.arg(Arg::Value(*x))),
            _ => return false,
        },
        Op::IndexMap(sources) if sources.iter().any(|s| reads_empty(graph, node.args.get(s.arg as usize))) => {
            // A source in an empty tensor is never chosen; the last source only if no element exists.
            let mut args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
            let mut kept: Vec<MapSource> =
                sources.iter().filter(|s| !reads_empty(graph, node.args.get(s.arg as usize))).cloned().collect();
            if kept.last().is_none_or(|s| !s.when.is_always()) {
                let arg = args.len() as u32;
                args.push(scalar(graph.values[out].elem, 0.0));
                kept.push(MapSource { arg, coords: vec![], when: Default::default() });
            }
            copy.node_as(node, Op::IndexMap(kept), args);
        }
        _ => return false,
    }
    true
}

fn fill(copy: &mut Copying<'_>, graph: &Graph, node: &Node, v: ValueId, x: Arg) {
    let (elem, shape, name) = (graph.values[v].elem, graph.values[v].shape.clone(), &graph.values[v].name);
    let mut b = Builder::new(&mut copy.out, node.origin);
    let filled = b.full(x, elem, shape);
    let filled = b.name(filled, name);
    copy.bind(v, filled);
}
