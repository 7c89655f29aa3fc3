//! Data flows one way: a folder of the compiler imports only folders that come before it in `lib.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The crates of the compiler: each uses only those before it.
const CRATES: [&str; 6] =
    ["girih-base", "girih-tile-ir", "girih-graph", "girih-schedule", "girih-kernel", "girih-compiler"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The modules of all crates, in order, each with its folder.
fn modules() -> Vec<(String, PathBuf)> {
    let of = |name: &str| {
        let src = root().join(name).join("src");
        let text = std::fs::read_to_string(src.join("lib.rs")).unwrap();
        let names = text.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';'));
        names.map(|m| (m.to_string(), src.join(m))).collect::<Vec<_>>()
    };
    CRATES.into_iter().flat_map(of).collect()
}

/// A file of one of the modules.
fn file(path: &str) -> PathBuf {
    let module = path.split('/').next().unwrap();
    let (_, folder) = modules().into_iter().find(|(m, _)| m == module).unwrap();
    folder.parent().unwrap().join(path)
}

/// A path as it is said: from the folder of all crates on.
fn said(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Every module that a file's code names as `crate::module` (also inside `crate::{a, b}`), tests left out.
fn imports(text: &str, modules: &[String]) -> Vec<(usize, String)> {
    let tests = ["mod tests {", "pub(super) mod tests {"].map(|m| text.find(&format!("#[cfg(test)]\n{m}")));
    let code = match tests.into_iter().flatten().next() {
        Some(end) => &text[..end],
        None => text,
    };
    let mut found = vec![];
    let starts = |rest: &str, m: &str| {
        rest.starts_with(m) && !rest[m.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    for (at, _) in code.match_indices("crate::") {
        let line = code[..at].matches('\n').count();
        let start_of_line = code[..at].rfind('\n').map_or(0, |i| i + 1);
        if code[start_of_line..at].trim_start().starts_with("//") {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap().split(',').map(str::trim).collect(),
            None => vec![rest],
        };
        for name in names {
            found.extend(modules.iter().filter(|m| starts(name, m)).map(|m| (line + 1, m.clone())));
        }
    }
    found
}

#[test]
fn folders_import_only_earlier_ones() {
    let folders = modules();
    let modules: Vec<String> = folders.iter().map(|(m, _)| m.clone()).collect();
    assert_eq!(
        modules,
        [
            "base",
            "num",
            "index",
            "cuda_tile",
            "ttir",
            "graph",
            "source",
            "loops",
            "tile",
            "kernel",
            "emit",
            "pipeline",
            "explain",
            "spec"
        ],
        "the crates list the folders in the order that ARCHITECTURE.md states"
    );
    let mut wrong = vec![];
    for (at, (module, folder)) in folders.iter().enumerate() {
        let mut files = vec![];
        sources(folder, &mut files);
        for file in files {
            if file.file_stem().is_some_and(|s| s.to_string_lossy().ends_with("tests")) {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            for (line, import) in imports(&text, &modules) {
                if modules.iter().position(|m| *m == import).unwrap() > at {
                    let file = said(&file);
                    wrong.push(format!("{file}:{line}: `{module}` imports `{import}`, which stands after it"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names that lines of a text declare, `name: type`, where a line begins so.
fn declared<'a>(text: &'a str, begins: &str) -> BTreeSet<&'a str> {
    let name = |line: &'a str| line.trim_start().strip_prefix(begins)?.split_once(": ").map(|(name, _)| name);
    let is_name = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    text.lines().filter_map(name).filter(is_name).collect()
}

/// The lines of a file, its comments and tests left out, that read a field of one of these names.
fn reads<'a>(text: &'a str, fields: &BTreeSet<&str>) -> Vec<(usize, &'a str)> {
    let code = text.find("#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end]);
    let reads = |line: &str| {
        line.match_indices('.').any(|(at, _)| {
            let word: &str = line[at + 1..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
            let quoted = line[..at].matches('"').count() % 2 == 1;
            fields.contains(word)
                && !quoted
                && !line[..at].ends_with('.')
                && !line[at + 1 + word.len()..].starts_with('(')
        })
    };
    let lines = code.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//") && reads(l));
    lines.map(|(at, l)| (at + 1, l)).collect()
}

/// What is computed, and which operations share a kernel, is the same for every machine: targets and knobs stand in
/// `tile`, which nothing before it may import. Nor do the folders before it read a field that only a target has.
#[test]
fn nothing_above_tile_ir_knows_a_target() {
    let folders = modules();
    let before: Vec<_> = folders.iter().take_while(|(m, _)| m != "tile").collect();
    assert!(["graph", "source", "loops"].iter().all(|m| before.iter().any(|(b, _)| b == m)));
    let mut texts = vec![];
    for (_, folder) in before {
        let mut files = vec![];
        sources(folder, &mut files);
        texts.extend(files.into_iter().map(|file| (std::fs::read_to_string(&file).unwrap(), file)));
    }
    let target = std::fs::read_to_string(file("tile/target.rs")).unwrap();
    let elsewhere: BTreeSet<&str> =
        texts.iter().flat_map(|(text, _)| [declared(text, "pub "), declared(text, "")]).flatten().collect();
    let own: BTreeSet<&str> = declared(&target, "pub ").difference(&elsewhere).copied().collect();
    // Were there none, nothing would be looked for.
    assert!(own.len() >= 8, "{own:?}");
    let mut files = vec![];
    sources(&file("tile"), &mut files);
    let used = files.iter().map(|f| reads(&std::fs::read_to_string(f).unwrap(), &own).len()).sum::<usize>();
    assert!(used > 20, "rules read what a target has: {used}");
    let mut wrong = vec![];
    for (text, path) in &texts {
        for (line, read) in reads(text, &own) {
            wrong.push(format!("{}:{line}: {}", said(path), read.trim()));
        }
        // The dialect has hints for targets by name.
        let hints = path.starts_with(file("cuda_tile"));
        let targets = girih_compiler::tile::target::Target::NAMES.iter().filter(|name| !hints && **name != "cpu");
        for name in targets {
            let code = text.find("#[cfg(test)]").map_or(&text[..], |end| &text[..end]);
            if code.lines().any(|l| !l.trim_start().starts_with("//") && l.contains(&format!("\"{name}\""))) {
                wrong.push(format!("{} names the target {name}", said(path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_read_field_is_seen() {
    let text = "pub struct Gpu {\n    /// Of one.\n    pub bandwidth: f64,\n    shared: u32,\n}";
    let fields = declared(text, "pub ");
    assert_eq!((&fields, declared(text, "")), (&BTreeSet::from(["bandwidth"]), BTreeSet::from(["shared"])));
    let text = "// cx.bandwidth\nlet x = cx.target.bandwidth * 2.0;\nlet y = cx.bandwidth();\nlet bandwidth = 1;";
    assert_eq!(reads(text, &fields), [(2, "let x = cx.target.bandwidth * 2.0;")]);
}

/// Source is printed from kernels, and kernels have no text but what `Ident` and `Label` made of a user's.
#[test]
fn emitted_source_is_made_of_no_user_text() {
    let read = |path: &str| std::fs::read_to_string(file(path)).unwrap();
    let texts = read("kernel/ir.rs") + &read("kernel/kinds.rs");
    let code: String = texts.lines().filter(|l| !l.trim_start().starts_with("//")).collect();
    assert!(code.contains("name: Ident") && code.contains("name: Label") && code.contains("Text: Quoted"));
    for text in ["String", "str>", "&str", "&'static str", "Cow", "location::Location", "Frames", "loops::ir::{Axis,"] {
        assert!(!code.contains(text), "kernel IR has text of another kind: {text}");
    }
    for made in ["kernel/ident.rs", "base/label.rs"] {
        let text = std::fs::read_to_string(file(made)).unwrap();
        assert!(text.contains("(String);") && !text.contains("(pub String)") && !text.contains("impl From<"), "{made}");
    }
    let mut files = vec![];
    sources(&file("emit"), &mut files);
    let modules: Vec<String> = modules().into_iter().map(|(m, _)| m).collect();
    let allowed = ["num", "index", "emit"];
    for file in files.iter().filter(|f| !f.file_stem().is_some_and(|s| s.to_string_lossy().ends_with("tests"))) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(
            !text.contains(".raw()") && !text.contains("array.name"),
            "{}: a text as a user wrote it",
            file.display()
        );
        for (line, import) in imports(&text, &modules) {
            let named = text.lines().nth(line - 1).unwrap_or_default();
            let fine = allowed.contains(&import.as_str())
                || ["tile::target::", "kernel::ir::", "kernel::nan_bits::", "kernel::tcgen05::"]
                    .iter()
                    .any(|ok| named.contains(&format!("crate::{ok}")));
            assert!(fine, "{}:{line}: the emitter knows kernels, numbers and targets alone", file.display());
        }
    }
}

#[test]
fn a_wrong_import_is_seen() {
    let modules: Vec<String> = ["base", "num", "loops"].map(String::from).to_vec();
    let seen = imports("use crate::{base::Code, loops};\n// crate::num\nlet x = crate::num::y;", &modules);
    let names: Vec<&str> = seen.iter().map(|(_, m)| m.as_str()).collect();
    assert_eq!(names, ["base", "loops", "num"]);
}

#[test]
fn no_unsafe_and_no_outside_world() {
    let mut files = vec![];
    CRATES.iter().for_each(|name| sources(&root().join(name).join("src"), &mut files));
    let banned = ["std::fs", "std::net", "std::thread", "std::process", "std::time", "std::env"];
    for file in files {
        if file.file_stem().is_some_and(|s| s.to_string_lossy().ends_with("tests")) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for name in banned {
            assert!(!code.contains(name), "{} uses {name}: the compiler crate does no I/O", file.display());
        }
    }
    for name in CRATES {
        let text = std::fs::read_to_string(root().join(name).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}
