//! Executes an instruction in the lanes of a group.

use super::block::{Block, Flow, Group, Machine, Wait, Warp};
use super::code::{self, Access, Inst, Shown, in_slot};
use super::ops::{self, each};
use super::places::{Kind, Places, Stores, element};
use super::watch::{Outside, Place, Touch, Watch, What, Wrong};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::base::memory::Fault;
use crate::kernel::ir::*;
use crate::loops::eval::access;
use crate::loops::eval::expr::Expr;
use crate::loops::ir::assertion_code;
use crate::num::ScalarOp;
use crate::num::printf::{self, PrintValue};

/// The current statement and lanes.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub block: [u32; 3],
    pub statement: u32,
    pub warp: usize,
    pub lanes: u32,
    /// The access goes on until a wait covers it.
    pub lasts: bool,
}

impl<const W: usize, V: Watch> Machine<'_, W, V> {
    /// Runs one instruction.
    pub(super) fn step(&mut self, block: &mut Block<W, V::Local>, warp: usize, group: usize) -> Result<Flow, Trap> {
        let program = self.program;
        let Group { at: here, lanes: mask, .. } = block.warps[warp].groups[group];
        let Some(inst) = program.code.get(here as usize) else {
            self.end(block, warp, group)?;
            return Ok(Flow::Stopped);
        };
        let statement = program.statements[here as usize];
        self.watch.ran(block.id, warp as u32, statement, mask.count_ones())?;
        let at = At { block: block.id, statement, warp, lanes: mask, lasts: false };
        match inst {
            Inst::Barrier => {
                self.wait(block, warp, group, Wait::Block)?;
                return Ok(Flow::Stopped);
            }
            Inst::BarrierFirst { count } => {
                self.wait(block, warp, group, Wait::First(*count))?;
                return Ok(Flow::Stopped);
            }
            Inst::ClusterBarrier => {
                self.wait(block, warp, group, Wait::Cluster)?;
                return Ok(Flow::Stopped);
            }
            Inst::SyncWarp
            | Inst::Shuffle { .. }
            | Inst::LoadMatrix { .. }
            | Inst::Mma { .. }
            | Inst::Wgmma { .. }
            | Inst::WgmmaCommit
            | Inst::WgmmaWait { .. }
            | Inst::Tcgen05Alloc { .. }
            | Inst::Tcgen05Relinquish
            | Inst::Tcgen05Dealloc { .. }
            | Inst::Tcgen05Load { .. }
            | Inst::Tcgen05Wait { .. } => {
                self.wait(block, warp, group, Wait::Warp)?;
                return Ok(Flow::Stopped);
            }
            Inst::Return => {
                self.end(block, warp, group)?;
                return Ok(Flow::Stopped);
            }
            Inst::WaitPhase { on, first, parity } => {
                let parity = parity.lanes(&block.warps[warp].regs);
                let passed = self.wait_phase(block, at, group, (on, *first), parity)?;
                return Ok(if passed { Flow::Go } else { Flow::Stopped });
            }
            Inst::Registers { count, more } => {
                let has = self.registers(block, at, group, (*count, *more))?;
                return Ok(if has { Flow::Go } else { Flow::Stopped });
            }
            _ => {}
        }
        block.warps[warp].groups[group].at = here + 1;
        let Warp { regs, groups, .. } = &mut block.warps[warp];
        match inst {
            Inst::Barrier
            | Inst::BarrierFirst { .. }
            | Inst::ClusterBarrier
            | Inst::SyncWarp
            | Inst::Shuffle { .. } => {}
            Inst::Return | Inst::WaitPhase { .. } => {}
            Inst::LoadMatrix { .. } | Inst::Mma { .. } => {}
            Inst::Wgmma { .. } | Inst::WgmmaCommit | Inst::WgmmaWait { .. } => {}
            Inst::Tcgen05Alloc { .. } | Inst::Tcgen05Relinquish | Inst::Tcgen05Dealloc { .. } => {}
            Inst::Tcgen05Load { .. } | Inst::Tcgen05Wait { .. } => {}
            Inst::Tcgen05Mma(code) => self.multiply_in_tensor(block, at, code)?,
            Inst::Tcgen05Commit { on, first } => self.commit_in_tensor(block, at, (on, *first))?,
            Inst::Copy { dst, from, lanes } => {
                for e in 0..*lanes {
                    let value = regs[from.lane(e)];
                    let to = &mut regs[(dst + e) as usize];
                    each::<W>(mask, |l| to[l] = value[l]);
                }
            }
            Inst::Let { dst, op, ty, args, count, lanes } => {
                for e in 0..*lanes {
                    let mut out = regs[(dst + e) as usize];
                    let args = args.map(|a| &regs[a.lane(e)]);
                    ops::lanes(*op, *ty, args, usize::from(*count), mask, &mut out);
                    regs[(dst + e) as usize] = out;
                }
            }
            Inst::PtrAdd { dst, elem, base, index, shift, lanes } => {
                for e in 0..*lanes {
                    let index = regs[index.lane(e)].map(|i| (((i << shift) as i64) >> shift) as u64);
                    let mut out = regs[(dst + e) as usize];
                    let base = &regs[base.lane(e)];
                    ops::lanes(ScalarOp::PtrAdd, *elem, [base, &index, &index], 2, mask, &mut out);
                    regs[(dst + e) as usize] = out;
                }
            }
            Inst::Ramp { dst, base, step, lanes, mask: bits } => {
                let (base, step) = (base.lanes(regs), step.lanes(regs));
                for e in 0..*lanes {
                    let to = &mut regs[(dst + e) as usize];
                    let value = |l: usize| base[l].wrapping_add(step[l].wrapping_mul(i64::from(e)));
                    each::<W>(mask, |l| to[l] = value(l) as u64 & bits);
                }
            }
            Inst::Index { dst, ix, mask: bits } => {
                let value = ix.lanes(regs);
                let to = &mut regs[*dst as usize];
                each::<W>(mask, |l| to[l] = value[l] as u64 & bits);
            }
            Inst::Test { dst, mask: test } => {
                let on = test.lanes(regs);
                let to = &mut regs[*dst as usize];
                each::<W>(mask, |l| to[l] = u64::from(on >> l & 1));
            }
            Inst::Lane { dst, vector, lanes, lane } => {
                let which = self.elements(at, lane, *lanes, regs)?;
                each::<W>(mask, |l| regs[*dst as usize][l] = regs[(vector + which[l]) as usize][l]);
            }
            Inst::SetLane { vector, lanes, lane, value } => {
                let which = self.elements(at, lane, *lanes, regs)?;
                let value = regs[value.lane(0)];
                each::<W>(mask, |l| regs[(vector + which[l]) as usize][l] = value[l]);
            }
            Inst::Merge { dst, a, b, lanes, width, high } => {
                for e in 0..*lanes {
                    let from = match (e / width % 2 == 0, high) {
                        (true, false) => a + e,
                        (false, false) => b + e - width,
                        (true, true) => a + e + width,
                        (false, true) => b + e,
                    };
                    let value = regs[from as usize];
                    let to = &mut regs[(dst + e) as usize];
                    each::<W>(mask, |l| to[l] = value[l]);
                }
            }
            Inst::Pick { dst, lanes } => {
                for (e, from) in lanes.iter().enumerate() {
                    let value = regs[*from as usize];
                    let to = &mut regs[*dst as usize + e];
                    each::<W>(mask, |l| to[l] = value[l]);
                }
            }
            Inst::Reduce { dst, op, ty, vector, lanes } => {
                let first = *vector as usize;
                let mut parts = regs[first..first + *lanes as usize].to_vec();
                while parts.len() > 1 {
                    let upper = parts.split_off(parts.len() / 2);
                    for (a, b) in parts.iter_mut().zip(&upper) {
                        let mut out = *a;
                        ops::lanes(*op, *ty, [a, b, b], 2, mask, &mut out);
                        *a = out;
                    }
                }
                let (value, to) = (parts.first().copied().unwrap_or([0; W]), &mut regs[*dst as usize]);
                each::<W>(mask, |l| to[l] = value[l]);
            }
            Inst::All { dst, vector, lanes } => {
                let mut all = [1; W];
                for e in 0..*lanes {
                    let of = &regs[(vector + e) as usize];
                    (0..W).for_each(|l| all[l] &= u64::from(of[l] != 0));
                }
                let to = &mut regs[*dst as usize];
                each::<W>(mask, |l| to[l] = all[l]);
            }
            Inst::For { counter, lo, hi, step, exit } => {
                let (lo, hi, step) = (lo.lanes(regs), hi.lanes(regs), step.lanes(regs));
                let mut on = 0;
                let mut least = 1;
                each::<W>(mask, |l| least = least.min(step[l]));
                each::<W>(mask, |l| on |= u32::from(lo[l] < hi[l]) << l);
                for (slot, from) in [(counter.axis, &lo), (counter.end, &hi), (counter.step, &step)] {
                    let to = &mut regs[slot as usize];
                    each::<W>(mask, |l| to[l] = from[l] as u64);
                }
                if least <= 0 {
                    let message = format!("the step of a loop is {least}; it must be positive");
                    return Err(self.trap(at.block, Code::StepNotPositive, None, message));
                }
                branch(groups, group, on, *exit);
            }
            Inst::Next { counter, body } => {
                let (end, step) = (regs[counter.end as usize], regs[counter.step as usize]);
                let axis = &mut regs[counter.axis as usize];
                let mut done = 0;
                each::<W>(mask, |l| {
                    // Steps are positive, so what is not more went past the largest number.
                    let (now, next) = (axis[l] as i64, (axis[l] as i64).wrapping_add(step[l] as i64));
                    let left = next > now && next < end[l] as i64;
                    axis[l] = if left { next as u64 } else { axis[l] };
                    done |= u32::from(!left) << l;
                });
                branch(groups, group, done, *body);
            }
            Inst::Jump(to) => groups[group].at = *to,
            Inst::JumpUnless { mask: test, to } => {
                let on = mask & test.lanes(regs);
                branch(groups, group, on, *to);
            }
            Inst::Yield => return Ok(Flow::GaveWay),
            Inst::Load { dst, access, other } => {
                let on = mask & access.mask.lanes(regs);
                if on != mask {
                    for e in 0..access.lanes {
                        let value = regs[other.lane(e)];
                        let to = &mut regs[(dst + e) as usize];
                        each::<W>(mask & !on, |l| to[l] = value[l]);
                    }
                }
                self.load(block, At { lanes: on, ..at }, *dst, access)?;
                return Ok(after(access));
            }
            Inst::Store { access, value } => {
                let on = mask & access.mask.lanes(regs);
                let lane_of = |e| value.lane(e);
                self.store(block, At { lanes: on, ..at }, lane_of, access)?;
                return Ok(after(access));
            }
            Inst::Rmw { dst, op, elem, access, value } => {
                let on = mask & access.mask.lanes(regs);
                let value = regs[value.lane(0)];
                each::<W>(mask & !on, |l| regs[*dst as usize][l] = 0);
                let new = |l: usize, old| Some(access::combined(*op, *elem, old, value[l]));
                self.update(block, At { lanes: on, ..at }, *dst, access, new)?;
                return Ok(Flow::GaveWay);
            }
            Inst::Cas { dst, access, cmp, value } => {
                let on = mask & access.mask.lanes(regs);
                let (cmp, value) = (regs[cmp.lane(0)], regs[value.lane(0)]);
                each::<W>(mask & !on, |l| regs[*dst as usize][l] = cmp[l]);
                let new = |l: usize, old| (old == cmp[l]).then_some(value[l]);
                self.update(block, At { lanes: on, ..at }, *dst, access, new)?;
                return Ok(Flow::GaveWay);
            }
            Inst::CopyAsync { to, from, bytes } => self.copy(block, at, (to, from), *bytes)?,
            Inst::TmaLoad { to, on, first, tensor, from, all } => {
                self.copy_box(block, at, (to, (on, *first)), (*tensor, from), *all)?
            }
            Inst::TmaStore { from, tensor, to } => self.store_box(block, at, from, *tensor, to)?,
            Inst::Registers { .. } => {}
            Inst::StoreCommit => self.commit_stores(block, at),
            Inst::StoreWait { left } => self.wait_stores(block, at, *left),
            Inst::InitBarrier { on, first, count } => self.init(block, at, (on, *first), *count)?,
            Inst::Arrive { on, first, bytes, of } => self.arrive(block, at, (on, *first), *bytes, *of)?,
            Inst::Fence(fence) => self.fence(block, at, *fence),
            Inst::Commit => block.warps[warp].flights.commit(mask),
            Inst::WaitGroups { left } => self.wait_groups(block, at, *left),
            Inst::Print { format, args, site } => self.print(block, at, format, args, *site)?,
            Inst::Assert { cond, message, element, site } => {
                let holds = regs[cond.lane(0)];
                if let Some(l) = (0..W).find(|l| mask >> l & 1 == 1 && holds[*l] == 0) {
                    let op = self.placed.sites.get(*site).map_or("assert", |s| s.op.as_str());
                    let trap = self.trap(at.block, assertion_code(op), Some(*site), message.clone());
                    return Err(Trap { element: element_of(element, regs, l), ..trap });
                }
            }
            Inst::Check { access, write, param, element, site } => {
                let on = mask & access.mask.lanes(regs);
                let regs = &block.warps[warp].regs;
                let places =
                    Places::of(access, regs, (warp * W) as u32, self.program.scratch_bytes, self.shared_of(warp));
                for l in (0..W).filter(|l| on >> l & 1 == 1) {
                    let param = param.map(|p| regs[p as usize][l]);
                    if let Some(fault) = self.not_live(&places, l, access.lanes, param) {
                        let trap = self.fault(at.block, Some(*site), if *write { "write" } else { "read" }, fault);
                        return Err(Trap { element: element_of(element, regs, l), ..trap });
                    }
                }
            }
            Inst::Scratch { dst, offset } => {
                let (base, offset) = (regs[self.program.scratch as usize], offset.lanes(regs));
                let to = &mut regs[*dst as usize];
                each::<W>(mask, |l| to[l] = base[l].wrapping_add(offset[l] as u64));
            }
            Inst::SharedAddr { dst, offset } => {
                let base = block.shared_address.wrapping_add(self.member(warp) as u64 * self.program.shared_bytes);
                let offset = offset.lanes(regs);
                let to = &mut regs[*dst as usize];
                each::<W>(mask, |l| to[l] = base.wrapping_add(offset[l] as u64));
            }
        }
        Ok(Flow::Go)
    }

    /// The element of a vector that each lane refers to, if the vector has it.
    fn elements(&self, at: At, which: &Expr, count: u32, regs: &[[u64; W]]) -> Result<[u32; W], Trap> {
        let which = which.lanes(regs);
        let mut out = [0; W];
        for l in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            out[l] = match u32::try_from(which[l]) {
                Ok(e) if e < count => e,
                _ => return Err(self.broken(at.block, &format!("lane {} of a vector of {count}", which[l]))),
            };
        }
        Ok(out)
    }

    /// The places of an access; lanes whose elements are not in their slot are reported to the watch and left out.
    pub(super) fn places(
        &mut self,
        block: &Block<W, V::Local>,
        at: &mut At,
        access: &Access,
        what: What,
    ) -> Result<Places<W>, Trap> {
        let first = (at.warp * W) as u32;
        let (regs, shared) = (&block.warps[at.warp].regs, self.shared_of(at.warp));
        let places = Places::of(access, regs, first, self.program.scratch_bytes, shared);
        let Some((buf, len)) = places.slot else { return Ok(places) };
        let mut outside = 0;
        each::<W>(at.lanes, |l| outside |= u32::from(!places.inside(l, access.lanes)) << l);
        for l in (0..W).filter(|l| outside >> l & 1 == 1) {
            let (index, count) = (places.index[l], access.lanes);
            let space = if places.kind == Kind::Shared { Space::Shared } else { Space::Scratch };
            let place = Place::Slot { buf, space, index, count };
            let thread = first + l as u32;
            let placed = self.placed;
            let told = Outside { block: at.block, statement: at.statement, thread, what, place };
            self.watch.outside(told, || {
                let what = format!("elements {index} to {index} + {count} of a slot that has {len} are touched");
                let message = format!("a bug in the compiler: {what}");
                super::block::trap(placed, at.block, Code::InvalidIr, None, message)
            })?;
        }
        at.lanes &= !outside;
        Ok(places)
    }

    /// The number of a warp's block in its cluster.
    pub(super) fn member(&self, warp: usize) -> usize {
        warp / self.program.warps(W).max(1)
    }

    /// Where the shared memory of a warp's block begins in that of its cluster.
    pub(super) fn shared_of(&self, warp: usize) -> u64 {
        self.member(warp) as u64 * self.program.shared_bytes
    }

    /// Tells the watch of accesses that the memory refused.
    pub(super) fn refused(&mut self, at: &mut At, faults: &[(usize, Fault)], what: What) -> Result<(), Trap> {
        for (l, fault) in faults {
            at.lanes &= !(1 << l);
            let near = access::near(self.memory, *fault);
            let thread = (at.warp * W + l) as u32;
            let trap = self.fault(at.block, None, if what == What::Read { "read" } else { "write" }, *fault);
            let place = Place::Memory { fault: *fault, near };
            self.watch.outside(Outside { block: at.block, statement: at.statement, thread, what, place }, || trap)?;
        }
        Ok(())
    }

    pub(super) fn touched(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        (places, access): (&Places<W>, &Access),
        what: What,
        wrote: u32,
    ) {
        if matches!(places.kind, Kind::Scratch | Kind::Own) || at.lanes == 0 || !self.watch.wants_touches() {
            return;
        }
        let mut address = [0; W];
        each::<W>(at.lanes, |l| address[l] = places.address(l));
        let elem = places.elem.bytes() as u32;
        let touch = Touch {
            statement: at.statement,
            warp: at.warp as u32,
            lanes: at.lanes,
            wrote: wrote & at.lanes,
            shared: places.kind == Kind::Shared,
            what,
            order: access.order,
            lasts: at.lasts,
            bytes: elem * access.lanes,
            elem,
            address: &address,
            upper: places.upper(at.lanes),
        };
        self.watch.touched(&mut block.local, &touch);
    }

    /// Lanes whose place is outside get 0.
    fn load(&mut self, block: &mut Block<W, V::Local>, mut at: At, dst: u32, access: &Access) -> Result<(), Trap> {
        if at.lanes == 0 {
            return Ok(());
        }
        self.not_in_flight(block, at, access);
        let all = at.lanes;
        if let code::At::Slot { of: Some((member, _)), .. } = &access.at
            && block.members.get(*member as usize).is_none_or(|m| m.live == 0)
        {
            let what = format!("shared memory of block {member} of the cluster is read, and that block has ended");
            self.wrong(at, at.lanes.trailing_zeros() as usize, Wrong::Tensor(what));
        }
        if let code::At::Own { first, len, index, .. } = &access.at {
            let regs = &mut block.warps[at.warp].regs;
            if let Some(from) = alike(&index.lanes(regs), all, *len, access.lanes) {
                for e in 0..access.lanes {
                    let value = regs[(first + from + e) as usize];
                    let to = &mut regs[(dst + e) as usize];
                    each::<W>(all, |l| to[l] = value[l]);
                }
                return Ok(());
            }
        }
        let places = self.places(block, &mut at, access, What::Read)?;
        let mut faults = vec![];
        let Block { warps, scratch, shared, .. } = &mut *block;
        let stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        for e in 0..access.lanes {
            let mut to = stores.regs[(dst + e) as usize];
            each::<W>(all & !at.lanes, |l| to[l] = 0);
            each::<W>(at.lanes, |l| match stores.read(&places, l, e) {
                Ok(bits) => to[l] = bits,
                Err(fault) => {
                    to[l] = 0;
                    faults.push((l, fault));
                }
            });
            stores.regs[(dst + e) as usize] = to;
        }
        self.refused(&mut at, &faults, What::Read)?;
        self.touched(block, at, (&places, access), What::Read, 0);
        Ok(())
    }

    fn store(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        value: impl Fn(u32) -> usize,
        access: &Access,
    ) -> Result<(), Trap> {
        if at.lanes == 0 {
            return Ok(());
        }
        self.not_in_flight(block, at, access);
        self.changed(block, at, access);
        if let code::At::Own { first, len, index, elem, .. } = &access.at {
            let regs = &mut block.warps[at.warp].regs;
            if let Some(element) = alike(&index.lanes(regs), at.lanes, *len, access.lanes) {
                for e in 0..access.lanes {
                    let from = regs[value(e)];
                    let to = &mut regs[(first + element + e) as usize];
                    each::<W>(at.lanes, |l| to[l] = from[l] & elem.mask());
                }
                return Ok(());
            }
        }
        let places = self.places(block, &mut at, access, What::Write)?;
        let mut faults = vec![];
        let backwards = self.schedule.last_lane_first();
        let Block { warps, scratch, shared, .. } = &mut *block;
        let mut stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        for e in 0..access.lanes {
            let from = stores.regs[value(e)];
            let mut write = |l: usize| {
                if let Err(fault) = stores.write(&places, l, e, from[l]) {
                    faults.push((l, fault));
                }
            };
            if backwards {
                (0..W).rev().filter(|l| at.lanes >> l & 1 == 1).for_each(write);
            } else {
                each::<W>(at.lanes, &mut write);
            }
        }
        self.refused(&mut at, &faults, What::Write)?;
        self.touched(block, at, (&places, access), What::Write, at.lanes);
        Ok(())
    }

    /// An atomic of one lane after the other; `new` gives what is to be stored, if anything.
    fn update(
        &mut self,
        block: &mut Block<W, V::Local>,
        mut at: At,
        dst: u32,
        access: &Access,
        new: impl Fn(usize, u64) -> Option<u64>,
    ) -> Result<(), Trap> {
        if at.lanes == 0 {
            return Ok(());
        }
        let places = self.places(block, &mut at, access, What::Update)?;
        let (mut faults, mut wrote) = (vec![], 0);
        let Block { warps, scratch, shared, .. } = &mut *block;
        let mut stores = Stores { memory: &mut *self.memory, scratch, shared, regs: &mut warps[at.warp].regs };
        let mut to = stores.regs[dst as usize];
        each::<W>(at.lanes, |l| {
            let done = stores.read(&places, l, 0).and_then(|old| {
                to[l] = old;
                let Some(bits) = new(l, old) else { return Ok(()) };
                wrote |= 1 << l;
                stores.write(&places, l, 0, bits)
            });
            if let Err(fault) = done {
                faults.push((l, fault));
            }
        });
        stores.regs[dst as usize] = to;
        self.refused(&mut at, &faults, What::Update)?;
        self.touched(block, at, (&places, access), What::Update, wrote);
        Ok(())
    }

    fn fault(&self, block: [u32; 3], site: Option<SiteId>, what: &str, fault: Fault) -> Trap {
        let near = access::near(self.memory, fault);
        let message = format!("a {what} of {} bytes at address {:#x} is out of bounds{near}", fault.len, fault.addr);
        self.trap(block, Code::OutOfBounds, site, message)
    }

    /// The fault of an access that lies in no region, or in another region than the parameter's.
    fn not_live(&self, places: &Places<W>, lane: usize, count: u32, param: Option<u64>) -> Option<Fault> {
        if places.kind != Kind::Memory {
            return None;
        }
        let region = |addr: u64| self.memory.region(addr).map(|(_, start, _)| start);
        for e in 0..count {
            let index = places.index[lane].wrapping_add(i64::from(e));
            if let Err(fault) = access::load(self.memory, places.base[lane], index, places.elem) {
                return Some(fault);
            }
            let bits = (index as u64).wrapping_mul(places.elem.bits().into());
            let addr = places.base[lane].wrapping_add(bits / 8);
            if param.is_some_and(|p| region(p) != region(addr)) {
                return Some(Fault { addr, len: places.elem.bytes() });
            }
        }
        None
    }

    fn print(
        &mut self,
        block: &mut Block<W, V::Local>,
        at: At,
        format: &str,
        args: &[Shown],
        site: SiteId,
    ) -> Result<(), Trap> {
        for l in (0..W).filter(|l| at.lanes >> l & 1 == 1) {
            let thread = (at.warp * W + l) as u64;
            let mut values = Vec::new();
            for arg in args {
                let (ty, shape, bits) = match arg {
                    Shown::Own(first, elem, shape) => {
                        let (first, count) = (*first as usize, shape.iter().product::<u64>() as usize);
                        let regs = &block.warps[at.warp].regs;
                        (*elem, shape.clone(), regs[first..first + count].iter().map(|r| r[l]).collect())
                    }
                    Shown::Scalar(slot, ty) => (ty.elem, vec![], vec![block.warps[at.warp].regs[slot.lane(0)][l]]),
                    Shown::Slot(space, offset, elem, shape) => {
                        let (bytes, base) = match space {
                            Space::Shared | Space::Mbarrier => (&block.shared, *offset),
                            Space::Scratch | Space::Kept { .. } => {
                                (&block.scratch, thread * self.program.scratch_bytes + offset)
                            }
                        };
                        let count = shape.iter().product::<u64>();
                        let bits = (0..count).map(|i| element(bytes, base, i as i64, in_slot(*elem)));
                        (*elem, shape.clone(), bits.collect())
                    }
                };
                values.push(PrintValue { ty, shape, bits });
            }
            let text =
                printf::format(format, &values).map_err(|e| self.trap(at.block, Code::BadFormat, Some(site), e))?;
            block.out.push_str(&text);
        }
        Ok(())
    }
}

/// The element at which all lanes of a mask stand, if it is the same for all and it and the `count` elements from it on
/// are in the array.
fn alike<const W: usize>(index: &[i64; W], lanes: u32, len: u64, count: u32) -> Option<u32> {
    let first = index[lanes.trailing_zeros() as usize % W];
    let mut differ = 0;
    (0..W).for_each(|l| differ |= u32::from(index[l] != first) << l);
    let end = u64::try_from(first).ok()?.checked_add(u64::from(count))?;
    (differ & lanes == 0 && end <= len).then_some(first as u32)
}

/// The lanes of `on` go on behind the instruction; the others go to `to`.
fn branch(groups: &mut Vec<Group>, group: usize, on: u32, to: u32) {
    let lanes = groups[group].lanes;
    if on == lanes {
        return;
    }
    if on == 0 {
        groups[group].at = to;
        return;
    }
    groups[group].lanes = on;
    groups.push(Group { at: to, lanes: lanes & !on, waits: None });
}

fn after(access: &Access) -> Flow {
    if access.ordered() { Flow::GaveWay } else { Flow::Go }
}

/// The element that a message names.
fn element_of<const W: usize>(element: &Option<Expr>, regs: &[[u64; W]], lane: usize) -> Option<Vec<u64>> {
    let at = element.as_ref().map(|e| e.lanes(regs)[lane])?;
    u64::try_from(at).ok().map(|at| vec![at])
}
