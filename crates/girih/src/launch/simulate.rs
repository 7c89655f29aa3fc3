//! A lowered kernel on the simulator of a GPU.
//!
//! In: a kernel lowered for a target with threads, a launch, its memory. Out: the memory changed, and a report for the
//! options' watcher; without one, an error where the simulator found anything wrong. A launch that will take long is
//! announced first:
//!
//! ```text
//! simulating gemm: about 9.2 G thread-statements, some 8 min; `girih sim --block 0,0,0` runs one block
//! ```

use std::time::Instant;

use girih_compiler::base::Code;
use girih_compiler::base::host::{Host, Waiting};
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::base::provenance::SourceId;
use girih_compiler::emit::{self, cuda::Unit};
use girih_compiler::explain::{self, StageText};
use girih_compiler::kernel::ir::Kernel;
use girih_compiler::kernel::{eval, sim};
use girih_compiler::pipeline::{self, Lowered};

use crate::compile::progress::{self, Working};
use crate::error::Error;
use crate::launch::host;
use crate::options::Options;
use crate::system::signals::{self, Launching};

/// The simulator's report on a kernel.
pub struct Simulated<'a> {
    pub report: &'a sim::Report,
    /// The estimated time of the kernel on the target.
    pub estimate: Option<&'a sim::Estimate>,
    kernel: &'a Kernel,
    cuda: Option<&'a Unit>,
}

impl Simulated<'_> {
    /// The line of the kernel's CUDA that a statement is; `None` where it has none, or the kernel has no CUDA.
    pub fn cuda_line(&self, statement: u32) -> Option<u32> {
        cuda_line(self.cuda?, statement)
    }

    /// Kernel IR, its CUDA where there is one, and before them their source; lines that belong to the same statement have
    /// its number in common.
    #[doc(hidden)]
    pub fn linked(&self, source: Option<&StageText>) -> Vec<StageText> {
        explain::by_statements(self.kernel, self.cuda, source)
    }

    /// The kernel's CUDA.
    pub fn cuda(&self) -> Option<&str> {
        self.cuda.map(|unit| unit.text.as_str())
    }
}

fn cuda_line(unit: &Unit, statement: u32) -> Option<u32> {
    unit.lines.iter().find(|l| l.statement == statement as usize).map(|l| l.line)
}

/// The operation of the user's that has an id, if it is known.
pub(crate) type Places<'a> = &'a dyn Fn(SourceId) -> Option<sim::Origin>;

/// Runs a launch under the schedules that the options ask for, from their seed on.
pub(crate) fn kernel(
    lowered: &Lowered,
    places: Places<'_>,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    options: &Options,
) -> Result<(), Trap> {
    let target = options.resolved_target();
    emit::cuda::fits(&lowered.kernel, &target).map_err(|why| {
        let message = format!("the kernel `{}` does not fit {}: {why}", lowered.kernel.name, target.name);
        Trap::new(Code::CannotLower, message)
    })?;
    let mut simulation = sim::Options::of_seed(options.seed);
    simulation.steps = options.steps.unwrap_or(simulation.steps);
    simulation.record = options.record;
    simulation.resident = sim::resident(&lowered.kernel, &target);
    let grid = lowered.kernel.blocks(&launch.args).unwrap_or(launch.grid.map(i64::from));
    let all = grid.iter().fold(1u64, |n, along| n.saturating_mul(u64::try_from(*along).unwrap_or(0)));
    let blocks = if launch.only_block.is_some() { 1 } else { launch.sample.map_or(all, |n| n.min(all)) };
    if let Some(announce) = &options.announce
        && let Some(size) = announcement(&sim::Size::of(&lowered.kernel, launch), blocks)
    {
        announce(&format!("simulating {}: {size}", lowered.kernel.name));
    }
    let mut host = Timed { host, start: Instant::now(), deadline: options.deadline, done: 0, blocks };
    let kernel = &lowered.kernel;
    let unit = options.watcher.as_ref().and_then(|_| pipeline::emit_cuda(&[kernel], &target).ok());
    let mut seen = |mut report: sim::Report| {
        let cuda = |statement| cuda_line(unit.as_ref()?, statement);
        report.locate(kernel, places, &cuda);
        let work = sim::Work::of(kernel, &report, all);
        let estimate = work.and_then(|work| sim::Estimate::of(work, &target));
        if let (Some(tell), Some(estimate), true) = (&options.estimates, &estimate, report.seed == options.seed) {
            tell(kernel.name.as_str(), estimate);
        }
        let Some(watcher) = &options.watcher else { return report.clean().map(drop) };
        watcher(&Simulated { report: &report, estimate: estimate.as_ref(), kernel, cuda: unit.as_ref() });
        report.stopped.map_or(Ok(()), |(trap, _)| Err(trap))
    };
    let _simulating = Working::simulating();
    progress::kernel(kernel.name.as_str());
    let schedules = simulation.schedules(options.schedules.unwrap_or(1));
    sim::run_under(&schedules, (kernel, &lowered.tile), launch, memory, &mut host, &mut seen)
}

/// The number of blocks whose threads run some `statements` statements together, but at least `least`. `None`: the grid has no more.
pub(crate) fn sample(lowered: &Lowered, launch: &Launch, statements: f64, least: u64) -> Option<u64> {
    let all = launch.blocks();
    let each = sim::Size::of(&lowered.kernel, launch).statements / all as f64;
    let enough = ((statements / each.max(1.0)) as u64).max(least);
    (enough < all).then_some(enough)
}

/// Runs one kernel that belongs to no program.
pub(crate) fn alone(
    lowered: &Lowered,
    launch: &Launch,
    memory: &mut dyn Memory,
    options: &Options,
) -> crate::Result<()> {
    let _cooperative = signals::Cooperative::enter();
    let one = Launching::begin()?;
    let mut host = Printing { options };
    let ended = kernel(lowered, &|_| None, launch, memory, &mut host, options);
    drop(one);
    ended.map_err(|trap| if signals::interrupted() { Error::Interrupted } else { Error::Trap(Box::new(trap)) })
}

/// Runs one kernel of one thread that belongs to no program on the evaluator.
pub(crate) fn evaluated(
    lowered: &Lowered,
    launch: &Launch,
    memory: &mut dyn Memory,
    options: &Options,
) -> crate::Result<()> {
    let _cooperative = signals::Cooperative::enter();
    let one = Launching::begin()?;
    let mut host = Printing { options };
    let ended = eval::run(&lowered.kernel, &lowered.tile, launch, memory, &mut host);
    drop(one);
    ended.map_err(|trap| if signals::interrupted() { Error::Interrupted } else { Error::Trap(Box::new(trap)) })
}

/// Passes prints to the options' printer.
struct Printing<'a> {
    options: &'a Options,
}

impl Host for Printing<'_> {
    fn print(&mut self, block: [u32; 3], text: &str) {
        host::deliver(self.options.printer.as_ref(), block, text);
    }
    fn interrupted(&self) -> bool {
        signals::stopping_here()
    }
}

/// A host that says how far the launch is and how long the rest will take.
struct Timed<'a> {
    host: &'a mut dyn Host,
    start: Instant,
    deadline: Option<Instant>,
    done: u64,
    blocks: u64,
}

/// `3 min`; empty for a run that ends soon.
fn long(seconds: f64) -> Option<String> {
    match seconds {
        s if s < 5.0 => None,
        s if s < 90.0 => Some(format!("{s:.0} s")),
        s if s < 5400.0 => Some(format!("{:.0} min", s / 60.0)),
        s => Some(format!("{:.0} h", s / 3600.0)),
    }
}

/// The announcement of a simulation before it begins; `None` if it ends soon.
fn announcement(size: &sim::Size, blocks: u64) -> Option<String> {
    let mut text = format!("{size}, some {}", long(size.seconds())?);
    if blocks > 1 {
        text += "; `girih sim --block 0,0,0` runs one block";
    }
    Some(text)
}

impl Host for Timed<'_> {
    fn print(&mut self, block: [u32; 3], text: &str) {
        self.host.print(block, text);
    }
    fn at_once(&self) -> bool {
        self.host.at_once()
    }
    fn interrupted(&self) -> bool {
        self.host.interrupted() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
    fn finished(&mut self, block: [u32; 3]) {
        self.done += 1;
        progress::blocks(self.done, self.blocks, || {
            let each = self.start.elapsed().as_secs_f64() / self.done as f64;
            let left = long(each * self.blocks.saturating_sub(self.done) as f64)?;
            Some(format!("about {left} left; `--block 0,0,0` runs one block"))
        });
        self.host.finished(block);
    }
    fn gave_way(&mut self) -> bool {
        self.host.gave_way()
    }
    fn waiting(&mut self, blocks: &[Waiting]) {
        self.host.waiting(blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_units_of_their_size() {
        assert_eq!(long(4.0), None);
        assert_eq!(long(42.0).unwrap(), "42 s");
        assert_eq!(long(600.0).unwrap(), "10 min");
        assert_eq!(long(3.0 * 3600.0).unwrap(), "3 h");
    }

    #[test]
    fn only_what_takes_long_is_announced() {
        let size = |statements, at_least| sim::Size { statements, at_least };
        assert_eq!(announcement(&size(9e7, false), 12), None);
        let said = "about 9.2 G thread-statements, some 8 min; `girih sim --block 0,0,0` runs one block";
        assert_eq!(announcement(&size(9.2e9, false), 12).unwrap(), said);
        assert_eq!(announcement(&size(4e8, true), 1).unwrap(), "at least 400 M thread-statements, some 20 s");
    }
}
