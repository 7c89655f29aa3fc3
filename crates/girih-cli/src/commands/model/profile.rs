//! `--profile`: where a run's time goes.

use girih::model::{Model, Profile};
use serde_json::{Value as Json, json};

use super::arguments::Arguments;
use crate::columns;
use crate::commands::run::timing::duration;
use crate::failure::Failure;

pub fn profile(model: &Model, arguments: &Arguments, json: bool, summary: &mut Json) -> Result<(), Failure> {
    let profile = model.prepare(&arguments.arrays(), &arguments.extents())?.profile()?;
    summary["profile"] = to_json(&profile);
    summary["runs"] = json!(profile.runs);
    summary["min_s"] = json!(profile.least);
    summary["median_s"] = json!(profile.seconds);
    if !json {
        table(&profile)?;
    }
    Ok(())
}

fn table(profile: &Profile) -> Result<(), Failure> {
    let total: f64 = profile.steps.iter().map(|s| s.seconds).sum();
    let mut rows: Vec<Vec<String>> = vec![
        ["kernel", "time", "share", "bytes", "GB/s", "GFLOP/s", "of limit", "computes"].map(String::from).to_vec(),
    ];
    for step in &profile.steps {
        let seconds = step.seconds.max(1e-9);
        rows.push(vec![
            step.kernel.clone(),
            duration(step.seconds),
            format!("{:.1} %", 100.0 * step.seconds / total.max(1e-12)),
            size(step.bytes),
            format!("{:.1}", step.bytes / seconds / 1e9),
            if step.flops > 0.0 { format!("{:.1}", step.flops / seconds / 1e9) } else { "-".into() },
            format!("{:.0} %", 100.0 * profile.fraction(step)),
            step.operations.join(", "),
        ]);
    }
    out!("{}", columns::table(&rows))?;
    outln!(
        "run: median {}, least {}, {} runs; {} in kernels",
        duration(profile.seconds),
        duration(profile.least),
        profile.runs,
        duration(total)
    )?;
    let m = profile.memory;
    outln!(
        "memory: weights {}, computed from them at load {}, temporary arrays {} (apart they would take {})",
        size(m.weights as f64),
        size(m.loaded as f64),
        size(m.arena as f64),
        size(profile.unshared as f64)
    )?;
    outln!(
        "machine: {:.1} GFLOP/s of f32, {:.1} of products of 16 bits and {:.1} GB/s from memory, {}; `of limit` may pass 100 % in \
         caches",
        profile.limits.flops / 1e9,
        profile.limits.bf16 / 1e9,
        profile.limits.bytes / 1e9,
        if profile.measured { "measured" } else { "as its maker gives them" }
    )
}

/// `1.5 MiB`.
pub fn size(bytes: f64) -> String {
    match bytes {
        b if b < 1024.0 => format!("{b:.0} B"),
        b if b < 1024.0 * 1024.0 => format!("{:.1} KiB", b / 1024.0),
        b if b < 1024.0 * 1024.0 * 1024.0 => format!("{:.1} MiB", b / 1024.0 / 1024.0),
        b => format!("{:.2} GiB", b / 1024.0 / 1024.0 / 1024.0),
    }
}

fn to_json(profile: &Profile) -> Json {
    let steps: Vec<Json> = profile
        .steps
        .iter()
        .map(|s| {
            json!({
                "kernel": s.kernel,
                "seconds": s.seconds,
                "bytes": s.bytes,
                "flops": s.flops,
                "of_limit": profile.fraction(s),
                "grid": s.grid,
                "operations": s.operations,
            })
        })
        .collect();
    json!({
        "steps": steps,
        "seconds": profile.seconds,
        "least_seconds": profile.least,
        "runs": profile.runs,
        "weights_bytes": profile.memory.weights,
        "loaded_bytes": profile.memory.loaded,
        "arena_bytes": profile.memory.arena,
        "unshared_bytes": profile.unshared,
        "limits_measured": profile.measured,
        "limit_flops": profile.limits.flops,
        "limit_flops_bf16": profile.limits.bf16,
        "limit_flops_int8": profile.limits.int8,
        "limit_bytes": profile.limits.bytes,
    })
}
