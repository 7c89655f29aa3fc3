//! A run on arrays by the names of the inputs, made ready so that it can be repeated.

use std::sync::Arc;

use super::binding::Binding;
use super::exec::{Call, Executable, Times};
use super::input_values::{Complete, LoadInputs};
use super::run_pointers::Runs;
use super::tensor::Tensor;
use super::{Model, inputs};
use crate::error::{Error, Result};
use crate::options::Device;
use crate::system::sync::TurnedGuard;

impl Model {
    /// Runs the model on arrays by the names of its inputs, and waits for it.
    ///
    /// Inputs that make their own data need not be given; parameters may have been given before.
    ///
    /// # Errors
    /// `E0806` where the arrays do not fit the inputs; [`Error::Trap`] where an index lies outside its array.
    pub fn run(&self, arrays: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>> {
        self.run_at(arrays, &[])
    }

    /// The same with values for symbolic extents that no array tells.
    pub fn run_at(&self, arrays: &[(&str, &Tensor)], symbols: &[(&str, i64)]) -> Result<Vec<(String, Tensor)>> {
        let _turn = self.runs.take()?;
        self.run_in_turn(arrays, symbols)
    }

    /// The same in a turn of `runs` that the caller has.
    pub(super) fn run_in_turn(
        &self,
        arrays: &[(&str, &Tensor)],
        symbols: &[(&str, i64)],
    ) -> Result<Vec<(String, Tensor)>> {
        let mut prepared = self.prepare(arrays, symbols)?;
        prepared.run_in_turn(None)?;
        Ok(prepared.into_outputs())
    }

    /// Fits the arrays and compiles, so that [`Prepared::run`] only runs.
    pub fn prepare<'a>(&'a self, arrays: &[(&str, &'a Tensor)], symbols: &[(&str, i64)]) -> Result<Prepared<'a>> {
        Prepared::new(self, arrays, symbols)
    }
}

/// A run made ready. The arrays stay borrowed. It reads the parameters that the model held when it was made: once others are bound
/// it is refused.
pub struct Prepared<'a> {
    pub(super) model: &'a Model,
    pub(super) inputs: Vec<Complete<'a>>,
    pub(super) symbols: Vec<i64>,
    pub(super) outputs: Vec<Tensor>,
    /// The version of the parameters that it reads of those that the model held; `None` where it reads none of them.
    parameters: Option<u64>,
    /// `None` on the evaluator and the simulator.
    pub(super) native: Option<Native>,
}

pub(super) struct Native {
    pub(super) ready: Arc<Executable>,
    pub(super) binding: Arc<Binding>,
    pub(super) inputs: Vec<u64>,
    pub(super) outputs: Vec<u64>,
    pub(super) parameters: LoadInputs,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        model: &'a Model,
        arrays: &[(&str, &'a Tensor)],
        symbols: &[(&str, i64)],
    ) -> Result<Prepared<'a>> {
        let (inputs, version) = model.complete(arrays, symbols)?;
        let parameters = inputs.iter().any(|input| matches!(input, Complete::Held(..))).then_some(version);
        let shapes: Vec<Vec<u64>> = inputs.iter().map(|c| c.raw().shape.to_vec()).collect();
        let symbols = model.symbols(&shapes, &inputs::named_symbols(&model.graph, symbols)?)?;
        model.options.check_device()?;
        if model.options.device != Device::Cpu {
            return Ok(Prepared { model, inputs, symbols, outputs: vec![], parameters, native: None });
        }
        let ready = model.executable()?;
        let binding = ready.binding(&symbols)?;
        let outputs =
            binding.outputs.iter().map(|o| Tensor::zeroed(o.elem, &o.shape)).collect::<Result<Vec<Tensor>>>()?;
        let native = Native {
            parameters: model.load_inputs(&ready.plan, &inputs),
            ready,
            binding,
            inputs: inputs.iter().map(|c| c.raw().data.expose_provenance() as u64).collect(),
            outputs: outputs.iter().map(|t| t.buffer().as_ptr().expose_provenance() as u64).collect(),
        };
        Ok(Prepared { model, inputs, symbols, outputs, parameters, native: Some(native) })
    }

    /// Runs the model and waits for it.
    ///
    /// # Errors
    /// Parameters that were bound since the run was made ready; [`Error::Trap`] where an index lies outside its array.
    pub fn run(&mut self) -> Result<()> {
        let _turn = self.turn()?;
        self.run_in_turn(None)
    }

    /// A turn of the model's runs, in which nobody binds other parameters. It is refused where somebody has since this run was made.
    pub(super) fn turn(&self) -> Result<TurnedGuard<'a, Runs>> {
        let turn = self.model.runs.take()?;
        let now = self.model.given.lock().version;
        match self.parameters {
            Some(version) if version != now => Err(Error::argument(
                "other parameters were bound to the model after this run was prepared; prepare it again",
            )),
            _ => Ok(turn),
        }
    }

    /// The same in a turn that the caller has.
    pub(super) fn run_in_turn(&mut self, times: Option<&mut Times>) -> Result<()> {
        let Some(native) = &self.native else {
            self.outputs = match self.model.options.device {
                Device::Sim => self.simulate()?,
                Device::Cuda => self.run_on_gpu(None)?,
                _ => self.evaluate_graph(&self.model.graph, false)?,
            };
            return Ok(());
        };
        let call = Call {
            binding: &native.binding,
            inputs: &native.inputs,
            outputs: &native.outputs,
            parameters: &native.parameters,
        };
        // SAFETY: the tensors live as long as this value and were checked against the graph; outputs have memory of
        // their own.
        unsafe { native.ready.run(&call, &self.model.files, times) }
    }

    /// The outputs of the last run.
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }

    /// The outputs of the last run, by name, in the model's order.
    pub fn into_outputs(self) -> Vec<(String, Tensor)> {
        let names = self.model.graph.outputs.iter().map(|o| o.name.clone());
        names.zip(self.outputs).collect()
    }
}
