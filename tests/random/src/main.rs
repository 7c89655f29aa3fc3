//! Random valid tile programs through every path: the reference evaluator, the evaluator of the loop stages after the
//! lift and after every rule, and native code, compiled many to a translation unit. All must agree bit for bit.
//!
//! ```text
//! girih-random [--count N] [--seed S] [--batch B] [--show SEED]
//! ```
//!
//! A mismatch is shrunk, written as `.mlir` text with the stage that broke it, and ends the run with exit code 1.

mod check;
mod data;
mod native;
mod program;
mod rng;
mod shrink;

use check::{Checked, Mismatch, Verdict};
use girih::{cache::Cache, cc};
use program::Program;
use std::time::Instant;

struct Flags {
    count: u64,
    seed: u64,
    batch: usize,
    show: Option<u64>,
    keep_going: bool,
}

fn flags() -> Result<Flags, String> {
    let mut flags = Flags { count: 300, seed: 1, batch: 64, show: None, keep_going: false };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--keep-going" {
            flags.keep_going = true;
            continue;
        }
        let value = args.next().and_then(|v| v.parse::<u64>().ok()).ok_or(format!("{name} takes a number"))?;
        match name.as_str() {
            "--count" => flags.count = value,
            "--seed" => flags.seed = value,
            "--batch" => flags.batch = (value as usize).max(1),
            "--show" => flags.show = Some(value),
            _ => return Err(format!("unknown flag {name}; known: --count --seed --batch --show --keep-going")),
        }
    }
    Ok(flags)
}

struct Native {
    cache: Cache,
    compiler: cc::Compiler,
}

impl Native {
    fn new() -> Result<Native, String> {
        let compiler = cc::find(None).and_then(|c| c.probe(None)).map_err(|e| e.to_string())?;
        Ok(Native { cache: Cache::private(None).map_err(|e| e.to_string())?, compiler })
    }
}

/// How a program fails now, if it does: native code is asked last.
fn verdict(program: &Program, seed: u64, native: &Native) -> Option<Mismatch> {
    match check::check(program, seed) {
        Err(mismatch) => Some(mismatch),
        Ok(Verdict::Undefined) => None,
        Ok(Verdict::Agrees(checked)) => match native::check(&[checked], &native.cache, &native.compiler) {
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
    println!("// grid {:?}, parameters {:?}", small.grid, small.params);
    println!("{}", small.text);
}

fn run() -> Result<bool, String> {
    let flags = flags()?;
    if let Some(seed) = flags.show {
        print!("{}", program::make(seed).text);
        return Ok(true);
    }
    let native = Native::new()?;
    let start = Instant::now();
    let (mut agreed, mut undefined, mut failed) = (0u64, 0u64, 0u64);
    let mut batch: Vec<(u64, Box<Checked>)> = vec![];
    for seed in flags.seed..flags.seed + flags.count {
        let program = program::make(seed);
        match check::check(&program, seed) {
            Ok(Verdict::Agrees(checked)) => batch.push((seed, checked)),
            Ok(Verdict::Undefined) => undefined += 1,
            Err(mismatch) => {
                failed += 1;
                report(seed, &program, &mismatch, &native);
            }
        }
        if batch.len() >= flags.batch || seed + 1 == flags.seed + flags.count {
            let (seeds, programs): (Vec<u64>, Vec<Box<Checked>>) = batch.drain(..).unzip();
            match native::check(&programs, &native.cache, &native.compiler) {
                Ok(found) => {
                    for ((seed, checked), mismatch) in seeds.iter().zip(&programs).zip(found) {
                        match mismatch {
                            None => agreed += 1,
                            Some(mismatch) => {
                                failed += 1;
                                report(*seed, &checked.program, &mismatch, &native);
                            }
                        }
                    }
                }
                Err(_) => {
                    // The unit does not compile: find the program that does not.
                    for (seed, checked) in seeds.iter().zip(&programs) {
                        match verdict(&checked.program, *seed, &native) {
                            None => agreed += 1,
                            Some(mismatch) => {
                                failed += 1;
                                report(*seed, &checked.program, &mismatch, &native);
                            }
                        }
                    }
                }
            }
        }
        if failed > 0 && !flags.keep_going {
            break;
        }
    }
    eprintln!("{:.1} s, {undefined} programs left out as undefined", start.elapsed().as_secs_f64());
    println!("{agreed} passed, {failed} failed, {undefined} skipped");
    Ok(failed == 0 && agreed > 0)
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
