//! Tensor graphs: the `torch` and `tensor` stages of a model.
//!
//! In: a graph that a front end built ([`Graph`], operations of its source by name). Out: the same graph in primitives,
//! which `loops` lowers to kernels.
//!
//! Both stages share one data type. Torch IR may hold [`Op::Source`] nodes (`aten.linear`, `onnx.Softmax`); the rules of
//! [`decompose`] replace each by primitives, and Tensor IR holds only those.

pub mod assume;
pub mod bind;
pub mod bounds;
pub mod build;
pub mod copy;
pub mod decompose;
mod elem;
pub mod eval;
pub mod ir;
pub mod channels_first;
pub mod long_sorts;
pub mod scaled_weights;
pub mod scatter_parts;
pub mod signed_bytes;
mod symbolic_floats;
mod symbolic_ints;
mod names;
pub mod parse;
pub mod print;
pub mod simplify;
mod spell;
#[cfg(test)]
mod text_tests;
pub mod verify;

pub use build::{Builder, Refusal};
pub use elem::Elem;
pub use ir::{
    Arg, Attr, Attrs, ConstData, ConstId, Constant, Coord, Fill, Graph, Input, MAX_EXTENT, MapSource, Node, NodeId, Op,
    Origin, OriginId, Output, Part, ReduceOp, Repeat, Role, ScanOp, ScatterOp, SymId, Symbol, Value, ValueId,
};
