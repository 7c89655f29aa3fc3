//! The rules of loop and tile IR. [`verify`] returns every breach, each with the statement it concerns.
//!
//! | | loop IR | tile IR |
//! |---|---|---|
//! | `Place`, `Stage`, `Space` other than scratch | no | yes |
//! | `Free` and `Reduce` loops step by 1 and hold no `break`, `continue` or `return` that leaves them | yes | yes |
//! | `Combine`: on a `Reduce` loop, rank-0 accumulators from outside it, an associative operation of their type | yes | yes |
//! | `Contraction`: on a `Reduce` loop over its k; a and b defined in the body, acc written there | yes | yes |
//! | `Stream`: on a `Serial` loop of an open kernel; score and value defined in the body, the sums written there | yes | yes |
//! | `Vector`: on `Free` and `Reduce` loops, lanes a power of two; `Unroll`: a constant trip count | | yes |
//! | `Register`: lanes a power of two that divides the last extent | | yes |
//! | `Matrix`: on the three loops of a product, `Lanes`: on a `Combine` of at most a warp, in a loop over threads | | yes |
//! | `Thread`: on `Free` loops from 0 of a constant extent and on `Combine`s, in no other such loop; `Shared` only outside of them | | yes |
//!
//! Everywhere: values are defined once and before their uses, axes, values and buffers are used in their scope, types
//! agree, subscripts match ranks, and constant ones are in range.

use super::amx::AmxProduct;
use super::cluster_block;
use super::ir::*;
use super::lanes::Folded;
use super::matrix::Product;
use super::overlap::Overlap;
use super::print::{Dialect, Namer};
use super::walk::{self, Part, parts};
use crate::base::id::Id;
use crate::base::{Code, Diagnostic};
use crate::index::facts::MOST_THREADS;
use crate::index::{Facts, simplify};
use crate::num::{DType, ScalarOp};

/// Every rule the kernel breaks; empty when it is well-formed.
pub fn verify(kernel: &Kernel, dialect: Dialect) -> Vec<Diagnostic> {
    let mut v = Verifier {
        kernel,
        dialect,
        namer: None,
        vals: vec![State::Unknown; kernel.vals.len()],
        axes: vec![false; kernel.axes.len()],
        bufs: vec![false; kernel.bufs.len()],
        around: vec![Around::Block],
        threads: None,
        in_product: false,
        among_lanes: false,
        block: None,
        out: Vec::new(),
    };
    v.head();
    v.body(&kernel.body);
    v.out
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Unknown,
    Visible,
    /// Defined, and out of scope.
    Gone,
}

/// The construct around a statement that `break` and `continue` refer to.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Block,
    /// A serial loop or a `loop`.
    Breakable,
    /// A loop that nothing may leave.
    Closed,
}

/// The most breaches that are reported.
const MOST: usize = 100;

struct Verifier<'a> {
    kernel: &'a Kernel,
    dialect: Dialect,
    /// Made when the first message needs names.
    namer: Option<Namer<'a>>,
    vals: Vec<State>,
    axes: Vec<bool>,
    bufs: Vec<bool>,
    around: Vec<Around>,
    /// The enclosing loop over threads.
    threads: Option<&'a For>,
    /// Inside a loop of a product on the matrix unit.
    in_product: bool,
    /// Inside a loop that reads values of other lanes of the warp.
    among_lanes: bool,
    /// The dimension of the enclosing loop over blocks.
    block: Option<u8>,
    out: Vec<Diagnostic>,
}

fn int(ty: Ty) -> Option<DType> {
    match ty {
        Ty::Num(d) if d.is_int() => Some(d),
        _ => None,
    }
}

const I1: Ty = Ty::Num(DType::I1);

/// Returns true if a constant or value of type `from` may stand for `to`: an address is also written as an i64
/// constant.
fn fits(opnd: &Opnd, from: Ty, to: Ty) -> bool {
    from == to || (matches!((opnd, to), (Opnd::Const { .. }, Ty::Ptr(_))) && from == Ty::Num(DType::I64))
}

/// Returns true if a value of the type can lie in memory as `elem`: addresses are i64 there.
fn stored_as(ty: Ty, elem: DType) -> bool {
    ty == Ty::Num(elem) || (matches!(ty, Ty::Ptr(_)) && elem == DType::I64)
}

impl<'a> Verifier<'a> {
    fn say(&mut self, place: Option<&Stmt>, message: impl Into<String>) {
        if self.out.len() >= MOST {
            return;
        }
        let message = message.into();
        let kernel = self.kernel;
        let namer = self.namer.get_or_insert_with(|| Namer::new(kernel));
        let message = match place {
            Some(stmt) => format!("`{}`: {message}", namer.stmt(stmt)),
            None => message,
        };
        self.out.push(Diagnostic::error(Code::InvalidIr, message));
    }

    fn head(&mut self) {
        let k = self.kernel;
        for (i, p) in k.params.iter().enumerate() {
            if p.val.index() != i || k.vals.get(p.val).is_none_or(|v| v.ty != p.ty) {
                self.say(None, format!("the value of parameter `{}` is not value {i} of its type", p.name));
            }
            if let Some(state) = self.vals.get_mut(p.val.index()) {
                *state = State::Visible;
            }
        }
        for g in &k.globals {
            if g.bits.iter().any(|b| b & !g.dtype.mask() != 0) {
                self.say(None, format!("a value of the global `{}` is wider than {}", g.name, g.dtype));
            }
        }
        for o in &k.obligations {
            let params = |ix: &Ix| ix.vals().iter().all(|v| v.index() < k.params.len());
            let mut known: Vec<AxisId> = Vec::new();
            let mut good = o.lo <= o.hi;
            for (axis, lo, hi) in &o.axes {
                good &= params(lo) && params(hi);
                good &= lo.axes().iter().chain(&hi.axes()).all(|a| known.contains(a));
                known.push(*axis);
            }
            good &= params(&o.ix) && o.ix.axes().iter().all(|a| known.contains(a));
            if !good {
                self.say(
                    None,
                    "an obligation must use only parameters, block ids, the grid and its own axes, with lo <= hi",
                );
            }
        }
    }

    fn body(&mut self, body: &'a [Stmt]) {
        let (mut vals, mut bufs) = (Vec::new(), Vec::new());
        for stmt in body {
            self.stmt(stmt);
            parts(stmt, &mut |part| match part {
                Part::DefVal(v) if self.vals.get(v.index()) == Some(&State::Unknown) => {
                    self.vals[v.index()] = State::Visible;
                    vals.push(*v);
                }
                Part::DefBuf(b) if b.index() < self.bufs.len() && !self.bufs[b.index()] => {
                    self.bufs[b.index()] = true;
                    bufs.push(*b);
                }
                _ => {}
            });
        }
        vals.iter().for_each(|v| self.vals[v.index()] = State::Gone);
        bufs.iter().for_each(|b| self.bufs[b.index()] = false);
    }

    /// Returns true if statements write what other threads see, or make threads meet.
    fn shares(&self, body: &[Stmt]) -> bool {
        let effects = walk::effects(body);
        let shared = |b: &BufId| self.kernel.bufs.get(*b).is_some_and(|b| b.space == Space::Shared);
        let mut meets = false;
        walk::visit(body, &mut |s| {
            meets |= s.is_placed(Place::Thread) && matches!(s, Stmt::For(f) if f.kind == LoopKind::Reduce);
            meets |= matches!(s, Stmt::Stage { .. }) || matches!(s, Stmt::Local { buf } if shared(buf));
        });
        let global = !effects.stores.is_empty() || effects.atomic || effects.ordered || effects.prints || effects.traps;
        meets || global || effects.leaves || effects.bufs_written.iter().any(shared)
    }

    /// Verifies a body in which `axes` are visible.
    fn inner(&mut self, stmt: &Stmt, body: &'a [Stmt], around: Around, axes: &[AxisId]) {
        for a in axes {
            match self.axes.get_mut(a.index()) {
                Some(visible) if !*visible => *visible = true,
                _ => self
                    .say(Some(stmt), "the axis already belongs to an enclosing loop, or is not an axis of the kernel"),
            }
        }
        self.around.push(around);
        self.body(body);
        self.around.pop();
        for a in axes {
            if let Some(visible) = self.axes.get_mut(a.index()) {
                *visible = false;
            }
        }
    }

    fn val_ty(&self, v: ValId) -> Option<Ty> {
        self.kernel.vals.get(v).map(|v| v.ty)
    }

    /// Names: those that the statement mentions are visible, and those it defines are new. Returns false when ids are
    /// out of range, so that types cannot be checked.
    fn names(&mut self, stmt: &'a Stmt) -> bool {
        let mut problems: Vec<(bool, String)> = Vec::new();
        parts(stmt, &mut |part| match part {
            Part::DefVal(v) => match self.vals.get(v.index()) {
                None => problems.push((true, format!("there is no value {}", v.0))),
                Some(State::Unknown) => {}
                Some(_) => problems.push((false, "the value is defined twice".to_string())),
            },
            Part::UseVal(v) | Part::Opnd(Opnd::Val(v)) => problems.extend(self.hidden_val(*v)),
            Part::Opnd(Opnd::Const { dtype, bits }) if bits & !dtype.mask() != 0 => {
                problems.push((false, format!("the constant {bits:#x} is wider than {dtype}")));
            }
            Part::Ix(ix) => self.ix_problems(ix, &mut problems),
            Part::RoleAxis(a) => {
                let own = matches!(stmt, Stmt::For(l) if l.axis == *a);
                if !own && !self.axes.get(a.index()).copied().unwrap_or(false) {
                    problems.push((false, "a role names an axis that is not an enclosing loop's".to_string()));
                }
            }
            Part::ReadBuf(b) | Part::WriteBuf(b) | Part::RoleBuf(b) => match self.bufs.get(b.index()) {
                None => problems.push((true, format!("there is no buffer {}", b.0))),
                Some(true) => {}
                Some(false) => problems.push((false, "a buffer is used where no `local` of it is visible".to_string())),
            },
            Part::DefBuf(b) => match self.bufs.get(b.index()) {
                None => problems.push((true, format!("there is no buffer {}", b.0))),
                Some(true) => problems.push((false, "the buffer is already alive".to_string())),
                Some(false) => {}
            },
            _ => {}
        });
        let fatal = problems.iter().any(|(fatal, _)| *fatal);
        for (_, message) in problems {
            self.say(Some(stmt), message);
        }
        !fatal
    }

    fn hidden_val(&self, v: ValId) -> Option<(bool, String)> {
        let kernel = self.kernel;
        let name = || format!("`{}` (value {})", kernel.vals.get(v).map_or("?", |v| &v.name), v.0);
        match self.vals.get(v.index()) {
            None => Some((true, format!("there is no value {}", v.0))),
            Some(State::Visible) => None,
            Some(State::Unknown) => Some((false, format!("{} is used before its definition", name()))),
            Some(State::Gone) => Some((false, format!("{} is used outside its body", name()))),
        }
    }

    fn ix_problems(&self, ix: &Ix, problems: &mut Vec<(bool, String)>) {
        if let Some((a, b)) = ix.operands() {
            self.ix_problems(a, problems);
            self.ix_problems(b, problems);
            if matches!(ix, Ix::FloorDiv(..) | Ix::Mod(..)) && b.as_const().is_some_and(|b| b <= 0) {
                problems.push((false, "a divisor of an index expression must be positive".to_string()));
            }
            return;
        }
        match ix {
            Ix::Axis(a) if !self.axes.get(a.index()).copied().unwrap_or(false) => {
                let name = self.kernel.axes.get(*a).map_or("?", |a| &a.name);
                problems.push((false, format!("the axis `{name}` ({}) does not belong to an enclosing loop", a.0)));
            }
            Ix::Val { val, .. } => {
                problems.extend(self.hidden_val(*val));
                if self.val_ty(*val).is_some_and(|ty| int(ty).is_none()) {
                    problems.push((false, "an index expression can use only integers".to_string()));
                }
            }
            Ix::Block(d) | Ix::Grid(d) if *d > 2 => {
                problems.push((true, "a grid has only three dimensions".to_string()))
            }
            Ix::Thread => problems.push((true, "only Kernel IR has threads: `tx` stands in an index".to_string())),
            _ => {}
        }
    }

    fn check(&mut self, stmt: &Stmt, good: bool, message: &str) {
        if !good {
            self.say(Some(stmt), message);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        if !self.names(stmt) {
            return;
        }
        if let Some(site) = walk::site(stmt) {
            self.check(stmt, self.kernel.sites.get(site).is_some(), "unknown site");
        }
        match stmt {
            Stmt::Let { dst, op, args } => self.scalar(stmt, *dst, *op, args),
            Stmt::Index { dst, .. } => {
                let good = self.val_ty(*dst).is_some_and(|ty| int(ty).is_some());
                self.check(stmt, good, "the value of an index expression must be an integer");
            }
            Stmt::Test { dst, mask } => {
                self.check(stmt, self.val_ty(*dst) == Some(I1), "the value of a test must be an i1");
                self.mask(stmt, mask);
            }
            Stmt::Load { dst, mem, mask, other, .. } => {
                let ty = self.val_ty(*dst);
                self.access(stmt, mem, mask, ty);
                if let Some(other) = other {
                    let good = self.kernel.opnd_ty(other).zip(ty).is_some_and(|(o, t)| fits(other, o, t));
                    self.check(stmt, good, "the value for masked-off elements has another type");
                }
            }
            Stmt::Store { mem, value, mask, .. } => {
                let ty = self.kernel.opnd_ty(value);
                self.access(stmt, mem, mask, ty);
            }
            Stmt::Read { dst, buf, idx } => {
                self.element(stmt, *buf, idx);
                let good = self.val_ty(*dst) == self.kernel.bufs.get(*buf).map(|b| b.ty);
                self.check(stmt, good, "the value's type is not the buffer's");
            }
            Stmt::Write { buf, idx, value } => {
                self.element(stmt, *buf, idx);
                let to = self.kernel.bufs.get(*buf).map(|b| b.ty);
                let good = self.kernel.opnd_ty(value).zip(to).is_some_and(|(from, to)| fits(value, from, to));
                self.check(stmt, good, "the value's type is not the buffer's");
            }
            Stmt::Local { buf } => self.space(stmt, *buf),
            Stmt::For(l) => self.for_loop(stmt, l),
            Stmt::Loop { body } => self.inner(stmt, body, Around::Breakable, &[]),
            Stmt::Break | Stmt::Continue => {
                let good = self.around.last() == Some(&Around::Breakable);
                self.check(stmt, good, "the nearest loop cannot be left or continued");
            }
            Stmt::Return => {
                let good = !self.around.contains(&Around::Closed);
                self.check(stmt, good, "a free or reduce loop cannot be left");
            }
            Stmt::If { cond, then, els } => {
                self.check(stmt, self.kernel.opnd_ty(cond) == Some(I1), "a condition must be an i1");
                let around = self.around.last().copied().unwrap_or(Around::Block);
                self.inner(stmt, then, around, &[]);
                self.inner(stmt, els, around, &[]);
            }
            Stmt::Rmw { dst, op, mem, value, mask, .. } => {
                let ty = self.kernel.opnd_ty(value);
                self.access(stmt, mem, mask, ty);
                self.check(stmt, self.val_ty(*dst) == ty, "the old value must have the operand's type");
                let good = match op {
                    RmwOp::AddF => mem.elem.is_float(),
                    RmwOp::Xchg => true,
                    _ => mem.elem.is_int(),
                };
                self.check(stmt, good && mem.elem.bits() >= 8, "this atomic is not defined for these elements");
            }
            Stmt::Cas { dst, mem, cmp, value, mask, .. } => {
                let ty = self.kernel.opnd_ty(value);
                self.access(stmt, mem, mask, ty);
                let good = self.val_ty(*dst) == ty && self.kernel.opnd_ty(cmp) == ty;
                self.check(stmt, good, "the old, the compared and the new value must have the same type");
                self.check(stmt, mem.elem.bits() >= 8, "this atomic is not defined for these elements");
            }
            Stmt::Print { .. } => {}
            Stmt::Assert { cond, .. } => {
                self.check(stmt, self.kernel.opnd_ty(cond) == Some(I1), "a condition must be an i1");
            }
            Stmt::GlobalAddr { dst, global } => match self.kernel.globals.get(*global as usize) {
                Some(g) => {
                    let good = self.val_ty(*dst) == Some(Ty::Ptr(g.dtype));
                    self.check(stmt, good, "the address of a global must point at its elements");
                }
                None => self.say(Some(stmt), "unknown global"),
            },
            Stmt::Alloca { dst, align, .. } => {
                let good = matches!(self.val_ty(*dst), Some(Ty::Ptr(_)));
                self.check(stmt, good, "the address of an alloca must be a pointer");
                self.check(stmt, align.is_power_of_two(), "an alignment must be a power of two");
            }
            Stmt::Prefetch { mem } => {
                self.check(stmt, self.dialect == Dialect::Tile, "loop IR cannot prefetch");
                self.check(
                    stmt,
                    matches!(self.val_ty(mem.base), Some(Ty::Ptr(_))),
                    "the base of a prefetch must be a pointer",
                );
            }
            Stmt::Stage { buf, body, .. } => {
                self.check(stmt, self.dialect == Dialect::Tile, "loop IR cannot stage operands");
                // The body fills the buffer that this statement declares.
                let free = self.bufs.get(buf.index()) == Some(&false);
                if free {
                    self.bufs[buf.index()] = true;
                }
                self.inner(stmt, body, Around::Closed, &[]);
                if free {
                    self.bufs[buf.index()] = false;
                }
            }
        }
    }

    fn mask(&mut self, stmt: &Stmt, mask: &Mask) {
        let good = mask.vals.iter().all(|v| self.val_ty(*v) == Some(I1));
        self.check(stmt, good, "the values of a mask must be i1");
    }

    fn access(&mut self, stmt: &Stmt, mem: &Mem, mask: &Mask, value: Option<Ty>) {
        let good = matches!(self.val_ty(mem.base), Some(Ty::Ptr(_)));
        self.check(stmt, good, "the base of an access must be a pointer");
        let good = value.is_some_and(|ty| stored_as(ty, mem.elem));
        self.check(stmt, good, "the value's type is not that of the elements");
        self.mask(stmt, mask);
    }

    fn element(&mut self, stmt: &Stmt, buf: BufId, idx: &[Ix]) {
        let Some(b) = self.kernel.bufs.get(buf) else { return };
        if b.shape.len() != idx.len() {
            let message = format!("{} subscripts for a buffer of rank {}", idx.len(), b.shape.len());
            return self.say(Some(stmt), message);
        }
        if b.space == Space::Private {
            let own = match (idx.first(), self.threads) {
                (Some(Ix::Axis(a)), Some(t)) => *a == t.axis,
                // A product itself says which lanes have its operand; accesses to other lanes' parts are checked as a
                // whole.
                (Some(_), Some(_)) => self.among_lanes,
                _ => false,
            };
            self.check(stmt, own, "the first subscript of a private buffer must be the thread at hand");
        }
        let outside = |(ix, d): (&Ix, &u64)| ix.as_const().is_some_and(|c| c < 0 || c as u64 >= *d);
        if idx.iter().zip(&b.shape).any(outside) {
            self.say(Some(stmt), "a subscript is out of range");
        }
    }

    fn space(&mut self, stmt: &Stmt, buf: BufId) {
        let Some(b) = self.kernel.bufs.get(buf) else { return };
        if b.space != Space::Scratch {
            self.check(stmt, self.dialect == Dialect::Tile, "loop IR cannot place buffers");
        }
        if b.space == Space::Shared {
            self.check(stmt, self.threads.is_none(), "a buffer of one thread cannot be shared");
            self.check(stmt, !b.shape.is_empty(), "a scalar variable cannot be shared");
        }
        if let Space::Kept { .. } = b.space {
            let good = self.threads.is_none() && !b.shape.is_empty();
            self.check(stmt, good, "a worker keeps buffers, not scalars or memory of one thread");
        }
        if b.swizzle > 0 {
            let row = b.shape.last().map_or(0, |n| n.saturating_mul(b.element_bytes()));
            let good = b.space == Space::Shared && matches!(b.swizzle, 32 | 64 | 128) && row == u64::from(b.swizzle);
            self.check(stmt, good, "a swizzle is of shared memory, of 32, 64 or 128 bytes, which a row has");
        }
        if b.space == Space::Private {
            let threads = b.shape.first().is_some_and(|n| *n <= MOST_THREADS.into());
            self.check(
                stmt,
                threads && self.threads.is_none(),
                "a private buffer is one of all threads, at most 1024 of them",
            );
        }
        let Space::Register { lanes } = b.space else { return };
        let whole = b.shape.last().is_some_and(|n| lanes > 0 && n.is_multiple_of(lanes.into()));
        let good = whole && lanes.is_power_of_two() && matches!(b.ty, Ty::Num(_));
        self.check(stmt, good, "the lanes of a register buffer must be a power of two that divides its last extent");
    }

    fn for_loop(&mut self, stmt: &'a Stmt, l: &'a For) {
        let serial = l.kind == LoopKind::Serial;
        self.check(stmt, serial || l.step.is_const(1), "free and reduce loops must step by 1");
        if l.place != Place::None {
            self.check(stmt, self.dialect == Dialect::Tile, "loop IR cannot place loops");
        }
        match l.place {
            Place::None => {}
            Place::Vector { lanes } => {
                self.check(stmt, !serial, "a serial loop cannot have lanes");
                self.check(stmt, lanes.is_power_of_two(), "lanes must be a power of two");
            }
            Place::Unroll => {
                let trips = simplify(&Ix::sub(l.hi.clone(), l.lo.clone()), &Facts::new());
                let good = trips.as_const().is_some() && l.step.as_const().is_some();
                self.check(stmt, good, "an unrolled loop must have a constant trip count");
            }
            Place::Thread => {
                if let (LoopKind::Reduce, Some(c)) = (l.kind, &l.combine) {
                    let good = c.ways >= 32 && c.ways <= MOST_THREADS;
                    self.check(stmt, good, "threads that combine must be whole warps, at most 1024 of them");
                } else {
                    let extent = l.hi.as_const().filter(|n| (1..=i64::from(MOST_THREADS)).contains(n));
                    let good = l.kind == LoopKind::Free && l.lo.is_const(0) && extent.is_some();
                    self.check(stmt, good, "a loop over threads must be free, from 0 to a constant of at most 1024");
                }
                self.check(stmt, self.threads.is_none(), "a thread cannot have threads of its own");
            }
            Place::ClusterBlock => {
                let nest = self.kernel.body.iter().find_map(|s| match s {
                    Stmt::For(f) if f.body.iter().any(|inner| std::ptr::eq(inner, stmt)) => Some(f),
                    _ => None,
                });
                let why = match nest {
                    Some(nest) => cluster_block::problem(self.kernel, nest, l),
                    None => Some("it must stand in the loop over blocks itself"),
                };
                self.check(stmt, why.is_none(), why.unwrap_or_default());
            }
            Place::Lanes => {
                let why = match self.threads {
                    Some(t) => Folded::of(t.axis, l).err(),
                    None => Some("only threads are lanes of a warp"),
                };
                self.check(stmt, why.is_none(), why.unwrap_or_default());
            }
            Place::Matrix | Place::Warpgroup | Place::Tcgen05 if self.in_product => {}
            Place::Matrix | Place::Warpgroup | Place::Tcgen05 => {
                let threads = |t: &For| (t.axis, t.hi.as_const().unwrap_or(0).max(0) as u64);
                let why = match self.threads {
                    Some(t) => Product::of(self.kernel, threads(t), l).err(),
                    None if l.place == Place::Matrix => AmxProduct::of(self.kernel, l).err(),
                    None => Some("only threads are warpgroups"),
                };
                self.check(stmt, why.is_none(), why.unwrap_or_default());
            }
            Place::TmaStore => {
                let mut body = std::slice::from_ref(stmt);
                while let [Stmt::For(inner)] = body {
                    body = &inner.body;
                }
                let shared = |buf: BufId| self.kernel.bufs.get(buf).is_some_and(|b| b.space == Space::Shared);
                let copies = matches!(body, [Stmt::Read { buf, .. }, Stmt::Store { .. }] if shared(*buf));
                self.check(stmt, copies, "a box is copied by loops around one read of shared memory and its store");
                self.check(stmt, self.threads.is_none(), "a thread cannot have threads of its own");
            }
            Place::Pipeline { depth, roles, overlap } => {
                let (stages, rest) = l.stages();
                let counts = serial && l.counts_from_zero();
                // One generation is enough for stages that TMA fills: their mbarriers belong to the pipeline.
                let deep = depth >= 2 || depth == 1 && stages.iter().any(|s| s.filled(Filled::Tma));
                self.check(
                    stmt,
                    counts && deep,
                    "a pipeline is a serial loop from 0 in steps of 1, two or more deep or filled by TMA",
                );
                let long = l.hi.as_const().is_none_or(|n| n > i64::from(depth));
                let goes_on = || Overlap::of(self.kernel, l).is_ok() && (depth >= 3 || !long);
                self.check(
                    stmt,
                    !overlap || goes_on(),
                    "what goes on during the next iteration is its last product of warpgroups of what TMA fills, three or more deep",
                );
                let (first, then) = (walk::effects(stages), walk::effects(rest));
                self.check(stmt, !stages.is_empty(), "a pipeline's body must begin with stages");
                let apart = then.stores.is_empty() && first.bufs_read.is_disjoint(&then.bufs_written);
                self.check(stmt, apart, "the rest of a pipeline's body writes what its stages may read");
                let own = !roles || depth >= 2 && stages.iter().all(|s| s.filled(Filled::Tma)) && !self.shares(rest);
                self.check(
                    stmt,
                    own,
                    "a pipeline with roles is filled by TMA, and the rest of its body shares nothing else",
                );
            }
            Place::Block { dim, group, takers, cluster } => {
                self.check(stmt, self.kernel.open, "only open kernels can place blocks");
                self.check(stmt, dim < 3, "a grid has only three dimensions");
                let good = l.kind == LoopKind::Free && l.lo.is_const(0);
                self.check(stmt, good, "a loop over blocks must be free and start at 0");
                let twice =
                    walk::loops(&l.body).any(|f| matches!(f.place, Place::Block { dim: other, .. } if other == dim));
                self.check(stmt, !twice, "loops over blocks that stand in each other count along different dimensions");
                let inside = self.block.is_some_and(|around| around != dim);
                self.check(stmt, group == 0 || inside, "groups of blocks are of a loop inside another one over blocks");
                let nest = |s: &Stmt| matches!(s, Stmt::For(f) if matches!(f.place, Place::Block { .. }));
                let only = self.kernel.body.iter().filter(|s| nest(s)).count() == 1;
                let alone = self.block.is_none() && only;
                self.check(
                    stmt,
                    takers == 0 || alone,
                    "blocks take iterations in turn on the outermost loop over blocks of the only nest of them",
                );
                let whole = |cluster: u32| {
                    let inner = !l.body.iter().any(nest);
                    inner && l.hi.as_const().is_some_and(|n| n % i64::from(cluster) == 0) && group % cluster == 0
                };
                self.check(
                    stmt,
                    cluster == 0 || only && dim == 0 && takers == 0 && whole(cluster),
                    "clusters are of the innermost loop of the only nest over blocks, along x, and it and its groups have whole ones",
                );
                let params = l.hi.vals().iter().all(|v| v.index() < self.kernel.params.len());
                self.check(
                    stmt,
                    params && l.hi.axes().is_empty(),
                    "the number of blocks must follow from the parameters",
                );
            }
        }
        if let Some(c) = &l.combine {
            self.check(stmt, l.kind == LoopKind::Reduce, "only a reduce loop can combine");
            self.check(stmt, !c.accs.is_empty(), "a combine needs an accumulator");
            self.check(stmt, c.ways.is_power_of_two(), "the ways of a combine must be a power of two");
            let several = matches!(l.place, Place::Vector { .. } | Place::Thread | Place::Lanes | Place::ClusterBlock);
            self.check(
                stmt,
                c.ways == 1 || several,
                "only a vector loop or one over threads, lanes or the blocks of a cluster can fold several ways",
            );
            for acc in &c.accs {
                let CombineOp::Scalar { op, identity } = c.op;
                let Some(b) = self.kernel.bufs.get(*acc) else { continue };
                self.check(stmt, b.shape.is_empty(), "an accumulator of a combine must have rank 0");
                let good = matches!(b.ty, Ty::Num(d) if op.folds(d) && identity & !d.mask() == 0);
                self.check(stmt, good, "this operation cannot combine these accumulators");
            }
        }
        let around = (self.threads, self.in_product, self.among_lanes, self.block);
        if l.place == Place::Thread {
            self.threads = Some(l);
        }
        self.block = match l.place {
            Place::Block { dim, .. } => Some(dim),
            _ => None,
        };
        self.in_product = l.place.is_product();
        self.among_lanes = l.place.is_product() || l.place == Place::Lanes;
        self.inner(stmt, &l.body, if serial { Around::Breakable } else { Around::Closed }, &[l.axis]);
        (self.threads, self.in_product, self.among_lanes, self.block) = around;
        if let Some(s) = &l.stream {
            self.check(stmt, serial && self.kernel.open, "a stream must be on a serial loop of an open kernel");
            let refs = walk::refs(&l.body);
            let good = [s.score, s.value].iter().all(|v| refs.vals_defined.contains(v));
            self.check(stmt, good, "a stream's score and value must be defined in its body");
            let good = [s.greatest, s.total, s.acc].iter().all(|b| refs.bufs_written.contains(b));
            self.check(stmt, good, "a stream must update its three sums");
        }
        if let Some(c) = &l.contraction {
            let good = l.kind == LoopKind::Reduce && c.k.last() == Some(&l.axis);
            self.check(stmt, good, "a contraction must be on the reduce loop over its k");
            let refs = walk::refs(&l.body);
            // With several reduce loops an operand may be defined in an outer one.
            let defined = |v: &ValId| c.k.len() > 1 || refs.vals_defined.contains(v);
            self.check(
                stmt,
                defined(&c.a) && defined(&c.b),
                "the operands of a contraction must be defined in its body",
            );
            if self.dialect == Dialect::Tile && !self.kernel.open {
                let one = [&c.m, &c.n, &c.k].iter().all(|axes| axes.len() == 1);
                self.check(stmt, one, "the roles of a placed contraction must be one axis each");
            }
            self.check(stmt, refs.bufs_written.contains(&c.acc), "a contraction must write its accumulator");
        }
    }

    fn scalar(&mut self, stmt: &Stmt, dst: ValId, op: ScalarOp, args: &[Opnd]) {
        let arity = op.arity();
        if args.len() != arity {
            return self.say(Some(stmt), format!("the operation must have {arity} operands"));
        }
        let tys: Option<Vec<Ty>> = args.iter().map(|a| self.kernel.opnd_ty(a)).collect();
        let (Some(tys), Some(to)) = (tys, self.val_ty(dst)) else { return };
        if !op.accepts(&tys, to) {
            self.say(Some(stmt), "the operation is not defined for these types");
        }
    }
}
