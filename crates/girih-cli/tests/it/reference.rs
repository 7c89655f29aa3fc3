//! The pages in `docs/` that are made from tables are those tables, and the README shows the command's output.
//! `BLESS=1` writes the pages anew.

use crate::lab;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;

use girih_compiler::base::Code;
use girih_compiler::base::words::list;
use girih_compiler::cuda_tile::ops;
use girih_compiler::pipeline;
use girih_compiler::tile::heuristics;
use girih_compiler::tile::knobs::{ALL, Knobs};
use girih_compiler::tile::target::Target;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn girih(args: &[&str]) -> String {
    let out = lab::finish(Command::new(env!("CARGO_BIN_EXE_girih")).args(args).current_dir(root()));
    assert!(out.status.success(), "girih {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn page(name: &str, text: &str) {
    let path = root().join("docs").join(name);
    if std::env::var_os("BLESS").is_some_and(|v| !v.is_empty() && v != "0") {
        std::fs::write(&path, text).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    let differ = have.lines().zip(text.lines()).find(|(have, want)| have != want);
    assert!(have == text, "docs/{name} is stale: {differ:?}; BLESS=1 writes it anew");
}

/// The place a heading gets in a rendered page.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn operations() {
    let mut text = "\
# Operations

Made from the table in `crates/girih-tile-ir/src/cuda_tile/ops/table.rs`; `girih ops NAME` shows one page. In the text
forms `%x` is an operand, `$a` an attribute, `{x}` the type of `x`; `?` marks what may be absent and `*` what may be many.
`{x|y}` is one type that both have, and `{x~}` one type for a whole list, or one for each of it.
"
    .to_string();
    for (group, ops) in ops::grouped() {
        let links: Vec<String> = ops.map(|op| format!("[{}](#{})", op.name, anchor(op.name))).collect();
        let _ = write!(text, "\n**{group}**: {}.\n", links.join(", "));
    }
    for (group, ops) in ops::grouped() {
        let _ = write!(text, "\n## {group}\n");
        for op in ops {
            let _ = write!(text, "\n##{}", ops::page(op));
        }
    }
    page("operations.md", &text);
}

#[test]
fn functions_of_expressions() {
    let mut text = "\
# What expressions support

Made from the tables in `crates/girih-graph/src/source/expr`; `girih compile -c help` prints the names.
[Another page](expressions.md) describes how texts are written.
"
    .to_string();
    let known = girih_compiler::source::expr::table();
    let mut groups: Vec<&str> = vec![];
    for k in &known {
        if !groups.contains(&k.group) {
            groups.push(k.group);
        }
    }
    for group in groups {
        let _ = write!(text, "\n## {group}\n\n| | |\n|---|---|\n");
        let mut of_group: Vec<_> = known.iter().filter(|k| k.group == group).collect();
        of_group.sort_by(|a, b| a.name.cmp(&b.name));
        for k in of_group {
            let doc = k.doc.replace('|', "\\|");
            let _ = writeln!(text, "| `{}{}` | {doc} |", k.name, k.signature);
        }
    }
    page("models/functions.md", &text);
}

#[test]
fn rules() {
    let mut text = "\
# Rules and knobs

Every rewrite rule in the order it runs, from its own description; `girih rules NAME` shows one. The letter is the stage:
`n` works on the operations of a model and `l` on loop nests, each until nothing changes; `t` places the nests for a
target, once: what a target lacks the capabilities for is not in its list, and a rule's number is its place there. Before them come the [decompositions](models/decompositions.md), `o`. `girih compile -v` counts where each applied and refused, `-vv` shows what it changed and why it refused.
"
    .to_string();
    for rule in pipeline::descriptions().iter().filter(|rule| !rule.name.starts_with("o:")) {
        let targets = match rule.targets.len() {
            0 => String::new(),
            n if n == Target::NAMES.len() => "For every target.\n\n".to_string(),
            _ => format!("For {}.\n\n", list(&rule.targets)),
        };
        let _ = write!(text, "\n## {}\n\n{targets}{}\n", rule.name, rule.doc.trim());
    }
    text.push_str(
        "\n## Knobs\n\nSet with `--knob NAME=VALUE`, or from Rust in `Options`. For a knob without a default, a rule chooses \
         a value from the\ntarget's numbers.\n\n| knob | from | to | default | what it does |\n|---|---|---|---|---|\n",
    );
    let defaults = Knobs::default();
    for knob in ALL {
        let default = defaults.value(knob.name).map_or(String::new(), |v| v.to_string());
        let _ = writeln!(text, "| `{}` | {} | {} | {default} | {} |", knob.name, knob.least, knob.most, knob.doc);
    }
    text.push_str(
        "\n## Numbers that decide\n\nA reason names the number that decided, such as `16 (LEAST_ROWS)`. They stand in \
         `tile/heuristics.rs`, and a policy's also where\n`girih rules NAME` shows it.\n\n| of | number | value | what it counts |\n|---|---|---|---|\n",
    );
    for n in heuristics::ALL {
        let _ = writeln!(text, "| {} | `{}` | {} | {} |", n.of, n.name, n.value, n.doc.trim());
    }
    page("rules.md", &text);
}

#[test]
fn decompositions() {
    let mut text = "\
# Decompositions

How each operation of a model becomes primitives, or simpler operations that are then replaced in turn; from the rules'
own descriptions. `girih rules NAME` shows one, by its name or by an operation. `girih compile -vv` shows what each made
of the model's operations, as `o:NAME`; [the other rules](../rules.md) follow.
"
    .to_string();
    for rule in pipeline::descriptions().iter().filter(|rule| rule.name.starts_with("o:")) {
        let handles: Vec<String> = rule.handles.iter().map(|h| format!("`{h}`")).collect();
        let _ = write!(text, "\n## {}\n\nFor {}.\n\n{}\n", rule.name, handles.join(", "), rule.doc.trim());
    }
    page("models/decompositions.md", &text);
}

#[test]
fn rules_by_name() {
    let list = girih(&["rules"]);
    for rule in pipeline::descriptions() {
        assert!(list.lines().any(|l| l.split_whitespace().next() == Some(&rule.name)), "{} is not listed", rule.name);
    }
    assert!(list.lines().all(|l| l.chars().count() <= 130), "{list}");
    for name in ["o:rms_norm", "rms_norm", "aten.rms_norm"] {
        let text = girih(&["rules", name]);
        assert!(text.starts_with("o:rms_norm\n\nFor aten.rms_norm") && text.contains("-->"), "{text}");
    }
    assert!(girih(&["rules", "stage_inputs"]).starts_with("t:"));
    assert!(girih(&["rules", "fold_rows"]).contains("LEAST_ROWS                16: Rows for each multiprocessor"));
}

#[test]
fn diagnostics() {
    let mut text = "\
# Diagnostics

Every message of Girih carries a code. `E` is an error, `W` a warning, which never changes the exit code. The files in
`tests/diagnostics` show each with a program that causes it, and its message.
"
    .to_string();
    let chapters = [
        ("01", "Reading text"),
        ("02", "Types and the verifier"),
        ("03", "Lowering, and IR that is read back"),
        ("04", "Launches and arguments"),
        ("05", "The machine: compiler, cache, files"),
        ("06", "Traps while running"),
        ("07", "Bytecode"),
        ("08", "Models"),
        ("09", "Warnings about the program"),
    ];
    let mut codes: Vec<&Code> = Code::ALL.iter().collect();
    codes.sort_by_key(|c| &c.text()[1..]);
    for (chapter, title) in chapters {
        let _ = write!(text, "\n## {title}\n\n| code | meaning |\n|---|---|\n");
        for code in codes.iter().filter(|c| &c.text()[1..3] == chapter) {
            let _ = writeln!(text, "| {} | {} |", code.text(), code.meaning());
        }
    }
    assert_eq!(text.matches("\n| E").count() + text.matches("\n| W").count(), codes.len(), "a chapter is missing");
    page("diagnostics.md", &text);
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let command = "$ girih compile examples/softmax.mlir --ir loop\n";
    let (_, block) = readme.split_once(command).expect("the softmax as loops");
    let (shown, _) = block.split_once("  ...\n```").expect("its first lines");
    let printed = girih(&["compile", "examples/softmax.mlir", "--ir", "loop"]);
    assert!(printed.starts_with(shown), "the README shows\n{shown}\nbut it is\n{printed}");
}

#[test]
fn flags_in_the_documents_exist() {
    let all = girih(&["--help"]);
    let indented = |l: &str| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')).map(String::from);
    let commands: Vec<String> =
        all.lines().filter_map(indented).filter_map(|l| Some(l.split_once("  ")?.0.to_string())).collect();
    let is_command =
        |c: &&String| c.chars().all(|c| c.is_ascii_lowercase()) && !["help", "cutile"].contains(&c.as_str());
    let help: String = commands.iter().filter(is_command).map(|c| girih(&[c, "--help"])).collect();
    // The scripts' flags are in their sources.
    let scripts = [
        "tests/cutile/run.py",
        "tests/bytecode.py",
        "tests/torch_random.py",
        "python/girih/cutile/runner.py",
        "python/girih/cutile/plugin.py",
    ];
    let sources: String = scripts.iter().map(|s| std::fs::read_to_string(root().join(s)).unwrap()).collect();
    let known: BTreeSet<&str> = flags(&help).chain(flags(&sources)).collect();
    // Cargo's own, and torchrun's.
    let others = ["--release", "--test", "--path", "--nproc-per-node"];
    for file in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/semantics.md", "docs/rules.md"] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        for flag in flags(&text) {
            assert!(known.contains(flag) || others.contains(&flag), "{file} names {flag}, which no command has");
        }
    }
}

/// Words that begin with two dashes.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    text.split(word).filter(|w| w.len() > 2 && w.starts_with("--") && w.as_bytes()[2].is_ascii_lowercase())
}

#[test]
fn operations_by_name() {
    let list = girih(&["ops"]);
    assert!(ops::all().iter().all(|op| list.lines().any(|l| l.trim_start().starts_with(op.name))), "{list}");
    assert!(list.lines().all(|l| l.chars().count() <= 110), "{list}");
    assert!(girih(&["ops", "cuda_tile.fpowf"]).starts_with("# pow\n"));
    let object: serde_json::Value = serde_json::from_str(&girih(&["ops", "addf", "--json"])).unwrap();
    assert_eq!((&object["group"], &object["bytecode"]), (&"Floating point".into(), &2.into()));
    let all: Vec<serde_json::Value> = serde_json::from_str(&girih(&["ops", "--json"])).unwrap();
    assert_eq!(all.len(), ops::all().len());
    for (wrong, help) in
        [("adf", "did you mean `addf`?"), ("load", "load_ptr_tko, load_view_tko"), ("?", "lists them all")]
    {
        let out = lab::finish(Command::new(env!("CARGO_BIN_EXE_girih")).args(["ops", wrong]));
        assert_eq!(out.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&out.stderr).contains(help), "{out:?}");
    }
}
