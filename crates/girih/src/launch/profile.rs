//! Where the time of a run goes: each of its steps with its time, and the fraction of the machine's limit that it reaches.
//!
//! In: the seconds of repeated runs. Out: a [`Profile`]: that of a model has a step for each launch, that of a kernel has one.

use std::time::{Duration, Instant};

use super::limits::Limits;
use super::prepared::Prepared;
use crate::error::{Error, Result};
use crate::memory::args::ParamKind;
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
    /// The memory of a model; a kernel has none of its own.
    pub memory: Option<Memory>,
}

/// The memory of a model that was run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    pub held: Footprint,
    /// The bytes that the temporary arrays would take if each had memory of its own.
    pub unshared: u64,
}

impl Profile {
    /// The part of the machine's limit that a step reaches; above 1 where its data stay in caches.
    pub fn fraction(&self, step: &StepProfile) -> f64 {
        self.limits.seconds(step.flops, step.bits, step.bytes) / step.seconds.max(1e-9)
    }
}

/// A model's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Constants and parameters as they were given.
    pub weights: u64,
    /// Arrays computed from them when the model was loaded.
    pub loaded: u64,
    /// Temporary arrays of the largest run so far.
    pub arena: u64,
}

/// The times of repeated runs.
pub(crate) struct Repeated {
    /// The median of each step, of whole runs, and the least of these.
    pub steps: Vec<f64>,
    pub seconds: f64,
    pub least: f64,
    pub runs: usize,
}

impl Repeated {
    /// Repeats `run`, which returns the seconds of its steps, for about a second.
    pub fn of(mut run: impl FnMut() -> Result<Vec<f64>>) -> Result<Repeated> {
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

/// The error of a device on which times mean nothing.
pub(crate) fn has_no_profile(device: Device) -> Error {
    Error::argument(format!("the devices cpu and cuda have a profile, and this run is on the device {device}"))
}

impl Prepared<'_> {
    /// The profile of a launch whose runs took these seconds.
    ///
    /// # Errors
    /// A launch on the evaluator or the simulator, where times mean nothing.
    pub fn profile(&self, mut seconds: Vec<f64>) -> Result<Profile> {
        let kernel = self.kernel();
        let options = kernel.options();
        let limits = match (options.device, options.resolved_target().gpu) {
            (Device::Cpu, _) => Limits::of(options.thread_count(), Some(kernel.cache()?.dir())),
            (Device::Cuda, Some(gpu)) => Limits::of_gpu(&gpu),
            (Device::Cuda, None) => return Err(Error::Internal("the GPU's target has no numbers".into())),
            (device, _) => return Err(has_no_profile(device)),
        };
        seconds.sort_by(f64::total_cmp);
        let median = seconds.get(seconds.len() / 2).copied().unwrap_or(0.0);
        let read = kernel.params().iter().zip(self.traffic().reads).filter(|(_, read)| *read);
        let bits = read.filter_map(|(p, _)| match p.kind {
            ParamKind::Pointer(dtype) => Some(dtype.bits()),
            ParamKind::Scalar(_) => None,
        });
        let step = StepProfile {
            kernel: kernel.name().to_string(),
            operations: vec![],
            seconds: median,
            flops: self.flops().unwrap_or(0.0),
            bits: bits.max().unwrap_or(32),
            bytes: self.bytes() as f64,
            grid: self.grid(),
        };
        Ok(Profile {
            steps: vec![step],
            seconds: median,
            least: seconds.first().copied().unwrap_or(0.0),
            runs: seconds.len(),
            limits,
            measured: options.device == Device::Cpu,
            memory: None,
        })
    }
}
