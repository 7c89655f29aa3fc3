//! A lowered kernel on the simulator of a GPU.
//!
//! In: a kernel lowered for a target with threads, a launch, its memory. Out: the memory changed, and a report for the
//! options' watcher; without one, an error where the simulator found anything wrong.

use std::time::Instant;

use girih_compiler::base::Code;
use girih_compiler::base::host::{Host, Waiting};
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::emit::{self, cuda::Unit};
use girih_compiler::kernel::sim;
use girih_compiler::pipeline::{self, Lowered};

use crate::compile::progress::{self, Working};
use crate::options::Options;

/// What the simulator saw of a kernel.
pub struct Simulated<'a> {
    pub report: &'a sim::Report,
    cuda: Option<&'a Unit>,
}

impl Simulated<'_> {
    /// The line of the kernel's CUDA that a statement is; `None` where it has none, or the kernel has no CUDA.
    pub fn cuda_line(&self, statement: u32) -> Option<u32> {
        let lines = &self.cuda?.lines;
        lines.iter().find(|l| l.statement == statement as usize).map(|l| l.line)
    }
}

/// Runs a launch under the schedule that the options' seed means.
pub(crate) fn kernel(
    lowered: &Lowered,
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
    let blocks = if launch.only_block.is_some() { 1 } else { launch.blocks() };
    let mut host = Timed { host, start: Instant::now(), done: 0, blocks };
    let report = {
        let _simulating = Working::simulating();
        progress::kernel(lowered.kernel.name.as_str());
        sim::run(&lowered.kernel, &lowered.tile, launch, memory, &mut host, &simulation)?
    };
    let Some(watcher) = &options.watcher else { return report.clean().map(drop) };
    let unit = pipeline::emit_cuda(&[&lowered.kernel], &target).ok();
    watcher(&Simulated { report: &report, cuda: unit.as_ref() });
    report.stopped.map_or(Ok(()), |(trap, _)| Err(trap))
}

/// A host that says how far the launch is and how long the rest will take.
struct Timed<'a> {
    host: &'a mut dyn Host,
    start: Instant,
    done: u64,
    blocks: u64,
}

/// `about 3 min left`; nothing for what ends soon.
fn left(seconds: f64) -> Option<String> {
    match seconds {
        s if s < 5.0 => None,
        s if s < 90.0 => Some(format!("about {s:.0} s left")),
        s if s < 5400.0 => Some(format!("about {:.0} min left", s / 60.0)),
        s => Some(format!("about {:.0} h left", s / 3600.0)),
    }
}

impl Host for Timed<'_> {
    fn print(&mut self, block: [u32; 3], text: &str) {
        self.host.print(block, text);
    }
    fn at_once(&self) -> bool {
        self.host.at_once()
    }
    fn interrupted(&self) -> bool {
        self.host.interrupted()
    }
    fn finished(&mut self, block: [u32; 3]) {
        self.done += 1;
        progress::blocks(self.done, self.blocks, || {
            let each = self.start.elapsed().as_secs_f64() / self.done as f64;
            let left = left(each * self.blocks.saturating_sub(self.done) as f64)?;
            Some(format!("{left}; `--block 0,0,0` runs one block"))
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
    use super::left;

    #[test]
    fn the_time_left_is_told_in_units_of_its_size() {
        assert_eq!(left(4.0), None);
        assert_eq!(left(42.0).unwrap(), "about 42 s left");
        assert_eq!(left(600.0).unwrap(), "about 10 min left");
        assert_eq!(left(3.0 * 3600.0).unwrap(), "about 3 h left");
    }
}
