//! Replays the fuzzer's corpus on stable Rust, and the bytecode corpus: every file whole, those of the first and the last
//! version that is written and the one of the newest operations also cut short at every length and with every byte
//! changed. Each must be read or be refused with a place in it, in little memory and without a panic.

#[path = "../../../../fuzz/checks.rs"]
mod checks;
use crate::effort;
#[path = "../../../../fuzz/memory.rs"]
mod memory;
#[path = "../../../../fuzz/names.rs"]
mod names;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use effort::Effort;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;

fn files(below: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { collect(&path, found) } else { found.push(path) }
        }
    }
    let mut found = vec![];
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below), &mut found);
    found.sort();
    assert!(!found.is_empty(), "{below} has no files");
    found
}

/// Does `work` for each file, on two threads; names the file whose work panics or takes long.
fn each(files: &[PathBuf], most: Duration, work: impl Fn(&[u8]) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let named = Named(path);
                    let bytes = std::fs::read(path).expect("a file that was listed");
                    let effort = Effort::begin();
                    work(&bytes);
                    assert!(!effort.passes(most), "took longer than {most:?}");
                    std::mem::forget(named);
                }
            });
        }
    });
}

/// Says which file it was when a check panics.
struct Named<'a>(&'a Path);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        eprintln!("in {}", self.0.display());
    }
}

const SECONDS: Duration = Duration::from_secs(10);

#[test]
fn what_the_fuzzer_found() {
    each(&files("fuzz/corpus/read"), SECONDS, |bytes| drop(checks::read(bytes)));
    each(&files("fuzz/corpus/roundtrip"), SECONDS, checks::roundtrip);
    each(&files("fuzz/corpus/text"), SECONDS, checks::text);
    each(&files("fuzz/corpus/ttir"), SECONDS, checks::ttir);
    each(&files("tests/ttir"), SECONDS, checks::ttir);
    each(&files("fuzz/corpus/onnx"), SECONDS, checks::onnx);
    each(&files("fuzz/corpus/expr"), SECONDS, checks::expr);
    each(&files("fuzz/corpus/emit"), SECONDS, names::emit);
}

/// Every word of the C that the examples become is taken for the names of values.
#[test]
fn words_of_emitted_source_are_names_as_any_other() {
    use girih_compiler::pipeline::{Options, Silent, emit_c, front, lower};
    let mut words = std::collections::BTreeSet::new();
    for path in files("examples").iter().filter(|path| path.extension().is_some_and(|e| e == "mlir")) {
        let module = front(&std::fs::read_to_string(path).unwrap()).unwrap().module;
        for entry in module.entries() {
            let options = Options { check: true, ..Options::default() };
            let lowered = lower(&module, &entry.name, &options, &mut Silent).unwrap();
            let source = emit_c(&[&lowered.kernel], &options.target).unwrap().text;
            words.extend(names::words_of(&source).into_iter().map(String::from));
        }
    }
    assert!(words.len() > 200, "{}", words.len());
    let words: Vec<String> = words.into_iter().collect();
    for some in words.chunks(5) {
        let names = ["m", "p", "g", "k"].into_iter().map(String::from).chain(some.iter().cloned());
        let input = format!("r{}", names.collect::<Vec<_>>().join("\u{1}"));
        let bytes: Vec<u8> = input.bytes().map(|b| if b == 1 { 0xff } else { b }).collect();
        names::emit(&bytes);
    }
}

#[test]
fn every_file_is_read_and_written() {
    each(&files("tests/bytecode/corpus"), SECONDS, |bytes| {
        assert!(checks::read(bytes).is_some(), "refused");
        checks::roundtrip(bytes);
    });
}

fn spoilt() -> Vec<PathBuf> {
    let mut newest = files("tests/bytecode/corpus/13.5");
    newest.retain(|path| path.ends_with("multimem.tileirbc"));
    assert_eq!(newest.len(), 1);
    [files("tests/bytecode/corpus/13.1"), files("tests/bytecode/corpus/13.4"), newest].concat()
}

#[test]
fn files_cut_short() {
    each(&spoilt(), 6 * SECONDS, |bytes| {
        for len in 0..bytes.len() {
            assert!(checks::read(&bytes[..len]).is_none(), "the first {len} bytes are read as a whole file");
        }
    });
}

#[test]
fn every_byte_changed() {
    each(&spoilt(), 6 * SECONDS, |bytes| {
        let mut changed = bytes.to_vec();
        for (at, &byte) in bytes.iter().enumerate() {
            changed[at] = if at % 2 == 0 { byte ^ (1 << (at % 8)) } else { !byte };
            checks::read(&changed);
            changed[at] = byte;
        }
    });
}

#[test]
fn expressions_cut_short_and_changed() {
    each(&files("fuzz/corpus/expr"), 6 * SECONDS, |bytes| {
        let step = bytes.len() / 8 + 1;
        for at in (0..bytes.len()).step_by(step) {
            checks::expr(&bytes[..at]);
            checks::expr(&[&bytes[..at], &bytes[at + 1..]].concat());
        }
    });
}

#[test]
fn models_cut_short_and_changed() {
    each(&files("fuzz/corpus/onnx"), 6 * SECONDS, |bytes| {
        for len in 0..bytes.len() {
            checks::model(&bytes[..len]);
        }
        let mut changed = bytes.to_vec();
        for (at, &byte) in bytes.iter().enumerate() {
            changed[at] = if at % 2 == 0 { byte ^ (1 << (at % 8)) } else { !byte };
            checks::model(&changed);
            changed[at] = byte;
        }
    });
}
