//! The compact form: instructions over slots.
//!
//! A block's slots hold, one after the other, the kernel's values (bits, zero-extended), its axes, the block id and the
//! grid, hidden numbers of loops, and constants.

use super::expr::{Expr, Leaves, MaskCode, Slot};
use crate::base::id::Id;
use crate::loops::ir::*;
use crate::loops::walk;
use crate::num::{DType, ScalarOp};

pub(super) struct MemCode {
    pub base: Slot,
    pub index: Expr,
    pub elem: DType,
    pub mask: MaskCode,
    pub site: SiteId,
    pub ordered: bool,
}

pub(super) struct Element {
    pub buf: u32,
    /// Each subscript with its dimension.
    pub idx: Box<[(Expr, u64)]>,
}

pub(super) enum Shown {
    Scalar(Slot, Ty),
    Buf(u32),
}

/// A loop's counter and the hidden slots of its end and step.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    pub axis: Slot,
    pub end: Slot,
    pub step: Slot,
}

pub(super) enum Inst {
    Let {
        dst: Slot,
        op: ScalarOp,
        ty: DType,
        args: [Slot; 3],
        count: u8,
    },
    /// A pointer plus elements: the index is sign-extended by `shift`.
    PtrAdd {
        dst: Slot,
        elem: DType,
        base: Slot,
        index: Slot,
        shift: u8,
    },
    Index {
        dst: Slot,
        ix: Expr,
        mask: u64,
    },
    Test {
        dst: Slot,
        mask: MaskCode,
    },
    Load {
        dst: Slot,
        mem: MemCode,
        other: Slot,
    },
    Store {
        mem: MemCode,
        value: Slot,
    },
    Read {
        dst: Slot,
        from: Element,
    },
    Write {
        to: Element,
        value: Slot,
    },
    Local {
        buf: u32,
    },
    /// Sets the counter up; jumps to `exit` when there is no iteration.
    For {
        counter: Counter,
        lo: Expr,
        hi: Expr,
        step: Expr,
        exit: u32,
    },
    /// Counts on; jumps to `body` while iterations are left.
    Next {
        counter: Counter,
        body: u32,
    },
    /// Around and in a `Vector` reduce loop, by its number: see [`Fold`].
    FoldBegin(u32),
    FoldIn(u32),
    FoldOut(u32),
    FoldEnd(u32),
    Jump(u32),
    JumpIfFalse {
        cond: Slot,
        to: u32,
    },
    Return,
    Rmw {
        dst: Slot,
        op: RmwOp,
        mem: MemCode,
        value: Slot,
    },
    Cas {
        dst: Slot,
        mem: MemCode,
        cmp: Slot,
        value: Slot,
    },
    Print {
        format: String,
        args: Box<[Shown]>,
        site: SiteId,
    },
    Assert {
        cond: Slot,
        message: String,
        site: SiteId,
    },
    Alloca {
        dst: Slot,
        bytes: u64,
        align: u64,
        site: SiteId,
    },
}

/// A reduce loop that keeps `parts` partial accumulators per accumulator, combined by halving.
pub(super) struct Fold {
    pub counter: Counter,
    pub accs: Box<[(u32, DType)]>,
    pub op: ScalarOp,
    pub identity: u64,
    pub parts: u64,
    /// Iterations that whole groups of `parts` leave over take turns on this number of them.
    pub lanes: u64,
    /// Where the loop started, and the first iteration that is left over.
    pub start: Slot,
    pub split: Slot,
}

pub(super) struct Program {
    pub code: Vec<Inst>,
    pub folds: Vec<Fold>,
    pub slots: usize,
    /// Constants, and the slot of the first.
    pub consts: Vec<u64>,
    pub first_const: usize,
    /// The slot of each global's address.
    pub globals: Vec<Slot>,
    pub first_block: usize,
    /// Elements of each buffer, and its type and shape.
    pub bufs: Vec<(usize, Ty, Vec<u64>)>,
    /// The bytes of one block's slots, buffers and partial sums; `None` where that overflows.
    pub bytes: Option<u64>,
    /// Blocks may wait for each other.
    pub cooperative: bool,
}

type Res<T> = Result<T, String>;

struct Compiler<'a> {
    kernel: &'a Kernel,
    code: Vec<Inst>,
    folds: Vec<Fold>,
    hidden: u32,
    first_const: u32,
    consts: Vec<u64>,
    globals: Vec<Slot>,
    /// The enclosing loops that break and continue may refer to.
    loops: Vec<Jumps>,
}

/// Jump instructions whose targets are not known yet: behind a loop, and at its next iteration.
#[derive(Default)]
struct Jumps {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// Hidden slots a loop statement may take.
const HIDDEN_PER_LOOP: u32 = 4;

pub(super) fn compile(kernel: &Kernel) -> Res<Program> {
    let loops = walk::loops(&kernel.body).count() as u32;
    let first_block = kernel.vals.len() + kernel.axes.len();
    let hidden = first_block as u32 + 6;
    let first_const = hidden + kernel.globals.len() as u32 + HIDDEN_PER_LOOP * loops;
    let mut c = Compiler {
        kernel,
        code: vec![],
        folds: vec![],
        hidden,
        first_const,
        consts: vec![],
        globals: vec![],
        loops: vec![],
    };
    for _ in &kernel.globals {
        let slot = c.hidden();
        c.globals.push(slot);
    }
    c.body(&kernel.body)?;
    c.code.push(Inst::Return);
    let mut bufs = Vec::new();
    for b in kernel.bufs.values() {
        let mut count = 1usize;
        for d in &b.shape {
            count = usize::try_from(*d).ok().and_then(|d| count.checked_mul(d)).ok_or("a buffer is too large")?;
        }
        bufs.push((count, b.ty, b.shape.clone()));
    }
    let effects = walk::effects(&kernel.body);
    let slots = first_const as usize + c.consts.len();
    let partials = c.folds.iter().map(|f| (f.parts as usize).checked_mul(f.accs.len()));
    let elements = bufs.iter().map(|b| Some(b.0)).chain(partials).try_fold(slots, |sum, n| sum.checked_add(n?));
    Ok(Program {
        slots,
        bytes: elements.and_then(|n| (n as u64).checked_mul(8)),
        code: c.code,
        folds: c.folds,
        consts: c.consts,
        first_const: first_const as usize,
        globals: c.globals,
        first_block,
        bufs,
        cooperative: effects.atomic || effects.ordered,
    })
}

impl Leaves for Compiler<'_> {
    fn axis(&self, a: AxisId) -> Res<Slot> {
        if a.index() < self.kernel.axes.len() {
            Ok(self.kernel.vals.len() as u32 + a.0)
        } else {
            Err(format!("there is no axis {}", a.0))
        }
    }

    fn integer(&self, val: ValId) -> Res<(Slot, u32)> {
        Ok((self.val(val)?, self.ty(val)?.held().bits()))
    }

    fn block(&self) -> Slot {
        (self.kernel.vals.len() + self.kernel.axes.len()) as u32
    }
}

impl Compiler<'_> {
    fn hidden(&mut self) -> Slot {
        self.hidden += 1;
        self.hidden - 1
    }

    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    fn val(&self, v: ValId) -> Res<Slot> {
        if v.index() < self.kernel.vals.len() { Ok(v.0) } else { Err(format!("there is no value {}", v.0)) }
    }

    fn ty(&self, v: ValId) -> Res<Ty> {
        self.kernel.vals.get(v).map(|v| v.ty).ok_or_else(|| format!("there is no value {}", v.0))
    }

    fn buf(&self, b: BufId) -> Res<u32> {
        if b.index() < self.kernel.bufs.len() { Ok(b.0) } else { Err(format!("there is no buffer {}", b.0)) }
    }

    fn constant(&mut self, bits: u64) -> Slot {
        let at = self.consts.iter().rev().take(64).position(|c| *c == bits).map(|back| self.consts.len() - 1 - back);
        let at = at.unwrap_or_else(|| {
            self.consts.push(bits);
            self.consts.len() - 1
        });
        self.first_const + at as u32
    }

    fn opnd(&mut self, opnd: &Opnd) -> Res<Slot> {
        match opnd {
            Opnd::Val(v) => self.val(*v),
            Opnd::Const { bits, .. } => Ok(self.constant(*bits)),
        }
    }

    fn opnd_ty(&self, opnd: &Opnd) -> Res<Ty> {
        match opnd {
            Opnd::Val(v) => self.ty(*v),
            Opnd::Const { dtype, .. } => Ok(Ty::Num(*dtype)),
        }
    }

    fn expr(&self, ix: &Ix) -> Res<Expr> {
        Expr::compile(ix, self)
    }

    fn mask(&self, mask: &Mask) -> Res<MaskCode> {
        MaskCode::compile(mask, self)
    }

    fn mem(&self, mem: &Mem, mask: &Mask, order: Order, site: SiteId) -> Res<MemCode> {
        Ok(MemCode {
            base: self.val(mem.base)?,
            index: self.expr(&mem.index)?,
            elem: mem.elem,
            mask: self.mask(mask)?,
            site,
            ordered: order != Order::Weak,
        })
    }

    fn element(&self, buf: BufId, idx: &[Ix]) -> Res<Element> {
        let id = self.buf(buf)?;
        let shape = &self.kernel.bufs[buf].shape;
        if shape.len() != idx.len() {
            return Err(format!("{} subscripts for a buffer of rank {}", idx.len(), shape.len()));
        }
        let idx = idx.iter().zip(shape).map(|(ix, d)| Ok((self.expr(ix)?, *d)));
        Ok(Element { buf: id, idx: idx.collect::<Res<_>>()? })
    }

    fn body(&mut self, body: &[Stmt]) -> Res<()> {
        body.iter().try_for_each(|s| self.stmt(s))
    }

    /// Points a jump made earlier at `to`.
    fn point(&mut self, jump: usize, to: u32) {
        if let Some(Inst::Jump(t) | Inst::JumpIfFalse { to: t, .. } | Inst::For { exit: t, .. }) =
            self.code.get_mut(jump)
        {
            *t = to;
        }
    }

    fn jump(&mut self) -> usize {
        self.code.push(Inst::Jump(0));
        self.code.len() - 1
    }

    /// A counted loop around the code of `body`; `continue` goes to the counting.
    fn counted(
        &mut self,
        axis: AxisId,
        [lo, hi, step]: [Expr; 3],
        fold: Option<(&Combine, Place)>,
        breakable: bool,
        body: &mut dyn FnMut(&mut Self) -> Res<()>,
    ) -> Res<()> {
        let counter = Counter { axis: self.axis(axis)?, end: self.hidden(), step: self.hidden() };
        let fold = match fold {
            Some((combine, place)) => Some(self.fold(counter, combine, place)?),
            None => None,
        };
        let head = self.code.len();
        self.code.push(Inst::For { counter, lo, hi, step, exit: 0 });
        if let Some(f) = fold {
            // The fold sees empty loops too.
            self.point(head, head as u32 + 1);
            self.code.push(Inst::FoldBegin(f));
        }
        let start = self.here();
        if let Some(f) = fold {
            self.code.push(Inst::FoldIn(f));
        }
        if breakable {
            self.loops.push(Jumps::default());
        }
        body(self)?;
        let jumps = if breakable { self.loops.pop().unwrap_or_default() } else { Jumps::default() };
        let next = self.here();
        if let Some(f) = fold {
            self.code.push(Inst::FoldOut(f));
        }
        self.code.push(Inst::Next { counter, body: start });
        let end = self.here();
        match fold {
            Some(f) => self.code.push(Inst::FoldEnd(f)),
            None => self.point(head, end),
        }
        jumps.continues.iter().for_each(|j| self.point(*j, next));
        jumps.breaks.iter().for_each(|j| self.point(*j, end));
        Ok(())
    }

    fn fold(&mut self, counter: Counter, combine: &Combine, place: Place) -> Res<u32> {
        let CombineOp::Scalar { op, identity } = combine.op;
        let mut accs = Vec::new();
        for acc in &combine.accs {
            let id = self.buf(*acc)?;
            let b = &self.kernel.bufs[*acc];
            if !b.shape.is_empty() {
                return Err("an accumulator of a combine has rank 0".to_string());
            }
            accs.push((id, b.ty.held()));
        }
        let ways = u64::from(combine.ways);
        let (parts, lanes) = match place {
            Place::Vector { lanes } => (u64::from(lanes) * ways, u64::from(lanes)),
            _ => (ways, ways),
        };
        if !parts.is_power_of_two() || parts > 1 << 20 {
            return Err("the partial accumulators of a reduction are a power of two".to_string());
        }
        if op.arity() != 2 {
            return Err("a reduction combines by a binary operation".to_string());
        }
        let (start, split) = (self.hidden(), self.hidden());
        self.folds.push(Fold { counter, accs: accs.into(), op, identity, parts, lanes, start, split });
        Ok(self.folds.len() as u32 - 1)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Res<()> {
        let inst = match stmt {
            Stmt::Let { dst, op, args } => self.scalar(*dst, *op, args)?,
            Stmt::Index { dst, ix } => {
                Inst::Index { dst: self.val(*dst)?, ix: self.expr(ix)?, mask: self.ty(*dst)?.held().mask() }
            }
            Stmt::Test { dst, mask } => Inst::Test { dst: self.val(*dst)?, mask: self.mask(mask)? },
            // The memory to prefetch may not exist.
            Stmt::Prefetch { .. } => return Ok(()),
            Stmt::Load { dst, mem, mask, other, order, site } => {
                let other = match other {
                    Some(other) => self.opnd(other)?,
                    None => self.constant(0),
                };
                Inst::Load { dst: self.val(*dst)?, mem: self.mem(mem, mask, *order, *site)?, other }
            }
            Stmt::Store { mem, value, mask, order, site } => {
                Inst::Store { value: self.opnd(value)?, mem: self.mem(mem, mask, *order, *site)? }
            }
            Stmt::Read { dst, buf, idx } => Inst::Read { dst: self.val(*dst)?, from: self.element(*buf, idx)? },
            Stmt::Write { buf, idx, value } => Inst::Write { value: self.opnd(value)?, to: self.element(*buf, idx)? },
            Stmt::Local { buf } => Inst::Local { buf: self.buf(*buf)? },
            Stmt::For(l) => {
                let bounds = [self.expr(&l.lo)?, self.expr(&l.hi)?, self.expr(&l.step)?];
                let fold = match (&l.combine, l.place) {
                    (Some(c), Place::Vector { .. } | Place::Thread | Place::Lanes | Place::ClusterBlock)
                        if l.kind == LoopKind::Reduce =>
                    {
                        Some((c, l.place))
                    }
                    _ => None,
                };
                return self.counted(l.axis, bounds, fold, l.kind == LoopKind::Serial, &mut |c| c.body(&l.body));
            }
            Stmt::Loop { body } => {
                let start = self.here();
                self.loops.push(Jumps::default());
                self.body(body)?;
                self.code.push(Inst::Jump(start));
                let (end, jumps) = (self.here(), self.loops.pop().unwrap_or_default());
                jumps.continues.iter().for_each(|j| self.point(*j, start));
                jumps.breaks.iter().for_each(|j| self.point(*j, end));
                return Ok(());
            }
            Stmt::Break | Stmt::Continue => {
                let jump = self.jump();
                let jumps = self.loops.last_mut().ok_or("break or continue outside a loop")?;
                if matches!(stmt, Stmt::Break) { &mut jumps.breaks } else { &mut jumps.continues }.push(jump);
                return Ok(());
            }
            Stmt::Return => Inst::Return,
            Stmt::If { cond, then, els } => {
                let cond = self.opnd(cond)?;
                let test = self.code.len();
                self.code.push(Inst::JumpIfFalse { cond, to: 0 });
                self.body(then)?;
                let over = if els.is_empty() { None } else { Some(self.jump()) };
                let at = self.here();
                self.point(test, at);
                self.body(els)?;
                if let Some(over) = over {
                    let at = self.here();
                    self.point(over, at);
                }
                return Ok(());
            }
            Stmt::Rmw { dst, op, mem, value, mask, order, site } => {
                let value = self.opnd(value)?;
                Inst::Rmw { dst: self.val(*dst)?, op: *op, mem: self.mem(mem, mask, *order, *site)?, value }
            }
            Stmt::Cas { dst, mem, cmp, value, mask, order, site } => {
                let (cmp, value) = (self.opnd(cmp)?, self.opnd(value)?);
                Inst::Cas { dst: self.val(*dst)?, mem: self.mem(mem, mask, *order, *site)?, cmp, value }
            }
            Stmt::Print { format, args, site } => {
                let mut shown = Vec::new();
                for arg in args {
                    shown.push(match arg {
                        PrintArg::Scalar(opnd) => Shown::Scalar(self.opnd(opnd)?, self.opnd_ty(opnd)?),
                        PrintArg::Buf(buf) => Shown::Buf(self.buf(*buf)?),
                    });
                }
                Inst::Print { format: format.clone(), args: shown.into(), site: *site }
            }
            Stmt::Assert { cond, message, site } => {
                Inst::Assert { cond: self.opnd(cond)?, message: message.clone(), site: *site }
            }
            Stmt::GlobalAddr { dst, global } => {
                let from = *self.globals.get(*global as usize).ok_or("there is no such global")?;
                let args = [from; 3];
                Inst::Let { dst: self.val(*dst)?, op: ScalarOp::Copy, ty: DType::I64, args, count: 1 }
            }
            Stmt::Alloca { dst, bytes, align, site } => {
                Inst::Alloca { dst: self.val(*dst)?, bytes: *bytes, align: *align, site: *site }
            }
            Stmt::Stage { buf, body, .. } => {
                self.code.push(Inst::Local { buf: self.buf(*buf)? });
                return self.body(body);
            }
        };
        self.code.push(inst);
        Ok(())
    }

    fn scalar(&mut self, dst: ValId, op: ScalarOp, args: &[Opnd]) -> Res<Inst> {
        let count = op.arity();
        if args.len() != count {
            return Err(format!("{op:?} takes {count} operands"));
        }
        let dst = self.val(dst)?;
        let mut slots = [0; 3];
        for (slot, arg) in slots.iter_mut().zip(args) {
            *slot = self.opnd(arg)?;
        }
        let ty = self.opnd_ty(&args[op.typed_by()])?;
        if op == ScalarOp::PtrAdd {
            let Ty::Ptr(elem) = ty else { return Err("only a pointer is offset".to_string()) };
            let shift = 64 - self.opnd_ty(&args[1])?.held().bits() as u8;
            return Ok(Inst::PtrAdd { dst, elem, base: slots[0], index: slots[1], shift });
        }
        // Pointers convert by keeping their bits.
        let op = if matches!(op, ScalarOp::Bitcast { .. }) { ScalarOp::Copy } else { op };
        Ok(Inst::Let { dst, op, ty: ty.held(), args: slots, count: count as u8 })
    }
}
