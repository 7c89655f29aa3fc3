//! A model on a GPU: its plan's kernels one after the other on arrays of the device.
//!
//! In: a run made ready. Out: its outputs. Kernels are compiled and loaded once; constants are copied to the device once, inputs
//! for each run. What is computed from weights is computed anew in each run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use girih_compiler::graph::ConstData;
use girih_compiler::loops::model::{ArrayPlace, Plan, Step, StepArg};
use girih_compiler::pipeline::{self, Lowered, Silent};

use super::kernels::nameless;
use super::{Prepared, Tensor, extent};
use crate::compile::version::{PLANNED, Version};
use crate::cuda::device::{Device, Memory};
use crate::cuda::launch::{self, Loaded};
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;

/// A model that the device has loaded.
pub(super) struct Resident {
    plan: Plan,
    kernels: Vec<(Version, Arc<Loaded>)>,
    /// The kernel of each step, those of loading first.
    steps: Vec<usize>,
    /// The values of the symbols, and the arrays for them.
    arrays: Mutex<Option<(Vec<i64>, Vec<Memory>)>>,
}

impl super::Model {
    pub(super) fn resident(&self) -> Result<Arc<Resident>> {
        self.resident.get_or_make(|| Resident::new(self).map(Arc::new))
    }
}

impl Resident {
    fn new(model: &super::Model) -> Result<Resident> {
        let options = model.options.pipeline(PLANNED)?;
        let lowered = model.lower(&mut Silent)?;
        let (plan, mut rewrites) = (lowered.scheduled, lowered.rewrites);
        let (mut kernels, mut steps, mut known) = (vec![], vec![], BTreeMap::new());
        for step in plan.load.iter().chain(&plan.steps) {
            let at = match known.get(&nameless(&step.kernel)) {
                Some(at) => *at,
                None => {
                    let kernel = pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut Silent);
                    let version = Version::new(kernel.map_err(Error::Program)?, PLANNED);
                    let loaded = version.loaded(&model.tools, &model.options)?;
                    kernels.push((version, loaded));
                    known.insert(nameless(&step.kernel), kernels.len() - 1);
                    kernels.len() - 1
                }
            };
            steps.push(at);
        }
        Ok(Resident { plan, kernels, steps, arrays: Mutex::default() })
    }

    /// Launches of a run, and different kernels.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.plan.steps.len(), self.kernels.len())
    }
}

impl Prepared<'_> {
    /// The outputs, in the model's order.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn run_on_gpu(&self) -> Result<Vec<Tensor>> {
        let device = Device::get()?;
        let resident = self.model.resident()?;
        let plan = &resident.plan;
        let mut kept = resident.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|(symbols, _)| *symbols != self.symbols) {
            *kept = None;
            *kept = Some((self.symbols.clone(), self.on_device(device, plan)?));
        }
        let Some((_, arrays)) = &*kept else { return Err(missing()) };
        for (array, memory) in plan.arrays.values().zip(arrays) {
            if let ArrayPlace::Input(i) = array.place
                && let Some(raw) = self.inputs.get(i as usize).map(|c| c.raw())
            {
                // SAFETY: the input has the shape the graph says, and memory as long as that.
                memory.fill(unsafe { std::slice::from_raw_parts(raw.data, memory.bytes as usize) })?;
            }
        }
        for (step, at) in plan.load.iter().chain(&plan.steps).zip(&resident.steps) {
            let (version, loaded) = resident.kernels.get(*at).ok_or_else(missing)?;
            self.begin(step, &version.lowered, loaded, arrays)?;
        }
        device.synchronize(0)?;
        let mut outputs = vec![];
        for id in &plan.outputs {
            let (Some(array), Some(memory)) = (plan.arrays.get(*id), arrays.get(id.0 as usize)) else {
                return Err(missing());
            };
            let shape = self.shape(plan, id.0 as usize)?;
            let mut buffer = Buffer::zeroed(array.elem.dtype, &shape)?;
            memory.read(buffer.bytes_mut())?;
            outputs.push(Tensor::new(array.elem, buffer)?);
        }
        Ok(outputs)
    }

    /// Begins a step; one that writes nothing does not run.
    fn begin(&self, step: &Step, lowered: &Lowered, loaded: &Loaded, arrays: &[Memory]) -> Result<()> {
        if step.writes.iter().all(|id| arrays.get(id.0 as usize).is_none_or(|m| m.bytes == 0)) {
            return Ok(());
        }
        let of = |arg: &StepArg| match arg {
            StepArg::Symbol(s) => self.symbols.get(s.0 as usize).map(|n| *n as u64),
            StepArg::Array(id) => arrays.get(id.0 as usize).map(|m| m.address),
        };
        let args = step.args.iter().map(of).collect::<Option<Vec<u64>>>().ok_or_else(missing)?;
        let grid = lowered.kernel.blocks(&args).unwrap_or([1; 3]);
        launch::start(loaded, lowered, grid, &args, 0)
    }

    fn shape(&self, plan: &Plan, at: usize) -> Result<Vec<u64>> {
        let array = plan.arrays.values().nth(at).ok_or_else(missing)?;
        extent::shape(&array.shape, &self.symbols)
            .ok_or_else(|| Error::argument(format!("the array `{}` is too large", array.name)))
    }

    /// Memory for each array of a plan, with the constants.
    fn on_device(&self, device: &'static Device, plan: &Plan) -> Result<Vec<Memory>> {
        let graph = self.model.lower(&mut Silent)?.tensor;
        let mut all = vec![];
        for (at, array) in plan.arrays.values().enumerate() {
            let count = self.shape(plan, at)?.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
            let bytes =
                count.and_then(|n| n.checked_mul(u64::from(array.elem.dtype.bits()))).map(|bits| bits.div_ceil(8));
            let bytes = bytes.ok_or_else(|| Error::argument(format!("the array `{}` is too large", array.name)))?;
            let memory = device.allocate(bytes)?;
            if let ArrayPlace::Constant(c) = array.place {
                match graph.constants.get(c).map(|c| &c.data) {
                    Some(ConstData::Bytes(from)) => memory.fill(from)?,
                    _ => return Err(Error::argument("a GPU does not read a model's external data".to_string())),
                }
            }
            all.push(memory);
        }
        Ok(all)
    }
}

fn missing() -> Error {
    Error::Internal("an array of the plan is missing".into())
}
