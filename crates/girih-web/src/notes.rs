//! Diagnostics as a page shows them.

use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Diagnostic, Severity, Span};
use serde_json::{Value, json};

/// Why a question has no answer: notes, one of them an error.
pub struct Refused {
    pub notes: Vec<Value>,
}

impl Refused {
    /// A sentence without a place in the text.
    pub fn said(message: impl Into<String>) -> Refused {
        Refused::of("", &[crate::error(message)])
    }

    pub fn of(text: &str, found: &[Diagnostic]) -> Refused {
        Refused { notes: all(text, found) }
    }

    pub fn trap(text: &str, trap: &Trap) -> Refused {
        let mut d = Diagnostic::error(trap.code, trap.message.clone());
        d.span = trap.span;
        if !trap.op.is_empty() {
            let [x, y, z] = trap.block;
            d.message = format!("{}: {} (block {x}, {y}, {z})", trap.op, d.message);
        }
        Refused::of(text, &[d])
    }
}

pub fn all(text: &str, found: &[Diagnostic]) -> Vec<Value> {
    found.iter().map(|d| note(text, d)).collect()
}

/// Lines and columns count from 1, columns in characters.
fn note(text: &str, d: &Diagnostic) -> Value {
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let labels: Vec<Value> =
        d.labels.iter().map(|(span, label)| json!({ "line": place(text, span.start).0, "message": label })).collect();
    let mut note = json!({
        "severity": severity, "code": d.code.text(), "message": d.message, "help": d.help, "labels": labels,
    });
    if let Some(Span { start, end }) = d.span.filter(|_| !text.is_empty()) {
        let (line, column) = place(text, start);
        let (end_line, end_column) = place(text, end.max(start));
        note["line"] = json!(line);
        note["column"] = json!(column);
        note["end"] = json!([end_line, end_column]);
    }
    note
}

/// The line and the column of a byte; of the end, those behind the last word.
pub fn place(text: &str, at: u32) -> (usize, usize) {
    let mut at = (at as usize).min(text.len());
    if at == text.len() {
        at = text.trim_end().len();
    }
    let before = text.char_indices().take_while(|(i, _)| *i < at).map(|(_, c)| c);
    before.fold((1, 1), |(line, column), c| if c == '\n' { (line + 1, 1) } else { (line, column + 1) })
}
