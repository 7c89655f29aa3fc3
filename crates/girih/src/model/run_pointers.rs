//! Runs on addresses, cheap when they are repeated.

use std::any::Any;
use std::sync::Arc;

use girih_compiler::graph::{Elem, Role};
use girih_compiler::loops::model::{ArrayId, ArrayPlace};

use super::binding::Binding;
use super::digest::{self, Digest};
use super::exec::{Call, Executable};
use super::input_values::{Given, LoadInputs};
use super::tensor::{RawTensor, Tensor};
use super::{Model, cuda, inputs};
use crate::error::{Error, Result};
use crate::options::Device;

/// Where an output is to be written: the address for a given position, element type and shape.
pub type Allocate<'a> = dyn FnMut(usize, Elem, &[u64]) -> Result<*mut u8> + 'a;

/// The parameters of a run on addresses. Runs take turns, and each has the parameters that it names: other threads may give others
/// before its turn comes.
#[derive(Clone, Copy, Default)]
pub enum Parameters<'a> {
    /// The parameters that the model holds.
    #[default]
    Held,
    /// The parameters of a number. The run does nothing where the model holds others.
    Numbered(u64),
    /// These parameters, as [`Model::bind_parameters_raw`] takes them, under a number that is not 0 and that no others have. Where the
    /// model holds others, it takes these instead, and with them the value that keeps their memory.
    Given(u64, &'a [(&'a str, RawTensor<'a>, bool)], &'a Owner),
}

/// A value that keeps memory of a caller's.
pub type Owner = Arc<dyn Any + Send + Sync>;

/// The state of a model's inputs between runs, by position.
#[derive(Default)]
pub(super) struct Runs {
    /// The number of the parameters that are held, or 0; and the value that keeps their memory.
    pub(super) number: u64,
    pub(super) owner: Option<Owner>,
    /// Facts about the last runs on raw addresses.
    pub(super) recent: Vec<Recent>,
    /// The input addresses of the current run.
    addresses: Vec<u64>,
    outputs: Vec<u64>,
    /// The parameters that the steps of loading read; and a digest of those that somebody may write to before the last run on a GPU.
    pub(super) load_inputs: Option<LoadInputs>,
    seen: Option<Digest>,
}

/// A binding, and the types of the arguments and the symbols given that it is for.
pub(super) struct Recent {
    types: Vec<(Elem, Vec<u64>)>,
    symbols: Vec<Option<i64>>,
    binding: Arc<Binding>,
}

impl Recent {
    fn fits(&self, arguments: &[RawTensor<'_>], symbols: &[Option<i64>]) -> bool {
        let same = |((elem, shape), t): (&(Elem, Vec<u64>), &RawTensor<'_>)| *elem == t.elem && shape == t.shape;
        let arity = self.types.len() == arguments.len();
        arity && self.symbols == symbols && self.types.iter().zip(arguments).all(same)
    }
}

/// How many bindings are remembered with the types of their arguments.
const RECENT: usize = 8;

impl Model {
    /// The outputs that lie where an argument does that they replace, by position. A run gives such an output the argument's own
    /// address, and writes there.
    ///
    /// # Errors
    /// As of [`Model::compile`].
    pub fn replaced(&self) -> Result<Vec<usize>> {
        if self.options.device != Device::Cpu {
            return Ok(vec![]);
        }
        let plan = &self.executable()?.plan;
        let written = |id: &ArrayId| {
            let input = plan.arrays.get(*id).is_some_and(|a| matches!(a.place, ArrayPlace::Input(_)));
            input && plan.steps.iter().any(|step| step.writes.contains(id))
        };
        Ok((0..plan.outputs.len()).filter(|k| plan.outputs.get(*k).is_some_and(written)).collect())
    }

    /// Runs the model on addresses; a repeated call is cheap. `arguments` are the inputs that are not parameters, in
    /// order; `symbols` are the values of symbols, in order, where the shapes of inputs do not tell them (an empty
    /// list: they all do); `allocate` is asked for each output in order.
    ///
    /// Returns false where the model holds other parameters than those of the number; then nothing was done.
    ///
    /// On a GPU any address may point to device memory, which is read and written in place.
    ///
    /// # Safety
    /// The tensors must describe memory that stays valid for as long as the run lasts; so must parameters that were
    /// given by address. The memory of outputs must be as large as asked for and overlap nothing.
    pub unsafe fn run_raw(
        &self,
        arguments: &[RawTensor<'_>],
        parameters: &Parameters<'_>,
        symbols: &[Option<i64>],
        allocate: &mut Allocate<'_>,
    ) -> Result<bool> {
        match self.options.device {
            Device::Cpu => {}
            // SAFETY: as the function's own contract says.
            Device::Cuda => return unsafe { self.run_raw_on(arguments, parameters, symbols, None, false, allocate) },
            // SAFETY: likewise.
            _ => return unsafe { self.evaluate_raw(arguments, parameters, symbols, allocate) },
        }
        let ready = self.executable()?;
        let held = &mut *self.runs.take()?;
        // SAFETY: likewise.
        if !unsafe { self.has(held, parameters) }? {
            return Ok(false);
        }
        let at = match held.recent.iter().position(|r| r.fits(arguments, symbols)) {
            Some(at) => at,
            None => {
                let recent = self.fit(&ready, arguments, symbols)?;
                held.recent.truncate(RECENT - 1);
                held.recent.insert(0, recent);
                0
            }
        };
        let Some(Recent { binding, .. }) = held.recent.get(at) else {
            return Err(Error::Internal("a binding vanished".into()));
        };
        self.enter(arguments, &mut held.addresses);
        held.outputs.clear();
        for (k, output) in binding.outputs.iter().enumerate() {
            held.outputs.push(allocate(k, output.elem, &output.shape)?.expose_provenance() as u64);
        }
        let parameters = held.load_inputs.get_or_insert_with(|| self.load_inputs(&ready.plan, &[]));
        let call = Call { binding, inputs: &held.addresses, outputs: &held.outputs, parameters };
        // SAFETY: the shapes were checked against the graph's; the rest is the contract's.
        unsafe { ready.run(&call, &self.files, None) }?;
        Ok(true)
    }

    /// Returns true if the model holds the parameters of a run, whose turn it is; takes them if they are given.
    ///
    /// # Safety
    /// As of [`Model::bind_parameters_raw`], while the owner lives.
    unsafe fn has(&self, runs: &mut Runs, parameters: &Parameters<'_>) -> Result<bool> {
        match *parameters {
            Parameters::Held => Ok(true),
            Parameters::Numbered(number) => Ok(runs.number == number),
            Parameters::Given(number, ..) if runs.number == number => Ok(true),
            Parameters::Given(number, list, owner) => {
                self.hold(runs, self.fitting_raw(list)?);
                (runs.number, runs.owner) = (number, Some(owner.clone()));
                Ok(true)
            }
        }
    }

    /// As [`Model::run_raw`] on a GPU, in its place on a stream of the driver's: where every input and output is on the device the
    /// run only begins. Without a stream it waits. If a caller knows that all arguments and outputs are on the device, the
    /// driver is not asked about each.
    ///
    /// # Safety
    /// As of [`Model::run_raw`], until the run is over; with `on_device` every address is the device's.
    ///
    /// # Errors
    /// Another device than a GPU; the driver's.
    pub unsafe fn run_raw_on(
        &self,
        arguments: &[RawTensor<'_>],
        parameters: &Parameters<'_>,
        symbols: &[Option<i64>],
        stream: Option<u64>,
        on_device: bool,
        allocate: &mut Allocate<'_>,
    ) -> Result<bool> {
        if self.options.device != Device::Cuda {
            return Err(Error::argument("only a GPU has streams: `device` must be `cuda`"));
        }
        let resident = self.resident()?;
        let held = &mut *self.runs.take()?;
        // SAFETY: as the function's own contract says.
        if !unsafe { self.has(held, parameters) }? {
            return Ok(false);
        }
        let types: Vec<(Elem, Vec<u64>)> = arguments.iter().map(|t| (t.elem, t.shape.to_vec())).collect();
        let symbols = self.symbols(&self.shapes(&types)?, symbols)?;
        self.enter(arguments, &mut held.addresses);
        held.outputs.clear();
        for (k, (elem, shape)) in self.output_types(&symbols)?.iter().enumerate() {
            held.outputs.push(allocate(k, *elem, shape)?.expose_provenance() as u64);
        }
        let read = held.load_inputs.get_or_insert_with(|| self.load_inputs(resident.plan().0, &[]));
        let watched = &read.memory;
        if !watched.is_empty() {
            let gpu = crate::cuda::device::Device::get()?;
            let (there, here): (Vec<_>, Vec<_>) = watched.iter().copied().partition(|(address, _)| gpu.has(*address));
            // SAFETY: the parameters are as they are said to be, which is the contract's.
            let seen = Some(unsafe { digest::of(&here, self.options.thread_count() as usize) });
            // Device memory is not compared: arrays computed from it are computed anew.
            if !there.is_empty() || seen != std::mem::replace(&mut held.seen, seen) {
                resident.parameters_changed();
            }
        }
        let (inputs, outputs) = (&held.addresses, &held.outputs);
        let call = cuda::Call { symbols: &symbols, inputs, outputs, own_parameters: false, stream, on_device };
        // SAFETY: the shapes were checked against the graph's; the rest is the contract's.
        unsafe { resident.run(&call, None) }?;
        Ok(true)
    }

    /// Makes `addresses` those of the inputs, in order.
    fn enter(&self, arguments: &[RawTensor<'_>], addresses: &mut Vec<u64>) {
        addresses.clear();
        let mut next = arguments.iter();
        for (input, given) in self.graph.inputs.iter().zip(&self.given.lock().inputs) {
            addresses.push(match (input.role, given) {
                (Role::Argument, _) => next.next().map_or(0, |t| t.data.expose_provenance() as u64),
                (Role::Parameter, given) => given.as_ref().map_or(0, Given::address),
            });
        }
    }

    /// As `run_raw` on the evaluator and the simulator, through copies.
    ///
    /// # Safety
    /// As of `run_raw`.
    unsafe fn evaluate_raw(
        &self,
        arguments: &[RawTensor<'_>],
        parameters: &Parameters<'_>,
        symbols: &[Option<i64>],
        allocate: &mut Allocate<'_>,
    ) -> Result<bool> {
        let held = &mut *self.runs.take()?;
        // SAFETY: as the function's own contract says.
        if !unsafe { self.has(held, parameters) }? {
            return Ok(false);
        }
        let names: Vec<&str> = (0..self.graph.inputs.len())
            .filter(|&at| self.graph.inputs.get(at).is_some_and(|i| i.role == Role::Argument))
            .map(|at| inputs::name(&self.graph, at))
            .collect();
        let mut copies = vec![];
        for t in arguments {
            let mut copy = Tensor::zeroed(t.elem, t.shape)?;
            let to = copy.buffer_mut().bytes_mut();
            // SAFETY: the tensor is as long as its type and shape say; the copy is memory of its own.
            unsafe { std::ptr::copy_nonoverlapping(t.data, to.as_mut_ptr(), to.len()) };
            copies.push(copy);
        }
        let arrays: Vec<(&str, &Tensor)> = names.into_iter().zip(&copies).collect();
        let named = self.graph.symbols.values().zip(symbols);
        let named: Vec<(&str, i64)> = named.filter_map(|(s, value)| Some((s.name.as_str(), (*value)?))).collect();
        let outputs = self.run_in_turn(&arrays, &named)?;
        for (k, (_, tensor)) in outputs.iter().enumerate() {
            let to = allocate(k, tensor.elem(), tensor.shape())?;
            let from = tensor.buffer().bytes();
            // SAFETY: the caller's memory is as long as it was asked to be, and its own.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
        Ok(true)
    }

    /// The binding for arguments on raw addresses.
    fn fit(&self, ready: &Executable, arguments: &[RawTensor<'_>], symbols: &[Option<i64>]) -> Result<Recent> {
        let types: Vec<(Elem, Vec<u64>)> = arguments.iter().map(|t| (t.elem, t.shape.to_vec())).collect();
        let binding = ready.binding(&self.symbols(&self.shapes(&types)?, symbols)?)?;
        Ok(Recent { types, symbols: symbols.to_vec(), binding })
    }

    /// The shapes of all inputs for arguments of these types, each checked against the graph.
    pub(super) fn shapes(&self, arguments: &[(Elem, Vec<u64>)]) -> Result<Vec<Vec<u64>>> {
        let mut shapes = vec![];
        let mut next = arguments.iter();
        let held = self.given.lock().inputs.clone();
        for (at, (input, given)) in self.graph.inputs.iter().zip(&held).enumerate() {
            shapes.push(match (input.role, given) {
                (Role::Argument, _) => {
                    let Some((elem, shape)) = next.next() else { return Err(self.missing(at)) };
                    inputs::check(&self.graph, at, *elem, shape)?;
                    shape.clone()
                }
                (Role::Parameter, Some(given)) => given.shape().to_vec(),
                (Role::Parameter, None) => return Err(self.missing(at)),
            });
        }
        if next.next().is_some() {
            let want = self.graph.inputs.iter().filter(|i| i.role == Role::Argument).count();
            let message = format!("the model takes {want} arguments, but {} are given", arguments.len());
            return Err(inputs::refuse(message, "parameters are given with bind_parameters".to_string()));
        }
        Ok(shapes)
    }

    fn missing(&self, at: usize) -> Error {
        inputs::missing(&self.graph, &[at], "give it by its name")
    }
}
