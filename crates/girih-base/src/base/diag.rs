//! Diagnostics: the messages to a user about their input.

use super::codes::Code;
use super::label::visible_lines;
use super::location::Frames;
use super::words::shorten;

/// A byte range of the source text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// One message: a code, the place in the user's text, one plain sentence and, if there is one, a help line. Its words
/// quote users' text and show on terminals, so invisible characters are escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Code,
    pub message: String,
    pub span: Option<Span>,
    /// Other places that matter, each with its label.
    pub labels: Vec<(Span, String)>,
    pub help: Option<String>,
    /// The place in the files that the text was made from, innermost first.
    pub frames: Frames,
}

impl Diagnostic {
    pub fn error(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: readable(code, message),
            span: None,
            labels: vec![],
            help: None,
            frames: Frames::default(),
        }
    }
    pub fn warning(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }
    pub fn note(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(code, message) }
    }
    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span = Some(span);
        self
    }
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push((span, readable(self.code, text)));
        self
    }
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(readable(self.code, text));
        self
    }
    pub fn maybe_help(self, text: Option<impl Into<String>>) -> Diagnostic {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }
    pub fn from(mut self, frames: Frames) -> Diagnostic {
        self.frames = frames;
        self
    }
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Makes a text safe to show: it cannot move a terminal's cursor, and users' words are shortened. The text of an
/// internal bug stays whole.
fn readable(code: Code, text: impl Into<String>) -> String {
    let text = text.into();
    let text = visible_lines(&text);
    match code {
        Code::InternalBug => text.into_owned(),
        _ => shorten(&text).into_owned(),
    }
}
