//! Models: Tensor IR to kernels in Loop IR.
//!
//! In: a graph of primitives. Out: a [`Plan`]: kernels in order, the arrays between them, and how each is launched.

mod emit;
pub mod eval;
mod fuse;
mod lower;
mod parts;
pub mod plan;
mod product;
mod roles;
mod rows;
mod stream;
mod streamed;
#[cfg(test)]
mod tests;
mod whole;
#[cfg(test)]
mod work_tests;

pub use lower::{Options, lower};
pub use plan::{Array, ArrayId, ArrayPlace, Plan, Step, StepArg};
