//! A model on a GPU: its plan's kernels one after the other on arrays of the device.
//!
//! In: the addresses of a run's inputs and outputs, on the host or on the device. Out: the outputs written. Kernels are compiled
//! and loaded once; constants are copied to the device once, parameters of the host when they change, other inputs of the host
//! for each run. Arrays on the device are read and written in place, on the caller's stream.
//!
//! Invariants: a run begins where the one before ended, on whichever streams the two are, since they share the temporary arrays;
//! nothing of the host is read or written once a run has returned.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use girih_compiler::graph::{ConstData, ConstId, Graph, Input, Role};
use girih_compiler::loops::model::{ArrayId, ArrayPlace, LoopId, Move, Plan, Runner, Step, StepArg};
use girih_compiler::pipeline::{self, Lowered, Silent};

use super::input_values::Complete;
use super::tensor::bytes_of;
use super::{Prepared, Tensor, extent};
use crate::compile::version::{PLANNED, Version};
use crate::cuda::device::{self, Device, Event, Memory};
use crate::cuda::launch::{self, Loaded};
use crate::error::{Error, Result};
use crate::launch::profile::Footprint;

/// The alignment in bytes that kernels assume of a model's arrays.
const ALIGN: u64 = 16;

/// A model that the device has loaded.
pub(super) struct Resident {
    plan: Plan,
    /// Tensor IR.
    graph: Graph,
    kernels: Vec<(Version, Arc<Loaded>)>,
    /// The kernel of each step, those of loading first.
    steps: Vec<usize>,
    state: Mutex<State>,
    /// Parameters are others than those that were loaded.
    changed: AtomicBool,
}

/// The state that stays on the device between runs.
#[derive(Default)]
struct State {
    /// The values of the symbols, and the bytes of each array for them.
    sizes: Option<(Vec<i64>, Vec<u64>)>,
    /// By array; those that the caller has need none.
    memory: BTreeMap<usize, Memory>,
    /// True if the device holds the parameters and the arrays computed from them.
    loaded: bool,
    /// True for each input that is not a parameter in host memory, as of the last load.
    parameters: Vec<bool>,
    /// The end of the last run, and the stream it was on.
    last: Option<(Event, usize)>,
}

/// The arguments of one run: the address of every input of the graph, parameters too, and of every output.
pub(super) struct Call<'a> {
    pub(super) symbols: &'a [i64],
    pub(super) inputs: &'a [u64],
    pub(super) outputs: &'a [u64],
    /// Parameters are not those that the model holds.
    pub(super) own_parameters: bool,
    /// Where the run takes its place; without one it is over when the call returns.
    pub(super) stream: Option<u64>,
    /// The caller knows that the arguments and the outputs are on the device.
    pub(super) on_device: bool,
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
            let at = match known.get(&pipeline::nameless(&step.kernel)) {
                Some(at) => *at,
                None => {
                    let kernel = pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut Silent);
                    let version = Version::new(kernel.map_err(Error::Program)?, PLANNED);
                    let loaded = version.loaded(&model.tools, &model.options)?;
                    kernels.push((version, loaded));
                    known.insert(pipeline::nameless(&step.kernel), kernels.len() - 1);
                    kernels.len() - 1
                }
            };
            steps.push(at);
        }
        let (state, changed) = Default::default();
        Ok(Resident { plan, graph: lowered.tensor, kernels, steps, state, changed })
    }

    /// Launches of a run, and different kernels.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.plan.steps.len(), self.kernels.len())
    }

    /// Parameters have changed: arrays that depend on them are computed anew before the next run.
    pub(super) fn parameters_changed(&self) {
        self.changed.store(true, Ordering::SeqCst);
    }

    /// Runs the model, or begins to where it has a stream and nothing of the host takes part. Waits where it tells the times.
    ///
    /// # Safety
    /// The addresses must be of arrays of the types and shapes that the plan and the symbols say, and stay until the run is over;
    /// outputs overlap nothing.
    ///
    /// # Errors
    /// The driver's.
    pub(super) unsafe fn run(&self, call: &Call<'_>, times: Option<&mut GpuTimes>) -> Result<()> {
        let device = Device::get()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if state.sizes.as_ref().is_none_or(|(symbols, _)| symbols != call.symbols) {
            state.sizes = Some((call.symbols.to_vec(), self.sizes(call.symbols)?));
        }
        let sizes = state.sizes.as_ref().map_or(vec![], |(_, sizes)| sizes.clone());
        if self.changed.swap(false, Ordering::SeqCst) || call.own_parameters {
            state.loaded = false;
        }
        let stream = call.stream.unwrap_or(0) as usize;
        let was_loaded = std::mem::replace(&mut state.loaded, false);
        if !was_loaded {
            let held = |input: &Input| input.role == Role::Parameter;
            let inputs = self.graph.inputs.iter().zip(call.inputs);
            state.parameters = inputs.map(|(input, address)| !held(input) || device.has(*address)).collect();
        }
        // The driver is asked once for each address.
        let arguments = self.graph.inputs.iter().zip(call.inputs).filter(|(input, _)| input.role == Role::Argument);
        let asked = arguments.map(|(_, address)| address).chain(call.outputs);
        let there: BTreeMap<u64, bool> =
            asked.map(|address| (*address, call.on_device || device.has(*address))).collect();
        let has = |address: u64| there.get(&address).copied().unwrap_or(false);
        let host = there.values().any(|there| !there) || !was_loaded && state.parameters.contains(&false);
        let waits = call.stream.is_none() || times.is_some() || call.outputs.iter().any(|address| !has(*address));
        match &state.last {
            // Copies from the host start at once, so the last run must have ended.
            Some((last, _)) if host => last.synchronize()?,
            // The default stream stays itself; another may be gone, and a new one have its handle.
            Some((_, 0)) if stream == 0 => {}
            Some((last, _)) => last.before(stream)?,
            None => {}
        }
        let mut addresses: Vec<u64> = vec![];
        for (at, (array, bytes)) in self.plan.arrays.values().zip(&sizes).enumerate() {
            addresses.push(match array.place {
                ArrayPlace::Input(input) => {
                    let held = self.graph.inputs.get(input as usize).is_some_and(|i| i.role == Role::Parameter);
                    let from = call.inputs.get(input as usize).copied().ok_or_else(missing)?;
                    let there = if held { state.parameters.get(input as usize) == Some(&true) } else { has(from) };
                    let given = Given { address: from, there, kept: held && was_loaded };
                    // SAFETY: as the function's own contract says.
                    unsafe { state.input(device, at, given, *bytes, stream) }?
                }
                ArrayPlace::Constant(id) => state.constant(device, at, *bytes, &self.graph, id)?,
                ArrayPlace::Loaded => state.own(device, at, *bytes)?.0,
                // A round says where.
                ArrayPlace::Row { .. } => 0,
                ArrayPlace::Temp => match self.written_in_place(&has, at, call) {
                    Some(address) => address,
                    None => state.own(device, at, *bytes)?.0,
                },
            });
        }
        let (load, _) = self.steps.split_at(self.plan.load.len().min(self.steps.len()));
        let now = vec![(0, 0); self.plan.loops.len()];
        let mut running = Running {
            resident: self,
            device,
            symbols: call.symbols,
            sizes: &sizes,
            addresses: &addresses,
            stream,
            now,
            timed: times.is_some().then(Vec::new),
        };
        for (step, kernel) in self.plan.load.iter().zip(load).filter(|_| !was_loaded) {
            running.begin_step(step, *kernel)?;
        }
        self.plan.walk(&mut running)?;
        let timed = running.timed.take();
        let last = match state.last.take() {
            Some((last, _)) => last,
            None => Event::new(device)?,
        };
        let outputs = || {
            let of = |(id, to): (&girih_compiler::loops::model::ArrayId, &u64)| {
                let at = id.0 as usize;
                Some((*addresses.get(at)?, *to, *sizes.get(at)?))
            };
            self.plan.outputs.iter().zip(call.outputs).filter_map(of).filter(|(from, to, _)| from != to)
        };
        for (from, to, bytes) in outputs().filter(|(_, to, _)| has(*to)) {
            device::copy(device, to, from, bytes, stream)?;
        }
        last.record(stream)?;
        if waits {
            last.synchronize()?;
        }
        state.last = Some((last, stream));
        for (from, to, bytes) in outputs().filter(|(_, to, _)| !has(*to)) {
            let to = std::ptr::with_exposed_provenance_mut(to as usize);
            // SAFETY: the output has this many bytes, says the contract.
            device::to_host(device, unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) }, from)?;
        }
        state.loaded = !call.own_parameters;
        if let Some(times) = times {
            *times = vec![([0; 3], 0.0); self.plan.steps.len()];
            for Launch { step, grid, start, end } in timed.iter().flatten() {
                if let Some((of, seconds)) = times.get_mut(*step) {
                    (*of, *seconds) = (*grid, *seconds + f64::from(start.until(end)?) * 1e-3);
                }
            }
        }
        Ok(())
    }

    /// The device memory that a run with these symbols needs.
    pub(super) fn footprint(&self, symbols: &[i64]) -> Result<Footprint> {
        let mut found = Footprint::default();
        for (array, bytes) in self.plan.arrays.values().zip(self.sizes(symbols)?) {
            let role = |input: u32| self.graph.inputs.get(input as usize).map(|i| i.role);
            match array.place {
                ArrayPlace::Input(input) if role(input) == Some(Role::Parameter) => found.weights += bytes,
                ArrayPlace::Constant(_) => found.weights += bytes,
                ArrayPlace::Loaded => found.loaded += bytes,
                ArrayPlace::Temp => found.arena += bytes,
                ArrayPlace::Input(_) | ArrayPlace::Row { .. } => {}
            }
        }
        Ok(found)
    }

    pub(super) fn plan(&self) -> (&Plan, &Graph) {
        (&self.plan, &self.graph)
    }

    /// The bytes of each array.
    fn sizes(&self, symbols: &[i64]) -> Result<Vec<u64>> {
        let of = |array: &girih_compiler::loops::model::Array| {
            let bytes = extent::shape(&array.shape, symbols).and_then(|shape| bytes_of(array.elem, &shape));
            bytes.ok_or_else(|| Error::argument(format!("the array `{}` is too large", array.name)))
        };
        self.plan.arrays.values().map(of).collect()
    }

    /// Where the caller wants an array that a step writes, if kernels can write there.
    fn written_in_place(&self, has: &dyn Fn(u64) -> bool, at: usize, call: &Call<'_>) -> Option<u64> {
        let mut wanted = self.plan.outputs.iter().zip(call.outputs).filter(|(id, _)| id.0 as usize == at);
        wanted.find(|(_, to)| to.is_multiple_of(ALIGN) && has(**to)).map(|(_, to)| *to)
    }
}

/// A run on its way through the steps.
struct Running<'a> {
    resident: &'a Resident,
    device: &'static Device,
    symbols: &'a [i64],
    sizes: &'a [u64],
    addresses: &'a [u64],
    stream: usize,
    /// The round of each loop that runs, and how many it has.
    now: Vec<(u64, u64)>,
    /// Where the times are asked for.
    timed: Option<Vec<Launch>>,
}

/// The grid of each step, and the seconds that its launches take on the device.
pub(super) type GpuTimes = Vec<([u32; 3], f64)>;

/// A step that was begun between two events.
struct Launch {
    step: usize,
    grid: [u32; 3],
    start: Event,
    end: Event,
}

impl Running<'_> {
    fn address(&self, id: ArrayId) -> Result<u64> {
        let at = id.0 as usize;
        let array = self.resident.plan.arrays.get(id).ok_or_else(missing)?;
        let ArrayPlace::Row { of, within, reverse } = array.place else {
            return self.addresses.get(at).copied().ok_or_else(missing);
        };
        let (round, rounds) = self.now.get(within.0 as usize).copied().ok_or_else(missing)?;
        let row = if reverse { rounds.saturating_sub(round + 1) } else { round };
        Ok(self.address(of)? + row * self.sizes.get(at).copied().ok_or_else(missing)?)
    }

    /// Begins a step, unless it writes nothing. Its grid.
    fn begin_step(&self, step: &Step, kernel: usize) -> Result<[u32; 3]> {
        if step.writes.iter().all(|id| self.sizes.get(id.0 as usize).is_none_or(|bytes| *bytes == 0)) {
            return Ok([0; 3]);
        }
        let of = |arg: &StepArg| match arg {
            StepArg::Symbol(s) => self.symbols.get(s.0 as usize).map(|n| *n as u64).ok_or_else(missing),
            StepArg::Array(id) => self.address(*id),
        };
        let args = step.args.iter().map(of).collect::<Result<Vec<u64>>>()?;
        let (version, loaded) = self.resident.kernels.get(kernel).ok_or_else(missing)?;
        let lowered: &Lowered = &version.lowered;
        let grid = lowered.kernel.blocks(&args).unwrap_or([1; 3]);
        launch::start(loaded, lowered, grid, &args, self.stream)?;
        Ok(grid.map(|n| u32::try_from(n).unwrap_or(u32::MAX)))
    }

    fn event(&self) -> Result<Event> {
        let now = Event::new(self.device)?;
        now.record(self.stream)?;
        Ok(now)
    }
}

impl Runner for Running<'_> {
    type Error = Error;

    fn step(&mut self, at: usize) -> Result<()> {
        let plan = &self.resident.plan;
        let kernel = self.resident.steps.get(plan.load.len() + at).copied();
        let (Some(step), Some(kernel)) = (plan.steps.get(at), kernel) else { return Err(missing()) };
        let start = self.timed.is_some().then(|| self.event()).transpose()?;
        let grid = self.begin_step(step, kernel)?;
        if let Some(start) = start {
            let end = self.event()?;
            self.timed.get_or_insert_default().push(Launch { step: at, grid, start, end });
        }
        Ok(())
    }

    fn copy(&mut self, (from, to): &Move) -> Result<()> {
        let bytes = self.sizes.get(to.0 as usize).copied().ok_or_else(missing)?;
        if bytes == 0 {
            return Ok(());
        }
        Ok(device::copy(self.device, self.address(*to)?, self.address(*from)?, bytes, self.stream)?)
    }

    fn rounds(&mut self, id: LoopId) -> Result<u64> {
        let l = self.resident.plan.loops.get(id).ok_or_else(missing)?;
        let range = || Error::argument("a loop's number of rounds is out of range".to_string());
        extent::value(&l.rounds, self.symbols).and_then(|n| u64::try_from(n).ok()).ok_or_else(range)
    }

    /// Waits for the kernel that computes the condition.
    fn holds(&mut self, condition: ArrayId) -> Result<bool> {
        self.event()?.synchronize()?;
        let mut bytes = [0];
        device::to_host(self.device, &mut bytes, self.address(condition)?)?;
        Ok(bytes != [0])
    }

    fn begin(&mut self, id: LoopId, round: u64, of: u64) -> Result<()> {
        *self.now.get_mut(id.0 as usize).ok_or_else(missing)? = (round, of);
        Ok(())
    }
}

/// An input of a run.
struct Given {
    address: u64,
    /// True if it is on the device.
    there: bool,
    /// True if it is as it was in the last run.
    kept: bool,
}

impl State {
    /// The model's own memory for an array, and whether it is new.
    fn own(&mut self, device: &'static Device, at: usize, bytes: u64) -> Result<(u64, bool)> {
        match self.memory.get(&at) {
            Some(memory) if memory.bytes == bytes => Ok((memory.address, false)),
            _ => {
                // The old memory is freed before the new is allocated.
                self.memory.remove(&at);
                let memory = device.allocate(bytes)?;
                let address = memory.address;
                self.memory.insert(at, memory);
                Ok((address, true))
            }
        }
    }

    /// Where kernels read an input: its own memory if that is on the device, else a copy.
    ///
    /// # Safety
    /// The address must have `bytes` bytes.
    unsafe fn input(
        &mut self,
        device: &'static Device,
        at: usize,
        Given { address: from, there, kept }: Given,
        bytes: u64,
        stream: usize,
    ) -> Result<u64> {
        if there && from.is_multiple_of(ALIGN) {
            return Ok(from);
        }
        let (to, new) = self.own(device, at, bytes)?;
        if kept && !new || bytes == 0 {
            return Ok(to);
        }
        if there {
            device::copy(device, to, from, bytes, stream)?;
        } else {
            let from = std::ptr::with_exposed_provenance(from as usize);
            // SAFETY: as the function's contract says.
            device::to_device(device, to, unsafe { std::slice::from_raw_parts(from, bytes as usize) })?;
        }
        Ok(to)
    }

    fn constant(&mut self, device: &'static Device, at: usize, bytes: u64, graph: &Graph, id: ConstId) -> Result<u64> {
        let Some(ConstData::Bytes(from)) = graph.constants.get(id).map(|c| &c.data) else {
            return Err(Error::argument("a GPU does not read a model's external data".to_string()));
        };
        let (to, new) = self.own(device, at, bytes)?;
        if new && let Err(error) = device::to_device(device, to, &from[..from.len().min(bytes as usize)]) {
            self.memory.remove(&at);
            return Err(error.into());
        }
        Ok(to)
    }
}

impl Prepared<'_> {
    /// The outputs, in the model's order.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn run_on_gpu(&self, times: Option<&mut GpuTimes>) -> Result<Vec<Tensor>> {
        let resident = self.model.resident()?;
        let plan = &resident.plan;
        let mut results = vec![];
        for id in &plan.outputs {
            let array = plan.arrays.get(*id).ok_or_else(missing)?;
            let shape = extent::shape(&array.shape, &self.symbols);
            let shape = shape.ok_or_else(|| Error::argument(format!("the array `{}` is too large", array.name)))?;
            results.push(Tensor::zeroed(array.elem, &shape)?);
        }
        let roles = self.model.graph.inputs.iter().map(|i| i.role);
        let inputs: Vec<u64> = self.inputs.iter().map(|c| c.raw().data.expose_provenance() as u64).collect();
        let outputs: Vec<u64> = results.iter().map(|t| t.buffer().as_ptr().expose_provenance() as u64).collect();
        let held = |(input, role)| role == Role::Argument || matches!(input, &Complete::Held(..));
        let call = Call {
            symbols: &self.symbols,
            inputs: &inputs,
            outputs: &outputs,
            own_parameters: !self.inputs.iter().zip(roles).all(held),
            stream: None,
            on_device: false,
        };
        // SAFETY: the inputs live as long as this value and were checked against the graph; outputs have memory of their own.
        unsafe { resident.run(&call, times) }?;
        Ok(results)
    }
}

fn missing() -> Error {
    Error::Internal("an array of the plan is missing".into())
}
