//! The compiler for a page: questions in, answers out, both JSON.
//!
//! ```text
//! {"ask": "explain",  "text": "...", "target": "sm_90a"}   -->  {"title": ..., "views": HTML, "data": {"stages": [...], ...}}
//! {"ask": "run",      "text": "..."}                       -->  {"printed": ..., "arrays": [{"name", "type", "text"}], "notes": [...]}
//! {"ask": "simulate", "text": "...", "target": "sm_90a"}   -->  {"clean": false, "views": HTML, "data": ..., "notes": [...]}
//! {..., "written": {"file": "kernel.py", "text": "..."}}   -->  the same, with places in the text that the tile program was made from
//! a text with an error                                     -->  {"notes": [{"severity", "code", "message", "line", ...}]}
//! ```
//!
//! A text is a tile program (Tile IR or Triton's TTIR) or a model of one line or more. [`explain`] shows its compilation; [`launch`] runs
//! it on the evaluator or on the simulator; [`notes`] has diagnostics.
//!
//! On WebAssembly the module exports `reserve`, `answer` and its memory, and imports nothing: see `abi`. A page runs it in a worker,
//! which it ends when an answer takes too long.

#[cfg(target_arch = "wasm32")]
mod abi;
mod explain;
mod launch;
mod notes;

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::tile::target::Target;
use serde_json::{Value, json};

use notes::Refused;

/// The longest text that is compiled, in bytes.
const LONGEST: usize = 1 << 20;

/// Answers a question.
pub fn answer(question: &str) -> String {
    let answered = serde_json::from_str(question)
        .map_err(|e| Refused::said(format!("the question is not JSON: {e}")))
        .and_then(|question: Value| answered(&question));
    match answered {
        Ok(answer) => answer,
        Err(refused) => json!({ "notes": refused.notes }),
    }
    .to_string()
}

fn answered(question: &Value) -> Result<Value, Refused> {
    let word = |key: &str| question.get(key).and_then(Value::as_str);
    let text = word("text").unwrap_or_default();
    if text.len() > LONGEST {
        return Err(Refused::said(format!("the text has {} bytes, and at most {LONGEST} are compiled", text.len())));
    }
    let name = word("target").unwrap_or("cpu");
    let target = Target::named(name).ok_or_else(|| {
        Refused::said(format!("there is no target `{name}`; the targets are {}", Target::NAMES.join(", ")))
    })?;
    let made_from = |key: &str| question.get("written").and_then(|w| w.get(key)).and_then(Value::as_str);
    let written = made_from("file").zip(made_from("text")).map(|(file, text)| Written { file, text });
    let subject = match written {
        Some(_) => Subject::Program(Text { own: text, written }),
        None => Subject::of(text),
    };
    match word("ask") {
        Some("explain") => explain::answer(&subject, &target),
        Some("run") => launch::run(&subject),
        Some("simulate") => launch::simulate(&subject, &target),
        _ => Err(Refused::said("`ask` is explain, run or simulate")),
    }
}

/// The text of a tile program, and the one that it was made from.
#[derive(Clone, Copy)]
struct Text<'a> {
    own: &'a str,
    written: Option<Written<'a>>,
}

/// A text that locations of a tile program name.
#[derive(Clone, Copy)]
struct Written<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(own: &'a str) -> Text<'a> {
        Text { own, written: None }
    }
}

/// A text, by its kind.
enum Subject<'a> {
    Program(Text<'a>),
    Expression(&'a str),
}

impl Subject<'_> {
    /// Tile programs begin with a word of theirs, or with an attribute of MLIR.
    fn of(text: &str) -> Subject<'_> {
        let lines = text.lines().map(str::trim_start);
        let first = lines.filter(|l| !l.is_empty() && !l.starts_with("//")).find(|l| !l.starts_with("# "));
        let begins = |word: &&str| first.is_some_and(|line| line.starts_with(*word));
        if ["cuda_tile.", "module", "entry", "global", "testing$", "#", "\"builtin"].iter().any(begins) {
            Subject::Program(text.into())
        } else {
            Subject::Expression(text)
        }
    }
}

/// An error that has no place in the text.
fn error(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::BadArgument, message)
}
