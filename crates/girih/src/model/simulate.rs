//! A model on the simulator of a GPU: its plan's kernels one after the other, thread by thread.
//!
//! In: a run made ready. Out: its outputs, or the simulator's findings in a kernel. For small models: every thread of
//! every kernel is interpreted.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use girih_compiler::base::Code;
use girih_compiler::base::launch::Launch;
use girih_compiler::base::location::Frames;
use girih_compiler::base::memory::Memory;
use girih_compiler::base::provenance::SourceId;
use girih_compiler::graph::{ConstData, OriginId};
use girih_compiler::kernel::sim::{Estimate, Origin};
use girih_compiler::loops::model::Step;
use girih_compiler::pipeline::{self, Lowered, Silent};

use super::{Model, Prepared, Tensor};
use crate::compile::observe::Quiet;
use crate::compile::version::PLANNED;
use crate::error::{Error, Result};
use crate::launch::simulate;
use crate::memory::buffer::Buffer;
use crate::options::Device;

fn blocks(grid: [i64; 3]) -> i128 {
    grid.iter().map(|&n| i128::from(n)).product()
}

impl Model {
    /// The estimated time of each launch of a run on these arrays, in order, from `blocks` blocks of each grid: on the model's GPU, or on
    /// `sm_90a` where its target is none. Where indices are computed, those of blocks that are left out are 0.
    ///
    /// # Errors
    /// Arrays that do not fit the model, and what the simulator finds.
    pub fn estimate(&self, arrays: &[(&str, &Tensor)], blocks: u64) -> Result<Vec<(String, Estimate)>> {
        let all = Arc::new(Mutex::new(vec![]));
        let into = all.clone();
        let mut options = self.options.clone();
        options.target = options.target.filter(|target| target.gpu.is_some());
        (options.device, options.sample) = (Device::Sim, Some(blocks.max(1)));
        let each = move |kernel: &str, estimate: &Estimate| {
            into.lock().unwrap_or_else(PoisonError::into_inner).push((kernel.to_string(), estimate.clone()));
        };
        options.estimates = Some(Arc::new(each));
        self.beside(options).prepare(arrays, &[])?.run()?;
        let all = std::mem::take(&mut *all.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(all)
    }
}

impl Prepared<'_> {
    /// The outputs, in the model's order. With a block in the options, this block runs in every kernel that has it, and with
    /// a sample that number of each kernel's blocks; arrays hold zeros where no block wrote.
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
                let launch = Launch { only_block: only, sample: self.model.options.sample, ..launch.clone() };
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
