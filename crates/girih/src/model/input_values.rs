//! The contents of a model's inputs: parameters given before, arrays given for one run, and data that inputs make.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use girih_compiler::graph::{Elem, Fill, Role};
use girih_compiler::loops::model::Plan;

use super::load_order::read_at_load;
use super::run_pointers::Runs;
use super::tensor::{RawTensor, Tensor, bytes_of};
use super::{Model, inputs};
use crate::error::{Error, Result};

/// The inputs that a model holds between runs, by position: parameters, and the data of inputs that make their own.
pub(super) struct Held {
    /// Identifies the parameters that were bound: no others in this process have this number. 0 where none were.
    pub(super) version: u64,
    pub(super) inputs: Vec<Option<Given>>,
}

impl Held {
    pub(super) fn none(inputs: usize) -> Held {
        Held { version: 0, inputs: (0..inputs).map(|_| None).collect() }
    }
}

/// The number of the parameters that were bound last.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

/// The parameters that the steps of loading read in a run.
pub(super) struct LoadInputs {
    /// The version of the parameters that the model holds; 0 where the steps read none of them.
    pub(super) version: u64,
    /// Inputs, by position, whose elements may change while the version stays: those that are given to one run alone, and those that
    /// somebody may write to.
    pub(super) watched: Arc<[usize]>,
    /// Where these lie: addresses and bytes.
    pub(super) memory: Vec<(u64, usize)>,
}

#[derive(Clone)]
pub(super) enum Given {
    Owned(Arc<Tensor>),
    /// Kept alive by the caller.
    Raw {
        address: u64,
        shape: Vec<u64>,
        /// Somebody may write to it between runs.
        watched: bool,
    },
}

impl Given {
    pub(super) fn raw(&self, elem: Elem) -> RawTensor<'_> {
        match self {
            Given::Owned(t) => t.raw(),
            Given::Raw { address, shape, .. } => {
                RawTensor { elem, shape, data: std::ptr::with_exposed_provenance(*address as usize) }
            }
        }
    }
    pub(super) fn address(&self) -> u64 {
        match self {
            Given::Owned(t) => t.buffer().as_ptr().expose_provenance() as u64,
            Given::Raw { address, .. } => *address,
        }
    }
    pub(super) fn shape(&self) -> &[u64] {
        match self {
            Given::Owned(t) => t.shape(),
            Given::Raw { shape, .. } => shape,
        }
    }
}

/// The contents of an input in a run.
pub(super) enum Complete<'t> {
    Given(&'t Tensor),
    Made(Tensor),
    Held(Elem, Given),
}

impl Complete<'_> {
    /// Its elements in memory; `None` where the memory is the caller's.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Complete::Given(t) => Some(t.buffer().bytes()),
            Complete::Made(t) => Some(t.buffer().bytes()),
            Complete::Held(_, Given::Owned(t)) => Some(t.buffer().bytes()),
            Complete::Held(_, Given::Raw { .. }) => None,
        }
    }
    pub(super) fn raw(&self) -> RawTensor<'_> {
        match self {
            Complete::Given(t) => t.raw(),
            Complete::Made(t) => t.raw(),
            Complete::Held(elem, given) => given.raw(*elem),
        }
    }
}

impl Model {
    /// Gives parameters (or changes them), by name. Arrays that depend on them alone are computed before the next run.
    pub fn bind_parameters(&self, parameters: Vec<(&str, Tensor)>) -> Result<()> {
        let mut fitting = vec![];
        for (name, tensor) in parameters {
            let at = self.parameter(name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            fitting.push((at, Given::Owned(Arc::new(tensor))));
        }
        self.hold(&mut *self.runs.take()?, fitting);
        Ok(())
    }

    /// The same by address, in the caller's memory; and whether somebody may write to it between runs. Every run reads such a
    /// watched parameter and, where its elements have changed, computes anew the arrays that `load` made from it. A parameter
    /// that is read in place costs nothing.
    ///
    /// # Safety
    /// The memory must hold what the tensors say until other parameters are given or the model ends; it must stay as it is where
    /// nobody is said to write to it, and as long as a run lasts where somebody is.
    pub unsafe fn bind_parameters_raw(&self, parameters: &[(&str, RawTensor<'_>, bool)]) -> Result<()> {
        let fitting = self.fitting_raw(parameters)?;
        self.hold(&mut *self.runs.take()?, fitting);
        Ok(())
    }

    /// Parameters by address, by position.
    pub(super) fn fitting_raw(&self, parameters: &[(&str, RawTensor<'_>, bool)]) -> Result<Vec<(usize, Given)>> {
        let mut fitting = vec![];
        for (name, tensor, watched) in parameters {
            let at = self.parameter(name)?;
            inputs::check(&self.graph, at, tensor.elem, tensor.shape)?;
            let address = tensor.data.expose_provenance() as u64;
            fitting.push((at, Given::Raw { address, shape: tensor.shape.to_vec(), watched: *watched }));
        }
        Ok(fitting)
    }

    /// The parameters that the steps of loading read in a run that has these inputs; without inputs, in one that reads the parameters
    /// that the model holds.
    pub(super) fn load_inputs(&self, plan: &Plan, inputs: &[Complete<'_>]) -> LoadInputs {
        let held = self.given.lock();
        let one = |at: usize| match (inputs.get(at), held.inputs.get(at).and_then(Option::as_ref)) {
            (Some(Complete::Given(t)), _) => {
                Some((t.buffer().as_ptr().expose_provenance() as u64, t.buffer().bytes().len()))
            }
            (_, Some(Given::Raw { address, shape, watched: true })) => {
                let elem = inputs::value(&self.graph, self.graph.inputs.get(at)?)?.elem;
                Some((*address, usize::try_from(bytes_of(elem, shape)?).ok()?))
            }
            _ => None,
        };
        let read = read_at_load(plan);
        let own = |at: &usize| matches!(inputs.get(*at), Some(Complete::Given(_)));
        let version = if read.iter().all(own) { 0 } else { held.version };
        let (watched, memory): (Vec<usize>, Vec<_>) = read.into_iter().filter_map(|at| Some((at, one(at)?))).unzip();
        LoadInputs { version, watched: watched.into(), memory }
    }

    /// The data of each input that makes its own, was not given and whose shape the model says, by name.
    ///
    /// # Errors
    /// Memory.
    pub fn made(&self) -> Result<Vec<(String, Tensor)>> {
        let mut all = vec![];
        let unknown = vec![None; self.graph.symbols.len()];
        let held = self.given.lock().inputs.clone();
        let makes = |at: usize, fill: Fill| fill != Fill::Given && held.get(at).is_none_or(Option::is_none);
        for (at, _) in self.graph.inputs.iter().enumerate().filter(|(at, i)| makes(*at, i.fill)) {
            if let Ok(shape) = inputs::filled_shape(&self.graph, at, &unknown) {
                all.push((
                    inputs::name(&self.graph, at).to_string(),
                    inputs::filled(&self.graph, at, &shape, self.seed)?,
                ));
            }
        }
        Ok(all)
    }

    fn parameter(&self, name: &str) -> Result<usize> {
        let at = inputs::position(&self.graph, name)?;
        match self.graph.inputs.get(at).map(|i| i.role) {
            Some(Role::Parameter) => Ok(at),
            _ => Err(inputs::refuse(
                format!("input `{name}` is not a parameter of the model"),
                "pass it at every run".to_string(),
            )),
        }
    }

    /// Takes parameters in a turn, so that a run that reads those of before is over.
    pub(super) fn hold(&self, runs: &mut Runs, given: Vec<(usize, Given)>) {
        runs.recent.clear();
        runs.load_inputs = None;
        runs.number = 0;
        let before: Vec<Option<Given>> = {
            let mut held = self.given.lock();
            held.version = VERSIONS.fetch_add(1, Ordering::Relaxed) + 1;
            given.into_iter().map(|(at, one)| held.inputs.get_mut(at).and_then(|slot| slot.replace(one))).collect()
        };
        drop(before);
        runs.owner = None;
        if let Some(resident) = self.resident.get() {
            resident.parameters_changed();
        }
    }

    /// One tensor for every input: those given, parameters given before, and data that inputs make. With them the version of the
    /// parameters given before.
    pub(super) fn complete<'t>(
        &self,
        arrays: &[(&str, &'t Tensor)],
        symbols: &[(&str, i64)],
    ) -> Result<(Vec<Complete<'t>>, u64)> {
        let mut found: Vec<Option<&'t Tensor>> = vec![None; self.graph.inputs.len()];
        for (name, tensor) in arrays {
            let at = inputs::position(&self.graph, name)?;
            inputs::check(&self.graph, at, tensor.elem(), tensor.shape())?;
            if let Some(slot) = found.get_mut(at)
                && slot.replace(tensor).is_some()
            {
                return Err(inputs::refuse(format!("input `{name}` is given twice"), "give it once".to_string()));
            }
        }
        let (mut held, version) = {
            let held = self.given.lock();
            (held.inputs.clone(), held.version)
        };
        let shapes: Vec<Option<Vec<u64>>> = found
            .iter()
            .zip(&held)
            .map(|(f, h)| f.map(|t| t.shape().to_vec()).or_else(|| h.as_ref().map(|h| h.shape().to_vec())))
            .collect();
        let known = inputs::known_symbols(&self.graph, symbols, &shapes)?;
        let absent = |at: &usize| {
            let fill = self.graph.inputs.get(*at).map(|i| i.fill);
            fill == Some(Fill::Given) && matches!(shapes.get(*at), Some(None))
        };
        let absent: Vec<usize> = (0..self.graph.inputs.len()).filter(absent).collect();
        if !absent.is_empty() {
            return Err(inputs::missing(&self.graph, &absent, inputs::arguments_for(&self.graph, &absent, &known)));
        }
        let mut complete = vec![];
        for (at, given) in found.into_iter().enumerate() {
            let parameter = self.graph.inputs.get(at).is_some_and(|i| i.role == Role::Parameter);
            if let Some(tensor) = given {
                complete.push(Complete::Given(tensor));
                continue;
            }
            if held.get(at).is_none_or(|g| g.is_none()) {
                let shape = inputs::filled_shape(&self.graph, at, &known)?;
                let tensor = inputs::filled(&self.graph, at, &shape, self.seed)?;
                if !parameter {
                    complete.push(Complete::Made(tensor));
                    continue;
                }
                let made = Given::Owned(Arc::new(tensor));
                if let (Some(slot), Some(kept)) = (held.get_mut(at), self.given.lock().inputs.get_mut(at)) {
                    *slot = Some(kept.get_or_insert(made).clone());
                }
            }
            if let Some(Some(g)) = held.get(at) {
                let elem = self.graph.inputs.get(at).and_then(|i| inputs::value(&self.graph, i)).map(|v| v.elem);
                let elem = elem.ok_or_else(|| Error::Internal("an input is not a value".into()))?;
                complete.push(Complete::Held(elem, g.clone()));
            }
        }
        Ok((complete, version))
    }
}
