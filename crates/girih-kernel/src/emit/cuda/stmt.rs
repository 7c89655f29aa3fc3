//! Statements as CUDA, a line each.

use std::collections::BTreeSet;

use crate::emit::cstyle::ops::{Ops, computes, literal};
use crate::emit::cstyle::support::Support;
use crate::emit::cstyle::{Indices, Lines};
use crate::index::{Ix, Mask};
use crate::kernel::ir::*;
use crate::num::convert::sign_extend;
use crate::num::{DType, ScalarOp};

/// The number of a statement, and its part without a form in CUDA; without a number it is the kernel.
pub(super) type Problem = (Option<usize>, String);
pub(super) type Result<T> = std::result::Result<T, Problem>;

pub(super) struct Printer<'a> {
    pub kernel: &'a Kernel,
    pub support: &'a mut Support,
    pub ix: Indices<'a>,
    pub out: Lines,
    /// The values whose NaNs are made canonical where they are computed.
    pub observed: BTreeSet<ValId>,
    /// The names of the globals in the source.
    pub globals: Vec<String>,
    /// An address may be one of the thread's scratch memory, or of the block's shared memory.
    pub own: bool,
    /// The lines printed so far, from 1, and their statements.
    pub lines: Vec<(u32, usize)>,
    /// The number of the next statement.
    pub next: usize,
}

impl Printer<'_> {
    /// A scalar's type, an address with its `*`.
    pub(super) fn ty(&mut self, ty: Ty) -> String {
        match ty.elem {
            Elem::Ptr(d) => format!("{} *", self.support.memory_ty(d.name(), 1)),
            Elem::Num(d) => self.support.ty(d.name(), 1),
        }
    }

    pub(super) fn name(&self, val: ValId) -> &str {
        self.kernel.vals[val].name.as_str()
    }

    pub(super) fn val_ty(&self, val: ValId) -> Ty {
        self.kernel.vals[val].ty
    }

    /// Refuses the current statement, which has no form in CUDA.
    pub(super) fn refuse<T>(&self, why: &str) -> Result<T> {
        Err((self.next.checked_sub(1), why.to_string()))
    }

    /// An operand at a type; where a vector is meant, a constant is all its elements.
    pub(super) fn opnd(&mut self, o: Opnd, ty: Ty) -> String {
        match o {
            Opnd::Val(v) => self.name(v).to_string(),
            Opnd::Const { dtype, bits } => {
                let one = literal(self.support.dialect, dtype, bits);
                match ty.elem {
                    _ if ty.is_vector() => self.all(ty, &one),
                    Elem::Ptr(_) => format!("({}){bits}ull", self.ty(ty)),
                    Elem::Num(DType::I1) => ["false", "true"][(bits & 1) as usize].to_string(),
                    Elem::Num(_) => one,
                }
            }
        }
    }

    fn define(&mut self, dst: ValId, value: &str) -> Result<()> {
        let ty = self.val_ty(dst);
        let spelling = if ty.is_vector() { self.vector(ty)? } else { self.ty(ty) };
        let space = if spelling.ends_with('*') { "" } else { " " };
        let line = format!("{spelling}{space}{} = {value};", self.name(dst));
        self.out.line(&line);
        Ok(())
    }

    /// The mask as a condition.
    pub(super) fn mask(&mut self, mask: &Mask) -> String {
        self.ix.mask(mask, "true")
    }

    pub(super) fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<()> {
        self.lines.push((self.out.count + 1, self.next));
        self.next += 1;
        match stmt {
            Stmt::Var { var, init } => {
                let init = self.opnd(*init, self.val_ty(*var));
                self.define(*var, &init)?;
            }
            Stmt::Set { var, value } => {
                let value = self.opnd(*value, self.val_ty(*var));
                let line = format!("{} = {value};", self.name(*var));
                self.out.line(&line);
            }
            Stmt::Let { dst, op, ty, args } => {
                let value = self.operation(*dst, *op, *ty, args)?;
                self.define(*dst, &value)?;
            }
            Stmt::Splat { dst, value } => {
                let ty = self.val_ty(*dst);
                let one = self.opnd(*value, Ty { lanes: 1, ..ty });
                let all = self.all(ty, &one);
                self.define(*dst, &all)?;
            }
            Stmt::Index { dst, ix } => {
                let text = self.ix.print(ix);
                self.ix.define(*dst, ix);
                let d = self.val_ty(*dst).dtype();
                let text = match d {
                    DType::I64 => text,
                    DType::I1 => format!("({text}) & 1"),
                    DType::I4 => format!("({text}) & 15"),
                    _ => format!("({})({text})", self.support.ty(d.name(), 1)),
                };
                self.define(*dst, &text)?;
            }
            Stmt::Test { dst, mask } => {
                let text = self.mask(mask);
                self.define(*dst, &text)?;
            }
            Stmt::Load { dst, place, mask, other, order } => {
                let value = self.load(*dst, place, *order)?;
                let zero = Opnd::Const { dtype: self.val_ty(*dst).dtype(), bits: 0 };
                self.masked(*dst, mask, &value, other.unwrap_or(zero))?;
            }
            Stmt::LoadOf { dst, place, of } => {
                let value = self.load_of(*dst, place, *of);
                self.define(*dst, &value)?;
            }
            Stmt::Store { place, value, mask, order } => self.store(place, *value, mask, *order)?,
            Stmt::Lane { dst, vector, lane } => {
                let lane = self.element(*vector, lane)?;
                let truth = if self.val_ty(*dst).dtype() == DType::I1 { " != 0" } else { "" };
                self.define(*dst, &format!("{lane}{truth}"))?;
            }
            Stmt::SetLane { vector, lane, value } => {
                let lane = self.element(*vector, lane)?;
                let value = self.opnd(*value, Ty { lanes: 1, ..self.val_ty(*vector) });
                self.out.line(&format!("{lane} = {value};"));
            }
            Stmt::Shuffle { dst, kind, value, by } => {
                let text = self.shuffle(*kind, *value, *by);
                self.define(*dst, &text)?;
            }
            Stmt::LoadMatrix { dst, place, transposed } => {
                let text = self.load_matrix(*dst, place, *transposed);
                self.define(*dst, &text)?;
            }
            Stmt::Mma { acc, apart, a, b, of } => self.mma(acc, *apart, *a, *b, *of),
            Stmt::Wgmma { acc, a, b, of } => self.wgmma(*acc, a, b, *of),
            Stmt::WgmmaCommit => self.bare("wgmma_commit", "wgmma.commit_group.sync.aligned"),
            Stmt::WgmmaWait { left, acc, behind } => self.wgmma_wait(*left, *acc, behind),
            Stmt::Tcgen05Alloc { to, columns } => self.tcgen05_alloc(to, *columns),
            Stmt::Tcgen05Relinquish => {
                self.bare("tcgen05_relinquish", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned");
            }
            Stmt::Tcgen05Dealloc { at, columns } => self.tcgen05_dealloc(at, *columns),
            Stmt::Tcgen05Mma { kind, sums, a, b, instruction, add } => {
                self.tcgen05_mma(*kind, sums, [a, b], *instruction, add);
            }
            Stmt::Tcgen05Commit { on } => self.tcgen05_commit(on),
            Stmt::Tcgen05Load { acc, at } => self.tcgen05_load(*acc, at),
            Stmt::Tcgen05Wait { acc } => self.tcgen05_wait(*acc),
            Stmt::TmaLoad { to, tensor, from, on, all } => self.copy_tensor(to, *tensor, from, on, *all)?,
            Stmt::TmaStore { tensor, to, from } => self.store_tensor(*tensor, to, from)?,
            Stmt::Registers { count, more } => self.registers(*count, *more),
            Stmt::StoreCommit => self.bare("copy_tensor_commit", "cp.async.bulk.commit_group"),
            Stmt::StoreWait { left } => self.store_wait(*left),
            // Only kernels of one thread prefetch.
            Stmt::Prefetch { .. } => {}
            Stmt::InitBarrier { on, count } => self.init(on, *count),
            Stmt::Arrive { on, bytes, of: None } => self.arrive(on, *bytes),
            Stmt::Arrive { on, of: Some(block), .. } => self.arrive_of(on, *block),
            Stmt::WaitPhase { on, parity } => self.wait_phase(on, parity),
            Stmt::Fence { kind } => self.fence(*kind),
            Stmt::CopyAsync { to, from, bytes, mask } => self.copy(to, from, *bytes, mask),
            Stmt::Commit => self.commit(),
            Stmt::WaitGroups { left } => self.wait_groups(*left),
            Stmt::Barrier => self.out.line("__syncthreads();"),
            Stmt::BarrierFirst { count } => self.barrier_first(*count),
            Stmt::ClusterBarrier => self.cluster_barrier(),
            Stmt::SyncWarp => self.out.line("__syncwarp();"),
            Stmt::For { axis, lo, hi, step, unroll, body } => self.for_loop(*axis, [lo, hi, step], *unroll, body)?,
            Stmt::Loop { body } => {
                self.out.open("for (;;) {");
                self.block(body)?;
                self.out.close("}");
            }
            Stmt::Break => self.out.line("break;"),
            Stmt::Continue => self.out.line("continue;"),
            Stmt::Return => self.out.line("return;"),
            Stmt::If { mask, then, els } => {
                let cond = self.mask(mask);
                let (cond, first, second) = match then.is_empty() {
                    true => (format!("!({cond})"), els, then),
                    false => (cond, then, els),
                };
                self.out.open(&format!("if ({cond}) {{"));
                self.block(first)?;
                if !second.is_empty() {
                    self.out.depth -= 1;
                    self.out.open("} else {");
                    self.block(second)?;
                }
                self.out.close("}");
            }
            Stmt::Rmw { dst, op, place, value, mask, order } => {
                let at = self.target(place);
                let v = self.opnd(*value, self.val_ty(*dst));
                let call = self.rmw(*op, &at, &v, *order)?;
                self.masked(*dst, mask, &call, Opnd::Const { dtype: at.dtype, bits: 0 })?;
            }
            Stmt::Cas { dst, place, cmp, value, mask, order } => {
                let at = self.target(place);
                let ty = self.val_ty(*dst);
                let (c, v) = (self.opnd(*cmp, ty), self.opnd(*value, ty));
                let call = self.cas(&at, &c, &v, *order)?;
                self.masked(*dst, mask, &call, *cmp)?;
            }
            Stmt::Scratch { dst, offset } => {
                let (ty, offset) = (self.ty(self.val_ty(*dst)), self.ix.print(offset));
                self.define(*dst, &format!("({ty})(scratch_u8 + {offset})"))?;
            }
            Stmt::SharedAddr { dst, offset } => {
                let (ty, offset) = (self.ty(self.val_ty(*dst)), self.ix.print(offset));
                self.define(*dst, &format!("({ty})(shared_u8 + {offset})"))?;
            }
            Stmt::Ramp { .. }
            | Stmt::Reduce { .. }
            | Stmt::Merge { .. }
            | Stmt::AmxLoad { .. }
            | Stmt::AmxStore { .. }
            | Stmt::AmxDot { .. }
            | Stmt::Strided { .. }
            | Stmt::Interleave { .. }
            | Stmt::All { .. }
            | Stmt::LoadLanes { .. }
            | Stmt::StoreLanes { .. } => {
                return self.refuse("arithmetic on vectors, which a thread of a GPU only moves");
            }
            Stmt::Poll | Stmt::Yield { .. } => {
                return self.refuse("a worker's call of the pool of threads that runs blocks on a CPU");
            }
            Stmt::Print { format, args, .. } => self.print(format, args)?,
            Stmt::Assert { cond, message, .. } => self.assert(*cond, message),
            Stmt::Check { .. } => return self.refuse("a check of an access, which the simulator makes of every one"),
            Stmt::GlobalAddr { dst, global } => {
                let Some(name) = self.globals.get(*global as usize).cloned() else {
                    return self.refuse("the address of a global that is not there");
                };
                let value = format!("({}){name}", self.ty(self.val_ty(*dst)));
                self.define(*dst, &value)?;
            }
        }
        Ok(())
    }

    fn for_loop(&mut self, axis: AxisId, [lo, hi, step]: [&Ix; 3], unroll: u32, body: &[Stmt]) -> Result<()> {
        let is_int = self.ix.enter(axis, lo, hi, step);
        let Axis { name, from } = &self.kernel.axes[axis];
        let trips = match (lo, hi, step) {
            (Ix::Const(lo), Ix::Const(hi), Ix::Const(step @ 1..)) => {
                hi.checked_sub(*lo).map(|n| n.max(0) as u64 / *step as u64)
            }
            _ => None,
        };
        let (lo, hi) = (self.ix.print(lo), self.ix.print(hi));
        let step = match step {
            Ix::Const(1) => format!("{name}++"),
            step => format!("{name} += {}", self.ix.print(step)),
        };
        match unroll {
            0 => {}
            1 => self.out.line("#pragma unroll 1"),
            n if trips.is_some_and(|trips| trips <= u64::from(n)) => self.out.line("#pragma unroll"),
            n => self.out.line(&format!("#pragma unroll {n}")),
        }
        let ty = self.support.ty(if is_int { "i32" } else { "i64" }, 1);
        let from = from.as_ref().map_or(String::new(), |from| format!("  // {from}"));
        self.out.open(&format!("for ({ty} {name} = {lo}; {name} < {hi}; {step}) {{{from}"));
        self.block(body)?;
        self.out.close("}");
        Ok(())
    }

    fn shuffle(&mut self, kind: Shuffle, value: ValId, by: Opnd) -> String {
        let f = match kind {
            Shuffle::Xor => "__shfl_xor_sync",
            Shuffle::Down => "__shfl_down_sync",
            Shuffle::Idx => "__shfl_sync",
        };
        let (ty, by) = (self.val_ty(value), self.opnd(by, Ty::num(DType::I32, 1)));
        let name = self.name(value).to_string();
        let call = |x: &str| format!("{f}(0xffffffffu, {x}, {by})");
        match ty.elem {
            Elem::Ptr(_) => format!("({}){}", self.ty(ty), call(&format!("(long long){name}"))),
            Elem::Num(d) if d.bits() >= 32 => call(&name),
            Elem::Num(_) => format!("({}){}", self.ty(ty), call(&format!("(int){name}"))),
        }
    }

    /// The value where the mask holds, and the other where not.
    fn masked(&mut self, dst: ValId, mask: &Mask, value: &str, other: Opnd) -> Result<()> {
        if mask.is_always() {
            return self.define(dst, value);
        }
        let ty = self.val_ty(dst);
        let (other, mask) = (self.opnd(other, ty), self.mask(mask));
        let text = if value.contains(" != ") {
            format!("{mask} ? ({value}) : {other}")
        } else {
            format!("{mask} ? {value} : {other}")
        };
        self.define(dst, &text)
    }

    /// An operation on printed operands of one value each.
    pub(super) fn scalar(&mut self, op: ScalarOp, elem: Elem, args: &[&str]) -> String {
        Ops { support: self.support, lanes: 1 }.expr(op, elem, args)
    }

    fn operation(&mut self, dst: ValId, op: ScalarOp, elem: Elem, args: &[Opnd]) -> Result<String> {
        let ty = self.val_ty(dst);
        if ty.is_vector() && op != ScalarOp::Copy {
            return self.refuse("arithmetic on vectors, which a thread of a GPU only moves");
        }
        let mut texts = Vec::new();
        for (i, arg) in args.iter().enumerate() {
            let own = op.operand(i, elem);
            texts.push(match (op, i, arg) {
                (ScalarOp::PtrAdd, 1, _) => self.offset(*arg),
                _ => self.opnd(*arg, Ty { elem: own, lanes: ty.lanes }),
            });
        }
        if op == ScalarOp::PtrAdd && elem == Elem::Ptr(DType::I4) {
            return self.refuse("an address of 4-bit elements, which share bytes in pairs");
        }
        let texts: Vec<&str> = texts.iter().map(|s| s.as_str()).collect();
        let (from, to) = (texts.first().copied().unwrap_or("0"), ty);
        // C++ derives the type from the operands; an address needs a cast.
        if let Elem::Ptr(_) = to.elem
            && !matches!(op, ScalarOp::PtrAdd | ScalarOp::Select)
        {
            return Ok(format!("({}){from}", self.ty(to)));
        }
        let text = self.scalar(op, elem, &texts);
        Ok(match to.elem {
            Elem::Num(d) if self.observed.contains(&dst) && computes(op) && d.is_base_float() => {
                format!("{}({text})", self.support.call(&format!("canonical_{d}"), 1))
            }
            _ => text,
        })
    }

    /// By how many elements an address moves.
    fn offset(&mut self, by: Opnd) -> String {
        match by {
            Opnd::Const { dtype, bits } => format!("{}ll", sign_extend(dtype, bits)),
            Opnd::Val(v) => match self.val_ty(v).dtype() {
                DType::I1 => format!("-(long long){}", self.name(v)),
                DType::I4 => format!("((({0} & 15) ^ 8) - 8)", self.name(v)),
                _ => self.name(v).to_string(),
            },
        }
    }
}
