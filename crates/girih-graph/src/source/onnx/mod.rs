//! ONNX files.
//!
//! In: the bytes of a model (mapped from its file: constants stay slices of them) and the user's statements about its
//! inputs. Out: a graph in Torch IR, where every node of the model is one operation `onnx.NAME` with the model's names,
//! or all errors in the file.
//!
//! ```text
//! node { input: "x" input: "w" output: "y" name: "fc" op_type: "Gemm" attribute { name: "transB" i: 1 type: INT } }
//! -->
//! y: f32[batch, 10] = onnx.Gemm x, w {opset = 17, transB = 1}
//! ```
//!
//! * A dimension with a name is a symbol: the same name, the same symbol. One without a name gets a symbol of its own.
//! * The types of results come from the decompositions; element types that the file states are compared with them.
//! * Functions of the model are inlined, an `If` whose condition the shapes determine becomes the branch taken, loops with
//!   a known number of rounds are unrolled, and short operations on constants are computed.
//! * Operations, versions and types that are not supported are collected and reported together.

mod attributes;
mod control;
mod counted;
mod declared;
mod fold;
mod given;
mod importer;
mod lists;
mod loops;
mod proto;
mod strings;
mod tensor;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::base::{Code, Diagnostic};
use crate::graph::assume::Assumptions;
use crate::graph::ir::MAX_EXTENT;
use crate::graph::{Constant, Graph};
use crate::index::ValId;

pub use declared::{Declared, Dimension, Kind, Ports};
pub use given::{empty as empty_of, item as item_of};
pub use importer::{free_key, symbol_of};

/// The newest version of the main set of operators that is read.
pub const NEWEST_OPSET: i64 = 28;
/// The oldest one. Scan before 9 is refused.
pub const OLDEST_OPSET: i64 = 7;

/// The facts about a model that its file does not state.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Inputs whose elements are known when the model is compiled: they become constants. A model whose shapes depend
    /// on the elements of an input can be compiled for one value of it.
    pub known: BTreeMap<String, Constant>,
    /// Least and greatest value of named dimensions; a range of one value fixes the dimension. Others range from 1, or
    /// from 0 where the name starts with `past`: the key-value cache before the first token.
    pub dims: BTreeMap<String, (i64, Option<i64>)>,
    /// The shapes of inputs, by name: their dimensions are numbers, and so are all other dimensions of the same names.
    /// A model whose structure depends on its shapes can be compiled for one set of them.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// The number of axes of inputs whose shape the file does not state, by name: their dimensions are free.
    pub ranks: BTreeMap<String, usize>,
    /// Names of dimensions that stand for a different extent in each place.
    pub apart: BTreeSet<String>,
    /// Inputs with an initializer for which a run gives another value.
    pub given: BTreeSet<String>,
    /// How many tensors are given for inputs that are sequences or optional values, by name.
    pub lists: BTreeMap<String, usize>,
    /// The assumptions about named dimensions; see [`import_assuming`].
    pub assumed: Assumptions,
    /// The bytes that decompositions may list element by element; see [`crate::graph::ir::LISTED`], the default.
    pub listed: Option<u64>,
}

impl Options {
    /// The values that a named dimension may have.
    fn range(&self, name: &str) -> (i64, Option<i64>) {
        match self.dims.get(name).or_else(|| self.dims.get(&symbol_of(name))) {
            Some(&(lo, hi)) => (lo.clamp(0, MAX_EXTENT), hi),
            None if name.starts_with("past") => (0, None),
            None => (1, None),
        }
    }
}

/// The graph of a model.
///
/// Errors: E0801 for what is not a model, E0802 for what is not supported (one for each operator, all of them), E0803
/// for operands that do not fit, E0804 for weights outside the model's folder.
pub fn import(bytes: &Bytes, options: &Options) -> Result<Graph, Vec<Diagnostic>> {
    importer::run(&decode(bytes)?, options).map_err(|refused| refused.diagnostics)
}

/// The most assumptions that are made for one model.
const MOST_ASSUMPTIONS: usize = 64;

/// The graph of a model for inputs of these shapes and others like them. If an operation can only be read under an
/// assumption about extents that holds for these shapes, the assumption is made, and the inputs of the graph have such
/// extents. Returns the assumptions too.
///
/// Errors: those of [`import`], where no assumption helps.
pub fn import_assuming(
    bytes: &Bytes,
    options: &Options,
    shapes: &BTreeMap<String, Vec<u64>>,
) -> Result<(Graph, Assumptions), Vec<Diagnostic>> {
    let model = decode(bytes)?;
    let extents = importer::extents(&model, options, shapes);
    let mut options = options.clone();
    for _ in 0..MOST_ASSUMPTIONS {
        let refused = match importer::run(&model, &options) {
            Ok(graph) => return Ok((graph, options.assumed)),
            Err(refused) => refused,
        };
        let mut assumed = options.assumed.clone();
        for (name, lo, hi) in refused.dimensions.values() {
            if let Some(extent) = extents.get(name) {
                assumed.dimension(name, *lo, *hi, *extent);
            }
        }
        let name = |v: ValId| refused.dimensions.get(&v).map(|(name, ..)| name.clone());
        let mut helped = false;
        for of_node in &refused.questions {
            // An assumption that helped another node may have helped this one.
            if helped && of_node.iter().any(|question| assumed.answers(question, &name)) {
                continue;
            }
            if let Some(more) = of_node.iter().find_map(|question| assumed.answer(question, &name)) {
                (assumed, helped) = (more, true);
            }
        }
        if !helped {
            return Err(refused.diagnostics);
        }
        options.assumed = assumed;
    }
    import(bytes, &options).map(|graph| (graph, options.assumed))
}

fn decode(bytes: &Bytes) -> Result<proto::Model, Vec<Diagnostic>> {
    let bad = |message: String| {
        vec![Diagnostic::error(Code::BadModel, message).help("the file is cut short, damaged, or not an ONNX model")]
    };
    if bytes.is_empty() {
        return Err(bad("the model has 0 bytes".into()));
    }
    let model: proto::Model = wire::decode(bytes)
        .map_err(|fault| bad(format!("the model cannot be read at byte {}: {}", fault.at, fault.what)))?;
    if model.graph.is_none() {
        return Err(bad("the file has no graph".into()));
    }
    Ok(model)
}

/// The inputs and outputs that the file declares.
pub fn declared(bytes: &Bytes) -> Result<Ports, Vec<Diagnostic>> {
    let model = decode(bytes)?;
    let ports = model.graph.as_ref().map(declared::of).unwrap_or_default();
    Ok(Ports { strings: strings::Words::of(&model).list, ..ports })
}

/// The most elements of an argument that [`import_for`] makes a constant.
pub const MOST_KNOWN: u64 = 1024;

/// The graph of a model for a run with these arguments (by name). If shapes depend on the elements of inputs, the
/// fewest kinds of arguments become constants: none, then lists of integers, then of floats, then anything short.
///
/// Errors: those of [`import`] without constants.
pub fn import_for(bytes: &Bytes, options: &Options, arguments: &[Constant]) -> Result<Graph, Vec<Diagnostic>> {
    let refused = match import(bytes, options) {
        Ok(graph) => return Ok(graph),
        Err(refused) => refused,
    };
    let short = |c: &Constant| c.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).is_some_and(|n| n <= MOST_KNOWN);
    let kinds: [fn(&Constant) -> bool; 3] =
        [|c| c.shape.len() < 2 && !c.elem.is_float(), |c| c.shape.len() < 2, |_| true];
    let mut before = 0;
    for kind in kinds {
        let mut options = options.clone();
        options.known.extend(arguments.iter().filter(|c| short(c) && kind(c)).map(|c| (c.name.clone(), c.clone())));
        if options.known.len() > before
            && let Ok(graph) = import(bytes, &options)
        {
            return Ok(graph);
        }
        before = options.known.len();
    }
    Err(refused)
}

/// A tensor in a file of its own (`TensorProto`), as ONNX's test data are.
pub fn read_tensor(bytes: &Bytes) -> Result<Constant, Diagnostic> {
    let proto: proto::Tensor = wire::decode(bytes).map_err(|fault| {
        let message = format!("the tensor cannot be read at byte {}: {}", fault.at, fault.what);
        Diagnostic::error(Code::BadModel, message)
    })?;
    let unsupported =
        |name: &str| Diagnostic::error(Code::UnsupportedOperator, format!("the element type {name} is not supported"));
    let constant =
        tensor::constant(&proto, &proto.name, &strings::Words::default()).map_err(|trouble| match trouble {
            tensor::Trouble::Error(d) => d,
            tensor::Trouble::Type(name) => unsupported(&name),
        })?;
    // A string has a number only beside a model.
    if constant.elem.text { Err(unsupported("string")) } else { Ok(constant) }
}
