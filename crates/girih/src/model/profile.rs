//! Where a model's time goes: each step of a run with its operations, its time, and the fraction of the machine's limit
//! that it reaches.

use std::time::{Duration, Instant};

use girih_compiler::graph::Graph;
use girih_compiler::index::Ix;
use girih_compiler::loops::model::{Plan, Step};

use super::cuda::GpuTimes;
use super::{Footprint, Prepared, extent};
use crate::error::{Error, Result};
use crate::launch::limits::Limits;
use crate::options::Device;

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
    /// The width of the widest elements that are multiplied, among the arrays that it reads except vectors such as a
    /// bias.
    pub bits: u32,
    /// The bytes that it must move at least.
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
    /// True if the limits were measured here; those of a GPU are its maker's.
    pub measured: bool,
    pub memory: Footprint,
    /// The bytes that the temporary arrays would take if each had memory of its own.
    pub unshared: u64,
}

impl Profile {
    /// The part of the machine's limit that a step reaches; above 1 where its data stay in caches.
    pub fn fraction(&self, step: &StepProfile) -> f64 {
        self.limits.seconds(step.flops, step.bits, step.bytes) / step.seconds.max(1e-9)
    }
}

impl Prepared<'_> {
    /// Runs the model again and again, for about a second, and tells where the time went.
    ///
    /// # Errors
    /// The errors of a run; also if the device is the evaluator or the simulator, where times mean nothing.
    pub fn profile(&mut self) -> Result<Profile> {
        match self.model.options.device {
            Device::Cpu => self.profile_native(),
            Device::Cuda => self.profile_on_gpu(),
            device => Err(Error::argument(format!(
                "the devices cpu and cuda have a profile, and this model runs on the device {device}"
            ))),
        }
    }

    fn profile_native(&mut self) -> Result<Profile> {
        let Some(native) = &self.native else { return Err(Error::Internal("there is no native code".into())) };
        let model = self.model;
        let dir = model.tools.cache(&model.options)?;
        let limits = Limits::of(model.options.thread_count(), Some(dir.dir()));
        let (ready, binding) = (native.ready.clone(), native.binding.clone());
        // The first run does the work that happens once, and is not timed.
        self.run()?;
        let Repeated { steps: times, seconds, least, runs } = Repeated::of(|| {
            let mut one = vec![];
            self.run_timed(Some(&mut one))?;
            Ok(one)
        })?;
        let grids = binding.steps.iter().map(|bound| bound.grid.unwrap_or([0; 3]));
        Ok(Profile {
            steps: steps(&ready.plan, &ready.graph, &binding.symbols, grids.zip(times)),
            seconds,
            least,
            runs,
            limits,
            measured: true,
            memory: ready.footprint(),
            unshared: binding.unshared,
        })
    }

    fn profile_on_gpu(&mut self) -> Result<Profile> {
        let resident = self.model.resident()?;
        let mut grids = vec![];
        self.run()?;
        let gpu = self.model.options.resolved_target().gpu;
        let gpu = gpu.ok_or_else(|| Error::Internal("the GPU's target has no numbers".into()))?;
        let Repeated { steps: times, seconds, least, runs } = Repeated::of(|| {
            let mut one = GpuTimes::new();
            self.run_on_gpu(Some(&mut one))?;
            let seconds = one.iter().map(|(_, seconds)| *seconds).collect();
            grids = one.into_iter().map(|(grid, _)| grid).collect();
            Ok(seconds)
        })?;
        let (plan, graph) = resident.plan();
        let memory = resident.footprint(&self.symbols)?;
        Ok(Profile {
            steps: steps(plan, graph, &self.symbols, grids.into_iter().zip(times)),
            seconds,
            least,
            runs,
            limits: Limits::of_gpu(&gpu),
            measured: false,
            memory,
            unshared: memory.arena,
        })
    }
}

/// The times of repeated runs.
struct Repeated {
    /// The median of each step, of whole runs, and the least of these.
    steps: Vec<f64>,
    seconds: f64,
    least: f64,
    runs: usize,
}

impl Repeated {
    /// Repeats `run`, which returns the seconds of its steps, for about a second.
    fn of(mut run: impl FnMut() -> Result<Vec<f64>>) -> Result<Repeated> {
        let (mut steps, mut whole): (Vec<Vec<f64>>, Vec<f64>) = (vec![], vec![]);
        let start = Instant::now();
        while whole.len() < 3 || (start.elapsed() < Duration::from_secs(1) && whole.len() < 2000) {
            let begin = Instant::now();
            let one = run()?;
            whole.push(begin.elapsed().as_secs_f64());
            steps.resize(one.len(), vec![]);
            for (all, seconds) in steps.iter_mut().zip(one) {
                all.push(seconds);
            }
        }
        let median = |all: &mut Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(0.0)
        };
        let least = whole.iter().copied().fold(f64::INFINITY, f64::min);
        let steps = steps.iter_mut().map(median).collect();
        Ok(Repeated { steps, seconds: median(&mut whole), least, runs: whole.len() })
    }
}

/// The steps of a plan with their grids and seconds.
fn steps(
    plan: &Plan,
    graph: &Graph,
    symbols: &[i64],
    measured: impl Iterator<Item = ([u32; 3], f64)>,
) -> Vec<StepProfile> {
    let number = |ix: &Ix| extent::value(ix, symbols).unwrap_or(0) as f64;
    let of = |(step, (grid, seconds)): (&Step, ([u32; 3], f64))| StepProfile {
        kernel: step.kernel.name.clone(),
        operations: graph.origins_of(&step.origins),
        seconds,
        flops: number(&step.flops),
        bits: bits(plan, step),
        bytes: number(&step.bytes),
        grid,
    };
    plan.steps.iter().zip(measured).map(of).collect()
}

fn bits(plan: &Plan, step: &Step) -> u32 {
    let arrays = step.reads.iter().filter_map(|id| plan.arrays.get(*id));
    arrays.filter(|array| array.shape.len() > 1).map(|array| array.elem.bits()).max().unwrap_or(32)
}
