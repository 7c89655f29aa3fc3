//! A lowered kernel on the simulator of a GPU.
//!
//! In: a kernel lowered for a target with threads, a launch, its memory. Out: the memory changed, and the simulator's report;
//! for who only wants the kernel run, an error where the simulator found anything wrong.

use girih_compiler::base::Code;
use girih_compiler::base::host::Host;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::kernel::sim::{self, Policy};
use girih_compiler::pipeline::Lowered;

use crate::options::Options;

/// Runs a launch; what the simulator finds wrong is a trap.
pub(crate) fn kernel(
    lowered: &Lowered,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    options: &Options,
) -> Result<sim::Report, Trap> {
    // Seed 0 goes round; each other one is a schedule of one kind or another.
    let policy = Policy::ALL[(options.seed % Policy::ALL.len() as u64) as usize];
    let options = sim::Options { policy, seed: options.seed, ..sim::Options::default() };
    let mut report = sim::run(&lowered.kernel, &lowered.tile, launch, memory, host, &options)?;
    if let Some((trap, _)) = report.stopped.take() {
        return Err(trap);
    }
    match report.findings.first() {
        None => Ok(report),
        Some(first) => Err(Trap { block: first.thread.block, ..Trap::new(Code::Simulated, message(&report)) }),
    }
}

/// The findings in words, the first of them whole.
fn message(report: &sim::Report) -> String {
    let mut text = format!("the kernel `{}` is wrong on a GPU", report.kernel);
    for finding in report.findings.iter().take(MOST_FINDINGS) {
        text += &format!("\n{}", finding.to_string().trim_end());
    }
    if report.findings.len() > MOST_FINDINGS {
        text += &format!("\nand {} more findings", report.findings.len() - MOST_FINDINGS);
    }
    text
}

/// Findings that a message holds.
const MOST_FINDINGS: usize = 4;
