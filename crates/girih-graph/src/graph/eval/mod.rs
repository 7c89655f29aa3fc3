//! Evaluates graphs: the meaning of Torch IR and Tensor IR.
//!
//! In: a graph, a tensor for each of its inputs, and a way to read constants that lie in other files. Out: a tensor for
//! each output. Torch IR is decomposed first.
//!
//! Everything follows the definitions in `graph/ir.rs`, with `num::eval` for scalars: a result has the bits that the
//! plain definition gives, whatever short cut computes it. Maps that are affine are strided views and cost nothing;
//! sums of products run in packed panels ([`dot`]).
//!
//! With [`Options::widen`] every float is an f64: the reference that rounding is measured against (see [`bound`]).
//!
//! Invariants: no input makes it panic; its memory stays within [`Options::budget`], and is requested before it is
//! allocated.

mod bound;
mod dot;
mod elementwise;
mod map;
mod moves;
mod order;
mod reduce;
mod tensor;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;

use super::Elem;
use super::bind;
use super::decompose;
use super::ir::{Arg, ConstData, Constant, Coord, Def, Graph, Node, NodeId, Op, Repeat, ValueId};
use crate::base::id::Id;
use crate::base::{Budget, Code, Diagnostic, TooMuch};
use crate::num::{DType, ScalarOp, Ty, convert};

pub use bound::{Bound, bound};
pub use map::affine;
use tensor::View;
pub use tensor::bytes_of;
pub use tensor::{Data, Tensor};

/// Reads the bytes of a constant that is not in the graph; a sentence says why it cannot.
pub type External<'a> = dyn Fn(&Constant) -> Result<Bytes, String> + 'a;

/// An [`External`] for graphs that hold all their constants.
pub fn no_files(c: &Constant) -> Result<Bytes, String> {
    Err(format!("the elements of `{}` are in a file that is not available", c.name))
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Every float is an f64, results included.
    pub widen: bool,
    /// The bytes that values may hold at one time, and the elements that may be computed and folded, all nodes together.
    pub budget: Budget,
    /// The values of given symbols, as [`bind::bind_symbols`] takes them.
    pub symbols: Vec<Option<i64>>,
    /// Asked before every node, in each round of a loop too; true ends the evaluation.
    pub stop: Option<fn() -> bool>,
}

#[derive(Clone, Debug)]
pub enum EvalError {
    /// The inputs do not fit the graph, or an operation is not known.
    Refused(Vec<Diagnostic>),
    /// A value needs more than the budget.
    TooMuch { value: String, why: TooMuch },
    /// [`Options::stop`] returned true.
    Stopped,
    /// A node has no result: an index outside its dimension, a broken graph.
    Node { node: NodeId, value: String, message: String },
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Refused(list) => {
                let all: Vec<&str> = list.iter().map(|d| &d.message[..]).collect();
                f.write_str(&all.join("; "))
            }
            EvalError::TooMuch { value, why } => write!(f, "`{value}`: {why}"),
            EvalError::Stopped => f.write_str("stopped"),
            EvalError::Node { value, message, .. } => write!(f, "`{value}`: {message}"),
        }
    }
}

impl std::error::Error for EvalError {}

/// The outputs for the inputs, in the order of `graph.inputs` (parameters included).
///
/// # Errors
/// See [`EvalError`]. Inputs that do not fit are `E0806`, operations without a rule `E0802` or `E0803`.
pub fn evaluate(
    graph: &Graph,
    inputs: &[Tensor],
    external: &External<'_>,
    options: &Options,
) -> Result<Vec<Tensor>, EvalError> {
    let lowered;
    let graph = if graph.has_source() {
        let refuse =
            |f: decompose::Failure| Diagnostic::error(Code::ModelShape, format!("{}: {}", f.op, f.refusal.message));
        lowered = decompose::decompose(graph, &mut |_| {})
            .map_err(|all| EvalError::Refused(all.into_iter().map(refuse).collect()))?;
        &lowered
    } else {
        graph
    };
    let shapes: Vec<Vec<u64>> = inputs.iter().map(|t| t.shape.clone()).collect();
    let symbols = bind::bind_symbols(graph, &shapes, &options.symbols).map_err(|d| EvalError::Refused(vec![d]))?;
    let mut machine = Machine {
        graph,
        symbols,
        external,
        widen: options.widen,
        values: vec![None; graph.values.len()],
        budget: options.budget.clone(),
        stop: options.stop,
        ended: None,
    };
    for (input, t) in graph.inputs.iter().zip(inputs) {
        machine.input(input.value, t).map_err(|d| EvalError::Refused(vec![d]))?;
    }
    machine.nodes(&last_uses(graph))?;
    graph.outputs.iter().map(|o| machine.output(o.value)).collect()
}

/// The node that uses each value last; `None` for outputs and unused values.
fn last_uses(graph: &Graph) -> Vec<Option<NodeId>> {
    let mut last = vec![None; graph.values.len()];
    for (id, node) in graph.nodes.iter() {
        for v in node.values() {
            if let Some(slot) = last.get_mut(v.index()) {
                *slot = Some(id);
            }
        }
    }
    for o in &graph.outputs {
        if let Some(slot) = last.get_mut(o.value.index()) {
            *slot = None;
        }
    }
    last
}

struct Machine<'g> {
    graph: &'g Graph,
    symbols: Vec<i64>,
    external: &'g External<'g>,
    widen: bool,
    values: Vec<Option<View>>,
    budget: Budget,
    stop: Option<fn() -> bool>,
    /// The reason why the evaluation ended, if no node was at fault.
    ended: Option<Ended>,
}

#[derive(Clone, Copy)]
enum Ended {
    TooMuch(TooMuch),
    Stopped,
}

fn size(t: usize) -> u64 {
    // Each element counts as eight bytes, the size of bits and of f64.
    (t as u64).saturating_mul(8)
}

impl Machine<'_> {
    fn elem(&self, e: Elem) -> Elem {
        if self.widen && e.is_float() { Elem::F64 } else { e }
    }

    fn shape(&self, v: ValueId) -> Result<Vec<usize>, String> {
        let value = self.graph.values.get(v).ok_or("there is no such value")?;
        let extent = |d| bind::eval_extent(d, &self.symbols).map(|n| n as usize);
        let shape = value.shape.iter().map(extent).collect::<Option<Vec<usize>>>();
        let shape = shape.ok_or("an extent is negative, or longer than 2^40")?;
        let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).filter(|n| *n as u64 <= 1 << 60);
        count.map(|_| shape).ok_or_else(|| "it has more elements than any memory".into())
    }

    /// Requests memory for the elements of a result, and the same amount again while the result is computed.
    fn take(&mut self, elements: usize) -> Result<(), String> {
        let bytes = size(elements);
        self.lend(bytes.checked_mul(2), bytes)?;
        self.spend(elements as u64)
    }

    /// Asks for memory and gives `back` bytes of it back at once.
    fn lend(&mut self, bytes: Option<u64>, back: u64) -> Result<(), String> {
        self.budget.take(bytes).map_err(|why| self.noted(why))?;
        self.budget.give(back);
        Ok(())
    }

    fn spend(&mut self, elements: u64) -> Result<(), String> {
        self.budget.spend(elements).map_err(|why| self.noted(why))
    }

    fn noted(&mut self, why: TooMuch) -> String {
        self.ended = Some(Ended::TooMuch(why));
        why.to_string()
    }

    /// Ends the evaluation if the caller wants that.
    fn look_up(&mut self) -> Result<(), String> {
        if !self.stop.is_some_and(|stop| stop()) {
            return Ok(());
        }
        self.ended = Some(Ended::Stopped);
        Err("stopped".into())
    }

    /// The error of a failure: the budget's, the caller's wish, or the node's own.
    fn error(&self, node: NodeId, value: &str, message: String) -> EvalError {
        match self.ended {
            Some(Ended::TooMuch(why)) => EvalError::TooMuch { value: value.into(), why },
            Some(Ended::Stopped) => EvalError::Stopped,
            None => EvalError::Node { node, value: value.into(), message },
        }
    }

    fn free(&mut self, v: ValueId) {
        if let Some(view) = self.values.get_mut(v.index()).and_then(Option::take)
            && view.data.is_alone()
        {
            self.budget.give(size(view.data.len()));
        }
    }

    /// Inputs belong to the caller; the memory of a wider copy counts.
    fn input(&mut self, v: ValueId, t: &Tensor) -> Result<(), Diagnostic> {
        let Some(value) = self.graph.values.get(v) else { return Ok(()) };
        if value.elem != t.elem {
            let message = format!("input `{}` is {}, not {}", value.name, t.elem, value.elem);
            return Err(Diagnostic::error(Code::ModelInput, message));
        }
        if self.widen && t.elem.is_float() {
            let much = |why| Diagnostic::error(Code::ModelInput, format!("input `{}`: {why}", value.name));
            self.budget.take(Some(size(t.len()))).map_err(much)?;
        }
        let t = if self.widen { t.widened() } else { t.clone() };
        let shape = t.shape.iter().map(|d| *d as usize).collect();
        self.set(v, View::whole(t.elem, shape, t.data().clone()));
        Ok(())
    }

    fn set(&mut self, v: ValueId, view: View) {
        if let Some(slot) = self.values.get_mut(v.index()) {
            *slot = Some(view);
        }
    }

    fn output(&mut self, v: ValueId) -> Result<Tensor, EvalError> {
        let view = self.values.get(v.index()).cloned().flatten().ok_or_else(|| {
            EvalError::Refused(vec![Diagnostic::error(Code::BadGraph, "an output of the graph is not computed")])
        })?;
        if !view.is_whole()
            && let Some(value) = self.graph.values.get(v)
            && let Def::Node(node, _) = value.def
        {
            let name = value.name.clone();
            self.take(view.len()).map_err(|message| self.error(node, &name, message))?;
        }
        let shape = view.shape.iter().map(|d| *d as u64).collect();
        Ok(Tensor::of(view.elem, shape, whole(&view)))
    }

    /// The operands, scalars as views of the shape.
    fn args(&self, node: &Node, shape: &[usize]) -> Result<Vec<View>, String> {
        let one = |a: &Arg| match *a {
            Arg::Value(v) => self.values.get(v.index()).cloned().flatten().ok_or("an operand is not computed".into()),
            Arg::Scalar { elem, bits } => {
                let to = self.elem(elem);
                let bits = if to == elem { bits } else { convert::to_f64(elem.dtype, bits).to_bits() };
                Ok(View::scalar(to, bits, shape))
            }
            // A map reads only the operands that its sources name; another operand may be gone.
            Arg::Absent if matches!(node.op, Op::IndexMap(_)) => Ok(View::scalar(Elem::BOOL, 0, &[])),
            Arg::Absent => Err("an operand is missing".to_string()),
        };
        node.args.iter().map(one).collect()
    }

    /// Computes every node, and frees values that no later node needs.
    fn nodes(&mut self, last: &[Option<NodeId>]) -> Result<(), EvalError> {
        let graph = self.graph;
        for (id, node) in graph.nodes.iter() {
            let name = node.results.first().and_then(|v| graph.values.get(*v)).map_or("?", |v| &v.name);
            self.look_up().and_then(|()| self.node(node)).map_err(|message| self.error(id, name, message))?;
            for v in node.values() {
                if last.get(v.index()) == Some(&Some(id)) {
                    self.free(v);
                }
            }
        }
        Ok(())
    }

    /// A loop, round by round.
    fn repeat(&mut self, node: &Node, r: &Repeat) -> Result<(), String> {
        let args = self.args(node, &[])?;
        let carried = r.carried as usize;
        let most = bind::eval_extent(&r.rounds, &self.symbols).ok_or("its number of rounds is negative")? as usize;
        if args.len() != r.body.inputs.len() || args.len() < carried + r.rows.len() {
            return Err("it has more or fewer operands than its body has inputs".into());
        }
        if args.iter().skip(carried).take(r.rows.len()).any(|x| x.shape.first() != Some(&most)) {
            return Err("it has more or fewer rows than rounds".into());
        }
        let (mut state, rest) = (args[..carried].to_vec(), &args[carried..]);
        let (rows, read) = rest.split_at(r.rows.len());
        let mut given: Vec<Vec<u64>> = vec![vec![]; r.given.len()];
        for v in node.results.iter().skip(carried) {
            let count = self.shape(*v)?.iter().product();
            self.take(count)?;
        }
        let last = last_uses(&r.body);
        for round in 0..most {
            if r.conditional && state.first().is_none_or(|c| c.data.bits(c.at(&[])) == 0) {
                break;
            }
            // An empty round counts too: a condition that stays true is endless work.
            self.spend(1)?;
            let mut machine = Machine {
                graph: &r.body,
                symbols: self.symbols.clone(),
                external: self.external,
                widen: self.widen,
                values: vec![None; r.body.values.len()],
                budget: self.budget.clone(),
                stop: self.stop,
                ended: None,
            };
            let row = |(x, back): (&View, &bool)| {
                let at = if *back { most - 1 - round } else { round };
                let step = x.strides.first().copied().unwrap_or(0);
                let (strides, shape) = (x.strides[1..].to_vec(), x.shape[1..].to_vec());
                View { offset: x.offset + step * at as i64, strides, shape, ..x.clone() }
            };
            let views = state.iter().cloned().chain(rows.iter().zip(&r.rows).map(row)).chain(read.iter().cloned());
            for (input, view) in r.body.inputs.iter().zip(views) {
                machine.set(input.value, view);
            }
            let done = machine.nodes(&last);
            let held = self.budget.left();
            self.ended = machine.ended;
            done.map_err(|e| format!("in round {round}, {e}"))?;
            let outputs: Vec<Option<View>> =
                r.body.outputs.iter().map(|o| machine.values.get(o.value.index()).cloned().flatten()).collect();
            // The memory of the round is free again; its work stays counted.
            self.budget = machine.budget;
            let more = held.saturating_sub(self.budget.left());
            self.budget.give(more);
            let mut outputs = outputs.into_iter();
            for slot in &mut state {
                *slot = outputs.next().flatten().ok_or("a round does not compute its state")?;
            }
            for to in &mut given {
                let view = outputs.next().flatten().ok_or("a round does not compute a row")?;
                let whole = whole(&view);
                to.extend((0..whole.len()).map(|i| whole.bits(i)));
            }
        }
        for (v, view) in node.results.iter().zip(state) {
            self.set(*v, view);
        }
        for ((v, mut bits), back) in node.results.iter().skip(carried).zip(given).zip(&r.given) {
            let shape = self.shape(*v)?;
            let elem = self.elem(self.graph.values.get(*v).map_or(Elem::F32, |v| v.elem));
            if *back && most > 0 {
                let each = bits.len() / most;
                bits = (0..most).rev().flat_map(|at| bits[at * each..][..each].to_vec()).collect();
            }
            if bits.len() != shape.iter().product::<usize>() {
                return Err("its rounds give more or fewer rows than its result has".into());
            }
            self.set(*v, View::whole(elem, shape, Data::of_bits(elem.dtype, bits)));
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<(), String> {
        if let Op::Repeat(r) = &node.op {
            return self.repeat(node, r);
        }
        let &first = node.results.first().ok_or("it has no result")?;
        let shape = self.shape(first)?;
        let count: usize = shape.iter().product();
        let elem = self.elem(self.graph.values.get(first).map_or(Elem::F32, |v| v.elem));
        let scalar_shape: &[usize] = if matches!(node.op, Op::Elementwise(_)) { &shape } else { &[] };
        let args = self.args(node, scalar_shape)?;
        let data = match &node.op {
            Op::Source { name, .. } => return Err(format!("{name} is not a primitive")),
            Op::Constant(c) => {
                let c = self.graph.constants.get(*c).ok_or("there is no such constant")?;
                self.take(count)?;
                let t = constant(c, self.external)?;
                let t = if self.widen { t.widened() } else { t };
                if t.len() != count {
                    return Err("the constant has another shape".into());
                }
                t.data().clone()
            }
            Op::Elementwise(op) => {
                self.take(count)?;
                self.elementwise(*op, &args, elem, &shape)?
            }
            Op::Index(ix) => {
                self.take(count)?;
                index(ix, &self.symbols, elem, &shape)?
            }
            Op::Reduce { op, axes } => {
                let folded: usize = args.first().map_or(0, View::len);
                self.take(count)?;
                self.spend(folded as u64)?;
                if args.iter().any(|a| Some(&a.shape) != args.first().map(|f| &f.shape)) {
                    return Err("its operands differ in shape".into());
                }
                // Lists of places and packed panels.
                let lists = size(folded / count.max(1)).checked_mul(12);
                self.lend(lists, lists.unwrap_or(0))?;
                reduce::reduce(*op, &args, axes, elem, self.widen)?
            }
            Op::IndexMap(map) => {
                if map.iter().any(|s| node.args.get(s.arg as usize).is_none_or(|a| *a == Arg::Absent)) {
                    return Err("a source is missing".into());
                }
                let sources = map::sources(map, &args, &self.symbols, &shape);
                if let Some(view) = map::as_view(&sources, &shape) {
                    self.set(first, View { elem, ..view });
                    return Ok(());
                }
                self.take(count)?;
                map::copy(elem.dtype, &sources, &shape)?
            }
            Op::Gather(coords) => {
                self.take(count)?;
                same_shapes(coords, &args, &shape)?;
                moves::gather(coords, &args, &self.symbols, &shape, elem)?
            }
            Op::Scatter { coords, op } => {
                self.take(count)?;
                let updates = args.last().ok_or("it has no updates")?;
                self.spend(updates.len() as u64)?;
                same_shapes(coords, &args, &updates.shape)?;
                let base = args.first().ok_or("it has no operand")?;
                let base = moves::all_bits(base);
                moves::scatter(coords, *op, &args, &self.symbols, base)?
            }
            Op::Scan { op, axis, exclusive, reverse } => {
                self.take(count)?;
                let x = args.first().ok_or("it has no operand")?;
                order::scan(*op, x, *axis as usize, *exclusive, *reverse)?
            }
            // Above.
            Op::Repeat(_) => return Ok(()),
            Op::Sort { axis, descending, .. } => {
                self.take(count.saturating_mul(2))?;
                let x = args.first().ok_or("it has no operand")?;
                let k = shape.get(*axis as usize).copied().unwrap_or(0);
                let [sorted, from] = order::sort(x, *axis as usize, *descending, k)?;
                if let Some(&second) = node.results.get(1) {
                    self.set(second, View::whole(Elem::I64, shape.clone(), from));
                }
                sorted
            }
        };
        if data.len() != count {
            return Err("its operands do not give the elements of its shape".into());
        }
        self.set(first, View::whole(elem, shape, data));
        Ok(())
    }

    fn elementwise(&self, op: ScalarOp, args: &[View], elem: Elem, shape: &[usize]) -> Result<Data, String> {
        if args.len() != op.arity() || args.iter().any(|a| a.shape != shape) {
            return Err("it does not have the operands of its operation".into());
        }
        let ty = args.get(op.typed_by()).map_or(elem.dtype, |v| v.elem.dtype);
        let op = if self.widen { widened(op, ty, elem.dtype)? } else { op };
        let fit = |(at, v): (usize, &View)| Ty::Num(v.elem.dtype) == op.operand(at, Ty::Num(ty));
        if !args.iter().enumerate().all(fit) || op.result(ty) != elem.dtype {
            return Err("its operands do not have the types of its operation".into());
        }
        Ok(elementwise::apply(op, ty, elem.dtype, args, shape))
    }
}

fn same_shapes(coords: &[Coord], args: &[View], shape: &[usize]) -> Result<(), String> {
    let fits = |c: &Coord| match c {
        Coord::Arg(a) => args.get(*a as usize).is_some_and(|v| v.shape == shape && v.elem.dtype.is_int()),
        Coord::Ix(_) => true,
    };
    let rank = args.first().map_or(0, |a| a.shape.len());
    if coords.len() == rank && coords.iter().all(fits) { Ok(()) } else { Err("its coordinates do not fit".into()) }
}

/// The operation over f64; `ty` is the widened type of its operands.
fn widened(op: ScalarOp, ty: DType, to: DType) -> Result<ScalarOp, String> {
    use ScalarOp::*;
    let ftz = false;
    Ok(match op {
        _ if ty != DType::F64 && to != DType::F64 => op,
        AddF { rounding, .. } => AddF { rounding, ftz },
        SubF { rounding, .. } => SubF { rounding, ftz },
        MulF { rounding, .. } => MulF { rounding, ftz },
        DivF { rounding, .. } => DivF { rounding, ftz },
        Fma { rounding, .. } => Fma { rounding, ftz },
        Sqrt { rounding, .. } => Sqrt { rounding, ftz },
        Rsqrt { .. } => Rsqrt { ftz },
        Exp2 { .. } => Exp2 { ftz },
        MaxF { nan, .. } => MaxF { nan, ftz },
        MinF { nan, .. } => MinF { nan, ftz },
        FToF { .. } => Copy,
        IToF { sign, .. } => IToF { to: DType::F64, sign },
        Bitcast { .. } => return Err("it looks at the bits of floats, so it cannot be widened".into()),
        _ => op,
    })
}

/// The elements of a view in row-major order.
fn whole(view: &View) -> Data {
    if view.is_whole() {
        return view.data.clone();
    }
    let dtype = view.elem.dtype;
    elementwise::apply(ScalarOp::Copy, dtype, dtype, std::slice::from_ref(view), &view.shape)
}

fn constant(c: &Constant, external: &External<'_>) -> Result<Tensor, String> {
    let bytes = match &c.data {
        ConstData::Bytes(b) => b.clone(),
        ConstData::External { .. } => external(c)?,
    };
    Tensor::from_bytes(c.elem, &c.shape, &bytes).ok_or_else(|| format!("`{}` has too few bytes", c.name))
}

fn index(ix: &crate::index::Ix, symbols: &[i64], elem: Elem, shape: &[usize]) -> Result<Data, String> {
    if !elem.dtype.is_int() {
        return Err("an index must be an integer".into());
    }
    let placed = map::placed(ix, symbols, &map::axis_facts(shape));
    let mask = elem.dtype.mask();
    let mut out = Vec::with_capacity(shape.iter().product());
    map::every_position(shape, &mut |pos| {
        out.push(map::at(&placed, pos) as u64 & mask);
        Ok(())
    })?;
    Ok(Data::of_bits(elem.dtype, out))
}
