//! `--time`: the launch repeated, its median and the work per second.

use std::time::{Duration, Instant};

use girih::{Kernel, Traffic};
use serde_json::{Value as Json, json};

use super::arguments::{Arguments, Value};
use crate::failure::Failure;
use crate::render::Source;

/// Repeat for about this long, within these numbers of runs.
const BUDGET: Duration = Duration::from_millis(1000);
const RUNS: std::ops::Range<usize> = 5..2000;

#[allow(clippy::too_many_arguments)]
pub fn time(
    source: &Source,
    kernel: &Kernel<'_>,
    grid: [u32; 3],
    before: &Arguments,
    arguments: &mut Arguments,
    traffic: &Traffic,
    json: bool,
    summary: &mut Json,
) -> Result<(), Failure> {
    let within = Failure::within(source);
    // Arrays that are both read and written start from the same values in every run.
    let updated: Vec<usize> = owners(before, traffic, |r, w| r && w);
    let mut options = kernel.options().clone();
    options.printer = Some(std::sync::Arc::new(|_, _| {}));
    let program = kernel.program();
    let kernel = program.entry(kernel.name()).map_err(&within)?.with_options(options);
    let mut seconds = Vec::new();
    let start = Instant::now();
    while seconds.len() < RUNS.start || (start.elapsed() < BUDGET && seconds.len() < RUNS.end) {
        for &i in &updated {
            arguments.restore(before, i);
        }
        program.reset_globals();
        let mut views = arguments.views();
        let mut prepared = kernel.prepare(grid, &mut views).map_err(&within)?;
        seconds.push(prepared.run().map_err(&within)?.seconds);
        // A run of minutes is repeated no more than needed for a median.
        if seconds.len() >= 3 && start.elapsed() > 20 * BUDGET {
            break;
        }
    }
    seconds.sort_by(f64::total_cmp);
    let (min, median) = (seconds[0], seconds[seconds.len() / 2]);
    summary["runs"] = json!(seconds.len());
    summary["min_s"] = json!(min);
    summary["median_s"] = json!(median);
    let bytes: usize = owners(before, traffic, |r, _| r)
        .into_iter()
        .chain(owners(before, traffic, |_, w| w))
        .filter_map(|i| before.buffer(i))
        .map(|b| b.bytes().len())
        .sum();
    let flops = kernel.contraction_work(grid, &before_scalars(before));
    summary["gbytes_per_s"] = json!(bytes as f64 / median / 1e9);
    let mut rate = format!("{:.2} GB/s", bytes as f64 / median / 1e9);
    if let Some(flops) = flops.filter(|&f| f > 0.0) {
        summary["gflop_per_s"] = json!(flops / median / 1e9);
        rate = format!("{:.1} GFLOP/s", flops / median / 1e9);
    }
    if !json {
        outln!("time: median {}, least {}, {} runs; {rate}", duration(median), duration(min), seconds.len())?;
    }
    Ok(())
}

/// Positions that own a buffer some parameter uses in a way.
fn owners(arguments: &Arguments, traffic: &Traffic, used: impl Fn(bool, bool) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for i in 0..arguments.values.len() {
        let mut owner = i;
        while let Some(Value::Same(next)) = arguments.values.get(owner) {
            owner = *next;
        }
        // A buffer that is passed twice is used in both ways.
        let (mut reads, mut writes) = (false, false);
        for j in 0..arguments.values.len() {
            let mut other = j;
            while let Some(Value::Same(next)) = arguments.values.get(other) {
                other = *next;
            }
            if other == owner {
                reads |= traffic.reads.get(j) == Some(&true);
                writes |= traffic.writes.get(j) == Some(&true);
            }
        }
        if matches!(arguments.values.get(owner), Some(Value::Buffer(_)))
            && used(reads, writes)
            && !found.contains(&owner)
        {
            found.push(owner);
        }
    }
    found
}

fn before_scalars(arguments: &Arguments) -> Vec<u64> {
    arguments.values.iter().map(|v| if let Value::Scalar { bits, .. } = v { *bits } else { 0 }).collect()
}

pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}
