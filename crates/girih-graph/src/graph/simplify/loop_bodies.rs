//! 009: what a round of a loop computes.

use std::collections::BTreeMap;

use super::{rules, site};
use crate::base::id::Id;
use crate::base::rule::{Log, Rewrites, Rule};
use crate::graph::build::repeat::{lift_constants, number_inputs};
use crate::graph::copy::Copying;
use crate::graph::ir::{Arg, Graph, Node, Op, Output, Repeat, ValueId};

pub(super) const RULE: Rule<Graph, ()> = Rule {
    name: "loop_bodies",
    doc: "Simplifies the body of a loop by all rules of this list, and the loop itself: constants move out of the body, and \
          operations on them alone are computed there once. State that no round changes moves out too. Operands that rounds do \
          not read, and rows that nothing reads, are removed.\n\n\
          `h = repeat 9 carry h0, w: h, w, out h: add h, mul w, 2; out w: w` --> \
          `h = repeat 9 carry h0 read w, two: h, w, two, out h: add h, mul w, two`",
    run,
};

fn run(graph: &Graph, _: &(), log: &mut Log) -> Option<Graph> {
    if !graph.nodes.values().any(|n| matches!(n.op, Op::Repeat(_))) {
        return None;
    }
    let mut used = vec![false; graph.values.len()];
    for v in graph.nodes.values().flat_map(Node::values).chain(graph.outputs.iter().map(|o| o.value)) {
        if let Some(u) = used.get_mut(v.index()) {
            *u = true;
        }
    }
    let mut copy = Copying::new(graph);
    let mut changed = false;
    for node in graph.nodes.values() {
        let Op::Repeat(r) = &node.op else {
            copy.node(node);
            continue;
        };
        let args: Option<Vec<ValueId>> = node
            .args
            .iter()
            .map(|a| match copy.arg(*a) {
                Arg::Value(v) => Some(v),
                _ => None,
            })
            .collect();
        let Some(args) = args else {
            copy.node(node);
            continue;
        };
        let mut now = Loop { repeat: (**r).clone(), args, results: node.results.clone() };
        let body = &now.repeat.body;
        let simpler = rules().run(body.clone(), &(), &mut Rewrites::at_most(None), &mut |_| Ok::<(), ()>(()));
        let mut did = false;
        if let Ok(simpler) = simpler
            && simpler != *body
        {
            now.repeat.body = simpler;
            did = true;
        }
        for old in now.unchanged() {
            // As before the first round.
            let (result, initial) = now.make_read(old);
            copy.bind(result, initial.into());
            did = true;
        }
        did |= now.drop_rows(&used);
        let dead = now.dead_state(&used);
        for &old in &dead {
            now.make_read(old);
            did = true;
        }
        if !dead.is_empty()
            && let Some(body) = (super::dead_code::RULE.run)(&now.repeat.body, &(), &mut Log::default())
        {
            now.repeat.body = body;
        }
        did |= lift_constants(&mut copy.out, node.origin, &mut now.repeat, &mut now.args, |_| true) > 0;
        did |= now.drop_inputs();
        copy.out.narrow(&now.repeat.body);
        if did {
            log.applied(site(graph, node));
            changed = true;
        }
        let Loop { repeat, args, results } = now;
        if results.is_empty() {
            continue;
        }
        let node = Node { results, ..node.clone() };
        copy.node_as(&node, Op::Repeat(Box::new(repeat)), args.into_iter().map(Arg::Value).collect());
    }
    changed.then(|| copy.finish())
}

/// A loop with its operands in the new graph and its results in the old one.
struct Loop {
    repeat: Repeat,
    args: Vec<ValueId>,
    results: Vec<ValueId>,
}

impl Loop {
    /// The values of the state that a round hands on unchanged, the last first.
    fn unchanged(&self) -> Vec<usize> {
        let body = &self.repeat.body;
        let first = usize::from(self.repeat.conditional);
        let same = |at: &usize| match (body.inputs.get(*at), body.outputs.get(*at)) {
            (Some(input), Some(output)) => input.value == output.value,
            _ => false,
        };
        (first..self.repeat.carried as usize).rev().filter(same).collect()
    }

    /// The values of the state that only they themselves need, the last first.
    fn dead_state(&self, used: &[bool]) -> Vec<usize> {
        let (body, carried) = (&self.repeat.body, self.repeat.carried as usize);
        let first = usize::from(self.repeat.conditional);
        let is_used = |v: &ValueId| used.get(v.index()).copied().unwrap_or(false);
        let mut live: Vec<bool> = self.results.iter().enumerate().map(|(at, v)| at < first || is_used(v)).collect();
        loop {
            let mut needed = vec![false; body.values.len()];
            for (o, _) in body.outputs.iter().zip(&live).filter(|(_, live)| **live) {
                needed[o.value.index()] = true;
            }
            for node in body.nodes.values().as_slice().iter().rev() {
                if node.results.iter().any(|v| needed[v.index()]) {
                    node.values().for_each(|v| needed[v.index()] = true);
                }
            }
            let more = |at: &usize| !live[*at] && body.inputs.get(*at).is_some_and(|i| needed[i.value.index()]);
            let found: Vec<usize> = (0..carried).filter(more).collect();
            if found.is_empty() {
                return (0..carried).rev().filter(|at| !live[*at]).collect();
            }
            found.into_iter().for_each(|at| live[at] = true);
        }
    }

    /// Turns a value of the state into one that rounds only read. Returns the loop's result for it, and its value.
    fn make_read(&mut self, at: usize) -> (ValueId, ValueId) {
        let body = &mut self.repeat.body;
        let input = body.inputs.remove(at);
        body.inputs.push(input);
        body.outputs.remove(at);
        number_inputs(body);
        self.repeat.carried -= 1;
        let arg = self.args.remove(at);
        self.args.push(arg);
        (self.results.remove(at), arg)
    }

    /// Drops rows that nobody reads.
    fn drop_rows(&mut self, used: &[bool]) -> bool {
        let carried = self.repeat.carried as usize;
        let dead = |v: &ValueId| used.get(v.index()) == Some(&false);
        let at: Vec<usize> = (carried..self.results.len()).rev().filter(|at| dead(&self.results[*at])).collect();
        for &at in &at {
            self.results.remove(at);
            self.repeat.body.outputs.remove(at);
            self.repeat.given.remove(at - carried);
        }
        !at.is_empty()
    }

    /// Drops operands that no round reads, and those that are given twice.
    fn drop_inputs(&mut self) -> bool {
        let body = &self.repeat.body;
        let mut read = vec![false; body.values.len()];
        for v in body.nodes.values().flat_map(Node::values).chain(body.outputs.iter().map(|o| o.value)) {
            if let Some(r) = read.get_mut(v.index()) {
                *r = true;
            }
        }
        let first = self.repeat.carried as usize;
        let whole = first + self.repeat.rows.len();
        let mut seen: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut same: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut drop = vec![];
        for (at, (input, arg)) in body.inputs.iter().zip(&self.args).enumerate().skip(first) {
            if !read.get(input.value.index()).copied().unwrap_or(false) {
                drop.push(at);
            } else if at >= whole {
                let other = *seen.entry(*arg).or_insert(input.value);
                if other != input.value {
                    same.insert(input.value, other);
                    drop.push(at);
                }
            }
        }
        for &at in drop.iter().rev() {
            self.repeat.body.inputs.remove(at);
            self.args.remove(at);
            if at < whole {
                self.repeat.rows.remove(at - first);
            }
        }
        let body = &mut self.repeat.body;
        if !same.is_empty() {
            let of = |v: &mut ValueId| {
                if let Some(other) = same.get(v) {
                    *v = *other;
                }
            };
            for node in body.nodes.values_mut() {
                for arg in &mut node.args {
                    if let Arg::Value(v) = arg {
                        of(v);
                    }
                }
            }
            body.outputs.iter_mut().for_each(|o: &mut Output| of(&mut o.value));
        }
        if !drop.is_empty() {
            number_inputs(body);
            // The values of inputs that are gone belong to nothing.
            let clean = {
                let mut copy = Copying::new(body);
                body.nodes.values().for_each(|n| copy.node(n));
                copy.finish()
            };
            *body = clean;
        }
        !drop.is_empty()
    }
}
