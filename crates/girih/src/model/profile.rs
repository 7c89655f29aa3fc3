//! Where a model's time goes: each step of a run with its operations, its time, and the fraction of the machine's limit
//! that it reaches.

use girih_compiler::graph::Graph;
use girih_compiler::index::Ix;
use girih_compiler::loops::model::{Plan, Step};

use super::cuda::GpuTimes;
use super::{Prepared, extent};
use crate::error::{Error, Result};
use crate::launch::limits::Limits;
use crate::launch::profile::{Memory, Profile, Repeated, StepProfile, has_no_profile};
use crate::options::Device;

impl Prepared<'_> {
    /// Runs the model again and again, for about a second, and tells where the time went.
    ///
    /// # Errors
    /// The errors of a run; also if the device is the evaluator or the simulator, where times mean nothing.
    pub fn profile(&mut self) -> Result<Profile> {
        match self.model.options.device {
            Device::Cpu => self.profile_native(),
            Device::Cuda => self.profile_on_gpu(),
            device => Err(has_no_profile(device)),
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
            let _turn = self.turn()?;
            self.run_in_turn(Some(&mut one))?;
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
            memory: Some(Memory { held: ready.footprint(), unshared: binding.unshared }),
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
            let _turn = self.turn()?;
            self.run_on_gpu(Some(&mut one))?;
            let seconds = one.iter().map(|(_, seconds)| *seconds).collect();
            grids = one.into_iter().map(|(grid, _)| grid).collect();
            Ok(seconds)
        })?;
        let (plan, graph) = resident.plan();
        let held = resident.footprint(&self.symbols)?;
        Ok(Profile {
            steps: steps(plan, graph, &self.symbols, grids.into_iter().zip(times)),
            seconds,
            least,
            runs,
            limits: Limits::of_gpu(&gpu),
            measured: false,
            memory: Some(Memory { held, unshared: held.arena }),
        })
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
