//! Operators of ONNX that have no counterpart elsewhere in this folder: one file each family.
//!
//! A rule handles `onnx.NAME` in every version that is read; where versions differ, an operand that was an attribute is
//! taken from either, and the attribute `opset` says the version.

mod common;
pub mod dtype;
pub(super) mod elementwise;
pub(super) mod gather;
pub(super) mod parts;
pub(super) mod products;
pub(super) mod quantize;
pub(super) mod reduce;
pub(super) mod shape;
pub(super) mod types;
