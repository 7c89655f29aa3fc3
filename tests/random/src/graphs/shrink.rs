//! Makes a failing graph smaller: fewer outputs, and results of nodes given as inputs, as long as it fails the same way.

use std::collections::{BTreeMap, BTreeSet};

use girih_compiler::graph::eval::{Options, evaluate, no_files};
use girih_compiler::graph::{Arg, Graph, Node, Output, Role, ValueId};

use super::generate::{Case, Inputs};

/// `fails` says whether a case still goes wrong in the way that matters.
pub fn shrink(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut attempt = |candidate: Option<Case>, best: &mut Case| {
        if let Some(c) = candidate
            && fails(&c)
        {
            *best = c;
            return true;
        }
        false
    };
    // One run is enough, most often.
    for run in best.runs.clone() {
        if best.runs.len() > 1 && attempt(Some(Case { runs: vec![run], ..best.clone() }), &mut best) {
            break;
        }
    }
    // The first value that is wrong by itself.
    let values: Vec<ValueId> = best.graph.nodes.values().flat_map(|n| n.results.clone()).collect();
    for v in values {
        let mut one = best.clone();
        one.graph.outputs = vec![Output { name: "y".into(), value: v }];
        if attempt(Some(without_dead(&one)), &mut best) {
            break;
        }
    }
    // Its operands become inputs, one after the other.
    let mut at = 0;
    while let Some(node) = best.graph.nodes.values().nth(at) {
        let whole = node.results.iter().all(|v| !best.graph.outputs.iter().any(|o| o.value == *v));
        let candidate = if whole { cut(&best, at) } else { None };
        // The nodes that it needed are gone; look from the start again.
        at = if attempt(candidate, &mut best) { 0 } else { at + 1 };
    }
    best
}

/// The graph without nodes and inputs that no output needs. Inputs that say what a symbol is stay.
fn without_dead(case: &Case) -> Case {
    let g = &case.graph;
    let mut needed: BTreeSet<ValueId> = g.outputs.iter().map(|o| o.value).collect();
    for node in g.nodes.values().rev() {
        if node.results.iter().any(|v| needed.contains(v)) {
            needed.extend(node.values());
        }
    }
    let keep: Vec<bool> = g
        .inputs
        .iter()
        .enumerate()
        .map(|(i, input)| needed.contains(&input.value) || (i == 0 && !g.symbols.is_empty()))
        .collect();
    let graph = rebuilt(g, &keep, &needed);
    let kept = |run: &Inputs| {
        let tensors = run.tensors.iter().zip(&keep).filter(|(_, k)| **k).map(|(t, _)| t.clone()).collect();
        Inputs { tensors, given: run.given.clone() }
    };
    Case { graph, runs: case.runs.iter().map(kept).collect(), exact: case.exact.clone() }
}

/// A graph of the inputs that stay and the nodes that are needed.
fn rebuilt(g: &Graph, keep: &[bool], needed: &BTreeSet<ValueId>) -> Graph {
    copied(g, keep, &[], &mut |n| n.results.iter().any(|v| needed.contains(v)))
}

/// A graph of some inputs, values that become inputs, and some nodes.
fn copied(g: &Graph, keep: &[bool], given: &[ValueId], wanted: &mut dyn FnMut(&Node) -> bool) -> Graph {
    let mut out = Graph {
        name: g.name.clone(),
        symbols: g.symbols.clone(),
        constants: g.constants.clone(),
        origins: g.origins.clone(),
        ..Graph::default()
    };
    let mut map = BTreeMap::new();
    let kept = g.inputs.iter().zip(keep).filter(|(_, k)| **k).map(|(i, _)| (i.value, i.role));
    for (v, role) in kept.chain(given.iter().map(|v| (*v, Role::Argument))) {
        let value = &g.values[v];
        map.insert(v, out.add_input(&value.name, value.elem, value.shape.clone(), role));
    }
    for node in g.nodes.values().filter(|n| wanted(n)) {
        let arg = |a: &Arg| match a {
            Arg::Value(v) => map.get(v).map_or(*a, |v| (*v).into()),
            other => *other,
        };
        let args = node.args.iter().map(arg).collect();
        let results = node.results.iter().map(|v| &g.values[*v]);
        let results = results.map(|v| (v.name.clone(), v.elem, v.shape.clone())).collect();
        let id = out.add_node(node.op.clone(), args, results, node.origin);
        for (old, new) in node.results.iter().zip(out.nodes[id].results.clone()) {
            out.values[new].ints = g.values[*old].ints.clone();
            map.insert(*old, new);
        }
    }
    for o in &g.outputs {
        if let Some(v) = map.get(&o.value) {
            out.outputs.push(Output { name: o.name.clone(), value: *v });
        }
    }
    out
}

/// The results of node `at` as inputs that hold what it computes.
fn cut(case: &Case, at: usize) -> Option<Case> {
    let g = &case.graph;
    let node = g.nodes.values().nth(at)?;
    let mut probe = g.clone();
    probe.outputs = node.results.iter().map(|v| Output { name: format!("c{}", v.0), value: *v }).collect();
    let mut runs = case.runs.clone();
    for run in &mut runs {
        let options = Options { symbols: run.given.clone(), ..Options::default() };
        run.tensors.extend(evaluate(&probe, &run.tensors, &no_files, &options).ok()?);
    }
    let keep = vec![true; g.inputs.len()];
    let graph = copied(g, &keep, &node.results, &mut |n| n.results != node.results);
    Some(without_dead(&Case { graph, runs, exact: case.exact.clone() }))
}
