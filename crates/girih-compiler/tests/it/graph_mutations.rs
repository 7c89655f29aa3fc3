//! Broken graphs: printed graphs cut short and mutated thousands of times.
//!
//! Any text, read and verified, gives diagnostics inside the text or a graph; a graph prints to a text that reads back the
//! same, and it is evaluated or refused. A panic fails the test, which prints the text.
//! `MUTANTS=20000` asks for that many of each file.

use crate::effort;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use effort::Effort;
use girih_compiler::base::{Budget, Limits};
use girih_compiler::graph::bind::eval_extent;
use girih_compiler::graph::eval::{Options, Tensor, evaluate, no_files};
use girih_compiler::graph::parse::{check, no_data, parse};
use girih_compiler::graph::print::{data_of, print};
use girih_compiler::graph::{Graph, Op};

const FILES: [&str; 2] = [
    include_str!("../../../girih-graph/src/graph/testdata/all.torch"),
    include_str!("../../../girih-graph/src/graph/testdata/layer.tensor"),
];

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
}

const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "7",
    "64",
    "4294967296",
    "9223372036854775807",
    "99999999999999999999",
    "1e999",
    "0x7fc00000",
    "nan",
    "inf",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    "!",
    "\"",
    "\"a\"",
    "_",
    "with",
    "where",
    "else",
    "map",
    "gather",
    "scatter",
    "reduce",
    "dot",
    "sum",
    "argmax",
    "over",
    "along",
    "from",
    "constant",
    "index",
    "input",
    "output",
    "i0",
    "i1",
    "i9",
    "i65536",
    "s",
    "x",
    "f16",
    "i64",
    "bool",
    "u4",
    "f8E5M2",
    "//",
    "%",
    "*",
    "-",
    "+",
    "<",
    "..",
    "\n",
    "\n  ",
    "é",
    "\0",
    "div",
    "rem",
    "cmpf.lt",
    "select",
    "ptradd",
    "bitcast.i32",
    "min(",
    "aten.linear",
    "data(\"a\")",
];

/// Words, numbers and signs of a text, as byte ranges.
fn tokens(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'.';
    let mut out = vec![];
    let mut i = 0;
    while i < text.len() {
        let start = i;
        i += 1;
        while word(text[start]) && i < text.len() && word(text[i]) {
            i += 1;
        }
        if !text[start].is_ascii_whitespace() {
            out.push(start..i);
        }
    }
    out
}

fn mutate(text: &mut Vec<u8>, rng: &mut Rng) {
    let tokens = tokens(text);
    if tokens.is_empty() {
        return;
    }
    let (a, b) = (rng.pick(&tokens).clone(), rng.pick(&tokens).clone());
    let lines: Vec<usize> = text.iter().enumerate().filter(|(_, c)| **c == b'\n').map(|(i, _)| i + 1).collect();
    match rng.below(10) {
        0 => text[a.start] ^= 1 << rng.below(8),
        1 | 2 => drop(text.splice(a, rng.pick(PIECES).bytes())),
        3 => drop(text.splice(a.start..a.start, rng.pick(PIECES).bytes())),
        4 => drop(text.drain(a)),
        5..=7 => {
            // A token becomes another.
            let other = text[b].to_vec();
            text.splice(a, other);
        }
        8 if lines.len() > 2 => {
            // A line is repeated or lost.
            let i = rng.below(lines.len() - 1);
            let line = text[lines[i]..lines[i + 1]].to_vec();
            if rng.below(2) == 0 {
                text.drain(lines[i]..lines[i + 1]);
            } else {
                let at = lines[rng.below(lines.len())];
                text.splice(at..at, line);
            }
        }
        _ => {
            let times = *rng.pick(&[3, 300, 5000]);
            text.splice(a.start..a.start, rng.pick(&["(", "[", "i0 + ", "min(0, "]).repeat(times).into_bytes());
        }
    }
}

/// Inputs of small extents, if there are such.
fn inputs(graph: &Graph) -> Option<Vec<Tensor>> {
    let symbols: Vec<i64> = graph.symbols.values().map(|s| (s.lo + 2).min(s.hi.unwrap_or(i64::MAX))).collect();
    let one = |i: &girih_compiler::graph::Input| {
        let v = &graph.values[i.value];
        let shape = v.shape.iter().map(|d| eval_extent(d, &symbols).map(|n| n as u64)).collect::<Option<Vec<u64>>>()?;
        let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).filter(|n| *n <= 4096)?;
        Tensor::from_bits(v.elem, &shape, (0..count).map(|k| k % 3).collect())
    };
    graph.inputs.iter().map(one).collect()
}

/// Reads the text; true when it is a graph.
fn judge(text: &str) -> bool {
    let budget = Budget::new(Limits { memory: 1 << 25, work: 1 << 18 });
    let options = Options { budget, ..Options::default() };
    match check(text, &no_data) {
        Ok((graph, dialect)) => {
            let printed = print(&graph, dialect);
            let back = parse(&printed, &data_of(&graph)).unwrap_or_else(|d| panic!("{d:?}\n{printed}"));
            assert_eq!(print(&back.graph, back.dialect), printed);
            if let Some(inputs) = inputs(&graph) {
                let run = |g: &Graph| evaluate(g, &inputs, &no_files, &options);
                match (run(&graph), run(&back.graph)) {
                    (Ok(a), Ok(b)) => assert!(a.iter().zip(&b).all(|(a, b)| a.same(b)), "{printed}"),
                    (a, b) => assert_eq!(a.is_err(), b.is_err(), "{printed}"),
                }
            }
            true
        }
        Err(found) => {
            assert!(!found.is_empty(), "refused without an error");
            for s in found.iter().filter_map(|d| d.span) {
                let (start, end) = (s.start as usize, s.end as usize);
                assert!(start <= end && end <= text.len(), "{s:?} lies outside the text");
                assert!(text.is_char_boundary(start) && text.is_char_boundary(end), "{s:?} cuts a character");
            }
            // A graph that only the verifier refuses must not make the printer or the evaluator panic.
            if let Ok(parsed) = parse(text, &no_data) {
                let _ = print(&parsed.graph, parsed.dialect);
                if let Some(inputs) = inputs(&parsed.graph)
                    && !parsed.graph.nodes.values().any(|n| matches!(n.op, Op::Source { .. }))
                {
                    let _ = evaluate(&parsed.graph, &inputs, &no_files, &options);
                }
            }
            false
        }
    }
}

#[test]
fn broken_graphs_give_a_diagnostic_or_a_graph() {
    let mutants = std::env::var("MUTANTS").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(1500);
    let (mut texts, mut graphs) = (0, 0);
    for (f, file) in FILES.iter().enumerate() {
        let mut rng = Rng(0x9e37_79b9_7f4a_7c15 ^ f as u64);
        let mut attempt = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            texts += 1;
            let effort = Effort::begin();
            let outcome = catch_unwind(AssertUnwindSafe(|| judge(&text)));
            let shown: String = text.chars().take(6000).collect();
            assert!(outcome.is_ok(), "a panic at\n{shown}");
            assert!(!effort.passes(Duration::from_secs(10)), "took longer than 10 s at\n{shown}");
            graphs += usize::from(outcome.is_ok_and(|g| g));
        };
        for end in (0..file.len()).step_by(7) {
            attempt(&file.as_bytes()[..end]);
        }
        for _ in 0..mutants {
            let mut text = file.as_bytes().to_vec();
            for _ in 0..=rng.below(3) {
                mutate(&mut text, &mut rng);
            }
            attempt(&text);
        }
    }
    // The mutants reach both sides.
    assert!(graphs * 100 > texts && graphs * 2 < texts, "{graphs} of {texts}");
}
