//! What every other module is built on: ids, spans, diagnostics, a user's words made safe, memory, launches and targets.

pub mod budget;
pub mod codes;
pub mod diag;
pub mod host;
pub mod id;
pub mod knobs;
pub mod label;
pub mod launch;
pub mod lexer;
pub(crate) mod lines;
pub mod memory;
pub mod place;
pub mod rule;
pub mod target;
pub mod words;
#[cfg(test)]
pub mod work;

pub use budget::{Budget, Limits, TooMuch};
pub use codes::Code;
pub use diag::{Diagnostic, Severity, Span};
pub use id::IdMap;
pub use label::Label;
pub use place::{Frame, Frames, Place};
