//! Lift: a verified tile program becomes loop nests over scalars.
//!
//! In: one entry of a [`Module`]. Out: a [`Kernel`]. The lift makes no choices: every tile value of rank 1 or more
//! becomes a local buffer written by its own nest over its shape, a rank-0 value becomes a scalar, loop-carried values
//! and `if` results become buffers (of rank 0 for scalars), tokens vanish because a block runs in program order, and
//! views dissolve into index expressions and conditions.
//!
//! ```text
//! %c = addf %a, %b : tile<4x8xf32>         local c: f32[4, 8]
//!                                    -->   for i in 0..4:                        # free
//!                                            for j in 0..8:                      # free
//!                                              x = a[i, j]
//!                                              y = b[i, j]
//!                                              c[i, j] = add x, y
//! ```
//!
//! Invariants: dimensions of extent 1 get no loop, except in contractions, whose roles name their axes; a buffer is
//! written where its value is defined and, if it is loop-carried, where the loop continues, nowhere else.

mod check;
mod control;
mod elementwise;
mod fold;
mod memory;
mod mma;
mod shape;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use crate::base::provenance::SourceId;
use crate::base::{Code, Diagnostic, location};
use crate::cuda_tile::ir::{AttrKey, Elements, Func, Module, Op, OpId, Opcode, TileType, TileViewType, Type, ValueId};
use crate::cuda_tile::ops;
use crate::cuda_tile::verify::show;
use crate::index::{AxisId, Ix, ValId};
use crate::loops::ir::{
    Axis, Buf, BufId, For, Global, Kernel, LoopKind, Opnd, Param, Place, Site, SiteId, Stmt, Ty, Val,
};
use crate::num::{DType, ScalarOp};

/// The checks that a lift may add to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Assert the evaluator's demands on indices and extents; see [`crate::loops::ir::assertion_code`]. Without
    /// assertions, native code gives the rest (masks, clamped indices) a defined meaning.
    pub check: bool,
}

/// Lifts the entry `entry` of a verified module.
pub fn lift(module: &Module, entry: &str) -> Result<Kernel, Vec<Diagnostic>> {
    lift_with(module, entry, Options::default())
}

pub fn lift_with(module: &Module, entry: &str, options: Options) -> Result<Kernel, Vec<Diagnostic>> {
    let Some(func) = module.entry(entry) else {
        return Err(vec![Diagnostic::error(Code::NoEntry, format!("the module has no entry `{entry}`"))]);
    };
    let mut lift = Lift::new(module, func, options);
    match lift.entry() {
        Ok(()) => Ok(lift.kernel),
        Err(d) => Err(vec![d]),
    }
}

type Result1<T> = Result<T, Diagnostic>;

/// The form that a value of the tile program takes in Loop IR.
#[derive(Clone, Debug)]
enum Lifted {
    Scalar(Opnd),
    Tile(BufId),
    Tensor(Rc<Tensor>),
    View(Rc<Tensor>, Rc<TileViewType>),
    Token,
}

/// A tensor view: a base address with sizes and strides in elements.
#[derive(Debug)]
struct Tensor {
    base: ValId,
    elem: DType,
    shape: Vec<Ix>,
    strides: Vec<Ix>,
}

/// Where a carried value or a result of structured control flow is kept.
#[derive(Clone, Debug)]
enum Slot {
    Scalar(BufId),
    Tile(BufId),
    Token,
}

/// The function being lifted: the entry, or a called function.
struct Frame<'m> {
    func: &'m Func,
    values: Vec<Option<Lifted>>,
    /// Enclosing `for` and `loop` operations of this function, innermost last.
    loops: Vec<control::Target>,
    /// Where an inlined function's early returns go; `None` in the entry.
    returns: Option<Vec<Slot>>,
}

struct Lift<'m> {
    module: &'m Module,
    options: Options,
    kernel: Kernel,
    /// Bodies under construction, innermost last.
    bodies: Vec<Vec<Stmt>>,
    frame: Frame<'m>,
    /// The frames of the callers, outermost first.
    callers: Vec<Frame<'m>>,
    /// Calls expanded so far.
    calls: usize,
    /// Where the current operation comes from.
    from: Option<location::Location>,
    /// The current operation.
    source: Option<SourceId>,
}

/// The element type of a number, or the pointee of a pointer.
fn dtype_of(ty: Ty) -> DType {
    match ty {
        Ty::Num(d) | Ty::Ptr(d) => d,
    }
}

fn konst(dtype: DType, bits: u64) -> Opnd {
    Opnd::Const { dtype, bits }
}

const AXIS_NAMES: [&str; 5] = ["i", "j", "k", "l", "m"];

fn axis_name(dim: usize) -> String {
    AXIS_NAMES.get(dim).map_or_else(|| format!("i{dim}"), |n| n.to_string())
}

impl<'m> Lift<'m> {
    fn new(module: &'m Module, func: &'m Func, options: Options) -> Lift<'m> {
        let globals = globals(module);
        let kernel = Kernel { name: func.name.clone(), globals, ..Kernel::default() };
        Lift {
            module,
            options,
            kernel,
            bodies: vec![Vec::new()],
            frame: Frame::new(func),
            callers: Vec::new(),
            calls: 0,
            from: None,
            source: None,
        }
    }

    fn entry(&mut self) -> Result1<()> {
        let func = self.func();
        for (i, &p) in func.params().iter().enumerate() {
            let Some(tile) = func.tile_ty(p) else {
                let text =
                    format!("parameter {i} of `{}` is {}, which no launch can pass", func.name, show(func.ty(p)));
                return Err(Diagnostic::error(Code::CannotLower, text).at(func.values[p].span));
            };
            let name = func.values[p].name.clone().unwrap_or_else(|| format!("arg{i}"));
            let ty = tile.elem;
            let val = self.kernel.vals.push(Val { ty, name: name.clone() });
            self.kernel.params.push(Param { name, ty, val, div_by: 1, range: None });
            self.bind(p, Lifted::Scalar(Opnd::Val(val)));
        }
        match self.region(Func::BODY)? {
            control::End::Yield(_) | control::End::Return(_) => {}
            _ => return Err(bug("a loop's terminator in an entry's body", func.span)),
        }
        self.kernel.body = self.bodies.pop().unwrap_or_default();
        Ok(())
    }

    fn func(&self) -> &'m Func {
        self.frame.func
    }

    // Values.

    fn bind(&mut self, v: ValueId, lifted: Lifted) {
        self.frame.values[v.0 as usize] = Some(lifted);
    }
    fn value(&self, v: ValueId) -> Result1<Lifted> {
        let f = &self.frame;
        f.values[v.0 as usize].clone().ok_or_else(|| bug("a value used before its definition", f.func.values[v].span))
    }
    fn scalar(&self, v: ValueId) -> Result1<Opnd> {
        match self.value(v)? {
            Lifted::Scalar(o) => Ok(o),
            _ => Err(bug("a scalar was expected here", self.func().values[v].span)),
        }
    }
    fn tile_ty(&self, v: ValueId) -> Result1<&'m TileType> {
        let f = self.func();
        f.tile_ty(v).ok_or_else(|| bug("a tile was expected here", f.values[v].span))
    }
    fn elem(&self, v: ValueId) -> Result1<Ty> {
        Ok(self.tile_ty(v)?.elem)
    }
    fn opnd_ty(&self, o: Opnd) -> Ty {
        match o {
            Opnd::Val(v) => self.kernel.vals[v].ty,
            Opnd::Const { dtype, .. } => Ty::Num(dtype),
        }
    }
    fn name(&self, v: ValueId, default: &str) -> String {
        self.func().values[v].name.clone().unwrap_or_else(|| default.to_string())
    }

    // Statements.

    fn emit(&mut self, stmt: Stmt) {
        if let Some(body) = self.bodies.last_mut() {
            body.push(stmt);
        }
    }
    fn new_val(&mut self, ty: Ty, name: &str) -> ValId {
        let val = self.kernel.vals.push(Val { ty, name: name.to_string() });
        self.kernel.sources.vals.set(val, self.source);
        val
    }
    fn new_axis(&mut self, name: &str) -> AxisId {
        let axis = self.kernel.axes.push(Axis { name: name.to_string(), from: self.from.clone() });
        self.kernel.sources.axes.set(axis, self.source);
        axis
    }
    /// Declares a local buffer in the current body.
    fn local(&mut self, name: &str, ty: Ty, shape: &[u64]) -> BufId {
        let buf = self.kernel.bufs.push(Buf::new(name, ty, shape.to_vec()));
        self.kernel.sources.bufs.set(buf, self.source);
        self.emit(Stmt::Local { buf });
        buf
    }
    fn compute(&mut self, op: ScalarOp, args: Vec<Opnd>, ty: Ty) -> Opnd {
        let dst = self.new_val(ty, "v");
        self.emit(Stmt::Let { dst, op, args });
        Opnd::Val(dst)
    }
    fn index(&mut self, ix: Ix, dtype: DType) -> Opnd {
        let dst = self.new_val(Ty::Num(dtype), "i");
        self.emit(Stmt::Index { dst, ix });
        Opnd::Val(dst)
    }
    fn read(&mut self, buf: BufId, idx: &[Ix]) -> Opnd {
        let Buf { ty, name, .. } = &self.kernel.bufs[buf];
        let (ty, name) = (*ty, name.clone());
        let dst = self.new_val(ty, &name);
        self.emit(Stmt::Read { dst, buf, idx: idx.to_vec() });
        Opnd::Val(dst)
    }
    fn write(&mut self, buf: BufId, idx: &[Ix], value: Opnd) {
        self.emit(Stmt::Write { buf, idx: idx.to_vec(), value });
    }
    /// Element `idx` of a tile, or the scalar itself.
    fn at(&mut self, v: ValueId, idx: &[Ix]) -> Result1<Opnd> {
        match self.value(v)? {
            Lifted::Scalar(o) => Ok(o),
            Lifted::Tile(b) => Ok(self.read(b, idx)),
            _ => Err(bug("a tile was expected here", self.func().values[v].span)),
        }
    }
    /// A scalar as an index expression; `zext`: taken as unsigned.
    fn ix(&self, o: Opnd, zext: bool) -> Ix {
        match o {
            Opnd::Val(val) => Ix::Val { val, zext },
            Opnd::Const { bits, .. } if zext => Ix::Const(bits as i64),
            Opnd::Const { dtype, bits } => {
                let unused = 64 - dtype.bits();
                Ix::Const(((bits << unused) as i64) >> unused)
            }
        }
    }
    fn site(&mut self, op: &Op) -> SiteId {
        let op_name = ops::info(op.opcode).name.to_string();
        let site = self.kernel.sites.push(Site { span: Some(op.span), op: op_name, frames: op.loc.frames().into() });
        self.kernel.sources.sites.set(site, Some(SourceId(op.span.start)));
        site
    }

    // Nests.

    /// Runs `f` with an empty body and returns what it emitted.
    fn body(&mut self, f: impl FnOnce(&mut Self) -> Result1<()>) -> Result1<Vec<Stmt>> {
        self.bodies.push(Vec::new());
        let done = f(self);
        let body = self.bodies.pop().unwrap_or_default();
        done.map(|()| body)
    }

    /// A nest of loops over `shape`; dimensions of extent 1 get the index 0 and no loop.
    fn nest(&mut self, shape: &[u64], kind: LoopKind, f: impl FnOnce(&mut Self, &[Ix]) -> Result1<()>) -> Result1<()> {
        let axes: Vec<Option<AxisId>> =
            shape.iter().enumerate().map(|(d, &n)| (n != 1).then(|| self.new_axis(&axis_name(d)))).collect();
        let idx: Vec<Ix> = axes.iter().map(|a| a.map_or(Ix::Const(0), Ix::Axis)).collect();
        let mut body = self.body(|l| f(l, &idx))?;
        for (axis, &n) in axes.iter().zip(shape).rev() {
            if let Some(axis) = *axis {
                body = vec![counted(axis, n, kind, body)];
            }
        }
        for stmt in body {
            self.emit(stmt);
        }
        Ok(())
    }

    /// Binds `result` to the tile whose element at an index `f` computes.
    fn define(&mut self, result: ValueId, f: impl FnOnce(&mut Self, &[Ix]) -> Result1<Opnd>) -> Result1<()> {
        self.define_in_order(result, LoopKind::Free, f)
    }
    fn define_in_order(
        &mut self,
        result: ValueId,
        kind: LoopKind,
        f: impl FnOnce(&mut Self, &[Ix]) -> Result1<Opnd>,
    ) -> Result1<()> {
        let ty = self.tile_ty(result)?;
        if ty.shape.is_empty() {
            let value = f(self, &[])?;
            self.bind(result, Lifted::Scalar(value));
            return Ok(());
        }
        let name = self.name(result, "t");
        let buf = self.local(&name, ty.elem, &ty.shape);
        self.nest(&ty.shape, kind, |l, idx| {
            let value = f(l, idx)?;
            l.write(buf, idx, value);
            Ok(())
        })?;
        self.bind(result, Lifted::Tile(buf));
        Ok(())
    }
    fn copy(&mut self, from: BufId, to: BufId) -> Result1<()> {
        let shape = self.kernel.bufs[to].shape.clone();
        self.nest(&shape, LoopKind::Free, |l, idx| {
            let v = l.read(from, idx);
            l.write(to, idx, v);
            Ok(())
        })
    }

    // Operations.

    fn op(&mut self, id: OpId) -> Result1<()> {
        let op = &self.func().ops[id];
        let around = self.source.replace(SourceId(op.span.start));
        self.from = op.loc.place().cloned();
        let done = self.lift_op(op);
        self.source = around;
        done
    }

    fn lift_op(&mut self, op: &'m Op) -> Result1<()> {
        use Opcode::*;
        match op.opcode {
            Broadcast => self.broadcast(op),
            Cat => self.cat(op),
            Constant => self.constant(op),
            Extract => self.extract(op),
            Insert => self.insert(op),
            Iota => self.iota(op),
            Pack => self.pack(op),
            Unpack => self.unpack(op),
            Permute => self.permute(op),
            Reshape => self.reshape(op),

            Reduce => self.reduce(op),
            Scan => self.scan(op),
            ExpGenerate => self.generate(op),
            MmaF | MmaI => self.mma(op),
            MmaFScaled => self.mma_scaled(op),

            GetGlobal => self.get_global(op),
            GetTileBlockId => self.launch_numbers(op, Ix::Block),
            GetNumTileBlocks => self.launch_numbers(op, Ix::Grid),
            Alloca => self.alloca(op),
            LoadPtrTko => self.load_ptr(op),
            StorePtrTko => self.store_ptr(op),
            AtomicCasTko => self.atomic_cas(op),
            AtomicRmwTko => self.atomic_rmw(op),
            MakeTensorView => self.make_tensor_view(op),
            MakePartitionView | MakeStridedView | MakeGatherScatterView => self.make_view(op),
            GetTensorShape => self.get_tensor_shape(op),
            GetIndexSpaceShape => self.get_index_space_shape(op),
            // Multicast memory of one device is its own memory.
            LoadViewTko | MultimemLoadReduceViewTko => self.load_view(op),
            StoreViewTko => self.store_view(op, 1, 0),
            MultimemStoreViewTko => self.store_view(op, 0, 1),
            AtomicRedViewTko => self.reduce_view(op, 1, 2),
            MultimemReduceViewTko => self.reduce_view(op, 2, 1),
            ExpScatterStore => self.scatter_store(op),

            MakeToken | JoinTokens | GdcLaunchDependentsTko | GdcWaitTko | MemoryFenceAliasTko => {
                for &r in &op.results {
                    self.bind(r, Lifted::Token);
                }
                Ok(())
            }
            Assume => self.assume(op),
            OptimizationBarrier => self.same(op),

            Assert => self.assert(op),
            PrintTko => self.print(op),
            For => self.for_loop(op),
            Loop => self.endless_loop(op),
            If => self.branch(op),
            ExpCall => self.call(op),
            Break | Continue | Return | Yield => Err(bug("a terminator in the middle of a region", op.span)),
            ExpExternElementwise if op.library_function().is_none() => Err(Diagnostic::error(
                Code::LibraryNeeded,
                "`experimental$extern_elementwise` calls a function of another library, which is not available",
            )
            .at(op.span)
            .help("write the function out in tile operations")),

            _ => self.elementwise(op),
        }
    }

    /// The result is the operand.
    fn same(&mut self, op: &Op) -> Result1<()> {
        let value = self.value(operand(op, 0)?)?;
        self.bind(result(op, 0)?, value);
        Ok(())
    }

    fn assume(&mut self, op: &Op) -> Result1<()> {
        use crate::cuda_tile::ir::{Assumption, Attr};
        let fact = op.attrs.iter().find_map(|(_, a)| match a {
            Attr::Assumption(Assumption::DivBy { divisor, .. }) => Some(*divisor),
            _ => None,
        });
        if let (Some(divisor), Lifted::Scalar(Opnd::Val(v))) = (fact, self.value(operand(op, 0)?)?)
            && let Some(p) = self.kernel.params.iter_mut().find(|p| p.val == v)
            && !crate::cuda_tile::assumed::moves_nothing(self.frame.func, op)
        {
            p.div_by = p.div_by.max(divisor);
        }
        self.same(op)
    }
}

impl<'m> Frame<'m> {
    fn new(func: &'m Func) -> Frame<'m> {
        Frame { func, values: vec![None; func.values.len()], loops: Vec::new(), returns: None }
    }
}

fn counted(axis: AxisId, n: u64, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For(Box::new(For {
        axis,
        lo: Ix::Const(0),
        hi: Ix::Const(n as i64),
        step: Ix::Const(1),
        kind,
        place: Place::None,
        combine: None,
        contraction: None,
        stream: None,
        body,
    }))
}

/// The module's globals, in their order.
pub fn globals(module: &Module) -> Vec<Global> {
    module.globals.iter().map(|g| global(&g.name, &g.value, g.alignment, g.constant)).collect()
}

fn global(name: &str, value: &Elements, align: u64, constant: bool) -> Global {
    let n = value.shape.iter().product::<u64>() as usize;
    Global {
        name: name.to_string(),
        dtype: value.dtype,
        align: align.max(value.dtype.bytes()),
        constant,
        bits: (0..n).map(|i| value.get(i)).collect(),
    }
}

fn operand(op: &Op, group: usize) -> Result1<ValueId> {
    op.operand(group).ok_or_else(|| bug("an operand is missing", op.span))
}

fn result(op: &Op, i: usize) -> Result1<ValueId> {
    op.results.get(i).copied().ok_or_else(|| bug("a result is missing", op.span))
}

fn int_attr(op: &Op, key: AttrKey) -> Result1<i64> {
    op.int(key).ok_or_else(|| bug("an attribute is missing", op.span))
}

/// Reports a program that the verifier should have refused.
fn bug(what: &str, span: crate::base::Span) -> Diagnostic {
    Diagnostic::error(Code::InternalBug, format!("this operation was not verified: {what}")).at(span)
}

fn is_token(ty: &Type) -> bool {
    matches!(ty, Type::Token)
}
