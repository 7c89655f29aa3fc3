//! Diagnostics as a page shows them.

use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Diagnostic, Frames, Severity};
use serde_json::{Value, json};

use crate::Text;

/// Why a question has no answer: notes, one of them an error.
pub struct Refused {
    pub notes: Vec<Value>,
}

impl Refused {
    /// A sentence without a place in the text.
    pub fn said(message: impl Into<String>) -> Refused {
        Refused::of("", &[crate::error(message)])
    }

    pub fn of<'a>(text: impl Into<Text<'a>>, found: &[Diagnostic]) -> Refused {
        Refused { notes: all(text, found) }
    }

    pub fn trap<'a>(text: impl Into<Text<'a>>, trap: &Trap) -> Refused {
        let mut d = Diagnostic::error(trap.code, trap.message.clone());
        (d.span, d.frames) = (trap.span, Frames::clone(&trap.frames));
        if !trap.op.is_empty() {
            let [x, y, z] = trap.block;
            d.message = format!("{}: {} (block {x}, {y}, {z})", trap.op, d.message);
        }
        Refused::of(text, &[d])
    }
}

pub fn all<'a>(text: impl Into<Text<'a>>, found: &[Diagnostic]) -> Vec<Value> {
    let text = text.into();
    found.iter().map(|d| note(text, d)).collect()
}

/// Lines and columns count from 1, columns in characters.
fn note(text: Text<'_>, d: &Diagnostic) -> Value {
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut note = json!({
        "severity": severity, "code": d.code.text(), "message": d.message, "help": d.help, "labels": [],
    });
    if let Some(written) = text.written {
        if let Some(frame) = d.frames.iter().find(|f| *f.place.file == *written.file) {
            (note["line"], note["column"]) = (json!(frame.place.line), json!(frame.place.column));
            note["end"] = json!([frame.place.line, frame.place.column]);
        }
        return note;
    }
    let at = |at| place(text.own, at);
    note["labels"] =
        d.labels.iter().map(|(span, label)| json!({ "line": at(span.start).0, "message": label })).collect();
    if let Some(span) = d.span.filter(|_| !text.own.is_empty()) {
        let ((line, column), end) = (at(span.start), at(span.end.max(span.start)));
        (note["line"], note["column"], note["end"]) = (json!(line), json!(column), json!([end.0, end.1]));
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
