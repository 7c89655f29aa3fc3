//! Diagnostics on a terminal and as JSON.

use std::io::{IsTerminal, Write};
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use girih_compiler::base::launch::Trap;
use girih_compiler::base::{Diagnostic, Severity, Span};

/// A text and what to call it.
#[derive(Clone, Default, Debug)]
pub struct Source {
    pub name: String,
    pub text: std::sync::Arc<str>,
}

/// Whether standard error takes colour.
fn colour() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    std::io::stderr().is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// The span as a range of whole characters within the text. The end of the file is shown behind its last word.
fn range(text: &str, span: Span) -> Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    if start == text.len() {
        start = text.trim_end().len();
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

pub fn to_string(source: &Source, d: &Diagnostic, styled: bool) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(d.message.as_str()).id(d.code.text());
    let mut group = match d.span {
        Some(span) => {
            // The lines around the places are enough, and a large file is not copied.
            let mut snippet = Snippet::source(&*source.text).path(source.name.as_str()).fold(true);
            snippet = snippet.annotation(AnnotationKind::Primary.span(range(&source.text, span)));
            for (span, label) in &d.labels {
                snippet =
                    snippet.annotation(AnnotationKind::Context.span(range(&source.text, *span)).label(label.as_str()));
            }
            title.element(snippet)
        }
        None => Group::with_title(title),
    };
    if let Some(help) = d.help.as_ref().filter(|_| d.span.is_some()) {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = renderer.render(&[group]);
    // Without a place there is no margin for the help to hang on.
    if let Some(help) = d.help.as_ref().filter(|_| d.span.is_none()) {
        out.push('\n');
        out += &renderer.render(&[Group::with_title(Level::HELP.secondary_title(help.as_str()))]);
    }
    out
}

/// Renders one diagnostic to standard error.
pub fn one(source: &Source, d: &Diagnostic) {
    let text = to_string(source, d, colour());
    // Nothing can be said about a closed standard error.
    let _ = writeln!(std::io::stderr().lock(), "{text}\n");
}

pub fn all(source: &Source, diagnostics: &[Diagnostic]) {
    for d in diagnostics {
        one(source, d);
    }
}

/// A trap as an error at the operation's place, with the block it happened in.
pub fn trap(source: &Source, trap: &Trap) {
    let mut d = Diagnostic::error(trap.code, trap.message.clone());
    d.span = trap.span.filter(|_| !source.text.is_empty());
    let [x, y, z] = trap.block;
    let element = match trap.element.as_deref() {
        None | Some([]) => String::new(),
        Some([one]) => format!(", element {one} of the tile"),
        Some(many) => format!(", element {many:?} of the tile"),
    };
    d.help = Some(format!("it happened in block {x},{y},{z}{element}; `--block {x},{y},{z}` runs it alone"));
    one(source, &d);
}

/// Line and column, from 1, of a byte of the text.
pub fn place(text: &str, at: u32) -> (usize, usize) {
    let at = range(text, Span { start: at, end: at }).start;
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

pub fn json(source: &Source, d: &Diagnostic) -> serde_json::Value {
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let at = d.span.map(|s| place(&source.text, s.start));
    serde_json::json!({
        "file": source.name,
        "severity": severity,
        "code": d.code.text(),
        "message": d.message,
        "line": at.map(|p| p.0),
        "column": at.map(|p| p.1),
        "help": d.help,
    })
}
