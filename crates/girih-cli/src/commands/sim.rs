//! `girih sim`: a program, a model or Kernel IR by hand on the simulator of a GPU, under several schedules of its threads, and
//! the report.
//!
//! In: the arguments of `girih run`, or a file of Kernel IR. Out: for each kernel the simulator's findings and the cost of its statements, for
//! people or as JSON. Findings that only later schedules make follow; the counts are those of the first schedule.
//!
//! Exit codes: 3 where anything was found or a run was stopped, 1 where a budget was exceeded.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use girih::explain::StageText;
use girih::sim::{Counts, Estimate, Finding, Policy, Requests, Statement};
use girih::{Device, Inspect, KernelIr, Options, Simulated};
use girih_compiler::base::Code;
use girih_page::simulation::{self, Seen};
use serde_json::{Value, json};

use super::by_hand;
use super::run::compare::{self, pairs};
use super::run::shown::Shown;
use super::runnable::{Asked, ByHand, Often, Run, Runnable, Subject, launch_of};
use crate::cli::SimArgs;
use crate::failure::Failure;
use crate::render::Source;
use crate::{columns, source};

/// The reports on a run's kernels, in the order of the run.
#[derive(Clone, Default)]
struct Gathered {
    seen: Arc<Mutex<Vec<Seen>>>,
    /// The user's source.
    written: Arc<OnceLock<StageText>>,
}

impl Gathered {
    /// Sets the user's source, before the run.
    fn of(&self, subject: &dyn Inspect) {
        if let Some(text) = subject.written() {
            // A run has one subject.
            let _ = self.written.set(text);
        }
    }
}

/// The outcome of a run under one schedule.
struct Outcome {
    seen: Vec<Seen>,
    error: Option<Failure>,
}

pub fn run(args: &SimArgs) -> Result<(), Failure> {
    let Some(subject) = Subject::read(&args.kernel)? else { return Ok(()) };
    subject.refuse(&[("--entry", args.kernel.entry.is_some()), ("--grid", args.launch.grid.is_some())])?;
    let first = args.seed.unwrap_or(0);
    let all = Policy::ALL.len() as u64;
    let count = args.schedules.unwrap_or(if args.seed.is_some() { 1 } else { all });
    let schedules = first..first.saturating_add(count);
    if args.compare.is_some() && !matches!(subject, Subject::KernelIr(..)) {
        let message = "--compare FILE of `girih sim` is for Kernel IR; `girih run --device sim --compare DEVICE` compares programs and \
                       models";
        return Err(Failure::usage(message));
    }
    let (mut told, mut failed, mut over, mut differs) = (Told::default(), false, vec![], false);
    let mut as_json = vec![];
    for seed in schedules {
        let seen = simulate(&subject, args, seed, &[], |Outcome { seen, error }, left| {
            if girih::interrupted() {
                return Err(girih::Error::Interrupted.into());
            }
            // A failure before the simulation began is an error, not a report.
            if let Some(failure) = error
                && seen.last().is_none_or(|s| s.report.stopped.is_none())
            {
                return Err(failure);
            }
            failed |= seen.iter().any(|s| !s.report.is_clean());
            if seed == first {
                over = seen.iter().flat_map(|s| over_budget(args, s)).collect();
                if let Some(file) = &args.html {
                    page(&subject, args, file, &seen)?;
                }
            }
            match args.json {
                true => as_json.push(json!({
                    "seed": seed,
                    "kernels": seen.iter().map(kernel_json).collect::<Vec<_>>(),
                })),
                false => print(&seen, seed == first, &mut told)?,
            }
            if let Some(Left { runnable, run, shown }) = left.filter(|_| seed == first) {
                shown.show(runnable, run)?;
                if let (Some(other), Subject::KernelIr(source, kernel)) = (&args.compare, &subject) {
                    differs |= compared(args, (source, kernel, run), other, seed)?;
                }
            }
            Ok(seen)
        })?;
        // Another schedule would not end either, or take as long.
        let endless = |s: &Seen| s.report.stopped.as_ref().is_some_and(|(trap, _)| trap.code == Code::OutOfFuel);
        if seen.iter().any(endless) {
            break;
        }
    }
    if args.json {
        outln!("{}", json!({ "schedules": as_json, "over_budget": over }))?;
    } else if !failed {
        let s = if count == 1 { "" } else { "s" };
        outln!("nothing found under {count} schedule{s}")?;
    }
    for line in &over {
        say!("error: {line}");
    }
    match (failed, over.is_empty()) {
        (true, _) => Err(Failure::Said(3)),
        (false, true) if !differs => Ok(()),
        (false, _) => Err(Failure::Said(1)),
    }
}

/// A run that ended, and the results of it that are shown.
struct Left<'a> {
    runnable: &'a dyn Runnable,
    run: &'a dyn Run,
    shown: &'a Shown<'a>,
}

/// Runs under one schedule, and goes on with `then`; a run that could not start has left nothing.
fn simulate<T>(
    subject: &Subject,
    args: &SimArgs,
    seed: u64,
    knobs: &[(String, i64)],
    then: impl FnOnce(Outcome, Option<Left<'_>>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (options, gathered) = options(args, seed, knobs)?;
    let asked = Asked { kernel: &args.kernel, launch: &args.launch, seed: 0 };
    let runnable = &*subject.open(&asked, options)?;
    gathered.of(runnable.inspect());
    let shown = &Shown::of(runnable, &args.save, &args.print)?;
    match runnable.start(Often::Once) {
        Ok(mut run) => {
            let ended = run.run().map(drop);
            then(outcome(&gathered, ended, runnable.source()), Some(Left { runnable, run: &*run, shown }))
        }
        Err(error) => then(outcome(&gathered, Err(error), runnable.source()), None),
    }
}

/// Runs another kernel on the same arguments under the same schedule, and says where it leaves other bits; whether it does.
fn compared(
    args: &SimArgs,
    (source, kernel, left): (&Source, &KernelIr, &dyn Run),
    other: &Path,
    seed: u64,
) -> Result<bool, Failure> {
    let (its_source, its) = by_hand::read(other)?;
    let form =
        |k: &KernelIr| k.params().iter().map(|p| format!("{}: {}", p.name, p.kind)).collect::<Vec<_>>().join(", ");
    if form(kernel) != form(&its) {
        let (a, b) = (form(kernel), form(&its));
        return Err(Failure::usage(format!("--compare needs the same parameters; they are ({a}) and ({b})")));
    }
    let (grid, arguments) = launch_of(source, kernel.name(), kernel.params(), &args.launch)?;
    let (options, gathered) = options(args, seed, &[])?;
    let its = ByHand::new(&its_source, its.with_options(Options { record: false, ..options }), grid, arguments);
    let mut run = its.start(Often::Once).map_err(Failure::within(&its_source))?;
    let ended = run.run().map(drop);
    let Outcome { seen, error } = outcome(&gathered, ended, &its_source);
    if seen.iter().any(|s| !s.report.is_clean()) {
        print(&seen, true, &mut Told::default())?;
    }
    if let Some(failure) = error {
        return Err(failure);
    }
    let all = pairs(left, &source.name, &*run, &its_source.name);
    Ok(compare::report(&all, true, |_, _| 0.0, &mut Value::Null)?.is_some())
}

/// Writes the page of a run, beside that of other knobs if they are given.
fn page(subject: &Subject, args: &SimArgs, file: &Path, seen: &[Seen]) -> Result<(), Failure> {
    if args.against.is_empty() {
        return write_page(args, file, seen, None);
    }
    let seed = args.seed.unwrap_or(0);
    simulate(subject, args, seed, &args.against, |Outcome { seen: before, error }, _| match error {
        None | Some(Failure::Said(_)) => write_page(args, file, seen, Some(&before)),
        Some(failure) => Err(failure),
    })
}

/// Writes the page of a run, beside that of other knobs.
fn write_page(args: &SimArgs, file: &Path, seen: &[Seen], before: Option<&[Seen]>) -> Result<(), Failure> {
    let said = |knobs: &[(String, i64)]| knobs.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    let own = if args.kernel.knobs.is_empty() { "as chosen".to_string() } else { said(&args.kernel.knobs) };
    let after = simulation::Variant { name: own, seen };
    let before = before.map(|seen| simulation::Variant { name: said(&args.against), seen });
    let what =
        args.kernel.expression.as_deref().or(args.kernel.file.as_deref().and_then(|f| f.to_str())).unwrap_or("kernels");
    let target = args.kernel.target.as_ref().map_or(String::new(), |t| format!(" for {t}"));
    let text = simulation::page(&format!("{what}{target}"), &after, before.as_ref());
    let failed = |e| Failure::from(girih::Error::file(file, format!("cannot be written: {e}")));
    girih::files::write_whole(file, text.as_bytes()).map_err(failed)
}

/// The options of a run under one schedule, whose reports are gathered.
fn options(args: &SimArgs, seed: u64, knobs: &[(String, i64)]) -> Result<(Options, Gathered), Failure> {
    let gathered = Gathered::default();
    let into = gathered.clone();
    let mut options = source::options(&args.kernel)?;
    options.device = Device::Sim;
    (options.block, options.sample) = (args.launch.block, args.sample);
    // Its own flag says how many, and each has a report of its own.
    (options.seed, options.schedules) = (seed, None);
    options.knobs.extend(knobs.iter().cloned());
    options.record = args.html.is_some() && seed == args.seed.unwrap_or(0);
    let record = options.record;
    options.steps = args.max_steps;
    if seed != args.seed.unwrap_or(0) {
        // The first schedule has told how large the kernels are.
        options.announce = None;
    }
    options.watcher = Some(Arc::new(move |simulated: &Simulated<'_>| {
        let (report, estimate) = (simulated.report.clone(), simulated.estimate.cloned());
        let cuda = report.rows.iter().map(|r| simulated.cuda_line(r.statement.number)).collect();
        let source = simulated.cuda().filter(|_| record).map(String::from);
        let linked = if record { simulated.linked(into.written.get()) } else { vec![] };
        let one = Seen { report, estimate, cuda, source, linked };
        into.seen.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }));
    Ok((options, gathered))
}

fn outcome(gathered: &Gathered, ended: girih::Result<()>, source: &Source) -> Outcome {
    let seen = std::mem::take(&mut *gathered.seen.lock().unwrap_or_else(PoisonError::into_inner));
    Outcome { seen, error: ended.err().map(Failure::within(source)) }
}

/// The findings told so far, by kernel, kind and statements.
#[derive(Default)]
struct Told(Vec<(usize, String, u32, u32)>);

impl Told {
    /// Returns true if the finding is new.
    fn first_time(&mut self, kernel: usize, finding: &Finding) -> bool {
        let (a, b) = (finding.first.as_ref().map_or(u32::MAX, |(s, _)| s.number), finding.statement.number);
        // Which of two statements comes first is the schedule's affair.
        let kind = if finding.kind.is_race() { "race" } else { finding.kind.name() };
        let key = (kernel, kind.to_string(), a.min(b), a.max(b));
        let new = !self.0.contains(&key);
        if new {
            self.0.push(key);
        }
        new
    }
}

/// Prints the reports of the first schedule whole, and the new findings of the others.
fn print(seen: &[Seen], whole: bool, told: &mut Told) -> Result<(), Failure> {
    for (number, one) in seen.iter().enumerate() {
        let report = &one.report;
        let new: Vec<&Finding> = report.findings.iter().filter(|f| told.first_time(number, f)).collect();
        if whole {
            let space = if number == 0 { "" } else { "\n" };
            let estimate = one.estimate.as_ref().map_or(String::new(), Estimate::to_string);
            out!("{space}{}{estimate}{}", report.summary(), table(one))?;
            continue;
        }
        if report.is_clean() {
            continue;
        }
        let (kernel, policy, seed) = (&report.kernel, report.policy.name(), report.seed);
        outln!("\n{kernel}: schedule {policy} (seed {seed}) finds {} more", new.len())?;
        for finding in new {
            out!("{finding}")?;
        }
        out!("{}", report.stop())?;
    }
    if whole { outln!("") } else { Ok(()) }
}

/// `2.00x`; nothing where nothing was asked for.
fn ratio(r: &Requests) -> String {
    if r.requests == 0 { String::new() } else { format!("{:.2}x", r.ratio()) }
}

fn number(n: u64) -> String {
    if n == 0 { String::new() } else { n.to_string() }
}

/// The statements that ran: those of Kernel IR by their lines, with their lines in the CUDA.
fn table(seen: &Seen) -> String {
    let head = ["line", "CUDA", "threads", "shared bytes", "bank conflicts", "global bytes", "sectors", "statement"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (row, cuda) in seen.report.rows.iter().zip(&seen.cuda) {
        let (Statement { line, text, from, .. }, Counts { executions, shared, global }) = (&row.statement, &row.counts);
        rows.push(vec![
            line.to_string(),
            cuda.map_or(String::new(), |line| line.to_string()),
            executions.to_string(),
            number(shared.bytes),
            ratio(shared),
            number(global.bytes),
            ratio(global),
            from.as_ref().map_or(text.clone(), |from| format!("{text}  # {from}")),
        ]);
    }
    columns::table(&rows)
}

/// A sentence for each statement that takes more than the flags allow.
fn over_budget(args: &SimArgs, seen: &Seen) -> Vec<String> {
    let mut out = vec![];
    for row in &seen.report.rows {
        let Statement { line, text, from, .. } = &row.statement;
        let from = from.as_ref().map_or(String::new(), |from| format!(", from {from}"));
        let at = format!("kernel `{}`, line {line}: `{text}`{from}", seen.report.kernel);
        let budgets = [
            (args.max_bank_conflicts, &row.counts.shared, "wavefronts of shared memory", "--max-bank-conflicts"),
            (args.max_sectors, &row.counts.global, "sectors of global memory", "--max-sectors"),
        ];
        for (budget, requests, what, flag) in budgets {
            let Some(most) = budget.filter(|most| requests.ratio() > *most) else { continue };
            let (taken, least, ratio) = (requests.taken, requests.least, requests.ratio());
            out.push(format!("{at} takes {taken} {what} where {least} would do, {ratio:.2}x; {flag} allows {most}x"));
        }
    }
    out
}

fn statement_json(s: &Statement) -> Value {
    json!({ "number": s.number, "line": s.line, "text": s.text, "source": s.from })
}

fn requests_json(r: &Requests, taken: &str) -> Value {
    json!({ "requests": r.requests, "bytes": r.bytes, taken: r.taken, "least": r.least, "ratio": r.ratio() })
}

fn finding_json(f: &Finding) -> Value {
    let thread = |t: &girih::sim::Thread| json!({ "block": t.block, "thread": t.thread });
    json!({
        "kind": f.kind.name(),
        "message": f.message,
        "first": f.first.as_ref().map(|(s, t)| json!({ "statement": statement_json(s), "by": thread(t) })),
        "statement": statement_json(&f.statement),
        "by": thread(&f.thread),
        "place": f.place,
        "help": f.help,
        "count": f.count,
    })
}

/// A kernel's estimate on its target; times are in seconds.
pub(super) fn estimate_json(e: &Estimate) -> Value {
    let parts: serde_json::Map<String, Value> =
        e.parts.iter().map(|p| (p.name.to_string(), json!({ "seconds": p.seconds, "bytes": p.bytes }))).collect();
    json!({
        "target": e.target,
        "seconds": e.seconds(),
        "bound": e.bound(),
        "parts": parts,
        "blocks": e.work.blocks,
        "counted": e.work.counted,
        "work": girih::work::json(&e.work),
        "multiprocessors": e.multiprocessors,
        "together": e.together,
        "limit": e.limit,
        "waves": e.waves,
        "busy": e.busy,
    })
}

fn kernel_json(seen: &Seen) -> Value {
    let r = &seen.report;
    let row = |(row, cuda): (&girih::sim::Row, &Option<u32>)| {
        json!({
            "statement": statement_json(&row.statement),
            "cuda_line": cuda,
            "kind": row.kind.name(),
            "executions": row.counts.executions,
            "shared": requests_json(&row.counts.shared, "wavefronts"),
            "global": requests_json(&row.counts.global, "sectors"),
        })
    };
    let stopped = r.stopped.as_ref().map(|(trap, at)| {
        json!({
            "code": trap.code.text(),
            "message": trap.message,
            "block": trap.block,
            "statement": at.as_ref().map(statement_json),
        })
    });
    let instructions: serde_json::Map<String, Value> =
        r.instructions().into_iter().map(|(kind, n)| (kind.name().to_string(), n.into())).collect();
    json!({
        "kernel": r.kernel,
        "schedule": r.policy.name(),
        "blocks": r.blocks,
        "threads": r.threads,
        "clean": r.is_clean(),
        "findings": r.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "more_events": r.untold,
        "stopped": stopped,
        "thread_statements": r.total.executions,
        "barriers": r.barriers,
        "estimate": seen.estimate.as_ref().map(estimate_json),
        "instructions": instructions,
        "shared_bytes_per_block": r.shared_bytes,
        "shared": requests_json(&r.total.shared, "wavefronts"),
        "global": requests_json(&r.total.global, "sectors"),
        "statements": r.rows.iter().zip(&seen.cuda).map(row).collect::<Vec<_>>(),
    })
}
