//! Diagnostics on a terminal and as JSON.
//!
//! Invariant: users' texts, in messages and as names of files, are shown and never obeyed: it goes through
//! `base::label`, and lines of source through the renderer, which does the same.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::path::Path;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use girih_compiler::base::label::{visible, visible_in_place, visible_lines};
use girih_compiler::base::launch::Trap;
use girih_compiler::base::location::chain_text;
use girih_compiler::base::{Code, Diagnostic, Frame, Location, Severity, Span};

/// A text or bytecode, with its name.
#[derive(Clone, Default, Debug)]
pub struct Source {
    pub name: String,
    /// Empty for bytecode.
    pub text: std::sync::Arc<str>,
    pub bytecode: Option<std::sync::Arc<[u8]>>,
}

/// Returns true if standard error takes colour.
fn colour() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    std::io::stderr().is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// A longer stretch of one line is marked from its start only.
const LONGEST_MARK: usize = 400;

/// The span as a range of whole characters within the text. The end of the file is shown behind its last word.
fn range(text: &str, span: Span) -> Range<usize> {
    let mut start = (span.start as usize).min(text.len());
    if start == text.len() {
        start = text.trim_end().len();
    }
    let mut end = (span.end as usize).clamp(start, text.len());
    let one_line = text.as_bytes()[start..end].iter().take(LONGEST_MARK).all(|&b| b != b'\n');
    if one_line {
        end = end.min(start + LONGEST_MARK);
    }
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Returns true if two places on one line are so far apart that showing both would show a long line.
fn far_on_one_line(text: &str, a: Span, b: Span) -> bool {
    let (a, b) = (range(text, a).start, range(text, b).start);
    let between = &text.as_bytes()[a.min(b)..a.max(b)];
    between.len() > LONGEST_MARK && !between.contains(&b'\n')
}

pub fn to_string(source: &Source, d: &Diagnostic, styled: bool) -> String {
    let level = match d.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let (name, text) = (visible(&source.name), visible_in_place(&source.text));
    let title = level.primary_title(visible_lines(&d.message)).id(d.code.text());
    let user_file = d.frames.first().and_then(|f| read_user_file(&f.place, &source.name));
    let mut group = match (d.span, d.frames.first()) {
        (_, Some(frame)) => match &user_file {
            Some((text, line)) => {
                let snippet = Snippet::source(text.as_str()).path(visible(&frame.place.file)).fold(true);
                title.element(snippet.annotation(AnnotationKind::Primary.span(line.clone())))
            }
            None => {
                let place = &frame.place;
                title.element(
                    Origin::path(visible(&place.file)).line(place.line as usize).char_column(place.column as usize),
                )
            }
        },
        (Some(span), None) if source.bytecode.is_some() => {
            title.element(Origin::path(format!("{name}: byte {}", span.start)))
        }
        (Some(span), None) => {
            // The lines around the places are enough, and a large file is not copied.
            let mut snippet = Snippet::source(&*text).path(name).fold(true);
            snippet = snippet.annotation(AnnotationKind::Primary.span(range(&source.text, span)));
            for (span, label) in d.labels.iter().filter(|(at, _)| !far_on_one_line(&source.text, span, *at)) {
                snippet = snippet
                    .annotation(AnnotationKind::Context.span(range(&source.text, *span)).label(visible_lines(label)));
            }
            title.element(snippet)
        }
        (None, None) => Group::with_title(title),
    };
    let placed = d.span.is_some() || !d.frames.is_empty();
    for note in notes(source, d) {
        group = group.element(Level::NOTE.message(visible_lines(&note).into_owned()));
    }
    if let Some(help) = d.help.as_ref().filter(|_| placed) {
        group = group.element(Level::HELP.message(visible_lines(help)));
    }
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = renderer.render(&[group]);
    // Without a place there is no margin for the help to hang on.
    if let Some(help) = d.help.as_ref().filter(|_| !placed) {
        out.push('\n');
        out += &renderer.render(&[Group::with_title(Level::HELP.secondary_title(visible_lines(help)))]);
    }
    out
}

/// Returns true if a file lies in this folder or in that of the program, also where links lead. A program may name any file as the
/// origin of an operation; the messages about it show no line of a file that does not belong to it.
fn is_near(file: &Path, program: &str) -> bool {
    let Ok(real) = file.canonicalize() else { return false };
    let beside = Path::new(program).parent().filter(|p| !p.as_os_str().is_empty());
    let folders = [Some(Path::new(".")), beside];
    folders.into_iter().flatten().filter_map(|f| f.canonicalize().ok()).any(|f| real.starts_with(f))
}

/// The text of the file a place lies in and the words of its line, where the file is here and still has the line.
fn read_user_file(place: &Location, program: &str) -> Option<(String, Range<usize>)> {
    const LARGEST: u64 = 4 << 20;
    let path = Path::new(&*place.file);
    if !is_near(path, program) {
        return None;
    }
    let small = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LARGEST);
    let text = if small { std::fs::read_to_string(path).ok()? } else { return None };
    let text = visible_in_place(&text).into_owned();
    let mut start = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if number == place.line {
            let words = line.trim();
            let at = start + line.find(words).unwrap_or(0);
            let range = at..at + words.len();
            return (!words.is_empty()).then_some((text, range));
        }
        start += line.len();
    }
    None
}

/// For an operation from a user's file: the calls it was inlined through, and its place in the tile program.
fn notes(source: &Source, d: &Diagnostic) -> Vec<String> {
    let mut notes = vec![];
    let bytecode = source.bytecode.is_some();
    if d.frames.is_empty() {
        if bytecode {
            notes.extend(d.labels.iter().map(|(at, text)| format!("{text}: byte {}", at.start)));
        }
        return notes;
    }
    if let [first, callers @ ..] = &*d.frames
        && !callers.is_empty()
    {
        let function = first.function.as_ref().map_or(String::new(), |name| format!("in {name}, "));
        notes.push(format!("{function}called from {}", chain_text(callers)));
    }
    if let Some(span) = d.span.filter(|_| bytecode) {
        notes.push(format!("it became the operation at byte {} of {}", span.start, source.name));
    }
    if let Some(span) = d.span.filter(|_| !source.text.is_empty()) {
        let (line, column) = place(&source.text, span.start);
        notes.push(format!("it became the operation at {}:{line}:{column}", source.name));
    }
    notes.extend(d.labels.iter().map(|(_, text)| text.clone()));
    notes
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
    d.span = trap.span.filter(|_| !source.text.is_empty() || source.bytecode.is_some());
    d.frames = (*trap.frames).clone();
    if let Some(user) = &trap.user {
        let frames = if user.frames.is_empty() { String::new() } else { format!(", at {}", chain_text(&user.frames)) };
        if let Some(span) = user.span.filter(|_| !source.text.is_empty() || source.bytecode.is_some()) {
            d.labels.push((span, format!("`{}` uses it{frames}", user.op)));
        } else if !frames.is_empty() {
            d.labels.push((Span::default(), format!("`{}` uses it{frames}", user.op)));
        }
    }
    let [x, y, z] = trap.block;
    let element = match trap.element.as_deref() {
        None | Some([]) => String::new(),
        Some([one]) => format!(", element {one} of the tile"),
        Some(many) => format!(", element {many:?} of the tile"),
    };
    // A simulator's finding names its blocks itself, and may concern two.
    if trap.code != Code::Simulated {
        d.help = Some(format!("it happened in block {x},{y},{z}{element}; `--block {x},{y},{z}` runs it alone"));
    }
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

fn frame_json(frame: &Frame) -> serde_json::Value {
    serde_json::json!({
        "file": &*frame.place.file,
        "line": frame.place.line,
        "column": frame.place.column,
        "function": frame.function.as_deref(),
    })
}

pub fn json(source: &Source, d: &Diagnostic) -> serde_json::Value {
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let at = d.span.filter(|_| source.bytecode.is_none()).map(|s| place(&source.text, s.start));
    let byte = d.span.filter(|_| source.bytecode.is_some()).map(|s| s.start);
    serde_json::json!({
        "file": source.name,
        "severity": severity,
        "code": d.code.text(),
        "message": d.message,
        "line": at.map(|p| p.0),
        "column": at.map(|p| p.1),
        "byte": byte,
        "help": d.help,
        "frames": d.frames.iter().map(frame_json).collect::<Vec<_>>(),
    })
}
