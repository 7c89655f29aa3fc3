//! `--profile`: where a run's time goes.

use girih::model::{Memory, Profile};
use serde_json::{Value as Json, json};

use super::timing::duration;
use crate::columns;
use crate::commands::runnable::{Run, Runnable};
use crate::failure::Failure;

pub fn profile(runnable: &dyn Runnable, run: &mut dyn Run, json: bool, summary: &mut Json) -> Result<(), Failure> {
    let profile = run.profile().map_err(Failure::within(runnable.source()))?;
    summary["profile"] = to_json(&profile);
    summary["runs"] = json!(profile.runs);
    summary["min_s"] = json!(profile.least);
    summary["median_s"] = json!(profile.seconds);
    if json { Ok(()) } else { table(&profile) }
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
    if let Some(Memory { held, unshared }) = profile.memory {
        outln!(
            "memory: weights {}, computed from them at load {}, temporary arrays {} (apart they would take {})",
            size(held.weights as f64),
            size(held.loaded as f64),
            size(held.arena as f64),
            size(unshared as f64)
        )?;
    }
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
    let mut all = json!({
        "steps": steps,
        "seconds": profile.seconds,
        "least_seconds": profile.least,
        "runs": profile.runs,
        "limits_measured": profile.measured,
        "limit_flops": profile.limits.flops,
        "limit_flops_bf16": profile.limits.bf16,
        "limit_flops_int8": profile.limits.int8,
        "limit_bytes": profile.limits.bytes,
    });
    if let Some(Memory { held, unshared }) = profile.memory {
        all["weights_bytes"] = json!(held.weights);
        all["loaded_bytes"] = json!(held.loaded);
        all["arena_bytes"] = json!(held.arena);
        all["unshared_bytes"] = json!(unshared);
    }
    all
}
