//! The estimate held against times that a GPU was measured to take: `bench/results/h200*.json`.
//!
//! A row of these tables has the measured time of a call and, of each of its launches, the work that the simulator counted for the
//! kernels of that day. A turn is several calls and one wait, so that calls run beside the launches of earlier ones: a call takes as
//! long as the host takes for it, or as long as its launches, whichever is longer.

use std::fs;
use std::path::Path;

use girih::sim::{Estimate, LAUNCH, Work};
use girih_compiler::tile::target::{Gpu, Target};
use serde_json::Value;

/// Seconds that the host took for each launch of a call beside the first, when the tables were measured.
const FURTHER: f64 = 4e-6;

struct Row {
    name: String,
    measured: f64,
    estimated: f64,
    /// The time of its launches, without that of the host.
    launches: f64,
    /// The time of a call that launches next to nothing.
    call: f64,
}

fn table(file: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results").join(file);
    let report: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let target = Target::named("sm_90a").unwrap();
    let bandwidth = report["machine"]["limits"]["0"]["bytes"].as_f64().unwrap();
    let target = Target { gpu: target.gpu.map(|gpu| Gpu { bandwidth, ..gpu }), ..target };
    let rows = report["rows"].as_array().unwrap();
    let time = |row: &Value| row["median_s"]["girih"].as_f64().unwrap();
    let call = rows.iter().map(time).fold(f64::INFINITY, f64::min);
    let row = |row: &Value| {
        let name = row["row"].as_str().unwrap().to_string();
        let all = row["launches"].as_array().unwrap_or_else(|| panic!("{name} has no launches"));
        let of = |one: &Value| {
            let work: Work = girih::work::read(one).unwrap_or_else(|missing| panic!("{name}: {missing}"));
            Estimate::of(work, &target).unwrap().seconds() + LAUNCH
        };
        let launches: f64 = all.iter().map(of).sum();
        let host = call + FURTHER * (all.len() - 1) as f64;
        Row { name, measured: time(row), estimated: launches.max(host), launches, call }
    };
    rows.iter().map(row).collect()
}

fn tables() -> Vec<Row> {
    ["h200.json", "h200-decoder.json"].into_iter().flat_map(table).collect()
}

/// The rank of each number; those that are equal share theirs.
fn ranks(of: &[f64]) -> Vec<f64> {
    let rank = |x: &f64| {
        let below = of.iter().filter(|y| *y < x).count() as f64;
        let same = of.iter().filter(|y| *y == x).count() as f64;
        below + (same - 1.0) / 2.0
    };
    of.iter().map(rank).collect()
}

/// Spearman's coefficient: how far two orders agree, from -1 to 1.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() - 1) as f64 / 2.0;
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

fn order(rows: &[&Row]) -> f64 {
    let of = |time: fn(&Row) -> f64| rows.iter().map(|row| time(row)).collect::<Vec<f64>>();
    spearman(&of(|row| row.estimated), &of(|row| row.measured))
}

#[test]
fn estimates_come_in_the_order_of_measured_times() {
    let rows = tables();
    assert_eq!(rows.len(), 131);
    let all = order(&rows.iter().collect::<Vec<_>>());
    assert!(all >= 0.95, "Spearman's coefficient is {all:.3}");
}

/// Below 40 us the host's time decides, and differed by the hour: an RMSNorm of 32 rows of 2048 elements took 34 us, one of 128 rows of 3584
/// elements 20.
#[test]
fn short_calls_come_in_about_that_order() {
    let rows = tables();
    let short = order(&rows.iter().filter(|row| row.measured < 40e-6).collect::<Vec<_>>());
    assert!(short >= 0.45, "Spearman's coefficient is {short:.3}");
}

#[test]
fn estimates_are_near_measured_times() {
    let rows = tables();
    let near = |row: &Row, factor: f64| row.estimated < factor * row.measured && row.measured < factor * row.estimated;
    let wrong: Vec<String> = rows.iter().filter(|row| !near(row, 2.2)).map(told).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Calls whose launches take longer than the host.
    let busy: Vec<&Row> = rows.iter().filter(|row| row.launches > row.call).collect();
    let far: Vec<String> = busy.iter().filter(|row| !near(row, 1.3)).map(|row| told(row)).collect();
    let share = 1.0 - far.len() as f64 / busy.len() as f64;
    assert!(busy.len() > 80 && share >= 0.85, "{:.2} of {} are within 1.3: {far:#?}", share, busy.len());
}

fn told(row: &Row) -> String {
    format!("{}: {:.1} us, estimated {:.1}", row.name, row.measured * 1e6, row.estimated * 1e6)
}
