//! Number formats, exact conversions, and the one definition of every scalar operation.

pub mod convert;
pub mod dtype;
pub mod eval;
pub(crate) mod literal;
pub mod math;
pub mod op;
pub mod printf;
mod soft;
pub(crate) mod spell;
mod text;

pub use dtype::DType;
pub use op::ScalarOp;
pub use text::{format_float, format_mlir, parse_float};
