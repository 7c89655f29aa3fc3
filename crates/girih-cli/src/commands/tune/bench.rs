//! A kernel or a model under other knobs or a changed schedule: run, checked against the default, and timed beside it.
//!
//! In: the arguments of `girih run`, and candidates. Out: the time under them, that under the default being 1; or why there
//! is none. On a processor the two run in turns; on the simulator the estimates of both are compared, and one run is
//! enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use girih::sim::LAUNCH;
use girih::tune::{self, Candidate};
use girih::widen::ErrorBound;
use girih::{Buffer, Device, Options, Stage};
use girih_compiler::tile::schedule::Schedule;
use girih_compiler::tile::schedule::changes::Difference;

use crate::cli::TuneArgs;
use crate::commands::run::compare::Pair;
use crate::commands::run::timing;
use crate::commands::runnable::{Asked, Often, Run, Runnable, Subject};
use crate::failure::Failure;

/// How long one candidate is timed, and in how many pairs of runs.
const TRIAL: (Duration, std::ops::Range<usize>) = (Duration::from_millis(120), 5..60);
/// The same of a candidate that is to be kept.
const FINAL: (Duration, std::ops::Range<usize>) = (Duration::from_millis(800), 12..400);

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

/// A run, timed by the clock or by the estimate.
struct Timed<'a> {
    run: Box<dyn Run + 'a>,
    sum: Sum,
}

impl<'a> Timed<'a> {
    fn of(runnable: &'a dyn Runnable, sum: Sum) -> girih::Result<Timed<'a>> {
        Ok(Timed { run: runnable.start(Often::Again)?, sum })
    }

    fn once(&mut self) -> girih::Result<f64> {
        let report = self.run.run()?;
        Ok(self.sum.seconds(report.seconds))
    }
}

/// The default, which has run, and everything that candidates are made of.
pub struct Bench<'a> {
    pub name: String,
    pub key: String,
    /// Without knobs.
    pub options: Options,
    subject: &'a dyn Runnable,
    /// The number of all blocks, where a part of them is simulated in their place.
    blocks: Option<u64>,
    default: Timed<'a>,
    /// The time of its first run.
    first: f64,
    want: Vec<(String, Buffer)>,
    bound: ErrorBound,
    /// The schedules that knobs give, as far as they were asked for.
    schedules: BTreeMap<Candidate, Arc<Schedule>>,
}

/// The name of a schedule that is made here, in messages.
const MADE: &str = "schedule";

/// Opens the tile program or model that the arguments name, runs it under the default, and goes on with `then`.
pub fn with<T>(
    args: &TuneArgs,
    mut options: Options,
    then: impl FnOnce(&mut Bench<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(subject) = Subject::read(&args.kernel)? else {
        return Err(Failure::usage(
            "a question has no schedule; name a file, or an expression that computes something",
        ));
    };
    subject.refuse(&[("--entry", args.kernel.entry.is_some()), ("--grid", args.launch.grid.is_some())])?;
    let asked = Asked { kernel: &args.kernel, launch: &args.launch, seed: 0 };
    let subject = &*subject.open(&asked, options.clone())?;
    let within = Failure::within(subject.source());
    let Some(key) = subject.key() else {
        return Err(Failure::usage("Kernel IR has no schedule to tune; `girih tune` takes tile programs and models"));
    };
    // All candidates run the same blocks: they write the same elements.
    let mut blocks = None;
    if options.device == Device::Sim
        && let Some([part, all]) =
            subject.start(Often::Again).and_then(|mut run| run.sample(STATEMENTS, BLOCKS)).map_err(&within)?
    {
        (options.sample, blocks) = (Some(part), Some(all));
    }
    let mut own = options.clone();
    let sum = Sum::of(&mut own);
    let measured = subject.under(own).map_err(&within)?;
    let mut default = Timed::of(&*measured, sum).map_err(&within)?;
    let late = |e| match options.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        true if !girih::interrupted() => Failure::from(girih::Error::argument(
            "the simulation of the default takes longer than the budget; raise --budget, or tune a smaller launch",
        )),
        _ => within(e),
    };
    let first = default.once().map_err(late)?;
    let copies = default.run.results().into_iter().map(|array| Ok((array.name.to_string(), array.buffer.duplicate()?)));
    let want = copies.collect::<girih::Result<_>>()?;
    let bound = default.run.error_bound().map_err(&within)?;
    let (name, schedules) = (subject.name().to_string(), BTreeMap::new());
    then(&mut Bench { name, key, options, subject, blocks, default, first, want, bound, schedules })
}

impl Bench<'_> {
    /// The blocks that are simulated and all blocks, where a part of the grid stands for it.
    pub fn sampled(&self) -> Option<[u64; 2]> {
        Some([self.options.sample?, self.blocks?])
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

    fn ir(&self, options: Options, stage: Stage) -> Result<String, Refused> {
        Ok(self.subject.under(options)?.inspect().ir(stage)?)
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
        let other = self.subject.under(options)?;
        let mut candidate = Timed::of(&*other, sum)?;
        let device = self.options.device;
        let name = device.to_string();
        let first = candidate.once()?;
        for ((array, want), got) in self.want.iter().zip(candidate.run.results()) {
            let pair = Pair { name: array, here: (&name, got.buffer), there: (&name, want) };
            if !pair.agrees(|dtype, scale| self.bound.of(dtype, scale)) {
                return Err(Refused::Because(format!("`{array}` is not what it is under the default")));
            }
        }
        if device == Device::Sim {
            let ratio = first / self.first.max(f64::MIN_POSITIVE);
            return Ok(Measured { default: self.first, candidate: first, ratio, upper: ratio });
        }
        let (most, runs) = if keep { FINAL } else { TRIAL };
        let start = Instant::now();
        let (mut defaults, mut own, mut ratios) = (vec![], vec![], vec![]);
        while ratios.len() < runs.start || (start.elapsed() < most && ratios.len() < runs.end) {
            let (d, c) = match ratios.len() % 2 {
                0 => (self.default.once()?, candidate.once()?),
                _ => {
                    let c = candidate.once()?;
                    (self.default.once()?, c)
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
}

fn parsed(text: &str) -> Result<Schedule, Refused> {
    let first = |all: Vec<girih::Diagnostic>| all.into_iter().next().map_or(String::new(), |d| d.message);
    Schedule::parse(MADE, text).map_err(|all| Refused::Because(first(all)))
}

/// `1.2 ms`.
pub fn duration(seconds: f64) -> String {
    timing::duration(seconds)
}
