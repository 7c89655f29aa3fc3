//! Checks that names in a program never decide its compilation.
//!
//! In: bytes; the first chooses a front end, the others are words that stand for everything that has a name in a program of
//! it (kernels, values, globals, files, functions, formats, messages), or are the program itself. Checked: the C of the
//! program is that of the same program with plain names, token by token, except for identifiers, which correspond one to one.
//! The C is read by a lexer of its own that takes no comment, literal or line for more than it is.
//! The printed IRs read back as what they were printed from, and hold only characters that a terminal shows.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use girih_compiler::base::label::is_hidden;
use girih_compiler::cuda_tile::bytecode;
use girih_compiler::cuda_tile::ir::{FuncKind, Loc, Module};
use girih_compiler::cuda_tile::print::{print, print_nvidia_debug};
use girih_compiler::graph::{self, Graph, print::Dialect};
use girih_compiler::pipeline::{self, Lowered, Options, Silent};
use girih_compiler::{kernel, loops, source};

/// Words beyond this many bytes are cut: longer names show nothing new.
const LONGEST: usize = 300;

pub fn emit(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    let words = Words(rest.split(|&b| b == 0xff).map(|w| clean(&String::from_utf8_lossy(w), |_| true)).collect());
    let plain = Words(vec![]);
    match kind % 7 {
        0 => whole_module(pipeline::front(&text)),
        1 => whole_module(pipeline::front_bytecode(rest)),
        2 => modules(pipeline::front(&tile_text(&words)), pipeline::front(&tile_text(&plain))),
        3 => modules(through_bytecode(&words), through_bytecode(&plain)),
        4 => graphs(onnx(&words), onnx(&plain)),
        5 => graphs(source::torch::import(&json(&words)), source::torch::import(&json(&plain))),
        _ => graphs(one_line(&words), one_line(&plain)),
    }
}

type Front = Result<pipeline::Front, Vec<girih_compiler::base::Diagnostic>>;
type Model = Result<Graph, Vec<girih_compiler::base::Diagnostic>>;

/// The names of the things in a program; without words, `name0`, `name1`, ...
struct Words(Vec<String>);

impl Words {
    /// The name of thing `i`, different from those of the others.
    fn at(&self, i: usize) -> String {
        match self.0.get(i) {
            Some(word) if !word.is_empty() && !self.0[..i].contains(word) => word.clone(),
            Some(word) => format!("{word}{i}"),
            None => format!("name{i}"),
        }
    }
    /// The same where a language allows only some characters.
    fn word(&self, i: usize, allowed: impl Fn(char) -> bool) -> String {
        let word = clean(&self.at(i), allowed);
        let taken = || (0..i).any(|j| clean(&self.at(j), |c| c.is_ascii_alphanumeric() || c == '_') == word);
        match word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !taken() {
            true => word,
            false => format!("n{i}{word}"),
        }
    }
    /// A format that prints two values, with words in it.
    fn format(&self, i: usize) -> String {
        format!("{}%f %i\n", self.at(i).replace('%', "%%"))
    }
}

fn clean(word: &str, allowed: impl Fn(char) -> bool) -> String {
    word.chars().filter(|&c| allowed(c)).take(LONGEST).collect()
}

/// A string literal of tile text: every byte that is not a letter by its number.
fn literal(text: &str) -> String {
    let byte = |b: u8| if b.is_ascii_alphanumeric() { (b as char).to_string() } else { format!("\\{b:02X}") };
    format!("\"{}\"", text.bytes().map(byte).collect::<String>())
}

fn tile_text(w: &Words) -> String {
    let name = |i| literal(&w.at(i));
    let value = |i| w.word(i, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$'));
    let (a, n, i, x, s) = (value(4), value(5), value(6), value(7), value(8));
    let (file, function) = (name(9), name(10));
    format!(
        "cuda_tile.module @{} attributes {{producer = {}}} {{
  global @{global} <f32: [1.0, 2.0]> : tile<2xf32>
  entry @{}(%{a}: tile<ptr<f32>>, %{n}: tile<i32>) {{
    %zero = constant <i32: 0> : tile<i32>
    %one = constant <i32: 1> : tile<i32>
    %t = make_token : token loc({file}:3:4)
    %g = get_global @{global} : tile<ptr<f32>>
    %gx, %gt = load_ptr_tko weak %g : tile<ptr<f32>> -> tile<f32>, token loc({function}({file}:5:6))
    for %{i} in (%zero to %{n}, step %one) : tile<i32> {{
      %p = offset %{a}, %{i} : tile<ptr<f32>>, tile<i32> -> tile<ptr<f32>>
      %{x}, %lt = load_ptr_tko weak %p : tile<ptr<f32>> -> tile<f32>, token loc(callsite({function} at {file}:7:8))
      %{s} = addf %{x}, %gx : tile<f32>
      %st = store_ptr_tko weak %p, %{s} : tile<ptr<f32>>, tile<f32> -> token
      %c = cmpi less_than %{i}, %{n}, signed : tile<i32> -> tile<i1>
      assert %c, {} : tile<i1>
      %pt = print_tko {}, %{s}, %one : tile<f32>, tile<i32> -> token
    }} loc({file}:7:8)
    return
  }}
}}
",
        name(0),
        name(1),
        name(3),
        name(11),
        literal(&w.format(12)),
        global = name(2),
    )
}

/// The same program as a bytecode file, whose names are not values' names but all others.
fn through_bytecode(w: &Words) -> Front {
    let module = pipeline::front(&tile_text(w))?.module;
    let (bytes, _) = bytecode::write_oldest(&module)?;
    let read = pipeline::front_bytecode(&bytes)?;
    assert_eq!(names(&read.module), names(&module), "bytecode keeps names");
    Ok(read)
}

fn names(module: &Module) -> Vec<&str> {
    let funcs = module.funcs.iter().map(|f| f.name.as_str());
    module.globals.iter().map(|g| g.name.as_str()).chain(funcs).collect()
}

fn json_string(text: &str) -> String {
    let unit = |u: u16| format!("\\u{u:04x}");
    format!("\"{}\"", text.encode_utf16().map(unit).collect::<String>())
}

fn json(w: &Words) -> String {
    let name = |i| json_string(&w.at(i));
    format!(
        r#"{{"format": "girih.torch", "version": 1, "name": {},
  "symbols": [{{"name": {rows}, "lo": 2, "hi": 4096}}],
  "inputs": [{{"name": {x}, "dtype": "f32", "shape": [{rows}, 8], "role": "argument"}},
             {{"name": {weight}, "dtype": "f32", "shape": [8, 8], "role": "parameter"}}],
  "constants": [{{"name": {c}, "dtype": "f32", "shape": [8], "values": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]}}],
  "nodes": [{{"op": "aten.linear", "args": [{{"t": {x}}}, {{"t": {weight}}}, null], "attrs": {{}},
              "results": [{{"name": {y}, "dtype": "f32", "shape": [{rows}, 8]}}],
              "module": {}, "place": [{}, 12]}},
            {{"op": "aten.add", "args": [{{"t": {y}}}, {{"t": {c}}}], "attrs": {{}},
              "results": [{{"name": {z}, "dtype": "f32", "shape": [{rows}, 8]}}], "module": {}}}],
  "outputs": [{{"name": {}, "value": {z}}}]}}"#,
        name(0),
        name(7),
        name(8),
        name(9),
        name(10),
        rows = name(1),
        x = name(2),
        weight = name(3),
        c = name(4),
        y = name(5),
        z = name(6),
    )
}

/// A model in protobuf's encoding, by the field numbers of `onnx.proto`.
fn onnx(w: &Words) -> Model {
    fn varint(mut v: u64) -> Vec<u8> {
        let mut out = vec![];
        while v >= 128 {
            out.push(v as u8 | 128);
            v >>= 7;
        }
        out.push(v as u8);
        out
    }
    let int = |field: u64, v: u64| [varint(field << 3), varint(v)].concat();
    let sub = |field: u64, b: &[u8]| [varint(field << 3 | 2), varint(b.len() as u64), b.to_vec()].concat();
    let text = |field: u64, i: usize| sub(field, w.at(i).as_bytes());
    let value = |i: usize| {
        let dims = [sub(1, &text(2, 1)), sub(1, &int(1, 8))].concat();
        let ty = [int(1, 1), sub(2, &dims)].concat();
        [text(1, i), sub(2, &sub(1, &ty))].concat()
    };
    let weight = [int(1, 8), int(1, 8), int(2, 1), text(8, 3), sub(9, &[0x3f; 256])].concat();
    let product = [text(1, 2), text(1, 3), text(2, 4), text(3, 6), sub(4, b"MatMul"), text(6, 8)].concat();
    let exp = [text(1, 4), text(2, 5), text(3, 7), sub(4, b"Exp"), text(6, 9)].concat();
    let nodes = [sub(1, &product), sub(1, &exp)].concat();
    let graph = [nodes, text(2, 0), sub(5, &weight), sub(11, &value(2)), sub(12, &value(5))].concat();
    let bytes = [int(1, 10), text(2, 10), sub(7, &graph), sub(8, &int(2, 17))].concat();
    source::onnx::import(&Bytes::from(bytes), &source::onnx::Options::default())
}

fn one_line(w: &Words) -> Model {
    // `True`, `torch` and their like mean something.
    let name = |i| format!("n_{}", w.word(i, |c| c.is_alphanumeric() || c == '_'));
    let (rows, x, key) = (name(0), name(1), json_string(&w.at(2)));
    let text = format!("{x} = torch.randn({rows}, 8)\n{{{key}: torch.nn.Linear(8, 8)({x}).exp()}}");
    source::expr::evaluate(&text, &[]).map(|e| e.graph)
}

/// A module that was read, beside itself with plain names.
fn whole_module(read: Front) {
    let Ok(front) = read else { return };
    let mut plain = front.module.clone();
    plain.producer = None;
    let mut renamed = BTreeMap::new();
    for (i, global) in plain.globals.iter_mut().enumerate() {
        global.name = format!("global{i}");
        global.loc = Loc::default();
    }
    for (i, func) in plain.funcs.iter_mut().filter(|f| f.kind == FuncKind::Entry).enumerate() {
        renamed.insert(func.name.clone(), format!("entry{i}"));
        func.name = format!("entry{i}");
        let (values, ops): (Vec<_>, Vec<_>) = (func.values.keys().collect(), func.ops.keys().collect());
        values.into_iter().enumerate().for_each(|(i, v)| func.values[v].name = Some(format!("value{i}")));
        ops.into_iter().for_each(|op| func.ops[op].loc = Loc::default());
    }
    // Operations name globals and functions: those programs are only compiled.
    let named = front.module.globals.is_empty() && front.module.funcs.len() == renamed.len();
    for (name, plain_name) in &renamed {
        let Some(hostile) = compiled(&front.module, name) else { continue };
        let Some(plain) = compiled(&plain, plain_name).filter(|_| named) else { continue };
        same(&hostile, &plain);
    }
    readable_module(&front.module);
}

fn modules(hostile: Front, plain: Front) {
    let plain = plain.unwrap_or_else(|d| panic!("the plain program is refused: {d:?}"));
    let Ok(hostile) = hostile else { return };
    readable_module(&hostile.module);
    for (a, b) in hostile.module.entries().zip(plain.module.entries()) {
        let hostile = compiled(&hostile.module, &a.name).expect("compiled under other names");
        same(&hostile, &compiled(&plain.module, &b.name).expect("compiled"));
    }
}

fn compiled(module: &Module, entry: &str) -> Option<Lowered> {
    pipeline::lower(module, entry, &Options::default(), &mut Silent).ok()
}

fn graphs(hostile: Model, plain: Model) {
    let plain = plain.unwrap_or_else(|d| panic!("the plain model is refused: {d:?}"));
    let Ok(hostile) = hostile else { return };
    let options = Options::default();
    let model = |graph: &Graph| {
        readable_graph(graph, Dialect::Torch);
        let model = pipeline::lower_model(graph, &options, &mut Silent).expect("lowered");
        readable_graph(&model.tensor, Dialect::Tensor);
        let kernels = model.scheduled.load.into_iter().chain(model.scheduled.steps).map(|s| s.kernel);
        kernels
            .map(|k| pipeline::lower_loops(k, &options, &mut options.rewrites(), &mut Silent).expect("lowered"))
            .collect::<Vec<_>>()
    };
    let (hostile, plain) = (model(&hostile), model(&plain));
    assert_eq!(hostile.len(), plain.len());
    hostile.iter().zip(&plain).for_each(|(h, p)| same(h, p));
}

/// The printed text has nothing in it that would not be seen.
fn shown(text: &str) {
    if let Some(c) = text.chars().find(|&c| is_hidden(c) && c != '\n') {
        panic!("{c:?} in {text}");
    }
}

fn readable_module(module: &Module) {
    for text in [print(module), print_nvidia_debug(module)] {
        shown(&text);
        let read = pipeline::front(&text);
        // NVIDIA's text names no values, so what is said of them may be lost, but never what is called.
        let Ok(read) = read else { panic!("not read back: {:?}\n{text}", read.err()) };
        assert_eq!(names(&read.module), names(module), "{text}");
        // In our own text a producer is on the module's line, and some files have none.
        assert!(read.module.producer == module.producer || module.name.is_none(), "{text}");
    }
}

fn readable_graph(g: &Graph, dialect: Dialect) {
    let text = graph::print::print(g, dialect);
    shown(&text);
    let read = graph::parse::check(&text, &graph::print::data_of(g));
    let (read, dialect) = read.unwrap_or_else(|d| panic!("not read back: {d:?}\n{text}"));
    assert_eq!(graph::print::print(&read, dialect), text);
}

fn readable_kernel(lowered: &Lowered) {
    for (kernel, dialect) in
        [(&lowered.loops, loops::print::Dialect::Loop), (&lowered.tile, loops::print::Dialect::Tile)]
    {
        let text = loops::print::print(kernel, dialect);
        shown(&text);
        let (read, _) = loops::parse::parse(&text).unwrap_or_else(|d| panic!("not read back: {d:?}\n{text}"));
        assert_eq!(read.name, kernel.name);
        assert_eq!(without_places(&loops::print::print(&read, dialect)), without_places(&text));
    }
    let text = kernel::print::print(&lowered.kernel);
    shown(&text);
    let read = kernel::parse::parse(&text).unwrap_or_else(|d| panic!("not read back: {d:?}\n{text}"));
    assert_eq!(read.name, lowered.kernel.name);
    assert_eq!(without_places(&kernel::print::print(&read)), without_places(&text));
}

/// Lines without the comments that say where loops come from.
fn without_places(text: &str) -> Vec<&str> {
    text.lines()
        .map(|l| if l.trim_start().starts_with("for ") { l.split("  # ").next().unwrap_or(l) } else { l })
        .collect()
}

/// The C of two kernels that differ in names is the same except for names.
pub fn same(hostile: &Lowered, plain: &Lowered) {
    readable_kernel(hostile);
    let target = Options::default().target;
    let [a, b] = [hostile, plain].map(|k| pipeline::emit_c(&[&k.kernel], &target).expect("C of a kernel").text);
    same_source(&a, &b);
}

pub fn same_source(hostile: &str, plain: &str) {
    let (a, b) = (tokens(hostile), tokens(plain));
    let start = |tokens: &[Token]| tokens.iter().position(|t| *t == Token::Word("girih_0"));
    let (at, there) = (start(&a).expect("a kernel"), start(&b).expect("a kernel"));
    // The text before the kernel is ours alone. Its words may be names in the kernel, where they then mean nothing
    // else; but not macros.
    assert_eq!(a[..at], b[..there], "{hostile}");
    let defined = a[..at].windows(2).filter(|pair| pair[0] == Token::Word("define"));
    let macros: BTreeSet<&str> = defined.flat_map(|pair| words(&pair[1..])).collect();
    let (mut to, mut from) = (BTreeMap::new(), BTreeMap::new());
    assert_eq!(a.len(), b.len(), "{hostile}\n{plain}");
    // Members have names of their own.
    let member = |i: usize| a[..i].ends_with(&[Token::Punct('-'), Token::Punct('>')]);
    for (i, (&h, &p)) in a.iter().zip(&b).enumerate().skip(at) {
        match (h, p) {
            (Token::Word(h), Token::Word(p)) if !member(i) => {
                assert!(h == p || !macros.contains(h), "`{h}`, a macro, stands for `{p}`\n{hostile}");
                assert!(h == p || !is_word_of_c(h), "`{h}`, a word of C, stands for `{p}`\n{hostile}");
                assert_eq!(*to.entry(p).or_insert(h), h, "`{p}` has two names\n{hostile}");
                assert_eq!(*from.entry(h).or_insert(p), p, "`{h}` is two things\n{hostile}");
            }
            _ => assert_eq!(h, p, "{hostile}\n{plain}"),
        }
    }
}

fn words<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    tokens.iter().filter_map(|t| if let Token::Word(w) = t { Some(*w) } else { None }).collect()
}

/// The words that are in emitted source, to be tried as names.
pub fn words_of(source: &str) -> Vec<&str> {
    words(&tokens(source)).into_iter().collect()
}

/// Key words of C11 and GNU C, and the names that <stdint.h> and compilers define.
fn is_word_of_c(word: &str) -> bool {
    const WORDS: &str = "auto break case char const continue default do double else enum extern float for goto if inline \
        int long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile \
        while asm typeof linux unix i386";
    let limit = ["_MAX", "_MIN", "_C", "_WIDTH"].iter().any(|end| word.ends_with(end))
        && ["INT", "UINT", "SIZE_", "PTRDIFF_", "WCHAR_", "WINT_", "SIG_"].iter().any(|start| word.starts_with(start));
    let mut chars = word.chars();
    let kept = chars.next() == Some('_') && chars.next().is_some_and(|c| c == '_' || c.is_ascii_uppercase());
    kept || limit || WORDS.split_whitespace().any(|w| w == word)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token<'a> {
    Word(&'a str),
    Number(&'a str),
    Text(&'a str),
    Punct(char),
    /// The end of a preprocessor's line.
    Line,
}

/// C as a compiler takes it apart, for source without trigraphs and lines that go on in the next: both would be a way out of
/// a comment, and neither is ever emitted.
fn tokens(source: &str) -> Vec<Token<'_>> {
    for (n, line) in source.split('\n').enumerate() {
        assert!(line.bytes().all(|b| (0x20..0x7f).contains(&b)), "line {} is not plain: {line:?}", n + 1);
        assert!(!line.trim_end().ends_with('\\') && !line.contains("??"), "line {} goes on: {line:?}", n + 1);
    }
    let mut out = vec![];
    let mut rest = source;
    let mut directive = false;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("a comment has an end") + 2
        } else if c == '\n' {
            if std::mem::take(&mut directive) {
                out.push(Token::Line);
            }
            1
        } else if c == ' ' {
            1
        } else if c == '"' || c == '\'' {
            let line = rest.split('\n').next().unwrap_or(rest);
            assert!(!line.contains('\\'), "an escape in a literal: {line}");
            let end = line[1..].find(c).unwrap_or_else(|| panic!("a literal without an end: {line}")) + 2;
            out.push(Token::Text(&rest[..end]));
            end
        } else if c.is_ascii_digit() {
            let end = rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len());
            out.push(Token::Number(&rest[..end]));
            end
        } else if word(c) {
            let end = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            out.push(Token::Word(&rest[..end]));
            end
        } else {
            directive |= c == '#';
            out.push(Token::Punct(c));
            1
        };
        rest = &rest[length..];
    }
    out
}
