//! Runs one launch under several schedules of its threads, which must leave the same memory.
//!
//! In: the arguments of [`run`](super::run), with the options of each schedule. Out: a report of each, in their order,
//! and memory as the last one left it. Before each schedule but the first, memory is what it was before the launch.
//!
//! ```text
//! the kernel `k` leaves other bytes in `out`, from byte 12 on, under the schedule newest (seed 2) than under round-robin (seed 0)
//! ```
//! Invariants:
//! * The schedules are compared by the launch's memory that any of them wrote, and by the output of the blocks; memory
//!   that a run allocates for itself is not compared.
//! * A kernel that may see in which order its threads run is not compared: one that uses the old value of an atomic,
//!   whose atomics round or replace, or that reads with an order other than weak.

use std::collections::BTreeMap;

use super::replayed::{Full, Replayed};
use super::{Options, Report, run};
use crate::base::Code;
use crate::base::host::{Host, Waiting};
use crate::base::id::Id;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
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
    let mut memory = Replayed::new(memory);
    let full = |_: Full| {
        let message = "there is no memory to keep what the launch writes for another schedule".to_string();
        Trap::new(Code::OutOfMemory, message)
    };
    let mut told = BTreeMap::new();
    for (n, schedule) in schedules.iter().enumerate() {
        if n > 0 {
            memory.restore();
        }
        let mut host = Once { host, first: n == 0, told: BTreeMap::new() };
        let report = run(kernel, placed, launch, &mut memory, &mut host, schedule)?;
        let printed = host.told;
        if memory.full {
            return Err(full(Full));
        }
        let ended = report.stopped.is_none();
        each(report)?;
        if !ended {
            return Ok(());
        }
        if n == 0 {
            memory.remember().map_err(full)?;
            told = printed;
            continue;
        }
        let other = memory.difference().map_err(full)?;
        let other = other.or_else(|| (printed != told).then(|| "prints other text".to_string()));
        if let (true, Some(what)) = (same, other) {
            let say = |o: &Options| format!("{} (seed {})", o.policy.name(), o.seed);
            let (name, now, then) = (&kernel.name, say(schedule), say(first));
            let message = format!("the kernel `{name}` {what} under the schedule {now} than under {then}");
            return Err(Trap::new(Code::Simulated, message));
        }
    }
    Ok(())
}

/// Returns true if a kernel may see in which order its threads run.
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
