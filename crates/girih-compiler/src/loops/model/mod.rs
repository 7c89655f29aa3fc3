//! Models: Tensor IR to kernels in Loop IR.
//!
//! In: a graph of primitives. Out: a [`Plan`]: kernels in order, the arrays between them, and how each is launched.

pub mod plan;

pub use plan::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
