//! Number formats, exact conversions, and the one definition of every scalar operation.

pub mod dtype;
pub mod math;
pub mod op;

pub use dtype::DType;
pub use op::ScalarOp;
