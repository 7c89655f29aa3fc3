//! A model's compilation as a page shows it: the stages of all its kernels, and the graph with the kernels that compute it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Aliases, Drawing, Explained, Kernel, Node, SourceId, Watch, of_graph, of_kernels};
use crate::graph::{Graph, Op};
use crate::loops::model::{Plan, Step as Launch};
use crate::pipeline::{self, Lowered, Stage};
use crate::tile::target::Target;

/// The compilation of a model: its graph as it was captured, its plan, and its different kernels as
/// [`pipeline::compile`] gives them.
pub fn model(
    captured: &Graph,
    model: &pipeline::Model,
    lowered: &[Lowered],
    watch: Watch,
    target: &Target,
) -> Explained {
    let plan = &model.scheduled;
    // Which of them each launch runs; the first launch that runs one gave it its name.
    let mut first: BTreeMap<String, (usize, &Launch)> = BTreeMap::new();
    let mut aliases = vec![Aliases::default(); lowered.len()];
    let mut names = vec![];
    for launch in plan.load.iter().chain(&plan.steps) {
        let at = first.len();
        let (at, shown) = *first.entry(pipeline::nameless(&launch.kernel)).or_insert((at, launch));
        names.push(shown.kernel.name.clone());
        if let Some(aliases) = aliases.get_mut(at) {
            aliases.add(&shown.kernel, &launch.kernel);
        }
    }
    let mut stages = vec![];
    if pipeline::is_torch(captured) {
        stages.push(of_graph(Stage::Torch, captured));
    }
    stages.push(of_graph(Stage::Tensor, &model.tensor));
    let kernels: Vec<(&Lowered, Aliases)> = lowered.iter().zip(aliases).collect();
    stages.extend(of_kernels(&kernels, watch.schedule, target));
    let drawing = Some(drawing(captured, &model.tensor, plan, &names));
    let places = model.tensor.origins.iter().filter_map(|(o, origin)| Some((SourceId(o.0), origin.place.clone()?)));
    Explained { target: target.name.to_string(), stages, steps: watch.steps.list, drawing, places: places.collect() }
}

/// The captured graph, and the launches of the plan; `names` are those of the kernels whose code they run.
fn drawing(graph: &Graph, tensor: &Graph, plan: &Plan, names: &[String]) -> Drawing {
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
    let launches = plan.load.iter().map(|s| (s, true)).chain(plan.steps.iter().map(|s| (s, false)));
    let kernels = launches.zip(names).map(|((launch, at_load), runs): ((&Launch, bool), &String)| Kernel {
        name: launch.kernel.name.clone(),
        at_load,
        sources: launch.origins.iter().map(|o| SourceId(o.0)).collect(),
        operations: tensor.origins_of(&launch.origins),
        same_as: (*runs != launch.kernel.name).then(|| runs.clone()),
    });
    Drawing { nodes, kernels: kernels.collect() }
}
