//! 004: what nobody reads.

use super::site;
use crate::base::id::Id;
use crate::base::rule::{Log, Rule};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, Node, Op, ValueId};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "dead_code",
    doc: "Removes nodes that no output depends on, and constants that no node uses. Inputs stay.\n\n`a = exp x`, `y = neg x`, `output y` --> `y = neg x`, `output y`\n\n\
          Gathers and scatters are removed too: an index outside is an error only in an operation that is computed.",
    run,
};

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut live = vec![false; graph.values.len()];
    for o in &graph.outputs {
        if let Some(l) = live.get_mut(o.value.index()) {
            *l = true;
        }
    }
    let mut keep = vec![false; graph.nodes.len()];
    for (id, node) in graph.nodes.iter().rev() {
        if node.results.iter().any(|v| live.get(v.index()).copied().unwrap_or(false)) {
            keep[id.index()] = true;
            for v in read(node) {
                if let Some(l) = live.get_mut(v.index()) {
                    *l = true;
                }
            }
        }
    }
    // Constants of dead nodes go with them.
    let mut unnamed = vec![true; graph.constants.len()];
    for node in graph.nodes.values() {
        if let Op::Constant(c) = node.op
            && let Some(u) = unnamed.get_mut(c.index())
        {
            *u = false;
        }
    }
    if keep.iter().all(|k| *k) && !unnamed.contains(&true) {
        return None;
    }
    let mut copy = Copying::new(graph);
    for (id, node) in graph.nodes.iter() {
        if keep[id.index()] {
            copy.node(node);
        } else {
            log.applied(site(graph, node));
        }
    }
    for (id, constant) in graph.constants.iter().filter(|(id, _)| unnamed[id.index()]) {
        log.applied(format!("constant {} {}", id.index(), constant.name));
    }
    let mut out = copy.finish();
    out.drop_dead_constants();
    Some(out)
}

/// The operands that a node reads: of a map, those that a source names.
fn read(node: &Node) -> Vec<ValueId> {
    match &node.op {
        Op::IndexMap(sources) => sources
            .iter()
            .filter_map(|s| match node.args.get(s.arg as usize) {
                Some(Arg::Value(v)) => Some(*v),
                _ => None,
            })
            .collect(),
        _ => node.values().collect(),
    }
}
