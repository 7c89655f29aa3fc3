//! A model's compilation as a page shows it: the stages of all its kernels, and the graph with the kernels that compute it.
//!
//! In: the graphs, the plan, and each different kernel lowered. Out: [`Explained`].

use std::collections::{BTreeMap, BTreeSet};

use girih_compiler::graph::{Graph, Op};
use girih_compiler::loops::model::{Plan, Step as Launch};
use girih_compiler::pipeline::{self, Lowered, Stage};
use girih_compiler::tile::target::Target;

use super::profile;
use crate::compile::explain::{Aliases, Drawing, Explained, Kernel, Node, SourceId, Steps, of_graph, of_kernels};

/// A model's compilation: the graphs, the plan, and its different kernels in the order of the plan.
pub(crate) struct OfModel<'a> {
    pub captured: &'a Graph,
    pub tensor: &'a Graph,
    pub plan: &'a Plan,
    pub kernels: Vec<(Lowered, Aliases)>,
    /// For each launch, those of loading first, the name of the kernel whose code it runs.
    pub names: Vec<String>,
}

impl OfModel<'_> {
    pub(crate) fn explained(&self, steps: Steps, target: &Target) -> Explained {
        let mut stages = vec![];
        if pipeline::is_torch(self.captured) {
            stages.push(of_graph(Stage::Torch, self.captured));
        }
        stages.push(of_graph(Stage::Tensor, self.tensor));
        let kernels: Vec<(&Lowered, Aliases)> = self.kernels.iter().map(|(l, a)| (l, a.clone())).collect();
        stages.extend(of_kernels(&kernels, target));
        let drawing = Some(self.drawing());
        let places = self.tensor.origins.iter().filter_map(|(o, origin)| Some((SourceId(o.0), origin.place.clone()?)));
        Explained { target: target.name.to_string(), stages, steps: steps.list, drawing, places: places.collect() }
    }

    fn drawing(&self) -> Drawing {
        let graph = self.captured;
        let mut by_value = BTreeMap::new();
        let mut nodes = vec![];
        for node in graph.nodes.values() {
            // Constants are operands of steps, not steps.
            if matches!(node.op, Op::Constant(_)) {
                continue;
            }
            let origin = graph.origins.get(node.origin);
            let op = match &node.op {
                Op::Source { name, .. } => name.clone(),
                _ => origin.map_or(String::new(), |o| o.op.clone()),
            };
            let first = node.results.first().and_then(|v| graph.values.get(*v));
            let ty = first.map_or(String::new(), |v| {
                let shape: Vec<String> = v.shape.iter().map(|ix| graph.ix_text(ix)).collect();
                format!("{}[{}]", v.elem, shape.join(", "))
            });
            let inputs: BTreeSet<usize> = node.values().filter_map(|v| by_value.get(&v).copied()).collect();
            by_value.extend(node.results.iter().map(|v| (*v, nodes.len())));
            nodes.push(Node {
                source: SourceId(node.origin.0),
                op,
                name: origin.map_or(String::new(), |o| o.name.clone()),
                ty,
                inputs: inputs.into_iter().collect(),
            });
        }
        let launches = self.plan.load.iter().map(|s| (s, true)).chain(self.plan.steps.iter().map(|s| (s, false)));
        let kernels = launches.zip(&self.names).map(|((launch, at_load), runs): ((&Launch, bool), &String)| Kernel {
            name: launch.kernel.name.clone(),
            at_load,
            sources: launch.origins.iter().map(|o| SourceId(o.0)).collect(),
            operations: profile::origins(self.tensor, &launch.origins),
            same_as: (*runs != launch.kernel.name).then(|| runs.clone()),
        });
        Drawing { nodes, kernels: kernels.collect() }
    }
}
