//! Checks Torch IR and Tensor IR: the invariants of `graph/ir.rs`, and the types of every primitive anew.
//!
//! In: a graph and the stage it claims to be. Out: every error, each with its node. A coordinate is wrong when it is
//! seen to lie outside; one that cannot be decided passes, and the evaluator finds the error.

use super::build::constant_bits;
use super::eval::{affine, bytes_of};
use super::ir::*;
use super::names::Names;
use super::print::Dialect;
use super::{Elem, decompose};
use crate::base::id::Id;
use crate::base::{Code, Diagnostic};
use crate::index::{AxisId, Facts, Ix, Poly, simplify};
use crate::num::{DType, ScalarOp};

/// A rule that a graph breaks.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// `None` for an error of the graph as a whole, or of an input or output.
    pub node: Option<NodeId>,
    /// One sentence that names the value.
    pub message: String,
}

impl Problem {
    pub fn diagnostic(self) -> Diagnostic {
        Diagnostic::error(Code::BadGraph, self.message)
    }
}

/// Every error of a graph at a stage.
pub fn verify(graph: &Graph, dialect: Dialect) -> Vec<Problem> {
    let mut c = Check::of(graph);
    c.graph(dialect);
    c.found
}

struct Check<'g> {
    graph: &'g Graph,
    names: Names,
    facts: Facts,
    found: Vec<Problem>,
    node: Option<NodeId>,
}

/// The error of one node, if there is one.
type Outcome = Result<(), String>;

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(message()) }
}

impl<'g> Check<'g> {
    fn of(graph: &'g Graph) -> Check<'g> {
        Check { graph, names: Names::of(graph), facts: graph.facts(), found: vec![], node: None }
    }
}

impl Check<'_> {
    fn say(&mut self, message: String) {
        self.found.push(Problem { node: self.node, message });
    }

    fn graph(&mut self, dialect: Dialect) {
        for s in self.graph.symbols.values() {
            if !super::ir::Symbol::is_range(s.lo, s.hi) {
                self.say(format!("the range of symbol {} is empty, or not within -2^40 and 2^40", s.name));
            }
        }
        let symbols = |ix: &Ix| !ix.any_leaf(&mut |l| !matches!(l, Ix::Const(_) | Ix::Val { .. }));
        if !self.graph.guards.iter().all(|cond| symbols(&cond.lhs) && symbols(&cond.rhs)) {
            self.say("a guard of the graph is over more than symbols".into());
        }
        let mut defined = vec![false; self.graph.values.len()];
        for (i, input) in self.graph.inputs.iter().enumerate() {
            match self.graph.values.get(input.value) {
                Some(v) if v.def == Def::Input(i as u32) => defined[input.value.index()] = true,
                _ => self.say(format!("input {i} and its value do not refer to each other")),
            }
            self.value(input.value);
        }
        for (id, node) in self.graph.nodes.iter() {
            self.node = Some(id);
            for v in node.values() {
                if defined.get(v.index()) != Some(&true) {
                    self.say(format!("`{}` is used before it is defined", self.names.value(v)));
                }
            }
            let mut whole = !node.results.is_empty();
            for (r, v) in node.results.iter().enumerate() {
                match self.graph.values.get(*v) {
                    Some(value) if value.def == Def::Node(id, r as u32) => defined[v.index()] = true,
                    _ => whole = false,
                }
                self.value(*v);
            }
            if !whole {
                self.say("a node and its results do not refer to each other".into());
                continue;
            }
            // Nothing more can be said about a node that uses values that do not exist.
            if node.values().all(|v| self.graph.values.get(v).is_some())
                && let Err(message) = self.op(node, dialect)
            {
                let name = node.results.first().map_or(String::new(), |v| self.names.value(*v));
                self.say(format!("`{name}`: {message}"));
            }
        }
        self.node = None;
        let mut seen = std::collections::BTreeSet::new();
        for o in &self.graph.outputs {
            if defined.get(o.value.index()) != Some(&true) {
                self.say(format!("output `{}` is not computed", o.name));
            }
            if !seen.insert(&o.name) {
                self.say(format!("two outputs are named `{}`", o.name));
            }
        }
    }

    /// The extents of a value.
    fn value(&mut self, v: ValueId) {
        let Some(value) = self.graph.values.get(v) else { return };
        for extent in &value.shape {
            let leaves = self.leaves(extent, 0);
            let name = self.names.value(v);
            if let Err(message) = leaves {
                self.say(format!("`{name}`: {message}"));
            } else if self.facts.tight_range(extent).hi < 0 {
                self.say(format!("`{name}`: the extent {} is negative", self.graph.ix_text(extent)));
            }
        }
    }

    /// Checks that an expression mentions only symbols and the axes of a rank.
    fn leaves(&self, ix: &Ix, rank: usize) -> Outcome {
        let mut wrong = None;
        ix.for_each_leaf(&mut |leaf| match leaf {
            Ix::Const(_) => {}
            Ix::Axis(a) if a.index() < rank => {}
            Ix::Val { val, zext: false } if val.index() < self.graph.symbols.len() => {}
            Ix::Axis(a) => wrong = Some(format!("the axis i{} is not defined here", a.0)),
            _ => wrong = Some("an index expression uses something that is neither a symbol nor an axis".into()),
        });
        wrong.map_or(Ok(()), Err)
    }

    fn same(&self, a: &Ix, b: &Ix) -> bool {
        let expanded = |x| Poly::expanded(&simplify(x, &self.facts));
        a == b || expanded(a).minus(&expanded(b)).is_zero()
    }
    fn same_shape(&self, a: &[Ix], b: &[Ix]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
    }
    fn text(&self, shape: &[Ix]) -> String {
        format!("[{}]", shape.iter().map(|d| self.graph.ix_text(d)).collect::<Vec<_>>().join(", "))
    }
    fn result(&self, node: &Node, r: usize) -> Result<&Value, String> {
        node.results.get(r).and_then(|v| self.graph.values.get(*v)).ok_or_else(|| "a result is missing".into())
    }
    fn operand(&self, node: &Node, i: usize) -> Result<&Value, String> {
        match node.args.get(i) {
            Some(Arg::Value(v)) => self.graph.values.get(*v).ok_or_else(|| "an operand is missing".into()),
            _ => Err(format!("operand {} must be a tensor", i + 1)),
        }
    }
    fn elem(&self, a: &Arg) -> Option<Elem> {
        match a {
            Arg::Value(v) => self.graph.values.get(*v).map(|v| v.elem),
            Arg::Scalar { elem, .. } => Some(*elem),
            Arg::Absent => None,
        }
    }
    fn arity(&self, node: &Node, args: usize, results: usize) -> Outcome {
        ensure(node.args.len() == args, || format!("it must have {args} operands, not {}", node.args.len()))?;
        ensure(node.results.len() == results, || format!("it must have {results} results, not {}", node.results.len()))
    }
    fn axis(&self, axis: u32, shape: &[Ix]) -> Outcome {
        ensure((axis as usize) < shape.len(), || {
            format!("axis {axis} is out of range for a tensor of rank {}", shape.len())
        })
    }
    fn has_shape(&self, v: &Value, shape: &[Ix], what: &str) -> Outcome {
        ensure(self.same_shape(&v.shape, shape), || {
            format!("{what} has shape {}, not {}", self.text(&v.shape), self.text(shape))
        })
    }

    fn op(&self, node: &Node, dialect: Dialect) -> Outcome {
        let out = self.result(node, 0)?;
        for a in &node.args {
            if let Arg::Scalar { elem, bits } = a {
                ensure(bits & !elem.dtype.mask() == 0, || "a scalar has more bits than its type".into())?;
            }
        }
        match &node.op {
            Op::Source { name, attrs } => {
                ensure(dialect == Dialect::Torch, || {
                    format!("{name} is not a primitive operation, as Tensor IR needs")
                })?;
                ensure(decompose::rule(name).is_some(), || format!("unknown operation {name}"))?;
                attrs.values().try_for_each(|a| self.attr(a))
            }
            Op::Constant(id) => {
                self.arity(node, 0, 1)?;
                let c = self.graph.constants.get(*id).ok_or("there is no such constant")?;
                let shape: Vec<Ix> = c.shape.iter().map(|d| Ix::Const(*d as i64)).collect();
                ensure(c.elem == out.elem, || format!("it is {}, but the constant is {}", out.elem, c.elem))?;
                self.has_shape(out, &shape, "the result")?;
                let count = c.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
                let want = count.and_then(|n| bytes_of(c.elem, n));
                let have = match &c.data {
                    ConstData::Bytes(b) => b.len() as u64,
                    ConstData::External { len, .. } => *len,
                };
                ensure(want == Some(have), || {
                    format!("the constant holds {have} bytes, which does not match its shape")
                })?;
                let bits = if c.elem.is_bool() { constant_bits(c) } else { None };
                ensure(bits.is_none_or(|b| b.iter().all(|b| *b < 2)), || "a bool is neither 0 nor 1".into())
            }
            Op::Elementwise(op) => self.elementwise(node, *op, out),
            Op::Index(ix) => {
                self.arity(node, 0, 1)?;
                ensure(out.elem.dtype.is_int(), || format!("an index must be an integer, not {}", out.elem))?;
                self.leaves(ix, out.shape.len())
            }
            Op::Reduce { op, axes } => self.reduce(node, *op, axes, out),
            Op::IndexMap(sources) => self.map(node, sources, out),
            Op::Gather(coords) => {
                let from = self.operand(node, 0)?;
                ensure(node.results.len() == 1, || "it must have one result".into())?;
                ensure(from.elem == out.elem, || format!("it is {}, but its operand is {}", out.elem, from.elem))?;
                self.places(node, coords, &from.shape, &out.shape, node.args.len())
            }
            Op::Scatter { coords, op } => {
                ensure(node.args.len() >= 2 && node.results.len() == 1, || "it must have a tensor and updates".into())?;
                let (to, updates) = (self.operand(node, 0)?, self.operand(node, node.args.len() - 1)?);
                let alike = to.elem == out.elem && updates.elem == out.elem;
                ensure(alike, || format!("{}, {} and {} are different types", to.elem, updates.elem, out.elem))?;
                let computed = *op == ScatterOp::Set || computes(out.elem.dtype);
                ensure(computed, || format!("{} cannot be computed with", out.elem))?;
                self.has_shape(out, &to.shape, "the result")?;
                self.places(node, coords, &to.shape, &updates.shape, node.args.len() - 1)
            }
            Op::Scan { axis, .. } => {
                self.arity(node, 1, 1)?;
                let x = self.operand(node, 0)?;
                self.axis(*axis, &x.shape)?;
                ensure(x.elem == out.elem, || format!("it is {}, but its operand is {}", out.elem, x.elem))?;
                ensure(computes(x.elem.dtype), || format!("{} cannot be computed with", x.elem))?;
                self.has_shape(out, &x.shape, "the result")
            }
            Op::Repeat(r) => self.repeat(node, r, dialect),
            Op::Sort { axis, runs, .. } => {
                self.arity(node, 1, 2)?;
                let (x, order) = (self.operand(node, 0)?, self.result(node, 1)?);
                self.axis(*axis, &x.shape)?;
                ensure(x.elem == out.elem, || format!("it is {}, but its operand is {}", out.elem, x.elem))?;
                ensure(computes(x.elem.dtype), || format!("{} cannot be computed with", x.elem))?;
                ensure(order.elem == Elem::I64, || format!("positions must be i64, not {}", order.elem))?;
                let n = x.shape.get(*axis as usize).and_then(Ix::as_const);
                ensure(runs.is_none_or(|r| n == Some(2 * i64::from(r)) && r > 0), || {
                    "it has other than two runs".into()
                })?;
                // The results may have the first ones only.
                let (mut shape, axis) = (x.shape.clone(), *axis as usize);
                if let (Some(k), Some(n)) = (out.shape.get(axis).and_then(Ix::as_const), shape[axis].as_const()) {
                    ensure(k <= n, || format!("it has {k} elements along the axis, and its operand has {n}"))?;
                    shape[axis] = Ix::Const(k);
                }
                self.has_shape(out, &shape, "the result")?;
                self.has_shape(order, &shape, "the second result")
            }
        }
    }

    fn repeat(&self, node: &Node, r: &Repeat, dialect: Dialect) -> Outcome {
        let (body, carried) = (&r.body, r.carried as usize);
        let names = |g: &Graph| g.symbols.values().map(|s| s.name.clone()).collect::<Vec<_>>();
        ensure(names(self.graph).starts_with(&names(body)), || "its body has symbols of its own".into())?;
        self.leaves(&r.rounds, 0)?;
        ensure(self.facts.tight_range(&r.rounds).hi >= 0, || "its number of rounds is negative".into())?;
        self.arity(node, body.inputs.len(), body.outputs.len())?;
        let least = carried + r.rows.len();
        ensure(node.args.len() >= least && node.results.len() == carried + r.given.len(), || {
            "its state and rows are more or fewer than those of its body".into()
        })?;
        ensure(!r.conditional || carried > 0 && r.given.is_empty() && r.rows.is_empty(), || {
            "a loop with a condition has a state and no rows".into()
        })?;
        for (at, input) in body.inputs.iter().enumerate() {
            let (outer, value) = (self.operand(node, at)?, body.values.get(input.value).ok_or("an input is missing")?);
            let what = format!("operand {}", at + 1);
            ensure(outer.elem == value.elem, || format!("{what} is {}, not {}", outer.elem, value.elem))?;
            let is_row = (carried..least).contains(&at);
            let shape = if is_row { outer.shape.get(1..).unwrap_or_default() } else { &outer.shape[..] };
            let fits = !is_row || outer.shape.first().is_some_and(|n| self.same(n, &r.rounds));
            ensure(fits && self.same_shape(shape, &value.shape), || {
                format!("{what} is not of the shape of its input")
            })?;
        }
        for (at, output) in body.outputs.iter().enumerate() {
            let value = body.values.get(output.value).ok_or("an output is missing")?;
            let result = self.result(node, at)?;
            let shape = match at < carried {
                true => value.shape.clone(),
                false => [std::slice::from_ref(&r.rounds), &value.shape[..]].concat(),
            };
            ensure(result.elem == value.elem, || format!("result {} is {}", at + 1, result.elem))?;
            self.has_shape(result, &shape, "a result")?;
            if let Some(before) = node.args.get(at).filter(|_| at < carried) {
                ensure(self.elem(before) == Some(result.elem), || "its state changes its type".into())?;
                self.has_shape(self.operand(node, at)?, &shape, "the state before the first round")?;
            }
        }
        if r.conditional {
            let first = self.result(node, 0)?;
            ensure(first.elem.is_bool() && first.shape.is_empty(), || "its condition must be one bool".into())?;
        }
        let mut inner = Check::of(body);
        inner.graph(dialect);
        inner.found.into_iter().next().map_or(Ok(()), |p| Err(format!("in its body, {}", p.message)))
    }

    fn attr(&self, attr: &Attr) -> Outcome {
        match attr {
            Attr::Int(ix) => self.leaves(ix, 0),
            Attr::List(l) => l.iter().try_for_each(|a| self.attr(a)),
            _ => Ok(()),
        }
    }

    fn elementwise(&self, node: &Node, op: ScalarOp, out: &Value) -> Outcome {
        self.arity(node, op.arity(), 1)?;
        let mut types = vec![];
        for (i, a) in node.args.iter().enumerate() {
            match a {
                Arg::Value(v) => {
                    let v = self.graph.values.get(*v).ok_or("an operand is missing")?;
                    self.has_shape(v, &out.shape, &format!("operand {}", i + 1))?;
                }
                Arg::Scalar { .. } => {}
                Arg::Absent => return Err(format!("operand {} is missing", i + 1)),
            }
            types.push(self.elem(a).map_or(out.elem.dtype, |e| e.dtype));
        }
        ensure(op.accepts_numbers(&types, out.elem.dtype), || {
            let all: Vec<&str> = types.iter().map(|t| t.name()).collect();
            format!("the operation is not defined on {} with result {}", all.join(", "), out.elem)
        })
    }

    fn reduce(&self, node: &Node, op: ReduceOp, axes: &[u32], out: &Value) -> Outcome {
        let x = self.operand(node, 0)?;
        ensure(axes.windows(2).all(|w| w[0] < w[1]), || "the axes must ascend".into())?;
        axes.iter().try_for_each(|a| self.axis(*a, &x.shape))?;
        let kept = x.shape.iter().enumerate();
        let kept: Vec<Ix> =
            kept.map(|(d, n)| if axes.contains(&(d as u32)) { Ix::Const(1) } else { n.clone() }).collect();
        self.has_shape(out, &kept, "the result")?;
        let (from, to) = (x.elem, out.elem);
        ensure(computes(from.dtype), || format!("{from} cannot be computed with"))?;
        let fits = match op {
            ReduceOp::Dot => {
                self.arity(node, 2, 1)?;
                let y = self.operand(node, 1)?;
                self.has_shape(y, &x.shape, "operand 2")?;
                ensure(y.elem.dtype == from.dtype, || format!("{from} and {} are different types", y.elem))?;
                match from.dtype {
                    DType::F16 | DType::BF16 => to.dtype == from.dtype || to.dtype == DType::F32,
                    _ if from.is_float() => to.dtype == from.dtype,
                    _ => to.dtype.is_int(),
                }
            }
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => {
                self.arity(node, 1, 1)?;
                ensure(axes.len() == 1, || "a position must be along one axis".into())?;
                to == Elem::I64
            }
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => {
                self.arity(node, 1, 1)?;
                from.dtype.is_int() && to.dtype == from.dtype
            }
            _ => {
                self.arity(node, 1, 1)?;
                to.dtype == from.dtype
            }
        };
        ensure(fits, || format!("this fold of {from} does not give {to}"))
    }

    fn map(&self, node: &Node, sources: &[MapSource], out: &Value) -> Outcome {
        ensure(node.results.len() == 1, || "it must have one result".into())?;
        let last = sources.last().ok_or("it has no source")?;
        ensure(last.when.is_always(), || "its last source has a condition, so some elements have none".into())?;
        let mut facts = self.facts.clone();
        for (d, extent) in out.shape.iter().enumerate() {
            facts.set_axis(AxisId(d as u32), &Ix::Const(0), extent);
        }
        let rank = out.shape.len();
        for (i, s) in sources.iter().enumerate() {
            ensure(s.when.vals.is_empty(), || "a condition must compare index expressions".into())?;
            for c in &s.when.conds {
                self.leaves(&c.lhs, rank)?;
                self.leaves(&c.rhs, rank)?;
            }
            let a = node.args.get(s.arg as usize).ok_or("a source is not an operand")?;
            let elem = self.elem(a).ok_or("a source is an operand that is left out")?;
            ensure(elem.dtype == out.elem.dtype, || format!("a source is {elem}, but the result is {}", out.elem))?;
            let shape: &[Ix] = match a {
                Arg::Value(v) => self.graph.values.get(*v).map_or(&[], |v| &v.shape),
                _ => &[],
            };
            ensure(s.coords.len() == shape.len(), || {
                format!("{} coordinates are given for a tensor of rank {}", s.coords.len(), shape.len())
            })?;
            for (d, (coord, extent)) in s.coords.iter().zip(shape).enumerate() {
                self.leaves(coord, rank)?;
                let everywhere = i == 0 && s.when.is_always();
                ensure(!self.outside(coord, extent, out, &facts, everywhere), || {
                    let (coord, extent) = (self.graph.ix_text(coord), self.graph.ix_text(extent));
                    format!("the coordinate {coord} lies outside axis {d}, whose extent is {extent}")
                })?;
            }
        }
        Ok(())
    }

    /// Returns true if a coordinate is seen to lie outside: always, or, where it is read at every position, at one of
    /// them.
    fn outside(&self, coord: &Ix, extent: &Ix, out: &Value, facts: &Facts, everywhere: bool) -> bool {
        let sizes: Option<Vec<i64>> = out.shape.iter().map(Ix::as_const).collect();
        if out.shape.iter().any(|d| self.facts.tight_range(d).lo < 1) {
            return false;
        }
        let (range, bound) = (facts.tight_range(coord), facts.tight_range(extent));
        if range.hi < 0 || (range.lo >= bound.hi && everywhere) {
            return everywhere;
        }
        let (Some(sizes), Some(extent), true) = (sizes, extent.as_const(), everywhere) else { return false };
        let Some((coefficients, rest)) = affine(coord, sizes.len()) else { return false };
        let (mut lo, mut hi) = (i128::from(rest), i128::from(rest));
        for (c, n) in coefficients.iter().zip(sizes) {
            let span = i128::from(*c) * (i128::from(n) - 1);
            lo += span.min(0);
            hi += span.max(0);
        }
        lo < 0 || hi >= i128::from(extent)
    }

    /// The coordinates of a gather or scatter; index tensors are the arguments from 1 up to `end`.
    fn places(&self, node: &Node, coords: &[Coord], extents: &[Ix], shape: &[Ix], end: usize) -> Outcome {
        ensure(coords.len() == extents.len(), || {
            format!("{} coordinates are given for a tensor of rank {}", coords.len(), extents.len())
        })?;
        for c in coords {
            match c {
                Coord::Ix(ix) => self.leaves(ix, shape.len())?,
                Coord::Arg(a) => {
                    let a = *a as usize;
                    ensure((1..end).contains(&a), || "a coordinate is not an index tensor".into())?;
                    let v = self.operand(node, a)?;
                    ensure(v.elem.is_int(), || format!("an index must be an integer, not {}", v.elem))?;
                    self.has_shape(v, shape, "an index tensor")?;
                }
            }
        }
        Ok(())
    }
}
