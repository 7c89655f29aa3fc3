//! The foundation of all other modules: ids, spans, diagnostics, a user's words made safe, memory and launches.

pub mod banks;
pub mod budget;
pub mod codes;
pub mod diag;
pub mod host;
pub mod id;
pub mod label;
pub mod launch;
pub mod lexer;
pub mod lines;
pub mod location;
pub mod memory;
pub mod provenance;
pub mod rule;
pub mod words;
pub mod work;

pub use budget::{Budget, Limits, TooMuch};
pub use codes::Code;
pub use diag::{Diagnostic, Severity, Span};
pub use id::IdMap;
pub use label::{Label, Quoted};
pub use location::{Frame, Frames, Location};
