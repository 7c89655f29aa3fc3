//! Messages about a text: all are E0805 with a span.

use crate::base::{Code, Diagnostic, Span};

/// A problem at a place of the text.
pub fn bad(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadExpression, message).at(span)
}

/// Evaluation stopped; the reason is in the evaluator's list of diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop;

pub type Res<T> = Result<T, Stop>;
