//! Texts and the graphs they make. Types and values that stand here were worked out by hand or read off PyTorch.

use super::{Given, evaluate};
use crate::graph::{Elem, Fill, Graph, Op, Role};

fn graph(text: &str) -> Graph {
    with(text, &[])
}

fn with(text: &str, inputs: &[Given]) -> Graph {
    match evaluate(text, inputs) {
        Ok(e) => e.graph,
        Err(errors) => panic!("{text}\n{:?}", errors.iter().map(|e| &e.message).collect::<Vec<_>>()),
    }
}

/// The messages of a text that is refused.
fn errors(text: &str) -> Vec<String> {
    match evaluate(text, &[]) {
        Ok(_) => panic!("{text} is accepted"),
        Err(errors) => errors.into_iter().map(|e| e.message).collect(),
    }
}

/// `name: type[shape] role` of each input.
fn inputs(g: &Graph) -> Vec<String> {
    let one = |i: &crate::graph::Input| {
        let v = &g.values[i.value];
        let shape: Vec<String> = v.shape.iter().map(|d| g.ix_text(d)).collect();
        let role = if i.role == Role::Parameter { " parameter" } else { "" };
        format!("{}: {}[{}]{role}", v.name, v.elem, shape.join(", "))
    };
    g.inputs.iter().map(one).collect()
}

/// `name: type[shape]` of each output.
fn outputs(g: &Graph) -> Vec<String> {
    let one = |o: &crate::graph::Output| {
        let v = &g.values[o.value];
        let shape: Vec<String> = v.shape.iter().map(|d| g.ix_text(d)).collect();
        format!("{}: {}[{}]", o.name, v.elem, shape.join(", "))
    };
    g.outputs.iter().map(one).collect()
}

/// The source operations in order.
fn operations(g: &Graph) -> Vec<String> {
    let name = |n: &crate::graph::Node| match &n.op {
        Op::Source { name, .. } => Some(name.clone()),
        _ => None,
    };
    g.nodes.values().filter_map(name).collect()
}

#[test]
fn rms_norm_of_the_article() {
    let g = graph("torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))");
    assert_eq!(operations(&g), ["aten.rms_norm"]);
    assert_eq!(inputs(&g), ["x: f32[1, 32, 2048]", "weight: f32[2048] parameter"]);
    assert_eq!(outputs(&g), ["out: f32[1, 32, 2048]"]);
    assert_eq!(g.inputs[0].fill, Fill::Normal);
    assert_eq!(g.inputs[1].fill, Fill::Constant(1.0));
}
