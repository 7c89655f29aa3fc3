//! Compiles Kernel IR to the compact form.

use std::collections::BTreeSet;

use super::POISON;
use super::code::{Access, Arg, At, Counter, Inst, LeftCode, NO_STATEMENT, Own, PanelCode, Program, Shown, in_slot};
use super::tcgen05::{DescribedCode, MmaCode};
use super::tensor::TensorCode;
use crate::base::id::Id;
use crate::index::facts::MOST_THREADS;
use crate::kernel::ir::*;
use crate::kernel::registers;
use crate::kernel::verify::MOST_MBARRIERS;
use crate::loops::eval::expr::{Expr, Leaves, MaskCode, Slot};
use crate::num::{DType, ScalarOp};

type Res<T> = Result<T, String>;

struct Compiler<'a> {
    kernel: &'a Kernel,
    code: Vec<Inst>,
    statements: Vec<u32>,
    /// The numbers of the current statement and of the next one.
    now: u32,
    next: u32,
    /// The first slot of each value.
    vals: Vec<Slot>,
    first_axis: Slot,
    first_block: Slot,
    thread: Slot,
    first_global: Slot,
    hidden: Slot,
    tiles: Slot,
    /// By slot of the kernel.
    own: Vec<Option<Own>>,
    first_const: Slot,
    consts: Vec<u64>,
    loops: Vec<Jumps>,
    cooperative: bool,
}

/// Jump instructions whose targets are not known yet: behind a loop, and at its next iteration.
#[derive(Default)]
struct Jumps {
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

/// Slots of one block; more are refused.
const MOST_SLOTS: u64 = 1 << 28;

pub(in crate::kernel) fn compile(kernel: &Kernel) -> Res<Program> {
    for slot in kernel.slots.values() {
        let size = if slot.is_shared() { kernel.shared } else { kernel.scratch };
        if slot.offset.saturating_add(slot.bytes()) > size {
            return Err(format!("the slot `{}` reaches past the {}", slot.name, slot.space));
        }
    }
    let mut next: u64 = 0;
    let mut take = |count: u64| -> Res<Slot> {
        let first = next;
        next = next.saturating_add(count);
        if next > MOST_SLOTS { Err("it has too many values".to_string()) } else { Ok(first as Slot) }
    };
    let vals = kernel.vals.values().map(|v| take(u64::from(v.ty.lanes))).collect::<Res<Vec<Slot>>>()?;
    let first_axis = take(kernel.axes.len() as u64)?;
    let first_block = take(6)?;
    let thread = take(1)?;
    let scratch = take(1)?;
    let first_global = take(kernel.globals.len() as u64)?;
    let hidden = take(2 * count_loops(&kernel.body) + count_allocations(&kernel.body))?;
    let tiles = take(if has_tiles(&kernel.body) { u64::from(TILES * TILE_SIDE * TILE_SIDE) } else { 0 })?;
    let (addressed, addressed_shared) = addressed(&kernel.body);
    // A GPU's threads have small arrays in registers.
    let own = kernel.slots.values().map(|slot| {
        let (len, elem) = (slot.len, in_slot(slot.elem));
        if addressed || kernel.threads == 1 || slot.space != Space::Scratch || len > MOST_OWN {
            return Ok(None);
        }
        let poison = u64::from_le_bytes([POISON; 8]);
        let begins = if elem == DType::I1 { 1 } else { poison & elem.mask() };
        Ok(Some(Own { first: take(len)?, len, begins }))
    });
    let own = own.collect::<Res<Vec<Option<Own>>>>()?;
    let first_const = take(0)?;
    let mut c = Compiler {
        kernel,
        code: vec![],
        statements: vec![],
        now: 0,
        next: 0,
        vals,
        first_axis,
        first_block,
        thread,
        first_global,
        hidden,
        tiles,
        own,
        first_const,
        consts: vec![],
        loops: vec![],
        cooperative: false,
    };
    if kernel.mbarriers().saturating_mul(kernel.cluster.into()) > MOST_MBARRIERS {
        return Err(format!("it has {} mbarriers", kernel.mbarriers()));
    }
    let together = kernel.threads.checked_mul(kernel.cluster).filter(|n| (1..=MOST_THREADS).contains(n));
    if kernel.cluster != 1 && (together.is_none() || !kernel.threads.is_multiple_of(kernel.warp.max(1))) {
        return Err(format!("it has clusters of {} blocks of {} threads", kernel.cluster, kernel.threads));
    }
    let exprs = |all: &[Ix]| all.iter().map(|ix| c.expr(ix)).collect::<Res<Vec<_>>>();
    let tensor = |t: &Tensor| {
        Ok(TensorCode { tensor: t.clone(), base: c.val(t.base)?, dims: exprs(&t.dims)?, strides: exprs(&t.strides)? })
    };
    let tensors = kernel.tensors.values().map(tensor).collect::<Res<Vec<_>>>()?;
    c.body(&kernel.body)?;
    c.now = NO_STATEMENT;
    c.emit(Inst::Return);
    let params = kernel.params.iter().map(|&p| Ok((c.val(p)?, c.ty(p)?.elem.held().mask())));
    let params = params.collect::<Res<Vec<_>>>()?;
    // Each block begins as a worker's first one does.
    let zeroed = kernel.slots.values().filter(|s| s.space == Space::Kept { zeroed: true });
    let slots = first_const as usize + c.consts.len();
    Ok(Program {
        slots,
        code: c.code,
        statements: c.statements,
        count: c.next,
        threads: kernel.threads,
        registers: registers::at_first(kernel.threads),
        cluster: kernel.cluster,
        scratch_bytes: kernel.scratch,
        zeroed: zeroed.map(|s| s.offset as usize..s.offset.saturating_add(s.bytes()) as usize).collect(),
        shared_bytes: kernel.apart(),
        tensors,
        mbarriers: kernel.mbarriers() as u32,
        addressed,
        addressed_shared,
        params,
        first_block,
        thread,
        scratch,
        first_global,
        own: c.own.into_iter().flatten().collect(),
        fragments: fragments(&kernel.body),
        consts: c.consts,
        first_const,
        cooperative: c.cooperative,
    })
}

/// The most elements of an array that become slots.
const MOST_OWN: u64 = 256;

/// Returns true if the address of scratch memory is taken, and of shared memory.
fn addressed(body: &[Stmt]) -> (bool, bool) {
    let scratch = any(body, |stmt| matches!(stmt, Stmt::Scratch { .. }));
    (scratch, any(body, |stmt| matches!(stmt, Stmt::SharedAddr { .. })))
}

fn count_allocations(body: &[Stmt]) -> u64 {
    let mut count = 0;
    statements(body, &mut |stmt| count += u64::from(matches!(stmt, Stmt::Tcgen05Alloc { .. })));
    count
}

/// The arrays that have left operands of products of warpgroups.
fn fragments(body: &[Stmt]) -> BTreeSet<BufId> {
    let mut out = BTreeSet::new();
    statements(body, &mut |stmt| {
        if let Stmt::Wgmma { a: Left::Words(Address::Slot { buf, .. }), .. } = stmt {
            out.insert(*buf);
        }
    });
    out
}

fn has_tiles(body: &[Stmt]) -> bool {
    any(body, |stmt| matches!(stmt, Stmt::AmxLoad { .. } | Stmt::AmxStore { .. } | Stmt::AmxDot { .. }))
}

fn any(body: &[Stmt], of: impl Fn(&Stmt) -> bool) -> bool {
    let mut found = false;
    statements(body, &mut |stmt| found |= of(stmt));
    found
}

/// Picks lanes out of several vectors: `from` gives the vector, and the lane of it, for each lane of the result.
fn picked(dst: Slot, lanes: u32, of: &[Slot], from: &dyn Fn(u32) -> (u32, u32)) -> Inst {
    let slot = |(part, at): (u32, u32)| of[part as usize] + at;
    Inst::Pick { dst, lanes: (0..lanes).map(|lane| slot(from(lane))).collect() }
}

fn count_loops(body: &[Stmt]) -> u64 {
    let inner = |stmt: &Stmt| match stmt {
        Stmt::For { body, .. } => 1 + count_loops(body),
        Stmt::Loop { body } => count_loops(body),
        Stmt::If { then, els, .. } => count_loops(then) + count_loops(els),
        _ => 0,
    };
    body.iter().map(inner).sum()
}

impl Leaves for Compiler<'_> {
    fn axis(&self, a: AxisId) -> Res<Slot> {
        if a.index() < self.kernel.axes.len() {
            Ok(self.first_axis + a.0)
        } else {
            Err(format!("there is no axis {}", a.0))
        }
    }

    fn integer(&self, val: ValId) -> Res<(Slot, u32)> {
        let ty = self.ty(val)?;
        if ty.lanes != 1 {
            return Err(format!("a vector is used in an index or a mask: value {}", val.0));
        }
        Ok((self.val(val)?, ty.dtype().bits()))
    }

    fn block(&self) -> Slot {
        self.first_block
    }

    fn thread(&self) -> Res<Slot> {
        Ok(self.thread)
    }
}

impl Compiler<'_> {
    fn emit(&mut self, inst: Inst) {
        self.code.push(inst);
        self.statements.push(self.now);
    }

    /// The first word of a tile.
    fn tile(&self, number: u32) -> Res<Slot> {
        match number < TILES {
            true => Ok(self.tiles + number * TILE_SIDE * TILE_SIDE),
            false => Err(format!("there is no tile {number}")),
        }
    }

    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    fn val(&self, v: ValId) -> Res<Slot> {
        self.vals.get(v.index()).copied().ok_or_else(|| format!("there is no value {}", v.0))
    }

    fn ty(&self, v: ValId) -> Res<Ty> {
        self.kernel.vals.get(v).map(|v| v.ty).ok_or_else(|| format!("there is no value {}", v.0))
    }

    fn constant(&mut self, bits: u64) -> Arg {
        let at = self.consts.iter().rev().take(64).position(|c| *c == bits).map(|back| self.consts.len() - 1 - back);
        let at = at.unwrap_or_else(|| {
            self.consts.push(bits);
            self.consts.len() - 1
        });
        Arg { first: self.first_const + at as u32, stride: 0 }
    }

    /// An operand of `lanes` lanes.
    fn opnd(&mut self, o: &Opnd, lanes: u32) -> Res<Arg> {
        match o {
            Opnd::Const { bits, .. } => Ok(self.constant(*bits)),
            Opnd::Val(v) => {
                let own = self.ty(*v)?.lanes;
                if own != lanes {
                    return Err(format!("value {} has {own} lanes, not {lanes}", v.0));
                }
                Ok(Arg { first: self.val(*v)?, stride: u32::from(lanes > 1) })
            }
        }
    }

    fn expr(&self, ix: &Ix) -> Res<Expr> {
        Expr::compile(ix, self)
    }

    fn element(&self, element: &Option<Ix>) -> Res<Option<Expr>> {
        element.as_ref().map(|ix| self.expr(ix)).transpose()
    }

    fn access(&mut self, place: &Address, lanes: u32, mask: &Mask, order: Order) -> Res<Access> {
        let at = match place {
            Address::Mem { base, index, elem } => {
                At::Memory { base: self.val(*base)?, index: self.expr(index)?, elem: *elem }
            }
            Address::Slot { buf, index } => {
                let slot = self.kernel.slots.get(*buf).ok_or_else(|| format!("there is no slot {}", buf.0))?;
                let (offset, len, elem) = (slot.offset, slot.len, in_slot(slot.elem));
                let (buf, space, index) = (*buf, slot.space, self.expr(index)?);
                match self.own.get(buf.0 as usize) {
                    Some(Some(own)) => At::Own { buf, first: own.first, len, index, elem },
                    _ => At::Slot { buf, space, offset, len, index, elem, of: None },
                }
            }
        };
        self.cooperative |= order != Order::Weak;
        Ok(Access { at, lanes, mask: MaskCode::compile(mask, self)?, order })
    }

    /// One lane of an access of the lanes `from..to`.
    fn lane(&mut self, place: &Address, (from, to): (&Ix, &Ix), lane: u32) -> Res<Access> {
        let lane = Ix::Const(lane.into());
        let cond = |cmp, rhs: &Ix| Cond { lhs: lane.clone(), cmp, rhs: rhs.clone() };
        let mask = Mask { conds: vec![cond(Cmp::Ge, from), cond(Cmp::Lt, to)], vals: vec![] };
        let mut place = place.clone();
        let (Address::Mem { index, .. } | Address::Slot { index, .. }) = &mut place;
        *index = Ix::add(index.clone(), lane);
        self.access(&place, 1, &mask, Order::Weak)
    }

    /// A place of mbarriers, and the number of the first there.
    fn mbarrier(&mut self, on: &Address) -> Res<(Access, u32)> {
        match on {
            Address::Slot { buf, .. } if self.kernel.slots.get(*buf).is_some_and(|s| s.space == Space::Mbarrier) => {
                Ok((self.access(on, 1, &Mask::default(), Order::Weak)?, self.kernel.first_mbarrier(*buf) as u32))
            }
            _ => Err("a statement expects an mbarrier".to_string()),
        }
    }

    /// The place of a box in shared memory, and its coordinates.
    fn boxed(&mut self, tensor: TensorId, place: &Address, coordinates: &[Ix]) -> Res<(Access, Box<[Expr]>)> {
        let Some(t) = self.kernel.tensors.get(tensor) else {
            return Err(format!("there is no tensor {}", tensor.0));
        };
        let lanes = u32::try_from(t.count()).map_err(|_| "a box is too large".to_string())?;
        let place = self.access(place, lanes, &Mask::default(), Order::Weak)?;
        let coordinates = coordinates.iter().map(|ix| self.expr(ix)).collect::<Res<Box<[Expr]>>>()?;
        match &place.at {
            At::Slot { space: Space::Shared, elem, .. } if elem.bytes() == t.elem.bytes() => Ok((place, coordinates)),
            _ => Err("a box does not lie in shared memory of its elements".to_string()),
        }
    }

    fn body(&mut self, body: &[Stmt]) -> Res<()> {
        for stmt in body {
            self.now = self.next;
            self.next += 1;
            self.stmt(stmt)?;
        }
        Ok(())
    }

    /// Points a jump made earlier at `to`.
    fn point(&mut self, jump: usize, to: u32) {
        if let Some(Inst::Jump(t) | Inst::JumpUnless { to: t, .. } | Inst::For { exit: t, .. }) =
            self.code.get_mut(jump)
        {
            *t = to;
        }
    }

    fn jump(&mut self) -> usize {
        self.emit(Inst::Jump(0));
        self.code.len() - 1
    }

    /// A vector and its lanes.
    fn vector(&self, v: ValId) -> Res<(Slot, u32)> {
        Ok((self.val(v)?, self.ty(v)?.lanes))
    }

    /// A vector and those that its lanes come from, which are as long.
    fn parts(&self, dst: ValId, parts: &[ValId]) -> Res<(Slot, u32, Vec<Slot>)> {
        let (dst, lanes) = self.vector(dst)?;
        let of = parts.iter().map(|part| match self.vector(*part)? {
            (slot, n) if n == lanes => Ok(slot),
            (_, n) => Err(format!("elements of a vector of {n} make one of {lanes}")),
        });
        Ok((dst, lanes, of.collect::<Res<_>>()?))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Res<()> {
        let inst = match stmt {
            Stmt::Var { var: dst, init: value } | Stmt::Set { var: dst, value } => {
                let lanes = self.ty(*dst)?.lanes;
                Inst::Copy { dst: self.val(*dst)?, from: self.opnd(value, lanes)?, lanes }
            }
            Stmt::Splat { dst, value } => {
                Inst::Copy { dst: self.val(*dst)?, from: self.opnd(value, 1)?, lanes: self.ty(*dst)?.lanes }
            }
            Stmt::Let { dst, op, ty, args } => self.operation(*dst, *op, *ty, args)?,
            Stmt::Ramp { dst, base, step } => {
                let ty = self.ty(*dst)?;
                let (base, step) = (self.expr(base)?, self.expr(step)?);
                Inst::Ramp { dst: self.val(*dst)?, base, step, lanes: ty.lanes, mask: ty.dtype().mask() }
            }
            Stmt::Index { dst, ix } => {
                Inst::Index { dst: self.val(*dst)?, ix: self.expr(ix)?, mask: self.ty(*dst)?.dtype().mask() }
            }
            Stmt::Test { dst, mask } => Inst::Test { dst: self.val(*dst)?, mask: MaskCode::compile(mask, self)? },
            Stmt::Load { dst, place, mask, other, order } => {
                let lanes = self.ty(*dst)?.lanes;
                let other = match other {
                    Some(other) => self.opnd(other, lanes)?,
                    None => self.constant(0),
                };
                Inst::Load { dst: self.val(*dst)?, access: self.access(place, lanes, mask, *order)?, other }
            }
            Stmt::Store { place, value, mask, order } => {
                let lanes = match value {
                    Opnd::Val(v) => self.ty(*v)?.lanes,
                    Opnd::Const { .. } => 1,
                };
                Inst::Store { value: self.opnd(value, lanes)?, access: self.access(place, lanes, mask, *order)? }
            }
            Stmt::LoadLanes { dst, place, from, to, other } => {
                let (dst, lanes) = self.vector(*dst)?;
                let other = match other {
                    Opnd::Val(v) if self.ty(*v)?.lanes == 1 => self.opnd(other, 1)?,
                    _ => self.opnd(other, lanes)?,
                };
                for lane in 0..lanes {
                    let access = self.lane(place, (from, to), lane)?;
                    let other = Arg { first: other.lane(lane) as Slot, stride: 0 };
                    self.emit(Inst::Load { dst: dst + lane, access, other });
                }
                return Ok(());
            }
            Stmt::StoreLanes { place, value, from, to } => {
                let (value, lanes) = self.vector(*value)?;
                for lane in 0..lanes {
                    let access = self.lane(place, (from, to), lane)?;
                    self.emit(Inst::Store { value: Arg { first: value + lane, stride: 0 }, access });
                }
                return Ok(());
            }
            Stmt::Lane { dst, vector, lane } => {
                let (vector, lanes) = self.vector(*vector)?;
                Inst::Lane { dst: self.val(*dst)?, vector, lanes, lane: self.expr(lane)? }
            }
            Stmt::SetLane { vector, lane, value } => {
                let (vector, lanes) = self.vector(*vector)?;
                Inst::SetLane { vector, lanes, lane: self.expr(lane)?, value: self.opnd(value, 1)? }
            }
            Stmt::Merge { dst, a, b, width, high } => {
                let (dst, lanes) = self.vector(*dst)?;
                let ((a, of_a), (b, of_b)) = (self.vector(*a)?, self.vector(*b)?);
                if of_a != lanes || of_b != lanes || *width == 0 || lanes % (2 * *width) != 0 {
                    return Err(format!("groups of {width} lanes of {of_a} and {of_b} do not make {lanes}"));
                }
                Inst::Merge { dst, a, b, lanes, width: *width, high: *high }
            }
            Stmt::Strided { dst, parts } => {
                let (dst, lanes, of) = self.parts(*dst, parts)?;
                let count = of.len() as u32;
                if count == 0 || count >= lanes {
                    return Err(format!("every {count}th element of vectors does not make {lanes}"));
                }
                picked(dst, lanes, &of, &|lane| every(lanes, count, lane))
            }
            Stmt::Interleave { dst, parts, part } => {
                let (dst, lanes, of) = self.parts(*dst, parts)?;
                let count = of.len() as u32;
                if *part >= count {
                    return Err(format!("there is no vector {part} of {count} in turn"));
                }
                picked(dst, lanes, &of, &|lane| interleaved(lanes, count, *part, lane))
            }
            Stmt::Reduce { dst, op, vector } => {
                let ty = self.ty(*vector)?;
                if !ty.lanes.is_power_of_two() || op.arity() != 2 {
                    return Err(format!("{} lanes are not combined by {op:?}", ty.lanes));
                }
                let vector = self.val(*vector)?;
                Inst::Reduce { dst: self.val(*dst)?, op: *op, ty: ty.dtype(), vector, lanes: ty.lanes }
            }
            Stmt::All { dst, vector } => {
                let (vector, lanes) = self.vector(*vector)?;
                Inst::All { dst: self.val(*dst)?, vector, lanes }
            }
            Stmt::For { axis, lo, hi, step, body, .. } => return self.counted(*axis, [lo, hi, step], body),
            Stmt::Loop { body } => {
                let (start, number) = (self.here(), self.now);
                self.loops.push(Jumps::default());
                self.body(body)?;
                self.now = number;
                self.emit(Inst::Jump(start));
                self.close(start);
                return Ok(());
            }
            Stmt::Break | Stmt::Continue => {
                let jump = self.jump();
                let jumps = self.loops.last_mut().ok_or("break or continue outside a loop")?;
                if matches!(stmt, Stmt::Break) { &mut jumps.breaks } else { &mut jumps.continues }.push(jump);
                return Ok(());
            }
            Stmt::Return => Inst::Return,
            Stmt::If { mask, then, els } => {
                let test = self.code.len();
                let mask = MaskCode::compile(mask, self)?;
                self.emit(Inst::JumpUnless { mask, to: 0 });
                self.body(then)?;
                self.now = NO_STATEMENT;
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
            Stmt::Rmw { dst, op, place, value, mask, order } => {
                let (ty, value) = (self.ty(*dst)?, self.opnd(value, 1)?);
                let access = self.access(place, 1, mask, *order)?;
                self.cooperative = true;
                Inst::Rmw { dst: self.val(*dst)?, op: *op, elem: ty.dtype(), access, value }
            }
            Stmt::Cas { dst, place, cmp, value, mask, order } => {
                let (cmp, value) = (self.opnd(cmp, 1)?, self.opnd(value, 1)?);
                let access = self.access(place, 1, mask, *order)?;
                self.cooperative = true;
                Inst::Cas { dst: self.val(*dst)?, access, cmp, value }
            }
            Stmt::LoadOf { dst, place, of: block } => {
                let mut access = self.access(place, 1, &Mask::default(), Order::Weak)?;
                match &mut access.at {
                    At::Slot { space: Space::Shared, of, .. } if *block < self.kernel.cluster => {
                        *of = Some((*block, u64::from(*block) * self.kernel.apart()));
                    }
                    _ => return Err(format!("what block {block} of a cluster has is not in its shared memory")),
                }
                let (dst, lanes) = self.vector(*dst)?;
                if lanes != 1 {
                    return Err("an element of another block is a vector".to_string());
                }
                Inst::Load { dst, access, other: self.constant(0) }
            }
            Stmt::CopyAsync { to, from, bytes, mask } => {
                let of = |place: &Address| match place {
                    Address::Mem { elem, .. } => Some(elem.bytes()),
                    Address::Slot { buf, .. } => self.kernel.slots.get(*buf).map(|s| s.elem_bytes()),
                };
                let size =
                    of(to).filter(|size| of(from) == Some(*size) && u64::from(*bytes) % size == 0 && *bytes <= 16);
                let Some(size) = size else { return Err(format!("{bytes} bytes are copied of another element")) };
                let lanes = bytes / size as u32;
                let to = self.access(to, lanes, &Mask::default(), Order::Weak)?;
                let from = self.access(from, lanes, mask, Order::Weak)?;
                if !matches!((&to.at, &from.at), (At::Slot { space: Space::Shared, .. }, At::Memory { .. })) {
                    return Err("a copy does not go from global to shared memory".to_string());
                }
                Inst::CopyAsync { to, from, bytes: *bytes }
            }
            Stmt::TmaLoad { to, tensor, from, on, all } => {
                let (to, from) = self.boxed(*tensor, to, from)?;
                let (on, first) = self.mbarrier(on)?;
                Inst::TmaLoad { to, on, first, tensor: tensor.index(), from, all: *all }
            }
            Stmt::TmaStore { tensor, to, from } => {
                let (from, to) = self.boxed(*tensor, from, to)?;
                Inst::TmaStore { from, tensor: tensor.index(), to }
            }
            Stmt::Registers { count, more } => Inst::Registers { count: *count, more: *more },
            Stmt::StoreCommit => Inst::StoreCommit,
            Stmt::StoreWait { left } => Inst::StoreWait { left: *left },
            Stmt::InitBarrier { on, count } => {
                let (on, first) = self.mbarrier(on)?;
                Inst::InitBarrier { on, first, count: *count }
            }
            Stmt::Arrive { on, bytes, of } => {
                if let Some(block) = of.filter(|block| *block >= self.kernel.cluster) {
                    return Err(format!("a thread arrives at an mbarrier of block {block} of its cluster"));
                }
                let (on, first) = self.mbarrier(on)?;
                Inst::Arrive { on, first, bytes: *bytes, of: *of }
            }
            Stmt::WaitPhase { on, parity } => {
                let (on, first) = self.mbarrier(on)?;
                Inst::WaitPhase { on, first, parity: self.expr(parity)? }
            }
            Stmt::Fence { kind } => Inst::Fence(*kind),
            Stmt::Commit => Inst::Commit,
            Stmt::WaitGroups { left } => Inst::WaitGroups { left: *left },
            // A block is stopped between two slices.
            Stmt::Poll | Stmt::Prefetch { .. } => return Ok(()),
            Stmt::Barrier => Inst::Barrier,
            Stmt::BarrierFirst { count } => Inst::BarrierFirst { count: *count },
            Stmt::ClusterBarrier => Inst::ClusterBarrier,
            Stmt::SyncWarp => Inst::SyncWarp,
            Stmt::Shuffle { dst, kind, value, by } => {
                let (value, lanes) = self.vector(*value)?;
                if lanes != 1 {
                    return Err(format!("a vector of {lanes} is shuffled"));
                }
                Inst::Shuffle { dst: self.val(*dst)?, kind: *kind, value, by: self.opnd(by, 1)? }
            }
            Stmt::LoadMatrix { dst, place, transposed } => {
                let Address::Slot { buf, .. } = place else {
                    return Err("a matrix is not in shared memory".to_string());
                };
                let bytes = self.kernel.slots.get(*buf).map_or(16, |s| s.elem_bytes()).clamp(1, 16);
                let access = self.access(place, (16 / bytes) as u32, &Mask::default(), Order::Weak)?;
                let (dst, words) = self.vector(*dst)?;
                let whole = match transposed {
                    Transposed::No => true,
                    Transposed::Yes => bytes == 2,
                    Transposed::Left | Transposed::Right => bytes == 1 && words == 4,
                };
                if !matches!(access.at, At::Slot { space: Space::Shared, .. }) || !whole {
                    return Err("a matrix is not one of shared memory".to_string());
                }
                Inst::LoadMatrix { dst, access, words, transposed: *transposed }
            }
            Stmt::AmxLoad { tile, place, by } | Stmt::AmxStore { tile, place, by } => {
                let first = self.tile(*tile)?;
                for row in 0..TILE_SIDE {
                    let mut place = place.clone();
                    let (Address::Mem { index, .. } | Address::Slot { index, .. }) = &mut place;
                    *index = Ix::add(index.clone(), Ix::mul(by.clone(), Ix::Const(row.into())));
                    let access = self.access(&place, TILE_SIDE, &Mask::default(), Order::Weak)?;
                    let first = first + row * TILE_SIDE;
                    self.emit(match stmt {
                        Stmt::AmxLoad { .. } => Inst::Load { dst: first, access, other: Arg { first, stride: 1 } },
                        _ => Inst::Store { value: Arg { first, stride: 1 }, access },
                    });
                }
                return Ok(());
            }
            Stmt::AmxDot { of, sums, a, b } => {
                let [sums, a, b] = [self.tile(*sums)?, self.tile(*a)?, self.tile(*b)?];
                let (op, ty) = of.op();
                for (row, k) in (0..TILE_SIDE).flat_map(|row| (0..TILE_SIDE).map(move |k| (row * TILE_SIDE, k))) {
                    let dst = sums + row;
                    let left = Arg { first: a + row + k, stride: 0 };
                    let right = Arg { first: b + k * TILE_SIDE, stride: 1 };
                    let args = [left, right, Arg { first: dst, stride: 1 }];
                    self.emit(Inst::Let { dst, op, ty, args, count: 3, lanes: TILE_SIDE });
                }
                return Ok(());
            }
            Stmt::Mma { acc: [low, high], apart, a, b, of } => {
                let ((a, of_a), (b, of_b)) = (self.vector(*a)?, self.vector(*b)?);
                if (of_a, of_b) != (4, 2) {
                    return Err(format!("fragments of {of_a} and {of_b} words are multiplied"));
                }
                let apart = (*apart).clamp(1, 2);
                let mut sums = |place| self.access(place, 1 + apart, &Mask::default(), Order::Weak);
                Inst::Mma { acc: [sums(low)?, sums(high)?], apart, a, b, of: *of }
            }
            Stmt::Wgmma { acc, a, b, of } => {
                let len = self.kernel.slots.get(*acc).map_or(0, |s| s.len) as u32;
                let place = Address::Slot { buf: *acc, index: Ix::Const(0) };
                let acc = self.access(&place, len, &Mask::default(), Order::Weak)?;
                let a = match a {
                    Left::Panel(panel) => LeftCode::Panel(self.panel(panel)?),
                    Left::Words(place) => {
                        LeftCode::Words(self.access(place, Left::WORDS, &Mask::default(), Order::Weak)?)
                    }
                };
                Inst::Wgmma { acc, a, b: self.panel(b)?, of: *of }
            }
            Stmt::WgmmaCommit => Inst::WgmmaCommit,
            Stmt::WgmmaWait { left, .. } => Inst::WgmmaWait { left: *left },
            Stmt::Tcgen05Alloc { to, columns } => {
                // The first lane of the warp stores what all of them get.
                let (dst, lane) = (self.hidden, Ix::modulo(Ix::Thread, Ix::Const(self.kernel.warp.max(1).into())));
                self.hidden += 1;
                self.emit(Inst::Tcgen05Alloc { dst, columns: *columns });
                let first = Cond { lhs: lane, cmp: Cmp::Eq, rhs: Ix::Const(0) };
                let mask = Mask { conds: vec![first], vals: vec![] };
                let access = self.access(to, 1, &mask, Order::Weak)?;
                Inst::Store { access, value: Arg { first: dst, stride: 0 } }
            }
            Stmt::Tcgen05Relinquish => Inst::Tcgen05Relinquish,
            Stmt::Tcgen05Dealloc { at, columns } => Inst::Tcgen05Dealloc { at: self.expr(at)?, columns: *columns },
            Stmt::Tcgen05Mma { kind, sums, a, b, instruction, add } => {
                let (sums, add) = (self.expr(sums)?, MaskCode::compile(add, self)?);
                let [a, b] = [self.described(a)?, self.described(b)?];
                Inst::Tcgen05Mma(Box::new(MmaCode { kind: *kind, sums, a, b, instruction: *instruction, add }))
            }
            Stmt::Tcgen05Commit { on } => {
                let (on, first) = self.mbarrier(on)?;
                Inst::Tcgen05Commit { on, first }
            }
            Stmt::Tcgen05Load { acc, at } => {
                let len = self.kernel.slots.get(*acc).map_or(0, |s| s.len) as u32;
                let place = Address::Slot { buf: *acc, index: Ix::Const(0) };
                Inst::Tcgen05Load { acc: self.access(&place, len, &Mask::default(), Order::Weak)?, at: self.expr(at)? }
            }
            Stmt::Tcgen05Wait { acc } => Inst::Tcgen05Wait { acc: *acc },
            Stmt::Yield { .. } => {
                self.cooperative = true;
                Inst::Yield
            }
            Stmt::Print { format, args, site } => self.print(format, args, *site)?,
            Stmt::Assert { cond, message, element, site } => {
                let (cond, message) = (self.opnd(cond, 1)?, message.raw().to_string());
                Inst::Assert { cond, message, element: self.element(element)?, site: *site }
            }
            Stmt::Check { place, count, mask, write, param, element, site } => {
                let access = self.access(place, *count, mask, Order::Weak)?;
                let param = match param {
                    Some(n) => {
                        let val = self.kernel.params.get(*n as usize).ok_or("there is no such parameter")?;
                        Some(self.val(*val)?)
                    }
                    None => None,
                };
                Inst::Check { access, write: *write, param, element: self.element(element)?, site: *site }
            }
            Stmt::GlobalAddr { dst, global } => {
                if *global as usize >= self.kernel.globals.len() {
                    return Err(format!("there is no global {global}"));
                }
                let from = Arg { first: self.first_global + global, stride: 0 };
                Inst::Copy { dst: self.val(*dst)?, from, lanes: 1 }
            }
            Stmt::Scratch { dst, offset } => Inst::Scratch { dst: self.val(*dst)?, offset: self.expr(offset)? },
            Stmt::SharedAddr { dst, offset } => Inst::SharedAddr { dst: self.val(*dst)?, offset: self.expr(offset)? },
        };
        self.emit(inst);
        Ok(())
    }

    fn panel(&mut self, panel: &Panel) -> Res<PanelCode> {
        let access = self.access(&panel.place, 1, &Mask::default(), Order::Weak)?;
        match access.at {
            At::Slot { space: Space::Shared, .. } => Ok(PanelCode { access, panel: panel.clone() }),
            _ => Err("a panel is not in shared memory".to_string()),
        }
    }

    fn described(&mut self, of: &Described) -> Res<DescribedCode> {
        let access = self.access(&of.place, 1, &Mask::default(), Order::Weak)?;
        match access.at {
            At::Slot { space: Space::Shared, .. } => Ok(DescribedCode { access, number: of.number }),
            _ => Err("an operand of `tcgen05 mma` is not in shared memory".to_string()),
        }
    }

    fn counted(&mut self, axis: AxisId, [lo, hi, step]: [&Ix; 3], body: &[Stmt]) -> Res<()> {
        let counter = Counter { axis: self.axis(axis)?, end: self.hidden, step: self.hidden + 1 };
        self.hidden += 2;
        let (head, number) = (self.code.len(), self.now);
        let (lo, hi, step) = (self.expr(lo)?, self.expr(hi)?, self.expr(step)?);
        self.emit(Inst::For { counter, lo, hi, step, exit: 0 });
        let start = self.here();
        self.loops.push(Jumps::default());
        self.body(body)?;
        self.now = number;
        let next = self.here();
        self.emit(Inst::Next { counter, body: start });
        let end = self.here();
        self.point(head, end);
        self.close(next);
        Ok(())
    }

    /// Ends a loop: `break` goes here, `continue` to `next`.
    fn close(&mut self, next: u32) {
        let (end, jumps) = (self.here(), self.loops.pop().unwrap_or_default());
        jumps.continues.iter().for_each(|j| self.point(*j, next));
        jumps.breaks.iter().for_each(|j| self.point(*j, end));
    }

    fn operation(&mut self, dst: ValId, op: ScalarOp, elem: Elem, args: &[Opnd]) -> Res<Inst> {
        let count = op.arity();
        if args.len() != count || count > 3 {
            return Err(format!("{op:?} takes {count} operands"));
        }
        let (dst, lanes) = self.vector(dst)?;
        let mut slots = [Arg { first: 0, stride: 0 }; 3];
        for (slot, arg) in slots.iter_mut().zip(args) {
            *slot = self.opnd(arg, lanes)?;
        }
        if op == ScalarOp::PtrAdd {
            let Elem::Ptr(elem) = elem else { return Err("only an address is offset".to_string()) };
            let bits = match &args[1] {
                Opnd::Val(v) => self.ty(*v)?.dtype().bits(),
                Opnd::Const { dtype, .. } => dtype.bits(),
            };
            return Ok(Inst::PtrAdd { dst, elem, base: slots[0], index: slots[1], shift: 64 - bits as u8, lanes });
        }
        // Addresses convert by keeping their bits.
        let op = if matches!(op, ScalarOp::Bitcast { .. }) { ScalarOp::Copy } else { op };
        Ok(Inst::Let { dst, op, ty: elem.held(), args: slots, count: count as u8, lanes })
    }

    fn print(&mut self, format: &Quoted, args: &[PrintArg], site: SiteId) -> Res<Inst> {
        let mut shown = Vec::new();
        for arg in args {
            shown.push(match arg {
                PrintArg::Scalar(opnd) => {
                    let ty = match opnd {
                        Opnd::Val(v) => self.ty(*v)?,
                        Opnd::Const { dtype, .. } => Ty::num(*dtype, 1),
                    };
                    Shown::Scalar(self.opnd(opnd, 1)?, ty)
                }
                PrintArg::Tile { slot, shape } => {
                    let own = self.own.get(slot.0 as usize);
                    let slot = self.kernel.slots.get(*slot).ok_or("there is no such slot")?;
                    let count = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
                    if count.is_none_or(|n| n > slot.len) {
                        return Err(format!("a print shows more elements than `{}` has", slot.name));
                    }
                    match own {
                        Some(Some(own)) => Shown::Own(own.first, slot.elem, shape.clone()),
                        _ => Shown::Slot(slot.space, slot.offset, slot.elem, shape.clone()),
                    }
                }
            });
        }
        let format = format.raw().to_string();
        Ok(Inst::Print { format, args: shown.into(), site })
    }
}
