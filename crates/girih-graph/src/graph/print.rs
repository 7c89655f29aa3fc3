//! Torch IR and Tensor IR as text. [`print()`] and `parse::parse` are inverse: a printed graph reads back as a graph
//! that prints the same and computes the same, where constants of more than [`MOST_INLINE`] elements are fetched by
//! name.
//!
//! ```text
//! graph   := ("torch" | "tensor") "graph" NAME STRING? "(" symbol,* ")" guards? strings? ":" stmt*     statements are indented by 2
//! guards  := "where" ix CMP ix ("and" ix CMP ix)*            over symbols; values of symbols that break one are refused
//! strings := "of" STRING,+                               an element of type `string` is a place among them
//! symbol  := NAME STRING? "in" INT ".." INT?                 least and greatest value; STRING: the real name where NAME
//!                                                            had to differ
//! stmt    := NAME STRING? ":" type "=" ("input" | "parameter") fill?
//!          | (NAME ":" type),+ "=" expr origin?
//!          | "output" ((NAME | STRING) "=")? NAME            without: named like the value
//! type    := ELEM "[" ix,* "]"                               f32[s0, 2048]; bool, i8 .. i64, u8 .. u64, f16, bf16, ...
//! fill    := "normal" | "uniform" "(" FLOAT "," FLOAT ")" | "integers" "(" INT "," INT ")" | "constant" "(" FLOAT ")"
//! origin  := "!" (NAME ("." NAME)+ | "op" STRING)? STRING?   operation of the model and its name there; without: as of
//!                                                            the line before (a source operation: itself)
//!
//! expr    := SCALAROP arg,+                                  element by element: `mul a, b`, `max.nan a, 0.0`
//!          | "reduce" FOLD arg,+ "over" (INT,+ | "none")     sum prod max min and or xor dot argmax argmin,
//!                                                            argmax.last argmin.last
//!          | "map" source ("else" source)*                   the first whose condition holds; the last has none
//!          | "gather" NAME "[" place,* "]"
//!          | "scatter" ("set" | "add" | "mul" | "max" | "min") NAME "[" place,* "]" "from" NAME
//!          | "scan" ("sum" | "prod" | "max" | "min") NAME "along" INT "exclusive"? "reverse"?
//!          | "repeat" ix "while"? ("carry" NAME,+)? ("over" (NAME "reverse"?),+)? ("read" NAME,+)?
//!            ("give" ("forward" | "reverse"),+)?             behind its origin ":" and, indented, the stmts of its body;
//!                                                            ix: the most rounds; while: as long as the first is true
//!          | "sort" NAME "along" INT "descending"? ("runs" INT)?  two results: the elements, and where they came from; the
//!                                                            first ones where they are shorter along the axis
//!          | "index" ix                                      an integer at each position
//!          | "constant" "[" const,* "]"                      row-major
//!          | "constant" "data" "(" STRING ")"                elements kept apart, by name
//!          | "constant" "external" "(" STRING "," STRING "," INT "," INT ")"    name, file, offset and length in bytes
//!          | "constant" "external" "(" STRING "," STRING "," STRING "," INT ")" name, file of weights, its tensor, length in bytes here
//!          | OPNAME arg,* ("with" (NAME "=" attr),+)?        an operation of the model (Torch IR only)
//! source  := (NAME "[" ix,* "]" | const) ("where" ix CMP ix ("and" ix CMP ix)*)?
//! place   := ix | NAME                                       NAME: a tensor of indices
//! arg     := NAME | const | "_"                              "_": left out
//! const   := (INT | FLOAT | "inf" | "-inf" | "nan" | "true" | "false" | "0x" HEX (the bits)) (":" ELEM)?
//!                                                            without type: that of the first tensor operand (of select:
//!                                                            after its condition), else of the result; in a map: of
//!                                                            the result
//! attr    := "none" | "true" | "false" | ix | FLOAT | STRING | ELEM | "[" attr,* "]"
//! ix      := term (("+" | "-") term)*
//! term    := atom (("*" | "//" | "%") atom)*                 floor division, and the remainder that goes with it
//! atom    := INT | SYMBOL | "i" DIGITS | ("min" | "max") "(" ix "," ix ")" | "(" ix ")"
//! OPNAME  := NAME ("." NAME)+ | STRING                       aten.linear, onnx.Softmax
//! ```
//! `i0`, `i1`, ... are positions along the axes of the result (of a scatter: of the updates). `#` starts a comment. Symbols
//! and values share one space of names. Scalar operations are spelled as in Loop IR.

use bytes::Bytes;

use super::Elem;
use super::build::constant_bits;
use super::ir::{
    Arg, Attr, ConstData, Constant, Coord, Fill, Graph, Node, Op, OriginId, Part, ReduceOp, Role, ScanOp, ScatterOp,
    Symbol, ValueId,
};
use super::names::{Names, is_name};
use crate::base::IdMap;
use crate::base::label::quote;
use crate::index::{Ix, Mask};
use crate::num::literal::const_text;
use crate::num::spell::{Class, parse_op, spell};
use crate::num::{DType, ScalarOp, format_float};

/// Constants of at most this many elements are printed; larger ones are kept apart.
pub const MOST_INLINE: u64 = 64;

/// Which of the two languages a graph is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Torch,
    Tensor,
}

impl Dialect {
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Torch => "torch",
            Dialect::Tensor => "tensor",
        }
    }
    /// Tensor IR where the graph has primitives only.
    pub fn of(graph: &Graph) -> Dialect {
        if graph.has_source() { Dialect::Torch } else { Dialect::Tensor }
    }
}

pub(super) const FOLDS: [(&str, ReduceOp); 12] = [
    ("sum", ReduceOp::Sum),
    ("prod", ReduceOp::Prod),
    ("max", ReduceOp::Max),
    ("min", ReduceOp::Min),
    ("and", ReduceOp::And),
    ("or", ReduceOp::Or),
    ("xor", ReduceOp::Xor),
    ("dot", ReduceOp::Dot),
    ("argmax", ReduceOp::ArgMax { last: false }),
    ("argmax.last", ReduceOp::ArgMax { last: true }),
    ("argmin", ReduceOp::ArgMin { last: false }),
    ("argmin.last", ReduceOp::ArgMin { last: true }),
];
pub(super) const SCANS: [(&str, ScanOp); 4] =
    [("sum", ScanOp::Sum), ("prod", ScanOp::Prod), ("max", ScanOp::Max), ("min", ScanOp::Min)];
pub(super) const SCATTERS: [(&str, ScatterOp); 5] = [
    ("set", ScatterOp::Set),
    ("add", ScatterOp::Add),
    ("mul", ScatterOp::Mul),
    ("max", ScatterOp::Max),
    ("min", ScatterOp::Min),
];

fn word<T: PartialEq + Copy>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, v)| *v == value).map_or("?", |(n, _)| n)
}

/// The graph as text.
pub fn print(graph: &Graph, dialect: Dialect) -> String {
    let names = Names::of(graph);
    // Index expressions are spelled with the names that symbols have in the text.
    let mut speller = Graph::default();
    for (id, s) in graph.symbols.iter() {
        speller.symbols.push(Symbol { name: names.symbol(id).to_string(), ..s.clone() });
    }
    let mut p = Printer { graph, names, speller, data: data_names(graph), out: String::new() };
    p.graph(dialect);
    p.out
}

/// The line on which a node stands in the printed graph, from 1; `at` is its number.
pub fn line_of_node(graph: &Graph, at: usize) -> u32 {
    // Behind the head and the inputs; each takes one line, and a loop those of its body.
    (graph.inputs.len() + graph.nodes.values().take(at).map(lines).sum::<usize>() + 2) as u32
}

/// The lines that a node takes.
fn lines(node: &Node) -> usize {
    match &node.op {
        Op::Repeat(r) => {
            1 + r.body.inputs.len() + r.body.nodes.values().map(lines).sum::<usize>() + r.body.outputs.len()
        }
        _ => 1,
    }
}

/// Some nodes of a graph, a line each, under the names that they have in the whole text.
pub fn print_nodes<'n>(graph: &Graph, nodes: impl Iterator<Item = &'n Node>) -> String {
    let names = Names::of(graph);
    let mut speller = Graph::default();
    for (id, s) in graph.symbols.iter() {
        speller.symbols.push(Symbol { name: names.symbol(id).to_string(), ..s.clone() });
    }
    let mut p = Printer { graph, names, speller, data: data_names(graph), out: String::new() };
    let mut last = (String::new(), String::new());
    for node in nodes {
        p.node(node, &mut last);
    }
    p.out
}

/// The names under which a printed graph refers to the elements that it does not hold.
pub fn data_names(graph: &Graph) -> IdMap<super::ConstId, String> {
    let mut unique = Names::of(&Graph::default());
    let mut out = IdMap::new();
    for c in graph.constants.values() {
        out.push(if inline(c).is_none() { unique.fresh(&c.name, "data") } else { String::new() });
    }
    out
}

/// Fetches, for a text that was printed from `graph`, the elements of its constants.
pub fn data_of(graph: &Graph) -> impl Fn(&str) -> Option<Bytes> + '_ {
    let names = data_names(graph);
    let values = Names::of(graph);
    move |name| {
        if let Some((of, name)) = name.split_once('/') {
            let of = |n: &&Node| n.results.first().is_some_and(|v| values.value(*v) == of);
            let Op::Repeat(r) = &graph.nodes.values().find(of)?.op else { return None };
            return data_of(&r.body)(name);
        }
        let id = names.iter().find(|(_, n)| *n == name)?.0;
        match &graph.constants.get(id)?.data {
            ConstData::Bytes(b) => Some(b.clone()),
            ConstData::External { .. } => None,
        }
    }
}

/// The elements of a constant that is printed.
fn inline(c: &Constant) -> Option<Vec<u64>> {
    let count = c.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
    if count > MOST_INLINE {
        return None;
    }
    constant_bits(c).filter(|bits| bits.len() as u64 == count)
}

/// How a source operation is written.
pub(super) fn op_name(name: &str) -> String {
    let scalar = [Class::Any, Class::Float, Class::Int].iter().any(|c| parse_op(name, *c).is_some());
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let part = |p: &str| {
        p.starts_with(|c: char| c.is_ascii_alphabetic()) && p.chars().all(|c| letter(c) || c.is_ascii_digit())
    };
    let mut parts = name.split('.');
    let first =
        parts.next().is_some_and(|p| p.starts_with(letter) && p.chars().all(|c| letter(c) || c.is_ascii_digit()));
    let fold = name.starts_with("argm");
    if name.contains('.') && !scalar && !fold && first && parts.all(part) { name.to_string() } else { quote(name) }
}

/// The element type of scalars without one: that of the first tensor operand after a condition.
pub(super) fn context(op: &Op, args: &[Arg], of: impl Fn(ValueId) -> Option<Elem>) -> Option<Elem> {
    let skip = usize::from(matches!(op, Op::Elementwise(ScalarOp::Select)));
    args.iter().skip(skip).find_map(|a| if let Arg::Value(v) = a { of(*v) } else { None })
}

struct Printer<'g> {
    graph: &'g Graph,
    names: Names,
    speller: Graph,
    data: IdMap<super::ConstId, String>,
    out: String,
}

impl Printer<'_> {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A name, and the real one where they differ.
    fn named(&mut self, name: &str, real: &str) {
        self.put(name);
        if name != real {
            let real = quote(real);
            self.put(&format!(" {real}"));
        }
    }

    fn graph(&mut self, dialect: Dialect) {
        self.put(&format!("{} graph ", dialect.word()));
        let name = Names::of(&Graph::default()).fresh(&self.graph.name, "main");
        self.named(&name, &self.graph.name);
        self.put("(");
        for (i, (id, s)) in self.graph.symbols.iter().enumerate() {
            self.put(if i > 0 { ", " } else { "" });
            let name = self.names.symbol(id).to_string();
            self.named(&name, &s.name);
            let hi = s.hi.map_or(String::new(), |h| h.to_string());
            self.put(&format!(" in {}..{hi}", s.lo));
        }
        let guards = Mask { conds: self.graph.guards.clone(), vals: vec![] };
        let guards =
            if guards.is_always() { String::new() } else { format!(" where {}", self.speller.mask_text(&guards)) };
        let strings: Vec<String> = self.graph.strings.iter().map(|s| quote(s)).collect();
        let strings = if strings.is_empty() { String::new() } else { format!(" of {}", strings.join(", ")) };
        self.put(&format!("){guards}{strings}:\n"));
        self.statements();
    }

    fn statements(&mut self) {
        for input in &self.graph.inputs {
            self.put("  ");
            let name = self.names.value(input.value);
            let real = self.graph.values.get(input.value).map_or("", |v| &v.name);
            self.named(&name, real);
            let role = match input.role {
                Role::Argument => "input",
                Role::Parameter => "parameter",
            };
            let line = format!(": {} = {role}{}\n", self.ty(input.value), fill(input.fill));
            self.put(&line);
        }
        let mut last = (String::new(), String::new());
        for node in self.graph.nodes.values() {
            self.node(node, &mut last);
        }
        for o in &self.graph.outputs {
            let name = self.names.value(o.value);
            let label = match () {
                _ if o.name == name => String::new(),
                _ if is_name(&o.name) => format!("{} = ", o.name),
                _ => format!("{} = ", quote(&o.name)),
            };
            self.put(&format!("  output {label}{name}\n"));
        }
    }

    fn ix(&self, ix: &Ix) -> String {
        self.speller.ix_text(ix)
    }
    fn ixs(&self, list: &[Ix]) -> String {
        list.iter().map(|i| self.ix(i)).collect::<Vec<_>>().join(", ")
    }
    fn ty(&self, v: ValueId) -> String {
        match self.graph.values.get(v) {
            Some(v) => format!("{}[{}]", v.elem, self.ixs(&v.shape)),
            None => "?".into(),
        }
    }
    fn elem_of(&self, v: ValueId) -> Option<Elem> {
        self.graph.values.get(v).map(|v| v.elem)
    }

    fn node(&mut self, node: &Node, last: &mut (String, String)) {
        let results: Vec<String> =
            node.results.iter().map(|v| format!("{}: {}", self.names.value(*v), self.ty(*v))).collect();
        let line = format!("  {} = {}{}", results.join(", "), self.expr(node), self.origin(node, last));
        self.put(&line);
        match &node.op {
            Op::Repeat(r) => {
                let body = self.body(node, &r.body);
                self.put(&format!(":\n{body}"));
            }
            _ => self.put("\n"),
        }
    }

    /// The statements of a loop's body, one level deeper.
    fn body(&self, node: &Node, body: &Graph) -> String {
        let of = node.results.first().map_or(String::new(), |v| self.names.value(*v));
        let mut data = IdMap::new();
        for name in data_names(body).values() {
            data.push(format!("{of}/{name}"));
        }
        let speller = Graph { symbols: self.speller.symbols.clone(), ..Graph::default() };
        let mut p = Printer { graph: body, names: Names::of(body), speller, data, out: String::new() };
        p.statements();
        p.out.lines().map(|line| format!("  {line}\n")).collect()
    }

    fn origin(&self, node: &Node, last: &mut (String, String)) -> String {
        let (op, name) = origin(self.graph, node.origin);
        let here = (op.to_string(), name.to_string());
        let expected = match &node.op {
            Op::Source { name, .. } => (name.clone(), String::new()),
            _ => last.clone(),
        };
        *last = here.clone();
        if here == expected {
            return String::new();
        }
        let own = matches!(&node.op, Op::Source { name, .. } if *name == here.0);
        let mut text = String::from(" !");
        if !own && (!here.0.is_empty() || matches!(node.op, Op::Source { .. })) {
            let name = op_name(&here.0);
            text += &if name.starts_with('"') { format!("op {name}") } else { name };
        }
        if !here.1.is_empty() {
            text += if text.ends_with('!') { "" } else { " " };
            text += &quote(&here.1);
        }
        text
    }

    fn arg(&self, a: &Arg, context: Option<Elem>) -> String {
        match *a {
            Arg::Value(v) => self.names.value(v),
            Arg::Absent => "_".into(),
            Arg::Scalar { elem, bits } => {
                let text = number(elem, bits);
                if Some(elem) == context { text } else { format!("{text}:{elem}") }
            }
        }
    }

    fn args(&self, node: &Node) -> String {
        let result = node.results.first().and_then(|v| self.elem_of(*v));
        let context = context(&node.op, &node.args, |v| self.elem_of(v)).or(result);
        node.args.iter().map(|a| self.arg(a, context)).collect::<Vec<_>>().join(", ")
    }

    fn nth(&self, node: &Node, i: u32) -> String {
        node.args.get(i as usize).map_or("?".into(), |a| self.arg(a, None))
    }

    fn places(&self, node: &Node, coords: &[Coord]) -> String {
        let one = |c: &Coord| match c {
            Coord::Ix(ix) => self.ix(ix),
            Coord::Arg(a) => self.nth(node, *a),
        };
        coords.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn expr(&self, node: &Node) -> String {
        let result = node.results.first().and_then(|v| self.elem_of(*v));
        match &node.op {
            Op::Source { name, attrs } => {
                let mut text = op_name(name);
                let args = self.args(node);
                if !args.is_empty() {
                    text += &format!(" {args}");
                }
                for (i, (name, attr)) in attrs.iter().enumerate() {
                    let name = if is_name(name) { name.clone() } else { quote(name) };
                    text += &format!("{}{name} = {}", if i == 0 { " with " } else { ", " }, self.attr(attr));
                }
                text
            }
            Op::Constant(id) => self.constant(*id),
            Op::Elementwise(op) => {
                let class = result.map_or(Class::Any, |e| Class::of(e.dtype));
                format!("{} {}", spell(*op, class), self.args(node))
            }
            Op::Index(ix) => format!("index {}", self.ix(ix)),
            Op::Reduce { op, axes } => {
                let over: Vec<String> = axes.iter().map(u32::to_string).collect();
                let over = if over.is_empty() { "none".into() } else { over.join(", ") };
                format!("reduce {} {} over {over}", word(&FOLDS, *op), self.args(node))
            }
            Op::IndexMap(sources) => {
                let one = |s: &super::MapSource| {
                    let from = match node.args.get(s.arg as usize) {
                        Some(Arg::Value(v)) => format!("{}[{}]", self.names.value(*v), self.ixs(&s.coords)),
                        Some(a) => self.arg(a, result),
                        None => "?".into(),
                    };
                    match s.when.is_always() {
                        true => from,
                        false => format!("{from} where {}", self.speller.mask_text(&s.when)),
                    }
                };
                format!("map {}", sources.iter().map(one).collect::<Vec<_>>().join(" else "))
            }
            Op::Gather(coords) => format!("gather {}[{}]", self.nth(node, 0), self.places(node, coords)),
            Op::Scatter { coords, op } => {
                let updates = node.args.last().map_or("?".into(), |a| self.arg(a, None));
                let (op, to) = (word(&SCATTERS, *op), self.nth(node, 0));
                format!("scatter {op} {to}[{}] from {updates}", self.places(node, coords))
            }
            Op::Scan { op, axis, exclusive, reverse } => {
                let mut text = format!("scan {} {} along {axis}", word(&SCANS, *op), self.args(node));
                text += if *exclusive { " exclusive" } else { "" };
                text += if *reverse { " reverse" } else { "" };
                text
            }
            Op::Repeat(r) => {
                let (mut carried, mut rows, mut read) = (vec![], vec![], vec![]);
                let (first, whole) = (r.carried as usize, r.carried as usize + r.rows.len());
                for (at, arg) in node.args.iter().enumerate() {
                    let text = self.arg(arg, None);
                    match at {
                        _ if at < first => carried.push(text),
                        _ if at >= whole => read.push(text),
                        _ if r.rows.get(at - first) == Some(&true) => rows.push(format!("{text} reverse")),
                        _ => rows.push(text),
                    }
                }
                let given = r.given.iter().map(|back| if *back { "reverse" } else { "forward" }.to_string()).collect();
                let mut text = format!("repeat {}{}", self.ix(&r.rounds), if r.conditional { " while" } else { "" });
                for (word, list) in [("carry", carried), ("over", rows), ("read", read), ("give", given)] {
                    if !list.is_empty() {
                        text += &format!(" {word} {}", list.join(", "));
                    }
                }
                text
            }
            Op::Sort { axis, descending, runs } => {
                let end = if *descending { " descending" } else { "" };
                let runs = runs.map_or(String::new(), |n| format!(" runs {n}"));
                format!("sort {} along {axis}{end}{runs}", self.args(node))
            }
        }
    }

    fn constant(&self, id: super::ConstId) -> String {
        let Some(c) = self.graph.constants.get(id) else { return "constant ?".into() };
        match (&c.data, inline(c)) {
            (_, Some(bits)) => {
                let all: Vec<String> = bits.iter().map(|b| number(c.elem, *b)).collect();
                format!("constant [{}]", all.join(", "))
            }
            (ConstData::External { file, part, len }, _) => {
                let part = match part {
                    Part::Offset(at) => at.to_string(),
                    Part::Tensor(name) => quote(name).to_string(),
                };
                format!("constant external({}, {}, {part}, {len})", quote(&c.name), quote(file))
            }
            _ => format!("constant data({})", quote(self.data.get(id).map_or("", |n| n))),
        }
    }

    fn attr(&self, attr: &Attr) -> String {
        match attr {
            Attr::None => "none".into(),
            Attr::Bool(b) => b.to_string(),
            Attr::Int(ix) => self.ix(ix),
            Attr::Float(x) => float(*x),
            Attr::Str(s) => quote(s),
            Attr::Elem(e) => e.to_string(),
            Attr::List(l) => format!("[{}]", l.iter().map(|a| self.attr(a)).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// The operation of the model that a node came from, and its name there.
fn origin(graph: &Graph, id: OriginId) -> (&str, &str) {
    graph.origins.get(id).map_or(("", ""), |o| (&o.op, &o.name))
}

/// A scalar without its type.
fn number(elem: Elem, bits: u64) -> String {
    if elem.unsigned && elem.dtype.is_int() { bits.to_string() } else { const_text(elem.dtype, bits) }
}

/// A float in a form that cannot be read as an integer.
fn float(x: f64) -> String {
    let x = if x.is_nan() { f64::NAN } else { x };
    format_float(DType::F64, x.to_bits())
}

fn fill(f: Fill) -> String {
    match f {
        Fill::Given => String::new(),
        Fill::Normal => " normal".into(),
        Fill::Uniform { lo, hi } => format!(" uniform({}, {})", float(lo), float(hi)),
        Fill::Integers { lo, hi } => format!(" integers({lo}, {hi})"),
        Fill::Constant(x) => format!(" constant({})", float(x)),
    }
}
