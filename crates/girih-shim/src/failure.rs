//! Errors of driver functions, the last failure of each thread, and the barrier that no panic passes.
//!
//! In: the body of a driver function. Out: its error code; a message and details stay behind for
//! `girih_shim_last_error` and `cuGetErrorString`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use girih_compiler::base::label::visible_lines;
use girih_compiler::base::location::Frame;
use girih_compiler::base::{Diagnostic, Span};
use serde_json::{Map, Value, json};

use crate::codes::{self, Code};
use girih::sync::once;

/// Why a call fails.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// Further details, under the names that the crate's README lists.
    pub details: Map<String, Value>,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: visible_lines(&message.into()).into_owned(), details: Map::new() }
    }
    pub fn value(message: impl Into<String>) -> Failure {
        Failure::new(codes::ERROR_INVALID_VALUE, message)
    }
    pub fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(codes::ERROR_NOT_SUPPORTED, message)
    }
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Failure {
        self.details.insert(name.to_string(), value.into());
        self
    }

    /// Where it happened: the user's file; where that is not known, the line of the program's text, or the offset into
    /// its bytecode.
    fn at(mut self, frames: &[Frame], span: Option<Span>, text: &str) -> Failure {
        let frame = |f: &Frame| {
            let (place, function) = (&f.place, f.function.as_deref());
            json!({ "file": &*place.file, "line": place.line, "column": place.column, "function": function })
        };
        if let Some(first) = frames.first() {
            if let Value::Object(place) = frame(first) {
                self.details.extend(place);
            }
            return self.detail("frames", frames.iter().map(frame).collect::<Vec<_>>());
        }
        match span {
            Some(span) if text.is_empty() => self.detail("offset", span.start),
            Some(span) => {
                let (line, column) = place(text, span.start as usize);
                self.detail("line", line).detail("column", column)
            }
            None => self,
        }
    }
}

/// The last failure of a thread, in the forms it is asked for.
struct Last {
    code: Code,
    message: CString,
    json: CString,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    /// Text handed out besides failures, kept until the next.
    static TEXT: RefCell<CString> = RefCell::new(CString::default());
}

fn text(s: &str) -> CString {
    CString::new(s.replace('\0', "\u{fffd}")).unwrap_or_default()
}

fn keep(call: &str, failure: Failure) {
    let Failure { code, message, mut details } = failure;
    details.insert("code".into(), code.0.into());
    let name = code.name().map_or("", |n| n.to_str().unwrap_or_default());
    details.insert("name".into(), name.into());
    details.insert("message".into(), message.as_str().into());
    details.insert("call".into(), call.into());
    let last = Last { code, message: text(&message), json: text(&Value::Object(details).to_string()) };
    LAST.with_borrow_mut(|l| *l = Some(last));
}

/// The details of this thread's last failure; valid until its next.
pub fn last_json() -> Option<*const std::ffi::c_char> {
    LAST.with_borrow(|l| l.as_ref().map(|l| l.json.as_ptr()))
}

/// The message of this thread's last failure, if it had that code; valid until its next.
pub fn last_message(code: Code) -> Option<*const std::ffi::c_char> {
    LAST.with_borrow(|l| l.as_ref().filter(|l| l.code == code).map(|l| l.message.as_ptr()))
}

pub fn clear() {
    LAST.with_borrow_mut(|l| *l = None);
}

/// Keeps a text whose address a caller gets; valid until this thread's next.
pub fn hand_out(s: &str) -> *const std::ffi::c_char {
    TEXT.with_borrow_mut(|t| {
        *t = text(s);
        t.as_ptr()
    })
}

/// Returns true if every call is to be written to standard error.
fn traced() -> bool {
    static TRACED: OnceLock<bool> = OnceLock::new();
    *once(&TRACED, || {
        let text = std::env::var("GIRIH_TRACE_DRIVER").unwrap_or_default();
        !text.is_empty()
            && girih::options::flag(&text).unwrap_or_else(|message| {
                eprintln!("girih: GIRIH_TRACE_DRIVER: {message}; nothing is traced");
                false
            })
    })
}

/// Runs the body of a driver function: its failure is kept, and a panic becomes one.
pub fn call(name: &str, body: impl FnOnce() -> Result<()>) -> Code {
    let body = || {
        if is_to_fail(name) { Err(Failure::new(codes::ERROR_UNKNOWN, "GIRIH_SHIM_FAIL asks for it")) } else { body() }
    };
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let message = format!("internal error in {name}: {}", what.unwrap_or("a panic"));
        Err(Failure::new(codes::ERROR_UNKNOWN, message).detail("kind", "internal"))
    });
    let code = match outcome {
        Ok(()) => codes::SUCCESS,
        // An answer rather than a failure.
        Err(failure) if failure.code == codes::ERROR_NOT_READY => failure.code,
        Err(failure) => {
            let code = failure.code;
            if traced() {
                eprintln!("girih: {name}: {}: {}", code.0, failure.message);
            }
            // A destructor of this thread may call after its store is gone; then only the code is left.
            let _ = catch_unwind(AssertUnwindSafe(|| keep(name, failure)));
            return code;
        }
    };
    if traced() {
        eprintln!("girih: {name}: {}", code.0);
    }
    code
}

/// Returns true for the call of a driver function that GIRIH_SHIM_FAIL names by its number, from 1: for tests of the caller's
/// handling.
fn is_to_fail(name: &str) -> bool {
    static ASKED: OnceLock<Option<u64>> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let read = || std::env::var("GIRIH_SHIM_FAIL").ok().and_then(|n| n.parse().ok());
    let Some(asked) = *once(&ASKED, read) else { return false };
    name.starts_with("cu") && !name.starts_with("cuGetError") && COUNT.fetch_add(1, Ordering::Relaxed) + 1 == asked
}

/// The text of a code, for `cuGetErrorString`.
pub fn describe(code: c_int) -> Option<*const std::ffi::c_char> {
    let meaning = Code(code).meaning().map(CStr::as_ptr);
    meaning.map(|meaning| if code == 0 { meaning } else { last_message(Code(code)).unwrap_or(meaning) })
}

/// All that a failure of Girih tells.
pub fn from_girih(error: &girih::Error, program: Option<&girih::Program>) -> Failure {
    use girih::Error;
    let (code, kind) = match error {
        Error::Program(_) | Error::Kernel { .. } => (codes::ERROR_INVALID_IMAGE, "program"),
        Error::NoEntry { .. } => (codes::ERROR_NOT_FOUND, "entry"),
        Error::Argument { .. } => (codes::ERROR_INVALID_VALUE, "argument"),
        Error::Trap(trap) => match trap.code {
            girih::Code::AssertFailed => (codes::ERROR_ASSERT, "assert"),
            girih::Code::OutOfBounds => (codes::ERROR_ILLEGAL_ADDRESS, "bounds"),
            _ => (codes::ERROR_LAUNCH_FAILED, "undefined"),
        },
        Error::Fault { .. } => (codes::ERROR_ILLEGAL_ADDRESS, "bounds"),
        Error::Interrupted => (codes::ERROR_LAUNCH_FAILED, "interrupted"),
        Error::NoCompiler { .. } | Error::Compiler { .. } => (codes::ERROR_JIT_COMPILER_NOT_FOUND, "compiler"),
        Error::Load(_) | Error::Cuda(_) | Error::File { .. } => (codes::ERROR_OPERATING_SYSTEM, "system"),
        Error::Internal(_) => (codes::ERROR_UNKNOWN, "internal"),
    };
    let message = match error.code() {
        // The summary of a wrong program starts with the code itself.
        Some(code) => {
            let text = error.to_string();
            let text = text.strip_prefix(code.text()).and_then(|t| t.strip_prefix(": ")).unwrap_or(&text);
            format!("error[{}]: {text}", code.text())
        }
        None => format!("error: {error}"),
    };
    let mut failure = Failure::new(code, message).detail("kind", kind);
    if let Some(code) = error.code() {
        failure = failure.detail("diagnostic", code.text());
    }
    if let Some(help) = error.help("GIRIH_CHECK=1") {
        failure = failure.detail("help", help);
    }
    match error {
        Error::Trap(trap) => {
            failure = failure.detail("operation", trap.op.as_str()).detail("block", json!(trap.block));
            if let Some(element) = &trap.element {
                failure = failure.detail("element", json!(element));
            }
            failure = failure.at(&trap.frames, trap.span, program.map_or("", |p| p.text()));
            if let Some(user) = &trap.user {
                let place = Failure::value("").at(&user.frames, user.span, program.map_or("", |p| p.text()));
                let mut user = place.details;
                user.insert("operation".into(), trap.user.as_ref().map_or("", |u| u.op.as_str()).into());
                failure = failure.detail("used_by", user);
            }
        }
        Error::Program(diagnostics) => {
            if let Some(first) = diagnostics.iter().find(|d| d.is_error()) {
                failure = failure.at(&first.frames, first.span, program.map_or("", |p| p.text()));
                if let Some(help) = &first.help {
                    failure = failure.detail("help", help.as_str());
                }
            }
        }
        _ => {}
    }
    failure
}

/// All that a finding of a launch tells, as JSON.
pub fn finding(found: &Diagnostic) -> String {
    let notes: Vec<&str> = found.labels.iter().map(|(_, text)| text.as_str()).collect();
    let mut about = Failure::value("").at(&found.frames, found.span, "");
    about =
        about.detail("diagnostic", found.code.text()).detail("message", found.message.as_str()).detail("notes", notes);
    if let Some(help) = &found.help {
        about = about.detail("help", help.as_str());
    }
    Value::Object(about.details).to_string()
}

/// Line and column, from 1, of a byte of a text.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    (line, column)
}
