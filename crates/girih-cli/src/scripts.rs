//! Kernels in Python scripts, checked without running the script: `girih check` and the language server ask the Python
//! package's `girih.scripts`. The commands that take a program take one of them as a text, of a script that is imported.
//!
//! In: a script's path and text. Out: diagnostics, whose spans point into the text, and the names that Python's tracer saw.
//!
//! ```text
//! girih -> python   {"path": "add.py", "text": "..."}
//! python -> girih   {"problems": [{"severity": "error", "code": "E0119", "message": "...", "file": "add.py", "line": 5, ...}],
//!                    "kernels": [{"name": "add", "names": [{"line": 5, "name": "v", "types": ["float32[64]"], ...}], ...}]}
//! ```

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use girih_compiler::base::{Code, Diagnostic, Frame, Location, Severity, Span};
use serde_json::{Value, json};

use crate::commands::cutile::package_command;
use crate::failure::Failure;

/// Returns true if a path names a script.
pub fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "py")
}

/// A script and the name of a kernel in it, for `script.py:kernel`.
pub fn kernel_of(path: &Path) -> Option<(&str, &str)> {
    let (script, kernel) = path.to_str()?.rsplit_once(':')?;
    let word = |part: &str| !part.is_empty() && !part.contains(|c: char| !(c.is_alphanumeric() || c == '_'));
    (script.ends_with(".py") && kernel.split('.').all(word)).then_some((script, kernel))
}

/// A kernel of a script as Tile IR or TTIR, for a signature. Python has already printed its errors.
pub fn text(script: &str, kernel: &str, signature: &str) -> Result<String, Failure> {
    let cannot = |e: std::io::Error| Failure::usage(format!("Python cannot be started: {e}"));
    let mut command = package_command()?;
    let command = command.args(["-m", "girih.scripts.signatures", script, kernel, signature]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(cannot)?;
    match (output.status.success(), String::from_utf8(output.stdout)) {
        (true, Ok(text)) => Ok(text),
        _ => Err(Failure::Said(1)),
    }
}

/// The result for a script.
#[derive(Debug, Default)]
pub struct Checked {
    pub diagnostics: Vec<Diagnostic>,
    pub kernels: Vec<Kernel>,
}

/// A kernel, and the names that were seen when it was traced.
#[derive(Debug)]
pub struct Kernel {
    pub name: String,
    pub range: Range<usize>,
    pub names: Vec<Seen>,
    /// Parameters whose values no launch of the script gives.
    pub guessed: Vec<String>,
}

/// A name at a place.
#[derive(Debug)]
pub struct Seen {
    pub name: String,
    pub range: Range<usize>,
    pub kind: Kind,
    pub role: Role,
    /// Each time that it was seen: `float32[64]`, a constant, or a signature.
    pub types: Vec<String>,
    /// The docstring of a function.
    pub doc: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Value,
    Constant,
    Function,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Assigned,
    Parameter,
    Read,
}

/// A Python that checks one script after another; it ends with the value.
pub struct Checker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Checker {
    pub fn start() -> Result<Checker, Failure> {
        let cannot = |e: std::io::Error| Failure::usage(format!("Python cannot be started: {e}"));
        let mut command = package_command()?;
        let command = command.args(["-m", "girih.scripts"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::usage("Python cannot be spoken to"));
        };
        Ok(Checker { child, to: Some(to), from: BufReader::new(from) })
    }

    /// The kernels of a text; an error is a sentence about a Python that does not answer.
    pub fn check(&mut self, path: &str, text: &str) -> Result<Checked, String> {
        let gone = || "Python ended before it answered; its message stands above".to_string();
        let to = self.to.as_mut().ok_or_else(gone)?;
        writeln!(to, "{}", json!({ "path": path, "text": text })).and_then(|()| to.flush()).map_err(|_| gone())?;
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) | Err(_) => return Err(gone()),
            Ok(_) => {}
        }
        let answer: Value = serde_json::from_str(&line).map_err(|e| format!("Python's answer is strange: {e}"))?;
        let list = |key: &str| answer[key].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Checked {
            diagnostics: list("problems").iter().map(|p| diagnostic(p, path, text)).collect(),
            kernels: list("kernels").iter().map(|k| kernel(k, text)).collect(),
        })
    }
}

fn kernel(told: &Value, text: &str) -> Kernel {
    let words =
        |list: &Value| list.as_array().into_iter().flatten().filter_map(|w| w.as_str().map(String::from)).collect();
    let word = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_string();
    let range = |from: Span, to: Span| from.start as usize..to.end as usize;
    let (first, last) = (&told["line"], &told["end_line"]);
    let seen = |n: &Value| {
        let at = span(text, &n["line"], &n["column"], &n["end_column"]);
        Seen {
            name: word(n, "name"),
            range: range(at, at),
            kind: match n["kind"].as_str() {
                Some("constant") => Kind::Constant,
                Some("function") => Kind::Function,
                _ => Kind::Value,
            },
            role: match n["role"].as_str() {
                Some("assigned") => Role::Assigned,
                Some("parameter") => Role::Parameter,
                _ => Role::Read,
            },
            types: words(&n["types"]),
            doc: n["doc"].as_str().map(String::from),
        }
    };
    Kernel {
        name: word(told, "name"),
        range: range(span(text, first, &json!(1), &Value::Null), span(text, last, &json!(1), &Value::Null)),
        names: told["names"].as_array().into_iter().flatten().map(seen).collect(),
        guessed: words(&told["guessed"]),
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

fn diagnostic(problem: &Value, path: &str, text: &str) -> Diagnostic {
    let word = |key: &str| problem[key].as_str().unwrap_or_default();
    let code = Code::ALL.iter().find(|c| c.text() == word("code")).copied().unwrap_or(Code::PythonKernel);
    let mut d = Diagnostic::error(code, word("message")).maybe_help(problem["help"].as_str());
    if word("severity") == "note" {
        d.severity = Severity::Note;
    }
    let place = |file: &Value, line: &Value, column: &Value| Location {
        file: file.as_str().unwrap_or_default().into(),
        line: number(line) as u32,
        column: number(column) as u32,
    };
    let calls = problem["calls"].as_array().map_or(&[][..], Vec::as_slice);
    if word("file") == path {
        d = d.at(span(text, &problem["line"], &problem["column"], &problem["end_column"]));
        // A call from another file shows in the message's own line.
        for call in calls.iter().filter(|c| c[0] == path) {
            let function = call[3].as_str().unwrap_or_default();
            d = d.label(span(text, &call[1], &call[2], &Value::Null), format!("`{function}` is called here"));
        }
        return d;
    }
    let mut functions = calls.iter().map(|c| c[3].as_str().map(Into::into));
    let mut frames = vec![Frame {
        function: functions.next().flatten(),
        place: place(&problem["file"], &problem["line"], &problem["column"]),
    }];
    for call in calls {
        frames.push(Frame { function: functions.next().flatten(), place: place(&call[0], &call[1], &call[2]) });
    }
    d.from(frames.into())
}

fn number(value: &Value) -> usize {
    value.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

/// The bytes of a line between two columns, which count characters from 1; to the end of the line where the second is none.
fn span(text: &str, line: &Value, from: &Value, to: &Value) -> Span {
    let lines = text.split_inclusive('\n').take(number(line).saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    let line = text.get(start..).unwrap_or("").lines().next().unwrap_or("");
    let offset = |column: usize| line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let begin = offset(number(from));
    let end = if number(to) == 0 { line.trim_end().len() } else { offset(number(to)) };
    Span::new(start + begin, start + end.max(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "a\nb = 'é' + c\n";
        let found = span(text, &json!(2), &json!(11), &json!(12));
        assert_eq!(&text[found.start as usize..found.end as usize], "c");
        let rest = span(text, &json!(2), &json!(5), &Value::Null);
        assert_eq!(&text[rest.start as usize..rest.end as usize], "'é' + c");
        for beyond in [json!(0), json!(3), json!(99), json!(-1), Value::Null] {
            let found = span(text, &beyond, &json!(99), &json!(1));
            assert!(text.get(found.start as usize..found.end as usize).is_some(), "{beyond}");
        }
    }

    #[test]
    fn a_problem_of_another_file_has_frames() {
        let problem = json!({ "severity": "error", "message": "m", "file": "other.py", "line": 3, "column": 2, "end_column": 4,
            "help": null, "calls": [["a.py", 7, 5, "inner"], ["a.py", 9, 1, "outer"]], "code": "E0117" });
        let d = diagnostic(&problem, "a.py", "");
        assert_eq!(d.code, Code::ShapeMismatch);
        assert_eq!(
            girih_compiler::base::location::chain_text(&d.frames),
            "other.py:3:2 in inner, called from a.py:7:5 in outer, called from a.py:9:1"
        );
    }
}
