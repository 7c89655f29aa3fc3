//! A model on the simulator of a GPU: its plan's kernels one after the other, thread by thread.
//!
//! In: a run made ready. Out: its outputs, or the simulator's findings in a kernel. For small models: every thread of
//! every kernel is interpreted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use girih_compiler::base::Code;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::location::Frames;
use girih_compiler::base::memory::Memory;
use girih_compiler::base::provenance::SourceId;
use girih_compiler::graph::{ConstData, OriginId};
use girih_compiler::kernel::sim::Origin;
use girih_compiler::loops::model::Step;
use girih_compiler::pipeline::{self, Lowered, Silent};

use super::{Prepared, Tensor};
use crate::compile::observe::Quiet;
use crate::compile::version::PLANNED;
use crate::error::{Error, Result};
use crate::launch::simulate;
use crate::memory::buffer::Buffer;

fn blocks(grid: [i64; 3]) -> i128 {
    grid.iter().map(|&n| i128::from(n)).product()
}

impl Prepared<'_> {
    /// The outputs, in the model's order. With a block in the options, this block runs in every kernel that has it; arrays
    /// hold zeros where no block wrote.
    ///
    /// # Errors
    /// [`Error::Trap`] with the simulator's finding; a block that no kernel has.
    pub(super) fn simulate(&self) -> Result<Vec<Tensor>> {
        let options = self.model.options.pipeline(PLANNED)?;
        let lowered = self.model.lower(&mut Silent)?;
        let (plan, mut rewrites) = (&lowered.scheduled, lowered.rewrites.clone());
        if lowered.tensor.constants.values().any(|c| !matches!(c.data, ConstData::Bytes(_))) {
            return Err(Error::argument("the simulator does not read a model's external data".to_string()));
        }
        // The largest grid of a kernel that does not have the block to run; `None` once a kernel did.
        let only = self.model.options.block;
        let largest = Cell::new(Some([0i64; 3]));
        let mut kernels: BTreeMap<String, Lowered> = BTreeMap::new();
        let places = |source: SourceId| {
            let text = lowered.tensor.origins_of(&[OriginId(source.0)]).pop()?;
            Some(Origin { text, span: None, frames: Frames::default() })
        };
        let mut step = |step: &Step, arrays: &[Buffer]| {
            let kernel = match kernels.entry(step.kernel.name.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let kernel = pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut Silent);
                    new.insert(kernel.map_err(Error::Program)?)
                }
            };
            let run = |launch: &Launch, memory: &mut dyn Memory| {
                let grid = kernel.kernel.blocks(&launch.args).unwrap_or(launch.grid.map(i64::from));
                if let Some(block) = only
                    && block.iter().zip(&grid).any(|(b, n)| i64::from(*b) >= *n)
                {
                    let larger = |largest: [i64; 3]| if blocks(grid) > blocks(largest) { grid } else { largest };
                    largest.set(largest.get().map(larger));
                    return Ok(());
                }
                largest.set(None);
                let launch = Launch { only_block: only, ..launch.clone() };
                simulate::kernel(kernel, &places, &launch, memory, &mut Quiet, &self.model.options)
            };
            self.run_step(plan, step, &run, arrays)
        };
        let arrays = self.run_on_buffers(plan, &lowered.tensor, &mut step)?;
        if let (Some(block), Some(largest)) = (only, largest.get()) {
            let list = |n: &[String]| n.join(",");
            let (block, largest) = (block.map(|n| n.to_string()), largest.map(|n| n.to_string()));
            let message = format!("no kernel has a block {}; the largest grid is {}", list(&block), list(&largest));
            return Err(Error::Argument { code: Code::BadGrid, message });
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
