//! Random valid tile programs through every path: the reference evaluator, the evaluator of the loop stages after the
//! lift and after every rule, that of kernel IR, and native code, compiled many to a translation unit. All must agree bit
//! for bit.
//!
//! ```text
//! girih-random [--count N] [--seed S] [--batch B] [--jobs J] [--keep-going] [--show SEED] [--parts N]
//! girih-random --graphs [--native K]         graphs of models instead, one in K as native code: see `graphs`
//! ```
//!
//! `--parts N` prints the C of kernels above N statements as functions of at most N, as that of large kernels is.
//! A mismatch is shrunk, written as `.mlir` text with the stage that broke it, and ends the run with exit code 1.

mod check;
mod data;
mod graphs;
mod native;
mod program;
mod rng;
mod shrink;

use check::{Checked, Mismatch, Verdict};
use girih::{cache::Cache, cc};
use girih_compiler::emit::c::Limits;
use program::Program;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

struct Flags {
    count: u64,
    seed: u64,
    batch: u64,
    jobs: u64,
    show: Option<u64>,
    keep_going: bool,
    graphs: bool,
    native: u64,
    parts: u64,
}

fn cores() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

fn flags() -> Result<Flags, String> {
    let mut flags = Flags {
        count: 300,
        seed: 1,
        batch: 64,
        jobs: cores(),
        show: None,
        keep_going: false,
        graphs: false,
        native: 20,
        parts: 0,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--keep-going" {
            flags.keep_going = true;
            continue;
        }
        if name == "--graphs" {
            flags.graphs = true;
            continue;
        }
        let value = args.next().and_then(|v| v.parse::<u64>().ok()).ok_or(format!("{name} takes a number"))?;
        match name.as_str() {
            "--count" => flags.count = value,
            "--seed" => flags.seed = value,
            "--batch" => flags.batch = value.max(1),
            "--jobs" => flags.jobs = value.max(1),
            "--native" => flags.native = value,
            "--parts" => flags.parts = value,
            "--show" => flags.show = Some(value),
            _ => {
                return Err(format!(
                    "unknown flag {name}; known: --count --seed --batch --jobs --show --keep-going --graphs --native --parts"
                ));
            }
        }
    }
    Ok(flags)
}

struct Native {
    cache: Cache,
    compiler: cc::Compiler,
    limits: Limits,
}

impl Native {
    fn new(parts: u64) -> Result<Native, String> {
        let n = parts as usize;
        let limits = if n == 0 { Limits::default() } else { Limits { large: n, most: n, fewest: 1 } };
        let compiler = cc::find(None).and_then(|c| c.probe(None)).map_err(|e| e.to_string())?;
        Ok(Native { cache: Cache::private(None).map_err(|e| e.to_string())?, compiler, limits })
    }
}

/// How a program fails now, if it does: native code is asked last.
fn verdict(program: &Program, seed: u64, native: &Native) -> Option<Mismatch> {
    match check::check(program, seed) {
        Err(mismatch) => Some(mismatch),
        Ok(Verdict::Undefined) => None,
        Ok(Verdict::Agrees(checked)) => match native::check(&[checked], &native.cache, &native.compiler, native.limits)
        {
            Ok(found) => found.into_iter().flatten().next(),
            Err(what) => Some(Mismatch { stage: "compile".into(), what }),
        },
    }
}

fn report(seed: u64, program: &Program, mismatch: &Mismatch, native: &Native) {
    let mut same_stage = |p: &Program| verdict(p, seed, native).is_some_and(|m| m.stage == mismatch.stage);
    let tries = if mismatch.stage == "cpu" { 150 } else { 600 };
    let small =
        if mismatch.stage == "front" { program.clone() } else { shrink::shrink(program, tries, &mut same_stage) };
    let now = verdict(&small, seed, native).unwrap_or_else(|| mismatch.clone());
    println!("// seed {seed}: {} disagrees: {}", now.stage, now.what);
    println!("{}", small.launch_line());
    println!("{}", small.text);
}

#[derive(Default)]
struct Tally {
    agreed: u64,
    undefined: u64,
    failed: u64,
}

/// Checks the programs of some seeds, the native part as one translation unit. Mismatches are reported at once.
fn batch(seeds: std::ops::Range<u64>, native: &Native) -> Tally {
    let mut tally = Tally::default();
    let mut failed = |seed: u64, program: &Program, mismatch: &Mismatch| {
        report(seed, program, mismatch, native);
        tally.failed += 1;
    };
    let mut ready: Vec<(u64, Box<Checked>)> = vec![];
    for seed in seeds {
        let program = program::make(seed);
        match check::check(&program, seed) {
            Ok(Verdict::Agrees(checked)) => ready.push((seed, checked)),
            Ok(Verdict::Undefined) => tally.undefined += 1,
            Err(mismatch) => failed(seed, &program, &mismatch),
        }
    }
    let (seeds, programs): (Vec<u64>, Vec<Box<Checked>>) = ready.into_iter().unzip();
    let found = match native::check(&programs, &native.cache, &native.compiler, native.limits) {
        Ok(found) => found,
        // The unit does not compile: ask for each program by itself.
        Err(_) => seeds.iter().zip(&programs).map(|(&s, c)| verdict(&c.program, s, native)).collect(),
    };
    for ((seed, checked), mismatch) in seeds.iter().zip(&programs).zip(found) {
        match mismatch {
            None => tally.agreed += 1,
            Some(mismatch) => failed(*seed, &checked.program, &mismatch),
        }
    }
    tally
}

fn run() -> Result<bool, String> {
    let flags = flags()?;
    if flags.graphs {
        if let Some(seed) = flags.show {
            graphs::show(seed);
            return Ok(true);
        }
        let Flags { count, seed, jobs, native, keep_going, .. } = flags;
        return graphs::run(&graphs::Flags { count, seed, jobs, native, keep_going });
    }
    if let Some(seed) = flags.show {
        let program = program::make(seed);
        print!("{}\n{}", program.launch_line(), program.text);
        return Ok(true);
    }
    let native = Native::new(flags.parts)?;
    let start = Instant::now();
    let (next, total) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let first = next.fetch_add(flags.batch, Ordering::Relaxed);
            let stop = total.lock().is_ok_and(|t| t.failed > 0 && !flags.keep_going);
            if first >= flags.count || stop {
                return;
            }
            let last = (first + flags.batch).min(flags.count);
            let tally = batch(flags.seed + first..flags.seed + last, &native);
            if let Ok(mut total) = total.lock() {
                total.agreed += tally.agreed;
                total.undefined += tally.undefined;
                total.failed += tally.failed;
                if std::io::stderr().is_terminal() {
                    eprint!("\r{} of {} agree, {} do not ", total.agreed, flags.count, total.failed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..flags.jobs {
            scope.spawn(work);
        }
        work();
    });
    let total = total.into_inner().map_err(|_| "a worker stopped")?;
    eprintln!("\n{:.1} s", start.elapsed().as_secs_f64());
    println!("{} passed, {} failed, {} skipped", total.agreed, total.failed, total.undefined);
    Ok(total.failed == 0 && total.agreed > 0)
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(true) => std::process::ExitCode::SUCCESS,
        Ok(false) => std::process::ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            std::process::ExitCode::from(2)
        }
    }
}
