//! Demand-driven emission: the loops of one kernel, from what its stores need.
//!
//! In: a graph, the values that lie in arrays, and a store to make. Out: statements. Asking for an element of a value
//! that lies in an array loads it; of any other, emits the computation of that one element, whose operands are asked for
//! in turn, with the coordinates that the operation reads them at. Substitution of coordinates is the only way in which
//! code moves.
//!
//! Invariants:
//! 1. A statement stands in the outermost open loop that binds everything it reads, so what is the same for a whole row
//!    is computed once for the row. What was computed for the same element is reused while it is visible.
//! 2. A reduction becomes a loop of its own in that same place, before the loop that needs it.
//! 3. Under a mask, memory is touched only where the mask holds; and an element of an array that may be empty only inside
//!    the loops over it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::parts::MOST_SOURCES;
use crate::graph::build::Refusal;
use crate::graph::ir::{self as g, Arg, Coord, Graph, Op, ReduceOp, ValueId};
use crate::graph::{Elem, OriginId};
use crate::index::{AxisId, Cmp, Cond, Facts, Ix, Mask, Simple, ValId};
use crate::loops::ir::*;
use crate::num::op::{Predicate, Rounding};
use crate::num::{DType, ScalarOp};

/// One open loop, or the kernel's body.
#[derive(Default)]
struct Scope {
    stmts: Vec<Stmt>,
    known: FxHashMap<(ValueId, Vec<Ix>, Mask), Opnd>,
    kept: Vec<Kept>,
}

/// A row of a value that is kept in a local buffer for later loops.
struct Kept {
    value: ValueId,
    /// The coordinates; `None` where the buffer has a dimension.
    fixed: Vec<Option<Ix>>,
    /// The loops between its place and where it is filled: it is whole when all of them have ended.
    loops: Vec<AxisId>,
    buf: BufId,
}

/// Where an element of a value comes from.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Source {
    /// An array, through this pointer.
    Array(ValId),
    /// A local buffer at these indices, whatever the coordinates: the position is fixed by the loops that are open.
    Local(BufId, Vec<Ix>),
}

pub(super) struct Emitter<'a> {
    pub graph: &'a Graph,
    pub kernel: Kernel,
    pub sources: BTreeMap<ValueId, Source>,
    /// Values whose rows are worth a local buffer.
    pub keep: Vec<ValueId>,
    pub facts: Facts,
    simple: RefCell<Simple>,
    /// What holds where code is emitted now; every load carries it.
    pub mask: Mask,
    scopes: Vec<Scope>,
    /// The loop of each scope but the first.
    open: Vec<For>,
    /// Loops that are open further in, while a reduction is emitted before them.
    pending: Vec<AxisId>,
    axis_depth: BTreeMap<AxisId, usize>,
    val_depth: Vec<usize>,
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl<'a> Emitter<'a> {
    /// A kernel whose first parameters are the graph's symbols.
    pub fn new(graph: &'a Graph, name: &str) -> Emitter<'a> {
        let mut e = Emitter {
            graph,
            kernel: Kernel { name: name.into(), ..Kernel::default() },
            sources: BTreeMap::new(),
            keep: vec![],
            facts: graph.facts(),
            simple: RefCell::default(),
            mask: Mask::default(),
            scopes: vec![Scope::default()],
            open: vec![],
            pending: vec![],
            axis_depth: BTreeMap::new(),
            val_depth: vec![],
        };
        for s in graph.symbols.values() {
            e.param(&s.name, Ty::Num(DType::I64));
            if let Some(p) = e.kernel.params.last_mut() {
                p.range = Some((s.lo, s.hi.unwrap_or(g::MAX_EXTENT)));
            }
        }
        e
    }

    pub fn param(&mut self, name: &str, ty: Ty) -> ValId {
        let val = self.value(name, ty, 0);
        self.kernel.params.push(Param { name: name.into(), ty, val, div_by: 1, range: None });
        val
    }

    /// A parameter that is the array of a value.
    pub fn array(&mut self, v: ValueId, name: &str) -> ValId {
        let elem = self.graph.values[v].elem;
        let ptr = self.param(name, Ty::Ptr(elem.dtype));
        self.sources.insert(v, Source::Array(ptr));
        ptr
    }

    fn value(&mut self, name: &str, ty: Ty, depth: usize) -> ValId {
        self.val_depth.push(depth);
        self.kernel.vals.push(Val { ty, name: name.into() })
    }

    pub fn local(&mut self, name: &str, dtype: DType, shape: Vec<u64>, depth: usize) -> BufId {
        let buf = self.kernel.bufs.push(Buf { name: name.into(), ty: Ty::Num(dtype), shape });
        self.emit(depth, Stmt::Local { buf });
        buf
    }

    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    pub fn emit(&mut self, depth: usize, stmt: Stmt) {
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.stmts.push(stmt);
        }
    }

    /// Emits in the innermost open loop.
    pub fn emit_here(&mut self, stmt: Stmt) {
        self.emit(self.depth(), stmt);
    }

    /// Opens a loop from 0.
    pub fn open(&mut self, name: &str, hi: Ix, kind: LoopKind) -> AxisId {
        let axis = self.kernel.axes.push(Axis { name: name.into(), from: None });
        self.facts.set_axis(axis, &Ix::Const(0), &hi);
        let (lo, step, place) = (Ix::Const(0), Ix::Const(1), Place::None);
        self.open.push(For {
            axis,
            lo,
            hi,
            step,
            kind,
            place,
            combine: None,
            contraction: None,
            stream: None,
            body: vec![],
        });
        self.scopes.push(Scope::default());
        self.axis_depth.insert(axis, self.depth());
        axis
    }

    /// Opens loops over some axes of a shape, outermost first, and sets their coordinates; axes of one element need none.
    pub fn open_axes(
        &mut self,
        name: &str,
        axes: &[usize],
        shape: &[Ix],
        kind: LoopKind,
        at: &mut [Ix],
    ) -> Vec<AxisId> {
        let long: Vec<usize> = axes.iter().copied().filter(|d| shape.get(*d).is_some_and(|n| !n.is_const(1))).collect();
        let mut opened = vec![];
        for (count, d) in long.iter().enumerate() {
            let name = if long.len() == 1 { name.to_string() } else { format!("{name}{count}") };
            let axis = self.open(&name, shape[*d].clone(), kind);
            if let Some(slot) = at.get_mut(*d) {
                *slot = Ix::Axis(axis);
            }
            opened.push(axis);
        }
        opened
    }

    /// Closes the innermost loop; `edit` may set its roles.
    pub fn close_with(&mut self, edit: impl FnOnce(&mut For)) {
        if let (Some(scope), Some(mut f)) = (self.scopes.pop(), self.open.pop()) {
            f.body = scope.stmts;
            edit(&mut f);
            self.emit_here(Stmt::For(Box::new(f)));
        }
    }

    pub fn close(&mut self) {
        self.close_with(|_| {});
    }

    /// The kernel, all loops being closed.
    pub fn finish(mut self) -> Kernel {
        while !self.open.is_empty() {
            self.close();
        }
        self.kernel.body = self.scopes.pop().map(|s| s.stmts).unwrap_or_default();
        self.kernel
    }

    pub fn simplify(&self, ix: &Ix) -> Ix {
        self.simple.borrow_mut().simplify(ix, &self.facts)
    }

    /// The scope that binds everything in an expression.
    fn depth_of(&self, ix: &Ix) -> usize {
        let axes = ix.axes().into_iter().map(|a| self.axis_depth.get(&a).copied().unwrap_or(0));
        let vals = ix.vals().into_iter().map(|v| self.val_depth.get(v.0 as usize).copied().unwrap_or(0));
        axes.chain(vals).max().unwrap_or(0)
    }

    fn depth_of_mask(&self, mask: &Mask) -> usize {
        let conds = mask.conds.iter().map(|c| self.depth_of(&c.lhs).max(self.depth_of(&c.rhs)));
        let vals = mask.vals.iter().map(|v| self.val_depth.get(v.0 as usize).copied().unwrap_or(0));
        conds.chain(vals).max().unwrap_or(0)
    }

    /// The number of loops around a value.
    pub fn depth_of_val(&self, v: ValId) -> usize {
        self.val_depth.get(v.0 as usize).copied().unwrap_or(0)
    }

    fn depth_of_opnd(&self, o: Opnd) -> usize {
        match o {
            Opnd::Val(v) => self.depth_of_val(v),
            Opnd::Const { .. } => 0,
        }
    }

    /// A new value defined in a scope by a statement.
    pub fn define(&mut self, name: &str, dtype: DType, depth: usize, stmt: impl FnOnce(ValId) -> Stmt) -> Opnd {
        let dst = self.value(name, Ty::Num(dtype), depth);
        self.emit(depth, stmt(dst));
        Opnd::Val(dst)
    }

    pub fn apply(&mut self, op: ScalarOp, dtype: DType, args: Vec<Opnd>) -> Opnd {
        let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
        self.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args })
    }

    pub fn site(&mut self, origin: OriginId) -> SiteId {
        let op = self.graph.origins.get(origin).map_or("model", |o| &o.op).to_string();
        self.kernel.sites.push(Site { span: None, op, frames: Default::default() })
    }

    pub fn row_major(&self, coords: &[Ix], shape: &[Ix]) -> Ix {
        let mut linear = Ix::Const(0);
        for (c, n) in coords.iter().zip(shape) {
            linear = Ix::add(Ix::mul(linear, n.clone()), c.clone());
        }
        self.simplify(&linear)
    }

    /// Stores a value's element through a pointer, where the mask holds.
    pub fn store(&mut self, ptr: ValId, v: ValueId, coords: &[Ix], value: Opnd, origin: OriginId) {
        let info = &self.graph.values[v];
        let (elem, index) = (info.elem.dtype, self.row_major(coords, &info.shape.clone()));
        let site = self.site(origin);
        let mem = Mem { base: ptr, index, elem };
        let mask = self.mask.clone();
        self.emit_here(Stmt::Store { mem, value, mask, order: Order::Weak, site });
    }

    pub fn operand(&mut self, a: Arg, coords: &[Ix]) -> Result<Opnd> {
        match a {
            Arg::Value(v) => self.demand(v, coords),
            Arg::Scalar { elem, bits } => Ok(Opnd::Const { dtype: elem.dtype, bits }),
            Arg::Absent => Err(Refusal::new("an operand is missing")),
        }
    }

    /// The element of `v` at `coords`.
    pub fn demand(&mut self, v: ValueId, coords: &[Ix]) -> Result<Opnd> {
        if let Some(Source::Local(buf, idx)) = self.sources.get(&v).cloned() {
            let name = self.graph.values[v].name.clone();
            let dtype = self.graph.values[v].elem.dtype;
            let depth = idx.iter().map(|i| self.depth_of(i)).max().unwrap_or(0).max(self.depth());
            let key = (v, idx.clone(), Mask::default());
            if let Some(known) = self.lookup(&key) {
                return Ok(known);
            }
            let read = self.define(&name, dtype, depth, |dst| Stmt::Read { dst, buf, idx: idx.clone() });
            self.remember(depth, key, read);
            return Ok(read);
        }
        let coords: Vec<Ix> = coords.iter().map(|c| self.simplify(c)).collect();
        let key = (v, coords, self.mask.clone());
        if let Some(known) = self.lookup(&key) {
            return Ok(known);
        }
        let coords = key.1.clone();
        if let Some(read) = self.kept(v, &coords) {
            return Ok(read);
        }
        let result = match self.sources.get(&v).cloned() {
            Some(Source::Array(ptr)) => self.load(v, ptr, &coords),
            _ => self.compute(v, &coords)?,
        };
        let depth = self.depth_of_opnd(result);
        self.remember(depth, key, result);
        if self.keep.contains(&v) {
            self.keep_row(v, &coords, result);
        }
        Ok(result)
    }

    fn lookup(&self, key: &(ValueId, Vec<Ix>, Mask)) -> Option<Opnd> {
        self.scopes.iter().rev().find_map(|s| s.known.get(key).copied())
    }

    fn remember(&mut self, depth: usize, key: (ValueId, Vec<Ix>, Mask), opnd: Opnd) {
        // A constant depends on nothing, but its mask may: it is known where that is.
        let depth =
            depth.max(self.depth_of_mask(&key.2)).max(key.1.iter().map(|c| self.depth_of(c)).max().unwrap_or(0));
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.known.insert(key, opnd);
        }
    }

    fn load(&mut self, v: ValueId, ptr: ValId, coords: &[Ix]) -> Opnd {
        let info = &self.graph.values[v];
        let (name, elem, shape) = (info.name.clone(), info.elem.dtype, info.shape.clone());
        let index = self.row_major(coords, &shape);
        let mask = self.facts.simplify_mask(&self.mask).unwrap_or_else(|| self.mask.clone());
        let depth = self.depth_of(&index).max(self.depth_of_mask(&mask)).max(self.depth_that_runs(coords, &shape));
        let origin = self.graph.def(v).map_or(OriginId(0), |(n, _)| n.origin);
        let site = self.site(origin);
        let other = (!mask.is_always()).then_some(Opnd::Const { dtype: elem, bits: 0 });
        let mem = Mem { base: ptr, index, elem };
        self.define(&name, elem, depth, |dst| Stmt::Load { dst, mem, mask, other, order: Order::Weak, site })
    }

    /// The outermost scope where an element may be read: inside every loop that may not run at all, for what is read
    /// there need not exist, unless the coordinates lie in the array whatever runs.
    fn depth_that_runs(&self, coords: &[Ix], shape: &[Ix]) -> usize {
        let may_be_empty = |f: &For| self.facts.range(&f.hi).lo <= 0;
        let Some(at) = self.open.iter().rposition(may_be_empty) else { return 0 };
        let inside = |(c, n): (&Ix, &Ix)| {
            let own = |f: &For| *c == Ix::Axis(f.axis) && f.hi == *n;
            self.open.iter().any(own)
                || self.facts.decide(&Cond::new(c.clone(), Cmp::Ge, Ix::Const(0))) == Some(true)
                    && self.facts.decide(&Cond::new(c.clone(), Cmp::Lt, n.clone())) == Some(true)
        };
        if coords.iter().zip(shape).all(inside) { 0 } else { at + 1 }
    }

    fn compute(&mut self, v: ValueId, coords: &[Ix]) -> Result<Opnd> {
        let graph = self.graph;
        let Some((node, result)) = graph.def(v) else {
            return Err(Refusal::new("an input has no array"));
        };
        let info = &graph.values[v];
        let dtype = info.elem.dtype;
        let place = |ix: &Ix| ix.subst_axes(&mut |a| coords.get(a.0 as usize).cloned());
        match &node.op {
            Op::Elementwise(op) => {
                let args = node.args.iter().map(|a| self.operand(*a, coords)).collect::<Result<Vec<Opnd>>>()?;
                let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
                let op = *op;
                Ok(self.define(&info.name, dtype, depth, |dst| Stmt::Let { dst, op, args }))
            }
            Op::Index(ix) => {
                let ix = self.simplify(&place(ix));
                if let Some(c) = ix.as_const() {
                    return Ok(Opnd::Const { dtype, bits: c as u64 & dtype.mask() });
                }
                let depth = self.depth_of(&ix);
                Ok(self.define(&info.name, dtype, depth, |dst| Stmt::Index { dst, ix }))
            }
            Op::IndexMap(sources) => self.map(node, sources, coords, dtype),
            Op::Gather(at) => self.gather(node, at, coords),
            Op::Reduce { op, axes } => self.reduce(v, node, *op, axes, coords, result),
            _ => Err(Refusal::new(format!("`{}` cannot be computed an element at a time", info.name))),
        }
    }

    fn map(&mut self, node: &g::Node, sources: &[g::MapSource], coords: &[Ix], dtype: DType) -> Result<Opnd> {
        let place = |ix: &Ix| ix.subst_axes(&mut |a| coords.get(a.0 as usize).cloned());
        let mut parts: Vec<(Mask, Opnd)> = vec![];
        let outer = self.mask.clone();
        // Of many sources, whether none was taken is carried along; of few, each says so itself.
        let many = sources.len() > MOST_SOURCES;
        let mut free: Option<ValId> = None;
        for s in sources {
            let conds = s.when.conds.iter().map(|c| Cond::new(place(&c.lhs), c.cmp, place(&c.rhs))).collect();
            let Some(when) = self.facts.simplify_mask(&Mask { conds, vals: vec![] }) else { continue };
            let arg = node.args.get(s.arg as usize).copied().unwrap_or(Arg::Absent);
            let read: Vec<Ix> = s.coords.iter().map(&place).collect();
            let always = when.is_always();
            if always && parts.is_empty() {
                return self.operand(arg, &read);
            }
            self.mask = outer.and(&when);
            // What an earlier source takes is not read here: its coordinates may lie outside.
            self.mask.vals.extend(free);
            for (earlier, _) in parts.iter().filter(|_| !many) {
                match (&earlier.conds[..], arg) {
                    ([only], _) => self.mask.conds.push(only.negate()),
                    (_, Arg::Value(_)) => {
                        let outside = self.outside(earlier);
                        self.mask.vals.push(outside);
                    }
                    _ => {}
                }
            }
            let value = self.operand(arg, &read);
            self.mask = outer.clone();
            if many {
                let outside = self.outside(&when);
                free = Some(match free {
                    None => outside,
                    Some(free) => self.both(free, outside),
                });
            }
            parts.push((when, value?));
            if always {
                break;
            }
        }
        let Some((_, mut value)) = parts.pop() else { return Ok(Opnd::Const { dtype, bits: 0 }) };
        while let Some((when, first)) = parts.pop() {
            let depth = self.depth_of_mask(&when);
            let c = self.define("in", DType::I1, depth, |dst| Stmt::Test { dst, mask: when });
            value = self.apply(ScalarOp::Select, dtype, vec![c, first, value]);
        }
        Ok(value)
    }

    /// Whether two booleans both hold.
    fn both(&mut self, a: ValId, b: ValId) -> ValId {
        let args = vec![Opnd::Val(a), Opnd::Val(b)];
        let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
        let dst = self.value("out", Ty::Num(DType::I1), depth);
        self.emit(depth, Stmt::Let { dst, op: ScalarOp::And, args });
        dst
    }

    /// Whether a mask does not hold.
    fn outside(&mut self, mask: &Mask) -> ValId {
        let (depth, one) = (self.depth_of_mask(mask), Opnd::Const { dtype: DType::I1, bits: 1 });
        let within = self.define("in", DType::I1, depth, |dst| Stmt::Test { dst, mask: mask.clone() });
        let (op, args) = (ScalarOp::Xor, vec![within, one]);
        let dst = self.value("out", Ty::Num(DType::I1), depth);
        self.emit(depth, Stmt::Let { dst, op, args });
        dst
    }

    fn gather(&mut self, node: &g::Node, at: &[Coord], coords: &[Ix]) -> Result<Opnd> {
        let Some(Arg::Value(data)) = node.args.first().copied() else {
            return Err(Refusal::new("a gather reads a tensor"));
        };
        let mut read = vec![];
        for (d, c) in at.iter().enumerate() {
            read.push(match c {
                Coord::Ix(ix) => ix.subst_axes(&mut |a| coords.get(a.0 as usize).cloned()),
                Coord::Arg(i) => {
                    let extent = self.graph.values[data].shape.get(d).cloned().unwrap_or(Ix::Const(1));
                    self.index_operand(node, *i, coords, extent)?
                }
            });
        }
        self.demand(data, &read)
    }

    /// An element of an index tensor as an index expression, asserted to lie in `0..extent`.
    pub fn index_operand(&mut self, node: &g::Node, arg: u32, coords: &[Ix], extent: Ix) -> Result<Ix> {
        let arg = node.args.get(arg as usize).copied().unwrap_or(Arg::Absent);
        let elem = match arg {
            Arg::Value(v) => self.graph.values[v].elem,
            Arg::Scalar { elem, .. } => elem,
            Arg::Absent => Elem::I64,
        };
        let value = self.operand(arg, coords)?;
        let val = match value {
            Opnd::Const { dtype, bits } => return Ok(Ix::Const(crate::num::convert::sign_extend(dtype, bits))),
            Opnd::Val(v) => v,
        };
        let ix = Ix::Val { val, zext: elem.unsigned };
        let inside =
            vec![Cond::new(ix.clone(), Cmp::Ge, Ix::Const(0)), Cond::new(ix.clone(), Cmp::Lt, self.simplify(&extent))];
        let key = (val, extent);
        let depth = self.depth_of_opnd(value).max(self.depth_of(&key.1)).max(self.depth_of_mask(&self.mask));
        let mask = Mask { conds: inside, vals: vec![] };
        let mut cond = self.define("inside", DType::I1, depth, |dst| Stmt::Test { dst, mask });
        if !self.mask.is_always() {
            let all = self.mask.clone();
            let on = self.define("on", DType::I1, depth, |dst| Stmt::Test { dst, mask: all });
            let one = Opnd::Const { dtype: DType::I1, bits: 1 };
            let off =
                self.define("off", DType::I1, depth, |dst| Stmt::Let { dst, op: ScalarOp::Xor, args: vec![on, one] });
            cond = self.define("inside", DType::I1, depth, |dst| Stmt::Let {
                dst,
                op: ScalarOp::Or,
                args: vec![cond, off],
            });
        }
        let site = self.site(node.origin);
        let message = format!("an index lies outside its dimension of extent {}", self.graph.ix_text(&key.1));
        self.emit(depth, Stmt::Assert { cond, message, site });
        // Where the assertion failed the run ends; the clamp keeps vector code from reading elsewhere before it does.
        Ok(Ix::max(Ix::Const(0), Ix::min(ix, Ix::sub(key.1, Ix::Const(1)))))
    }

    fn reduce(
        &mut self,
        v: ValueId,
        node: &g::Node,
        op: ReduceOp,
        axes: &[u32],
        coords: &[Ix],
        _result: u32,
    ) -> Result<Opnd> {
        let graph = self.graph;
        let Some(Arg::Value(arg)) = node.args.first().copied() else {
            return Err(Refusal::new("a reduction of a scalar"));
        };
        if !self.mask.is_always() {
            return Err(Refusal::new("a reduction is needed only under a condition"));
        }
        let shape = graph.values[arg].shape.clone();
        let elem = graph.values[v].elem;
        let name = graph.values[v].name.clone();
        let mut depth = coords.iter().map(|c| self.depth_of(c)).max().unwrap_or(0);
        // Of a dimension that may be empty, position 0 is there only where the loop over it runs.
        let of = graph.values[v].shape.iter().zip(coords);
        if of.into_iter().any(|(n, c)| c.as_const().is_some() && self.facts.range(n).lo <= 0) {
            depth = self.depth();
        }
        // The loops go before those that are open further in.
        let inner_scopes = self.scopes.split_off(depth + 1);
        let inner_open = self.open.split_off(depth);
        let pending = self.pending.len();
        self.pending.extend(inner_open.iter().map(|f| f.axis));
        let outcome = self.fold(&name, node, op, axes, coords, &shape, elem);
        self.pending.truncate(pending);
        self.scopes.truncate(depth + 1);
        self.open.truncate(depth);
        self.scopes.extend(inner_scopes);
        self.open.extend(inner_open);
        outcome
    }

    #[allow(clippy::too_many_arguments)]
    fn fold(
        &mut self,
        name: &str,
        node: &g::Node,
        op: ReduceOp,
        axes: &[u32],
        coords: &[Ix],
        shape: &[Ix],
        elem: Elem,
    ) -> Result<Opnd> {
        let at = self.depth();
        let dtype = elem.dtype;
        let (fold, start) = fold_of(op, elem)?;
        let accs: Vec<BufId> = match op {
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => {
                let of = self.arg_elem(node)?;
                let best = self.local("best", of.dtype, vec![], at);
                let place = self.local(name, DType::I64, vec![], at);
                vec![best, place]
            }
            _ => vec![self.local(name, dtype, vec![], at)],
        };
        let init = |buf, value| Stmt::Write { buf, idx: vec![], value };
        if let [best, place] = accs[..] {
            let of = self.arg_elem(node)?;
            self.emit(at, init(best, Opnd::Const { dtype: of.dtype, bits: 0 }));
            self.emit(at, init(place, Opnd::Const { dtype: DType::I64, bits: u64::MAX }));
        } else {
            self.emit(at, init(accs[0], Opnd::Const { dtype, bits: start }));
        }
        let mut read = coords.to_vec();
        let mut opened = 0;
        for &a in axes {
            let extent = shape.get(a as usize).cloned().unwrap_or(Ix::Const(1));
            let slot = read.get_mut(a as usize).ok_or_else(|| Refusal::new("a reduction over no axis"))?;
            *slot = Ix::Const(0);
            if !extent.is_const(1) {
                *slot = Ix::Axis(self.open("k", extent, LoopKind::Reduce));
                opened += 1;
            }
        }
        let here = self.depth();
        match op {
            ReduceOp::ArgMax { last } | ReduceOp::ArgMin { last } => {
                let less = matches!(op, ReduceOp::ArgMin { .. });
                let position = axes.first().and_then(|a| read.get(*a as usize)).cloned().unwrap_or(Ix::Const(0));
                self.arg_step(node, &read, position, &accs, less, last)?;
            }
            ReduceOp::Dot => {
                let a = self.operand(node.args[0], &read)?;
                let b = self.operand(node.args[1], &read)?;
                let from = self.arg_elem(node)?;
                let (a, b) = (self.widen(a, from, elem), self.widen(b, from, elem));
                let product = if elem.is_float() {
                    ScalarOp::MulF { rounding: Rounding::NearestEven, ftz: false }
                } else {
                    ScalarOp::MulI
                };
                let p = self.define("v", dtype, here, |dst| Stmt::Let { dst, op: product, args: vec![a, b] });
                self.fold_step(accs[0], fold, dtype, p, here);
            }
            _ => {
                let x = self.operand(node.args[0], &read)?;
                self.fold_step(accs[0], fold, dtype, x, here);
            }
        }
        let combine = match op {
            ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. } => None,
            _ => Some(Combine { accs: accs.clone(), op: CombineOp::Scalar { op: fold, identity: start }, ways: 1 }),
        };
        for i in 0..opened {
            let combine = combine.clone().filter(|_| i == 0);
            self.close_with(|f| f.combine = combine);
        }
        let last = accs[accs.len() - 1];
        Ok(self.define(name, dtype, at, |dst| Stmt::Read { dst, buf: last, idx: vec![] }))
    }

    fn arg_elem(&self, node: &g::Node) -> Result<Elem> {
        match node.args.first() {
            Some(Arg::Value(v)) => Ok(self.graph.values[*v].elem),
            _ => Err(Refusal::new("a reduction of a scalar")),
        }
    }

    /// An operand of a product in the type that the sum is made in.
    pub fn widen(&mut self, x: Opnd, from: Elem, to: Elem) -> Opnd {
        if from.dtype == to.dtype {
            return x;
        }
        let op = if to.is_float() {
            ScalarOp::FToF { to: to.dtype, rounding: Rounding::NearestEven }
        } else {
            ScalarOp::ExtI { to: to.dtype, sign: from.sign() }
        };
        self.apply(op, to.dtype, vec![x])
    }

    /// `acc = op(x, acc)`
    fn fold_step(&mut self, acc: BufId, op: ScalarOp, dtype: DType, x: Opnd, depth: usize) {
        let old = self.define("acc", dtype, depth, |dst| Stmt::Read { dst, buf: acc, idx: vec![] });
        let new = self.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args: vec![x, old] });
        self.emit(depth, Stmt::Write { buf: acc, idx: vec![], value: new });
    }

    /// One step of a search for the position of the greatest or least element. The position is -1 before the first.
    fn arg_step(&mut self, node: &g::Node, read: &[Ix], at: Ix, accs: &[BufId], less: bool, last: bool) -> Result<()> {
        let of = self.arg_elem(node)?;
        let x = self.operand(node.args[0], read)?;
        let depth = self.depth();
        let (best_buf, place_buf) = (accs[0], accs[1]);
        let bool_ty = DType::I1;
        let best = self.define("best", of.dtype, depth, |dst| Stmt::Read { dst, buf: best_buf, idx: vec![] });
        let place = self.define("place", DType::I64, depth, |dst| Stmt::Read { dst, buf: place_buf, idx: vec![] });
        let pred = match (less, last) {
            (false, false) => Predicate::GreaterThan,
            (false, true) => Predicate::GreaterThanOrEqual,
            (true, false) => Predicate::LessThan,
            (true, true) => Predicate::LessThanOrEqual,
        };
        let compare =
            |e: &mut Self, op, a, b| e.define("v", bool_ty, depth, |dst| Stmt::Let { dst, op, args: vec![a, b] });
        let mut better = if of.is_float() {
            let wins = compare(self, ScalarOp::CmpF { pred, ordered: true }, x, best);
            let x_nan = compare(self, ScalarOp::CmpF { pred: Predicate::NotEqual, ordered: false }, x, x);
            let mut take = x_nan;
            if !last {
                let fine = compare(self, ScalarOp::CmpF { pred: Predicate::Equal, ordered: true }, best, best);
                take = compare(self, ScalarOp::And, x_nan, fine);
            }
            compare(self, ScalarOp::Or, wins, take)
        } else {
            compare(self, ScalarOp::CmpI { pred, sign: of.sign() }, x, best)
        };
        let none = Opnd::Const { dtype: DType::I64, bits: u64::MAX };
        let first = compare(
            self,
            ScalarOp::CmpI { pred: Predicate::Equal, sign: crate::num::op::Signedness::Signed },
            place,
            none,
        );
        better = compare(self, ScalarOp::Or, better, first);
        let here = self.define("at", DType::I64, depth, |dst| Stmt::Index { dst, ix: at });
        let select = ScalarOp::Select;
        let b = self.define("v", of.dtype, depth, |dst| Stmt::Let { dst, op: select, args: vec![better, x, best] });
        let p =
            self.define("v", DType::I64, depth, |dst| Stmt::Let { dst, op: select, args: vec![better, here, place] });
        self.emit(depth, Stmt::Write { buf: best_buf, idx: vec![], value: b });
        self.emit(depth, Stmt::Write { buf: place_buf, idx: vec![], value: p });
        Ok(())
    }

    /// Reads a kept row, if its loops have run for these coordinates.
    fn kept(&mut self, v: ValueId, coords: &[Ix]) -> Option<Opnd> {
        let (buf, idx) = self.scopes.iter().find_map(|s| {
            s.kept.iter().filter(|k| k.value == v).find_map(|k| {
                let same = k.fixed.iter().zip(coords).all(|(f, c)| f.as_ref().is_none_or(|f| f == c));
                let runs = |a: &AxisId| self.pending.contains(a) || self.open.iter().any(|f| f.axis == *a);
                let done = !k.loops.iter().any(runs);
                let idx = k.fixed.iter().zip(coords).filter(|(f, _)| f.is_none()).map(|(_, c)| c.clone()).collect();
                (same && done).then_some((k.buf, idx))
            })
        })?;
        let idx: Vec<Ix> = idx;
        let info = &self.graph.values[v];
        let (name, dtype) = (info.name.clone(), info.elem.dtype);
        let depth = idx
            .iter()
            .map(|i| self.depth_of(i))
            .max()
            .unwrap_or(0)
            .max(coords.iter().map(|c| self.depth_of(c)).max().unwrap_or(0));
        Some(self.define(&name, dtype, depth, |dst| Stmt::Read { dst, buf, idx }))
    }

    /// Writes a value just computed into a buffer for its row, if the loops that are open run over whole dimensions of it.
    fn keep_row(&mut self, v: ValueId, coords: &[Ix], value: Opnd) {
        if !self.mask.is_always() {
            return;
        }
        let shape = self.graph.values[v].shape.clone();
        let (mut fixed, mut loops, mut extents, mut idx) = (vec![], vec![], vec![], vec![]);
        for (c, n) in coords.iter().zip(&shape) {
            let whole = match c {
                Ix::Axis(a) => self.open.iter().find(|f| f.axis == *a && f.hi == *n && f.kind == LoopKind::Reduce),
                _ => None,
            };
            match (whole, n.as_const()) {
                (Some(f), Some(n)) => {
                    loops.push(f.axis);
                    extents.push(n as u64);
                    idx.push(c.clone());
                    fixed.push(None);
                }
                _ => fixed.push(Some(c.clone())),
            }
        }
        let outer = fixed.iter().flatten().map(|c| self.depth_of(c)).max().unwrap_or(0);
        let first = loops.iter().filter_map(|a| self.axis_depth.get(a)).min().copied().unwrap_or(0);
        if loops.is_empty() || first <= outer || extents.iter().product::<u64>() > MOST_KEPT {
            return;
        }
        let (name, dtype) = (self.graph.values[v].name.clone(), self.graph.values[v].elem.dtype);
        let buf = self.local(&name, dtype, extents, outer);
        let depth = self.depth();
        self.emit(depth, Stmt::Write { buf, idx, value });
        let loops = self.open.iter().skip(outer).map(|f| f.axis).collect();
        if let Some(scope) = self.scopes.get_mut(outer) {
            scope.kept.push(Kept { value: v, fixed, loops, buf });
        }
    }
}

/// The most elements of a row that is kept.
pub(super) const MOST_KEPT: u64 = 1 << 15;

/// The fold of a reduction, and what it starts from.
pub(super) fn fold_of(op: ReduceOp, elem: Elem) -> Result<(ScalarOp, u64)> {
    let (rounding, ftz, sign) = (Rounding::NearestEven, false, elem.sign());
    let fold = match (op, elem.is_float()) {
        (ReduceOp::Sum | ReduceOp::Dot, true) => ScalarOp::AddF { rounding, ftz },
        (ReduceOp::Sum | ReduceOp::Dot, false) => ScalarOp::AddI,
        (ReduceOp::Prod, true) => ScalarOp::MulF { rounding, ftz },
        (ReduceOp::Prod, false) => ScalarOp::MulI,
        (ReduceOp::Max, true) => ScalarOp::MaxF { nan: true, ftz },
        (ReduceOp::Min, true) => ScalarOp::MinF { nan: true, ftz },
        (ReduceOp::Max, false) => ScalarOp::MaxI { sign },
        (ReduceOp::Min, false) => ScalarOp::MinI { sign },
        (ReduceOp::And, false) => ScalarOp::And,
        (ReduceOp::Or, false) => ScalarOp::Or,
        (ReduceOp::Xor, false) => ScalarOp::Xor,
        (ReduceOp::ArgMax { .. } | ReduceOp::ArgMin { .. }, _) => ScalarOp::Copy,
        _ => return Err(Refusal::new("a bitwise reduction of floats")),
    };
    Ok((fold, op.identity(elem)))
}
