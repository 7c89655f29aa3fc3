//! Blocks as resumable states, and the order in which they run.

use super::code::{Element, Expr, Inst, MaskCode, MemCode, Program, Shown};
use super::{SLICE, WINDOW};
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Fault, Memory};
use crate::base::{Budget, Code, Frames};
use crate::loops::ir::*;
use crate::num::eval::apply;
use crate::num::op::{Rounding, Signedness};
use crate::num::printf::{self, PrintValue};
use crate::num::{DType, ScalarOp};

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

/// The partial accumulators of a fold, all of one accumulator together; and the accumulators' values before the loop.
#[derive(Clone, Default)]
struct Partials {
    parts: Vec<u64>,
    before: Vec<u64>,
    /// The whole groups are done and combined.
    done: bool,
}

/// Why a block stopped for now.
enum Pause {
    Ended,
    GaveWay,
}

/// Bytes one allocation may take.
const MAX_ALLOCA: u64 = 1 << 30;

struct Machine<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    memory: &'a mut dyn Memory,
    budget: Budget,
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
        slots[*slot as usize] = place_global(global, memory)?;
    }

    let mut next: u64 = 0;
    let mut end = launch.blocks();
    if let Some([x, y, z]) = launch.only_block {
        let [gx, gy, gz] = launch.grid;
        if x >= gx || y >= gy || z >= gz {
            return Err(super::trap(Code::BadArgument, format!("block {x},{y},{z} is not in the grid {gx},{gy},{gz}")));
        }
        next = x as u64 + gx as u64 * (y as u64 + gy as u64 * z as u64);
        end = next + 1;
    }
    let window = if program.cooperative {
        WINDOW
    } else if launch.seed == 0 {
        1
    } else {
        64
    };

    let mut machine = Machine { program, kernel, memory, budget: launch.budget.clone() };
    let mut live: Vec<Block> = Vec::new();
    let mut spare: Vec<Block> = Vec::new();
    let mut turn = 0usize;
    let mut random = launch.seed;
    loop {
        while live.len() < window && next < end {
            let mut block = match spare.pop() {
                Some(block) => block,
                None => match machine.budget.take(program.bytes) {
                    Ok(()) => Block::new(program),
                    // As many blocks are under way as there is memory for.
                    Err(_) if !live.is_empty() => break,
                    Err(why) => {
                        let message = format!("a block cannot be evaluated: {why}");
                        return Err(super::trap(Code::OutOfMemory, message));
                    }
                },
            };
            block.slots.clear();
            block.slots.extend_from_slice(&slots);
            block.bufs.iter_mut().for_each(Vec::clear);
            block.at = 0;
            let (gx, gy) = (launch.grid[0] as u64, launch.grid[1] as u64);
            block.id = [(next % gx) as u32, (next / gx % gy) as u32, (next / gx / gy) as u32];
            for (i, b) in block.id.iter().enumerate() {
                block.slots[program.first_block + i] = *b as u64;
            }
            live.push(block);
            next += 1;
        }
        if live.is_empty() {
            return Ok(());
        }
        if launch.seed != 0 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            turn = (random >> 33) as usize;
        }
        turn %= live.len();
        if host.interrupted() {
            return Err(Trap { block: live[turn].id, ..super::trap(Code::Interrupted, "interrupted".to_string()) });
        }
        match machine.slice(&mut live[turn]) {
            Ok(Pause::GaveWay) => turn += 1,
            Ok(Pause::Ended) => {
                // Later blocks take the place of the ended one, so that the order stays that of the window.
                let mut block = live.remove(turn);
                if !block.out.is_empty() {
                    host.print(block.id, &block.out);
                    block.out.clear();
                }
                spare.push(block);
            }
            Err(trap) => {
                if !live[turn].out.is_empty() {
                    host.print(live[turn].id, &live[turn].out);
                }
                return Err(trap);
            }
        }
    }
}

fn place_global(global: &Global, memory: &mut dyn Memory) -> Result<u64, Trap> {
    let count = global.bits.len() as u64;
    let bytes = if global.dtype.bits() == 4 { count.div_ceil(2) } else { count * global.dtype.bytes() };
    let addr = memory.allocate(bytes, global.align);
    for (i, bits) in global.bits.iter().enumerate() {
        store(memory, addr, i as i64, global.dtype, *bits).map_err(|_| {
            super::trap(Code::OutOfBounds, format!("the global `{}` could not be placed in memory", global.name))
        })?;
    }
    Ok(addr)
}

/// The address of an element, and for 4-bit types which half of the byte.
fn address(base: u64, index: i64, elem: DType) -> (u64, u32) {
    if elem.bits() == 4 {
        (base.wrapping_add((index >> 1) as u64), 4 * (index & 1) as u32)
    } else {
        (base.wrapping_add((index as u64).wrapping_mul(elem.bytes())), 0)
    }
}

fn load(memory: &dyn Memory, base: u64, index: i64, elem: DType) -> Result<u64, Fault> {
    let (addr, half) = address(base, index, elem);
    let mut bytes = [0u8; 8];
    memory.read(addr, &mut bytes[..elem.bytes() as usize])?;
    let bits = u64::from_le_bytes(bytes);
    Ok(match elem {
        DType::I1 => (bits != 0) as u64,
        elem => (bits >> half) & elem.mask(),
    })
}

fn store(memory: &mut dyn Memory, base: u64, index: i64, elem: DType, bits: u64) -> Result<(), Fault> {
    let (addr, half) = address(base, index, elem);
    let mut bits = bits & elem.mask();
    if elem.bits() == 4 {
        let mut byte = [0u8];
        memory.read(addr, &mut byte)?;
        bits = (byte[0] & !(15 << half)) as u64 | bits << half;
    }
    memory.write(addr, &bits.to_le_bytes()[..elem.bytes() as usize])
}

/// What an atomic leaves in memory.
fn combined(op: RmwOp, elem: DType, old: u64, value: u64) -> u64 {
    let op = match op {
        RmwOp::And => ScalarOp::And,
        RmwOp::Or => ScalarOp::Or,
        RmwOp::Xor => ScalarOp::Xor,
        RmwOp::Add => ScalarOp::AddI,
        RmwOp::AddF => ScalarOp::AddF { rounding: Rounding::NearestEven, ftz: false },
        RmwOp::Max => ScalarOp::MaxI { sign: Signedness::Signed },
        RmwOp::Min => ScalarOp::MinI { sign: Signedness::Signed },
        RmwOp::UMax => ScalarOp::MaxI { sign: Signedness::Unsigned },
        RmwOp::UMin => ScalarOp::MinI { sign: Signedness::Unsigned },
        RmwOp::Xchg => return value,
    };
    apply(op, elem, &[old, value])
}

fn eval(e: &Expr, slots: &[u64]) -> i64 {
    match e {
        Expr::Linear { base, terms } => {
            let mut sum = *base;
            for t in terms.iter() {
                let value = ((slots[t.slot as usize] << t.shift) as i64) >> t.shift;
                sum = sum.wrapping_add(value.wrapping_mul(t.coeff));
            }
            sum
        }
        Expr::Add(p) => eval(&p.0, slots).wrapping_add(eval(&p.1, slots)),
        Expr::Sub(p) => eval(&p.0, slots).wrapping_sub(eval(&p.1, slots)),
        Expr::Mul(p) => eval(&p.0, slots).wrapping_mul(eval(&p.1, slots)),
        // As `Ix::eval`: a divisor that is not positive gives 0.
        Expr::FloorDiv(p) => match (eval(&p.0, slots), eval(&p.1, slots)) {
            (a, b) if b > 0 => a.div_euclid(b),
            _ => 0,
        },
        Expr::Mod(p) => match (eval(&p.0, slots), eval(&p.1, slots)) {
            (a, b) if b > 0 => a.rem_euclid(b),
            _ => 0,
        },
        Expr::Min(p) => eval(&p.0, slots).min(eval(&p.1, slots)),
        Expr::Max(p) => eval(&p.0, slots).max(eval(&p.1, slots)),
    }
}

fn holds(mask: &MaskCode, slots: &[u64]) -> bool {
    mask.conds.iter().all(|(a, cmp, b)| cmp.holds(eval(a, slots), eval(b, slots)))
        && mask.vals.iter().all(|v| slots[*v as usize] != 0)
}

/// The row-major number of an element, if every subscript is in range.
fn offset(e: &Element, slots: &[u64]) -> Option<usize> {
    let mut at = 0usize;
    for (ix, dim) in e.idx.iter() {
        let i = eval(ix, slots) as u64;
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
        let near = match self.memory.region(fault.addr) {
            Some((name, start, len)) => format!(
                ", {} bytes from the start of `{name}`, which has {len}",
                (fault.addr as i128) - (start as i128)
            ),
            None => ", where nothing is mapped".to_string(),
        };
        let message = format!("a {what} of {} bytes at address {:#x} is out of bounds{near}", fault.len, fault.addr);
        self.trap(block, Code::OutOfBounds, Some(site), message)
    }

    fn broken(&self, block: &Block, what: &str) -> Trap {
        self.trap(block, Code::InvalidIr, None, format!("a bug in the compiler: {what}"))
    }

    /// Runs a block until it ends or gives way.
    fn slice(&mut self, block: &mut Block) -> Result<Pause, Trap> {
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
                Inst::Index { dst, ix, mask } => block.slots[*dst as usize] = eval(ix, &block.slots) as u64 & mask,
                Inst::Test { dst, mask } => block.slots[*dst as usize] = holds(mask, &block.slots) as u64,
                Inst::Load { dst, mem, other } => {
                    let value = if holds(&mem.mask, &block.slots) {
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
                    if holds(&mem.mask, &block.slots) {
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
                    let (lo, hi, step) = (eval(lo, s), eval(hi, s), eval(step, s));
                    if step <= 0 {
                        let message = format!("the step of a loop is {step}, it must be positive");
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
                    if holds(&mem.mask, &block.slots) {
                        old = self.load(block, mem)?;
                        let new = combined(*op, mem.elem, old, block.slots[*value as usize]);
                        self.store(block, mem, new)?;
                    }
                    block.slots[*dst as usize] = old;
                    return Ok(Pause::GaveWay);
                }
                Inst::Cas { dst, mem, cmp, value } => {
                    let cmp = block.slots[*cmp as usize];
                    let mut old = cmp;
                    if holds(&mem.mask, &block.slots) {
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
        let (base, index) = (block.slots[mem.base as usize], eval(&mem.index, &block.slots));
        load(self.memory, base, index, mem.elem).map_err(|f| self.fault(block, mem.site, "read", f))
    }

    fn store(&mut self, block: &Block, mem: &MemCode, bits: u64) -> Result<(), Trap> {
        let (base, index) = (block.slots[mem.base as usize], eval(&mem.index, &block.slots));
        store(self.memory, base, index, mem.elem, bits).map_err(|f| self.fault(block, mem.site, "write", f))
    }

    fn outside(&self, block: &Block, e: &Element, what: &str) -> Trap {
        let subscripts: Vec<i64> = e.idx.iter().map(|(ix, _)| eval(ix, &block.slots)).collect();
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
            let (dtype, pointer) = match ty {
                Ty::Num(d) => (d, false),
                Ty::Ptr(d) => (d, true),
            };
            if bits.len() as u64 != shape.iter().product::<u64>() {
                return Err(self.broken(block, "a buffer is printed before its life began"));
            }
            values.push(PrintValue { dtype, pointer, shape, bits });
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
        s[fold.split as usize] = lo.wrapping_add((trips / fold.parts * fold.parts) as i64) as u64;
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

    fn fold_in(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let i = block.slots[fold.counter.axis as usize] as i64;
        if i >= block.slots[fold.split as usize] as i64 {
            return self.fold_combine(block, f);
        }
        let part = (i.wrapping_sub(block.slots[fold.start as usize] as i64)) as u64 % fold.parts;
        for (n, (acc, _)) in fold.accs.iter().enumerate() {
            let value = block.folds[f].parts[n * fold.parts as usize + part as usize];
            set(&mut block.bufs[*acc as usize], value);
        }
    }

    fn fold_out(&self, block: &mut Block, f: usize) {
        let fold = &self.program.folds[f];
        let i = block.slots[fold.counter.axis as usize] as i64;
        if i >= block.slots[fold.split as usize] as i64 {
            return;
        }
        let part = (i.wrapping_sub(block.slots[fold.start as usize] as i64)) as u64 % fold.parts;
        for (n, (acc, _)) in fold.accs.iter().enumerate() {
            let value = block.bufs[*acc as usize].first().copied().unwrap_or(0);
            block.folds[f].parts[n * fold.parts as usize + part as usize] = value;
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
