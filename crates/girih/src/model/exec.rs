//! A compiled model: kernels, weights, and the launches of a run.
//!
//! In: a plan and its graph, under some options. Out: a value that runs on addresses. Kernels that are equal but for
//! names are compiled once, several at a time; constants stay where the model's file has them; arrays that depend on
//! weights alone are computed before the first run, and again when parameters are others.
//!
//! Invariants: runs of one model take turns; a run allocates nothing once it has seen the extents before, unless the
//! caller asks for memory for outputs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use girih_compiler::base::rule::Rewrites;
use girih_compiler::graph::{ConstData, ConstId, Graph, Role};
use girih_compiler::loops::ir::Kernel;
use girih_compiler::loops::model::{Array, ArrayId, ArrayPlace, LoopId, Move, Plan, Runner, Step, StepArg};
use girih_compiler::pipeline;
use memmap2::MmapMut;

use super::binding::{self, Binding, BoundStep, Grid, Slot};
use super::digest::{self, Digest};
use super::extent;
use super::files::Files;
use super::input_values::LoadInputs;
use super::kernels::{Compiled, Progress, compile, grid_of};
use super::load_order::{largest_first, read_at_load};
use super::saved::Saved;
use super::tensor::bytes_of;
use crate::compile::version::Tools;
use crate::error::{Error, Result};
use crate::launch::blocks::{self, Run, Session, Stop};
use crate::launch::host::NativeHost;
use crate::launch::profile::Footprint;
use crate::memory::args::{self, RawArgs};
use crate::memory::pages::Pages;
use crate::memory::regions::RealMemory;
use crate::options::Options;
use crate::system::machine;
use crate::system::sync::Turned;

pub struct Executable {
    pub plan: Plan,
    /// Tensor IR.
    pub graph: Graph,
    options: Options,
    kernels: Vec<Compiled>,
    /// The kernel of each step, and its blocks.
    steps: Vec<usize>,
    grids: Vec<Grid>,
    load: Vec<usize>,
    load_binding: Binding,
    fixed: Addresses,
    state: Turned<State>,
    /// Arrays that only steps of `load` read: they lose their memory when the last of these has run.
    passing: BTreeSet<ArrayId>,
    /// Bytes of weights and of the arrays computed from them.
    held: u64,
    /// Identifies the plan; and whether all of it was taken from a saved model.
    pub fingerprint: String,
    pub as_saved: bool,
    /// Seconds that compiling took, and how many kernels were in the cache.
    pub compile_seconds: f64,
    pub cached: usize,
}

/// Addresses of constants and of arrays written at load, by array; and the latter's memory.
#[derive(Default)]
struct Addresses {
    of: Vec<Option<u64>>,
    loaded: BTreeMap<ArrayId, Memory>,
}

/// The memory of an array that is computed at load.
enum Memory {
    Own(Pages),
    /// From a saved model.
    Saved(MmapMut),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Own(pages) => pages.bytes(),
            Memory::Saved(map) => map,
        }
    }
}

impl binding::Fixed for Addresses {
    fn address(&self, array: ArrayId) -> Option<u64> {
        self.of.get(array.0 as usize).copied().flatten()
    }
}

#[derive(Default)]
struct State {
    /// The least recently used last.
    bindings: Vec<Arc<Binding>>,
    arena: Option<Pages>,
    slots: Vec<u64>,
    /// The round of each loop that runs, and how many it has.
    now: Vec<(u64, u64)>,
    /// The parameters that the steps of `load` ran on; `None` before they have run.
    loaded: Option<Loaded>,
}

/// Identifies parameters: where it is equal, so are the arrays computed from them.
#[derive(PartialEq)]
struct Loaded {
    version: u64,
    watched: Arc<[usize]>,
    /// The digest of the elements of the watched inputs.
    digest: Option<Digest>,
}

/// How many bindings are remembered.
const BINDINGS: usize = 16;

/// The arguments of one run: the address of every input of the graph, parameters too, and of every output.
pub struct Call<'a> {
    pub binding: &'a Binding,
    pub inputs: &'a [u64],
    pub outputs: &'a [u64],
    /// Where they differ from those of the last run, the steps of loading run anew.
    pub parameters: &'a LoadInputs,
}

/// How long each step took, in seconds; the steps of `load` are not among them.
pub type Times = Vec<f64>;

impl Executable {
    pub fn new(
        mut plan: Plan,
        graph: Graph,
        rewrites: Rewrites,
        options: &Options,
        tools: &Tools,
        progress: Option<&Progress>,
        saved: Option<&Saved>,
    ) -> Result<Executable> {
        let start = Instant::now();
        largest_first(&mut plan);
        let passing = passing(&plan);
        let given = weights(&graph);
        options.allow(
            given.saturating_add(load_peak(&plan, &passing)),
            "the model's weights and what is computed from them",
        )?;
        let kept = kept_sizes(&plan, &passing).filter_map(|(_, bytes)| bytes);
        let held = kept.fold(given, u64::saturating_add);
        let mut unique: BTreeMap<String, usize> = BTreeMap::new();
        let mut sources: Vec<&Kernel> = vec![];
        let mut order = vec![];
        let mut plan_hash = blake3::Hasher::new();
        let head = format!("{} {:?} {:?} {:?}", plan.load.len(), plan.arrays, plan.outputs, plan.loops);
        plan_hash.update(head.as_bytes());
        for step in plan.load.iter().chain(&plan.steps) {
            let next = sources.len();
            let text = pipeline::nameless(&step.kernel);
            plan_hash.update(format!("{:?} {:?} {text}", step.args, step.within).as_bytes());
            let at = unique.entry(text).or_insert(next);
            if *at == next {
                sources.push(&step.kernel);
            }
            order.push(*at);
        }
        let kernels = compile(&sources, rewrites, options, tools, progress, saved)?;
        let all = plan.load.iter().chain(&plan.steps).zip(&order);
        let grids: Vec<Grid> =
            all.filter_map(|(step, at)| Some(grid_of(step, &kernels.get(*at)?.version.lowered.kernel))).collect();
        let (load_grids, grids) = grids.split_at(plan.load.len().min(grids.len()));
        let cached = kernels.iter().filter(|k| k.native.cached).count();
        let steps = order.split_off(plan.load.len());
        let fingerprint = plan_hash.finalize().to_hex().to_string();
        let sizes = || -> Option<Vec<(&str, usize)>> {
            kept_sizes(&plan, &passing).map(|(name, bytes)| Some((name, usize::try_from(bytes?).ok()?))).collect()
        };
        let packed = saved.filter(|_| cached == kernels.len()).and_then(|s| s.packed(&fingerprint, &sizes()?));
        let as_saved = packed.is_some();
        let fixed = addresses(&plan, &graph, &passing, packed)?;
        let state = Turned::<State>::default();
        let read = !read_at_load(&plan).is_empty();
        state.take()?.loaded = saved.filter(|_| as_saved).map(|saved| {
            let version = if read { saved.parameters } else { 0 };
            Loaded { version, watched: Arc::default(), digest: None }
        });
        let load_binding = binding::bind_load(&plan, load_grids, &graph, &fixed)?;
        Ok(Executable {
            grids: grids.to_vec(),
            kernels,
            steps,
            load: order,
            load_binding,
            fixed,
            options: options.clone(),
            state,
            passing,
            held,
            fingerprint,
            as_saved,
            compile_seconds: start.elapsed().as_secs_f64(),
            cached,
            plan,
            graph,
        })
    }

    /// The same for a plan that has only the steps of load; keeps the arrays that the runs of `plan` read.
    pub(super) fn keeping_for(self, plan: &Plan) -> Executable {
        Executable { passing: passing(plan), ..self }
    }

    /// The C of each kernel.
    pub(super) fn sources(&self, options: &Options) -> Result<Vec<String>> {
        self.kernels.iter().map(|k| k.version.source(options)).collect()
    }

    pub fn kernel_count(&self) -> usize {
        self.kernels.len()
    }

    /// The binding for some values of the symbols, computed or remembered.
    pub fn binding(&self, symbols: &[i64]) -> Result<Arc<Binding>> {
        let mut state = self.state.take()?;
        if let Some(at) = state.bindings.iter().position(|b| b.symbols == symbols) {
            if at > 0 {
                let found = state.bindings.remove(at);
                state.bindings.insert(0, found);
            }
            if let Some(found) = state.bindings.first() {
                return Ok(found.clone());
            }
        }
        let binding = Arc::new(binding::bind(&self.plan, &self.grids, &self.graph, symbols, &self.fixed)?);
        let results = binding.outputs.iter().map(|o| o.bytes);
        let all = [self.held, binding.arena].into_iter().chain(results).fold(0, u64::saturating_add);
        let text = binding::symbols_text(&self.graph, symbols);
        self.options.allow(all, &format!("the model's weights, temporary arrays and results{text}"))?;
        state.bindings.truncate(BINDINGS - 1);
        state.bindings.insert(0, binding.clone());
        Ok(binding)
    }

    /// Runs the model and waits for it.
    ///
    /// # Safety
    /// The addresses must be of arrays of the types and shapes that the binding was made for; outputs overlap nothing.
    pub unsafe fn run(&self, call: &Call<'_>, files: &Files, mut times: Option<&mut Times>) -> Result<()> {
        let mut state = self.state.take()?;
        let state = &mut *state;
        let arena = usize::try_from(call.binding.arena).unwrap_or(usize::MAX);
        if state.arena.as_ref().map_or(0, Pages::len) < arena {
            state.arena = None;
            let text = binding::symbols_text(&self.graph, &call.binding.symbols);
            state.arena = Some(reserve(arena, &format!("the model's temporary arrays{text}"))?);
        }
        let session = Session::begin()?;
        let LoadInputs { version, watched, memory } = call.parameters;
        // SAFETY: parameters are as they are said to be, which is the contract's.
        let look = || unsafe { digest::of(memory, self.options.thread_count() as usize) };
        let digest = (!memory.is_empty()).then(look);
        let now = Some(Loaded { version: *version, watched: watched.clone(), digest });
        if state.loaded != now {
            state.loaded = None;
            // SAFETY: as the function's own contract says.
            unsafe { self.load(&session, call, files) }?;
            state.loaded = now;
        }
        let base = state.arena.as_ref().map_or(0, |a| a.as_ptr().expose_provenance() as u64);
        state.now.clear();
        state.now.resize(call.binding.rounds.len(), (0, 0));
        fill(&mut state.slots, &call.binding.slots, call, base)?;
        if let Some(times) = times.as_deref_mut() {
            times.resize(self.plan.steps.len(), 0.0);
        }
        let (slots, now) = (&mut state.slots, &mut state.now);
        self.plan.walk(&mut Running { exec: self, session: &session, call, base, slots, now, times })?;
        drop(session);
        for (k, output) in call.binding.outputs.iter().enumerate() {
            let (Some(copy), Some(&to)) = (output.copy, call.outputs.get(k)) else { continue };
            let from = address(copy, call, base)?;
            // An output that replaces an argument lies there.
            if from == to {
                continue;
            }
            let (from, to) = (
                std::ptr::with_exposed_provenance::<u8>(from as usize),
                std::ptr::with_exposed_provenance_mut::<u8>(to as usize),
            );
            // SAFETY: both are arrays of this many bytes; outputs overlap nothing, says the contract.
            unsafe { std::ptr::copy_nonoverlapping(from, to, output.bytes as usize) };
        }
        Ok(())
    }

    /// Runs the steps that depend on weights alone, and releases arrays that nothing else reads: weights, and intermediate results.
    ///
    /// # Safety
    /// As of [`Executable::run`].
    unsafe fn load(&self, session: &Session, call: &Call<'_>, files: &Files) -> Result<()> {
        let mut slots = vec![];
        fill(&mut slots, &self.load_binding.slots, call, 0)?;
        let mut last: BTreeMap<ConstId, usize> = BTreeMap::new();
        for (at, step) in self.plan.load.iter().enumerate() {
            last.extend(step.args.iter().filter_map(constant_of(&self.plan)).map(|c| (c, at)));
        }
        let moves = self.plan.loops.values().flat_map(|l| l.before.iter().chain(&l.first).chain(&l.last));
        let also = self.plan.outputs.iter().copied().chain(moves.map(|(from, _)| *from));
        let also: Vec<StepArg> = also.map(StepArg::Array).collect();
        let later = self.plan.steps.iter().flat_map(|s| &s.args).chain(&also);
        let kept: BTreeSet<ConstId> = later.filter_map(constant_of(&self.plan)).collect();
        let mut done: BTreeMap<usize, Vec<ConstId>> = BTreeMap::new();
        for (c, at) in last.into_iter().filter(|(c, _)| !kept.contains(c)) {
            done.entry(at).or_default().push(c);
        }
        let mut passed: BTreeMap<usize, Vec<ArrayId>> = BTreeMap::new();
        for (id, at) in last_readers(&self.plan, &self.passing) {
            passed.entry(at).or_default().push(id);
        }
        let release = |at: usize| {
            for c in done.get(&at).into_iter().flatten() {
                if let Some(ConstData::Bytes(bytes)) = self.graph.constants.get(*c).map(|c| &c.data) {
                    files.release(bytes);
                }
            }
            for id in passed.get(&at).into_iter().flatten() {
                if let Some(Memory::Own(pages)) = self.fixed.loaded.get(id) {
                    // SAFETY: runs take turns, no step after this one reads the array, and `loaded` does not give it away.
                    unsafe { pages.discard() };
                }
            }
        };
        for (at, ((step, bound), kernel)) in
            self.plan.load.iter().zip(&self.load_binding.steps).zip(&self.load).enumerate()
        {
            let args = slots.get(bound.range()).unwrap_or_default();
            // SAFETY: as the function's own contract says.
            unsafe { self.launch(session, step, *kernel, bound, &self.load_binding, args) }?;
            release(at);
        }
        Ok(())
    }

    /// Launches one step.
    ///
    /// # Safety
    /// The arguments must be those that the step's kernel expects.
    unsafe fn launch(
        &self,
        session: &Session,
        step: &Step,
        kernel: usize,
        bound: &BoundStep,
        binding: &Binding,
        args: &[u64],
    ) -> Result<()> {
        let (Some(grid), Some(kernel)) = (bound.grid, self.kernels.get(kernel)) else { return Ok(()) };
        let mut memory = RealMemory::new();
        let mut extents = vec![];
        if self.options.check {
            let raw = self.raw_args(step, binding, args);
            let checked = args::bind_raw(&kernel.version.lowered.loops.name, &kernel.params, raw)?;
            memory = checked.memory(&kernel.params);
            extents = checked.extent_table();
        }
        let host = NativeHost {
            messages: &kernel.version.messages,
            memory: &memory,
            text: "",
            grid,
            order: self.options.print_order,
            printer: self.options.printer.as_ref(),
            held: Mutex::default(),
        };
        let run = Run {
            kernel: kernel.native.kernel,
            args,
            grid,
            only: None,
            globals: &[],
            extents: &extents,
            order: kernel.version.order,
            threads: self.options.thread_count() as usize,
            cost: Some(&kernel.version.cost),
        };
        // SAFETY: as the function's own contract says.
        match unsafe { blocks::run_in(session, &run, &host) } {
            Ok(()) => Ok(()),
            Err(Stop::Error(error)) => Err(error),
            Err(Stop::Fault(fault)) => Err(Error::Fault { kernel: step_text(&self.graph, step), what: fault.text() }),
            Err(Stop::Trap(trap)) => {
                let bound = args::bind_raw(&step.kernel.name, &kernel.params, self.raw_args(step, binding, args))?;
                let mut trap = kernel.version.messages.trap(&trap, grid, &kernel.params, &bound);
                trap.message = format!("{}, in {}", trap.message, step_text(&self.graph, step));
                Err(Error::Trap(Box::new(trap)))
            }
        }
    }

    /// A step's arguments with the sizes of its arrays.
    fn raw_args(&self, step: &Step, binding: &Binding, slots: &[u64]) -> RawArgs {
        let bytes = step.args.iter().map(|arg| match arg {
            StepArg::Array(id) => {
                let array = self.plan.arrays.get(*id)?;
                bytes_of(array.elem, &extent::shape(&array.shape, &binding.symbols)?)
            }
            StepArg::Symbol(_) => None,
        });
        RawArgs { slots: slots.to_vec(), bytes: bytes.collect(), ..RawArgs::default() }
    }

    /// The arrays that were written at load and are read in runs.
    pub(super) fn loaded(&self) -> impl Iterator<Item = (ArrayId, &[u8])> {
        self.fixed.loaded.iter().filter(|(id, _)| !self.passing.contains(id)).map(|(id, m)| (*id, m.bytes()))
    }

    pub fn footprint(&self) -> Footprint {
        let arena = self.state.take().map_or(0, |state| state.arena.as_ref().map_or(0, Pages::len));
        Footprint {
            weights: weights(&self.graph),
            loaded: self.loaded().map(|(_, bytes)| bytes.len() as u64).sum(),
            arena: arena as u64,
        }
    }
}

/// A run on its way through the steps. The caller of [`Executable::run`] checked its arguments.
struct Running<'a> {
    exec: &'a Executable,
    session: &'a Session,
    call: &'a Call<'a>,
    /// Where the arena begins.
    base: u64,
    slots: &'a mut Vec<u64>,
    now: &'a mut Vec<(u64, u64)>,
    times: Option<&'a mut Times>,
}

impl Running<'_> {
    fn address(&self, slot: Slot) -> Result<u64> {
        let Slot::Row(at) = slot else { return address(slot, self.call, self.base) };
        let row = self.call.binding.rows.get(at as usize).ok_or_else(vanished)?;
        let (round, rounds) = self.now.get(row.within.0 as usize).copied().ok_or_else(vanished)?;
        let at = if row.reverse { rounds.saturating_sub(round + 1) } else { round };
        Ok(self.address(row.of)? + at * row.stride)
    }

    fn moved(&self, id: ArrayId) -> Result<(u64, u64)> {
        let (slot, bytes) = self.call.binding.moved.get(&id).copied().ok_or_else(vanished)?;
        Ok((self.address(slot)?, bytes))
    }
}

fn vanished() -> Error {
    Error::Internal("an array of a loop vanished".into())
}

impl Runner for Running<'_> {
    type Error = Error;

    fn step(&mut self, at: usize) -> Result<()> {
        let start = self.times.is_some().then(Instant::now);
        let binding = self.call.binding;
        let (Some(step), Some(bound), Some(&kernel)) =
            (self.exec.plan.steps.get(at), binding.steps.get(at), self.exec.steps.get(at))
        else {
            return Err(Error::Internal("a step vanished".into()));
        };
        for i in bound.range().filter(|_| step.within.is_some()) {
            if let Some(&slot @ Slot::Row(_)) = binding.slots.get(i) {
                let address = self.address(slot)?;
                if let Some(to) = self.slots.get_mut(i) {
                    *to = address;
                }
            }
        }
        let args = self.slots.get(bound.range()).unwrap_or_default();
        // SAFETY: the addresses are of arrays of the types and shapes that the binding was made for, says the run's contract; rows
        // lie in them, since there is one for each round.
        unsafe { self.exec.launch(self.session, step, kernel, bound, binding, args) }?;
        if let (Some(time), Some(start)) = (self.times.as_mut().and_then(|t| t.get_mut(at)), start) {
            *time += start.elapsed().as_secs_f64();
        }
        Ok(())
    }

    fn copy(&mut self, (from, to): &Move) -> Result<()> {
        let ((from, _), (to, bytes)) = (self.moved(*from)?, self.moved(*to)?);
        let from = std::ptr::with_exposed_provenance::<u8>(from as usize);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
        // SAFETY: a loop copies between arrays of one type and shape, which lie where the run's contract and its binding say.
        unsafe { std::ptr::copy(from, to, bytes as usize) };
        Ok(())
    }

    fn rounds(&mut self, id: LoopId) -> Result<u64> {
        self.call.binding.rounds.get(id.0 as usize).copied().ok_or_else(vanished)
    }

    fn holds(&mut self, condition: ArrayId) -> Result<bool> {
        let (at, _) = self.moved(condition)?;
        // SAFETY: a condition is an array of one bool, of one byte.
        Ok(unsafe { *std::ptr::with_exposed_provenance::<u8>(at as usize) } != 0)
    }

    fn begin(&mut self, id: LoopId, round: u64, of: u64) -> Result<()> {
        *self.now.get_mut(id.0 as usize).ok_or_else(vanished)? = (round, of);
        Ok(())
    }
}

/// Bytes of constants and parameters as they are given.
fn weights(graph: &Graph) -> u64 {
    let constants = graph.constants.values().map(|c| match &c.data {
        ConstData::Bytes(bytes) => bytes.len() as u64,
        ConstData::External { len, .. } => *len,
    });
    let parameters = graph.inputs.iter().filter(|i| i.role == Role::Parameter).filter_map(|i| {
        let v = graph.values.get(i.value)?;
        bytes_of(v.elem, &extent::shape(&v.shape, &[])?)
    });
    constants.chain(parameters).fold(0, u64::saturating_add)
}

/// `k_linear_silu (aten.linear of layers.0.mlp, aten.silu)`
pub(crate) fn step_text(graph: &Graph, step: &Step) -> String {
    let origins = graph.origins_of(&step.origins);
    match origins.is_empty() {
        true => step.kernel.name.clone(),
        false => format!("{} ({})", step.kernel.name, origins.join(", ")),
    }
}

/// The constant that an argument is, or that it is a row of.
fn constant_of(plan: &Plan) -> impl Fn(&StepArg) -> Option<ConstId> {
    |arg| match arg {
        StepArg::Array(id) => match plan.arrays.get(plan.base(*id))?.place {
            ArrayPlace::Constant(c) => Some(c),
            _ => None,
        },
        StepArg::Symbol(_) => None,
    }
}

/// The memory that arrays without elements point to: a caller's empty array may have no address, and a kernel may read
/// ahead of a check.
#[repr(align(64))]
struct Nothing(#[allow(dead_code)] [u8; 4096]);
static NOTHING: Nothing = Nothing([0; 4096]);

fn address(slot: Slot, call: &Call<'_>, arena: u64) -> Result<u64> {
    let given = |list: &[u64], i: u32| match list.get(i as usize) {
        Some(0) => Ok((&raw const NOTHING).expose_provenance() as u64),
        Some(at) => Ok(*at),
        None => Err(Error::Internal("a run has fewer addresses than its plan".into())),
    };
    match slot {
        Slot::Fixed(bits) => Ok(bits),
        Slot::Arena(offset) => Ok(arena + offset),
        Slot::Input(i) => given(call.inputs, i),
        Slot::Output(i) => given(call.outputs, i),
        // A round says where.
        Slot::Row(_) => Ok(0),
    }
}

fn fill(to: &mut Vec<u64>, slots: &[Slot], call: &Call<'_>, arena: u64) -> Result<()> {
    to.clear();
    for slot in slots {
        to.push(address(*slot, call, arena)?);
    }
    Ok(())
}

/// Memory for arrays, unless the machine does not have that much.
fn reserve(bytes: usize, what: &str) -> Result<Pages> {
    let gib = |n: u64| n as f64 / f64::from(1 << 30);
    // Asking takes longer than a small run.
    let free = if bytes < 64 << 20 { None } else { machine::memory_left() };
    if let Some(free) = free.filter(|&free| bytes as u64 > free) {
        let text =
            format!("{what} take {:.1} GiB, but only {:.1} GiB of memory are free", gib(bytes as u64), gib(free));
        return Err(Error::argument(text));
    }
    Pages::zeroed(bytes).ok_or_else(|| {
        Error::argument(format!("{what} take {:.1} GiB, more than the system grants", gib(bytes as u64)))
    })
}

/// The bytes of an array that is computed at load.
fn loaded_size(array: &Array) -> Option<u64> {
    bytes_of(array.elem, &extent::shape(&array.shape, &[])?)
}

/// The names and sizes of the arrays computed at load and kept, in the order of the plan's arrays.
fn kept_sizes<'a>(plan: &'a Plan, passing: &'a BTreeSet<ArrayId>) -> impl Iterator<Item = (&'a str, Option<u64>)> {
    let kept = plan.arrays.iter().filter(|(id, a)| a.place == ArrayPlace::Loaded && !passing.contains(id));
    kept.map(|(_, a)| (a.name.as_str(), loaded_size(a)))
}

/// Arrays that are computed at load and read only there.
fn passing(plan: &Plan) -> BTreeSet<ArrayId> {
    let moves = plan.loops.values().flat_map(|l| l.before.iter().chain(&l.first).chain(&l.last));
    let also = plan.outputs.iter().copied().chain(moves.map(|(from, _)| *from));
    let in_runs = plan.steps.iter().flat_map(|s| s.args.iter().filter_map(array_of)).chain(also);
    let kept: BTreeSet<ArrayId> = in_runs.map(|id| plan.base(id)).collect();
    let read: BTreeSet<ArrayId> = plan.load.iter().flat_map(|s| &s.reads).copied().collect();
    let loaded = plan.arrays.iter().filter(|(_, a)| a.place == ArrayPlace::Loaded).map(|(id, _)| id);
    loaded.filter(|id| read.contains(id) && !kept.contains(id)).collect()
}

fn array_of(arg: &StepArg) -> Option<ArrayId> {
    match arg {
        StepArg::Array(id) => Some(*id),
        StepArg::Symbol(_) => None,
    }
}

/// For each of some arrays the last step of `load` that reads it.
fn last_readers(plan: &Plan, of: &BTreeSet<ArrayId>) -> BTreeMap<ArrayId, usize> {
    let reads = plan.load.iter().enumerate().flat_map(|(at, step)| step.reads.iter().map(move |id| (*id, at)));
    reads.filter(|(id, _)| of.contains(id)).collect()
}

/// The peak bytes of the arrays computed at load, during the load.
fn load_peak(plan: &Plan, passing: &BTreeSet<ArrayId>) -> u64 {
    let last = last_readers(plan, passing);
    let size = |id: ArrayId| plan.arrays.get(id).filter(|a| a.place == ArrayPlace::Loaded).and_then(loaded_size);
    let (mut written, mut now, mut most) = (BTreeSet::new(), 0u64, 0);
    for (at, step) in plan.load.iter().enumerate() {
        for id in step.writes.iter().filter(|id| written.insert(**id)) {
            now = now.saturating_add(size(*id).unwrap_or(0));
        }
        most = most.max(now);
        let done = step.reads.iter().collect::<BTreeSet<_>>().into_iter().filter(|id| last.get(id) == Some(&at));
        now = done.fold(now, |now, id| now.saturating_sub(size(*id).unwrap_or(0)));
    }
    most
}

/// The places of constants, and memory for the arrays computed at load, or with them.
fn addresses(
    plan: &Plan,
    graph: &Graph,
    passing: &BTreeSet<ArrayId>,
    packed: Option<Vec<MmapMut>>,
) -> Result<Addresses> {
    let mut packed = packed.map(Vec::into_iter);
    let mut all = Addresses { of: vec![None; plan.arrays.len()], loaded: BTreeMap::new() };
    for (id, array) in plan.arrays.iter() {
        let address = match array.place {
            ArrayPlace::Constant(c) => {
                let data = graph.constants.get(c).map(|c| &c.data);
                let Some(ConstData::Bytes(bytes)) = data else {
                    return Err(Error::Internal(format!("the weight `{}` has no bytes", array.name)));
                };
                bytes.as_ptr().expose_provenance() as u64
            }
            ArrayPlace::Loaded => {
                let bytes = extent::shape(&array.shape, &[]).and_then(|s| bytes_of(array.elem, &s));
                let bytes = bytes.and_then(|b| usize::try_from(b).ok());
                let what = format!("the weight `{}`", array.name);
                let bytes = bytes.ok_or_else(|| Error::Internal(format!("{what} has no known size")))?;
                let saved = packed.as_mut().filter(|_| !passing.contains(&id)).and_then(Iterator::next);
                let (address, memory) = match saved {
                    Some(mut map) => (map.as_mut_ptr().expose_provenance(), Memory::Saved(map)),
                    None => {
                        let pages = reserve(bytes, &what)?;
                        (pages.as_ptr().expose_provenance(), Memory::Own(pages))
                    }
                };
                all.loaded.insert(id, memory);
                address as u64
            }
            ArrayPlace::Input(_) | ArrayPlace::Temp | ArrayPlace::Row { .. } => continue,
        };
        if let Some(slot) = all.of.get_mut(id.0 as usize) {
            *slot = Some(address);
        }
    }
    Ok(all)
}
