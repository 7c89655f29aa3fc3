//! A model taken apart for [`crate::build`]: its steps, the kernels they run, and everything that is known before a run.
//!
//! In: a model, and its parameters where it does not have them. Out: [`Parts`]. On a CPU, steps of load run here: the
//! arrays that they write are constants, as those that they read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use girih_compiler::base::IdMap;
use girih_compiler::graph::{ConstData, Fill, Graph, Role};
use girih_compiler::loops::model::{ArrayId, ArrayPlace, Plan, Step, StepArg};
use girih_compiler::pipeline::{self, Lowered, Silent};
use girih_compiler::tile::target::Capability;

use super::binding::Grid;
use super::exec::{Call, Executable};
use super::input_values::{Complete, Given, LoadInputs};
use super::kernels::grid_of;
use super::load_order::largest_first;
use super::tensor::{Tensor, bytes_of};
use super::{Model, extent, inputs};
use crate::compile::progress::{self, Shown, Working};
use crate::compile::version::PLANNED;
use crate::error::{Error, Result};

/// The parts of a model's library.
pub(crate) struct Parts<'a> {
    pub graph: Graph,
    pub plan: Plan,
    /// Different ones.
    pub kernels: Vec<Lowered>,
    /// The kernel and the blocks of each of [`Parts::steps`].
    launches: Vec<(usize, Grid)>,
    /// Parameters that were given or made, by input.
    parameters: Vec<Option<Complete<'a>>>,
    /// Has run the steps of load.
    loaded: Option<Executable>,
}

impl Parts<'_> {
    /// The steps that the library runs, each with its kernel and its blocks: those of load too, where they did not run here.
    pub fn steps(&self) -> impl Iterator<Item = (&Step, usize, &Grid)> {
        let load = if self.loaded.is_some() { &[] } else { &self.plan.load[..] };
        let all = load.iter().chain(&self.plan.steps).zip(&self.launches);
        all.map(|(step, (kernel, grid))| (step, *kernel, grid))
    }

    /// How many of the steps are those of load.
    pub fn load_steps(&self) -> usize {
        if self.loaded.is_some() { 0 } else { self.plan.load.len() }
    }

    /// The arrays that the steps read and nothing writes, with their contents.
    pub fn weights(&self) -> Result<Vec<(ArrayId, &[u8])>> {
        let named = |step: &Step| step.args.iter().filter_map(array_of).chain(step.reads.clone()).collect::<Vec<_>>();
        let moves = self.plan.loops.values().flat_map(|l| l.before.iter().chain(&l.first).chain(&l.last));
        let moved = moves.flat_map(|(from, to)| [*from, *to]).map(|id| self.plan.base(id));
        let used = self.steps().flat_map(|(step, ..)| named(step)).chain(self.plan.outputs.iter().copied());
        let used: BTreeSet<ArrayId> = used.map(|id| self.plan.base(id)).chain(moved).collect();
        let loaded: BTreeMap<ArrayId, &[u8]> = self.loaded.iter().flat_map(Executable::loaded).collect();
        let mut all = vec![];
        for id in used {
            let Some(array) = self.plan.arrays.get(id) else { continue };
            let known = extent::shape(&array.shape, &[]).and_then(|s| bytes_of(array.elem, &s));
            let bytes = match array.place {
                ArrayPlace::Constant(c) => match self.graph.constants.get(c).map(|c| &c.data) {
                    Some(ConstData::Bytes(bytes)) => Some(&bytes[..]),
                    _ => None,
                },
                ArrayPlace::Loaded if self.loaded.is_none() => continue,
                ArrayPlace::Loaded => loaded.get(&id).copied(),
                ArrayPlace::Input(i) => match self.parameters.get(i as usize).and_then(Option::as_ref) {
                    Some(given) => given.bytes(),
                    None => continue,
                },
                ArrayPlace::Temp | ArrayPlace::Row { .. } => continue,
            };
            let bytes = known.and_then(|n| bytes?.get(..usize::try_from(n).ok()?));
            let bytes = bytes.ok_or_else(|| Error::Internal(format!("the weight `{}` has no bytes", array.name)))?;
            all.push((id, bytes));
        }
        Ok(all)
    }

    /// Returns true if an input is a parameter, whose value is known.
    pub fn is_parameter(&self, input: u32) -> bool {
        self.parameters.get(input as usize).is_some_and(Option::is_some)
    }
}

fn array_of(arg: &StepArg) -> Option<ArrayId> {
    match arg {
        StepArg::Array(id) => Some(*id),
        StepArg::Symbol(_) => None,
    }
}

impl Model {
    /// Takes the model apart. `arrays` give parameters that the model does not have.
    pub(crate) fn parts<'a>(&self, arrays: &[(&str, &'a Tensor)]) -> Result<Parts<'a>> {
        let _working = Working::compiling();
        let parameters = self.parameters(arrays)?;
        let pipeline::Model { tensor: graph, scheduled: mut plan, rewrites, .. } = self.lower(&mut Silent)?;
        largest_first(&mut plan);
        let options = self.options.pipeline(PLANNED)?;
        let here = !options.target.has(Capability::Threads);
        let mut rewrites = rewrites;
        let loaded = match here {
            true => Some(self.load_steps(&plan, &graph, rewrites.clone(), &parameters)?),
            false => None,
        };
        let (mut kernels, mut seen, mut launches) = (vec![], BTreeMap::new(), vec![]);
        let load = if here { &[] } else { &plan.load[..] };
        let of = load.len() + plan.steps.len();
        for (at, step) in load.iter().chain(&plan.steps).enumerate() {
            progress::count(at + 1, of);
            let next = kernels.len();
            let kernel = *seen.entry(pipeline::nameless(&step.kernel)).or_insert(next);
            if kernel == next {
                progress::kernel(&step.kernel.name);
                let lowered =
                    pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut Shown(&mut Silent));
                kernels.push(lowered.map_err(Error::Program)?);
            }
            let Some(lowered) = kernels.get(kernel) else { continue };
            launches.push((kernel, grid_of(step, &lowered.kernel)));
        }
        Ok(Parts { graph, plan, kernels, launches, parameters, loaded })
    }

    /// The contents of the parameters, by input.
    pub(super) fn parameters<'a>(&self, arrays: &[(&str, &'a Tensor)]) -> Result<Vec<Option<Complete<'a>>>> {
        let mut found: Vec<Option<&'a Tensor>> = vec![None; self.graph.inputs.len()];
        for (name, tensor) in arrays {
            let at = inputs::position(&self.graph, name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            if let Some(slot) = found.get_mut(at) {
                *slot = Some(tensor);
            }
        }
        let held: Vec<Option<Given>> = self.given.lock().inputs.clone();
        let mut all = vec![];
        let mut absent = vec![];
        for (at, (given, input)) in found.into_iter().zip(&self.graph.inputs).enumerate() {
            let value = inputs::value(&self.graph, input);
            let (Role::Parameter, Some(value)) = (input.role, value) else {
                all.push(None);
                continue;
            };
            let shape = inputs::filled_shape(&self.graph, at, &vec![None; self.graph.symbols.len()])?;
            all.push(match (given, held.get(at).cloned().flatten()) {
                (Some(tensor), _) if tensor.shape() != shape => {
                    let message = format!("input `{}` has shape {:?}, not {shape:?}", value.name, tensor.shape());
                    return Err(inputs::refuse(message, "a parameter has the shape that the model says"));
                }
                (Some(tensor), _) => Some(Complete::Given(tensor)),
                (None, Some(held)) => Some(Complete::Held(value.elem, held)),
                (None, None) if input.fill == Fill::Given => {
                    absent.push(at);
                    None
                }
                (None, None) => Some(Complete::Made(inputs::filled(&self.graph, at, &shape, self.seed)?)),
            });
        }
        if absent.is_empty() {
            return Ok(all);
        }
        let known = vec![None; self.graph.symbols.len()];
        Err(inputs::missing(&self.graph, &absent, inputs::arguments_for(&self.graph, &absent, &known)))
    }

    /// Runs the steps of load, natively.
    pub(super) fn load_steps(
        &self,
        plan: &Plan,
        graph: &Graph,
        rewrites: girih_compiler::base::rule::Rewrites,
        parameters: &[Option<Complete<'_>>],
    ) -> Result<Executable> {
        let only = Plan { steps: vec![], outputs: vec![], loops: IdMap::new(), ..plan.clone() };
        let ready = Executable::new(only, graph.clone(), rewrites, &self.options, &self.tools, None, None)?;
        // Runs may read arrays that in this plan only `load` reads.
        let ready = ready.keeping_for(plan);
        let symbols: Vec<i64> = graph.symbols.values().map(|s| s.lo).collect();
        let binding = ready.binding(&symbols)?;
        let address = |p: &Option<Complete<'_>>| p.as_ref().map_or(0, |p| p.raw().data.expose_provenance() as u64);
        let inputs: Vec<u64> = parameters.iter().map(address).collect();
        let parameters = LoadInputs { version: 0, watched: Arc::default(), memory: vec![] };
        let call = Call { binding: &binding, inputs: &inputs, outputs: &[], parameters: &parameters };
        // SAFETY: steps of `load` read constants and parameters, whose types and shapes were compared with the graph's;
        // they live as long as the caller's borrow. The plan has no other steps and no outputs.
        unsafe { ready.run(&call, &self.files, None) }?;
        Ok(ready)
    }
}

/// Where an array of the plan lies in the temporary memory of a run.
pub(crate) use super::arena::{ALIGN, Life, place};
