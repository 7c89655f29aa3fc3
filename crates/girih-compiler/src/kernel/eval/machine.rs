//! Blocks as resumable states.

use super::POISON;
use super::code::{Access, At, Inst, Program, Shown, in_scratch};
use crate::base::budget::TooMuch;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Fault, Memory};
use crate::base::{Budget, Code, Frames};
use crate::kernel::ir::*;
use crate::loops::eval::access;
use crate::loops::eval::blocks::{self, Blocks, Pause, SLICE};
use crate::loops::eval::expr::Expr;
use crate::loops::{self, ir::assertion_code};
use crate::num::eval::apply;
use crate::num::printf::{self, PrintValue};
use crate::num::{DType, ScalarOp};

/// One block under way.
struct Block {
    id: [u32; 3],
    at: usize,
    slots: Vec<u64>,
    /// The address of its scratch memory.
    scratch: u64,
    out: String,
}

/// The address that elements are counted from, an element's number, and its type.
type Element = (u64, i64, DType);

struct Machine<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    placed: &'a loops::ir::Kernel,
    memory: &'a mut dyn Memory,
    budget: Budget,
    /// The slots of a block that begins: arguments, the grid, globals and constants.
    slots: Vec<u64>,
}

pub(super) fn run(
    program: &Program,
    kernel: &Kernel,
    placed: &loops::ir::Kernel,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
) -> Result<(), Trap> {
    let mut slots = vec![0u64; program.slots];
    for ((slot, mask), arg) in program.params.iter().zip(&launch.args) {
        slots[*slot as usize] = arg & mask;
    }
    for (i, g) in launch.grid.iter().enumerate() {
        slots[program.first_block as usize + 3 + i] = u64::from(*g);
    }
    for (i, global) in placed.globals.iter().enumerate() {
        slots[program.first_global as usize + i] = access::place_global(global, memory).map_err(|_| {
            let message = format!("the global `{}` could not be placed in memory", global.name);
            Trap::new(Code::OutOfBounds, message)
        })?;
    }
    slots[program.first_const as usize..].copy_from_slice(&program.consts);
    let mut machine = Machine { program, kernel, placed, memory, budget: launch.budget.clone(), slots };
    blocks::run(&mut machine, launch, host)
}

impl Blocks for Machine<'_> {
    type Block = Block;

    fn cooperative(&self) -> bool {
        self.program.cooperative
    }

    fn room(&mut self) -> Result<Block, TooMuch> {
        self.budget.take(self.program.bytes)?;
        let scratch = self.memory.allocate(self.kernel.scratch, 64);
        Ok(Block { id: [0; 3], at: 0, slots: Vec::new(), scratch, out: String::new() })
    }

    fn begin(&mut self, block: &mut Block, id: [u32; 3]) -> Result<(), Trap> {
        (block.id, block.at) = (id, 0);
        block.slots.clear();
        block.slots.extend_from_slice(&self.slots);
        for (i, b) in id.iter().enumerate() {
            block.slots[self.program.first_block as usize + i] = u64::from(*b);
        }
        block.slots[self.program.scratch as usize] = block.scratch;
        let poison = [POISON; 4096];
        let mut left = self.kernel.scratch;
        while left > 0 {
            let some = left.min(poison.len() as u64);
            left -= some;
            if self.memory.write(block.scratch + left, &poison[..some as usize]).is_err() {
                return Err(self.broken(block, "the scratch is not in memory"));
            }
        }
        Ok(())
    }

    fn slice(&mut self, block: &mut Block) -> Result<Pause, Trap> {
        let code = &self.program.code[..];
        for _ in 0..SLICE {
            let Some(inst) = code.get(block.at) else { return Ok(Pause::Ended) };
            block.at += 1;
            if let Some(pause) = self.step(block, inst)? {
                return Ok(pause);
            }
        }
        Ok(Pause::GaveWay)
    }

    fn id(block: &Block) -> [u32; 3] {
        block.id
    }

    fn printed(block: &mut Block) -> String {
        std::mem::take(&mut block.out)
    }
}

impl Machine<'_> {
    fn trap(&self, block: &Block, code: Code, site: Option<SiteId>, message: String) -> Trap {
        let site = site.and_then(|s| self.placed.sites.get(s));
        Trap {
            span: site.and_then(|s| s.span),
            op: site.map_or(String::new(), |s| s.op.clone()),
            block: block.id,
            frames: Box::new(site.map_or_else(Frames::default, |s| s.frames.clone())),
            ..Trap::new(code, message)
        }
    }

    fn broken(&self, block: &Block, what: &str) -> Trap {
        self.trap(block, Code::InvalidIr, None, format!("a bug in the compiler: {what}"))
    }

    fn fault(&self, block: &Block, site: Option<SiteId>, what: &str, fault: Fault) -> Trap {
        let near = access::near(self.memory, fault);
        let message = format!("a {what} of {} bytes at address {:#x} is out of bounds{near}", fault.len, fault.addr);
        self.trap(block, Code::OutOfBounds, site, message)
    }

    /// The first element of an access.
    fn place(&self, block: &Block, a: &Access) -> Result<Element, Trap> {
        match &a.at {
            At::Memory { base, index, elem } => Ok((block.slots[*base as usize], index.value(&block.slots), *elem)),
            At::Scratch { offset, len, index, elem } => {
                let at = index.value(&block.slots);
                let end = u64::try_from(at).ok().and_then(|at| at.checked_add(u64::from(a.lanes)));
                if end.is_none_or(|end| end > *len) {
                    let what = format!("elements {at} to {at} + {} of a slot that has {len} are touched", a.lanes);
                    return Err(self.broken(block, &what));
                }
                Ok((block.scratch.wrapping_add(*offset), at, *elem))
            }
        }
    }

    fn load(&self, block: &Block, (base, index, elem): Element) -> Result<u64, Trap> {
        access::load(self.memory, base, index, elem).map_err(|f| self.fault(block, None, "read", f))
    }

    fn store(&mut self, block: &Block, (base, index, elem): Element, bits: u64) -> Result<(), Trap> {
        access::store(self.memory, base, index, elem, bits).map_err(|f| self.fault(block, None, "write", f))
    }

    /// A lane's number, if the vector has it.
    fn lane(&self, block: &Block, lane: &Expr, lanes: u32) -> Result<u32, Trap> {
        let at = lane.value(&block.slots);
        match u32::try_from(at) {
            Ok(at) if at < lanes => Ok(at),
            _ => Err(self.broken(block, &format!("lane {at} of a vector of {lanes}"))),
        }
    }

    fn step(&mut self, block: &mut Block, inst: &Inst) -> Result<Option<Pause>, Trap> {
        match inst {
            Inst::Copy { dst, from, lanes } => {
                for l in 0..*lanes {
                    block.slots[(dst + l) as usize] = block.slots[from.lane(l)];
                }
            }
            Inst::Let { dst, op, ty, args, count, lanes } => {
                for l in 0..*lanes {
                    let values = args.map(|a| block.slots[a.lane(l)]);
                    block.slots[(dst + l) as usize] = apply(*op, *ty, &values[..*count as usize]);
                }
            }
            Inst::PtrAdd { dst, elem, base, index, shift, lanes } => {
                for l in 0..*lanes {
                    let index = ((block.slots[index.lane(l)] << shift) as i64) >> shift;
                    let args = [block.slots[base.lane(l)], index as u64];
                    block.slots[(dst + l) as usize] = apply(ScalarOp::PtrAdd, *elem, &args);
                }
            }
            Inst::Ramp { dst, base, step, lanes, mask } => {
                let (base, step) = (base.value(&block.slots), step.value(&block.slots));
                for l in 0..*lanes {
                    let value = base.wrapping_add(step.wrapping_mul(i64::from(l)));
                    block.slots[(dst + l) as usize] = value as u64 & mask;
                }
            }
            Inst::Index { dst, ix, mask } => block.slots[*dst as usize] = ix.value(&block.slots) as u64 & mask,
            Inst::Test { dst, mask } => block.slots[*dst as usize] = mask.holds(&block.slots) as u64,
            Inst::Load { dst, access, other } => {
                if access.mask.holds(&block.slots) {
                    let (base, first, elem) = self.place(block, access)?;
                    for l in 0..access.lanes {
                        let value = self.load(block, (base, first.wrapping_add(l.into()), elem))?;
                        block.slots[(dst + l) as usize] = value;
                    }
                } else {
                    for l in 0..access.lanes {
                        block.slots[(dst + l) as usize] = block.slots[other.lane(l)];
                    }
                }
                return Ok(access.ordered.then_some(Pause::GaveWay));
            }
            Inst::Store { access, value } => {
                if access.mask.holds(&block.slots) {
                    let (base, first, elem) = self.place(block, access)?;
                    for l in 0..access.lanes {
                        let value = block.slots[value.lane(l)];
                        self.store(block, (base, first.wrapping_add(l.into()), elem), value)?;
                    }
                }
                return Ok(access.ordered.then_some(Pause::GaveWay));
            }
            Inst::Lane { dst, vector, lanes, lane } => {
                let lane = self.lane(block, lane, *lanes)?;
                block.slots[*dst as usize] = block.slots[(vector + lane) as usize];
            }
            Inst::SetLane { vector, lanes, lane, value } => {
                let lane = self.lane(block, lane, *lanes)?;
                block.slots[(vector + lane) as usize] = block.slots[value.lane(0)];
            }
            Inst::Merge { dst, a, b, lanes, width, high } => {
                for l in 0..*lanes {
                    let from = match (l / width % 2 == 0, high) {
                        (true, false) => a + l,
                        (false, false) => b + l - width,
                        (true, true) => a + l + width,
                        (false, true) => b + l,
                    };
                    block.slots[(dst + l) as usize] = block.slots[from as usize];
                }
            }
            Inst::Reduce { dst, op, ty, vector, lanes } => {
                let first = *vector as usize;
                let mut parts = block.slots[first..first + *lanes as usize].to_vec();
                while parts.len() > 1 {
                    let (low, high) = parts.split_at(parts.len() / 2);
                    parts = low.iter().zip(high).map(|(a, b)| apply(*op, *ty, &[*a, *b])).collect();
                }
                block.slots[*dst as usize] = parts.first().copied().unwrap_or(0);
            }
            Inst::All { dst, vector, lanes } => {
                let all = (0..*lanes).all(|l| block.slots[(vector + l) as usize] != 0);
                block.slots[*dst as usize] = u64::from(all);
            }
            Inst::For { counter, lo, hi, step, exit } => {
                let s = &block.slots;
                let (lo, hi, step) = (lo.value(s), hi.value(s), step.value(s));
                if step <= 0 {
                    let message = format!("the step of a loop is {step}; it must be positive");
                    return Err(self.trap(block, Code::StepNotPositive, None, message));
                }
                block.slots[counter.axis as usize] = lo as u64;
                block.slots[counter.end as usize] = hi as u64;
                block.slots[counter.step as usize] = step as u64;
                if lo >= hi {
                    block.at = *exit as usize;
                }
            }
            Inst::Next { counter, body } => {
                let s = &mut block.slots;
                let (end, step) = (s[counter.end as usize] as i64, s[counter.step as usize] as i64);
                let axis = &mut s[counter.axis as usize];
                if let Some(next) = (*axis as i64).checked_add(step).filter(|n| *n < end) {
                    *axis = next as u64;
                    block.at = *body as usize;
                }
            }
            Inst::Jump(to) => block.at = *to as usize,
            Inst::JumpUnless { mask, to } => {
                if !mask.holds(&block.slots) {
                    block.at = *to as usize;
                }
            }
            Inst::Return => return Ok(Some(Pause::Ended)),
            Inst::Yield => return Ok(Some(Pause::GaveWay)),
            Inst::Rmw { dst, op, elem, access, value } => {
                let mut old = 0;
                if access.mask.holds(&block.slots) {
                    let place = self.place(block, access)?;
                    old = self.load(block, place)?;
                    let new = access::combined(*op, *elem, old, block.slots[value.lane(0)]);
                    self.store(block, place, new)?;
                }
                block.slots[*dst as usize] = old;
                return Ok(Some(Pause::GaveWay));
            }
            Inst::Cas { dst, access, cmp, value } => {
                let cmp = block.slots[cmp.lane(0)];
                let mut old = cmp;
                if access.mask.holds(&block.slots) {
                    let place = self.place(block, access)?;
                    old = self.load(block, place)?;
                    if old == cmp {
                        let value = block.slots[value.lane(0)];
                        self.store(block, place, value)?;
                    }
                }
                block.slots[*dst as usize] = old;
                return Ok(Some(Pause::GaveWay));
            }
            Inst::Print { format, args, site } => self.print(block, format, args, *site)?,
            Inst::Assert { cond, message, element, site } => {
                if block.slots[cond.lane(0)] == 0 {
                    let op = self.placed.sites.get(*site).map_or("assert", |s| s.op.as_str());
                    let trap = self.trap(block, assertion_code(op), Some(*site), message.clone());
                    return Err(Trap { element: element_of(element, block), ..trap });
                }
            }
            Inst::Check { access, write, param, element, site } => {
                if access.mask.holds(&block.slots)
                    && let Some(fault) = self.outside(block, access, *param)?
                {
                    let trap = self.fault(block, Some(*site), if *write { "write" } else { "read" }, fault);
                    return Err(Trap { element: element_of(element, block), ..trap });
                }
            }
            Inst::Scratch { dst, offset } => {
                let address = block.scratch.wrapping_add(offset.value(&block.slots) as u64);
                block.slots[*dst as usize] = address;
            }
        }
        Ok(None)
    }

    /// What of an access lies in no region, or in another than the parameter's.
    fn outside(&self, block: &Block, a: &Access, param: Option<u32>) -> Result<Option<Fault>, Trap> {
        let (base, index, elem) = self.place(block, a)?;
        let region = |addr: u64| self.memory.region(addr).map(|(_, start, _)| start);
        for l in 0..a.lanes {
            let at = index.wrapping_add(i64::from(l));
            let fault = match access::load(self.memory, base, at, elem) {
                Err(fault) => fault,
                Ok(_) => {
                    let addr = base.wrapping_add((at as u64).wrapping_mul(elem.bits().into()) / 8);
                    let own = param.is_none_or(|p| region(block.slots[p as usize]) == region(addr));
                    if own {
                        continue;
                    }
                    Fault { addr, len: elem.bytes() }
                }
            };
            return Ok(Some(fault));
        }
        Ok(None)
    }

    fn print(&mut self, block: &mut Block, format: &str, args: &[Shown], site: SiteId) -> Result<(), Trap> {
        let mut values = Vec::new();
        for arg in args {
            let (elem, shape, bits) = match arg {
                Shown::Scalar(slot, ty) => (ty.elem, vec![], vec![block.slots[slot.lane(0)]]),
                Shown::Slot(offset, elem, shape) => {
                    let mut bits = vec![];
                    for i in 0..shape.iter().product::<u64>() {
                        let base = block.scratch.wrapping_add(*offset);
                        let read = access::load(self.memory, base, i as i64, in_scratch(*elem));
                        bits.push(read.map_err(|f| self.fault(block, Some(site), "read", f))?);
                    }
                    (*elem, shape.clone(), bits)
                }
            };
            let (dtype, pointer) = match elem {
                Elem::Num(d) => (d, false),
                Elem::Ptr(d) => (d, true),
            };
            values.push(PrintValue { dtype, pointer, shape, bits });
        }
        let text = printf::format(format, &values).map_err(|e| self.trap(block, Code::BadFormat, Some(site), e))?;
        block.out.push_str(&text);
        Ok(())
    }
}

/// The element that a message names.
fn element_of(element: &Option<Expr>, block: &Block) -> Option<Vec<u64>> {
    let at = element.as_ref().map(|e| e.value(&block.slots))?;
    u64::try_from(at).ok().map(|at| vec![at])
}
