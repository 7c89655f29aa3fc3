//! Builds graphs: each function appends primitives and infers their shapes.
//!
//! Decompositions and front ends use it. Broadcasts become explicit maps here, and operands that do not fit are a
//! [`Refusal`], which the caller turns into a diagnostic that names the node.

mod layout;
mod math;
pub mod repeat;

use bytes::Bytes;

use super::assume::{Asked, Question};
use super::ir::{
    self, Arg, Attrs, ConstData, Constant, Coord, Graph, MapSource, Op, OriginId, ReduceOp, ScanOp, ScatterOp,
};
use super::symbolic_floats::{self, Quotient};
use super::symbolic_ints::{self, Followed};
use super::{Elem, ValueId, decompose};
use crate::index::{AxisId, Cmp, Cond, Facts, Ix, Mask, Poly, simplify};
use crate::num::{DType, ScalarOp};

/// Why operands do not fit an operation; one plain sentence.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    pub message: String,
    pub help: Option<String>,
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), help: None }
    }
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }
}

pub type Result<T> = std::result::Result<T, Refusal>;

/// Appends nodes to a graph on behalf of one operation of the model.
pub struct Builder<'g> {
    pub graph: &'g mut Graph,
    pub origin: OriginId,
    facts: Facts,
    asked: Asked,
}

impl<'g> Builder<'g> {
    pub fn new(graph: &'g mut Graph, origin: OriginId) -> Builder<'g> {
        let facts = graph.facts();
        Builder { graph, origin, facts, asked: Asked::default() }
    }

    /// A builder of the same graph for a while; [`Builder::restore`] gives back what it knows.
    pub fn lend(&mut self) -> Builder<'_> {
        let (facts, asked) = self.state();
        Builder { graph: self.graph, origin: self.origin, facts, asked }
    }
    /// Takes its facts about the symbols, and the questions about them.
    pub fn state(&mut self) -> (Facts, Asked) {
        (std::mem::take(&mut self.facts), std::mem::take(&mut self.asked))
    }
    pub fn restore(&mut self, (facts, asked): (Facts, Asked)) {
        (self.facts, self.asked) = (facts, asked);
    }

    pub fn elem(&self, x: Arg) -> Elem {
        match x {
            Arg::Value(v) => self.graph.values[v].elem,
            Arg::Scalar { elem, .. } => elem,
            Arg::Absent => Elem::F32,
        }
    }
    /// Empty for a scalar.
    pub fn shape(&self, x: Arg) -> Vec<Ix> {
        match x {
            Arg::Value(v) => self.graph.values[v].shape.clone(),
            _ => vec![],
        }
    }
    pub fn rank(&self, x: Arg) -> usize {
        match x {
            Arg::Value(v) => self.graph.values[v].shape.len(),
            _ => 0,
        }
    }
    pub fn simplify(&self, ix: &Ix) -> Ix {
        simplify(ix, &self.facts)
    }
    pub fn numel(&self, shape: &[Ix]) -> Ix {
        self.graph.numel(shape)
    }
    /// Returns true if two extents are equal whatever the symbols are. If that depends on the symbols, it becomes a
    /// question.
    pub fn same(&self, a: &Ix, b: &Ix) -> bool {
        if a == b {
            return true;
        }
        let apart = Poly::expanded(&self.simplify(a)).minus(&Poly::expanded(&self.simplify(b)));
        if apart.as_const().is_none() {
            self.asked.add(Question::Holds(Cond::new(a.clone(), Cmp::Eq, b.clone())));
        }
        apart.is_zero()
    }
    /// Returns true if an extent is 1, likewise.
    pub fn is_one(&self, extent: &Ix) -> bool {
        self.same(extent, &Ix::Const(1))
    }
    /// Returns true if a condition holds whatever the symbols are, likewise.
    pub fn holds(&self, lhs: &Ix, cmp: Cmp, rhs: &Ix) -> bool {
        let cond = Cond::new(self.simplify(lhs), cmp, self.simplify(rhs));
        self.asked.decided(cond, &self.facts, Question::Holds) == Some(true)
    }
    /// The number that an extent equals, likewise.
    pub fn number(&self, extent: &Ix) -> Option<i64> {
        let known = extent.as_const();
        if known.is_none() {
            self.asked.add(Question::Which(extent.clone()));
        }
        known
    }
    /// Takes the questions about symbols that had no answer; they are not kept.
    pub fn take_asked(&mut self) -> Vec<Question> {
        self.asked.take()
    }
    pub fn same_shape(&self, a: &[Ix], b: &[Ix]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
    }
    /// Refuses a tensor of another shape than `shape`: operations whose operands may not be broadcast begin with it.
    pub fn expect_shape(&self, what: &str, x: Arg, shape: &[Ix]) -> Result<()> {
        let given = self.shape(x);
        if self.same_shape(&given, shape) {
            return Ok(());
        }
        Err(Refusal::new(format!("{what} has shape {}, not {}", self.shape_text(&given), self.shape_text(shape))))
    }
    /// `[s0, 2048]`, for messages.
    pub fn shape_text(&self, shape: &[Ix]) -> String {
        let parts: Vec<String> = shape.iter().map(|d| self.graph.ix_text(d)).collect();
        format!("[{}]", parts.join(", "))
    }

    /// Asks for the memory of a list that a rule makes element by element, before it does: `count` elements of `bytes`
    /// bytes each.
    pub fn list(&mut self, count: u64, bytes: u64) -> Result<()> {
        self.graph.listing.0.take(count.checked_mul(bytes)).map_err(|much| Refusal::new(much.to_string()))
    }

    /// The same for tensors that a rule makes one by one, `count` of them.
    pub fn list_tensors(&mut self, count: i64) -> Result<()> {
        // A node, its result, and its index expressions.
        self.list(count.max(0) as u64, 4 << 10)
    }

    /// The integers a value is known to hold, in row-major order.
    pub fn ints(&self, x: Arg) -> Option<Vec<Ix>> {
        match x {
            Arg::Value(v) => self.graph.values[v].ints.clone(),
            Arg::Scalar { elem, bits } if elem.dtype.is_int() => Some(vec![Ix::Const(int_of(elem, bits))]),
            _ => None,
        }
    }
    /// The floats that a value is known to hold as quotients of integers.
    pub fn quotients(&self, x: Arg) -> Option<Vec<Quotient>> {
        if let Arg::Value(v) = x { self.graph.values[v].quotients.clone() } else { None }
    }
    /// The numbers of a constant that is part of the model (not a parameter), as f64.
    pub fn floats(&self, x: Arg) -> Option<Vec<f64>> {
        match x {
            Arg::Scalar { elem, bits } => Some(vec![number_of(elem, bits)]),
            Arg::Value(v) => {
                if let Some(ints) = &self.graph.values[v].ints {
                    return ints.iter().map(|i| i.as_const().map(|c| c as f64)).collect();
                }
                let (node, _) = self.graph.def(v)?;
                match (&node.op, &node.args[..]) {
                    (Op::Constant(c), _) => {
                        let c = &self.graph.constants[*c];
                        let bits = constant_bits(c)?;
                        Some(bits.into_iter().map(|b| number_of(c.elem, b)).collect())
                    }
                    // A constant in another shape or type, as attributes often are.
                    (Op::IndexMap(m), [arg]) if m.len() == 1 => {
                        let inner = self.floats(*arg)?;
                        let count = self.numel(&self.graph.values[v].shape).as_const()?;
                        (inner.len() as i64 == count || inner.len() == 1).then_some(inner)
                    }
                    (Op::Elementwise(ScalarOp::Copy | ScalarOp::FToF { .. }), [arg]) => self.floats(*arg),
                    _ => None,
                }
            }
            Arg::Absent => None,
        }
    }

    /// Gives the value a name for printing.
    pub fn name(&mut self, x: Arg, name: &str) -> Arg {
        if let Arg::Value(v) = x
            && matches!(self.graph.values[v].def, ir::Def::Node(..))
        {
            self.graph.values[v].name = name.into();
        }
        x
    }

    /// Appends one node with one result.
    pub fn node(&mut self, name: &str, op: Op, args: Vec<Arg>, elem: Elem, shape: Vec<Ix>) -> ValueId {
        let shape: Vec<Ix> = shape.iter().map(|d| self.simplify(d)).collect();
        let id = self.graph.add_node(op, args, vec![(name.into(), elem, shape)], self.origin);
        let v = self.graph.nodes[id].results[0];
        if let Some(Followed { ints, guards }) = symbolic_ints::ints(self.graph, id, &self.facts, &self.asked) {
            self.graph.values[v].ints = Some(ints);
            self.guard(guards);
        }
        self.graph.values[v].quotients = symbolic_floats::quotients(self.graph, id, &self.facts, &self.asked);
        v
    }

    /// A constant of the model, from its bytes.
    pub fn constant(&mut self, name: &str, elem: Elem, shape: &[u64], bytes: Bytes) -> Arg {
        self.constant_of(Constant { name: name.into(), elem, shape: shape.to_vec(), data: ConstData::Bytes(bytes) })
    }
    pub fn constant_of(&mut self, constant: Constant) -> Arg {
        let (name, elem) = (constant.name.clone(), constant.elem);
        let shape = constant.shape.iter().map(|&d| Ix::Const(d as i64)).collect();
        let id = self.graph.constants.push(constant);
        self.node(&name, Op::Constant(id), vec![], elem, shape).into()
    }
    /// A constant of integers.
    pub fn int_constant(&mut self, elem: Elem, shape: &[u64], values: &[i64]) -> Arg {
        let width = elem.dtype.bytes() as usize;
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect();
        self.constant("const", elem, shape, Bytes::from(bytes))
    }
    /// A scalar of the same type as `like`.
    pub fn scalar_like(&self, like: Arg, x: f64) -> Arg {
        ir::scalar(self.elem(like), x)
    }

    /// The tensor whose elements are an integer expression over the axes.
    pub fn index(&mut self, ix: Ix, elem: Elem, shape: Vec<Ix>) -> Arg {
        self.node("index", Op::Index(ix), vec![], elem, shape).into()
    }
    /// Compile-time integers (perhaps symbolic) as a tensor of rank 1.
    pub fn known_ints(&mut self, elem: Elem, values: &[Ix]) -> Arg {
        // Constants as constants; anything else as one map of scalars would be no smaller.
        if let Some(known) = values.iter().map(Ix::as_const).collect::<Option<Vec<i64>>>() {
            return self.int_constant(elem, &[known.len() as u64], &known);
        }
        let parts: Vec<Arg> = values.iter().map(|v| self.index(v.clone(), elem, vec![Ix::Const(1)])).collect();
        self.concat(&parts, 0).unwrap_or(Arg::Absent)
    }

    /// The common shape of operands under broadcasting (extents 1 stretch, missing leading ones are added).
    pub fn broadcast_shape(&self, shapes: &[Vec<Ix>]) -> Result<Vec<Ix>> {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = vec![Ix::Const(1); rank];
        for shape in shapes {
            for (have, d) in out.iter_mut().skip(rank - shape.len()).zip(shape) {
                if have.is_const(1) {
                    *have = d.clone();
                } else if d.is_const(1) || self.same(have, d) || self.is_one(d) {
                } else if self.is_one(have) {
                    *have = d.clone();
                } else {
                    let texts: Vec<String> = shapes.iter().map(|s| self.shape_text(s)).collect();
                    return Err(Refusal::new(format!("the shapes {} do not broadcast", texts.join(" and "))));
                }
            }
        }
        Ok(out)
    }

    /// Narrows symbols if extents fit only then: `n` meets `min(n, 64)`, the first `n` rows of a table of 64 positions.
    /// The run refuses a greater `n`.
    fn settle(&mut self, shapes: &[Vec<Ix>]) {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        for d in 1..=rank {
            let at: Vec<&Ix> = shapes.iter().filter_map(|s| s.len().checked_sub(d).and_then(|i| s.get(i))).collect();
            for (a, b) in at.iter().zip(at.iter().skip(1)) {
                for (whole, part) in [(a, b), (b, a)] {
                    let Ix::Val { val, .. } = whole else { continue };
                    let Ix::Min(x, y) = self.simplify(part) else { continue };
                    let limit = match (*x, *y) {
                        (ref x, Ix::Const(c)) if x == *whole => c,
                        (Ix::Const(c), ref y) if y == *whole => c,
                        _ => continue,
                    };
                    self.at_most(ir::SymId(val.0), limit);
                }
            }
        }
    }

    fn at_most(&mut self, id: ir::SymId, limit: i64) {
        if self.graph.symbols.get(id).is_some_and(|s| s.lo <= limit) {
            let hi = &mut self.graph.symbols[id].hi;
            *hi = Some(hi.map_or(limit, |hi| hi.min(limit)));
        }
        self.facts = self.graph.facts();
    }

    fn guard(&mut self, guards: Vec<Cond>) {
        if !guards.is_empty() {
            guards.into_iter().for_each(|cond| self.graph.guard(cond));
            self.facts = self.graph.facts();
        }
    }

    /// Guards the extents that floats are computed from, so that the floats are exact. Returns true if it could: then the
    /// floats of a value are followed.
    pub fn fit_floats(&mut self, x: Arg) -> bool {
        let guards = self.quotients(x).and_then(|all| symbolic_floats::exact_integers(&all, self.elem(x), &self.facts));
        guards.map(|guards| self.guard(guards)).is_some()
    }

    /// The value with a shape it broadcasts to.
    pub fn broadcast_to(&mut self, x: Arg, shape: &[Ix]) -> Result<Arg> {
        let Arg::Value(v) = x else { return Ok(x) };
        let from = self.shape(x);
        if self.same_shape(&from, shape) {
            return Ok(x);
        }
        let lead = shape.len().checked_sub(from.len());
        let stretches = |(a, b): (&Ix, &Ix)| a.is_const(1) || self.same(a, b) || self.is_one(a);
        let fits = lead.is_some_and(|lead| from.iter().zip(&shape[lead..]).all(stretches));
        let Some(lead) = lead.filter(|_| fits) else {
            return Err(Refusal::new(format!(
                "a tensor of shape {} does not broadcast to {}",
                self.shape_text(&from),
                self.shape_text(shape)
            )));
        };
        let coords =
            from.iter().enumerate().map(|(d, n)| if n.is_const(1) { Ix::Const(0) } else { ir::axis(lead + d) });
        let name = self.graph.values[v].name.clone();
        let coords = coords.collect();
        Ok(self.map(&name, x, shape.to_vec(), coords))
    }

    /// One source, read everywhere: element at `i` of the result is `x[coords(i)]`.
    pub fn map(&mut self, name: &str, x: Arg, shape: Vec<Ix>, coords: Vec<Ix>) -> Arg {
        self.map_sources(name, vec![x], shape, vec![MapSource { arg: 0, coords, when: Mask::default() }])
    }

    /// The general map. Coordinates and masks are simplified within the result's shape.
    pub fn map_sources(&mut self, name: &str, args: Vec<Arg>, shape: Vec<Ix>, sources: Vec<MapSource>) -> Arg {
        let mut facts = self.facts.clone();
        for (d, extent) in shape.iter().enumerate() {
            facts.set_axis(AxisId(d as u32), &Ix::Const(0), extent);
        }
        let mut kept = vec![];
        for s in sources {
            let Some(when) = facts.simplify_mask(&s.when) else { continue };
            let always = when.is_always();
            kept.push(MapSource { arg: s.arg, coords: s.coords.iter().map(|c| simplify(c, &facts)).collect(), when });
            if always {
                break;
            }
        }
        let elem = args.first().map_or(Elem::F32, |a| self.elem(*a));
        self.node(name, Op::IndexMap(kept), args, elem, shape).into()
    }

    /// Applies a scalar operation; operands broadcast against each other. They must have the type it works on (of
    /// `Select`: a bool, then two of one type).
    pub fn elementwise(&mut self, op: ScalarOp, args: &[Arg]) -> Result<Arg> {
        let from = args.get(op.typed_by()).map_or(Elem::F32, |a| self.elem(*a));
        let dtype = op.result(from.dtype);
        let unsigned = from.unsigned && dtype == from.dtype;
        let text = from.text && dtype == from.dtype;
        self.elementwise_to(op, args, Elem { unsigned, text, ..Elem::of(dtype) })
    }

    /// The same with the sign of the result stated.
    pub fn elementwise_to(&mut self, op: ScalarOp, args: &[Arg], elem: Elem) -> Result<Arg> {
        let types: Vec<Elem> = args.iter().skip(op.typed_by()).map(|a| self.elem(*a)).collect();
        if let Some(other) = types.iter().find(|t| t.dtype != types[0].dtype)
            && !matches!(op, ScalarOp::PowI)
        {
            return Err(Refusal::new(format!("{} and {other} are different element types", types[0])));
        }
        let all: Vec<DType> = args.iter().map(|a| self.elem(*a).dtype).collect();
        if !op.accepts_numbers(&all, elem.dtype) {
            let all: Vec<&str> = all.iter().map(|t| t.name()).collect();
            let name = decompose::short_name(op);
            return Err(Refusal::new(format!("`{name}` is not defined on {} with result {elem}", all.join(", "))));
        }
        if let Some(folded) = scalar_result(op, args, elem) {
            return Ok(folded);
        }
        let shapes: Vec<Vec<Ix>> = args.iter().map(|a| self.shape(*a)).collect();
        self.settle(&shapes);
        let shape = self.broadcast_shape(&shapes)?;
        let args = args.iter().map(|a| self.broadcast_to(*a, &shape)).collect::<Result<Vec<Arg>>>()?;
        Ok(self.node(decompose::short_name(op), Op::Elementwise(op), args, elem, shape).into())
    }

    /// Folds axes; they stay with extent 1 when `keep`. Bools add as `or` and multiply as `and`.
    pub fn reduce(&mut self, op: ReduceOp, x: Arg, axes: &[usize], keep: bool) -> Result<Arg> {
        let op = match op {
            ReduceOp::Sum if self.elem(x).is_bool() => ReduceOp::Or,
            ReduceOp::Prod if self.elem(x).is_bool() => ReduceOp::And,
            other => other,
        };
        let elem = match op {
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => Elem::I64,
            _ => self.elem(x),
        };
        self.reduce_args(op, vec![x], elem, axes, keep)
    }

    /// The sum of products of two operands of one shape (after broadcasting) over axes.
    pub fn dot(&mut self, a: Arg, b: Arg, elem: Elem, axes: &[usize], keep: bool) -> Result<Arg> {
        if elem.is_bool() {
            return Err(Refusal::new("a product of bools is not supported").help("convert to integers first"));
        }
        let (x, y) = (self.elem(a), self.elem(b));
        if x.dtype != y.dtype {
            return Err(Refusal::new(format!("{x} and {y} are different element types")));
        }
        let shape = self.broadcast_shape(&[self.shape(a), self.shape(b)])?;
        let (a, b) = (self.broadcast_to(a, &shape)?, self.broadcast_to(b, &shape)?);
        self.reduce_args(ReduceOp::Dot, vec![a, b], elem, axes, keep)
    }

    fn reduce_args(&mut self, op: ReduceOp, args: Vec<Arg>, elem: Elem, axes: &[usize], keep: bool) -> Result<Arg> {
        let shape = self.shape(args[0]);
        self.check_computes(args[0])?;
        let mut axes: Vec<usize> = axes.to_vec();
        axes.sort_unstable();
        if let Some(pair) = axes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Refusal::new(format!("axis {} is given twice", pair[0])));
        }
        if let Some(bad) = axes.iter().find(|a| **a >= shape.len()) {
            return Err(Refusal::new(format!("axis {bad} is out of range for a tensor of rank {}", shape.len())));
        }
        let mut kept = shape.clone();
        for &a in &axes {
            kept[a] = Ix::Const(1);
        }
        let list = axes.iter().map(|a| *a as u32).collect();
        let name = decompose::reduce_name(op);
        let mut v: Arg = self.node(name, Op::Reduce { op, axes: list }, args, elem, kept.clone()).into();
        if matches!(op, ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. }) {
            v = self.existing(v, &shape, &axes, kept)?;
        }
        if keep { Ok(v) } else { self.squeeze(v, &axes) }
    }

    /// The position of an extremum, which axes without elements do not have: such axes are refused if they are known,
    /// and otherwise an error of the run, by a read at that position.
    fn existing(&mut self, position: Arg, from: &[Ix], axes: &[usize], shape: Vec<Ix>) -> Result<Arg> {
        let along: Vec<Ix> = axes.iter().filter_map(|a| from.get(*a)).cloned().collect();
        let n = self.numel(&along);
        if n.is_const(0) {
            let from = self.shape_text(from);
            return Err(Refusal::new(format!("{from} has no extremum: an axis has no elements")));
        }
        if self.facts().range(&n).lo > 0 {
            return Ok(position);
        }
        let places = self.index(ir::axis(0), Elem::I64, vec![n]);
        self.gather(places, &[position], vec![Coord::Arg(1)], shape)
    }

    /// `x` at coordinates; see [`Op::Gather`]. `indices` have the result's shape.
    pub fn gather(&mut self, x: Arg, indices: &[Arg], coords: Vec<Coord>, shape: Vec<Ix>) -> Result<Arg> {
        self.check_indexed(x, &coords, indices)?;
        let mut args = vec![x];
        for &i in indices {
            args.push(self.broadcast_to(i, &shape)?);
        }
        let elem = self.elem(x);
        Ok(self.node("gather", Op::Gather(coords), args, elem, shape).into())
    }

    /// See [`Op::Scatter`]; `indices` and the updates have one shape. Bools add as `or` and multiply as `and`.
    pub fn scatter(&mut self, x: Arg, indices: &[Arg], updates: Arg, coords: Vec<Coord>, op: ScatterOp) -> Result<Arg> {
        let shape = self.shape(updates);
        self.check_indexed(x, &coords, indices)?;
        if op != ScatterOp::Set {
            self.check_computes(x)?;
        }
        let op = match op {
            ScatterOp::Add if self.elem(x).is_bool() => ScatterOp::Max,
            ScatterOp::Mul if self.elem(x).is_bool() => ScatterOp::Min,
            other => other,
        };
        let mut args = vec![x];
        for &i in indices {
            args.push(self.broadcast_to(i, &shape)?);
        }
        args.push(updates);
        let (elem, out) = (self.elem(x), self.shape(x));
        Ok(self.node("scatter", Op::Scatter { coords, op }, args, elem, out).into())
    }

    /// Refuses an index that is not an integer. Also refuses an index with elements into an axis without elements, even
    /// if nothing is read there because other axes leave the result empty.
    fn check_indexed(&self, x: Arg, coords: &[Coord], indices: &[Arg]) -> Result<()> {
        if let Some(bad) = indices.iter().map(|i| self.elem(*i)).find(|e| e.is_bool() || !e.dtype.is_int()) {
            return Err(Refusal::new(format!("an index is an integer, not {bad}")).help("convert it to integers first"));
        }
        let from = self.shape(x);
        for (coord, n) in coords.iter().zip(&from) {
            let &Coord::Arg(arg) = coord else { continue };
            let index = (arg as usize).checked_sub(1).and_then(|i| indices.get(i));
            if n.is_const(0) && index.is_some_and(|i| !self.shape(*i).iter().any(|n| n.is_const(0))) {
                let from = self.shape_text(&from);
                return Err(Refusal::new(format!("an index into {from} is out of range: an axis has no elements")));
            }
        }
        Ok(())
    }

    pub fn scan(&mut self, op: ScanOp, x: Arg, axis: usize, exclusive: bool, reverse: bool) -> Result<Arg> {
        let (elem, shape) = (self.elem(x), self.shape(x));
        self.check_axis(axis, &shape)?;
        self.check_computes(x)?;
        let op = match op {
            ScanOp::Sum if elem.is_bool() => ScanOp::Max,
            ScanOp::Prod if elem.is_bool() => ScanOp::Min,
            other => other,
        };
        Ok(self.node("scan", Op::Scan { op, axis: axis as u32, exclusive, reverse }, vec![x], elem, shape).into())
    }

    /// The sorted elements, and the position that each came from (i64).
    pub fn sort(&mut self, x: Arg, axis: usize, descending: bool) -> Result<(Arg, Arg)> {
        let n = self.shape(x).get(axis).cloned().unwrap_or(Ix::Const(1));
        self.sorted(x, axis, descending, n, None)
    }

    /// The first `k` sorted elements, at most the number of elements.
    pub fn sort_first(&mut self, x: Arg, axis: usize, descending: bool, k: Ix) -> Result<(Arg, Arg)> {
        let n = self.shape(x).get(axis).and_then(Ix::as_const);
        if k.as_const().is_some_and(|k| n.is_some_and(|n| (0..=n).contains(&k))) {
            return self.sorted(x, axis, descending, k, None);
        }
        let (sorted, order) = self.sort(x, axis, descending)?;
        let sorted = self.slice(sorted, axis, Ix::Const(0), 1, k.clone())?;
        Ok((sorted, self.slice(order, axis, Ix::Const(0), 1, k)?))
    }

    /// The first `k` elements of two runs of `run` elements, each in order.
    pub fn merge(&mut self, x: Arg, axis: usize, descending: bool, k: Ix, run: u32) -> Result<(Arg, Arg)> {
        self.sorted(x, axis, descending, k, Some(run))
    }

    fn sorted(&mut self, x: Arg, axis: usize, descending: bool, k: Ix, runs: Option<u32>) -> Result<(Arg, Arg)> {
        let (elem, mut shape) = (self.elem(x), self.shape(x));
        self.check_axis(axis, &shape)?;
        self.check_computes(x)?;
        shape[axis] = k;
        let results = vec![("sorted".into(), elem, shape.clone()), ("order".into(), Elem::I64, shape)];
        let op = Op::Sort { axis: axis as u32, descending, runs };
        let node = self.graph.add_node(op, vec![x], results, self.origin);
        let results = &self.graph.nodes[node].results;
        Ok((results[0].into(), results[1].into()))
    }

    fn check_computes(&self, x: Arg) -> Result<()> {
        let elem = self.elem(x);
        if ir::computes(elem.dtype) {
            return Ok(());
        }
        Err(Refusal::new(format!("{elem} cannot be computed with")).help("convert to a wider float first"))
    }

    fn check_axis(&self, axis: usize, shape: &[Ix]) -> Result<()> {
        if axis < shape.len() {
            return Ok(());
        }
        Err(Refusal::new(format!("axis {axis} is out of range for a tensor of rank {}", shape.len())))
    }

    /// Appends a source operation; its results' types come from its decomposition. Torch IR only.
    pub fn source(&mut self, name: &str, args: Vec<Arg>, attrs: Attrs) -> Result<Vec<Arg>> {
        decompose::append(self.graph, self.origin, name, args, attrs, &self.asked)
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }
    pub fn dtype(&self, x: Arg) -> DType {
        self.elem(x).dtype
    }
}

/// The result of an operation whose operands are all scalars.
fn scalar_result(op: ScalarOp, args: &[Arg], elem: Elem) -> Option<Arg> {
    let one = |a: &Arg| match a {
        Arg::Scalar { elem, bits } => Some((elem.dtype, *bits)),
        _ => None,
    };
    let operands = args.iter().map(one).collect::<Option<Vec<_>>>()?;
    let &(dtype, _) = operands.get(op.typed_by())?;
    if !ir::computes(dtype) || operands.len() != op.arity() {
        return None;
    }
    let bits: Vec<u64> = operands.iter().map(|o| o.1).collect();
    Some(Arg::Scalar { elem, bits: crate::num::eval::apply(op, dtype, &bits) })
}

/// The bits of a constant whose bytes are in the model, element by element.
pub fn constant_bits(c: &Constant) -> Option<Vec<u64>> {
    let ConstData::Bytes(bytes) = &c.data else { return None };
    if c.elem.dtype.bits() == 4 {
        let count = c.shape.iter().product::<u64>() as usize;
        let bits = bytes.iter().flat_map(|b| [u64::from(b & 15), u64::from(b >> 4)]).take(count);
        return Some(bits.collect());
    }
    let width = c.elem.dtype.bytes() as usize;
    let one = |chunk: &[u8]| chunk.iter().rev().fold(0u64, |acc, b| acc << 8 | u64::from(*b));
    Some(bytes.chunks_exact(width).map(one).collect())
}

/// The value of an integer element.
pub fn int_of(elem: Elem, bits: u64) -> i64 {
    if elem.unsigned || elem.is_bool() { bits as i64 } else { crate::num::convert::sign_extend(elem.dtype, bits) }
}

/// The value of an element as f64 (64-bit integers may round).
pub fn number_of(elem: Elem, bits: u64) -> f64 {
    if elem.is_float() {
        crate::num::convert::to_f64(elem.dtype, bits)
    } else if elem.unsigned {
        bits as f64
    } else {
        int_of(elem, bits) as f64
    }
}
