//! Number formats, exact conversions, and the one definition of every scalar operation.

pub mod convert;
pub mod dtype;
pub mod eval;
pub mod exact;
pub mod literal;
pub mod math;
pub mod op;
pub mod printf;
mod soft;
pub mod spell;
pub mod table;
mod text;
pub mod values;

pub use dtype::{DType, Ty};
pub use op::ScalarOp;
pub use text::{format_float, format_mlir, parse_float};
