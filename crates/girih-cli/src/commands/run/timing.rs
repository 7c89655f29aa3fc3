//! `--time`: the run repeated, its median and the work of a second.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::commands::runnable::Run;
use crate::output;

/// Repeat for about this long, within these numbers of runs.
const BUDGET: Duration = Duration::from_millis(1000);
const RUNS: std::ops::Range<usize> = 5..20_000;

pub fn time(run: &mut dyn Run, json: bool, summary: &mut Json) -> girih::Result<Option<String>> {
    let seconds = repeated(run)?;
    let (min, median) = (seconds[0], seconds[seconds.len() / 2]);
    summary["runs"] = json!(seconds.len());
    summary["min_s"] = json!(min);
    summary["median_s"] = json!(median);
    let rates = run.rates(median, summary)?;
    let (median, min, runs) = (duration(median), duration(min), seconds.len());
    Ok((!json).then(|| format!("time: median {median}, least {min}, {runs} runs; {rates}")))
}

/// The seconds of repeated runs, ascending.
pub fn repeated(run: &mut dyn Run) -> girih::Result<Vec<f64>> {
    let _muted = output::mute();
    let mut seconds = vec![];
    let start = Instant::now();
    while seconds.len() < RUNS.start || (start.elapsed() < BUDGET && seconds.len() < RUNS.end) {
        seconds.push(run.run()?.seconds);
        // A run of minutes is repeated no more than needed for a median.
        if seconds.len() >= 3 && start.elapsed() > 20 * BUDGET {
            break;
        }
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds)
}

/// `1.2 ms`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}
