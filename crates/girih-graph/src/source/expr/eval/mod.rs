//! The evaluator: runs the statements of a text, and appends an operation to the graph for each one on tensors.
//!
//! Invariants:
//! 1. Every problem is one diagnostic in [`Eval::errors`]; [`Stop`] only says that there is one.
//! 2. Steps, calls, nodes and the sizes of lists are bounded, so every text ends.
//! 3. While library code runs, `span` stays at the user's expression that called it.

mod call;
mod expr;
mod index;
mod object;
mod operators;
mod stmt;

pub use object::PROPERTIES;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::ast::{self, Binary, Compare};
use super::error::{Res, Stop, bad};
use super::value::{Class, Declared, Object, Scope, State, Tensor, TensorCell, Value};
use super::{Evaluated, Given};
use crate::base::location::Location;
use crate::base::{Diagnostic, Span};
use crate::graph::build::Refusal;
use crate::graph::ir::{self, Arg};
use crate::graph::{Attrs, Builder, Elem, Fill, Graph, OriginId, Output, Role, ValueId};
use crate::index::{Facts, Ix, simplify};

/// Expressions and statements that a text may evaluate.
const STEPS: u64 = 400_000;
/// Nodes of a graph.
const NODES: usize = 200_000;
/// How deep calls and expressions may nest.
const DEEPEST: u32 = 220;
/// Elements of a list, tuple, range or string.
pub(super) const LONGEST: usize = 100_000;
/// Bytes of a tensor: more is a slip of the pen.
const LARGEST: i128 = 1 << 46;
/// Problems that are reported.
const MOST: usize = 20;

pub struct Eval<'t> {
    pub graph: Graph,
    pub errors: Vec<Diagnostic>,
    text: &'t str,
    given: &'t [Given],
    /// Inputs of the graph, in order.
    inputs: Vec<(Tensor, ValueId)>,
    /// The inputs that were given, by name.
    used_given: BTreeMap<String, Tensor>,
    pub(super) globals: Rc<Scope>,
    pub(super) prelude: Rc<Scope>,
    pub(super) scope: Rc<Scope>,
    /// The user's expression that is being evaluated.
    pub span: Span,
    /// Calls of library code that are running.
    pub(super) inside: u32,
    steps: u64,
    depth: u32,
    /// Undefined names are extents here.
    extents: u32,
    /// Modules whose `forward` is running.
    modules: Vec<Rc<Object>>,
    /// All modules, so that their names outlive them.
    pub(super) objects: Vec<Rc<Object>>,
    /// The class and object of each running method.
    methods: Vec<Option<(Option<Rc<Class>>, Value)>>,
    file: Arc<str>,
    /// Results that were given a name.
    named: BTreeSet<ValueId>,
}

impl<'t> Eval<'t> {
    pub fn new(text: &'t str, given: &'t [Given]) -> Eval<'t> {
        let prelude = Rc::new(Scope::default());
        let globals = Scope::inside(&prelude);
        Eval {
            graph: Graph { name: "main".into(), ..Graph::default() },
            errors: vec![],
            text,
            given,
            inputs: vec![],
            used_given: BTreeMap::new(),
            scope: globals.clone(),
            globals,
            prelude,
            span: Span::default(),
            inside: 0,
            steps: 0,
            depth: 0,
            extents: 0,
            modules: vec![],
            objects: vec![],
            methods: vec![],
            file: super::PLACE.into(),
            named: BTreeSet::new(),
        }
    }

    /// Runs the text and gives the graph of its last expression.
    pub fn run(mut self, program: &[ast::Stmt]) -> Result<Evaluated, Vec<Diagnostic>> {
        self.load_prelude();
        let outcome = self.program(program);
        let finished = self.finish(outcome);
        // Functions hold the names they were defined among, which hold the functions.
        self.globals.names.borrow_mut().clear();
        self.prelude.names.borrow_mut().clear();
        finished.map(|()| Evaluated { graph: self.graph })
    }

    fn finish(&mut self, outcome: Res<Option<Value>>) -> Result<(), Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            self.errors.truncate(MOST);
            return Err(std::mem::take(&mut self.errors));
        }
        let Ok(Some(value)) = outcome else {
            let end = Span::new(self.text.len().saturating_sub(1), self.text.len());
            let d = bad(end, "the text ends without a value")
                .help("write the expression to compute at the end; its value is the output");
            return Err(vec![d]);
        };
        match self.outputs(&value) {
            Ok(()) => {
                self.name_inputs();
                Ok(())
            }
            Err(Stop) => Err(std::mem::take(&mut self.errors)),
        }
    }

    pub fn fail<T>(&mut self, message: impl Into<String>) -> Res<T> {
        self.fail_at(self.span, message)
    }
    pub fn fail_at<T>(&mut self, span: Span, message: impl Into<String>) -> Res<T> {
        self.problem(bad(span, message))
    }
    pub fn fail_help<T>(&mut self, message: impl Into<String>, help: impl Into<String>) -> Res<T> {
        let d = bad(self.span, message).help(help);
        self.problem(d)
    }
    /// Reports a problem; inside library code at the user's call.
    pub fn problem<T>(&mut self, mut d: Diagnostic) -> Res<T> {
        if self.inside > 0 {
            d.span = Some(self.span);
        }
        if !self.errors.contains(&d) {
            self.errors.push(d);
        }
        Err(Stop)
    }
    /// Marks the next expression of the user.
    fn mark(&mut self, span: Span) {
        if self.inside == 0 {
            self.span = span;
        }
    }

    fn step(&mut self, span: Span) -> Res<()> {
        self.steps += 1;
        if self.steps > STEPS {
            self.steps = STEPS;
            if self.errors.is_empty() {
                let d = bad(span, "evaluating this text takes too many steps")
                    .help("loops are unrolled here: keep them short");
                return self.problem(d);
            }
            return Err(Stop);
        }
        Ok(())
    }

    fn nested<T>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= DEEPEST {
            let d = bad(span, "calls and expressions are nested too deeply");
            return self.problem(d);
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    fn program(&mut self, program: &[ast::Stmt]) -> Res<Option<Value>> {
        let mut last = None;
        for stmt in program {
            last = None;
            let outcome = match &stmt.kind {
                ast::StmtKind::Expr(e) => self.expr(e).map(|v| last = Some(v)),
                _ => self.stmt(stmt).map(|_| ()),
            };
            if outcome.is_err() {
                self.forget(stmt);
            }
            if self.errors.len() >= MOST || self.steps >= STEPS {
                return Err(Stop);
            }
        }
        // A text that ends with an assignment gives the assigned value.
        if last.is_none()
            && let Some(ast::StmtKind::Assign(targets, _)) = program.last().map(|s| &s.kind)
            && let Some(target) = targets.first()
        {
            last = self.expr(target).ok();
        }
        if last.is_none()
            && let Some(ast::StmtKind::Augmented(target, ..)) = program.last().map(|s| &s.kind)
        {
            last = self.expr(target).ok();
        }
        Ok(last)
    }

    /// After a problem, marks the names that the statement would have defined as unknown, so that they cause no more
    /// problems.
    fn forget(&mut self, stmt: &ast::Stmt) {
        self.scope = self.globals.clone();
        self.inside = 0;
        self.extents = 0;
        self.depth = 0;
        self.modules.clear();
        self.methods.clear();
        let mut names = vec![];
        defined(stmt, &mut names);
        for name in names {
            self.globals.set(&name, Value::Unknown);
        }
    }

    /// The outputs are the tensors of the value.
    fn outputs(&mut self, value: &Value) -> Res<()> {
        let mut found = vec![];
        self.collect(value, "out", 0, &mut found)?;
        if found.is_empty() {
            let kind = value.kind();
            return self.fail_help(
                format!("the text's value is {kind}, not a tensor"),
                "end with an expression over tensors, such as `torch.relu(x)`",
            );
        }
        for (name, tensor) in found {
            let arg = self.arg(&tensor);
            if let Arg::Value(value) = arg {
                self.graph.outputs.push(Output { name, value });
            }
        }
        Ok(())
    }

    fn collect(&mut self, value: &Value, name: &str, depth: u32, out: &mut Vec<(String, Tensor)>) -> Res<()> {
        if depth > 8 {
            return self.fail("the text's value is nested too deeply");
        }
        match value {
            Value::Tensor(t) => out.push((name.into(), t.clone())),
            Value::Tuple(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.collect(item, &join(name, &i.to_string()), depth + 1, out)?;
                }
            }
            Value::List(items) => {
                for (i, item) in items.borrow().to_vec().iter().enumerate() {
                    self.collect(item, &join(name, &i.to_string()), depth + 1, out)?;
                }
            }
            Value::Dict(items) => {
                for (key, item) in items.borrow().to_vec() {
                    let Value::Str(key) = key else {
                        return self.fail("the keys of a dict of outputs must be strings");
                    };
                    self.collect(&item, &join(if name == "out" { "" } else { name }, &key), depth + 1, out)?;
                }
            }
            Value::Object(o) if !o.class.is("Module") => {
                for (key, item) in o.fields.borrow().clone() {
                    self.collect(&item, &join(if name == "out" { "" } else { name }, &key), depth + 1, out)?;
                }
            }
            Value::None if depth > 0 => {}
            Value::Int(_) | Value::Extent(_) | Value::Float(_) | Value::Bool(_) => {
                let t = self.number_tensor(value)?;
                out.push((name.into(), t));
            }
            Value::Unknown => return Err(Stop),
            Value::Object(o) => {
                let class = o.class.name.clone();
                return self.fail_help(
                    format!("the text's value is a module of class {class}, not a tensor"),
                    "call it: `module(x)`",
                );
            }
            other => {
                let kind = other.kind();
                return self.fail(format!("{kind} cannot be an output"));
            }
        }
        Ok(())
    }

    /// Names inputs: inputs that are assigned to names get those; weights get the path in their module; the rest are x,
    /// x1, ...
    fn name_inputs(&mut self) {
        let mut roots: HashSet<*const Object> = HashSet::new();
        for (t, _) in &self.inputs {
            if let Some((owner, _)) = t.owner.borrow().as_ref().and_then(|(o, n)| Some((o.upgrade()?, n.clone()))) {
                roots.insert(Rc::as_ptr(&owner.path().1));
            }
        }
        let mut held: HashMap<*const Object, String> = HashMap::new();
        for (name, value) in self.globals.names.borrow().iter() {
            if let Value::Object(o) = value {
                held.entry(Rc::as_ptr(o)).or_insert_with(|| name.clone());
            }
        }
        let given: HashSet<_> = self.used_given.values().map(Rc::as_ptr).collect();
        let mut taken: HashSet<String> = self.used_given.keys().cloned().collect();
        // The number of times that each name was wanted so far.
        let mut wants: HashMap<String, usize> = HashMap::new();
        for (t, v) in self.inputs.clone() {
            let owner = t.owner.borrow().as_ref().and_then(|(o, n)| Some((o.upgrade()?, n.clone())));
            let current = self.graph.values[v].name.clone();
            if given.contains(&Rc::as_ptr(&t)) {
                continue;
            }
            let wanted = match owner {
                Some((owner, attribute)) => {
                    let (path, root) = owner.path();
                    let name = if path.is_empty() { attribute } else { format!("{path}.{attribute}") };
                    match held.get(&Rc::as_ptr(&root)).filter(|_| roots.len() > 1) {
                        Some(held) => format!("{held}.{name}"),
                        None => name,
                    }
                }
                None => current,
            };
            let mut name = wanted.clone();
            let n = wants.entry(wanted.clone()).or_default();
            while taken.contains(&name) {
                *n += 1;
                name = format!("{wanted}{n}");
            }
            taken.insert(name.clone());
            self.graph.values[v].name = name;
        }
    }

    // ---- tensors ----

    /// The tensor as an operand; an input enters the graph when it is first used.
    pub fn arg(&mut self, t: &Tensor) -> Arg {
        let state = t.state.borrow().clone();
        let declared = match state {
            State::Ready(v) => return Arg::Value(v),
            State::Pending(d) => d,
        };
        let name = declared.name.clone().unwrap_or_else(|| "x".into());
        if let (true, Fill::Constant(value)) = (declared.constant, declared.fill) {
            let origin = self.origin("aten.full");
            let (elem, shape) = (declared.elem, declared.shape);
            let mut b = Builder::new(&mut self.graph, origin);
            let value =
                if elem.is_bool() { ir::int_scalar(elem, (value != 0.0).into()) } else { ir::scalar(elem, value) };
            let arg = b.full(value, elem, shape);
            if let Some(name) = declared.name {
                b.name(arg, &name);
            }
            if let Arg::Value(v) = arg {
                *t.state.borrow_mut() = State::Ready(v);
            }
            return arg;
        }
        let v = self.graph.add_input(&name, declared.elem, declared.shape, declared.role);
        if let Some(input) = self.graph.inputs.last_mut() {
            input.fill = declared.fill;
        }
        *t.state.borrow_mut() = State::Ready(v);
        self.inputs.push((t.clone(), v));
        Arg::Value(v)
    }
    pub fn elem(&self, t: &Tensor) -> Elem {
        match &*t.state.borrow() {
            State::Pending(d) => d.elem,
            State::Ready(v) => self.graph.values[*v].elem,
        }
    }
    pub fn shape(&self, t: &Tensor) -> Vec<Ix> {
        match &*t.state.borrow() {
            State::Pending(d) => d.shape.clone(),
            State::Ready(v) => self.graph.values[*v].shape.clone(),
        }
    }
    pub fn rank(&self, t: &Tensor) -> usize {
        self.shape(t).len()
    }
    /// A new input of the graph.
    pub fn input(&mut self, elem: Elem, shape: Vec<Ix>, role: Role, fill: Fill) -> Res<Tensor> {
        self.check_size(elem, &shape)?;
        Ok(TensorCell::new(State::Pending(Declared { name: None, elem, shape, role, fill, constant: false })))
    }
    pub fn tensor(&self, v: ValueId) -> Tensor {
        TensorCell::new(State::Ready(v))
    }

    /// Refuses tensors whose size is absurd, before anything multiplies their extents.
    pub fn check_size(&mut self, elem: Elem, shape: &[Ix]) -> Res<()> {
        let facts = self.graph.facts();
        let mut bytes = i128::from(elem.dtype.bytes());
        for d in shape {
            let range = facts.range(d);
            if range.lo < 0 {
                let text = self.shape_text(shape);
                return self.fail(format!("an extent of {text} may be negative"));
            }
            if d.as_const().is_some_and(|d| d > 0) {
                bytes = bytes.saturating_mul(range.lo);
            }
        }
        if bytes > LARGEST && !shape.iter().any(|d| d.is_const(0)) {
            let text = self.shape_text(shape);
            return self.fail(format!("a tensor of shape {text} is larger than any memory"));
        }
        match self.graph.unfit(elem, shape) {
            Some(why) => self.fail(why),
            None => Ok(()),
        }
    }
    pub fn shape_text(&self, shape: &[Ix]) -> String {
        let parts: Vec<String> = shape.iter().map(|d| self.graph.ix_text(d)).collect();
        format!("[{}]", parts.join(", "))
    }
    pub fn facts(&self) -> Facts {
        self.graph.facts()
    }
    pub fn simplify(&self, ix: &Ix) -> Ix {
        simplify(ix, &self.graph.facts())
    }

    fn place(&self) -> Option<Location> {
        let before = self.text.get(..self.span.start as usize)?;
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() as u32 + 1;
        Some(Location { file: self.file.clone(), line, column })
    }

    pub fn origin(&mut self, op: &str) -> OriginId {
        let name = self.modules.last().map(|m| m.path().0).unwrap_or_default();
        let place = self.place();
        self.graph.add_origin(op, &name, place)
    }

    /// Runs something with a builder; a refusal becomes a diagnostic.
    pub fn build<T>(&mut self, op: &str, f: impl FnOnce(&mut Builder<'_>) -> Result<T, Refusal>) -> Res<T> {
        if self.graph.nodes.len() > NODES {
            return self.fail(format!("the text makes a graph of more than {NODES} operations"));
        }
        let origin = self.origin(op);
        match f(&mut Builder::new(&mut self.graph, origin)) {
            Ok(x) => Ok(x),
            Err(refusal) => {
                let short = op.strip_prefix("aten.").unwrap_or(op);
                let d = bad(self.span, format!("{short}: {}", refusal.message));
                self.problem(d.maybe_help(refusal.help))
            }
        }
    }

    /// Appends an operation of ATen.
    pub fn aten(&mut self, name: &str, args: Vec<Arg>, attrs: Attrs) -> Res<Vec<Tensor>> {
        let results = self.build(name, |b| b.source(name, args, attrs))?;
        let mut out = vec![];
        for r in results {
            let Arg::Value(v) = r else { return self.fail(format!("{name} does not give a tensor")) };
            let (elem, shape) = (self.graph.values[v].elem, self.graph.values[v].shape.clone());
            self.check_size(elem, &shape)?;
            out.push(self.tensor(v));
        }
        Ok(out)
    }
    pub fn aten1(&mut self, name: &str, args: Vec<Arg>, attrs: Attrs) -> Res<Tensor> {
        let mut results = self.aten(name, args, attrs)?;
        if results.is_empty() {
            return self.fail(format!("{name} does not give a tensor"));
        }
        Ok(results.swap_remove(0))
    }

    /// A number as an operand. Its type is weak: it never widens a tensor's.
    pub fn number(&mut self, value: &Value) -> Option<Arg> {
        Some(match value {
            Value::Bool(b) => Arg::Scalar { elem: Elem::BOOL, bits: (*b).into() },
            Value::Int(i) => ir::int_scalar(Elem::I64, *i),
            Value::Float(x) => ir::scalar(Elem::F64, *x),
            Value::Extent(ix) => {
                let ix = ix.clone();
                self.build("aten.sym_size", |b| Ok(b.index(ix, Elem::I64, vec![]))).ok()?
            }
            _ => return None,
        })
    }
    /// A number as a tensor of rank 0, in the type PyTorch gives it.
    pub fn number_tensor(&mut self, value: &Value) -> Res<Tensor> {
        let elem = match value {
            Value::Bool(_) => Elem::BOOL,
            Value::Float(_) => Elem::F32,
            _ => Elem::I64,
        };
        let scalar = match value {
            Value::Float(x) => ir::scalar(elem, *x),
            Value::Int(i) => ir::int_scalar(elem, *i),
            Value::Bool(b) => Arg::Scalar { elem, bits: (*b).into() },
            Value::Extent(ix) => {
                let ix = ix.clone();
                let arg = self.build("aten.sym_size", |b| Ok(b.index(ix, Elem::I64, vec![])))?;
                return self.of_arg(arg);
            }
            other => {
                let kind = other.kind();
                return self.fail(format!("{kind} cannot become a tensor"));
            }
        };
        let arg = self.build("aten.scalar_tensor", |b| Ok(b.full(scalar, elem, vec![])))?;
        self.of_arg(arg)
    }
    pub fn of_arg(&mut self, arg: Arg) -> Res<Tensor> {
        match arg {
            Arg::Value(v) => Ok(self.tensor(v)),
            _ => self.fail("expected a tensor, found a number"),
        }
    }

    /// Replaces the content of a tensor (`x += 1`).
    pub fn replace(&mut self, t: &Tensor, new: &Tensor) -> Res<()> {
        if t.shared.get() {
            return self.fail_help(
                "this changes in place a tensor that shares its memory with a view",
                "write `x = x + 1` in place of `x += 1`, or `.clone()` the view first",
            );
        }
        let (from, to) = (self.shape(t), self.shape(new));
        let same = from.len() == to.len() && from.iter().zip(&to).all(|(a, b)| self.simplify(a) == self.simplify(b));
        if !same {
            let (from, to) = (self.shape_text(&from), self.shape_text(&to));
            return self.fail(format!("a tensor of shape {from} cannot hold a result of shape {to}"));
        }
        let (elem, have) = (self.elem(t), self.elem(new));
        let new = if elem == have { new.clone() } else { self.cast(new, elem)? };
        let Arg::Value(v) = self.arg(&new) else { return Err(Stop) };
        *t.state.borrow_mut() = State::Ready(v);
        Ok(())
    }

    pub fn cast(&mut self, t: &Tensor, elem: Elem) -> Res<Tensor> {
        if self.elem(t) == elem {
            return Ok(t.clone());
        }
        let arg = self.arg(t);
        let attrs = Attrs::from([("dtype".into(), crate::graph::Attr::Elem(elem))]);
        self.aten1("aten._to_copy", vec![arg], attrs)
    }

    pub(super) fn binary_op(&mut self, op: Binary, a: &Value, b: &Value) -> Res<Value> {
        self.binary(op, a, b)
    }
    pub(super) fn compare_op(&mut self, op: Compare, a: &Value, b: &Value) -> Res<Value> {
        self.compare(op, a, b)
    }
    pub(super) fn range_length(&self, start: i64, stop: i64, step: i64) -> i64 {
        operators::range_len(start, stop, step)
    }
    /// The smaller or greater of two extents, where one of them is symbolic.
    pub(super) fn extreme_extent(&self, a: &Value, b: &Value, least: bool) -> Option<Value> {
        let ix = |v: &Value| match v {
            Value::Int(i) => Some(Ix::Const(*i)),
            Value::Extent(ix) => Some(ix.clone()),
            _ => None,
        };
        if matches!((a, b), (Value::Int(_), Value::Int(_))) {
            return None;
        }
        let (a, b) = (ix(a)?, ix(b)?);
        let chosen = if least { Ix::min(a, b) } else { Ix::max(a, b) };
        Some(Value::extent(self.simplify(&chosen)))
    }
    /// Runs a statement of the prelude.
    pub(super) fn define(&mut self, stmt: &ast::Stmt) -> Res<()> {
        self.stmt(stmt).map(|_| ())
    }
}

fn join(prefix: &str, part: &str) -> String {
    if prefix == "out" && part.chars().all(|c| c.is_ascii_digit()) {
        format!("out{part}")
    } else if prefix.is_empty() {
        part.into()
    } else {
        format!("{prefix}_{part}")
    }
}

/// The names that a statement defines.
fn defined(stmt: &ast::Stmt, names: &mut Vec<String>) {
    use ast::StmtKind::*;
    let mut of = |e: &ast::Expr| target_names(e, names);
    match &stmt.kind {
        Assign(targets, _) => targets.iter().for_each(of),
        Augmented(target, ..) => of(target),
        Def(f, _) => names.push(f.name.clone()),
        Class { name, .. } => names.push(name.clone()),
        Import(list) => names.extend(
            list.iter().map(|(p, a)| a.clone().unwrap_or_else(|| p.split('.').next().unwrap_or(p).to_string())),
        ),
        From(_, list) => names.extend(list.iter().map(|(n, a)| a.clone().unwrap_or_else(|| n.clone()))),
        For { target, body, .. } => {
            of(target);
            body.iter().for_each(|s| defined(s, names));
        }
        While { body, .. } | With(_, body) => body.iter().for_each(|s| defined(s, names)),
        If(arms, other) => {
            for (_, body) in arms {
                body.iter().for_each(|s| defined(s, names));
            }
            other.iter().for_each(|s| defined(s, names));
        }
        _ => {}
    }
}

fn target_names(e: &ast::Expr, names: &mut Vec<String>) {
    match &e.kind {
        ast::Kind::Name(n) => names.push(n.clone()),
        ast::Kind::Tuple(parts) | ast::Kind::List(parts) => parts.iter().for_each(|p| target_names(p, names)),
        ast::Kind::Starred(inner) => target_names(inner, names),
        _ => {}
    }
}
