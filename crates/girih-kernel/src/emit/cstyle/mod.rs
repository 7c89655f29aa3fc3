//! The parts of a printer that all C-like languages share.
//!
//! In: scalar operations, index expressions and constants of kernels, and a [`Dialect`]: how a language spells types and
//! functions, and what it computes by itself. Out: expressions, and the helper functions that they call.
//!
//! * [`dialect`]: how languages differ    * [`lines`]: indented lines    * [`index`]: index expressions
//! * [`ops`]: scalar operations    * [`math`]: transcendental programs
//! * [`library`], [`soft`]: helper functions    * [`support`]: which of them a unit needs

pub mod dialect;
pub mod index;
pub mod library;
pub mod lines;
pub mod math;
pub mod ops;
pub mod soft;
pub mod support;

pub use dialect::Dialect;
pub use index::Indices;
pub use lines::Lines;
