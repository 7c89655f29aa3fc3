//! Inputs that run: an entry of a tile program, Kernel IR by hand, or a model, each with its arguments.
//!
//! In: the flags that name an input, and options. Out: a [`Runnable`], which starts under these options or others; a [`Run`] of
//! it has results, a reference in float64, a bound on their difference, and a profile. Every option of a command is written
//! once, against these two traits.
//!
//! ```text
//! Subject::read ─► open ─► Runnable ─ start ─► Run ─ run ─► results
//!                             └─ under other options ─► Runnable
//! ```

mod kernel_ir;
mod launch;
mod model;

use std::cell::RefCell;
use std::sync::Arc;

use girih::model::Profile;
use girih::widen::ErrorBound;
use girih::{Buffer, Device, Inspect, Kernel, KernelIr, Options, Program, Report};
use girih_compiler::graph::Elem;
use serde_json::Value as Json;

use super::by_hand;
use super::model::arguments::Arguments;
use super::model::{Given, given, refuse_flags};
use super::run::arguments;
use crate::cli::{KernelArgs, LaunchArgs};
use crate::failure::Failure;
use crate::render::Source;
use crate::source;
use launch::Launch;
use model::Opened;

pub use kernel_ir::ByHand;
pub use launch::launch_of;

/// The flags that an input is opened with.
pub struct Asked<'a> {
    pub kernel: &'a KernelArgs,
    pub launch: &'a LaunchArgs,
    /// For the inputs of a model that make their own data.
    pub seed: u64,
}

/// An input that was read.
pub enum Subject {
    Program(Source, Arc<Program>),
    KernelIr(Source, Box<KernelIr>),
    Model(Given),
}

impl Subject {
    /// Reads the input that the flags name; `None` where they ask a question, `-c help`, which is answered.
    pub fn read(args: &KernelArgs) -> Result<Option<Subject>, Failure> {
        Ok(match (given(args), &args.file) {
            (Some(given), _) if given.answers()? => None,
            (Some(given), _) => Some(Subject::Model(given)),
            (None, Some(file)) if by_hand::is_one(file) => {
                by_hand::read(file).map(|(source, kernel)| Some(Subject::KernelIr(source, Box::new(kernel))))?
            }
            (None, _) => {
                source::chosen(args).map(|(source, program)| Some(Subject::Program(source, Arc::new(program))))?
            }
        })
    }

    /// The device that a run takes place on: the one that is asked for, or the only one that the input has.
    pub fn device(&self, asked: Option<Device>) -> Result<Option<Device>, Failure> {
        let Subject::KernelIr(_, kernel) = self else { return Ok(asked) };
        let (threads, only) = (kernel.threads(), if kernel.threads() > 1 { Device::Sim } else { Device::Eval });
        match asked.filter(|asked| *asked != only) {
            None => Ok(Some(only)),
            Some(asked) => {
                let s = if threads == 1 { "" } else { "s" };
                Err(Failure::usage(format!(
                    "Kernel IR with blocks of {threads} thread{s} runs on --device {only}, not on {asked}"
                )))
            }
        }
    }

    /// The source that messages point into.
    pub fn source(&self) -> Source {
        match self {
            Subject::Program(source, _) | Subject::KernelIr(source, _) => source.clone(),
            Subject::Model(given) => given.source(),
        }
    }

    /// Refuses the flags that mean nothing for this kind of input.
    pub fn refuse(&self, flags: &[(&str, bool)]) -> Result<(), Failure> {
        let set = |of: &[&str]| flags.iter().find(|(flag, set)| *set && of.contains(flag)).map(|(flag, _)| *flag);
        match self {
            Subject::Program(..) => Ok(()),
            Subject::Model(_) => match set(&["--block", "--entry", "--grid", "--nvidia"]) {
                Some(flag) => refuse_flags(&[(flag, true)]),
                None => Ok(()),
            },
            Subject::KernelIr(source, _) => {
                if let Some(flag) = set(&["--entry", "--nvidia"]) {
                    return Err(Failure::usage(format!("{flag} does not apply to Kernel IR")));
                }
                match set(&["--verify", "--verify-each", "--compare", "--check", "--profile"]) {
                    Some(flag) => Err(Failure::usage(format!(
                        "{flag} is for tile programs and models, not for Kernel IR; `girih sim {} --compare OTHER.kir` \
                         compares two kernels",
                        source.name
                    ))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Its compilation under options; `args` are inputs of a model.
    pub fn inspect(
        &self,
        kernel: &KernelArgs,
        args: &[(String, String)],
        options: Options,
    ) -> Result<Box<dyn Inspect>, Failure> {
        Ok(match self {
            Subject::Program(source, program) => Box::new(entry(source, program, kernel)?.with_options(options)),
            Subject::KernelIr(_, kernel) => Box::new(KernelIr::clone(kernel).with_options(options)),
            Subject::Model(given) => Box::new(given.open(&mut Arguments::resolve(args)?, options)?),
        })
    }

    /// The input under options, with the arguments that the flags or the file's comment give.
    pub fn open(&self, asked: &Asked<'_>, options: Options) -> Result<Box<dyn Runnable>, Failure> {
        Ok(match self {
            Subject::Program(source, program) => {
                let kernel = entry(source, program, asked.kernel)?.with_options(options);
                Box::new(Launch::new(source, kernel, asked.launch)?)
            }
            Subject::KernelIr(source, kernel) => {
                let kernel = KernelIr::clone(kernel).with_options(options);
                let (grid, arguments) = launch_of(source, kernel.name(), kernel.params(), asked.launch)?;
                Box::new(ByHand::new(source, kernel, grid, arguments))
            }
            Subject::Model(given) => Box::new(Opened::new(given, asked, options)?),
        })
    }
}

/// The entry that the flags name.
fn entry(source: &Source, program: &Arc<Program>, args: &KernelArgs) -> Result<Kernel<'static>, Failure> {
    let name = source::choose(source, program, args.entry.as_deref())?.name().to_string();
    program.shared_entry(&name).map_err(Failure::within(source))
}

/// How often a run runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Often {
    /// Its arguments need no copy: nothing else starts from them.
    Once,
    /// Each time from the arguments as they were given.
    Again,
}

impl Often {
    /// The arguments that a run starts from.
    fn arguments(self, given: &RefCell<arguments::Arguments>) -> girih::Result<arguments::Arguments> {
        match self {
            Often::Once => Ok(given.take()),
            Often::Again => given.borrow().duplicate(),
        }
    }
}

/// An input with its arguments and options.
pub trait Runnable {
    /// The source that messages point into.
    fn source(&self) -> &Source;
    fn name(&self) -> &str;
    /// Its compilation.
    fn inspect(&self) -> &dyn Inspect;
    /// Its name among the records of schedules; `None` where it has no schedule.
    fn key(&self) -> Option<String>;
    /// This input with its arguments, under other options.
    fn under(&self, options: Options) -> girih::Result<Box<dyn Runnable>>;
    /// The position among the results of the array that --save or --print names.
    fn position(&self, name: &str) -> Result<usize, Failure>;
    /// Fits the arguments and compiles, so that [`Run::run`] only runs.
    fn start(&self, often: Often) -> girih::Result<Box<dyn Run + '_>>;
    /// The reason why floats may differ in their last bits from the evaluator's, where there is one.
    fn reordered(&self) -> Option<&'static str>;

    fn options(&self) -> &Options {
        self.inspect().options()
    }
}

/// A run made ready.
pub trait Run {
    /// Runs on the arguments as they were given, and waits for the end.
    fn run(&mut self) -> girih::Result<Report>;

    /// The arrays that the last run left, in the order of the parameters or outputs.
    fn results(&self) -> Vec<Array<'_>>;

    /// Adds the facts of the compilation to the summary.
    fn facts(&self, summary: &mut Json);

    /// Before the first run: checks each rewrite of the compilation on the arguments, and says how many there were.
    fn verify_each(&mut self) -> girih::Result<String>;

    /// All results, computed in float64; or the reason why that is not possible.
    fn reference(&self) -> girih::Result<Result<Vec<Buffer>, String>>;

    /// How far rounding may move the results.
    fn error_bound(&self) -> girih::Result<ErrorBound>;

    /// A sentence about the operation that stores an element of a result, where one can be found.
    fn stored_by(&self, position: usize, element: u64) -> girih::Result<Option<String>>;

    /// The work of a second, for the line of --time, and the same in the summary.
    fn rates(&mut self, seconds: f64, summary: &mut Json) -> girih::Result<String>;

    /// Repeats the run for about a second and measures each step.
    fn profile(&mut self) -> girih::Result<Profile>;

    /// Says what ran, where no option shows more.
    fn tell(&self, seconds: f64) -> Result<(), Failure>;

    /// The number of blocks that [`Options::sample`] may take for the whole grid, and that of all, on the simulator.
    fn sample(&mut self, _statements: f64, _least: u64) -> girih::Result<Option<[u64; 2]>> {
        Ok(None)
    }
}

/// An array of the results.
pub struct Array<'a> {
    pub name: &'a str,
    pub buffer: &'a Buffer,
    pub elem: Elem,
    /// The strings that its elements number, if they do.
    pub words: Vec<&'a str>,
    /// False for an array that the kernel only reads.
    pub written: bool,
}
