//! Models: Tensor IR to kernels in Loop IR.
//!
//! In: a graph of primitives. Out: a [`Plan`]: kernels in order, the arrays between them, and how each is launched.

mod attention;
mod builder;
mod concat;
pub mod eval;
mod fuse;
mod lower;
mod online_softmax;
pub mod plan;
mod product;
pub mod roles;
mod rows;
mod scan_sort_scatter;
mod scatter_blocks;
mod sort_blocks;
mod sort_rows;

pub use lower::{Options, lower};
pub use plan::{Array, ArrayId, ArrayPlace, Loop, LoopId, Move, Part, Plan, Runner, Step, StepArg};
