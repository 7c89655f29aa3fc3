//! A file of tests/diagnostics per diagnostic code, with the text it gives beside it.
//!
//! A file `CODE.mlir` or `CODE-what.mlir` opens with two comments: the command it is given to, without the file, and what
//! must come of it.
//!
//! ```text
//! // girih run --device eval --arg n=i32:0
//! // exit 3, at 7:5
//! ```
//!
//! Words `NAME=VALUE` before `girih` set environment variables; `{}` stands for the file where it is not the second
//! word. The place is that of the first diagnostic of the file's code; without `, at` it must have none. Files of
//! another extension (`.torch`, `.tensor`, `.loop`, `.tile`) are read back and verified as that IR; of them the command
//! says `read`. A `.py` file holds an expression: its comments begin with `#`, and `{text}` in the command is what
//! follows them. A `.hex` file holds bytecode, or a model where it is `.onnx.hex`: after the two comments its bytes in
//! hexadecimal, each line perhaps with a comment. Standard error must be the `.txt` beside it; `BLESS=1` writes it,
//! after the code, the place and the exit code have been found right.

#[allow(dead_code)]
#[path = "../../src/render.rs"]
mod render;

use crate::lab;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::{graph, loops};
use render::Source;

const PYTHON: &str = "needs Python with the package; tests/python/mistakes has a kernel for each";

/// Codes that no file and no command line brings about, and why.
const WITHOUT_A_FILE: &[(Code, &str)] = &[
    (Code::InternalBug, "says that a pass is wrong; a known way to get there is a bug to repair"),
    (Code::Interrupted, "needs a Ctrl-C; cli.rs sends one"),
    (Code::OutOfFuel, "only a caller of the library limits the operations; the evaluator's own tests do"),
    (Code::OutOfMemory, "depends on the memory of the machine; the evaluators' own tests give them a budget"),
    (Code::BadConstant, "the text's reader refuses such elements first; the verifier's tests build them"),
    (Code::NoDevice, "depends on the machine; girih-shim's tests/it/runtime.rs has a process without a driver"),
    (Code::DeviceFailed, "needs a driver that fails; girih-shim's tests/it/runtime.rs has one"),
    (Code::BadFormat, "the verifier compares formats with their values first (E0215)"),
    (Code::PythonKernel, "needs Python with the package; tests/python/test_scripts.py has many"),
    (Code::UnsupportedPython, PYTHON),
    (Code::ShapeMismatch, PYTHON),
    (Code::NotConstant, PYTHON),
    (Code::UnknownName, PYTHON),
    (Code::BadCall, PYTHON),
    (Code::OutsideObject, PYTHON),
    (Code::ControlFlow, PYTHON),
    (Code::BadCondition, PYTHON),
    (Code::BadAddress, PYTHON),
    (Code::StaticFailure, PYTHON),
    (Code::BadInteger, PYTHON),
    (Code::NoSource, PYTHON),
    (Code::BadOperand, PYTHON),
    (Code::UnusedValue, PYTHON),
    (Code::NoEffect, PYTHON),
    (Code::UnreadAxis, PYTHON),
    (Code::NotChecked, "needs Python with the package; tests/python/test_scripts.py has some"),
    (Code::NotVerified, "the command line verifies what it runs; the evaluator's own tests run what it refuses"),
];

struct Case {
    name: String,
    path: PathBuf,
    text: String,
    code: &'static str,
    command: Vec<String>,
    exit: i32,
    place: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/diagnostics").canonicalize().unwrap()
}

fn case(path: &Path) -> Result<Case, String> {
    let name = path.file_name().unwrap().to_str().unwrap().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let code = name.split(['.', '-']).next().unwrap();
    let code =
        Code::ALL.iter().map(|c| c.text()).find(|c| *c == code).ok_or(format!("{name} is named after no code"))?;
    let mut lines = text.lines();
    let mut header = || {
        lines
            .next()
            .and_then(|l| l.strip_prefix("// ").or(l.strip_prefix("# ")))
            .ok_or(format!("{name} lacks its two comments"))
    };
    let command = header()?.split_whitespace().map(String::from).collect();
    let outcome = header()?.strip_prefix("exit ").ok_or(format!("{name}: its second comment says no exit code"))?;
    let (exit, place) = match outcome.split_once(", at ") {
        Some((exit, place)) => (exit, Some(place.to_string())),
        None => (outcome, None),
    };
    let exit = exit.parse().map_err(|_| format!("{name}: `{exit}` is not an exit code"))?;
    Ok(Case { path: path.to_path_buf(), code, command, exit, place, name, text })
}

/// Standard error and exit code of the case's command, with this machine's folders left out of the text.
fn run(case: &Case, scratch: &Path) -> (String, i32) {
    let folder = folder();
    let at = case.command.iter().position(|w| w == "girih").expect("a command is `girih` and its words");
    let binary = binary(case, scratch);
    let name = binary.as_deref().map_or(case.name.clone(), |file| file.to_str().unwrap().to_string());
    let fill = |word: &str| word.replace("$HERE", folder.to_str().unwrap()).replace("$TMP", scratch.to_str().unwrap());
    let mut args: Vec<String> = case.command[at + 1..].iter().map(|w| fill(w)).collect();
    if let Some(word) = args.iter_mut().find(|w| *w == "{text}") {
        // Lines keep their numbers.
        *word = format!("\n\n{}", case.text.splitn(3, '\n').nth(2).unwrap_or_default());
    }
    match args.iter().any(|w| w == "{}") {
        true => args.iter_mut().filter(|w| *w == "{}").for_each(|w| w.clone_from(&name)),
        false if case.name.ends_with(".py") => {}
        false => args.insert(1, name),
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_girih"));
    command.args(&args).current_dir(&folder).stdin(Stdio::null());
    for name in [
        "VIRTUAL_ENV",
        "GIRIH_DEVICE",
        "GIRIH_CC",
        "CC",
        "GIRIH_THREADS",
        "GIRIH_TARGET",
        "GIRIH_CHECK",
        "GIRIH_CACHE_SIZE",
    ] {
        command.env_remove(name);
    }
    command.env("GIRIH_CACHE_DIR", scratch.join("cache")).env("TMPDIR", scratch);
    for pair in &case.command[..at] {
        let (name, value) = pair.split_once('=').expect("NAME=VALUE before `girih`");
        command.env(name, fill(value));
    }
    let output = lab::finish(&mut command);
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.replace(folder.to_str().unwrap(), "$HERE").replace(scratch.to_str().unwrap(), "$TMP");
    (plain(&text), output.status.code().unwrap_or(-1))
}

/// The file that a `.hex` file describes.
fn binary(case: &Case, scratch: &Path) -> Option<PathBuf> {
    let name = case.name.strip_suffix(".hex")?;
    let digits = case.text.lines().map(|l| l.split("//").next().unwrap()).flat_map(str::split_whitespace);
    let bytes: Vec<u8> = digits.map(|d| u8::from_str_radix(d, 16).expect("two hexadecimal digits")).collect();
    let file = scratch.join(if name.ends_with(".onnx") { name.to_string() } else { format!("{name}.tileirbc") });
    std::fs::write(&file, bytes).unwrap();
    Some(file)
}

/// The text without the parts that differ between machines and runs: the compiler's flags, the cache's keys, addresses.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut words: Vec<String> = vec![];
        for word in line.split(' ') {
            let flag = word.starts_with('-') && line.contains(" -shared ") && word.trim() != "-shared";
            let folded = match (flag, word) {
                (true, _) => "$FLAGS".to_string(),
                (_, w) if w.starts_with("0x") => {
                    "$ADDRESS".to_string() + w.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
                }
                (_, w) => w
                    .split('/')
                    .map(|p| if p.len() > 30 && p.bytes().all(|b| b.is_ascii_hexdigit()) { "$KEY" } else { p })
                    .collect::<Vec<_>>()
                    .join("/"),
            };
            if folded != "$FLAGS" || words.last().is_none_or(|w| w != "$FLAGS") {
                words.push(folded);
            }
        }
        out += &words.join(" ");
    }
    out
}

/// The diagnostics of reading an IR back; 1 when it is refused.
fn read(case: &Case) -> (String, i32) {
    // The comments are not part of the IR; the lines keep their numbers.
    let body: Vec<&str> = case.text.lines().skip(2).collect();
    let text = format!("\n\n{}\n", body.join("\n"));
    let found: Vec<Diagnostic> = if case.name.ends_with(".torch") || case.name.ends_with(".tensor") {
        graph::parse::check(&text, &graph::parse::no_data).err().unwrap_or_default()
    } else {
        match loops::parse::parse(&text) {
            Ok((kernel, stage)) => loops::verify::verify(&kernel, stage),
            Err(d) => vec![d],
        }
    };
    let source = Source { name: case.name.clone(), text: text.as_str().into(), bytecode: None };
    let mut out = String::new();
    for d in &found {
        let _ = writeln!(out, "{}\n", render::to_string(&source, d, false));
    }
    (out, i32::from(!found.is_empty()))
}

/// The place of the first diagnostic of the code; `Err` when there is none.
fn place<'t>(text: &'t str, code: &str) -> Result<Option<&'t str>, String> {
    let title = |l: &&str| ["error", "warning", "note"].iter().any(|kind| l.starts_with(&format!("{kind}[{code}]: ")));
    let mut lines = text.lines().skip_while(|l| !title(l));
    lines.next().ok_or(format!("no {code}"))?;
    let arrow = lines.take_while(|l| !l.is_empty()).find_map(|l| l.trim_start().strip_prefix("--> "));
    Ok(arrow.and_then(|l| l.split_once(':')).map(|(_, place)| place.trim()))
}

#[test]
fn every_code_is_shown_by_a_file() {
    let bless = std::env::var_os("BLESS").is_some_and(|v| !v.is_empty() && v != "0");
    let scratch = std::env::temp_dir().join(format!("girih-diagnostics-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| {
            p.extension().is_some_and(|e| {
                ["mlir", "hex", "torch", "tensor", "loop", "tile", "kernel", "py"].iter().any(|k| e == *k)
            })
        })
        .collect();
    files.sort();
    let (mut wrong, mut shown) = (String::new(), BTreeSet::new());
    for path in &files {
        let case = match case(path) {
            Ok(case) => case,
            Err(e) => {
                let _ = writeln!(wrong, "{e}");
                continue;
            }
        };
        shown.insert(case.code);
        let (text, exit) = if case.command == ["read"] { read(&case) } else { run(&case, &scratch) };
        let found = place(&text, case.code);
        let right = exit == case.exit && found == Ok(case.place.as_deref());
        if !right {
            let _ = writeln!(
                wrong,
                "{}: wanted {} at {:?}, exit {}; found {found:?}, exit {exit}\n{text}",
                case.name, case.code, case.place, case.exit
            );
            continue;
        }
        let expectation = case.path.with_extension("txt");
        if bless {
            std::fs::write(&expectation, &text).unwrap();
        } else if std::fs::read_to_string(&expectation).ok().as_deref() != Some(&text) {
            let _ = writeln!(wrong, "{}: the text is not that of {}:\n{text}", case.name, expectation.display());
        }
    }
    for code in Code::ALL {
        let exempt = WITHOUT_A_FILE.iter().any(|(c, _)| c == code);
        match shown.contains(code.text()) {
            false if !exempt => {
                let _ = writeln!(wrong, "no file shows {} ({})", code.text(), code.meaning());
            }
            true if exempt => {
                let _ = writeln!(wrong, "{} has a file and is listed as one without", code.text());
            }
            _ => {}
        }
    }
    let _ = std::fs::remove_dir_all(&scratch);
    assert!(wrong.is_empty(), "{wrong}");
}
