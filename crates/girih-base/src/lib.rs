//! The foundation of the Girih tile compiler.
//!
//! `base`: ids, diagnostics, rules and the evaluators' memory. `num`: number formats and scalar operations. `index`: index
//! expressions.
//! The crate `girih-compiler` has all layers in order.
#![forbid(unsafe_code)]

pub mod base;
pub mod num;
pub mod index;
