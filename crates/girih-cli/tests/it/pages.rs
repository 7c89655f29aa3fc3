//! The pages of the IRs and of some operations show the output of their commands, and the grammars of the source; their
//! listings of an IR read back. `BLESS=1` writes the pages anew.

use crate::lab;

use std::path::PathBuf;

use girih_compiler::{graph, kernel, loops};
use lab::{Lab, expect, finish, out};

const PAGES: [&str; 9] = [
    "docs/ir/loop.md",
    "docs/ir/tile.md",
    "docs/ir/kernel.md",
    "docs/models/convolution.md",
    "docs/models/layouts.md",
    "docs/models/matrix_product.md",
    "docs/models/rms_norm.md",
    "docs/models/linear_on_a_gpu.md",
    "docs/models/on_gpus.md",
];

/// The machine whose schedules the pages show, where a command does not name another.
const MACHINE: &str = "--target x86-64-v4 --threads 2 --knob lanes=16 --knob ways=4 --knob rows=8 --knob cols=32";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn pages_show_what_is_printed() {
    let lab = Lab::new("pages");
    let bless = std::env::var_os("BLESS").is_some_and(|v| !v.is_empty() && v != "0");
    for page in PAGES {
        let path = root().join(page);
        let have = std::fs::read_to_string(&path).unwrap();
        let want = renewed(&lab, page, &have);
        if bless {
            std::fs::write(&path, &want).unwrap();
        } else {
            let differ = have.lines().zip(want.lines()).find(|(have, want)| have != want);
            assert!(have == want, "{page} is stale: {differ:?}; BLESS=1 writes it anew");
        }
    }
}

/// A page with the output of its commands, and with the grammars it names in comments.
fn renewed(lab: &Lab, page: &str, text: &str) -> String {
    let (mut done, mut grammar) = (String::new(), None);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        done += &format!("{line}\n");
        if let Some(path) = line.strip_prefix("<!-- grammar: ") {
            grammar = path.strip_suffix(" -->");
        }
        let Some(kind) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        let body: Vec<String> = match (grammar.take(), kind, &body[..]) {
            (Some(path), ..) => grammar_in(path),
            (None, "console", [command, shown @ ..]) => {
                let printed = printed(lab, command.strip_prefix("$ girih ").expect(page));
                let printed: Vec<&str> = printed.trim_end().lines().collect();
                let kept = refreshed(shown, &printed).unwrap_or_else(|line| {
                    panic!("{page}: the output of `{command}` has no line {line:?} there:\n{}", printed.join("\n"))
                });
                std::iter::once(command).chain(&kept).map(|l| l.to_string()).collect()
            }
            _ => body.iter().map(|l| l.to_string()).collect(),
        };
        body.iter().for_each(|l| done += &format!("{l}\n"));
        done += "```\n";
    }
    done
}

/// The first block of text of a module's description, or the rows of the table that the module is.
fn grammar_in(path: &str) -> Vec<String> {
    let source = std::fs::read_to_string(root().join(path)).unwrap();
    let doc = source.lines().map_while(|l| l.strip_prefix("//!")).map(|l| l.strip_prefix(' ').unwrap_or(l));
    let block = doc.skip_while(|l| *l != "```text").skip(1).take_while(|l| *l != "```").map(String::from);
    let rows = source.lines().skip_while(|l| *l != "statements! {").skip(1).take_while(|l| *l != "}");
    let rows = rows.map(|l| l.strip_prefix("    ").unwrap_or(l)).filter(|l| !l.starts_with("///")).map(String::from);
    block.chain(rows).collect()
}

/// The output of a command.
fn printed(lab: &Lab, command: &str) -> String {
    let words: Vec<&str> = command
        .split('"')
        .enumerate()
        .flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { split(part) })
        .collect();
    let machine = if words.contains(&"--target") { vec![] } else { split(MACHINE) };
    let o = finish(lab.command(&[&words[..], &machine].concat()).current_dir(root()));
    expect(&o, 0, "");
    // A trace comes before the stage.
    if let (Some(at), false) = (words.iter().position(|w| *w == "--ir"), words.contains(&"-vv")) {
        reads_back(words[at + 1], &out(&o));
    }
    out(&o)
}

fn split(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A block's lines anew. A line `...` stands for lines left out; between two of them, the first and the last line say what
/// is shown, the last as often as it was.
fn refreshed<'a>(shown: &[&'a str], printed: &[&'a str]) -> Result<Vec<&'a str>, &'a str> {
    let pieces: Vec<&[&str]> = shown.split(|l| l.trim() == "...").collect();
    let (mut lines, mut at) = (vec![], 0);
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 {
            lines.push("...");
        }
        let (open, closed) = (i == 0, i + 1 == pieces.len());
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else {
            if open && closed {
                lines.extend(printed);
            }
            continue;
        };
        let find = |from: usize, line: &'a str| {
            printed.iter().enumerate().skip(from).find(|(_, l)| same(l, line)).map(|(i, _)| i).ok_or(line)
        };
        let from = if open { at } else { find(at, first)? };
        let mut to = from;
        if closed {
            to = printed.len().saturating_sub(1);
        } else if piece.len() > 1 {
            for _ in piece.iter().filter(|l| *l == last) {
                to = find(to + 1, last)?;
            }
        }
        lines.extend(printed.get(from..=to).ok_or(*first)?);
        at = to + 1;
    }
    Ok(lines)
}

/// Returns true if two lines are the same, except for the numbers of rules in a trace.
fn same(a: &str, b: &str) -> bool {
    let bare = |l: &str| -> String { l.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let of_trace = [">>> ", "<<< ", "+++ ", "--- "].iter().any(|mark| a.starts_with(mark));
    a == b || (of_trace && bare(a) == bare(b))
}

/// Asserts that a stage's text reads back, is in order, and prints the same.
fn reads_back(stage: &str, text: &str) {
    let bare = |text: &str| -> Vec<String> {
        text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(String::from).collect()
    };
    let again = match stage {
        "torch" | "tensor" => {
            let (graph, stage) = graph::parse::check(text, &graph::parse::no_data).unwrap();
            graph::print::print(&graph, stage)
        }
        "loop" | "tile" => {
            let kernels = loops::parse::parse_all(text).unwrap();
            let print = |(k, stage): &(loops::ir::Kernel, loops::print::Dialect)| {
                let errors = loops::verify::verify(k, *stage);
                assert!(errors.is_empty(), "{errors:?}");
                loops::print::print(k, *stage)
            };
            kernels.iter().map(print).collect()
        }
        "kernel" => {
            let kernel = kernel::parse::parse(text).unwrap();
            assert_eq!(kernel::verify::verify(&kernel), Vec::<String>::new());
            kernel::print::print(&kernel)
        }
        _ => return,
    };
    assert_eq!(bare(&again), bare(text));
}

#[test]
fn what_is_left_out_stays_out() {
    let printed = ["a", "b", "c", "b", "d", "e"];
    assert_eq!(refreshed(&[], &printed), Ok(printed.to_vec()));
    assert_eq!(refreshed(&["a", "..."], &printed), Ok(vec!["a", "..."]));
    assert_eq!(refreshed(&["...", "b", "old", "d", "..."], &printed), Ok(vec!["...", "b", "c", "b", "d", "..."]));
    assert_eq!(refreshed(&["...", "d", "...", "e"], &printed), Ok(vec!["...", "d", "...", "e"]));
    assert_eq!(refreshed(&["...", "c", "b", "..."], &printed), Ok(vec!["...", "c", "b", "..."]));
    assert_eq!(refreshed(&["...", "d", "b", "..."], &printed), Err("b"));
    // Rules may be numbered anew.
    let trace = [">>> t:008_vectorise", "+", "+++ t:008_vectorise applied at loop k"];
    let old = [">>> t:007_vectorise", "+++ t:007_vectorise applied at loop k", "..."];
    assert_eq!(refreshed(&old, &trace), Ok([&trace[..], &["..."]].concat()));
    // Without `...` around it, a block is the whole output.
    assert_eq!(refreshed(&["a", "e"], &printed), Ok(printed.to_vec()));
}
