//! The models that the Girih tile compiler reads.
//!
//! `graph`: graphs of tensor operations, their decompositions and simplifications. `source`: ONNX, PyTorch and one-line expressions as
//! graphs.
//! The crate `girih-compiler` has all layers in order.
#![forbid(unsafe_code)]

use girih_base::{base, index, num};

pub mod graph;
pub mod source;
