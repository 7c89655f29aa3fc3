//! Blocks as resumable states.

use super::access;
use super::blocks::{self, Blocks, Pause, SLICE};
use super::code::{Element, Fold, Inst, MemCode, Program, Shown};
use crate::base::budget::TooMuch;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Fault, Memory};
use crate::base::{Budget, Code, Frames};
use crate::loops::ir::*;
use crate::num::ScalarOp;
use crate::num::eval::apply;
use crate::num::printf::{self, PrintValue};

/// One block under way.
struct Block {
    id: [u32; 3],
    at: usize,
    slots: Vec<u64>,
    bufs: Vec<Vec<u64>>,
    folds: Vec<Partials>,
    out: String,
}

impl Block {
    fn new(program: &Program) -> Block {
        Block {
            id: [0; 3],
            at: 0,
            slots: Vec::new(),
            bufs: vec![Vec::new(); program.bufs.len()],
            folds: vec![Partials::default(); program.folds.len()],
            out: String::new(),
        }
    }
}

/// The partial accumulators of a fold, those of one accumulator together; and the accumulators' values before the loop.
#[derive(Clone, Default)]
struct Partials {
    parts: Vec<u64>,
    before: Vec<u64>,
    /// The whole groups are done and combined.
    done: bool,
}

/// Bytes one allocation may take.
const MAX_ALLOCA: u64 = 1 << 30;

struct Machine<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    memory: &'a mut dyn Memory,
    budget: Budget,
    /// The slots of a block that begins: arguments, the grid, globals and constants.
    slots: Vec<u64>,
}

pub(super) fn run(
    program: &Program,
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
) -> Result<(), Trap> {
    let mut slots = vec![0u64; program.slots];
    for (param, arg) in kernel.params.iter().zip(&launch.args) {
        let mask = match param.ty {
            Ty::Num(d) => d.mask(),
            Ty::Ptr(_) => u64::MAX,
        };
        if let Some(slot) = slots.get_mut(param.val.0 as usize) {
            *slot = arg & mask;
        }
    }
    for (i, g) in launch.grid.iter().enumerate() {
        slots[program.first_block + 3 + i] = *g as u64;
    }
    slots[program.first_const..].copy_from_slice(&program.consts);
    for (global, slot) in kernel.globals.iter().zip(&program.globals) {
        slots[*slot as usize] = access::place_global(global, memory).map_err(|_| {
            super::trap(Code::OutOfBounds, format!("the global `{}` could not be placed in memory", global.name))
        })?;
    }

    let mut machine = Machine { program, kernel, memory, budget: launch.budget.clone(), slots };
    blocks::run(&mut machine, launch, host)
}

impl Blocks for Machine<'_> {
    type Block = Block;

    fn cooperative(&self) -> bool {
        self.program.cooperative
    }

    fn room(&mut self) -> Result<Block, TooMuch> {
        self.budget.take(self.program.bytes)?;
        Ok(Block::new(self.program))
    }

    fn begin(&mut self, block: &mut Block, id: [u32; 3]) -> Result<(), Trap> {
        block.slots.clear();
        block.slots.extend_from_slice(&self.slots);
        block.bufs.iter_mut().for_each(Vec::clear);
        block.at = 0;
        block.id = id;
        for (i, b) in id.iter().enumerate() {
            block.slots[self.program.first_block + i] = *b as u64;
        }
        Ok(())
    }

    fn slice(&mut self, block: &mut Block) -> Result<Pause, Trap> {
        self.step(block)
    }

    fn id(block: &Block) -> [u32; 3] {
        block.id
    }

    fn printed(block: &mut Block) -> String {
        std::mem::take(&mut block.out)
    }
}

/// The row-major number of an element, if every subscript is in range.
fn offset(e: &Element, slots: &[u64]) -> Option<usize> {
    let mut at = 0usize;
    for (ix, dim) in e.idx.iter() {
        let i = ix.value(slots) as u64;
        if i >= *dim {
            return None;
        }
        at = at * *dim as usize + i as usize;
    }
    Some(at)
}

impl Machine<'_> {
    fn trap(&self, block: &Block, code: Code, site: Option<SiteId>, message: String) -> Trap {
        let site = site.and_then(|s| self.kernel.sites.get(s));
        Trap {
            span: site.and_then(|s| s.span),
            op: site.map_or(String::new(), |s| s.op.clone()),
            block: block.id,
            frames: Box::new(site.map_or_else(Frames::default, |s| s.frames.clone())),
            ..Trap::new(code, message)
        }
    }

    fn fault(&self, block: &Block, site: SiteId, what: &str, fault: Fault) -> Trap {
        let near = access::near(self.memory, fault);
        let message = format!("a {what} of {} bytes at address {:#x} is out of bounds{near}", fault.len, fault.addr);
        self.trap(block, Code::OutOfBounds, Some(site), message)
    }

    fn broken(&self, block: &Block, what: &str) -> Trap {
        self.trap(block, Code::InvalidIr, None, format!("a bug in the compiler: {what}"))
    }

    /// Runs a block until it ends or gives way.
    fn step(&mut self, block: &mut Block) -> Result<Pause, Trap> {
        let code = &self.program.code[..];
        let mut left = SLICE;
        loop {
            let Some(inst) = code.get(block.at) else { return Ok(Pause::Ended) };
            block.at += 1;
            match inst {
                Inst::Let { dst, op, ty, args, count } => {
                    let s = &block.slots;
                    let [a, b, c] = args.map(|a| s[a as usize]);
                    block.slots[*dst as usize] = apply(*op, *ty, &[a, b, c][..*count as usize]);
                }
                Inst::PtrAdd { dst, elem, base, index, shift } => {
                    let index = ((block.slots[*index as usize] << shift) as i64) >> shift;
                    let args = [block.slots[*base as usize], index as u64];
                    block.slots[*dst as usize] = apply(ScalarOp::PtrAdd, *elem, &args);
                }
                Inst::Index { dst, ix, mask } => block.slots[*dst as usize] = ix.value(&block.slots) as u64 & mask,
                Inst::Test { dst, mask } => block.slots[*dst as usize] = mask.holds(&block.slots) as u64,
                Inst::Load { dst, mem, other } => {
                    let value = if mem.mask.holds(&block.slots) {
                        self.load(block, mem)?
                    } else {
                        block.slots[*other as usize]
                    };
                    block.slots[*dst as usize] = value;
                    if mem.ordered {
                        return Ok(Pause::GaveWay);
                    }
                }
                Inst::Store { mem, value } => {
                    if mem.mask.holds(&block.slots) {
                        let value = block.slots[*value as usize];
                        self.store(block, mem, value)?;
                    }
                    if mem.ordered {
                        return Ok(Pause::GaveWay);
                    }
                }
                Inst::Read { dst, from } => {
                    let at = offset(from, &block.slots);
                    let value = at.and_then(|at| block.bufs[from.buf as usize].get(at));
                    let Some(value) = value else { return Err(self.outside(block, from, "read")) };
                    block.slots[*dst as usize] = *value;
                }
                Inst::Write { to, value } => {
                    let at = offset(to, &block.slots);
                    let value = block.slots[*value as usize];
                    match at.and_then(|at| block.bufs[to.buf as usize].get_mut(at)) {
                        Some(element) => *element = value,
                        None => return Err(self.outside(block, to, "write")),
                    }
                }
                Inst::Local { buf } => {
                    let storage = &mut block.bufs[*buf as usize];
                    storage.clear();
                    storage.resize(self.program.bufs[*buf as usize].0, 0);
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
                    let step = s[counter.step as usize] as i64;
                    let end = s[counter.end as usize] as i64;
                    let axis = &mut s[counter.axis as usize];
                    if let Some(next) = (*axis as i64).checked_add(step).filter(|n| *n < end) {
                        *axis = next as u64;
                        block.at = *body as usize;
                    }
                }
                Inst::FoldBegin(f) => self.fold_begin(block, *f as usize),
                Inst::FoldIn(f) => self.fold_in(block, *f as usize),
                Inst::FoldOut(f) => self.fold_out(block, *f as usize),
                Inst::FoldEnd(f) => self.fold_combine(block, *f as usize),
                Inst::Jump(to) => block.at = *to as usize,
                Inst::JumpIfFalse { cond, to } => {
                    if block.slots[*cond as usize] == 0 {
                        block.at = *to as usize;
                    }
                }
                Inst::Return => return Ok(Pause::Ended),
                Inst::Rmw { dst, op, mem, value } => {
                    let mut old = 0;
                    if mem.mask.holds(&block.slots) {
                        old = self.load(block, mem)?;
                        let new = access::combined(*op, mem.elem, old, block.slots[*value as usize]);
                        self.store(block, mem, new)?;
                    }
                    block.slots[*dst as usize] = old;
                    return Ok(Pause::GaveWay);
                }
                Inst::Cas { dst, mem, cmp, value } => {
                    let cmp = block.slots[*cmp as usize];
                    let mut old = cmp;
                    if mem.mask.holds(&block.slots) {
                        old = self.load(block, mem)?;
                        if old == cmp {
                            let value = block.slots[*value as usize];
                            self.store(block, mem, value)?;
                        }
                    }
                    block.slots[*dst as usize] = old;
                    return Ok(Pause::GaveWay);
                }
                Inst::Print { format, args, site } => self.print(block, format, args, *site)?,
                Inst::Assert { cond, message, site } => {
                    if block.slots[*cond as usize] == 0 {
                        let op = self.kernel.sites.get(*site).map_or("assert", |s| s.op.as_str());
                        return Err(self.trap(block, assertion_code(op), Some(*site), message.clone()));
                    }
                }
                Inst::Alloca { dst, bytes, align, site } => {
                    if *bytes > MAX_ALLOCA {
                        let message = format!("{bytes} bytes are too many for an alloca");
                        return Err(self.trap(block, Code::OutOfBounds, Some(*site), message));
                    }
                    if let Err(why) = self.budget.take(Some(*bytes)) {
                        let message = format!("an alloca cannot be evaluated: {why}");
                        return Err(self.trap(block, Code::OutOfMemory, Some(*site), message));
                    }
                    block.slots[*dst as usize] = self.memory.allocate(*bytes, *align);
                }
            }
            left -= 1;
            if left == 0 {
                return Ok(Pause::GaveWay);
            }
        }
    }

    fn load(&self, block: &Block, mem: &MemCode) -> Result<u64, Trap> {
        let (base, index) = (block.slots[mem.base as usize], mem.index.value(&block.slots));
        access::load(self.memory, base, index, mem.elem).map_err(|f| self.fault(block, mem.site, "read", f))
    }

    fn store(&mut self, block: &Block, mem: &MemCode, bits: u64) -> Result<(), Trap> {
        let (base, index) = (block.slots[mem.base as usize], mem.index.value(&block.slots));
        access::store(self.memory, base, index, mem.elem, bits).map_err(|f| self.fault(block, mem.site, "write", f))
    }

    fn outside(&self, block: &Block, e: &Element, what: &str) -> Trap {
        let subscripts: Vec<i64> = e.idx.iter().map(|(ix, _)| ix.value(&block.slots)).collect();
        let buf = self.kernel.bufs.get(BufId(e.buf));
        let (name, shape) = buf.map_or(("?", &[][..]), |b| (&b.name, &b.shape));
        self.broken(block, &format!("a {what} of `{name}` {shape:?} at {subscripts:?}, or before its life began"))
    }

    fn print(&mut self, block: &mut Block, format: &str, args: &[Shown], site: SiteId) -> Result<(), Trap> {
        let mut values = Vec::new();
        for arg in args {
            let (ty, shape, bits) = match arg {
                Shown::Scalar(slot, ty) => (*ty, vec![], vec![block.slots[*slot as usize]]),
                Shown::Buf(buf) => {
                    let (_, ty, shape) = &self.program.bufs[*buf as usize];
                    (*ty, shape.clone(), block.bufs[*buf as usize].clone())
                }
            };
            if bits.len() as u64 != shape.iter().product::<u64>() {
                return Err(self.broken(block, "a buffer is printed before its life began"));
            }
            values.push(PrintValue { ty, shape, bits });
        }
        let text = printf::format(format, &values).map_err(|e| self.trap(block, Code::BadFormat, Some(site), e))?;
        block.out.push_str(&text);
        Ok(())
    }

    // Folds: the fixed tree of `Combine`.

    fn fold_begin(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let s = &mut block.slots;
        let (lo, hi) = (s[fold.counter.axis as usize] as i64, s[fold.counter.end as usize] as i64);
        let trips = hi.saturating_sub(lo).max(0) as u64;
        s[fold.start as usize] = lo as u64;
        let grouped = trips / fold.parts * fold.parts;
        s[fold.split as usize] = lo.wrapping_add(grouped as i64) as u64;
        let p = &mut block.folds[f];
        p.parts.clear();
        p.parts.resize(fold.parts as usize * fold.accs.len(), fold.identity);
        p.before.clear();
        p.before.extend(fold.accs.iter().map(|(acc, _)| block.bufs[*acc as usize].first().copied().unwrap_or(0)));
        p.done = false;
        if lo >= hi {
            self.fold_combine(block, f);
            // Past the body: FoldIn, ..., FoldOut, Next, FoldEnd.
            block.at = self.fold_end(block.at, f);
        }
    }

    /// Where the loop of a fold ends.
    fn fold_end(&self, from: usize, f: usize) -> usize {
        let is_end = |i: &Inst| matches!(i, Inst::FoldEnd(g) if *g as usize == f);
        from + self.program.code[from..].iter().position(is_end).unwrap_or(0)
    }

    /// The partial accumulator of an iteration.
    fn part(&self, block: &Block, fold: &Fold) -> usize {
        let [i, start, split] = [fold.counter.axis, fold.start, fold.split].map(|slot| block.slots[slot as usize]);
        let part = match (i as i64) < split as i64 {
            true => i.wrapping_sub(start) % fold.parts,
            false => i.wrapping_sub(split) % fold.lanes,
        };
        part as usize
    }

    fn fold_in(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let part = self.part(block, fold);
        for (n, (acc, _)) in fold.accs.iter().enumerate() {
            let value = block.folds[f].parts[n * fold.parts as usize + part];
            set(&mut block.bufs[*acc as usize], value);
        }
    }

    fn fold_out(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let part = self.part(block, fold);
        for (n, (acc, _)) in fold.accs.iter().enumerate() {
            let value = block.bufs[*acc as usize].first().copied().unwrap_or(0);
            block.folds[f].parts[n * fold.parts as usize + part] = value;
        }
    }

    /// Once: combines the partials by halving and adds them to the accumulators' values from before.
    fn fold_combine(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let p = &mut block.folds[f];
        if std::mem::replace(&mut p.done, true) {
            return;
        }
        for (n, (acc, ty)) in fold.accs.iter().enumerate() {
            let parts = &mut p.parts[n * fold.parts as usize..(n + 1) * fold.parts as usize];
            let mut half = parts.len() / 2;
            while half > 0 {
                for j in 0..half {
                    parts[j] = apply(fold.op, *ty, &[parts[j], parts[j + half]]);
                }
                half /= 2;
            }
            set(&mut block.bufs[*acc as usize], apply(fold.op, *ty, &[p.before[n], parts[0]]));
        }
    }
}

fn set(scalar: &mut [u64], value: u64) {
    if let Some(s) = scalar.first_mut() {
        *s = value;
    }
}
