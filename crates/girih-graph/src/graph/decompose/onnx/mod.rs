//! Operators of ONNX that have no counterpart elsewhere in this folder: one file each family.
//!
//! A rule handles `onnx.NAME` in every version that is read; where versions differ, an operand that was an attribute is
//! taken from either, and the attribute `opset` says the version.

pub(super) mod attention;
pub(super) mod chosen;
mod common;
pub(super) mod contrib;
pub(super) mod contrib_quantized;
pub(super) mod deform;
pub mod dtype;
pub(super) mod elementwise;
pub(super) mod gather;
pub(super) mod grid;
pub(super) mod image;
pub(super) mod loss;
pub(super) mod ml;
pub(super) mod ngrams;
pub(super) mod products;
pub(super) mod quantize;
pub(super) mod quantized_products;
pub(super) mod reduce;
pub(super) mod refused;
pub(super) mod rnn;
pub(super) mod shape;
pub(super) mod signal;
pub(super) mod slices;
pub(super) mod state;
pub(super) mod svm;
pub(super) mod training;
pub(super) mod trees;
pub(super) mod types;
