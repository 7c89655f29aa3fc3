//! Broken text: every example and every file of tests/diagnostics, cut short and mutated thousands of times.
//!
//! Any text, read and verified, must give a diagnostic or a program; a program must be lowered or refused, and must run or
//! trap on the evaluator. A panic, two seconds of work on one text, or memory without bound fails the test, which prints
//! the text. `MUTANTS=20000` asks for that many of each example instead of the usual number.

use crate::effort;

use std::cell::Cell;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use effort::Effort;
use girih_compiler::base::id::Id;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::VecMemory;
use girih_compiler::base::{Code, Severity};
use girih_compiler::cuda_tile::eval::{Options, Silent, run_with};
use girih_compiler::cuda_tile::ir::{Elem, Func, FuncKind, Module, Type, ValueId};
use girih_compiler::pipeline;

/// Mutants of an example, and of a file of tests/diagnostics.
const MUTANTS: [usize; 2] = [1000, 100];
/// One mutant in this many is lowered and run, if enough mutants of the file verify: that takes a hundred times as long.
const LOWERED: usize = 20;
/// Work on one text.
const SECONDS: u64 = 2;
/// Memory the whole test may reach, in KiB.
const MEMORY: u64 = 3 << 20;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
    fn range(&mut self, len: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(len + 1);
        start..(start + self.below(longest)).min(len)
    }
}

/// Pieces that texts of this language are made of, and some that they are not.
const PIECES: &[&str] = &[
    "%",
    "@",
    "#",
    "!",
    "\"",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "->",
    "?",
    "//",
    "\0",
    "\u{7f}",
    "é",
    "-",
    "0x",
    "1e",
    "tile<",
    "ptr<f32>",
    "token",
    "loc(",
    "unknown",
    "%0",
    "#cuda_tile.",
    "!cuda_tile.",
    "return",
    "yield",
    "continue",
    "break",
    "if",
    "for",
    "loop",
    "reduce",
    "scan",
    "entry",
    "global",
    "module",
    "iter_values(",
    "dense<",
    "\\",
    "\"\\FF",
    "strides=[",
    "dim_map=[",
    "padding_value = ",
    "rounding<",
    "overflow<",
    "f8E8M0FNU",
    "i4",
];
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "3",
    "64",
    "96",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "340282366920938463463374607431768211456",
    "99999999999999999999999999999999999999999999999999",
    "1e999",
    "1e-999",
    "0xffffffffffffffffffffffff",
    "1048576",
];
const NESTS: &[&str] =
    &["(", "[", "{", "<", "[[", "tile<", "loc(", "if %b {", "loop {", "module @m {", "ptr<", "{a = "];

/// The words, numbers and signs of a text, as byte ranges.
fn tokens(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b == b'.';
    let mut out = vec![];
    let mut i = 0;
    while i < text.len() {
        let start = i;
        i += 1;
        if word(text[start]) {
            while i < text.len() && word(text[i]) {
                i += 1;
            }
        }
        if !text[start].is_ascii_whitespace() {
            out.push(start..i);
        }
    }
    out
}

fn mutate(text: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let len = text.len();
    match rng.below(12) {
        0 if len > 0 => text[rng.below(len)] ^= 1 << rng.below(8),
        1 if len > 0 => text[rng.below(len)] = *rng.pick(b"\0\n\"%<>(){}[]0129xX-+.,:@#! "),
        2 => drop(text.drain(rng.range(len, 40))),
        3 => drop(text.drain(rng.range(len, 3))),
        4 => {
            let range = rng.range(len, 200);
            let copy = text[range.clone()].to_vec();
            let at = rng.below(len + 1);
            text.splice(at..at, copy);
        }
        5 | 6 => {
            // Two tokens change places, or one replaces the other.
            let tokens = tokens(text);
            if tokens.len() > 1 {
                let (a, b) = (rng.pick(&tokens).clone(), rng.pick(&tokens).clone());
                let (a, b) = if a.start < b.start { (a, b) } else { (b, a) };
                if a != b {
                    let (first, second) = (text[a.clone()].to_vec(), text[b.clone()].to_vec());
                    text.splice(b, first);
                    if rng.below(2) == 0 {
                        text.splice(a, second);
                    }
                }
            }
        }
        7 | 8 => {
            // A number becomes another.
            let tokens: Vec<_> = tokens(text).into_iter().filter(|t| text[t.start].is_ascii_digit()).collect();
            if !tokens.is_empty() {
                let at = rng.pick(&tokens).clone();
                text.splice(at, rng.pick(NUMBERS).bytes());
            }
        }
        9 => {
            let at = rng.below(len + 1);
            text.splice(at..at, rng.pick(PIECES).bytes());
        }
        10 => {
            let range = rng.range(other.len(), 300);
            let at = rng.below(len + 1);
            text.splice(at..at, other[range].to_vec());
        }
        _ => {
            let at = rng.below(len + 1);
            let times = *rng.pick(&[2, 100, 300, 20_000]);
            if times < 1000 || rng.below(20) == 0 {
                text.splice(at..at, rng.pick(NESTS).repeat(times).into_bytes());
            }
        }
    }
}

/// Every tile small enough that one operation takes no noticeable time.
fn small(module: &Module) -> bool {
    let elements = |t: &Type| match t {
        Type::Tile(t) => t.shape.iter().product::<u64>(),
        Type::View(v) => v.tile.iter().map(|&n| n.max(0) as u64).product(),
        _ => 1,
    };
    let fits = |f: &Func| (0..f.values.len()).all(|i| elements(&f.values[ValueId::from_index(i)].ty) <= 1 << 13);
    module.funcs.iter().all(fits)
}

/// Lowers every entry, and runs it for a while.
fn use_program(module: &Module) {
    for f in module.funcs.iter().filter(|f| f.kind == FuncKind::Entry) {
        let options = pipeline::Options::default();
        if let Err(found) = pipeline::lower(module, &f.name, &options, &mut pipeline::Silent) {
            assert!(!found.is_empty(), "refused without a word");
            let bug = found.iter().find(|d| matches!(d.code, Code::InternalBug | Code::InvalidIr));
            assert!(bug.is_none(), "a bug: {bug:?}");
        }
        if !small(module) {
            continue;
        }
        let mut memory = VecMemory::new();
        let mut args = vec![];
        for (i, &p) in f.params().iter().enumerate() {
            let pointer = matches!(&f.values[p].ty, Type::Tile(t) if matches!(t.elem, Elem::Ptr(_)));
            args.push(if pointer { memory.add(&format!("p{i}"), vec![0; 1 << 14]) } else { 3 });
        }
        let options = Options { fuel: Some(400), ..Options::default() };
        let _ = run_with(module, &f.name, &Launch::new([2, 1, 1], args), &mut memory, &mut Silent, &options);
    }
}

/// Reads the text; true when it is a program.
fn judge(text: &str, lower: &mut usize) -> bool {
    match pipeline::front(text) {
        Ok(front) => {
            assert!(front.warnings.iter().all(|d| d.severity != Severity::Error), "an error and a program");
            if *lower > 0 {
                *lower -= 1;
                use_program(&front.module);
            }
            true
        }
        Err(found) => {
            assert!(found.iter().any(|d| d.severity == Severity::Error), "refused without an error");
            for d in &found {
                let labels = d.labels.iter().map(|(s, _)| *s);
                for s in d.span.into_iter().chain(labels) {
                    let (start, end) = (s.start as usize, s.end as usize);
                    assert!(start <= end && end <= text.len(), "{d:?} lies outside the text");
                    assert!(text.is_char_boundary(start) && text.is_char_boundary(end), "{d:?} cuts a character");
                }
            }
            false
        }
    }
}

/// The most memory this process has held, in KiB.
fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

thread_local! {
    /// The message and the place of this thread's last panic.
    static PANIC: Cell<String> = const { Cell::new(String::new()) };
}

#[derive(Default)]
struct Tally {
    texts: usize,
    programs: usize,
    wrong: String,
}

fn try_text(bytes: &[u8], name: &str, lower: &mut usize, tally: &mut Tally) {
    let text = String::from_utf8_lossy(bytes);
    tally.texts += 1;
    let effort = Effort::begin();
    let outcome = catch_unwind(AssertUnwindSafe(|| judge(&text, lower)));
    let problem = match outcome {
        Err(_) => format!("panic: {}", PANIC.take()),
        Ok(_) if effort.passes(Duration::from_secs(SECONDS)) => format!("took longer than {SECONDS} s"),
        Ok(program) => {
            tally.programs += usize::from(program);
            return;
        }
    };
    if tally.wrong.len() < 20_000 {
        let shown: String = text.chars().take(6000).collect();
        let _ = writeln!(tally.wrong, "a mutant of {name}: {problem}\n{shown}\n----");
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut out: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "mlir"))
        .collect();
    out.sort();
    out
}

/// A file, how many mutants of it, and another one to take pieces from.
fn mistreat(file: &Path, mutants: usize, other: &[u8], tally: &mut Tally) {
    let whole = std::fs::read(file).unwrap();
    let name = file.file_name().unwrap().to_string_lossy();
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ name.bytes().fold(0, |h: u64, b| h.wrapping_mul(31) + u64::from(b)));
    let mut lower = 2;
    // Cut off at every byte, or at about `mutants` places of a longer text.
    let step = (whole.len() / mutants).max(1);
    for end in (0..=whole.len()).step_by(step) {
        try_text(&whole[..end], &name, &mut lower, tally);
    }
    lower = mutants / LOWERED + 10;
    for _ in 0..mutants {
        let mut text = whole.clone();
        for _ in 0..=rng.below(3) {
            mutate(&mut text, other, &mut rng);
        }
        try_text(&text, &name, &mut lower, tally);
    }
}

#[test]
fn broken_text_gives_a_diagnostic_or_a_program() {
    let each = std::env::var("MUTANTS").ok().and_then(|n| n.parse::<usize>().ok());
    let mut work: Vec<(PathBuf, usize)> = vec![];
    let folders = ["examples", "tests/diagnostics", "crates/girih-tile-ir/src/cuda_tile/testdata"];
    for (folder, usual) in folders.into_iter().zip([MUTANTS[0], MUTANTS[1], MUTANTS[0]]) {
        let wanted = each.map_or(usual, |n| (n * usual / MUTANTS[0]).max(1));
        work.extend(files(folder).into_iter().map(|f| (f, wanted)));
    }
    assert!(work.len() > 30, "only {} files found", work.len());
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| PANIC.set(info.to_string())));
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).min(8);
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some((file, mutants)) = work.get(i) else { break };
                    let other = std::fs::read(&work[(i * 7 + 3) % work.len()].0).unwrap();
                    mistreat(file, *mutants, &other, &mut tally);
                }
                let mut total = total.lock().unwrap();
                total.texts += tally.texts;
                total.programs += tally.programs;
                total.wrong += &tally.wrong;
            });
        }
    });
    std::panic::set_hook(hook);
    let total = total.into_inner().unwrap();
    assert!(total.wrong.is_empty(), "{}", total.wrong);
    assert!(peak() < MEMORY, "{} KiB of memory", peak());
    // Neither all refused nor all accepted: the mutants reach both sides.
    assert!(
        total.programs * 100 > total.texts && total.programs * 2 < total.texts,
        "{} of {}",
        total.programs,
        total.texts
    );
    println!("{} texts, {} of them programs", total.texts, total.programs);
}
