//! Copies a graph node by node, so that a pass can leave out, replace or add nodes on the way.

use super::build::Builder;
use super::ir::{Arg, Graph, Node, Op, Output, ValueId};

/// A graph being copied from another. A pass walks the nodes of the old graph in order and gives each old value its
/// place in the new one: by [`Copying::node`], or by appending to `out` and [`Copying::bind`].
pub struct Copying<'g> {
    from: &'g Graph,
    pub out: Graph,
    map: Vec<Option<Arg>>,
}

impl<'g> Copying<'g> {
    /// Starts with the symbols, constants, origins and inputs of the old graph.
    pub fn new(from: &'g Graph) -> Copying<'g> {
        let mut out = Graph {
            name: from.name.clone(),
            symbols: from.symbols.clone(),
            constants: from.constants.clone(),
            origins: from.origins.clone(),
            guards: from.guards.clone(),
            strings: from.strings.clone(),
            listing: from.listing.clone(),
            replaced: from.replaced.clone(),
            ..Graph::default()
        };
        let mut map = vec![None; from.values.len()];
        for input in &from.inputs {
            let v = &from.values[input.value];
            let new = out.add_input(&v.name, v.elem, v.shape.clone(), input.role);
            (out.values[new].ints, out.values[new].quotients) = (v.ints.clone(), v.quotients.clone());
            if let Some(last) = out.inputs.last_mut() {
                last.fill = input.fill;
            }
            map[input.value.0 as usize] = Some(Arg::Value(new));
        }
        Copying { from, out, map }
    }

    /// An old operand in the new graph.
    pub fn arg(&self, a: Arg) -> Arg {
        match a {
            Arg::Value(v) => self.map.get(v.0 as usize).copied().flatten().unwrap_or(Arg::Absent),
            other => other,
        }
    }

    /// An old value is this one from now on.
    pub fn bind(&mut self, old: ValueId, new: Arg) {
        if let Some(slot) = self.map.get_mut(old.0 as usize) {
            *slot = Some(new);
        }
    }

    /// Copies a node as it is.
    pub fn node(&mut self, node: &Node) {
        let args = node.args.iter().map(|a| self.arg(*a)).collect();
        self.node_as(node, node.op.clone(), args);
    }

    /// Copies a node with another operation and operands (of the new graph), its results keeping names and types.
    pub fn node_as(&mut self, node: &Node, op: Op, args: Vec<Arg>) {
        let old = node.results.iter().map(|v| &self.from.values[*v]);
        let results = old.map(|v| (v.name.clone(), v.elem, v.shape.clone())).collect();
        let id = self.out.add_node(op, args, results, node.origin);
        let new = self.out.nodes[id].results.clone();
        for (old, new) in node.results.iter().zip(new) {
            let from = &self.from.values[*old];
            self.out.values[new].ints = from.ints.clone();
            self.out.values[new].quotients = from.quotients.clone();
            self.bind(*old, new.into());
        }
    }

    /// The new graph, with the outputs of the old one.
    pub fn finish(mut self) -> Graph {
        for output in &self.from.outputs {
            let value = match self.arg(Arg::Value(output.value)) {
                Arg::Value(v) => Some(v),
                x @ Arg::Scalar { elem, .. } => {
                    let shape = self.from.values[output.value].shape.clone();
                    let origin = self.out.add_origin("", "", None);
                    match Builder::new(&mut self.out, origin).full(x, elem, shape) {
                        Arg::Value(v) => Some(v),
                        _ => None,
                    }
                }
                Arg::Absent => None,
            };
            if let Some(value) = value {
                self.out.outputs.push(Output { name: output.name.clone(), value });
            }
        }
        self.out
    }
}
