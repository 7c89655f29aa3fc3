//! Where a model's time goes: each step of a run with what it computes, how long it takes, and how that compares with
//! what the machine can do.

use std::time::{Duration, Instant};

use girih_compiler::graph::{Graph, OriginId};

use super::{Footprint, Prepared, extent};
use crate::error::{Error, Result};
use crate::launch::limits::Limits;

/// One step of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct StepProfile {
    pub kernel: String,
    /// The model's operations that it computes.
    pub operations: Vec<String>,
    /// The median of the runs.
    pub seconds: f64,
    /// Multiplications and additions of its products.
    pub flops: f64,
    /// What it must move at least.
    pub bytes: f64,
    pub grid: [u32; 3],
}

#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    pub steps: Vec<StepProfile>,
    /// The median of whole runs.
    pub seconds: f64,
    /// The shortest of them.
    pub least: f64,
    pub runs: usize,
    pub limits: Limits,
    pub memory: Footprint,
    /// What the temporary arrays would take if each had memory of its own.
    pub unshared: u64,
}

impl Profile {
    /// The part of the machine's limit that a step reaches; above 1 where its data stay in caches.
    pub fn fraction(&self, step: &StepProfile) -> f64 {
        self.limits.seconds(step.flops, step.bytes) / step.seconds.max(1e-9)
    }
}

impl Prepared<'_> {
    /// Runs the model again and again, for about a second, and tells where the time went.
    pub fn profile(&mut self) -> Result<Profile> {
        let (Some(native), model) = (&self.native, self.model) else {
            return Err(Error::argument(format!(
                "only native code has a profile, and this model runs on the device {}; use the device cpu",
                self.model.options.device
            )));
        };
        let tools = &model.tools;
        let dir = tools.cache(&model.options)?;
        let limits = Limits::of(model.options.thread_count(), Some(dir.dir()));
        let (ready, binding) = (native.ready.clone(), native.binding.clone());
        let mut times: Vec<Vec<f64>> = vec![vec![]; ready.plan.steps.len()];
        let mut whole = vec![];
        // What runs once is not part of it.
        self.run()?;
        let start = Instant::now();
        while whole.len() < 3 || (start.elapsed() < Duration::from_secs(1) && whole.len() < 2000) {
            let mut one = vec![];
            let begin = Instant::now();
            self.run_timed(Some(&mut one))?;
            whole.push(begin.elapsed().as_secs_f64());
            for (all, t) in times.iter_mut().zip(one) {
                all.push(t);
            }
        }
        let median = |all: &mut Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(0.0)
        };
        let number = |ix| extent::value(ix, &binding.symbols).unwrap_or(0) as f64;
        let steps =
            ready.plan.steps.iter().zip(&mut times).zip(&binding.steps).map(|((step, all), bound)| StepProfile {
                kernel: step.kernel.name.clone(),
                operations: origins(&ready.graph, &step.origins),
                seconds: median(all),
                flops: number(&step.flops),
                bytes: number(&step.bytes),
                grid: bound.grid.unwrap_or([0; 3]),
            });
        Ok(Profile {
            steps: steps.collect(),
            runs: whole.len(),
            seconds: median(&mut whole),
            least: whole.iter().copied().fold(f64::INFINITY, f64::min),
            limits,
            memory: ready.footprint(),
            unshared: binding.unshared,
        })
    }
}

/// The model's operations, each once: `aten.linear layers.0.mlp.gate_proj`.
pub fn origins(graph: &Graph, ids: &[OriginId]) -> Vec<String> {
    let mut list: Vec<String> = vec![];
    for origin in ids.iter().filter_map(|id| graph.origins.get(*id)) {
        let text = match (origin.op.as_str(), origin.name.as_str()) {
            ("", "") => continue,
            (op, "") => op.to_string(),
            ("", name) => name.to_string(),
            (op, name) => format!("{op} {name}"),
        };
        if !list.contains(&text) {
            list.push(text);
        }
    }
    list
}
