//! One launch under several schedules of its threads, which must leave the same.
//!
//! In: what [`run`](super::run) takes, with the options of each schedule. Out: a report of each, in their order, and memory as
//! the last one left it. Before each schedule but the first, memory is what it was before the launch.
//!
//! ```text
//! the kernel `k` leaves other bytes in `out`, from byte 12 on, under the schedule newest (seed 2) than under round-robin (seed 0)
//! ```
//! Invariants:
//! * What is compared is the memory of the launch that some schedule wrote, and what blocks printed; memory that a run allocates for
//!   itself is not.
//! * A kernel that may see in which order its threads run is not compared: one that uses what an atomic found, whose atomics
//!   round or replace, or that reads with an order other than weak.

use std::collections::BTreeMap;

use super::{Options, Report, run};
use crate::base::Code;
use crate::base::host::{Host, Waiting};
use crate::base::id::Id;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::{Fault, Memory};
use crate::kernel::ir::{Kernel, Order, RmwOp, Stmt, ValId};
use crate::kernel::verify;
use crate::loops;

/// Runs a launch under each of the schedules and gives their reports to `each`, which may end this with an error.
pub fn run_under(
    schedules: &[Options],
    (kernel, placed): (&Kernel, &loops::ir::Kernel),
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    each: &mut dyn FnMut(Report) -> Result<(), Trap>,
) -> Result<(), Trap> {
    let [first, others @ ..] = schedules else { return Ok(()) };
    if others.is_empty() {
        return each(run(kernel, placed, launch, memory, host, first)?);
    }
    let same = !sees_order(kernel);
    let mut memory = Replayed { memory, arrays: vec![], own: vec![], full: false };
    let mut told = BTreeMap::new();
    for (n, schedule) in schedules.iter().enumerate() {
        if n > 0 {
            memory.restore();
        }
        let mut host = Once { host, first: n == 0, told: BTreeMap::new() };
        let report = run(kernel, placed, launch, &mut memory, &mut host, schedule)?;
        let printed = host.told;
        if memory.full {
            let message = "there is no memory to keep what the launch writes for another schedule".to_string();
            return Err(Trap::new(Code::OutOfMemory, message));
        }
        let ended = report.stopped.is_none();
        each(report)?;
        if !ended {
            return Ok(());
        }
        let other = memory.compare(n == 0);
        let other = other.or_else(|| (n > 0 && printed != told).then(|| "prints other text".to_string()));
        if n == 0 {
            told = printed;
        }
        if let (true, Some(what)) = (same, other) {
            let say = |o: &Options| format!("{} (seed {})", o.policy.name(), o.seed);
            let (name, now, then) = (&kernel.name, say(schedule), say(first));
            let message = format!("the kernel `{name}` {what} under the schedule {now} than under {then}");
            return Err(Trap::new(Code::Simulated, message));
        }
    }
    Ok(())
}

/// Whether a kernel may see in which order its threads run.
fn sees_order(kernel: &Kernel) -> bool {
    let used = verify::used(kernel);
    let is_used = |v: &ValId| used.get(v.index()).copied().unwrap_or(true);
    any(&kernel.body, &mut |stmt| match stmt {
        Stmt::Rmw { dst, op, .. } => matches!(op, RmwOp::AddF | RmwOp::Xchg) || is_used(dst),
        Stmt::Cas { .. } => true,
        Stmt::Load { order, .. } => *order != Order::Weak,
        _ => false,
    })
}

fn any(body: &[Stmt], is: &mut dyn FnMut(&Stmt) -> bool) -> bool {
    body.iter().any(|stmt| {
        is(stmt)
            || match stmt {
                Stmt::For { body, .. } | Stmt::Loop { body } => any(body, is),
                Stmt::If { then, els, .. } => any(then, is) || any(els, is),
                _ => false,
            }
    })
}

/// An array that a schedule wrote.
struct Array {
    name: String,
    start: u64,
    /// Before the launch, and after the first schedule.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Array {
    /// Copies what this array has in common with another one, which begins at `start`.
    fn lay(&self, from: &[u8], to: &mut [u8], start: u64) {
        let (lo, hi) = (self.start.max(start), (self.start + from.len() as u64).min(start + to.len() as u64));
        if lo < hi {
            let len = (hi - lo) as usize;
            let (from, to) = (&from[(lo - self.start) as usize..], &mut to[(lo - start) as usize..]);
            to[..len].copy_from_slice(&from[..len]);
        }
    }
}

/// Memory whose arrays are kept before they are written.
struct Replayed<'a> {
    memory: &'a mut dyn Memory,
    /// In the order in which they were first written; they may overlap.
    arrays: Vec<Array>,
    /// Starts and lengths of what the runs allocated.
    own: Vec<(u64, u64)>,
    /// There was no memory to keep an array.
    full: bool,
}

impl Replayed<'_> {
    /// Keeps the arrays that a write touches.
    fn keep(&mut self, addr: u64, len: u64) {
        let mut at = addr;
        while at < addr.saturating_add(len) && !self.full {
            let holds = |start: u64, len: u64| at.checked_sub(start).is_some_and(|o| o < len);
            let own = self.own.iter().find(|(start, len)| holds(*start, *len));
            let kept = self.arrays.iter().map(|a| (a.start, a.before.len() as u64)).find(|(s, l)| holds(*s, *l));
            if let Some((start, len)) = own.copied().or(kept) {
                at = start + len;
                continue;
            }
            let Some((name, start, len)) = self.memory.region(at).filter(|(_, start, len)| holds(*start, *len)) else {
                return;
            };
            match self.bytes(start, len) {
                Some(mut before) => {
                    // What the first schedule did not write is after it what it was before.
                    let mut after = before.clone();
                    for array in &self.arrays {
                        array.lay(&array.before, &mut before, start);
                        array.lay(&array.after, &mut after, start);
                    }
                    self.arrays.push(Array { name, start, before, after });
                }
                None => self.full = true,
            }
        }
    }

    fn bytes(&self, start: u64, len: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![];
        let len = usize::try_from(len).ok()?;
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, 0);
        self.memory.read(start, &mut bytes).ok().map(|()| bytes)
    }

    fn restore(&mut self) {
        for array in &self.arrays {
            let _ = self.memory.write(array.start, &array.before);
        }
    }

    /// Keeps what the first schedule left, or says what differs from it.
    fn compare(&mut self, first: bool) -> Option<String> {
        for n in 0..self.arrays.len() {
            let now = self.bytes(self.arrays[n].start, self.arrays[n].before.len() as u64)?;
            let array = &mut self.arrays[n];
            if first {
                array.after = now;
            } else if let Some(at) = array.after.iter().zip(&now).position(|(a, b)| a != b) {
                return Some(format!("leaves other bytes in `{}`, from byte {at} on,", array.name));
            }
        }
        None
    }
}

impl Memory for Replayed<'_> {
    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        self.memory.read(addr, out)
    }
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.keep(addr, bytes.len() as u64);
        self.memory.write(addr, bytes)
    }
    fn allocate(&mut self, len: u64, align: u64) -> u64 {
        let start = self.memory.allocate(len, align);
        self.own.push((start, len));
        start
    }
    fn region(&self, addr: u64) -> Option<(String, u64, u64)> {
        self.memory.region(addr)
    }
}

/// A host that hears of the first schedule alone; what blocks print is kept of each.
struct Once<'a> {
    host: &'a mut dyn Host,
    first: bool,
    told: BTreeMap<[u32; 3], String>,
}

impl Host for Once<'_> {
    fn print(&mut self, block: [u32; 3], text: &str) {
        self.told.entry(block).or_default().push_str(text);
        if self.first {
            self.host.print(block, text);
        }
    }
    fn at_once(&self) -> bool {
        self.first && self.host.at_once()
    }
    fn interrupted(&self) -> bool {
        self.host.interrupted()
    }
    fn finished(&mut self, block: [u32; 3]) {
        if self.first {
            self.host.finished(block);
        }
    }
    fn gave_way(&mut self) -> bool {
        self.host.gave_way()
    }
    fn waiting(&mut self, blocks: &[Waiting]) {
        self.host.waiting(blocks);
    }
}
