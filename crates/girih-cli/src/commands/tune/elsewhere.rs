//! Candidates evaluated by other processes: `girih tune ... --candidate K=V,K=V`, which print one JSON object each.
//!
//! ```text
//! {"knobs": {"kc": 64}, "changes": {"7.0": 4}, "ratio": 0.91, "default_s": 1.2e-5, "candidate_s": 1.1e-5, "machine": "sm_90a", "key": "5f0c..."}
//! {"knobs": {"kc": 16}, "changes": {}, "failed": "the kernel needs 300 KiB of shared memory"}
//! ```
//! Either as many at a time as `--jobs` says, or by whoever reads batches from standard output and writes their outcomes to
//! standard input, a line of JSON each: that is how `python -m girih.tune` spreads them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use girih::tune::{self, Candidate};
use girih::{Registered, threads};
use serde_json::{Value, json};

use super::bench::{Measured, Refused};
use crate::failure::Failure;

/// `kc=128,rows=8`, with changes `7.0=4`.
pub fn argument(candidate: &Candidate) -> String {
    candidate.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
}

/// The knobs and the changes of a candidate.
pub fn settings_json(candidate: &Candidate) -> (Value, Value) {
    let changes: BTreeMap<String, i64> =
        tune::changes(candidate).iter().map(|(site, value)| (site.to_string(), *value)).collect();
    (json!(tune::knobs(candidate)), json!(changes))
}

/// A process's report on a candidate.
pub fn outcome_json(candidate: &Candidate, outcome: &Result<Measured, Refused>, machine: &str, key: &str) -> Value {
    let (knobs, changes) = settings_json(candidate);
    match outcome {
        Ok(m) => json!({
            "knobs": knobs, "changes": changes, "ratio": m.ratio, "default_s": m.default, "candidate_s": m.candidate,
            "machine": machine, "key": key,
        }),
        Err(Refused::Because(why)) => json!({ "knobs": knobs, "changes": changes, "failed": why }),
        Err(Refused::Interrupted) => json!({ "knobs": knobs, "changes": changes, "interrupted": true }),
    }
}

/// The outcome of a candidate, from an answer that must be about the same kernel for the same machine.
fn outcome(said: &Value, machine: &str, key: &str) -> Result<Measured, Refused> {
    let number = |name: &str| said[name].as_f64().filter(|x| x.is_finite() && *x > 0.0);
    if let Some(why) = said["failed"].as_str() {
        return Err(Refused::Because(why.to_string()));
    }
    if said["interrupted"] == true {
        return Err(Refused::Interrupted);
    }
    let (Some(ratio), Some(default), Some(candidate)) = (number("ratio"), number("default_s"), number("candidate_s"))
    else {
        return Err(Refused::Because("the process that evaluated it died".into()));
    };
    for (name, own) in [("machine", machine), ("key", key)] {
        if said[name] != own {
            let found = said[name].as_str().unwrap_or("nothing");
            return Err(Refused::Because(format!("it was evaluated for another {name}: {found}")));
        }
    }
    Ok(Measured { default, candidate, ratio, upper: ratio })
}

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// One process for one candidate; `None`: it died. At the deadline it is ended.
fn process(candidate: &Candidate, deadline: Instant) -> Option<Value> {
    let own = std::env::current_exe().ok()?;
    let mut command = Command::new(own);
    command.args(std::env::args_os().skip(1)).arg(format!("--candidate={}", argument(candidate)));
    // It prints one line, which a pipe holds.
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    // It ends when this process is told to.
    let _registered = Registered::process(child.id());
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= deadline || girih::interrupted() {
            let _ = child.kill();
            let _ = child.wait();
            return Some(json!({ "interrupted": true }));
        }
        std::thread::sleep(LOOK);
    }
    let output = child.wait_with_output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// Evaluates a batch in `jobs` processes at a time; stops early at the deadline and at Ctrl-C. A process that dies is
/// started once more.
pub fn by_processes(
    jobs: usize,
    batch: &[Candidate],
    deadline: Instant,
    machine: &str,
    key: &str,
) -> Vec<Option<Result<Measured, Refused>>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<Measured, Refused>>>> = Mutex::new(batch.iter().map(|_| None).collect());
    let work = || {
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(candidate) = batch.get(at)
        {
            if Instant::now() >= deadline || girih::interrupted() {
                return;
            }
            let said = process(candidate, deadline).or_else(|| process(candidate, deadline)).unwrap_or(Value::Null);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = done.get_mut(at) {
                *slot = Some(outcome(&said, machine, key));
            }
        }
    };
    threads::share(jobs.min(batch.len()), &work);
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a batch, with the seconds that are left for it, and reads the outcomes, in its order.
pub fn by_lines(
    batch: &[Candidate],
    deadline: Instant,
    machine: &str,
    key: &str,
) -> Result<Vec<Option<Result<Measured, Refused>>>, Failure> {
    let batch_text: Vec<String> = batch.iter().map(argument).collect();
    let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
    outln!("{}", json!({ "batch": batch_text, "left": left }))?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    let read = read.map_err(|e| Failure::usage(format!("--batches: the outcomes cannot be read: {e}")))?;
    if read == 0 || girih::interrupted() {
        // The evaluating process has gone: the outcomes so far count.
        return Ok(batch.iter().map(|_| None).collect());
    }
    let said: Vec<Value> = serde_json::from_str(&line).map_err(|_| {
        Failure::usage("--batches: expected a line with an array of outcomes, in the order of the batch")
    })?;
    Ok((0..batch.len()).map(|at| said.get(at).map(|s| outcome(s, machine, key))).collect())
}
