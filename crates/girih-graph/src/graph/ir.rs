//! The data of Torch IR and Tensor IR.
//!
//! A graph is a list of nodes in topological order over values in SSA form. Every value has an element type and a shape
//! whose extents may be symbolic.
//!
//! ```text
//! tensor graph rms_norm(s0 in 1..):                                      (the exact grammar is in graph/print.rs)
//!   x: f32[s0, 2048] = input
//!   w: f32[2048] = parameter
//!   mul: f32[s0, 2048] = mul x, x
//!   sum: f32[s0, 1] = reduce sum mul over 1
//!   ...
//!   w_b: f32[s0, 2048] = map w[i1]
//!   rms_norm: f32[s0, 2048] = mul v, w_b
//!   output rms_norm
//! ```
//!
//! **Index expressions** ([`Ix`]) play two parts. An extent is an expression over symbols: `Ix::Val` with the number of
//! a [`SymId`] (see [`SymId::ix`]). A coordinate is an expression over symbols and `Ix::Axis(AxisId(d))`, the position
//! along dimension `d` of the node's *result* (printed `i0`, `i1`, ...).
//!
//! Invariants:
//! 1. A node's arguments are defined before it. Values, nodes and constants are never removed from their tables; a pass
//!    makes a new graph.
//! 2. Tensor IR holds no [`Op::Source`]. The operands of `Elementwise` have the result's shape (or are scalars):
//!    broadcasts are explicit maps.
//! 3. A coordinate that is read lies inside its tensor, whenever the mask of its source holds.
//! 4. Extents are not negative for any binding of the symbols within their ranges.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::Elem;
use super::symbolic_floats::Quotient;
use crate::base::IdMap;
use crate::base::budget::{Budget, elements};
use crate::base::location::Location;
use crate::index::{AxisId, Cmp, Cond, Ix, Mask, Poly, ValId};
use crate::num::op::{Rounding, Signedness};
use crate::num::{DType, ScalarOp};
use girih_base::id_type;

id_type! {
    /// A tensor of a graph.
    ValueId
}
id_type! {
    /// An operation of a graph.
    NodeId
}
id_type! {
    /// A symbolic extent.
    SymId
}
id_type! {
    /// A constant tensor.
    ConstId
}
id_type! {
    /// An operation of the user's model.
    OriginId
}

impl SymId {
    /// The symbol's value as an index expression.
    pub fn ix(self) -> Ix {
        Ix::Val { val: ValId(self.0), zext: false }
    }
}

/// The position along dimension `d` of a node's result.
pub fn axis(d: usize) -> Ix {
    Ix::Axis(AxisId(d as u32))
}

/// An integer that is known when the model runs: a batch or sequence length, or a number that it computes with.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbol {
    pub name: String,
    /// Least and greatest value; both belong to the range, which lies within [`MAX_EXTENT`] on both sides. Only a symbol
    /// that is not an extent may be negative.
    pub lo: i64,
    pub hi: Option<i64>,
}

impl Symbol {
    /// Returns true if a symbol may have this range.
    pub fn is_range(lo: i64, hi: Option<i64>) -> bool {
        -MAX_EXTENT <= lo && lo <= hi.unwrap_or(MAX_EXTENT) && hi.is_none_or(|hi| hi <= MAX_EXTENT)
    }
    /// Returns true if the symbol may have this value.
    pub fn admits(&self, value: i64) -> bool {
        self.lo <= value && value <= self.hi.unwrap_or(MAX_EXTENT)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// For printing, without `%`; made unique by the printer.
    pub name: String,
    pub elem: Elem,
    pub shape: Vec<Ix>,
    pub def: Def,
    /// The elements in row-major order, where they are integers known at compile time (shape arithmetic); at most
    /// [`MAX_KNOWN`] of them.
    pub ints: Option<Vec<Ix>>,
    /// The same for floats that are computed from such integers.
    pub quotients: Option<Vec<Quotient>>,
}

/// The most elements that [`Value::ints`] follows.
pub const MAX_KNOWN: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Def {
    /// Position in [`Graph::inputs`].
    Input(u32),
    /// The node, and the number of its result.
    Node(NodeId, u32),
}

/// An operand: a tensor, a scalar that is the same for every element, or nothing (an optional operand left out).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arg {
    Value(ValueId),
    Scalar { elem: Elem, bits: u64 },
    Absent,
}

impl From<ValueId> for Arg {
    fn from(v: ValueId) -> Arg {
        Arg::Value(v)
    }
}

/// A compile-time argument of a source operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Attr {
    None,
    Bool(bool),
    /// An integer, possibly symbolic.
    Int(Ix),
    Float(f64),
    Str(String),
    Elem(Elem),
    List(Vec<Attr>),
}

/// Attributes by the names their source gives them: `axis`, `epsilon`, `dim`.
pub type Attrs = BTreeMap<String, Attr>;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// For floats, in ascending order from 0 (a schedule may reassociate).
    Sum,
    Prod,
    /// NaN wins.
    Max,
    Min,
    And,
    Or,
    Xor,
    /// Two operands of one type: the sum of their products, `acc = fma(a, b, acc)` with ascending index from 0. The
    /// result may be f32 where the operands are f16 or bf16; integers multiply and add, wrapping, after conversion to
    /// the result's type.
    Dot,
    /// Position (i64) of the greatest element over one axis; NaN wins; the first of equals, or the last; -1 where there
    /// is no element.
    ArgMax {
        last: bool,
    },
    ArgMin {
        last: bool,
    },
}

impl ReduceOp {
    /// The bits that a fold starts from, which are also the fold of no elements: as in PyTorch, a sum of floats is
    /// never -0.0.
    pub fn identity(self, elem: Elem) -> u64 {
        let d = elem.dtype;
        let greatest = if elem.sign() == Signedness::Signed { d.mask() >> 1 } else { d.mask() };
        let float = |x: f64| crate::num::convert::from_f64(d, x, Rounding::NearestEven);
        match self {
            ReduceOp::Prod if d.is_float() => float(1.0),
            ReduceOp::Max if d.is_float() => float(f64::NEG_INFINITY),
            ReduceOp::Min if d.is_float() => float(f64::INFINITY),
            ReduceOp::Prod => 1,
            ReduceOp::Max => !greatest & d.mask(),
            ReduceOp::Min => greatest,
            // No position.
            ReduceOp::And | ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => d.mask(),
            _ => 0,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScanOp {
    Sum,
    Prod,
    Max,
    Min,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScatterOp {
    Set,
    Add,
    Mul,
    Max,
    Min,
}

impl ScatterOp {
    /// The operation that combines an element with its update; `None` if the update replaces the element.
    pub fn combines(self, elem: Elem) -> Option<ScalarOp> {
        let (rounding, ftz, sign) = (Rounding::NearestEven, false, elem.sign());
        Some(match (self, elem.is_float()) {
            (ScatterOp::Set, _) => return None,
            (ScatterOp::Add, true) => ScalarOp::AddF { rounding, ftz },
            (ScatterOp::Add, false) => ScalarOp::AddI,
            (ScatterOp::Mul, true) => ScalarOp::MulF { rounding, ftz },
            (ScatterOp::Mul, false) => ScalarOp::MulI,
            (ScatterOp::Max, true) => ScalarOp::MaxF { nan: true, ftz },
            (ScatterOp::Max, false) => ScalarOp::MaxI { sign },
            (ScatterOp::Min, true) => ScalarOp::MinF { nan: true, ftz },
            (ScatterOp::Min, false) => ScalarOp::MinI { sign },
        })
    }
}

/// One place an [`Op::IndexMap`] reads from.
#[derive(Clone, PartialEq, Debug)]
pub struct MapSource {
    /// Position in the node's arguments. A scalar argument has no coordinates.
    pub arg: u32,
    /// One expression over the result's axes for each dimension of the argument.
    pub coords: Vec<Ix>,
    /// The positions where this source is read; empty means everywhere. Conditions only (no values).
    pub when: Mask,
}

/// A coordinate of a gather or scatter.
#[derive(Clone, PartialEq, Debug)]
pub enum Coord {
    /// Over the axes of the result (gather) or of the updates (scatter).
    Ix(Ix),
    /// The element, at the same position, of the index tensor that is this argument. An index outside the dimension
    /// (negative ones included) is an error of the run.
    Arg(u32),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// An operation of the model's own set, such as `aten.linear` or `onnx.Softmax`. Torch IR only.
    Source {
        name: String,
        attrs: Attrs,
    },

    Constant(ConstId),
    /// Applied element by element; operands have the result's shape or are scalars. `Select` takes a bool first. The
    /// operation's own type is that of its operands (of `Select`: of the last two).
    Elementwise(ScalarOp),
    /// Each element is the expression's value at its position, wrapped to the element type (an integer). No arguments.
    Index(Ix),
    /// Over `axes` (ascending), which stay in the shape with extent 1.
    Reduce {
        op: ReduceOp,
        axes: Vec<u32>,
    },
    /// Each element is read from the first source whose mask holds; the last one's mask always holds.
    IndexMap(Vec<MapSource>),
    /// `args[0]` at coordinates, one for each of its dimensions; index arguments have the result's shape.
    Gather(Vec<Coord>),
    /// A copy of `args[0]`, then for each element of the updates (the last argument), in row-major order: the element at
    /// the coordinates is replaced by, or combined with, it. Index arguments have the updates' shape.
    Scatter {
        coords: Vec<Coord>,
        op: ScatterOp,
    },
    /// Running fold along an axis; `exclusive` leaves out the element itself, `reverse` runs from the end.
    Scan {
        op: ScanOp,
        axis: u32,
        exclusive: bool,
        reverse: bool,
    },
    /// Two results: the elements in stable order along an axis (NaN last ascending, first descending), and where each
    /// came from (i64). Results that are shorter along the axis have the first elements. With `runs` the operand has
    /// two runs of that many elements along the axis, each in that order already.
    Sort {
        axis: u32,
        descending: bool,
        runs: Option<u32>,
    },
    /// A graph that runs in rounds.
    Repeat(Box<Repeat>),
}

/// A graph that runs in rounds, [`Op::Repeat`], which hand state from one to the next.
///
/// The node's operands, all tensors, are the state before the first round, tensors that give each round one row (along
/// axis 0), and the values that all rounds read; the inputs of `body` are the same, with a row for each tensor of rows.
/// The outputs of `body` are the state after the round and rows; the node's results are the state after the last round
/// and the tensors of those rows. The body knows the symbols of the graph around it and none of its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Repeat {
    pub body: Graph,
    /// The number of rounds, or the most rounds where a condition ends them ([`MAX_EXTENT`]: only the condition does);
    /// over symbols, and never negative.
    pub rounds: Ix,
    /// The first value of the state is a bool without axes: a round begins only while it is true. Such a loop has no
    /// rows.
    pub conditional: bool,
    /// The number of values in the state.
    pub carried: u32,
    /// For each tensor that gives rounds its rows: whether the first round gets the last one.
    pub rows: Vec<bool>,
    /// The same for the tensors of the rows that rounds give.
    pub given: Vec<bool>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub op: Op,
    pub args: Vec<Arg>,
    pub results: Vec<ValueId>,
    pub origin: OriginId,
}

impl Node {
    /// The arguments that are tensors.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.args.iter().filter_map(|a| match a {
            Arg::Value(v) => Some(*v),
            _ => None,
        })
    }

    /// The tensor and the source of a map that reads one tensor everywhere, at axes and numbers.
    pub fn spread(&self) -> Option<(ValueId, &MapSource)> {
        let Op::IndexMap(sources) = &self.op else { return None };
        let [source] = &sources[..] else { return None };
        let plain = source.coords.iter().all(|c| matches!(c, Ix::Axis(_) | Ix::Const(_)));
        Some((self.values().next()?, source)).filter(|_| plain && source.when.is_always())
    }
}

/// Where a constant's elements are: row-major, little-endian, as in memory (bool one byte, 4-bit types two to a byte).
#[derive(Clone, PartialEq, Debug)]
pub enum ConstData {
    Bytes(Bytes),
    /// A part of another file, relative to the model's folder; `len` is the number of bytes as they are here.
    External {
        file: String,
        part: Part,
        len: u64,
    },
}

/// Where elements are in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// From this byte on, as in memory.
    Offset(u64),
    /// The tensor of this name in a file of weights. Its elements become those of the constant's type.
    Tensor(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    pub name: String,
    pub elem: Elem,
    pub shape: Vec<u64>,
    pub data: ConstData,
}

/// An operation of the user's model, which nodes point back to.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Origin {
    /// `aten.rms_norm`, `onnx.Gemm`.
    pub op: String,
    /// The model's name for it: `layers.0.input_layernorm`. May be empty.
    pub name: String,
    pub place: Option<Location>,
}

impl Origin {
    /// Returns true if it is a division: the only thing that it may read outside of a table is how to treat a divisor
    /// of 0.
    pub fn divides(&self) -> bool {
        ["aten.div", "aten.divide", "aten.floor_divide", "aten.remainder", "aten.fmod"].contains(&&*self.op)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Given at every run.
    Argument,
    /// Given once, when the model is loaded: a weight. Values that depend on parameters and constants alone are
    /// computed then.
    Parameter,
}

/// The content of an input that nobody gives: one-line expressions make their own data.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Fill {
    /// It must be given.
    #[default]
    Given,
    /// Standard normal.
    Normal,
    Uniform {
        lo: f64,
        hi: f64,
    },
    /// Integers from `lo` to `hi - 1`.
    Integers {
        lo: i64,
        hi: i64,
    },
    Constant(f64),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    pub value: ValueId,
    pub role: Role,
    pub fill: Fill,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    pub name: String,
    pub value: ValueId,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Graph {
    pub name: String,
    pub symbols: IdMap<SymId, Symbol>,
    pub values: IdMap<ValueId, Value>,
    pub constants: IdMap<ConstId, Constant>,
    pub origins: IdMap<OriginId, Origin>,
    pub inputs: Vec<Input>,
    /// In topological order.
    pub nodes: IdMap<NodeId, Node>,
    pub outputs: Vec<Output>,
    /// Positions of outputs and of arguments: such an output may be written into the argument's memory, whose elements nobody reads
    /// after the run.
    pub replaced: Vec<(u32, u32)>,
    /// Conditions over symbols that the known integers of values rely on: `b*t <= 2147483647` where an integer of 32 bits
    /// holds `b*t`. A binding that breaks one is refused.
    pub guards: Vec<Cond>,
    /// The strings of an ONNX file: an element of [`Elem::STRING`] is a place here, and a string that is not here has a number
    /// behind them, which is another for each one of a run.
    pub strings: Vec<String>,
    /// The remaining memory for what decompositions list element by element: tables of weights, positions, pieces.
    pub listing: Listing,
}

/// See [`Graph::listing`].
#[derive(Clone, PartialEq, Debug)]
pub struct Listing(pub Budget);

/// The memory that decompositions may list, unless the caller says otherwise.
pub const LISTED: u64 = 512 << 20;

impl From<Option<u64>> for Listing {
    fn from(bytes: Option<u64>) -> Listing {
        Listing(Budget::of_memory(bytes.unwrap_or(LISTED)))
    }
}

impl Default for Listing {
    fn default() -> Listing {
        Listing::from(None)
    }
}

impl Graph {
    /// The node that computes a value, and the number of that result; `None` for an input.
    pub fn def(&self, v: ValueId) -> Option<(&Node, u32)> {
        crate::base::work::look();
        match self.values.get(v)?.def {
            Def::Node(n, r) => Some((self.nodes.get(n)?, r)),
            Def::Input(_) => None,
        }
    }

    /// Returns true if it holds operations of the model's own set, in the bodies of its loops too.
    pub fn has_source(&self) -> bool {
        self.nodes.values().any(|n| match &n.op {
            Op::Source { .. } => true,
            Op::Repeat(r) => r.body.has_source(),
            _ => false,
        })
    }

    /// Drops the elements of constants that no node uses.
    pub fn drop_dead_constants(&mut self) {
        let mut new = IdMap::new();
        let mut places: BTreeMap<ConstId, ConstId> = BTreeMap::new();
        let old = std::mem::take(&mut self.constants);
        for node in self.nodes.values_mut() {
            if let Op::Constant(c) = &mut node.op
                && let Some(constant) = old.get(*c)
            {
                *c = *places.entry(*c).or_insert_with(|| new.push(constant.clone()));
            }
        }
        self.constants = new;
    }

    pub fn add_symbol(&mut self, name: &str, lo: i64, hi: Option<i64>) -> SymId {
        self.symbols.push(Symbol { name: name.into(), lo, hi })
    }

    pub fn add_origin(&mut self, op: &str, name: &str, place: Option<Location>) -> OriginId {
        self.origins.push(Origin { op: op.into(), name: name.into(), place })
    }

    /// The operations of the user's behind these, each once: `aten.linear layers.0.mlp.gate_proj`.
    pub fn origins_of(&self, ids: &[OriginId]) -> Vec<String> {
        let mut list: Vec<String> = vec![];
        for origin in ids.iter().filter_map(|id| self.origins.get(*id)) {
            let text = match (origin.op.as_str(), origin.name.as_str()) {
                ("", "") => continue,
                (op, "") => op.to_string(),
                ("", name) => name.to_string(),
                (op, name) => format!("{op} {name}"),
            };
            if !list.contains(&text) {
                list.push(text);
            }
        }
        list
    }

    pub fn add_input(&mut self, name: &str, elem: Elem, shape: Vec<Ix>, role: Role) -> ValueId {
        let def = Def::Input(self.inputs.len() as u32);
        let value = self.values.push(Value { name: name.into(), elem, shape, def, ints: None, quotients: None });
        self.inputs.push(Input { value, role, fill: Fill::Given });
        value
    }

    /// Appends a node whose results have the given names and types.
    pub fn add_node(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        results: Vec<(String, Elem, Vec<Ix>)>,
        origin: OriginId,
    ) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let results = results.into_iter().enumerate().map(|(r, (name, elem, shape))| {
            self.values.push(Value { name, elem, shape, def: Def::Node(id, r as u32), ints: None, quotients: None })
        });
        let results = results.collect();
        self.nodes.push(Node { op, args, results, origin })
    }

    /// Takes over the ranges of symbols that a graph of the same symbols found.
    pub fn narrow(&mut self, other: &Graph) {
        for (own, found) in self.symbols.values_mut().zip(other.symbols.values()) {
            own.lo = own.lo.max(found.lo);
            own.hi = own.hi.min(found.hi).or(own.hi).or(found.hi);
        }
        other.guards.iter().for_each(|cond| self.guard(cond.clone()));
    }

    /// Takes a condition over symbols for granted, as the range of a symbol where it bounds only that.
    pub fn guard(&mut self, cond: Cond) {
        if !self.narrows(&cond) && !self.guards.contains(&cond) {
            self.guards.push(cond);
        }
    }

    /// Narrows the range of the one symbol that a condition bounds; false where it bounds another expression, or leaves
    /// no value.
    fn narrows(&mut self, cond: &Cond) -> bool {
        let (l, r) = (Poly::expanded(&cond.lhs), Poly::expanded(&cond.rhs));
        // At least 0: by*symbol + base.
        let rest = match cond.cmp {
            Cmp::Le => r.minus(&l),
            Cmp::Ge => l.minus(&r),
            _ => return false,
        };
        let [(factors, by)] = &rest.terms[..] else { return false };
        let [Ix::Val { val, .. }] = &factors[..] else { return false };
        let Some(symbol) = self.symbols.get(SymId(val.0)) else { return false };
        let (mut lo, mut hi) = (symbol.lo, symbol.hi);
        match *by > 0 {
            true => lo = lo.max(i64::try_from(-rest.base.div_euclid(*by)).unwrap_or(i64::MAX)),
            false => {
                let most = i64::try_from(rest.base.div_euclid(-*by)).unwrap_or(i64::MAX);
                hi = if most >= hi.unwrap_or(MAX_EXTENT) { hi } else { Some(most) };
            }
        }
        let is_range = Symbol::is_range(lo, hi);
        if is_range {
            let symbol = &mut self.symbols[SymId(val.0)];
            (symbol.lo, symbol.hi) = (lo, hi);
        }
        is_range
    }

    /// Returns true if it refuses some extents that are long enough for their symbols.
    pub fn is_guarded(&self) -> bool {
        !self.guards.is_empty() || self.symbols.values().any(|s| s.hi.is_some())
    }

    /// The facts about the symbols: their ranges.
    pub fn facts(&self) -> crate::index::Facts {
        let mut facts = crate::index::Facts::new();
        for (sym, s) in self.symbols.iter() {
            let hi = s.hi.unwrap_or(MAX_EXTENT);
            facts.vals.insert(ValId(sym.0), crate::index::Interval::new(s.lo.into(), hi.into()));
        }
        facts
    }

    /// Why no tensor can have this shape: a dimension that is negative, too long, or an endless expression, too many
    /// dimensions, more elements than can be counted.
    pub fn unfit(&self, elem: Elem, shape: &[Ix]) -> Option<String> {
        if shape.len() > MAX_RANK {
            return Some(format!("it has {} dimensions; at most {MAX_RANK} are possible", shape.len()));
        }
        if shape.iter().any(|d| d.size() > MAX_EXTENT_SIZE) {
            return Some(format!("an extent is an expression of more than {MAX_EXTENT_SIZE} operations"));
        }
        let text = || shape.iter().map(|d| self.ix_text(d)).collect::<Vec<_>>().join(", ");
        let known = || shape.iter().filter_map(Ix::as_const);
        if let Some(n) = known().find(|n| !(0..=MAX_EXTENT).contains(n)) {
            return Some(format!("its shape is [{}]; an extent must be from 0 to 2^40, not {n}", text()));
        }
        let mut computed = shape.iter().filter(|d| d.operands().is_some()).map(|d| self.facts().range(d));
        if let Some(r) = computed.find(|r| r.hi < 0 || r.lo > MAX_EXTENT.into()) {
            let at = if r.hi < 0 { r.hi } else { r.lo };
            return Some(format!("its shape is [{}]; an extent must be from 0 to 2^40, not {at}", text()));
        }
        let count =
            if known().any(|n| n == 0) { Some(0) } else { elements(&known().map(|n| n as u64).collect::<Vec<_>>()) };
        let bytes = count.and_then(|n| n.checked_mul(elem.dtype.bytes().max(1)));
        let most = bytes.is_none_or(|n| n > MAX_BYTES);
        most.then(|| format!("its shape is [{}], which no memory could hold", text()))
    }

    /// How often each value is used, as a result of the graph too.
    pub fn uses(&self) -> Vec<usize> {
        let mut uses = vec![0; self.values.len()];
        let of_nodes = self.nodes.values().flat_map(Node::values);
        of_nodes.chain(self.outputs.iter().map(|o| o.value)).for_each(|v| uses[v.0 as usize] += 1);
        uses
    }

    /// The element count of a shape, simplified.
    pub fn numel(&self, shape: &[Ix]) -> Ix {
        let product = shape.iter().fold(Ix::Const(1), |a, b| Ix::mul(a, b.clone()));
        crate::index::simplify(&product, &self.facts())
    }
}

/// The most dimensions of a tensor; PyTorch has 64, and decompositions split some of them.
pub const MAX_RANK: usize = 128;

/// The most leaves and operations of an extent: expressions are walked by recursion.
pub const MAX_EXTENT_SIZE: usize = 512;

/// The most bytes that a tensor may claim; the memory itself is asked for when the tensor is made.
pub const MAX_BYTES: u64 = 1 << 60;

/// No extent is longer than this, so that products of a few of them fit in 64 bits where memory could hold the tensor.
pub const MAX_EXTENT: i64 = 1 << 40;

/// The element type's value of a float, rounded to nearest; of an integer type: truncated and saturated.
pub fn scalar(elem: Elem, x: f64) -> Arg {
    let bits = if elem.dtype.is_float() {
        crate::num::convert::from_f64(elem.dtype, x, Rounding::NearestEven)
    } else if elem.is_bool() {
        (x != 0.0).into()
    } else if elem.unsigned {
        x as u64 & elem.dtype.mask()
    } else {
        x as i64 as u64 & elem.dtype.mask()
    };
    Arg::Scalar { elem, bits }
}

/// An integer as an operand; as a bool it is true unless it is 0.
pub fn int_scalar(elem: Elem, x: i64) -> Arg {
    let x = if elem.is_bool() { (x != 0).into() } else { x };
    if elem.dtype.is_int() { Arg::Scalar { elem, bits: x as u64 & elem.dtype.mask() } } else { scalar(elem, x as f64) }
}

/// Returns true if elements of the type can be computed with: integers, f16, bf16, f32, f64.
pub fn computes(dtype: DType) -> bool {
    dtype.is_int() || dtype.is_base_float()
}
