//! What every other module stands on: ids, spans, diagnostics, memory, launches and targets.

pub mod codes;
pub mod diag;
pub mod host;
pub mod id;
pub mod launch;
pub mod lexer;
pub(crate) mod lines;
pub mod memory;
pub mod place;
pub mod rule;
pub mod target;

pub use codes::Code;
pub use diag::{Diagnostic, Severity, Span};
pub use id::IdMap;
pub use place::{Frame, Frames, Place};
