//! 003: the same computation twice.

use std::collections::HashMap;

use super::site;
use crate::base::rule::{Log, Rule};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, ConstData, Graph, Op, ValueId};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "common_subexpressions",
    doc: "Merges operations that compute the same from the same operands, and constants with the same bytes.\n\n\
          `a = exp x`, `b = exp x`, `y = add a, b` --> `a = exp x`, `y = add a, a`",
    run,
};

/// Constants of more bytes than this are not compared.
const CONSTANT: usize = 4096;

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    // Looked up, never walked.
    let mut seen: HashMap<String, Vec<ValueId>> = HashMap::new();
    for node in graph.nodes.values() {
        let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
        let what = match &node.op {
            Op::Constant(c) => match graph.constants.get(*c) {
                Some(k) => match &k.data {
                    ConstData::Bytes(b) if b.len() <= CONSTANT => format!("constant {} {:?} {b:?}", k.elem, k.shape),
                    _ => format!("constant {c:?}"),
                },
                None => String::new(),
            },
            // Bodies are not compared.
            Op::Repeat(_) => format!("repeat {:?}", node.results),
            op => format!("{op:?}"),
        };
        let types: Vec<_> =
            node.results.iter().filter_map(|v| graph.values.get(*v)).map(|v| (v.elem, &v.shape)).collect();
        let key = format!("{what} {args:?} {types:?}");
        match seen.get(&key) {
            Some(first) => {
                for (old, new) in node.results.iter().zip(first) {
                    copy.bind(*old, Arg::Value(*new));
                }
                log.applied(site(graph, node));
                changed = true;
            }
            None => {
                copy.node_as(node, node.op.clone(), args);
                let results = copy.out.nodes.values().next_back().map(|n| n.results.clone()).unwrap_or_default();
                seen.insert(key, results);
            }
        }
    }
    changed.then(|| copy.finish())
}
