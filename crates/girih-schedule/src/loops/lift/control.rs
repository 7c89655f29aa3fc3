//! Regions and structured control flow: `for`, `loop`, `if`, calls, and their terminators.

use super::{Frame, Lift, Lifted, Result1, Slot, bug, dtype_of, is_token, konst, operand, result};
use crate::base::{Code, Diagnostic};
use crate::cuda_tile::ir::{
    Attr, AttrKey, Func, FuncKind, Op, Opcode, Predicate, RegionId, Rounding, Signedness, Type, ValueId,
};
use crate::index::Ix;
use crate::loops::ir::{For, LoopKind, Opnd, Place, PrintArg, Stmt, Ty};
use crate::num::{DType, ScalarOp};

/// The targets of the values of `continue` and `break`.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    carried: Vec<Slot>,
    results: Vec<Slot>,
}

/// How a region ends; the values are its terminator's operands.
pub(super) enum End {
    Yield(Vec<Lifted>),
    Return(Vec<Lifted>),
    Continue(Vec<Lifted>),
    Break(Vec<Lifted>),
}

const MAX_CALL_DEPTH: usize = 64;
const MAX_CALLS: usize = 4096;

impl<'m> Lift<'m> {
    /// Lifts a region's operations into the current body.
    pub(super) fn region(&mut self, region: RegionId) -> Result1<End> {
        let func = self.func();
        for &id in &func.regions[region].ops {
            let op = &func.ops[id];
            let values = || op.operands.iter().map(|&v| self.value(v)).collect::<Result1<Vec<_>>>();
            match op.opcode {
                Opcode::Yield => return Ok(End::Yield(values()?)),
                Opcode::Return => return Ok(End::Return(values()?)),
                Opcode::Continue => return Ok(End::Continue(values()?)),
                Opcode::Break => return Ok(End::Break(values()?)),
                _ => self.op(id)?,
            }
        }
        Ok(End::Yield(Vec::new()))
    }

    /// Lifts a region of scalars whose arguments are given, and returns its yielded values.
    pub(super) fn inline(&mut self, op: &Op, args: &[Opnd]) -> Result1<Vec<Opnd>> {
        let region = *op.regions.first().ok_or_else(|| bug("a region is missing", op.span))?;
        for (&arg, &value) in self.func().regions[region].args.iter().zip(args) {
            self.bind(arg, Lifted::Scalar(value));
        }
        let End::Yield(values) = self.region(region)? else { return Err(bug("a region that does not yield", op.span)) };
        values
            .into_iter()
            .map(|v| match v {
                Lifted::Scalar(o) => Ok(o),
                _ => Err(bug("a scalar was expected here", op.span)),
            })
            .collect()
    }

    /// Declares storage for a value of type `ty`.
    fn slot(&mut self, ty: &Type, name: &str, op: &Op) -> Result1<Slot> {
        match ty {
            _ if is_token(ty) => Ok(Slot::Token),
            Type::Tile(t) => {
                let elem = t.elem;
                let buf = self.local(name, elem, &t.shape);
                Ok(if t.shape.is_empty() { Slot::Scalar(buf) } else { Slot::Tile(buf) })
            }
            _ => Err(Diagnostic::error(Code::CannotLower, "a view cannot be carried through control flow").at(op.span)),
        }
    }
    fn result_slots(&mut self, op: &Op) -> Result1<Vec<Slot>> {
        let func = self.func();
        op.results.iter().map(|&r| self.slot(func.ty(r), &self.name(r, "r"), op)).collect()
    }
    fn bind_slots(&mut self, values: &[ValueId], slots: &[Slot]) {
        for (&v, slot) in values.iter().zip(slots) {
            let lifted = match slot {
                Slot::Token => Lifted::Token,
                Slot::Tile(b) => Lifted::Tile(*b),
                Slot::Scalar(b) => Lifted::Scalar(self.read(*b, &[])),
            };
            self.bind(v, lifted);
        }
    }

    /// Copies values to slots all at once: a source that is another slot's buffer is saved first.
    fn assign(&mut self, slots: &[Slot], values: &[Lifted]) -> Result1<()> {
        let mut values = values.to_vec();
        for (i, value) in values.iter_mut().enumerate() {
            let Lifted::Tile(b) = *value else { continue };
            let elsewhere = slots.iter().enumerate().any(|(j, s)| j != i && matches!(s, Slot::Tile(x) if *x == b));
            if elsewhere {
                let old = self.kernel.bufs[b].clone();
                let saved = self.local(&old.name, old.ty, &old.shape);
                self.copy(b, saved)?;
                *value = Lifted::Tile(saved);
            }
        }
        for (slot, value) in slots.iter().zip(&values) {
            match (slot, value) {
                (Slot::Scalar(b), Lifted::Scalar(o)) => self.write(*b, &[], *o),
                (Slot::Tile(b), Lifted::Tile(from)) if b != from => self.copy(*from, *b)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Emits a region's end inside a branch: `yields` receives the yielded values.
    fn leave(&mut self, end: End, yields: &[Slot], op: &Op) -> Result1<()> {
        let target = self.frame.loops.last().cloned();
        match end {
            End::Yield(values) => self.assign(yields, &values),
            End::Return(values) => match self.frame.returns.clone() {
                None => {
                    self.emit(Stmt::Return);
                    Ok(())
                }
                // An inlined function is the body of a loop that runs once.
                Some(slots) => {
                    self.assign(&slots, &values)?;
                    self.emit(Stmt::Break);
                    Ok(())
                }
            },
            End::Continue(values) => {
                let Some(target) = target else { return Err(bug("a continue outside of a loop", op.span)) };
                self.assign(&target.carried, &values)?;
                self.emit(Stmt::Continue);
                Ok(())
            }
            End::Break(values) => {
                let Some(target) = target else { return Err(bug("a break outside of a loop", op.span)) };
                self.assign(&target.results, &values)?;
                self.emit(Stmt::Break);
                Ok(())
            }
        }
    }

    pub(super) fn branch(&mut self, op: &Op) -> Result1<()> {
        let cond = self.scalar(operand(op, 0)?)?;
        let slots = self.result_slots(op)?;
        let mut arms = Vec::new();
        for &region in &op.regions {
            arms.push(self.body(|l| {
                let end = l.region(region)?;
                l.leave(end, &slots, op)
            })?);
        }
        let mut arms = arms.into_iter();
        let (then, els) = (arms.next().unwrap_or_default(), arms.next().unwrap_or_default());
        self.emit(Stmt::If { cond, then, els });
        self.bind_slots(&op.results, &slots);
        Ok(())
    }

    /// Storage for the carried values, filled with the initial ones.
    fn carry(&mut self, args: &[ValueId], init: &[ValueId], op: &Op) -> Result1<Vec<Slot>> {
        let func = self.func();
        let slots =
            args.iter().map(|&a| self.slot(func.ty(a), &self.name(a, "carried"), op)).collect::<Result1<Vec<_>>>()?;
        let values = init.iter().map(|&v| self.value(v)).collect::<Result1<Vec<_>>>()?;
        self.assign(&slots, &values)?;
        Ok(slots)
    }

    pub(super) fn for_loop(&mut self, op: &Op) -> Result1<()> {
        let func = self.func();
        let [lo, hi, step] = [operand(op, 0)?, operand(op, 1)?, operand(op, 2)?];
        let (lo, hi, step) = (self.scalar(lo)?, self.scalar(hi)?, self.scalar(step)?);
        let unsigned = op.flag(AttrKey::UnsignedCmp);
        let region = *op.regions.first().ok_or_else(|| bug("a region is missing", op.span))?;
        let [iv, args @ ..] = &func.regions[region].args[..] else {
            return Err(bug("a for without an induction variable", op.span));
        };
        let dtype = dtype_of(self.elem(*iv)?);
        self.check_step(step, unsigned, dtype, op);
        // The axis holds signed numbers; where unsigned ones may not fit, it counts the iterations instead.
        let wide = unsigned && dtype == DType::I64;
        let first = match self.ix(step, unsigned) {
            Ix::Const(1) => None,
            _ => wide.then_some((lo, step)),
        };
        let (lo, hi, step) = match first {
            Some(_) => (konst(dtype, 0), self.trips(lo, hi, step), konst(dtype, 1)),
            None if wide => (lo, self.signed_end(lo, hi), step),
            None => (lo, hi, step),
        };
        let slots = self.carry(args, op.group(3), op)?;
        self.frame.loops.push(Target { carried: slots.clone(), results: Vec::new() });
        let axis = self.new_axis(&self.name(*iv, "k"));
        let body = self.body(|l| {
            let mut value = l.index(Ix::Axis(axis), dtype);
            if let Some((lo, step)) = first {
                let past = l.compute(ScalarOp::MulI, vec![value, step], Ty::Num(dtype));
                value = l.compute(ScalarOp::AddI, vec![lo, past], Ty::Num(dtype));
            }
            l.bind(*iv, Lifted::Scalar(value));
            l.bind_slots(args, &slots);
            match l.region(region)? {
                End::Continue(values) => l.assign(&slots, &values),
                End::Yield(values) if values.is_empty() => Ok(()),
                _ => Err(bug("a for that does not continue", op.span)),
            }
        })?;
        self.frame.loops.pop();
        self.emit(Stmt::For(Box::new(For {
            axis,
            lo: self.ix(lo, unsigned),
            hi: self.ix(hi, unsigned),
            // After a constant step that traps nothing runs; the rules may divide by it.
            step: match self.ix(step, unsigned) {
                Ix::Const(c) if c < 1 => Ix::Const(1),
                step => step,
            },
            kind: LoopKind::Serial,
            place: Place::None,
            combine: None,
            contraction: None,
            stream: None,
            body,
        })));
        self.bind_slots(&op.results, &slots);
        Ok(())
    }

    /// The end of a loop over unsigned 64-bit numbers in steps of 1, whose axis counts signed ones. Both agree unless one
    /// bound has the top bit and the other has not. From a large start to a small end no iteration runs: the end becomes
    /// the start. From a small start to a large end more run than there is time for: the end becomes the largest number.
    fn signed_end(&mut self, lo: Opnd, hi: Opnd) -> Opnd {
        if let (Opnd::Const { bits: lo, .. }, Opnd::Const { bits: hi, .. }) = (lo, hi)
            && lo >> 63 == hi >> 63
        {
            return konst(DType::I64, hi);
        }
        let large = |l: &mut Self, o: Opnd| l.compare(Predicate::LessThan, Signedness::Signed, o, konst(DType::I64, 0));
        let (lo_large, hi_large) = (large(self, lo), large(self, hi));
        let i64 = Ty::Num(DType::I64);
        let largest = konst(DType::I64, i64::MAX as u64);
        let when_large = self.compute(ScalarOp::Select, vec![lo_large, hi, largest], i64);
        let when_small = self.compute(ScalarOp::Select, vec![lo_large, lo, hi], i64);
        self.compute(ScalarOp::Select, vec![hi_large, when_large, when_small], i64)
    }

    /// How often a loop over unsigned 64-bit numbers runs; more than 2^63 - 1 times counts as that often.
    fn trips(&mut self, lo: Opnd, hi: Opnd, step: Opnd) -> Opnd {
        let (i64, sign) = (Ty::Num(DType::I64), Signedness::Unsigned);
        let (zero, one) = (konst(DType::I64, 0), konst(DType::I64, 1));
        let runs = self.compare(Predicate::LessThan, sign, lo, hi);
        let span = self.compute(ScalarOp::SubI, vec![hi, lo], i64);
        let last = self.compute(ScalarOp::SubI, vec![span, one], i64);
        let whole = self.compute(ScalarOp::DivI { sign, rounding: Rounding::Zero }, vec![last, step], i64);
        let count = self.compute(ScalarOp::AddI, vec![whole, one], i64);
        let most = konst(DType::I64, i64::MAX as u64);
        let count = self.compute(ScalarOp::MinI { sign }, vec![count, most], i64);
        self.compute(ScalarOp::Select, vec![runs, count, zero], i64)
    }

    fn compare(&mut self, pred: Predicate, sign: Signedness, a: Opnd, b: Opnd) -> Opnd {
        self.compute(ScalarOp::CmpI { pred, sign }, vec![a, b], Ty::Num(DType::I1))
    }

    /// A step that is not positive traps.
    fn check_step(&mut self, step: Opnd, unsigned: bool, dtype: DType, op: &Op) {
        let sign = if unsigned { Signedness::Unsigned } else { Signedness::Signed };
        let cond = match self.ix(step, unsigned) {
            Ix::Const(c) if c > 0 || (unsigned && c != 0) => return,
            Ix::Const(_) => konst(DType::I1, 0),
            _ => self.compare(Predicate::GreaterThan, sign, step, konst(dtype, 0)),
        };
        let site = self.site(op);
        self.emit(Stmt::Assert { cond, message: "the step of this `for` is not positive".to_string(), site });
    }

    pub(super) fn endless_loop(&mut self, op: &Op) -> Result1<()> {
        let region = *op.regions.first().ok_or_else(|| bug("a region is missing", op.span))?;
        let args = &self.func().regions[region].args;
        let carried = self.carry(args, op.group(0), op)?;
        let results = self.result_slots(op)?;
        self.frame.loops.push(Target { carried: carried.clone(), results: results.clone() });
        let body = self.body(|l| {
            l.bind_slots(args, &carried);
            match l.region(region)? {
                End::Continue(values) => l.assign(&carried, &values),
                End::Break(values) => {
                    l.assign(&results, &values)?;
                    l.emit(Stmt::Break);
                    Ok(())
                }
                End::Yield(values) if values.is_empty() => Ok(()),
                _ => Err(bug("a loop that does not continue", op.span)),
            }
        })?;
        self.frame.loops.pop();
        self.emit(Stmt::Loop { body });
        self.bind_slots(&op.results, &results);
        Ok(())
    }

    /// A call is replaced by the function's body, which becomes a loop that runs once when it returns from inside.
    pub(super) fn call(&mut self, op: &Op) -> Result1<()> {
        let name = match op.attr(AttrKey::Callee) {
            Some(Attr::Str(s)) => s.as_str(),
            _ => return Err(bug("a call without a callee", op.span)),
        };
        let module = self.module;
        let Some(func) = module.function(name).filter(|f| f.kind == FuncKind::Function) else {
            return Err(bug("a call of a function that is not there", op.span));
        };
        if self.callers.len() >= MAX_CALL_DEPTH {
            let message = format!("calls are nested more than {MAX_CALL_DEPTH} deep");
            return Err(Diagnostic::error(Code::Recursion, message).at(op.span));
        }
        self.calls += 1;
        if self.calls > MAX_CALLS {
            let message = format!("the calls of this kernel expand to more than {MAX_CALLS} function bodies");
            return Err(Diagnostic::error(Code::Recursion, message).at(op.span));
        }
        let args = op.operands.iter().map(|&v| self.value(v)).collect::<Result1<Vec<_>>>()?;
        let early = func.regions[Func::BODY].ops.iter().any(|&o| returns_early(func, o));
        let slots = if early { Some(self.result_slots(op)?) } else { None };
        let mut frame = Frame::new(func);
        frame.returns = slots.clone();
        let caller = std::mem::replace(&mut self.frame, frame);
        self.callers.push(caller);
        for (&p, value) in func.params().iter().zip(args) {
            self.bind(p, value);
        }
        let ended = match &slots {
            None => self.region(Func::BODY).map(|end| match end {
                End::Return(values) | End::Yield(values) => values,
                End::Continue(_) | End::Break(_) => Vec::new(),
            }),
            Some(slots) => self
                .body(|l| {
                    let (End::Return(values) | End::Yield(values)) = l.region(Func::BODY)? else {
                        return Err(bug("a function that does not return", op.span));
                    };
                    l.assign(slots, &values)?;
                    l.emit(Stmt::Break);
                    Ok(())
                })
                .map(|body| {
                    self.emit(Stmt::Loop { body });
                    Vec::new()
                }),
        };
        if let Some(caller) = self.callers.pop() {
            self.frame = caller;
        }
        let values = ended?;
        match slots {
            Some(slots) => self.bind_slots(&op.results, &slots),
            None => {
                for (&r, value) in op.results.iter().zip(values) {
                    self.bind(r, value);
                }
            }
        }
        Ok(())
    }

    pub(super) fn assert(&mut self, op: &Op) -> Result1<()> {
        let cond = operand(op, 0)?;
        let message = match op.attr(AttrKey::Message) {
            Some(Attr::Str(s)) => s.clone(),
            _ => String::new(),
        };
        let site = self.site(op);
        let shape = &self.tile_ty(cond)?.shape;
        self.nest(shape, LoopKind::Free, |l, idx| {
            let cond = l.at(cond, idx)?;
            l.emit(Stmt::Assert { cond, message, site });
            Ok(())
        })
    }

    pub(super) fn print(&mut self, op: &Op) -> Result1<()> {
        let format = match op.attr(AttrKey::Str) {
            Some(Attr::Str(s)) => s.clone(),
            _ => String::new(),
        };
        let mut args = Vec::new();
        for &v in op.group(0) {
            args.push(match self.value(v)? {
                Lifted::Scalar(o) => PrintArg::Scalar(o),
                Lifted::Tile(b) => PrintArg::Buf(b),
                _ => return Err(bug("only tiles can be printed", op.span)),
            });
        }
        let site = self.site(op);
        self.emit(Stmt::Print { format, args, site });
        if let Ok(token) = result(op, 0) {
            self.bind(token, Lifted::Token);
        }
        Ok(())
    }
}

/// A return below an operation, so not the function's own last one.
fn returns_early(func: &Func, op: crate::cuda_tile::ir::OpId) -> bool {
    func.ops[op]
        .regions
        .iter()
        .any(|&r| func.regions[r].ops.iter().any(|&o| func.ops[o].opcode == Opcode::Return || returns_early(func, o)))
}
