//! The walk over a model's nodes.
//!
//! Invariants: a name is defined once in its graph; nodes that depend on a refused node are left out in silence, so
//! that each fault is reported once; functions and branches together append at most [`MOST_NODES`] nodes.

use std::collections::BTreeMap;

use super::attributes::{self, Bound};
use super::declared::{self, Kind};
use super::lists::{self, List, ListId};
use super::proto::{Attribute, Dim, Function, Graph as GraphProto, Model, Node, OpsetId, ValueInfo};
use super::strings::{self, Words};
use super::tensor::{self, Trouble};
use super::{NEWEST_OPSET, OLDEST_OPSET, Options, fold, given};
use crate::base::{Code, Diagnostic};
use crate::graph::assume::Question;
use crate::graph::build::{Refusal, repeat};
use crate::graph::decompose::{self, onnx::dtype};
use crate::graph::ir::MAX_EXTENT;
use crate::graph::{Arg, Attr, Attrs, Builder, Constant, Graph, Op, OriginId, Output, SymId, ValueId};
use crate::index::{Ix, ValId};

/// How many nodes functions and branches may expand to.
const MOST_NODES: usize = 1 << 18;
/// The number of origins that take about the memory of a node.
const ORIGINS_OF_A_NODE: usize = 8;
/// How deep functions and branches may nest.
const DEEPEST: usize = 32;

/// Operators that meant something else before this version of the main set.
const CHANGED: &[(&str, i64)] = &[("Scan", 9)];

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Slot {
    Is(Arg),
    /// Several tensors; see [`super::lists`].
    List(ListId),
    /// The node that computes it was refused.
    Refused,
}

/// The names of one graph or function body. An inner graph sees the names of those around it.
struct Scope {
    names: BTreeMap<String, Slot>,
    /// A function's body does not see its caller's names.
    closed: bool,
    /// How many bodies of loops stand around the values that its names stand for.
    depth: usize,
}

/// A graph around the body of a loop that is being read.
pub(super) struct Around {
    graph: Graph,
    /// The values of this graph that the body reads, beside its state and its rows, and their counterparts in the body.
    read: BTreeMap<ValueId, Arg>,
    /// Lists of tensors in both.
    pub(super) lists: BTreeMap<ListId, ListId>,
    /// The operands of the loop, by the inputs of the body.
    pub(super) args: Vec<ValueId>,
}

/// The facts that hold for all nodes of one graph or function body.
#[derive(Clone, Copy)]
pub(super) struct Body<'a, 'm> {
    pub opsets: &'a BTreeMap<&'m str, i64>,
    pub bound: &'a Bound<'m>,
    pub depth: usize,
}

/// The problems reported up to some place.
pub(super) struct Said {
    errors: usize,
    unsupported: BTreeMap<String, Vec<String>>,
}

/// The most refused nodes that are remembered.
const MOST_OPEN: usize = 64;

/// The questions about extents that a refused node raised.
struct Open {
    asked: Vec<Question>,
    /// The extents of its operands, and the integers that they hold.
    operands: Vec<Ix>,
}

/// Why there is no graph, and the facts about extents that would make one possible.
pub(super) struct Refused {
    pub diagnostics: Vec<Diagnostic>,
    /// The questions of each refused node, the most helpful first.
    pub questions: Vec<Vec<Question>>,
    /// The dimensions that symbols stand for: name, least and greatest value.
    pub dimensions: BTreeMap<ValId, (String, i64, Option<i64>)>,
}

impl From<Vec<Diagnostic>> for Refused {
    fn from(diagnostics: Vec<Diagnostic>) -> Refused {
        Refused { diagnostics, questions: vec![], dimensions: BTreeMap::new() }
    }
}

pub(super) struct Importer<'m> {
    pub graph: Graph,
    pub(super) options: &'m Options,
    pub(super) words: Words,
    functions: BTreeMap<(&'m str, &'m str, &'m str), &'m Function>,
    scopes: Vec<Scope>,
    /// The graphs around `graph`, the outermost first.
    pub(super) around: Vec<Around>,
    pub(super) symbols: BTreeMap<String, Ix>,
    pub(super) lists: Vec<List>,
    /// The first nodes that were refused because of their operands, and the facts that would have helped each.
    open: Vec<Open>,
    /// Comparisons of numbers that no fact decided.
    compared: Vec<Question>,
    /// The unsupported operators, and the nodes that use each.
    unsupported: BTreeMap<String, Vec<String>>,
    pub(super) errors: Vec<Diagnostic>,
    nodes: usize,
}

/// The main set goes by two names.
fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

fn opsets(list: &[OpsetId]) -> BTreeMap<&str, i64> {
    list.iter().map(|o| (domain(&o.domain), o.version)).collect()
}

/// A node in messages: `` `fc` (Gemm) ``.
pub(super) fn node_text(node: &Node) -> String {
    match (node.name.as_str(), node.outputs.first()) {
        ("", Some(output)) => format!("of `{output}` ({})", node.op),
        ("", None) => format!("({})", node.op),
        (name, _) => format!("`{name}` ({})", node.op),
    }
}

pub(super) fn run(model: &Model, options: &Options) -> Result<Graph, Refused> {
    let bad = |what: &str| vec![Diagnostic::error(Code::BadModel, what).help("the file is not an ONNX model")];
    let Some(graph) = &model.graph else { return Err(bad("the file has no graph").into()) };
    let opsets = opsets(&model.opsets);
    if opsets.is_empty() {
        return Err(bad("the model does not say which operator set it uses").into());
    }
    let words = Words::of(model);
    let listing = options.listed.into();
    let strings = words.list.clone();
    let mut importer = Importer {
        graph: Graph { name: name_of(&graph.name, "model"), listing, strings, ..Graph::default() },
        options,
        words,
        functions: BTreeMap::new(),
        scopes: vec![],
        around: vec![],
        symbols: BTreeMap::new(),
        lists: vec![],
        open: vec![],
        compared: vec![],
        unsupported: BTreeMap::new(),
        errors: vec![],
        nodes: 0,
    };
    for f in &model.functions {
        if importer.functions.insert((domain(&f.domain), &f.name, &f.overload), f).is_some() {
            importer.error(Code::BadModel, format!("the function `{}` is defined twice", f.name));
        }
    }
    importer.versions(&opsets);
    importer.main(graph, &opsets);
    importer.finish()
}

/// The graph's name for a named dimension, as far as that name is free.
pub fn symbol_of(dimension: &str) -> String {
    name_of(dimension, "dim")
}

/// The extents of the named dimensions of inputs that have these shapes.
pub(super) fn extents(model: &Model, options: &Options, shapes: &BTreeMap<String, Vec<u64>>) -> BTreeMap<String, i64> {
    let mut extents = BTreeMap::new();
    for (name, tensor) in model.graph.iter().flat_map(|g| &g.inputs).flat_map(|input| options.typed(input)) {
        let Some(shape) = shapes.get(&name) else { continue };
        for (d, n) in shape.iter().enumerate() {
            let key = match tensor.shape.as_ref().map(|declared| declared.dims.get(d)) {
                Some(Some(dim)) if extent(dim).is_none() => options.key(&name, d, dim),
                Some(_) => continue,
                None => free_key(&name, d),
            };
            if let Ok(n) = i64::try_from(*n) {
                extents.entry(key).or_insert(n);
            }
        }
    }
    extents
}

/// A name that printed graphs can hold: letters, digits and underscores, not starting with a digit.
fn name_of(text: &str, default: &str) -> String {
    let mut out: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.is_empty() {
        out = default.into();
    }
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// The extent of a dimension, where the file says it. Some exporters write -1 for one that is not known.
pub(super) fn extent(dim: &Dim) -> Option<u64> {
    dim.value.and_then(|n| u64::try_from(n).ok())
}

/// The name of the extent of dimension `d` of an input. Some exporters write `?` for each unknown extent.
pub(super) fn dim_key(input: &str, d: usize, dim: &Dim) -> String {
    let named = dim.param.chars().any(|c| c.is_alphanumeric() || c == '_');
    if named { dim.param.clone() } else { free_key(input, d) }
}

/// The name of the extent of dimension `d` of an input for which the file has no name.
pub fn free_key(input: &str, d: usize) -> String {
    format!("{input}_d{d}")
}

impl<'m> Importer<'m> {
    pub(super) fn error(&mut self, code: Code, message: impl Into<String>) {
        self.errors.push(Diagnostic::error(code, message));
    }

    pub(super) fn unsupported(&mut self, what: impl Into<String>, node: impl Into<String>) {
        self.unsupported.entry(what.into()).or_default().push(node.into());
    }

    pub(super) fn trouble(&mut self, trouble: Trouble, node: String) {
        match trouble {
            Trouble::Error(d) => self.errors.push(d),
            Trouble::Type(what) => self.unsupported(format!("element type {what}"), node),
        }
    }

    pub(super) fn refuse(&mut self, node: &Node, refusal: Refusal) {
        let d = Diagnostic::error(Code::ModelShape, format!("node {}: {}", node_text(node), refusal.message));
        self.errors.push(d.maybe_help(refusal.help));
    }

    fn versions(&mut self, opsets: &BTreeMap<&str, i64>) {
        if let Some(&main) = opsets.get("")
            && !(OLDEST_OPSET..=NEWEST_OPSET).contains(&main)
        {
            let message = format!("the model uses version {main} of ONNX's operators");
            let help = format!("versions {OLDEST_OPSET} to {NEWEST_OPSET} are supported");
            self.errors.push(Diagnostic::error(Code::UnsupportedOperator, message).help(help));
        }
    }

    /// The innermost definition of a name, as a value of the current graph.
    pub(super) fn lookup(&mut self, name: &str) -> Option<Slot> {
        for scope in self.scopes.iter().rev() {
            if let Some(slot) = scope.names.get(name) {
                let (slot, depth) = (*slot, scope.depth);
                return Some(match slot {
                    Slot::Is(Arg::Value(v)) => {
                        Slot::Is((depth..self.around.len()).fold(Arg::Value(v), |x, at| self.inside(at, x)))
                    }
                    Slot::List(id) => (depth..self.around.len()).fold(Slot::List(id), |list, at| match list {
                        Slot::List(id) => self.list_inside(at, id),
                        other => other,
                    }),
                    other => other,
                });
            }
            if scope.closed {
                return None;
            }
        }
        None
    }

    /// A value of the graph around a body as one of the body's.
    pub(super) fn inside(&mut self, at: usize, x: Arg) -> Arg {
        let Arg::Value(v) = x else { return x };
        let (outer, inner) = self.around.split_at_mut(at + 1);
        let Some(outer) = outer.last_mut() else { return x };
        if let Some(known) = outer.read.get(&v) {
            return *known;
        }
        let body = inner.first_mut().map_or(&mut self.graph, |next| &mut next.graph);
        let new = match outer.graph.def(v).map(|(node, _)| &node.op) {
            // Decompositions look at short constants.
            Some(Op::Constant(c)) if outer.graph.constants.get(*c).is_some_and(|c| fold::short(&c.shape)) => {
                let constant = outer.graph.constants[*c].clone();
                let origin = OriginId(0);
                Builder::new(body, origin).constant_of(constant)
            }
            _ => {
                outer.args.push(v);
                repeat::read(&outer.graph, body, v)
            }
        };
        outer.read.insert(v, new);
        new
    }

    /// The number of loop bodies around the current node.
    pub(super) fn depth(&self) -> usize {
        self.around.len()
    }

    pub(super) fn push_scope(&mut self, closed: bool) {
        self.scopes.push(Scope { names: BTreeMap::new(), closed, depth: self.around.len() });
    }

    pub(super) fn pop_scope(&mut self) {
        self.scopes.pop();
    }

    /// Begins the body of a loop with this state and, in each round, a row of each of these tensors; `None` when the
    /// model expands to too many nodes. A body keeps the origins of all nodes before it, which take memory too.
    pub(super) fn open(&mut self, node: &Node, state: &[ValueId], rows: &[ValueId]) -> Option<Vec<Arg>> {
        if !self.spend_many(self.graph.origins.len() / ORIGINS_OF_A_NODE, node) {
            return None;
        }
        let mut body = repeat::open(&mut self.graph);
        let mut inputs = vec![];
        for (at, x) in state.iter().chain(rows).enumerate() {
            inputs.push(repeat::state_or_row(&self.graph, &mut body, *x, at >= state.len()));
        }
        let graph = std::mem::replace(&mut self.graph, body);
        self.around.push(Around { graph, read: BTreeMap::new(), lists: BTreeMap::new(), args: [state, rows].concat() });
        Some(inputs)
    }

    /// Ends a body; returns its graph, and the operands of the loop.
    pub(super) fn close(&mut self) -> (Graph, Vec<ValueId>) {
        let Some(around) = self.around.pop() else { return (Graph::default(), vec![]) };
        let body = std::mem::replace(&mut self.graph, around.graph);
        repeat::close(&mut self.graph, &body);
        (body, around.args)
    }

    /// The problems reported so far.
    pub(super) fn said(&self) -> Said {
        Said { errors: self.errors.len(), unsupported: self.unsupported.clone() }
    }

    /// Returns true if more problems were reported since.
    pub(super) fn complains(&self, said: &Said) -> bool {
        self.errors.len() > said.errors || self.unsupported != said.unsupported
    }

    /// Takes back the problems reported since; nodes that were read stay counted.
    pub(super) fn unsay(&mut self, said: Said) {
        self.errors.truncate(said.errors);
        self.unsupported = said.unsupported;
    }

    pub(super) fn define(&mut self, name: &str, slot: Slot) {
        let Some(scope) = self.scopes.last_mut() else { return };
        if scope.names.insert(name.to_string(), slot).is_some() {
            self.error(Code::BadModel, format!("the model computes `{name}` twice"));
        }
    }

    fn main(&mut self, graph: &'m GraphProto, opsets: &BTreeMap<&'m str, i64>) {
        self.push_scope(true);
        let origin = self.graph.add_origin("", "", None);
        self.initializers(graph, origin);
        let options = self.options;
        for (name, tensor) in graph.inputs.iter().flat_map(|input| options.typed(input)) {
            self.fix(&name, tensor);
        }
        for input in &graph.inputs {
            // Before version 4 of the format, initializers were inputs too; since then, inputs with a default are.
            if self.lookup(&input.name).is_none() && !self.given(input, origin) {
                self.input(input, origin);
            }
        }
        let names: Vec<String> = graph.inputs.iter().filter_map(|i| options.tensors(i)).flatten().collect();
        for name in options.known.keys().filter(|k| !names.contains(k)) {
            let message = format!("the model has no input `{name}`");
            let help = format!("its inputs are {}", names.join(", "));
            self.errors.push(Diagnostic::error(Code::ModelInput, message).help(help));
        }
        let body = Body { opsets, bound: &Bound::new(), depth: 0 };
        self.body(&graph.nodes, body);
        for info in &graph.value_info {
            if let Some(Slot::Is(arg)) = self.lookup(&info.name) {
                self.compare(info, arg);
            }
        }
        for output in &graph.outputs {
            match self.lookup(&output.name) {
                // An optional value that is not there.
                Some(Slot::Is(Arg::Absent) | Slot::Refused) => {}
                Some(Slot::Is(arg)) => {
                    self.compare(output, arg);
                    self.output(&output.name, arg, origin);
                }
                Some(Slot::List(_)) if matches!(declared::one(output).kind, Kind::Tensor | Kind::Optional) => {
                    let text = format!("the output `{}` is a sequence, which the model does not declare", output.name);
                    self.error(Code::BadModel, text);
                }
                Some(Slot::List(id)) => match self.listed(id).cloned() {
                    Some(List::Items(all)) => {
                        for (at, x) in all.into_iter().enumerate() {
                            self.output(&given::item(&output.name, at), x, origin);
                        }
                    }
                    // One tensor for each row of it.
                    Some(List::Rows(x)) => self.output(&output.name, x, origin),
                    _ => self.unsupported("outputs that are sequences of this kind", format!("`{}`", output.name)),
                },
                None => self.error(Code::BadModel, format!("the output `{}` is not computed", output.name)),
            }
        }
        if graph.outputs.is_empty() {
            self.error(Code::BadModel, "the model has no outputs");
        }
    }

    fn output(&mut self, name: &str, x: Arg, origin: OriginId) {
        let mut b = Builder::new(&mut self.graph, origin);
        if let Ok(value) = b.tensor(x) {
            self.graph.outputs.push(Output { name: name.into(), value });
        }
    }

    pub(super) fn initializers(&mut self, graph: &'m GraphProto, origin: OriginId) {
        let main = self.scopes.len() == 1 && self.around.is_empty();
        for t in graph.initializers.iter().filter(|t| !main || !self.options.given.contains(&t.name)) {
            let slot = match tensor::constant(t, &t.name, &self.words) {
                Ok(constant) => self.constant(constant, origin),
                Err(trouble) => {
                    self.trouble(trouble, format!("the tensor `{}`", t.name));
                    Slot::Refused
                }
            };
            self.define(&t.name, slot);
        }
        if graph.sparse_initializers > 0 {
            self.unsupported("sparse tensors", format!("the graph `{}`", graph.name));
        }
    }

    pub(super) fn constant(&mut self, constant: Constant, origin: OriginId) -> Slot {
        if constant.shape.iter().any(|d| *d > MAX_EXTENT as u64) {
            self.error(Code::BadModel, format!("the tensor `{}` has a dimension that is too long", constant.name));
            return Slot::Refused;
        }
        Slot::Is(Builder::new(&mut self.graph, origin).constant_of(constant))
    }

    /// Reports an element type that the file states for a value and that contradicts its operands. Stated shapes may
    /// contradict them: tools that change a model leave the old shapes behind, and no runtime believes them.
    fn compare(&mut self, info: &ValueInfo, arg: Arg) {
        let Some(stated) = info.kind.as_ref().and_then(|k| k.tensor.as_ref()) else { return };
        let elem = Builder::new(&mut self.graph, OriginId(0)).elem(arg);
        if stated.elem != 0 && dtype::elem(stated.elem) != Ok(elem) {
            let stated = dtype::elem(stated.elem).map_or_else(|name| name, |e| e.to_string());
            let message = format!("the model says that `{}` holds {stated}, but it holds {elem}", info.name);
            self.error(Code::ModelShape, message);
        }
    }

    pub(super) fn body(&mut self, nodes: &'m [Node], body: Body<'_, 'm>) {
        for node in nodes {
            if !self.spend(node) {
                return;
            }
            let results = self.node(node, body);
            for (i, name) in node.outputs.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
                let slot = match &results {
                    Some(slots) => slots.get(i).copied(),
                    None => Some(Slot::Refused),
                };
                let slot = slot.unwrap_or_else(|| {
                    self.unsupported(format!("output {} of operator {}", i + 1, node.op), node_text(node));
                    Slot::Refused
                });
                if let Slot::Is(arg) = slot {
                    Builder::new(&mut self.graph, OriginId(0)).name(arg, name);
                }
                self.define(name, slot);
            }
        }
    }

    /// Counts a node; false when the model expands to too many.
    pub(super) fn spend(&mut self, node: &Node) -> bool {
        self.spend_many(1, node)
    }

    /// Counts an expansion that takes the memory of `count` nodes.
    pub(super) fn spend_many(&mut self, count: usize, node: &Node) -> bool {
        let before = self.nodes;
        self.nodes = before.saturating_add(count);
        if before < MOST_NODES && self.nodes >= MOST_NODES {
            let node = node_text(node);
            let message =
                format!("functions and branches expand to more than {MOST_NODES} nodes, up to the node {node}");
            self.error(Code::BadModel, message);
        }
        self.nodes < MOST_NODES
    }

    /// The results of a node; `None` when it was refused, or depends on a refused node.
    fn node(&mut self, node: &'m Node, body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        let mut inputs = vec![];
        for name in &node.inputs {
            inputs.push(match self.lookup(name) {
                _ if name.is_empty() => Slot::Is(Arg::Absent),
                Some(slot) => slot,
                None => {
                    let message = format!("node {} uses `{name}`, which is not computed before it", node_text(node));
                    self.error(Code::BadModel, message);
                    Slot::Refused
                }
            });
        }
        let set = domain(&node.domain);
        if let Some(&function) = self.functions.get(&(set, node.op.as_str(), node.overload.as_str())) {
            return self.call(node, function, &inputs, body);
        }
        if set.is_empty()
            && (lists::handles(&node.op)
                || (node.op == "Identity" && matches!(inputs[..], [Slot::List(_) | Slot::Is(Arg::Absent)])))
        {
            return self.list_node(node, &inputs, body);
        }
        if (set, node.op.as_str()) == ("", "Loop") {
            return if inputs.contains(&Slot::Refused) { None } else { self.repeat(node, inputs, body) };
        }
        if (set, node.op.as_str()) == ("", "SequenceMap") {
            return self.sequence_map(node, &inputs, body);
        }
        if !self.no_lists(node, &inputs) {
            return None;
        }
        let args: Option<Vec<Arg>> = inputs
            .iter()
            .map(|slot| match slot {
                Slot::Is(arg) => Some(*arg),
                Slot::Refused | Slot::List(_) => None,
            })
            .collect();
        let Some(&version) = body.opsets.get(set) else {
            let message = format!(
                "node {} is of the operator set `{set}`, but the model does not say which version",
                node_text(node)
            );
            self.error(Code::BadModel, message);
            return None;
        };
        match (set, node.op.as_str()) {
            ("", "Constant") => return self.constant_node(node, body),
            ("", "If") => return self.branch(node, args?, body),
            ("", "Scan") if version >= 9 => return self.scan(node, args?, body),
            ("ai.onnx.preview", "FlexAttention") => return self.flex_attention(node, args?, body),
            _ => {}
        }
        // ONNX's own sets share no names; other sets keep theirs.
        let ours = set.is_empty() || set.starts_with("ai.onnx.");
        // The older operator is the other with less said.
        let op = if node.op == "CategoryMapper" { "LabelEncoder" } else { &node.op };
        let name = format!("{}.{op}", if ours { "onnx" } else { set });
        let old = set.is_empty() && CHANGED.iter().any(|(op, since)| *op == node.op && version < *since);
        if old || decompose::rule(&name).is_none() {
            let of = if set.is_empty() { String::new() } else { format!(" of `{set}`") };
            self.unsupported(format!("operator {}{of} (version {version})", node.op), node_text(node));
            return None;
        }
        let mut attrs = self.attrs(node, body)?;
        // Some operators of `com.microsoft` have one of their own.
        attrs.entry("opset".into()).or_insert(Attr::Int(Ix::Const(version)));
        if node.outputs.len() > 1 {
            attrs.insert("outputs".into(), Attr::Int(Ix::Const(node.outputs.len() as i64)));
        }
        let (args, gives) = self.without_strings(node, args?, &mut attrs, ours)?;
        let results = self.append(node, &name, args, attrs)?;
        if !gives {
            return Some(results);
        }
        let Some((Slot::Is(first), rest)) = results.split_first() else { return Some(results) };
        let mut strings = self.append(node, "girih.strings", vec![*first], Attrs::new())?;
        strings.extend(rest);
        Some(strings)
    }

    /// The operands of a node and its attributes with numbers for strings, and whether its first result is strings.
    fn without_strings(
        &mut self,
        node: &Node,
        mut args: Vec<Arg>,
        attrs: &mut Attrs,
        ours: bool,
    ) -> Option<(Vec<Arg>, bool)> {
        let b = Builder::new(&mut self.graph, OriginId(0));
        let comes = args.iter().any(|x| b.elem(*x).text);
        let uses = match strings::numbered(&node.op, attrs, &self.words, comes).filter(|_| ours) {
            Some(Ok(uses)) => uses,
            Some(Err(what)) => {
                self.refuse(node, Refusal::new(format!("{what}, which is not supported")));
                return None;
            }
            None if comes && !(ours && strings::moves(&node.op)) => {
                self.unsupported(format!("operator {} of strings", node.op), node_text(node));
                return None;
            }
            None => return Some((args, false)),
        };
        if uses.takes != comes {
            let (wants, has) = if uses.takes { ("strings", "numbers") } else { ("numbers", "strings") };
            self.refuse(node, Refusal::new(format!("it looks for {wants}, but its operand holds {has}")));
            return None;
        }
        if let Some(first) = args.first_mut().filter(|_| comes) {
            match self.append(node, "girih.numbers", vec![*first], Attrs::new())?.first() {
                Some(Slot::Is(numbers)) => *first = *numbers,
                _ => return None,
            }
        }
        Some((args, uses.gives))
    }

    pub(super) fn attrs(&mut self, node: &'m Node, body: Body<'_, 'm>) -> Option<Attrs> {
        match attributes::attrs(&node.attributes, body.bound, &self.words, &node_text(node)) {
            Ok(attrs) => Some(attrs),
            Err(trouble) => {
                self.trouble(trouble, node_text(node));
                None
            }
        }
    }

    pub(super) fn append(&mut self, node: &Node, name: &str, mut args: Vec<Arg>, attrs: Attrs) -> Option<Vec<Slot>> {
        while args.last() == Some(&Arg::Absent) {
            args.pop();
        }
        let origin = self.graph.add_origin(name, &node.name, None);
        if let Some(constants) = fold::fold(&self.graph, name, &args, &attrs) {
            let mut slots = vec![];
            for (i, mut constant) in constants.into_iter().enumerate() {
                constant.name = node.outputs.get(i).cloned().unwrap_or_default();
                slots.push(self.constant(constant, origin));
            }
            return Some(slots);
        }
        let mut b = Builder::new(&mut self.graph, origin);
        let outcome = b.source(name, args.clone(), attrs);
        let asked = b.take_asked();
        let results = match outcome {
            Ok(results) => {
                self.compared.extend(asked.into_iter().filter(|q| matches!(q, Question::Whether(_))));
                results
            }
            Err(refusal) => {
                if self.open.len() < MOST_OPEN {
                    let b = Builder::new(&mut self.graph, origin);
                    let known = |x: &Arg| [b.shape(*x), b.ints(*x).unwrap_or_default()].concat();
                    let operands = args.iter().flat_map(known).collect();
                    self.open.push(Open { asked, operands });
                }
                self.refuse(node, refusal);
                return None;
            }
        };
        Some(results.into_iter().map(Slot::Is).collect())
    }

    /// Returns true if a function or branch may open another; otherwise reports an error.
    pub(super) fn deeper(&mut self, depth: usize, node: &Node) -> bool {
        if depth >= DEEPEST {
            let message = format!("node {}: functions and branches nest more than {DEEPEST} deep", node_text(node));
            self.error(Code::BadModel, message);
        }
        depth < DEEPEST
    }

    /// Inlines a function of the model.
    fn call(&mut self, node: &'m Node, f: &'m Function, inputs: &[Slot], body: Body<'_, 'm>) -> Option<Vec<Slot>> {
        if !self.deeper(body.depth, node) {
            return None;
        }
        if inputs.len() > f.inputs.len() {
            let (given, has) = (inputs.len(), f.inputs.len());
            let message = format!("node {} gives {given} operands to a function that has {has}", node_text(node));
            self.error(Code::BadModel, message);
            return None;
        }
        let given = node.attributes.iter().filter_map(|a| Some((a.name.as_str(), attributes::resolve(a, body.bound)?)));
        let defaults = f.defaults.iter().map(|a| (a.name.as_str(), a));
        let bound: BTreeMap<&str, &Attribute> = defaults.chain(given).collect();
        let mut versions = opsets(&f.opsets);
        for (set, version) in body.opsets {
            versions.entry(set).or_insert(*version);
        }
        self.push_scope(true);
        for (i, name) in f.inputs.iter().enumerate() {
            self.define(name, inputs.get(i).copied().unwrap_or(Slot::Is(Arg::Absent)));
        }
        self.body(&f.nodes, Body { opsets: &versions, bound: &bound, depth: body.depth + 1 });
        let results = self.results(f.outputs.iter().map(String::as_str), node);
        self.pop_scope();
        results
    }

    /// The results of an inner graph or function.
    pub(super) fn results<'s>(&mut self, names: impl Iterator<Item = &'s str>, node: &Node) -> Option<Vec<Slot>> {
        let mut out = vec![];
        for name in names {
            match self.lookup(name) {
                Some(slot) => out.push(slot),
                None if self.nodes >= MOST_NODES => return None,
                None => {
                    let message = format!("node {}: its result `{name}` is not computed", node_text(node));
                    self.error(Code::BadModel, message);
                    return None;
                }
            }
        }
        Some(out)
    }

    fn finish(mut self) -> Result<Graph, Refused> {
        for (what, nodes) in std::mem::take(&mut self.unsupported) {
            let shown: Vec<&str> = nodes.iter().take(4).map(String::as_str).collect();
            let more = match nodes.len() - shown.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let message = format!("{what} is not supported: {}{more}", shown.join(", "));
            self.errors.push(Diagnostic::error(Code::UnsupportedOperator, message));
        }
        if self.errors.is_empty() {
            return Ok(self.graph);
        }
        // A node refused for another reason, an `If` whose branches differ, may wait for a comparison too.
        if self.open.is_empty() {
            self.open.push(Open { asked: vec![], operands: vec![] });
        }
        let compared = self.compared.into_iter().rev();
        if let Some(first) = self.open.first_mut() {
            first.asked.extend(compared);
        }
        let all = self.open.into_iter().map(|Open { asked, operands }| {
            let open = operands.into_iter().filter(|ix| !ix.vals().is_empty()).map(Question::Which);
            asked.into_iter().chain(open).collect()
        });
        let questions = all.collect();
        let dimensions = self.symbols.into_iter().filter_map(|(key, ix)| match ix {
            Ix::Val { val, .. } => {
                let symbol = self.graph.symbols.get(SymId(val.0))?;
                Some((val, (key, symbol.lo, symbol.hi)))
            }
            _ => None,
        });
        Err(Refused { diagnostics: self.errors, questions, dimensions: dimensions.collect() })
    }
}
