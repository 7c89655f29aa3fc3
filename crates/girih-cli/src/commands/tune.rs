//! `girih tune`: a faster schedule, found by trying, and kept for later runs.
//!
//! In: the arguments of `girih run`. Out: the knobs and the schedule under which it is faster than by default, if there are any, in
//! the records beside the cache, which `run`, `compile` and Python use from then on. Knobs are tried first, then changes of the lines of
//! the schedule that the best of them give.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use girih::tune::{self, Candidate, Outcome, Record, Records, Search, space};
use girih::{Device, Options};
use serde_json::json;

use crate::cli::{Jobs, TuneArgs};
use crate::failure::Failure;
use crate::{columns, source};
use bench::{Bench, Measured, Refused, duration};

mod bench;
mod elsewhere;

/// The part of the budget after which no new candidate is tried.
const SEARCHING: f64 = 0.85;
/// The part of the search for knobs, where lines of the schedule are tried after them.
const KNOBS: f64 = 0.5;
/// Candidates that are timed again at the end, the best first, until one is faster beyond noise.
const FINALISTS: usize = 3;
/// Three of four pairs of runs must take at most this fraction of the default's time.
const WIN: f64 = 0.99;

pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    if args.list {
        return list(args.json);
    }
    if let Some(what) = &args.forget {
        let removed = records()?.forget(what)?;
        let s = if removed == 1 { "" } else { "s" };
        return outln!("forgot {removed} schedule{s}");
    }
    if !args.kernel.knobs.is_empty() {
        return Err(Failure::usage("--knob sets what `girih tune` looks for; --vary NAME names the knobs to try"));
    }
    if args.launch.block.is_some() {
        return Err(Failure::usage("--block runs one block, whose time says little; tune the whole grid"));
    }
    let mut options = source::options(&args.kernel)?;
    options.schedules = None;
    options.device = args.device.unwrap_or(options.device);
    options.tuned = false;
    options.printer = Some(std::sync::Arc::new(|_, _| {}));
    if options.device == Device::Eval {
        return Err(Failure::usage("the evaluator has no schedule to tune; choose --device cpu or --device sim"));
    }
    let start = Instant::now();
    if options.device == Device::Sim {
        options.deadline = Some(start + Duration::from_secs_f64(args.budget * SEARCHING));
    }
    let space = space::chosen(&options.resolved_target(), &args.vary).map_err(Failure::usage)?;
    if let Some(candidate) = &args.candidate {
        return one(args, options, candidate);
    }
    if let Some(jobs) = &args.jobs {
        if options.device != Device::Sim {
            return Err(Failure::usage(
                "--jobs is for --device sim: processes beside each other disturb what is measured",
            ));
        }
        if args.kernel.file.as_deref() == Some(std::path::Path::new("-")) {
            return Err(Failure::usage("--jobs starts processes that read the file too; name one instead of `-`"));
        }
        if let Jobs::Engine(engine) = jobs {
            return super::cutile::become_python("girih.tune", &python_arguments(engine));
        }
    }
    let records = records()?;
    records.check()?;
    // Ctrl-C ends the search, not the process.
    let _cooperative = girih::Cooperative::enter();
    bench::with(args, options, |bench| search(args, bench, start, &space, &records))
}

fn records() -> Result<Records, Failure> {
    let none = || Failure::usage("no folder for schedules is known: neither HOME nor GIRIH_CACHE_DIR is set");
    Records::of(&girih::CachePolicy::Default).ok_or_else(none)
}

/// The arguments of this command, for `python -m girih.tune`.
fn python_arguments(engine: &str) -> Vec<std::ffi::OsString> {
    let mut all: Vec<std::ffi::OsString> = std::env::args_os().skip(2).collect();
    let separate = all.iter().position(|a| a == "--jobs");
    match separate {
        Some(at) => drop(all.drain(at..(at + 2).min(all.len()))),
        None => all.retain(|a| !a.to_string_lossy().starts_with("--jobs=")),
    }
    all.insert(0, format!("--jobs={engine}").into());
    all
}

fn list(as_json: bool) -> Result<(), Failure> {
    let all = records()?.all();
    if as_json {
        return outln!("{}", json!(all.iter().map(Record::json).collect::<Vec<_>>()));
    }
    if all.is_empty() {
        return outln!("no schedules; `girih tune FILE` finds one");
    }
    let head = ["kernel", "key", "date", "gain", "schedule", "machine"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for r in &all {
        let gain = format!("{:.2}x{}", r.speedup, if r.estimated { " (estimate)" } else { "" });
        let key = r.key.chars().take(12).collect();
        rows.push(vec![r.name.clone(), key, r.date.clone(), gain, r.settings_text(), r.machine.clone()]);
    }
    out!("{}", columns::table(&rows))
}

/// The settings of `K=V,K=V`.
fn candidate(text: &str) -> Result<Candidate, Failure> {
    let parts = text.split(',').filter(|p| !p.is_empty());
    parts.map(tune::setting).collect::<Result<_, _>>().map_err(Failure::usage)
}

/// `--candidate`: one JSON object.
fn one(args: &TuneArgs, options: Options, text: &str) -> Result<(), Failure> {
    let (candidate, machine) = (candidate(text)?, tune::machine(&options));
    bench::with(args, options, |bench| {
        let outcome = bench.measure(&candidate, false);
        outln!("{}", elsewhere::outcome_json(&candidate, &outcome, &machine, &bench.key))
    })
}

/// A search under way.
struct Tuner<'a, 'b> {
    args: &'a TuneArgs,
    bench: &'a mut Bench<'b>,
    machine: String,
    deadline: Instant,
    /// Candidates to try at most.
    trials: Option<usize>,
    /// Outcomes by code: settings that change nothing are not tried again.
    known: BTreeMap<[u8; 32], Outcome>,
    measured: BTreeMap<Candidate, Measured>,
    tried: usize,
    failed: usize,
    /// Changes of a schedule that are not legal.
    refused: usize,
    best: f64,
    failure: Option<Failure>,
}

impl Tuner<'_, '_> {
    fn note(&self, text: &str) {
        if self.args.verbose > 0 {
            clear();
            say!("{text}");
        }
    }

    /// `skipped kc=64: it needs 300 KiB of shared memory`.
    fn skipped(&mut self, candidate: &Candidate, why: &str) {
        let words = self.bench.words(candidate);
        self.note(&format!("skipped {words}: {why}"));
    }

    fn ended(&self) -> bool {
        Instant::now() >= self.deadline || girih::interrupted() || self.failure.is_some()
    }

    fn batch(&mut self, batch: &[Candidate]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = vec![];
        let mut codes = vec![];
        let mut fresh: Vec<(usize, Candidate)> = vec![];
        for (at, candidate) in batch.iter().enumerate() {
            if self.ended() {
                break;
            }
            let (code, outcome) = match self.bench.code(candidate) {
                Ok(code) => {
                    let hash = tune::hash(&code);
                    (Some(hash), self.known.get(&hash).copied())
                }
                Err(Refused::Interrupted) => (None, Some(Outcome::Stopped)),
                Err(Refused::Because(why)) => {
                    match tune::changes(candidate).is_empty() {
                        true => (self.tried, self.failed) = (self.tried + 1, self.failed + 1),
                        false => self.refused += 1,
                    }
                    self.skipped(candidate, &why);
                    (None, Some(Outcome::Failed))
                }
            };
            // Two of a batch with the same code: the second one waits for the first.
            let twice = code.is_some() && codes.contains(&code);
            if outcome.is_none() && !twice {
                if self.trials.is_some_and(|most| self.tried + fresh.len() >= most) {
                    break;
                }
                fresh.push((at, candidate.clone()));
            }
            codes.push(code);
            outcomes.push(outcome);
        }
        let candidates: Vec<Candidate> = fresh.iter().map(|(_, c)| c.clone()).collect();
        for ((at, candidate), measured) in fresh.iter().zip(self.evaluate(&candidates)) {
            let outcome = self.told(candidate, measured);
            if let (Some(Some(code)), false) = (codes.get(*at), outcome == Outcome::Stopped) {
                self.known.insert(*code, outcome);
            }
            outcomes[*at] = Some(outcome);
        }
        let of = |(at, outcome): (usize, Option<Outcome>)| {
            outcome.or_else(|| self.known.get(&(*codes.get(at)?)?).copied()).unwrap_or(Outcome::Stopped)
        };
        outcomes.into_iter().enumerate().map(of).collect()
    }

    /// By this process, by others beside it, or by the reader of standard output; `None`: not evaluated.
    fn evaluate(&mut self, batch: &[Candidate]) -> Vec<Option<Result<Measured, Refused>>> {
        if batch.is_empty() {
            return vec![];
        }
        if self.args.batches {
            return elsewhere::by_lines(batch, self.deadline, &self.machine, &self.bench.key).unwrap_or_else(
                |failure| {
                    self.failure = Some(failure);
                    vec![]
                },
            );
        }
        if let Some(Jobs::Processes(n)) = self.args.jobs {
            return elsewhere::by_processes(n, batch, self.deadline, &self.machine, &self.bench.key);
        }
        let mut out = vec![];
        for candidate in batch {
            self.progress();
            out.push(if self.ended() { None } else { Some(self.bench.measure(candidate, false)) });
        }
        out
    }

    fn told(&mut self, candidate: &Candidate, measured: Option<Result<Measured, Refused>>) -> Outcome {
        match measured {
            None | Some(Err(Refused::Interrupted)) => Outcome::Stopped,
            Some(Err(Refused::Because(why))) => {
                (self.tried, self.failed) = (self.tried + 1, self.failed + 1);
                self.skipped(candidate, &why);
                Outcome::Failed
            }
            Some(Ok(m)) => {
                self.tried += 1;
                self.best = self.best.min(m.ratio);
                self.measured.insert(candidate.clone(), m);
                let words = self.bench.words(candidate);
                self.note(&format!("{:.2}x  {words}", 1.0 / m.ratio));
                self.progress();
                Outcome::Ratio(m.ratio)
            }
        }
    }

    fn progress(&self) {
        if self.args.json || self.args.batches || !std::io::stderr().is_terminal() {
            return;
        }
        let left = self.deadline.saturating_duration_since(Instant::now()).as_secs();
        let (name, tried, best) = (&self.bench.name, self.tried, 1.0 / self.best);
        let line: String =
            format!("tuning {name}: {tried} tried, best {best:.2}x, {left} s left").chars().take(78).collect();
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }
}

/// Takes the line of progress away.
fn clear() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

/// A faster schedule, and its time.
struct Found {
    settings: Candidate,
    measured: Measured,
}

fn search(
    args: &TuneArgs,
    bench: &mut Bench<'_>,
    start: Instant,
    space: &space::Space,
    records: &Records,
) -> Result<(), Failure> {
    let machine = tune::machine(&bench.options);
    let known = records.find(&bench.key, &machine).ok().flatten().map(|r| r.settings);
    let mut tuner = Tuner {
        args,
        machine,
        deadline: start,
        trials: None,
        known: BTreeMap::new(),
        measured: BTreeMap::new(),
        tried: 0,
        failed: 0,
        refused: 0,
        best: 1.0,
        failure: None,
        bench,
    };
    if let Ok(code) = tuner.bench.code(&Candidate::new()) {
        tuner.known.insert(tune::hash(&code), Outcome::Ratio(1.0));
    }
    let mut ranked = tuner.knobs(start, space, known.as_ref());
    if space.lines && !tuner.limit(start, 1.0) {
        ranked.extend(tuner.lines(ranked.first(), known.filter(|k| !tune::changes(k).is_empty())));
        ranked.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.len().cmp(&b.0.len())));
    }
    let mut found = finalist(&mut tuner, &ranked);
    clear();
    if let Some(found) = &mut found {
        found.settings = tuner.needed(&found.settings);
    }
    if let Some(failure) = tuner.failure {
        return Err(failure);
    }
    let ended = tuner.deadline <= Instant::now();
    let Tuner { tried, failed, refused, machine, .. } = tuner;
    keep(records, bench, &machine, found.as_ref())?;
    let stopped = match () {
        _ if girih::interrupted() => "interrupted",
        _ if ended => "budget",
        _ if args.trials.is_some_and(|n| n <= tried) => "trials",
        _ => "nothing left to try",
    };
    let seconds = start.elapsed().as_secs_f64();
    report(args, bench, found.as_ref(), &Spent { tried, failed, refused, stopped, seconds, machine: &machine })
}

impl Tuner<'_, '_> {
    /// Sets the end of the search, at a part of its time and trials. Returns true if it is over.
    fn limit(&mut self, start: Instant, part: f64) -> bool {
        self.deadline = start + Duration::from_secs_f64(self.args.budget * SEARCHING * part);
        self.trials = self.args.trials.map(|most| (most as f64 * part).ceil() as usize);
        self.ended() || self.trials.is_some_and(|most| self.tried >= most)
    }

    /// The best knobs. Candidates with the same code count once.
    fn knobs(&mut self, start: Instant, space: &space::Space, known: Option<&Candidate>) -> Vec<(Candidate, f64)> {
        self.limit(start, if space.lines { KNOBS } else { 1.0 });
        let known = known.map(tune::without_changes);
        let (axes, seed) = (&space.knobs[..], self.args.seed);
        let search = Search { axes, seed, trials: usize::MAX, start: (Candidate::new(), 1.0), known };
        search.run(&mut |batch| self.batch(batch))
    }

    /// The best changes of the schedule that the best knobs give, or of one that was kept.
    fn lines(&mut self, best: Option<&(Candidate, f64)>, known: Option<Candidate>) -> Vec<(Candidate, f64)> {
        // Knobs that gain nothing beyond noise are left at their defaults.
        let mut start = best.cloned().filter(|(_, ratio)| *ratio < WIN).unwrap_or((Candidate::new(), 1.0));
        if let Some(known) = known
            && let [Outcome::Ratio(ratio)] = self.batch(std::slice::from_ref(&known))[..]
            && ratio < start.1
        {
            start = (known, ratio);
        }
        let axes = match self.bench.schedule(&start.0) {
            Ok(schedule) => space::lines(&schedule),
            Err(_) => vec![],
        };
        let search = Search { axes: &axes, seed: self.args.seed, trials: usize::MAX, start, known: None };
        search.run(&mut |batch| self.batch(batch))
    }

    /// A candidate without the settings that change nothing of its code.
    fn needed(&mut self, candidate: &Candidate) -> Candidate {
        let mut out = candidate.clone();
        // After Ctrl-C nothing is compiled any more.
        let Ok(code) = self.bench.code(candidate) else { return out };
        for setting in candidate.keys().rev() {
            let value = out.remove(setting);
            if self.bench.code(&out).ok().as_ref() != Some(&code) {
                out.extend(value.map(|value| (*setting, value)));
            }
        }
        out
    }
}

/// The best that is faster than the default beyond noise.
fn finalist(tuner: &mut Tuner<'_, '_>, ranked: &[(Candidate, f64)]) -> Option<Found> {
    for (settings, _) in ranked.iter().take_while(|(c, r)| !c.is_empty() && *r < WIN).take(FINALISTS) {
        // After Ctrl-C nothing runs: the measurements so far must suffice. The simulator would only count the same again.
        let measured = match girih::interrupted() || tuner.bench.options.device == Device::Sim {
            true => tuner.measured.get(settings).copied().ok_or(Refused::Interrupted),
            false => tuner.bench.measure(settings, true),
        };
        match measured {
            Ok(measured) if measured.upper < WIN => return Some(Found { settings: settings.clone(), measured }),
            Ok(m) => {
                let words = tuner.bench.words(settings);
                tuner.note(&format!("{words}: {:.2}x, within the noise", 1.0 / m.ratio));
            }
            Err(Refused::Because(why)) => tuner.skipped(settings, &why),
            Err(Refused::Interrupted) => {}
        }
    }
    None
}

/// Writes the record, or removes one that is no longer faster.
fn keep(records: &Records, bench: &mut Bench<'_>, machine: &str, found: Option<&Found>) -> Result<(), Failure> {
    let Some(Found { settings, measured }) = found else {
        if !girih::interrupted() {
            records.drop(&bench.key, machine);
        }
        return Ok(());
    };
    let estimated = bench.options.device == Device::Sim;
    let speedup = 1.0 / measured.ratio;
    let schedule = bench.changed(settings).unwrap_or_default();
    let record = Record::new(&bench.name, &bench.key, machine, settings.clone(), speedup, estimated);
    Ok(records.write(&record.with_schedule(schedule))?)
}

/// The cost of a search.
struct Spent<'a> {
    tried: usize,
    failed: usize,
    refused: usize,
    stopped: &'static str,
    seconds: f64,
    machine: &'a str,
}

fn report(args: &TuneArgs, bench: &mut Bench<'_>, found: Option<&Found>, spent: &Spent<'_>) -> Result<(), Failure> {
    let Spent { tried, failed, refused, stopped, seconds, machine } = spent;
    let differences = found.map(|f| bench.differences(&f.settings)).unwrap_or_default();
    let (name, estimated) = (&bench.name, bench.options.device == Device::Sim);
    if args.json || args.batches {
        return outln!(
            "{}",
            json!({
                "kernel": name, "key": bench.key, "machine": machine, "estimated": estimated,
                "tried": tried, "failed": failed, "refused": refused, "ended": stopped, "seconds": seconds,
                "knobs": found.map(|f| tune::knobs(&f.settings)),
                "changes": found.map(|_| differences),
                "speedup": found.map(|f| 1.0 / f.measured.ratio),
                "default_s": found.map(|f| f.measured.default),
                "tuned_s": found.map(|f| f.measured.candidate),
                "sampled": bench.sampled().map(|[blocks, of]| json!({ "blocks": blocks, "of": of })),
            })
        );
    }
    if *tried == 0 && *failed == 0 && *stopped == "nothing left to try" {
        return outln!("nothing to tune: no setting changes the code of `{name}` for {machine}");
    }
    let illegal = match refused {
        0 => String::new(),
        1 => "; 1 change of a line was not legal".to_string(),
        n => format!("; {n} changes of lines were not legal"),
    };
    let fails = if *failed > 0 { format!(", {failed} of them failed (-v says why)") } else { String::new() };
    let s = if *tried == 1 { "" } else { "s" };
    outln!("{name}: {tried} schedule{s} tried in {seconds:.0} s{fails}{illegal}; ended: {stopped}")?;
    if let Some([blocks, of]) = bench.sampled() {
        outln!("each ran {blocks} of the {of} blocks, spread over the grid; the estimate is of all of them")?;
    }
    match found {
        None => outln!("none is faster than the default by more than noise; nothing is kept"),
        Some(Found { settings, measured: m }) => {
            let key: String = bench.key.chars().take(12).collect();
            let (gain, how) = (1.0 / m.ratio, if estimated { ", by the simulator's estimate" } else { "" });
            let knobs: Vec<String> = tune::knobs(settings).iter().map(|(k, v)| format!(" {k}={v}")).collect();
            let own = if differences.is_empty() { "" } else { " with a schedule of its own" };
            outln!("{gain:.2}x as fast{how}:{}{own}", knobs.concat())?;
            for (_, before, after) in &differences {
                outln!("  - {before}")?;
                after.iter().try_for_each(|after| outln!("  + {after}"))?;
            }
            outln!("{} instead of {}", duration(m.candidate), duration(m.default))?;
            outln!(
                "kept: later runs use it, unless --no-tuned or a knob is given; `girih tune --forget {key}` removes it"
            )
        }
    }
}
