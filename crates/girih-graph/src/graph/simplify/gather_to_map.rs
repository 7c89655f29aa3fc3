//! 007: gathers whose indices are index expressions.

use super::{def, facts_in, result, site};
use crate::base::rule::{Log, Rule};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Coord, Graph, MapSource, Node, Op};
use crate::index::{Cmp, Cond, Ix, Mask};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "gather_to_map",
    doc: "A gather by an index that is an expression over positions reads by that expression; one that has no other \
          index is a map.\n\n\
          `at = index i0 + 2`, `y = gather x[at, i1]` --> `y = map x[i0 + 2, i1]`\n\n\
          Refuses indices that may lie outside: a gather reports these when the model runs.",
    run,
};

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        match &node.op {
            Op::Gather(coords) if gather(&mut copy, graph, node, coords, log) => changed = true,
            _ => copy.node(node),
        }
    }
    changed.then(|| copy.finish())
}

fn gather(copy: &mut Copying<'_>, graph: &Graph, node: &Node, coords: &[Coord], log: &mut Log) -> bool {
    let Some(out) = result(node) else { return false };
    let args: Vec<Arg> = node.args.iter().map(|a| copy.arg(*a)).collect();
    let Some(&Arg::Value(x)) = args.first() else { return false };
    let extents = copy.out.values[x].shape.clone();
    let facts = facts_in(graph, &graph.values[out].shape);
    let mut known = false;
    let mut new = vec![];
    for (c, extent) in coords.iter().zip(&extents) {
        let Coord::Arg(a) = c else {
            new.push(c.clone());
            continue;
        };
        let ix = args.get(*a as usize).and_then(|a| def(&copy.out, *a)).and_then(|n| match &n.op {
            Op::Index(ix) => Some(ix.clone()),
            _ => None,
        });
        let Some(ix) = ix else {
            new.push(c.clone());
            continue;
        };
        let above = facts.decide(&Cond::new(ix.clone(), Cmp::Ge, Ix::Const(0)));
        let below = facts.decide(&Cond::new(ix.clone(), Cmp::Lt, extent.clone()));
        if above == Some(true) && below == Some(true) {
            known = true;
            new.push(Coord::Ix(ix));
        } else {
            log.skipped(site(graph, node), "an index may lie outside");
            new.push(c.clone());
        }
    }
    if !known {
        return false;
    }
    log.applied(site(graph, node));
    let plain: Option<Vec<Ix>> = new
        .iter()
        .map(|c| match c {
            Coord::Ix(ix) => Some(ix.clone()),
            Coord::Arg(_) => None,
        })
        .collect();
    match plain {
        Some(coords) => {
            let source = MapSource { arg: 0, coords, when: Mask::default() };
            copy.node_as(node, Op::IndexMap(vec![source]), vec![Arg::Value(x)]);
        }
        None => {
            // The indices that are left move up.
            let mut kept = vec![Arg::Value(x)];
            for c in &mut new {
                if let Coord::Arg(a) = c
                    && let Some(&arg) = args.get(*a as usize)
                {
                    *a = kept.len() as u32;
                    kept.push(arg);
                }
            }
            copy.node_as(node, Op::Gather(new), kept);
        }
    }
    true
}
