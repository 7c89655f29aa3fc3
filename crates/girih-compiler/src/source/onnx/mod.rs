//! ONNX files.
//!
//! In: the bytes of a model (mapped from its file: constants stay slices of them) and what the user says about its
//! inputs. Out: a graph in Torch IR, every node of the model one operation `onnx.NAME` with the model's names, or all that
//! is wrong with the file.
//!
//! ```text
//! node { input: "x" input: "w" output: "y" name: "fc" op_type: "Gemm" attribute { name: "transB" i: 1 type: INT } }
//! -->
//! y: f32[batch, 10] = onnx.Gemm x, w {opset = 17, transB = 1}
//! ```
//!
//! * A dimension with a name is a symbol: the same name, the same symbol. One without a name gets a symbol of its own.
//! * The types of results come from the decompositions; types that the file states are compared with them.
//! * Functions of the model are inlined, an `If` whose condition the shapes determine becomes the branch taken.
//! * Operations, versions and types that are not supported are collected and reported together.

mod attributes;
mod control;
mod importer;
mod proto;
mod tensor;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::base::{Code, Diagnostic};
use crate::graph::{Constant, Graph};

/// The newest version of the main set of operators that is read.
pub const NEWEST_OPSET: i64 = 28;
/// The oldest one. Operators that meant something else before 13 are refused below their version.
pub const OLDEST_OPSET: i64 = 7;

/// What is known of a model beside its file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Inputs whose elements are known when the model is compiled: they become constants. A model whose shapes depend
    /// on the elements of an input can be compiled for one value of it.
    pub known: BTreeMap<String, Constant>,
    /// Least and greatest value of named dimensions; a range of one value fixes the dimension. Others range from 1, or
    /// from 0 where the name starts with `past`: the key-value cache before the first token.
    pub dims: BTreeMap<String, (i64, Option<i64>)>,
}

/// The graph of a model.
///
/// Errors: E0801 for what is not a model, E0802 for what is not supported (one for each operator, all of them), E0803
/// for operands that do not fit, E0804 for weights outside the model's folder.
pub fn import(bytes: &Bytes, options: &Options) -> Result<Graph, Vec<Diagnostic>> {
    let model: proto::Model = wire::decode(bytes).map_err(|fault| {
        let what = fault.what;
        vec![
            Diagnostic::error(Code::BadModel, format!("the model cannot be read at byte {}: {what}", fault.at))
                .help("the file is cut short, damaged, or not an ONNX model"),
        ]
    })?;
    importer::run(&model, options)
}
