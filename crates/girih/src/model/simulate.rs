//! A model on the simulator of a GPU: its plan's kernels one after the other, thread by thread.
//!
//! In: a run made ready. Out: its outputs, or what the simulator found wrong with a kernel. For small models: every thread of
//! every kernel is interpreted.

use girih_compiler::base::launch::Launch;
use girih_compiler::base::memory::Memory;
use girih_compiler::graph::ConstData;
use girih_compiler::pipeline::{self, Silent};

use super::verify_each::keep;
use super::{Prepared, Tensor};
use crate::compile::observe::Quiet;
use crate::compile::version::PLANNED;
use crate::error::{Error, Result};
use crate::launch::simulate;

impl Prepared<'_> {
    /// The outputs, in the model's order.
    ///
    /// # Errors
    /// [`Error::Trap`] with what the simulator found.
    pub(super) fn simulate(&self) -> Result<Vec<Tensor>> {
        let options = self.model.options.pipeline(PLANNED)?;
        let lowered = self.model.lower(&mut Silent)?;
        let (plan, mut rewrites) = (&lowered.scheduled, lowered.rewrites.clone());
        if lowered.tensor.constants.values().any(|c| !matches!(c.data, ConstData::Bytes(_))) {
            return Err(Error::argument("the simulator does not read a model's external data".to_string()));
        }
        let mut arrays = self.arrays(plan, &lowered.tensor)?;
        for step in plan.load.iter().chain(&plan.steps) {
            let kernel = pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut Silent)
                .map_err(Error::Program)?;
            let run = |launch: &Launch, memory: &mut dyn Memory| {
                simulate::kernel(&kernel, launch, memory, &mut Quiet, &self.model.options)
            };
            let results = self.run_step(plan, step, &run, &arrays)?;
            keep(step, results, &mut arrays);
        }
        let mut outputs = vec![];
        for id in &plan.outputs {
            let (Some(array), Some(buffer)) = (plan.arrays.get(*id), arrays.get(id.0 as usize)) else {
                return Err(Error::Internal("an output has no array".into()));
            };
            outputs.push(Tensor::new(array.elem, buffer.duplicate()?)?);
        }
        Ok(outputs)
    }
}
