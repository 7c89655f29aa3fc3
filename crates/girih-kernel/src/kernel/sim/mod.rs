//! The simulator: a kernel of many threads executed, and what is wrong with it or what it costs reported.
//!
//! In: a [`Kernel`], the placed kernel that it was made of, a [`Launch`], a memory, a host and [`Options`]. Out: the memory
//! changed, and a [`Report`]. It is the [`machine`] with warps of 32 lanes and a watch:
//!
//! * [`clock`]: which accesses are ordered    * [`shadow`]: who wrote and read each place    * [`observer`]: the watch itself
//! * [`count`]: banks, sectors                * [`instruction`]: kinds of statements         * [`finding`]: what is wrong,
//!   in words                                 * [`report`]: all of it                * [`size`]: how long it takes, before
//! * [`recording`]: what is kept for pictures        * [`estimate`]: what it would take on the target
//! * [`schedules`]: several runs of one launch, which must leave the same, on memory that is [`replayed`]
//!
//! ```text
//! store tile[tx] = x                 read-after-write: a race in shared memory: a thread reads what another thread has
//! y: f32 = load tile[63 - tx]   -->  written, with nothing to order the two
//!                                      line 4: `store tile[tx] = x` by thread 0
//!                                      then line 5: `y: f32 = load tile[63 - tx]` by thread 63
//! ```
//! Invariants:
//! * Threads are not in lockstep. Only barriers, warp barriers, releases and acquires order accesses; a shuffle
//!   exchanges values and orders no memory.
//! * The same kernel, launch, policy and seed give the same report and the same memory.
//! * A finding is real on a GPU that runs the threads in some order. A clean report proves nothing, since the simulator
//!   takes only one way through the branches.

mod clock;
mod count;
mod estimate;
mod finding;
mod instruction;
mod observer;
mod recording;
mod replayed;
mod report;
mod schedules;
mod shadow;
mod size;
mod tensor_memory;
#[cfg(test)]
mod tests;

use super::ir::Kernel;
use super::machine::{self, Run, Schedule};
use crate::base::Code;
use crate::base::host::Host;
use crate::base::launch::{Launch, Trap};
use crate::base::memory::Memory;
use crate::index::facts::MOST_THREADS;
use crate::loops;

pub use super::machine::Policy;
pub use count::{Counts, Requests};
pub use estimate::{Estimate, LAUNCH, Work, resident};
pub use finding::{Finding, Kind, Origin, Statement, Thread};
pub use instruction::Instruction;
pub use recording::{Bin, Flight, Recording, Request, Timeline};
pub use report::{Report, Row, Touched};
pub use schedules::run_under;
pub use size::Size;

/// Lanes of the warps that the simulator runs, one bit each of a mask.
pub const WARP: u32 = 32;

/// How a simulation runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    pub policy: Policy,
    /// The same seed gives the same run.
    pub seed: u64,
    /// Look for races, reads of what was not written and misaligned accesses.
    pub races: bool,
    /// Count wavefronts and sectors.
    pub counts: bool,
    /// Statements that all threads together may run.
    pub steps: u64,
    /// Keep what pictures are drawn of.
    pub record: bool,
    /// The most blocks that the GPU has at once; `None`: all blocks of the grid.
    pub resident: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            policy: Policy::RoundRobin,
            seed: 0,
            races: true,
            counts: true,
            steps: 1 << 36,
            record: false,
            resident: None,
        }
    }
}

impl Options {
    /// A schedule for each number: 0 goes round, the others are of one kind or another.
    pub fn of_seed(seed: u64) -> Options {
        let policy = Policy::ALL[(seed % Policy::ALL.len() as u64) as usize];
        Options { policy, seed, ..Options::default() }
    }

    /// The same under as many schedules, from the seed on; the first alone keeps what pictures are drawn of.
    pub fn schedules(&self, count: u64) -> Vec<Options> {
        let of = |n: u64| {
            let seed = self.seed.wrapping_add(n);
            Options { record: self.record && n == 0, policy: Options::of_seed(seed).policy, seed, ..self.clone() }
        };
        (0..count.max(1)).map(of).collect()
    }
}

/// Runs every block of the launch, or its `only_block`. `placed` is the kernel that `legalise` was given. The error is what
/// kept the run from beginning; what ended it before its end is in the report.
pub fn run(
    kernel: &Kernel,
    placed: &loops::ir::Kernel,
    launch: &Launch,
    memory: &mut dyn Memory,
    host: &mut dyn Host,
    options: &Options,
) -> Result<Report, Trap> {
    let name = kernel.name.as_str();
    if !(1..=MOST_THREADS).contains(&kernel.threads) {
        let message =
            format!("the kernel `{name}` has {} threads in a block; it can have 1 to {MOST_THREADS}", kernel.threads);
        return Err(Trap::new(Code::InvalidIr, message));
    }
    if kernel.warp != WARP && kernel.threads > 1 {
        let message = format!(
            "the kernel `{name}` is for warps of {} lanes; the simulator has warps of {WARP}, as NVIDIA's GPUs have",
            kernel.warp
        );
        return Err(Trap::new(Code::InvalidIr, message));
    }
    let Some((mut launch, program)) = machine::prepare(kernel, launch)? else {
        return Ok(Report::empty(kernel, options));
    };
    let blocks = launch.blocks();
    if program.count >= clock::MOST_STATEMENTS || blocks >= u64::from(u32::MAX) {
        let message = format!(
            "the kernel `{name}` has {} statements and runs in {blocks} blocks; the simulator takes less than {} \
             statements and {} blocks",
            program.count,
            clock::MOST_STATEMENTS,
            u32::MAX
        );
        return Err(Trap::new(Code::BadGrid, message));
    }
    // Blocks that do not communicate run one after the other.
    let mixed = program.cooperative && options.policy == Policy::Random;
    launch.seed = if mixed { options.seed | 1 } else { 0 };
    let mut observer = observer::Observer::new(kernel, &program, launch.grid, options);
    let run = Run { program: &program, kernel, placed, launch: &launch, resident: options.resident };
    let schedule = Schedule::new(options.policy, options.seed);
    let ended = machine::run::<{ WARP as usize }, _>(run, memory, host, &mut observer, schedule);
    let texts = finding::Texts::of(kernel);
    let at = observer.exhausted.map(|s| texts.statement(s));
    let mut report = Report {
        blocks: observer.blocks,
        barriers: observer.barriers,
        touched: observer.touched.by_region(memory),
        loaded: observer.loaded,
        reloaded: observer.reloaded,
        watched_all: !observer.global.full,
        untold: observer.found.untold,
        stopped: ended.err().map(|trap| (trap, at)),
        recording: observer.recorder.map(|r| Box::new(r.made)),
        findings: observer.found.told(&texts, kernel, memory, launch.grid),
        ..Report::empty(kernel, options)
    };
    let kinds = Instruction::all(kernel);
    for ((number, counts), kind) in observer.counts.iter().enumerate().zip(kinds).filter(|((_, c), _)| c.executions > 0)
    {
        report.total += *counts;
        report.rows.push(Row { statement: texts.statement(number as u32), kind, counts: *counts });
    }
    Ok(report)
}
