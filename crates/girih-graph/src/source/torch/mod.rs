//! Graphs of PyTorch, as JSON.
//!
//! In: one JSON document that holds an FX graph of ATen operations. Out: the graph in Torch IR, or every problem: all
//! operations that are not supported or whose operands do not fit are reported at once, each with its node.
//!
//! ```json
//! {"format": "girih.torch", "version": 1, "name": "Block",
//!  "symbols": [{"name": "s0", "lo": 2, "hi": 4096}],
//!  "inputs": [{"name": "x", "dtype": "f32", "shape": [1, "s0", 64], "role": "argument"},
//!             {"name": "w", "dtype": "f32", "shape": [128, 64], "role": "parameter"}],
//!  "constants": [{"name": "c", "dtype": "i64", "shape": [2], "values": [3, 4]},
//!                {"name": "v", "dtype": "bf16", "shape": [128, 64], "file": "model.safetensors", "offset": 1208}],
//!  "nodes": [{"op": "aten.linear", "args": [{"t": "x"}, {"t": "w"}, null], "attrs": {},
//!             "results": [{"name": "y", "dtype": "f32", "shape": [1, "s0", 128]}],
//!             "module": "layers.0.up", "place": ["model.py", 12]}],
//!  "outputs": [{"name": "out", "value": "y"}]}
//! ```
//!
//! * An **extent** is an integer, the name of a symbol, or `[op, a, b]` with `+ - * // % min max`; divisors are positive.
//!   `hi` of a symbol may be `null` (not bounded). A symbol that is the extent of no input is given at every run, and may
//!   be negative.
//! * An **argument** is a tensor `{"t": NAME}`, a Python scalar (an i64, an f64 or a bool), `{"s": NUMBER, "dtype": D}`, a
//!   symbolic integer `{"ix": EXTENT}` (an i64, or as `"dtype": D` says), or `null` for an optional one left out.
//! * An **attribute** is `null`, a bool, an integer, a float (with a point or an exponent, or `{"float": "inf"}`, `"-inf"`,
//!   `"nan"`), a string, `{"dtype": D}`, `{"ix": EXTENT}`, or a list of these.
//! * A **constant** has its elements in row-major order, or names the file that holds them: as in memory, from `offset` on, or as the
//!   `tensor` of that name in a file of safetensors or GGUF, whose elements become those of `dtype`. The file is
//!   within the folder that the caller says.
//! * An argument with `"fill": "normal"` or `["integers", LO, HI]` (`HI` excluded) makes random data where none is given.
//! * **dtypes** are those of printed graphs: `f32`, `bf16`, `i64`, `u8`, `bool`, ...
//! * `results` states PyTorch's types of the results. A node whose results differ from it is refused; `null` stands for
//!   a result that nobody reads. `module` and `place` may be left out.
//! * An output that `"replaces"` an argument may be written into its memory: nobody reads that argument's elements after a run.
//!
//! Invariants: names are defined once and before they are used; nothing is allocated that is larger than the document
//! accounts for; no document makes this panic.

mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value as Json;

use crate::base::location::Location;
use crate::base::{Code, Diagnostic};
use crate::graph::build::Refusal;
use crate::graph::ir::{Arg, Attr, Attrs, Fill, Input, Output, Role, Symbol};
use crate::graph::{Builder, ConstData, Constant, Elem, Graph, OriginId, Part, SymId, ValueId};
use crate::index::{Cmp, Cond, Ix};
use read::{At, Known};

/// Why a node of the document is refused.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Position in `nodes`.
    pub node: usize,
    /// One sentence, without the operation's name.
    pub reason: String,
    pub diagnostic: Diagnostic,
}

/// Reads a document. Every problem is reported; see the module.
pub fn import(json: &str) -> Result<Graph, Vec<Diagnostic>> {
    match examine(json) {
        Ok(graph) => Ok(graph),
        Err(Failure::Document(problem)) => Err(vec![problem]),
        Err(Failure::Nodes(refused)) => Err(refused.into_iter().map(|r| r.diagnostic).collect()),
    }
}

/// The reason why an import fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The document is malformed.
    Document(Diagnostic),
    /// These nodes are refused; the others are not to blame.
    Nodes(Vec<Refused>),
}

/// [`import`] for a front end that runs refused nodes elsewhere: it learns their positions.
pub fn examine(json: &str) -> Result<Graph, Failure> {
    let malformed = |d: Diagnostic| Failure::Document(d);
    let document: Json = serde_json::from_str(json)
        .map_err(|e| malformed(Diagnostic::error(Code::BadModel, format!("the model is not valid JSON: {e}"))))?;
    let root = At::root(&document);
    if root.text("format").map_err(malformed)? != "girih.torch" {
        return Err(malformed(root.bad("`format` is not \"girih.torch\"")));
    }
    if root.integer("version").map_err(malformed)? != 1 {
        return Err(malformed(root.bad("only version 1 of the format is supported")));
    }
    let mut import = Import { graph: Graph::default(), known: Known::new(), refused: vec![] };
    import.document(&root).map_err(malformed)?;
    if import.refused.is_empty() { Ok(import.graph) } else { Err(Failure::Nodes(import.refused)) }
}

type Read<T> = std::result::Result<T, Diagnostic>;

struct Import {
    graph: Graph,
    known: Known,
    refused: Vec<Refused>,
}

impl Import {
    fn document(&mut self, root: &At<'_>) -> Read<()> {
        self.graph.name = root.get("name").and_then(|n| n.json.as_str().map(String::from)).unwrap_or_default();
        for symbol in root.list("symbols")? {
            self.symbol(&symbol)?;
        }
        for input in root.list("inputs")? {
            self.input(&input)?;
        }
        for constant in root.list("constants")? {
            self.constant(&constant)?;
        }
        for (at, node) in root.list("nodes")?.into_iter().enumerate() {
            self.node(at, &node)?;
        }
        let mut names = BTreeMap::new();
        for output in root.list("outputs")? {
            let name = output.name("name")?;
            let value = match self.known.tensor(&output, output.text("value")?)? {
                Arg::Value(v) => v,
                _ => return Err(output.bad("an output must be a tensor")),
            };
            if names.insert(name.clone(), ()).is_some() {
                return Err(output.bad(format!("two outputs are named `{name}`")));
            }
            if output.get("replaces").is_some() {
                let wanted = output.text("replaces")?;
                let named = |v: ValueId| self.graph.values.get(v).is_some_and(|v| v.name == wanted);
                let argument = |i: &Input| i.role == Role::Argument && named(i.value);
                let Some(at) = self.graph.inputs.iter().position(argument) else {
                    return Err(output.bad(format!("no argument is named `{wanted}`")));
                };
                self.graph.replaced.push((self.graph.outputs.len() as u32, at as u32));
            }
            self.graph.outputs.push(Output { name, value });
        }
        Ok(())
    }

    fn symbol(&mut self, at: &At<'_>) -> Read<()> {
        let name = at.name("name")?;
        let lo = at.integer("lo")?;
        let hi = match at.get("hi") {
            Some(hi) if !hi.json.is_null() => Some(hi.as_integer()?),
            _ => None,
        };
        if !Symbol::is_range(lo, hi) {
            return Err(at.bad(format!("the range of symbol `{name}` is empty, or not within -2^40 and 2^40")));
        }
        if self.known.symbols.contains_key(&name) {
            return Err(at.bad(format!("two symbols are named `{name}`")));
        }
        let symbol: SymId = self.graph.add_symbol(&name, lo, hi);
        self.known.symbols.insert(name, symbol.ix());
        self.known.facts = self.graph.facts();
        Ok(())
    }

    fn input(&mut self, at: &At<'_>) -> Read<()> {
        let (name, elem, shape) = self.known.typed(at)?;
        let role = match at.text("role")? {
            "argument" => Role::Argument,
            "parameter" => Role::Parameter,
            other => return Err(at.bad(format!("unknown role `{other}`; the roles are argument and parameter"))),
        };
        let fill = at.get("fill").map_or(Ok(Fill::Given), |fill| filled(&fill, elem))?;
        let value = self.graph.add_input(&name, elem, shape, role);
        if let Some(input) = self.graph.inputs.last_mut() {
            input.fill = fill;
        }
        self.known.define(at, name, value.into())
    }

    fn constant(&mut self, at: &At<'_>) -> Read<()> {
        let (name, elem, shape) = self.known.typed(at)?;
        let extents: Option<Vec<u64>> = shape.iter().map(|d| u64::try_from(d.as_const()?).ok()).collect();
        let Some(extents) = extents else { return Err(at.bad(format!("the shape of constant `{name}` is not fixed"))) };
        let origin = self.graph.add_origin("constant", &name, None);
        if at.get("file").is_some() {
            let data = external(at, elem, &extents)?;
            let constant = Constant { name: name.clone(), elem, shape: extents, data };
            let value = Builder::new(&mut self.graph, origin).constant_of(constant);
            return self.known.define(at, name, value);
        }
        let values = at.list("values")?;
        let count = extents.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        if count != Some(values.len() as u64) {
            return Err(at.bad(format!("constant `{name}` has {} values, which do not match its shape", values.len())));
        }
        if elem.dtype.bits() == 4 {
            return Err(at.bad(format!("constant `{name}` has elements of four bits")));
        }
        let mut bytes = vec![];
        for value in values {
            let Arg::Scalar { bits, .. } = value.scalar(elem)? else { continue };
            bytes.extend(bits.to_le_bytes().into_iter().take(elem.dtype.bytes() as usize));
        }
        let value = Builder::new(&mut self.graph, origin).constant(&name, elem, &extents, Bytes::from(bytes));
        self.known.define(at, name, value)
    }

    fn node(&mut self, position: usize, at: &At<'_>) -> Read<()> {
        let op = at.text("op")?.to_owned();
        let module = at.get("module").and_then(|m| m.json.as_str()).unwrap_or_default();
        let place = at.place()?;
        let origin = self.graph.add_origin(&op, module, place.clone());
        let mut args = vec![];
        for arg in at.list("args")? {
            args.push(self.known.argument(&arg, &mut Builder::new(&mut self.graph, origin))?);
        }
        let mut attrs = Attrs::new();
        if let Some(given) = at.get("attrs") {
            let Some(map) = given.json.as_object() else { return Err(given.bad("attributes are not an object")) };
            for (name, json) in map {
                attrs.insert(name.clone(), self.known.attr(&given.child(json, name))?);
            }
        }
        let mut expected = vec![];
        for result in at.list("results")? {
            expected.push(if result.json.is_null() { None } else { Some(self.known.typed(&result)?) });
        }
        // In PyTorch the device, which graphs do not name, decides if there are means and deviations, and their type.
        if op.contains("batch_norm")
            && let Some(Some((_, elem, shape))) = expected.get(1)
        {
            let kept = !shape.first().is_some_and(|n| n.is_const(0));
            attrs.insert("statistics".into(), Attr::Str(if kept { elem.to_string() } else { "none".into() }));
        }
        let outcome = Builder::new(&mut self.graph, origin)
            .source(&op, args, attrs)
            .and_then(|results| self.agree(origin, &expected, results));
        let results = match outcome {
            Ok(results) => results,
            Err(refusal) => {
                let known = crate::graph::decompose::rule(&op).is_some();
                let reason = if known { refusal.message.clone() } else { "it is not supported".into() };
                let diagnostic = diagnostic(&op, module, place, known, refusal);
                self.refused.push(Refused { node: position, reason, diagnostic });
                // Users of the node's results get stand-ins, so that the other refusals are found too.
                let mut stand_ins = vec![];
                for typed in &expected {
                    stand_ins.push(match typed {
                        Some((_, elem, shape)) => {
                            self.graph.add_input("refused", *elem, shape.clone(), Role::Argument).into()
                        }
                        None => Arg::Absent,
                    });
                }
                stand_ins
            }
        };
        for (result, typed) in results.into_iter().zip(expected) {
            let Some((name, ..)) = typed else { continue };
            Builder::new(&mut self.graph, origin).name(result, &name);
            self.known.define(at, name, result)?;
        }
        Ok(())
    }

    /// The results, if they match what PyTorch states.
    fn agree(
        &mut self,
        origin: OriginId,
        expected: &[Option<(String, Elem, Vec<Ix>)>],
        results: Vec<Arg>,
    ) -> crate::graph::build::Result<Vec<Arg>> {
        let b = Builder::new(&mut self.graph, origin);
        if results.len() < expected.len() {
            return Err(Refusal::new(format!("it has {} results, not {}", results.len(), expected.len())));
        }
        for (result, typed) in results.iter().zip(expected) {
            let Some((name, elem, shape)) = typed else { continue };
            let have = b.shape(*result);
            let fits = have.len() == shape.len()
                && have.iter().zip(shape).all(|(a, c)| {
                    b.same(a, c)
                        || b.facts().decide(&Cond::new(a.clone(), Cmp::Eq, c.clone())) != Some(false) && alike(a, c)
                });
            if b.elem(*result) != *elem || !fits {
                return Err(Refusal::new(format!(
                    "result `{name}` would be {} {}, but PyTorch makes it {elem} {}",
                    b.elem(*result),
                    b.shape_text(&have),
                    b.shape_text(shape)
                )));
            }
        }
        Ok(results)
    }
}

/// The range of another file that a constant names.
fn external(at: &At<'_>, elem: Elem, shape: &[u64]) -> Read<ConstData> {
    // Kernels read a bool as 0 or 1, and two elements of four bits share a byte.
    if elem.is_bool() || elem.dtype.bits() == 4 {
        return Err(at.bad(format!("a file cannot hold elements of {elem}")));
    }
    let file = at.text("file")?.to_owned();
    let part = match at.get("tensor") {
        Some(_) => Part::Tensor(at.text("tensor")?.to_owned()),
        None => Part::Offset(u64::try_from(at.integer("offset")?).map_err(|_| at.bad("`offset` is negative"))?),
    };
    let len = shape.iter().try_fold(elem.dtype.bytes(), |n, d| n.checked_mul(*d));
    let len = len.ok_or_else(|| at.bad("its shape has too many elements"))?;
    Ok(ConstData::External { file, part, len })
}

/// The random data that an argument makes.
fn filled(at: &At<'_>, elem: Elem) -> Read<Fill> {
    let integers = |list: &[Json]| match list {
        [name, lo, hi] if name == "integers" => Some((lo.as_i64()?, hi.as_i64()?)),
        _ => None,
    };
    match at.json.as_array().and_then(|list| integers(list)) {
        Some((lo, hi)) if lo < hi && !elem.is_float() && !elem.is_bool() => Ok(Fill::Integers { lo, hi }),
        None if at.json == "normal" && elem.is_float() => Ok(Fill::Normal),
        _ => Err(at.bad(format!("expected \"normal\" for floats, or [\"integers\", LO, HI], for elements of {elem}"))),
    }
}

/// Returns true if two extents agree for a few choices of the symbols.
fn alike(a: &Ix, b: &Ix) -> bool {
    (0..4i64).all(|round| {
        let leaf = |leaf: &Ix| match leaf {
            Ix::Const(c) => *c,
            Ix::Val { val, .. } => 64 * (round + 3) * (1 + i64::from(val.0 % 64)),
            _ => 1,
        };
        a.eval(&leaf) == b.eval(&leaf)
    })
}

fn diagnostic(op: &str, module: &str, place: Option<Location>, known: bool, refusal: Refusal) -> Diagnostic {
    let code = if known { Code::ModelShape } else { Code::UnsupportedOperator };
    let at = match (module, &place) {
        ("", None) => String::new(),
        ("", Some(place)) => format!(" ({place})"),
        (module, None) => format!(" in {module}"),
        (module, Some(place)) => format!(" in {module} ({place})"),
    };
    let message = if known { format!("{op}{at}: {}", refusal.message) } else { format!("{op}{at} is not supported") };
    let d = Diagnostic::error(code, message);
    match refusal.help {
        Some(help) => d.help(help),
        None => d,
    }
}

impl At<'_> {
    fn place(&self) -> Read<Option<Location>> {
        let Some(place) = self.get("place").filter(|p| !p.json.is_null()) else { return Ok(None) };
        match place.json.as_array().map(Vec::as_slice) {
            Some([file, line]) => {
                let (Some(file), Some(line)) = (file.as_str(), line.as_u64()) else {
                    return Err(place.bad("a place is a file and a line"));
                };
                let line = u32::try_from(line).unwrap_or(u32::MAX);
                Ok(Some(Location { file: Arc::from(file), line, column: 1 }))
            }
            _ => Err(place.bad("a place is a file and a line")),
        }
    }
}
