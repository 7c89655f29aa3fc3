//! `Loop` and `Scan`, unrolled: their number of rounds must follow from constants and fixed extents.

use super::attributes::resolve;
use super::importer::{Body, Importer, Scope, Slot, node_text};
use super::proto::{Graph as GraphProto, Node};
use crate::base::Code;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::normal_axis;
use crate::graph::{Arg, Builder, Elem, OriginId};
use crate::index::Ix;

/// The most rounds that are unrolled.
const MOST_ROUNDS: i64 = 1024;

impl<'m> Importer<'m> {
    fn inner_graph(&mut self, node: &'m Node, body: Body<'_, 'm>) -> Option<&'m GraphProto> {
        let a = node.attributes.iter().find(|a| a.name == "body");
        let graph = a.and_then(|a| resolve(a, body.bound)).and_then(|a| a.g.as_deref());
        if graph.is_none() {
            self.error(Code::BadModel, format!("node {} has no body", node_text(node)));
        }
        graph
    }

    /// One round: the body with these inputs.
    fn round(
        &mut self,
        graph: &'m GraphProto,
        inputs: &[Arg],
        node: &Node,
        body: Body<'_, 'm>,
        origin: OriginId,
    ) -> Option<Vec<Arg>> {
        if inputs.len() != graph.inputs.len() {
            let (given, has) = (inputs.len(), graph.inputs.len());
            self.error(Code::BadModel, format!("node {} gives {given} values to a body of {has}", node_text(node)));
            return None;
        }
        self.scopes.push(Scope::default());
        for (info, arg) in graph.inputs.iter().zip(inputs) {
            self.define(&info.name, Slot::Is(*arg));
        }
        self.initializers(graph, origin);
        self.body(&graph.nodes, Body { depth: body.depth + 1, ..body });
        let results = self.results(graph.outputs.iter().map(|o| o.name.as_str()), node);
        self.scopes.pop();
        let one = |slot: Slot| match slot {
            Slot::Is(arg) => Some(arg),
            Slot::Refused => None,
        };
        results?.into_iter().map(one).collect()
    }

    fn known(&mut self, x: Option<Arg>, origin: OriginId) -> Option<i64> {
        let list = Builder::new(&mut self.graph, origin).ints(x?)?;
        match &list[..] {
            [one] => one.as_const(),
            _ => None,
        }
    }

    fn refused<T>(&mut self, node: &Node, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(x) => Some(x),
            Err(refusal) => {
                self.refuse(node, refusal);
                None
            }
        }
    }

    /// `(rounds?, condition?, carried...)`
    pub(super) fn repeat(&mut self, node: &'m Node, args: Vec<Arg>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = self.inner_graph(node, body)?;
        if !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.Loop", &node.name, None);
        let given = |i: usize| args.get(i).copied().filter(|a| *a != Arg::Absent);
        let most = match given(0) {
            None => Some(i64::MAX),
            some => self.known(some, origin),
        };
        let unknown = "how often it runs must be known when the model is compiled";
        let Some(most) = most else {
            self.refuse(node, Refusal::new(unknown));
            return None;
        };
        let mut carried: Vec<Arg> = args.iter().skip(2).copied().collect();
        let stacked = graph.outputs.len().saturating_sub(1 + carried.len());
        let mut rows: Vec<Vec<Arg>> = vec![vec![]; stacked];
        let yes = Builder::new(&mut self.graph, origin).int_constant(Elem::BOOL, &[], &[1]);
        let mut condition = given(1).unwrap_or(yes);
        for round in 0..most {
            match self.known(Some(condition), origin) {
                Some(0) => break,
                Some(_) if round < MOST_ROUNDS => {}
                Some(_) => {
                    self.refuse(node, Refusal::new(format!("it runs more than {MOST_ROUNDS} times")));
                    return None;
                }
                None => {
                    self.refuse(node, Refusal::new(unknown));
                    return None;
                }
            }
            if !self.spend(node) {
                return None;
            }
            let counter = Builder::new(&mut self.graph, origin).int_constant(Elem::I64, &[], &[round]);
            let inputs = [&[counter, condition], &carried[..]].concat();
            let mut results = self.round(graph, &inputs, node, body, origin)?.into_iter();
            condition = results.next()?;
            carried = results.by_ref().take(carried.len()).collect();
            for (row, x) in rows.iter_mut().zip(results) {
                row.push(x);
            }
        }
        let mut out: Vec<Slot> = carried.into_iter().map(Slot::Is).collect();
        for row in rows {
            let stacked = self.stack(&row, 0, origin);
            out.push(Slot::Is(self.refused(node, stacked)?));
        }
        Some(out)
    }

    /// Values one after the other along a new axis.
    fn stack(&mut self, row: &[Arg], axis: i64, origin: OriginId) -> Result<Arg> {
        let Some(first) = row.first() else {
            return Err(Refusal::new("it runs zero times, so its results have no type"));
        };
        let mut b = Builder::new(&mut self.graph, origin);
        let axis = normal_axis(axis, b.rank(*first) + 1)?;
        let parts = row.iter().map(|x| b.unsqueeze(*x, &[axis])).collect::<Result<Vec<Arg>>>()?;
        b.concat(&parts, axis)
    }

    /// `(state..., scanned...)`
    pub(super) fn scan(&mut self, node: &'m Node, args: Vec<Arg>, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let graph = self.inner_graph(node, body)?;
        if !self.deeper(body.depth, node) {
            return None;
        }
        let origin = self.graph.add_origin("onnx.Scan", &node.name, None);
        let list = |name: &str| {
            let a = node.attributes.iter().find(|a| a.name == name);
            a.and_then(|a| resolve(a, body.bound)).map_or(&[][..], |a| &a.ints[..])
        };
        let count = node.attributes.iter().find(|a| a.name == "num_scan_inputs");
        let count = count.and_then(|a| resolve(a, body.bound)).map_or(0, |a| a.i);
        let count = usize::try_from(count).ok().filter(|n| (1..=args.len()).contains(n));
        let Some(states) = count.map(|n| args.len() - n) else {
            self.error(Code::BadModel, format!("node {} scans more inputs than it has, or none", node_text(node)));
            return None;
        };
        let at = |name: &str, i: usize| list(name).get(i).copied().unwrap_or(0);
        let prepared = self.scanned(&args[states..], &|i| at("scan_input_axes", i), origin);
        let (axes, rounds) = self.refused(node, prepared)?;
        let mut state: Vec<Arg> = args[..states].to_vec();
        let stacked = graph.outputs.len().saturating_sub(states);
        let mut rows: Vec<Vec<Arg>> = vec![vec![]; stacked];
        for round in 0..rounds {
            if !self.spend(node) {
                return None;
            }
            let mut inputs = state.clone();
            for (i, (x, axis)) in args[states..].iter().zip(&axes).enumerate() {
                let place = if at("scan_input_directions", i) == 0 { round } else { rounds - 1 - round };
                let mut b = Builder::new(&mut self.graph, origin);
                let row = b.slice(*x, *axis, Ix::Const(place), 1, Ix::Const(1)).and_then(|r| b.squeeze(r, &[*axis]));
                inputs.push(self.refused(node, row)?);
            }
            let mut results = self.round(graph, &inputs, node, body, origin)?.into_iter();
            state = results.by_ref().take(states).collect();
            for (row, x) in rows.iter_mut().zip(results) {
                row.push(x);
            }
        }
        let mut out: Vec<Slot> = state.into_iter().map(Slot::Is).collect();
        for (i, mut row) in rows.into_iter().enumerate() {
            if at("scan_output_directions", i) != 0 {
                row.reverse();
            }
            let stacked = self.stack(&row, at("scan_output_axes", i), origin);
            out.push(Slot::Is(self.refused(node, stacked)?));
        }
        Some(out)
    }

    /// The axes that a scan runs along, and how far.
    fn scanned(&mut self, xs: &[Arg], axis: &dyn Fn(usize) -> i64, origin: OriginId) -> Result<(Vec<usize>, i64)> {
        let b = Builder::new(&mut self.graph, origin);
        let (mut axes, mut rounds) = (vec![], None);
        for (i, x) in xs.iter().enumerate() {
            let shape = b.shape(*x);
            let axis = normal_axis(axis(i), shape.len())?;
            let Some(n) = shape.get(axis).and_then(Ix::as_const) else {
                return Err(Refusal::new("how often it runs must be known when the model is compiled"));
            };
            if rounds.is_some_and(|r| r != n) || n > MOST_ROUNDS {
                return Err(Refusal::new(format!("its inputs differ in length, or are longer than {MOST_ROUNDS}")));
            }
            rounds = Some(n);
            axes.push(axis);
        }
        Ok((axes, rounds.unwrap_or(0)))
    }
}
