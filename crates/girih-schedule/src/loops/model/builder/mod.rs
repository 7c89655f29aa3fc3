//! Writes loops on demand: the nests of one kernel, from what its stores need.
//!
//! In: a graph, the values that lie in arrays, and a store to make. Out: statements. A demand for an element of a value
//! in an array loads it; a demand for any other element emits its computation, which demands its operands in turn, at
//! the coordinates where the operation reads them. Substitution of coordinates is the only way in which code moves.
//!
//! Invariants:
//! 1. A statement stands in the outermost open loop that binds everything it reads, so a value that is the same for a
//!    whole row is computed once for the row. A value computed for the same element is reused while it is visible.
//! 2. A reduction becomes a loop of its own in that same place, before the loop that needs it.
//! 3. Under a mask, memory is touched only where the mask holds; and an element of an array that may be empty only
//!    inside the loops over it.

mod demand;
mod keep;
mod reduce;

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::base::provenance::SourceId;
use crate::graph::OriginId;
use crate::graph::build::Refusal;
use crate::graph::ir::{self as g, Graph, ValueId};
use crate::index::{AxisId, Facts, Ix, Mask, Simple, ValId};
use crate::loops::ir::*;
use crate::loops::model::fuse::Panels;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};
use keep::Kept;

pub(super) use keep::MOST_KEPT;
pub(super) use reduce::fold_of;

/// One open loop, or the kernel's body.
#[derive(Default)]
struct Scope {
    stmts: Vec<Stmt>,
    known: FxHashMap<(ValueId, Vec<Ix>, Mask), Opnd>,
    kept: Vec<Kept>,
}

/// The source of an element of a value.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Source {
    /// An array, through this pointer.
    Array(ValId),
    /// A local buffer at these indices, whatever the coordinates: the position is fixed by the loops that are open.
    Local(BufId, Vec<Ix>),
}

pub(super) struct NestBuilder<'a> {
    pub graph: &'a Graph,
    pub kernel: Kernel,
    pub sources: BTreeMap<ValueId, Source>,
    /// Values whose rows are worth a local buffer.
    pub keep: Vec<ValueId>,
    /// The value whose array the kernel's result is written into.
    pub replaced: Option<ValueId>,
    /// The values whose arrays are in panels.
    pub panels: BTreeMap<ValueId, Panels>,
    pub facts: Facts,
    simple: RefCell<Simple>,
    /// The condition under which code is emitted now; every load carries it.
    pub mask: Mask,
    scopes: Vec<Scope>,
    /// The loop of each scope but the first.
    open: Vec<For>,
    /// Loops that are open further in, while a reduction is emitted before them.
    pending: Vec<AxisId>,
    axis_depth: BTreeMap<AxisId, usize>,
    val_depth: Vec<usize>,
    /// The operation of the model that code is emitted for.
    source: Option<SourceId>,
}

pub(super) type Result<T> = std::result::Result<T, Refusal>;

impl<'a> NestBuilder<'a> {
    /// A kernel whose first parameters are the graph's symbols.
    pub fn new(graph: &'a Graph, name: &str) -> NestBuilder<'a> {
        let mut e = NestBuilder {
            graph,
            kernel: Kernel { name: name.into(), ..Kernel::default() },
            sources: BTreeMap::new(),
            keep: vec![],
            replaced: None,
            panels: BTreeMap::new(),
            facts: graph.facts(),
            simple: RefCell::default(),
            mask: Mask::default(),
            scopes: vec![Scope::default()],
            open: vec![],
            pending: vec![],
            axis_depth: BTreeMap::new(),
            val_depth: vec![],
            source: None,
        };
        for s in graph.symbols.values() {
            e.param(&s.name, Ty::Num(DType::I64));
            if let Some(p) = e.kernel.params.last_mut() {
                p.range = Some((s.lo, s.hi.unwrap_or(g::MAX_EXTENT)));
            }
        }
        e
    }

    /// Emits code for the operation that gives a value.
    pub fn made_for<T>(&mut self, v: ValueId, emit: impl FnOnce(&mut Self) -> T) -> T {
        let of = self.graph.def(v).map(|(node, _)| SourceId(node.origin.0));
        let around = self.source;
        self.source = of.or(around);
        let done = emit(self);
        self.source = around;
        done
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
        let val = self.kernel.vals.push(Val { ty, name: name.into() });
        self.kernel.sources.vals.set(val, self.source);
        val
    }

    pub fn local(&mut self, name: &str, dtype: DType, shape: Vec<u64>, depth: usize) -> BufId {
        let buf = self.kernel.bufs.push(Buf::new(name, Ty::Num(dtype), shape));
        self.kernel.sources.bufs.set(buf, self.source);
        self.push(depth, Stmt::Local { buf });
        buf
    }

    pub fn depth(&self) -> usize {
        self.scopes.len() - 1
    }

    pub fn push(&mut self, depth: usize, stmt: Stmt) {
        if let Some(scope) = self.scopes.get_mut(depth) {
            scope.stmts.push(stmt);
        }
    }

    /// Emits in the innermost open loop.
    pub fn push_here(&mut self, stmt: Stmt) {
        self.push(self.depth(), stmt);
    }

    /// Opens a loop from 0.
    pub fn open(&mut self, name: &str, hi: Ix, kind: LoopKind) -> AxisId {
        let axis = self.kernel.axes.push(Axis { name: name.into(), from: None });
        self.kernel.sources.axes.set(axis, self.source);
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

    /// Closes the innermost loop, and puts the statement that `make` builds from it in its place.
    pub fn close_into(&mut self, make: impl FnOnce(For) -> Stmt) {
        if let (Some(scope), Some(mut f)) = (self.scopes.pop(), self.open.pop()) {
            f.body = scope.stmts;
            self.push_here(make(f));
        }
    }

    /// Closes the innermost loop; `edit` may set its roles.
    pub fn close_with(&mut self, edit: impl FnOnce(&mut For)) {
        self.close_into(|mut f| {
            edit(&mut f);
            Stmt::For(Box::new(f))
        });
    }

    pub fn close(&mut self) {
        self.close_with(|_| {});
    }

    /// Closes loops until `depth` are open.
    pub fn close_to(&mut self, depth: usize) {
        while self.depth() > depth {
            self.close();
        }
    }

    /// The kernel, all loops being closed.
    pub fn finish(mut self) -> Kernel {
        self.close_to(0);
        self.kernel.body = self.scopes.pop().map(|s| s.stmts).unwrap_or_default();
        unmask(&mut self.kernel.body);
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
        self.push(depth, stmt(dst));
        Opnd::Val(dst)
    }

    pub fn apply(&mut self, op: ScalarOp, dtype: DType, args: Vec<Opnd>) -> Opnd {
        let depth = args.iter().map(|a| self.depth_of_opnd(*a)).max().unwrap_or(0);
        self.define("v", dtype, depth, |dst| Stmt::Let { dst, op, args })
    }

    pub fn site(&mut self, origin: OriginId) -> SiteId {
        let op = self.graph.origins.get(origin).map_or("model", |o| &o.op).to_string();
        let site = self.kernel.sites.push(Site { span: None, op, frames: Default::default() });
        self.kernel.sources.sites.set(site, Some(SourceId(origin.0)));
        site
    }

    pub fn row_major(&self, coords: &[Ix], shape: &[Ix]) -> Ix {
        let mut linear = Ix::Const(0);
        for (c, n) in coords.iter().zip(shape) {
            linear = Ix::add(Ix::mul(linear, n.clone()), c.clone());
        }
        self.simplify(&linear)
    }

    /// The place of an element in a value's array.
    pub fn place(&self, v: ValueId, coords: &[Ix]) -> Ix {
        let shape = &self.graph.values[v].shape;
        match self.panels.get(&v) {
            Some(panels) => self.row_major(&panels.coords(coords), &panels.shape(shape)),
            None => self.row_major(coords, shape),
        }
    }

    /// Stores a value's element through a pointer, where the mask holds.
    pub fn store(&mut self, ptr: ValId, v: ValueId, coords: &[Ix], value: Opnd, origin: OriginId) {
        let info = &self.graph.values[v];
        let (elem, index) = (info.elem.dtype, self.place(v, coords));
        let site = self.site(origin);
        let mem = Mem { base: ptr, index, elem };
        let mask = self.mask.clone();
        self.push_here(Stmt::Store { mem, value, mask, order: Order::Weak, site });
    }
}

/// Removes a select that repeats the mask of a load: `select(test m, load .. where m else c, c)` is the load.
fn unmask(body: &mut Vec<Stmt>) {
    let (mut tests, mut loads, mut same) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    walk::visit(body, &mut |s| match s {
        Stmt::Test { dst, mask } => _ = tests.insert(*dst, mask),
        Stmt::Load { dst, mask, other: Some(other), .. } => _ = loads.insert(*dst, (mask, *other)),
        Stmt::Let { dst, op: ScalarOp::Select, args } => {
            if let [Opnd::Val(test), Opnd::Val(x), other] = args[..]
                && tests.get(&test).zip(loads.get(&x)).is_some_and(|(test, (mask, off))| test == mask && *off == other)
            {
                same.insert(*dst, x);
            }
        }
        _ => {}
    });
    if same.is_empty() {
        return;
    }
    walk::visit_bodies_mut(body, &mut |stmts| stmts.retain(|s| walk::def(s).is_none_or(|v| !same.contains_key(&v))));
    walk::Renaming { vals: same, ..Default::default() }.apply(body);
    let used = walk::refs(body).vals_used;
    let asked = |s: &Stmt| !matches!(s, Stmt::Test { dst, .. } if !used.contains(dst));
    walk::visit_bodies_mut(body, &mut |stmts| stmts.retain(asked));
}
