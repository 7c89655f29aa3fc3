//! A kernel or a model under other knobs or a changed schedule: run, checked against the default, and timed beside it.
//!
//! In: the arguments of `girih run`, and candidates. Out: the time under them, that under the default being 1; or why there
//! is none. On a processor the two run in turns; on the simulator the estimates of both are compared, and one run is
//! enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use girih::model::{Model, Prepared};
use girih::tune::{self, Candidate};
use girih::{Buffer, DType, Device, Kernel, Options, Program, Stage};
use girih_compiler::tile::schedule::Schedule;
use girih_compiler::tile::schedule::changes::Difference;

use crate::cli::TuneArgs;
use crate::commands::model::{self, Given};
use crate::commands::run::arguments::{Arguments, Value};
use crate::commands::run::compare::Pair;
use crate::commands::run::{launch, timing, verify::Bound};
use crate::failure::Failure;
use crate::render::Source;
use crate::source;

/// How long one candidate is timed, and in how many pairs of runs.
const TRIAL: (Duration, std::ops::Range<usize>) = (Duration::from_millis(120), 5..60);
/// The same of a candidate that is to be kept.
const FINAL: (Duration, std::ops::Range<usize>) = (Duration::from_millis(800), 12..400);

/// Seconds that each launch of a GPU takes besides its kernel: without them, two small kernels would do as well as one.
const LAUNCH: f64 = 1e-6;

/// Why a candidate has no time.
pub enum Refused {
    Interrupted,
    Because(String),
}

impl From<girih::Error> for Refused {
    fn from(error: girih::Error) -> Refused {
        if matches!(error, girih::Error::Interrupted) || girih::interrupted() {
            return Refused::Interrupted;
        }
        Refused::Because(error.to_string().lines().next().unwrap_or("it failed").to_string())
    }
}

/// Seconds of the default and of the candidate.
#[derive(Clone, Copy)]
pub struct Measured {
    pub default: f64,
    pub candidate: f64,
    /// The median of the ratios of the candidate's time to the default's in each pair of runs, and the upper quartile.
    pub ratio: f64,
    pub upper: f64,
}

/// Something that runs and leaves results.
trait Call {
    /// Seconds, by the clock or by the estimate.
    fn once(&mut self) -> girih::Result<f64>;
    fn results(&self) -> Vec<(String, &Buffer)>;
}

/// The estimated seconds of a run's kernels on the simulator, added up.
#[derive(Clone, Default)]
struct Sum(Option<Arc<Mutex<f64>>>);

impl Sum {
    /// The options, telling it where they are the simulator's.
    fn of(options: &mut Options) -> Sum {
        if options.device != Device::Sim {
            return Sum(None);
        }
        let sum = Arc::new(Mutex::new(0.0));
        let into = sum.clone();
        options.estimates =
            Some(Arc::new(move |_, e| *into.lock().unwrap_or_else(PoisonError::into_inner) += e.seconds() + LAUNCH));
        Sum(Some(sum))
    }

    fn seconds(&self, clock: f64) -> f64 {
        self.0.as_ref().map_or(clock, |sum| std::mem::take(&mut *sum.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A launch of a tile program whose threads run more statements is simulated in part: as many of its blocks as run this number, some
/// quarter of a second, and at least [`BLOCKS`] of them.
const STATEMENTS: f64 = 5e6;
/// The first block, the last one and one between them.
const BLOCKS: u64 = 3;

struct OfProgram<'a> {
    kernel: Kernel<'a>,
    grid: [u32; 3],
    before: &'a Arguments,
    arguments: Arguments,
    sum: Sum,
}

impl Call for OfProgram<'_> {
    fn once(&mut self) -> girih::Result<f64> {
        for i in 0..self.arguments.values.len() {
            self.arguments.restore(self.before, i);
        }
        self.kernel.program().reset_globals();
        let mut views = self.arguments.views();
        let report = self.kernel.prepare(self.grid, &mut views)?.run()?;
        Ok(self.sum.seconds(report.seconds))
    }

    fn results(&self) -> Vec<(String, &Buffer)> {
        let all = self.kernel.params().iter().zip(&self.arguments.values);
        all.filter_map(|(p, v)| if let Value::Buffer(b) = v { Some((p.name.clone(), b)) } else { None }).collect()
    }
}

struct OfModel<'a> {
    prepared: Prepared<'a>,
    names: Vec<String>,
    sum: Sum,
}

impl Call for OfModel<'_> {
    fn once(&mut self) -> girih::Result<f64> {
        let start = Instant::now();
        self.prepared.run()?;
        Ok(self.sum.seconds(start.elapsed().as_secs_f64()))
    }

    fn results(&self) -> Vec<(String, &Buffer)> {
        self.names.iter().cloned().zip(self.prepared.outputs().iter().map(|t| t.buffer())).collect()
    }
}

/// The kernel or the model that is tuned.
enum Subject<'a> {
    Program { program: &'a Program, entry: String, grid: [u32; 3], before: &'a Arguments },
    Model { args: &'a TuneArgs, given: &'a Given, arguments: &'a model::arguments::Arguments },
}

/// How far rounding may move a result.
type Rounding<'a> = Box<dyn Fn(DType, f64) -> f64 + 'a>;

/// The default, which has run, and everything that candidates are made of.
pub struct Bench<'a> {
    pub name: String,
    pub key: String,
    /// Without knobs.
    pub options: Options,
    subject: Subject<'a>,
    default: Box<dyn Call + 'a>,
    /// The time of its first run.
    first: f64,
    want: Vec<(String, Buffer)>,
    rounding: Rounding<'a>,
    /// The schedules that knobs give, as far as they were asked for.
    schedules: BTreeMap<Candidate, Arc<Schedule>>,
}

/// The name of a schedule that is made here, in messages.
const MADE: &str = "schedule";

/// Opens the tile program or model that the arguments name, runs it under the default, and goes on with `then`.
pub fn with<T>(
    args: &TuneArgs,
    options: Options,
    then: impl FnOnce(&mut Bench<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match model::given(&args.kernel) {
        Some(given) => of_model(args, &given, options, then),
        None => of_program(args, options, then),
    }
}

fn of_program<T>(
    args: &TuneArgs,
    mut options: Options,
    then: impl FnOnce(&mut Bench<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (source, program) = source::chosen(&args.kernel)?;
    let kernel = source::choose(&source, &program, args.kernel.entry.as_deref())?;
    let (grid, before) = launch(&source, kernel.name(), kernel.params(), &args.launch)?;
    let (name, key) = (kernel.name().to_string(), kernel.tuning_key());
    let subject = Subject::Program { program: &program, entry: name.clone(), grid, before: &before };
    let within = Failure::within(&source);
    let mut arguments = before.duplicate().map_err(&within)?;
    // All candidates run the same blocks: they write the same elements.
    let kernel = kernel.with_options(options.clone());
    options.sample = kernel.prepare(grid, &mut arguments.views()).map_err(&within)?.sample(STATEMENTS, BLOCKS);
    let mut own = options.clone();
    let sum = Sum::of(&mut own);
    let bound = Bound::new(&kernel, grid, &before);
    let kernel = kernel.with_options(own);
    let default = Box::new(OfProgram { kernel, grid, before: &before, arguments, sum });
    let rounding = Box::new(move |dtype, scale| bound.of(dtype, scale));
    begin(
        &source,
        Bench { name, key, options, subject, default, first: 0.0, want: vec![], rounding, schedules: BTreeMap::new() },
        then,
    )
}

fn of_model<T>(
    args: &TuneArgs,
    given: &Given,
    mut options: Options,
    then: impl FnOnce(&mut Bench<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let source = given.source();
    let plain = options.clone();
    let sum = Sum::of(&mut options);
    let (model, arguments) = model::run::opened(given, &args.kernel, &args.launch, options)?;
    let within = Failure::within(&source);
    let prepared = model.prepare(&arguments.arrays(), &arguments.extents()).map_err(&within)?;
    let bound = prepared.rounding().map_err(&within)?;
    let names = model.outputs().into_iter().map(|p| p.name).collect();
    let (name, key) = (model.name().to_string(), model.tuning_key());
    let subject = Subject::Model { args, given, arguments: &arguments };
    let default = Box::new(OfModel { prepared, names, sum });
    let rounding = Box::new(move |dtype, scale| bound.of(dtype, scale));
    begin(
        &source,
        Bench {
            name,
            key,
            options: plain,
            subject,
            default,
            first: 0.0,
            want: vec![],
            rounding,
            schedules: BTreeMap::new(),
        },
        then,
    )
}

fn begin<T>(
    source: &Source,
    mut bench: Bench<'_>,
    then: impl FnOnce(&mut Bench<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let late = |e| match bench.options.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        true if !girih::interrupted() => Failure::from(girih::Error::argument(
            "the simulation of the default takes longer than the budget; raise --budget, or tune a smaller launch",
        )),
        _ => Failure::within(source)(e),
    };
    bench.first = bench.default.once().map_err(late)?;
    let copies = bench.default.results().into_iter().map(|(name, b)| Ok((name, b.duplicate()?)));
    bench.want = copies.collect::<girih::Result<_>>()?;
    then(&mut bench)
}

impl Bench<'_> {
    /// The blocks that are simulated and all blocks, where a part of the grid stands for it.
    pub fn sampled(&self) -> Option<[u64; 2]> {
        match &self.subject {
            Subject::Program { grid, .. } => Some([self.options.sample?, grid.iter().map(|n| u64::from(*n)).product()]),
            Subject::Model { .. } => None,
        }
    }

    /// The options under the knobs of a candidate, with the schedule that the rules choose.
    fn with_knobs(&self, candidate: &Candidate) -> Options {
        let knobs = tune::knobs(candidate).into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Options { knobs, ..self.options.clone() }
    }

    fn options(&mut self, candidate: &Candidate) -> Result<Options, Refused> {
        let schedule = self.changed(candidate)?.map(Arc::new);
        Ok(Options { schedule, ..self.with_knobs(candidate) })
    }

    /// The schedule that the knobs of a candidate give.
    pub fn schedule(&mut self, candidate: &Candidate) -> Result<Arc<Schedule>, Refused> {
        let knobs = tune::without_changes(candidate);
        if let Some(known) = self.schedules.get(&knobs) {
            return Ok(known.clone());
        }
        let text = self.ir(self.with_knobs(&knobs), Stage::Schedule)?;
        let schedule = Arc::new(parsed(&text)?);
        self.schedules.insert(knobs, schedule.clone());
        Ok(schedule)
    }

    /// The schedule with a candidate's changes; `None` where it makes none.
    pub fn changed(&mut self, candidate: &Candidate) -> Result<Option<Schedule>, Refused> {
        let changes = tune::changes(candidate);
        if changes.is_empty() {
            return Ok(None);
        }
        let text = self.schedule(candidate)?.changed(&changes).map_err(Refused::Because)?;
        parsed(&text).map(Some)
    }

    /// The lines that a candidate changes.
    pub fn differences(&mut self, candidate: &Candidate) -> Vec<Difference> {
        let changes = tune::changes(candidate);
        if changes.is_empty() {
            return vec![];
        }
        self.schedule(candidate).map(|schedule| schedule.differences(&changes)).unwrap_or_default()
    }

    /// `kc=128; line 7: split n by 4 -> b, r; line 12 left out`.
    pub fn words(&mut self, candidate: &Candidate) -> String {
        let line = |(line, _, after): Difference| match after {
            Some(after) => format!("line {line}: {after}"),
            None => format!("line {line} left out"),
        };
        let lines: Vec<String> = self.differences(candidate).into_iter().map(line).collect();
        let knobs: Vec<String> = tune::knobs(candidate).iter().map(|(k, v)| format!("{k}={v}")).collect();
        let parts: Vec<String> = [knobs.join(" ")].into_iter().filter(|k| !k.is_empty()).chain(lines).collect();
        if parts.is_empty() { tune::text(candidate) } else { parts.join("; ") }
    }

    fn model(&self, args: &TuneArgs, given: &Given, options: Options) -> Result<Model, Refused> {
        let opened = model::run::opened(given, &args.kernel, &args.launch, options);
        opened.map(|(model, _)| model).map_err(|_| Refused::Because("it cannot be opened again".into()))
    }

    fn ir(&self, options: Options, stage: Stage) -> Result<String, Refused> {
        Ok(match &self.subject {
            Subject::Program { program, entry, .. } => program.entry(entry)?.with_options(options).ir(stage)?,
            Subject::Model { args, given, .. } => self.model(args, given, options)?.ir(stage)?,
        })
    }

    /// The kernels of a candidate, as text: candidates that share it are the same.
    pub fn code(&mut self, candidate: &Candidate) -> Result<String, Refused> {
        let options = self.options(candidate)?;
        self.ir(options, Stage::Kernel)
    }

    /// Runs a candidate, checks its results, and times it; longer where it is to be kept.
    pub fn measure(&mut self, candidate: &Candidate, keep: bool) -> Result<Measured, Refused> {
        let late = self.options.deadline;
        let over = |refused| match late.is_some_and(|deadline| Instant::now() >= deadline) {
            true => Refused::Interrupted,
            false => refused,
        };
        self.measured(candidate, keep).map_err(over)
    }

    fn measured(&mut self, candidate: &Candidate, keep: bool) -> Result<Measured, Refused> {
        let mut options = self.options(candidate)?;
        let sum = Sum::of(&mut options);
        match &self.subject {
            Subject::Program { program, entry, grid, before } => {
                let kernel = program.entry(entry)?.with_options(options);
                let arguments = before.duplicate()?;
                let mut call = OfProgram { kernel, grid: *grid, before, arguments, sum };
                measure(
                    (self.default.as_mut(), self.first),
                    &mut call,
                    &self.want,
                    &self.rounding,
                    self.options.device,
                    keep,
                )
            }
            Subject::Model { args, given, arguments } => {
                let model = self.model(args, given, options)?;
                let prepared = model.prepare(&arguments.arrays(), &arguments.extents())?;
                let names = model.outputs().into_iter().map(|p| p.name).collect();
                let mut call = OfModel { prepared, names, sum };
                measure(
                    (self.default.as_mut(), self.first),
                    &mut call,
                    &self.want,
                    &self.rounding,
                    self.options.device,
                    keep,
                )
            }
        }
    }
}

fn measure(
    (default, default_first): (&mut dyn Call, f64),
    candidate: &mut dyn Call,
    want: &[(String, Buffer)],
    rounding: &Rounding<'_>,
    device: Device,
    keep: bool,
) -> Result<Measured, Refused> {
    let first = candidate.once()?;
    for ((name, want), (_, got)) in want.iter().zip(candidate.results()) {
        let pair = Pair { name, here: (device, got), there: (device, want) };
        if !pair.agrees(rounding) {
            return Err(Refused::Because(format!("`{name}` is not what it is under the default")));
        }
    }
    if device == Device::Sim {
        let ratio = first / default_first.max(f64::MIN_POSITIVE);
        return Ok(Measured { default: default_first, candidate: first, ratio, upper: ratio });
    }
    let (most, runs) = if keep { FINAL } else { TRIAL };
    let start = Instant::now();
    let (mut defaults, mut own, mut ratios) = (vec![], vec![], vec![]);
    while ratios.len() < runs.start || (start.elapsed() < most && ratios.len() < runs.end) {
        let (d, c) = match ratios.len() % 2 {
            0 => (default.once()?, candidate.once()?),
            _ => {
                let c = candidate.once()?;
                (default.once()?, c)
            }
        };
        defaults.push(d);
        own.push(c);
        ratios.push(c / d.max(f64::MIN_POSITIVE));
        // Runs of seconds are repeated no more than needed.
        if ratios.len() >= 3 && start.elapsed() > 10 * most {
            break;
        }
    }
    let at = |all: &mut Vec<f64>, part: usize| {
        all.sort_by(f64::total_cmp);
        all[(all.len() - 1) * part / 4]
    };
    let (ratio, upper) = (at(&mut ratios, 2), at(&mut ratios, 3));
    Ok(Measured { default: at(&mut defaults, 2), candidate: at(&mut own, 2), ratio, upper })
}

fn parsed(text: &str) -> Result<Schedule, Refused> {
    let first = |all: Vec<girih::Diagnostic>| all.into_iter().next().map_or(String::new(), |d| d.message);
    Schedule::parse(MADE, text).map_err(|all| Refused::Because(first(all)))
}

/// `1.2 ms`.
pub fn duration(seconds: f64) -> String {
    timing::duration(seconds)
}
