//! The inputs and outputs that a file declares, without a look at its nodes.

use std::collections::BTreeSet;

use super::proto::{Graph, ValueInfo};
use crate::graph::Elem;
use crate::graph::decompose::onnx::dtype;

/// An input or output as the file declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    pub name: String,
    /// `None` if it is not a tensor, or if Girih does not know the type of its elements.
    pub elem: Option<Elem>,
    /// `None` where the file does not say it.
    pub shape: Option<Vec<Dimension>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dimension {
    Known(u64),
    /// By the file's name; by `INPUT_dN` where it gives none.
    Named(String),
}

fn one(info: &ValueInfo) -> Declared {
    let tensor = info.kind.as_ref().and_then(|k| k.tensor.as_ref());
    let dimension = |(d, dim): (usize, &_)| match super::importer::extent(dim) {
        Some(n) => Dimension::Known(n),
        None => Dimension::Named(super::importer::dim_key(&info.name, d, dim)),
    };
    Declared {
        name: info.name.clone(),
        elem: tensor.and_then(|t| dtype::elem(t.elem).ok()),
        shape: tensor.and_then(|t| t.shape.as_ref()).map(|s| s.dims.iter().enumerate().map(dimension).collect()),
    }
}

/// Inputs and outputs, each in the file's order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ports {
    /// The inputs that a run must give.
    pub inputs: Vec<Declared>,
    /// The inputs that a run may give; otherwise the initializer is the value.
    pub defaults: Vec<Declared>,
    pub outputs: Vec<Declared>,
}

pub(super) fn of(graph: &Graph) -> Ports {
    let have_values: BTreeSet<&str> = graph.initializers.iter().map(|t| t.name.as_str()).collect();
    let (defaults, inputs): (Vec<&ValueInfo>, Vec<&ValueInfo>) =
        graph.inputs.iter().partition(|info| have_values.contains(info.name.as_str()));
    let all = |list: Vec<&ValueInfo>| list.into_iter().map(one).collect();
    Ports { inputs: all(inputs), defaults: all(defaults), outputs: graph.outputs.iter().map(one).collect() }
}
