//! The inputs and outputs that a file declares, without a look at its nodes.

use std::collections::BTreeSet;

use super::proto::{Graph, ValueInfo};
use crate::graph::Elem;
use crate::graph::decompose::onnx::dtype;

/// An input or output as the file declares it.
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    pub name: String,
    pub kind: Kind,
    /// The type of the elements of its tensors; `None` if it has none, or if Girih does not know the type.
    pub elem: Option<Elem>,
    /// `None` where the file does not say it.
    pub shape: Option<Vec<Dimension>>,
}

/// The kind of an input or output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    #[default]
    Tensor,
    Sequence,
    Optional,
    OptionalSequence,
}

impl Kind {
    /// For messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tensor => "a tensor",
            Kind::Sequence => "a sequence of tensors",
            Kind::Optional => "an optional tensor",
            Kind::OptionalSequence => "an optional sequence of tensors",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dimension {
    Known(u64),
    /// By the file's name; by `INPUT_dN` where it gives none.
    Named(String),
}

pub(super) fn one(info: &ValueInfo) -> Declared {
    let (kind, of) = super::given::kind(info).unzip();
    let tensor = of.and_then(|k| k.tensor.as_ref());
    let dimension = |(d, dim): (usize, &_)| match super::importer::extent(dim) {
        Some(n) => Dimension::Known(n),
        None => Dimension::Named(super::importer::dim_key(&info.name, d, dim)),
    };
    Declared {
        name: info.name.clone(),
        kind: kind.unwrap_or_default(),
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
    /// See [`crate::graph::Graph::strings`].
    pub strings: Vec<String>,
}

pub(super) fn of(graph: &Graph) -> Ports {
    let have_values: BTreeSet<&str> = graph.initializers.iter().map(|t| t.name.as_str()).collect();
    let (defaults, inputs): (Vec<&ValueInfo>, Vec<&ValueInfo>) =
        graph.inputs.iter().partition(|info| have_values.contains(info.name.as_str()));
    let all = |list: Vec<&ValueInfo>| list.into_iter().map(one).collect();
    Ports {
        inputs: all(inputs),
        defaults: all(defaults),
        outputs: graph.outputs.iter().map(one).collect(),
        strings: vec![],
    }
}
