//! Checks every rule of a model's compilation on given inputs, and names the one that changes the answer.
//!
//! In: a run made ready. Out: how many rewrites were checked, or the first that changes the answer. Rules of Tensor IR
//! keep every bit of the model's results, as evaluated before and after. The plan's results lie within the bound of
//! `reference` of those. Each kernel's rules keep what its step stores, run on the evaluator of loops on what the steps
//! before it stored, and so does its kernel IR; a sum that is folded in another order may move by a little. For small models: evaluators are slow.

use std::collections::{BTreeMap, BTreeSet};

use girih_compiler::base::Diagnostic;
use girih_compiler::base::launch::Launch;
use girih_compiler::graph::{ConstData, Graph};
use girih_compiler::loops::model::{ArrayId, ArrayPlace, LoopId, Move, Plan, Runner, Step, StepArg};
use girih_compiler::num::{DType, convert};
use girih_compiler::pipeline::{self, Event, Observer};

use super::{Prepared, Tensor, extent};
use crate::compile::observe::{EachRewrite, Run, Stored, changes, placed};
use crate::compile::version::PLANNED;
use crate::compile::widen;
use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;
use crate::memory::regions::RealMemory;
use crate::system::{machine, signals};
use girih_compiler::num::values;

/// The number of rewrites that were checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// Rewrites of Tensor IR.
    pub tensor: u64,
    /// Rewrites of kernels.
    pub kernels: u64,
    pub steps: u64,
}

impl Prepared<'_> {
    /// Compiles the model once more and checks each rule on this run's inputs.
    ///
    /// # Errors
    /// A diagnostic that names the first rule that changes the answer.
    pub fn verify_each(&self) -> Result<Verified> {
        let _turn = self.turn()?;
        let options = self.model.options.pipeline(PLANNED)?;
        let mut graphs = Graphs { run: self, last: None, checked: 0 };
        let lowered = pipeline::lower_model(&self.model.graph, &options, &mut graphs).map_err(Error::Program)?;
        let want = match graphs.last.take() {
            Some(last) => last,
            None => self.evaluate_graph(&lowered.tensor, false)?,
        };
        let mut done = Verified { tensor: graphs.checked, ..Verified::default() };
        let (plan, mut rewrites) = (&lowered.scheduled, lowered.rewrites.clone());
        // In a loop, only the first round of the kernels is checked; later rounds just run.
        let mut checked = BTreeSet::new();
        let mut step = |step: &Step, arrays: &[Buffer]| {
            let name = &step.kernel.name;
            let run = |run: &Run<'_>| self.run_step(plan, step, run, arrays).map_err(|e| e.to_string());
            if checked.insert(name.clone()) {
                let mut each = EachRewrite { run: &run, within: format!(" in {name}"), last: None, checked: 0 };
                pipeline::lower_loops(step.kernel.clone(), &options, &mut rewrites, &mut each)
                    .map_err(Error::Program)?;
                done.kernels += each.checked;
                done.steps += 1;
            }
            run(&placed(&step.kernel)).map_err(|e| Error::Program(vec![changes(name, &e)]))
        };
        let arrays = self.run_on_buffers(plan, &lowered.tensor, &mut step)?;
        let bounds = self.bound(&lowered.tensor);
        for (k, want) in want.iter().enumerate() {
            let Some(got) = plan.outputs.get(k).and_then(|id| arrays.get(id.0 as usize)) else { continue };
            let d = widen::deviation(got, want.buffer());
            if d.error > bounds.of(want.dtype(), d.scale) {
                let name = self.model.graph.outputs.get(k).map_or("?", |o| &o.name);
                let what = format!("output `{name}` is off by {:.3e} at element {}", d.error, d.element);
                return Err(Error::Program(vec![changes("l:fuse", &what)]));
            }
        }
        Ok(done)
    }

    /// Runs a plan, each step by `step`, which returns its stores; returns all arrays at the end.
    pub(super) fn run_on_buffers(&self, plan: &Plan, graph: &Graph, step: &mut Stepping<'_>) -> Result<Vec<Buffer>> {
        let mut run =
            OnBuffers { plan, symbols: &self.symbols, arrays: self.arrays(plan, graph)?, now: BTreeMap::new(), step };
        for at in &plan.load {
            run.keep(at)?;
        }
        plan.walk(&mut run)?;
        Ok(run.arrays)
    }

    /// Memory for each array of a plan: inputs and constants filled, the others recognisably not.
    fn arrays(&self, plan: &Plan, graph: &Graph) -> Result<Vec<Buffer>> {
        let mut all = vec![];
        for array in plan.arrays.values() {
            let shape = extent::shape(&array.shape, &self.symbols)
                .ok_or_else(|| Error::argument(format!("the array `{}` is too large", array.name)))?;
            let mut buffer = Buffer::zeroed(array.elem.dtype, &shape)?;
            let to = buffer.bytes_mut();
            match array.place {
                ArrayPlace::Input(i) => {
                    if let Some(raw) = self.inputs.get(i as usize).map(|c| c.raw()) {
                        // SAFETY: the input has the shape the graph says, and memory as long as that.
                        unsafe { std::ptr::copy_nonoverlapping(raw.data, to.as_mut_ptr(), to.len()) };
                    }
                }
                ArrayPlace::Constant(c) => {
                    if let Some(ConstData::Bytes(from)) = graph.constants.get(c).map(|c| &c.data)
                        && from.len() == to.len()
                    {
                        to.copy_from_slice(from);
                    }
                }
                ArrayPlace::Loaded | ArrayPlace::Temp | ArrayPlace::Row { .. } => to.fill(0xa5),
            }
            all.push(buffer);
        }
        Ok(all)
    }

    /// The arrays that a kernel stores in place of a step's, on copies of the arrays that the step writes.
    pub(super) fn run_step(&self, plan: &Plan, step: &Step, run: &Run<'_>, arrays: &[Buffer]) -> Result<Vec<Stored>> {
        let missing = || Error::Internal("an array of the plan is missing".into());
        let mut copies = vec![];
        for id in &step.writes {
            let array = arrays.get(id.0 as usize).ok_or_else(missing)?;
            copies.push(array.duplicate()?);
        }
        let mut memory = RealMemory::new();
        let mut slots = vec![];
        for arg in &step.args {
            let id = match arg {
                StepArg::Symbol(s) => {
                    slots.push(self.symbols.get(s.0 as usize).copied().unwrap_or(0) as u64);
                    continue;
                }
                StepArg::Array(id) => *id,
            };
            let written = step.writes.iter().position(|w| *w == id).and_then(|at| copies.get(at));
            let buffer = written.or_else(|| arrays.get(id.0 as usize)).ok_or_else(missing)?;
            let name = plan.arrays.get(id).map_or("?", |a| &a.name);
            let start = buffer.as_ptr();
            slots.push(start.expose_provenance() as u64);
            // SAFETY: the buffer lives until the run below has ended; only the copies are written.
            unsafe { memory.register(name, start, buffer.bytes().len() as u64) };
        }
        // As of every plan: a step that writes nothing does not run.
        if copies.iter().any(|c| !c.bytes().is_empty()) {
            let launch = Launch { budget: machine::budget(), ..Launch::new([1, 1, 1], slots) };
            run(&launch, &mut memory).map_err(|t| Error::Trap(Box::new(t)))?;
        }
        let name = |id| plan.arrays.get(id).map_or("?", |a| &a.name).to_string();
        let stored = |(id, buffer): (&ArrayId, Buffer)| Stored { name: name(*id), buffer };
        Ok(step.writes.iter().zip(copies).map(stored).collect())
    }
}

/// A function that returns the arrays a step stores, given the arrays of the plan.
pub(super) type Stepping<'a> = dyn FnMut(&Step, &[Buffer]) -> Result<Vec<Stored>> + 'a;

/// A plan on its way through the steps. Rows are arrays of their own, copied when a round begins and back when it ends.
struct OnBuffers<'a, 's> {
    plan: &'a Plan,
    symbols: &'a [i64],
    arrays: Vec<Buffer>,
    /// The round of each loop that runs, and how many it has.
    now: BTreeMap<LoopId, (u64, u64)>,
    step: &'a mut Stepping<'s>,
}

fn missing() -> Error {
    Error::Internal("an array of the plan is missing".into())
}

impl OnBuffers<'_, '_> {
    fn keep(&mut self, step: &Step) -> Result<()> {
        let results = (self.step)(step, &self.arrays)?;
        for (id, stored) in step.writes.iter().zip(results) {
            *self.arrays.get_mut(id.0 as usize).ok_or_else(missing)? = stored.buffer;
        }
        Ok(())
    }

    fn bytes(&self, id: ArrayId) -> Result<&[u8]> {
        self.arrays.get(id.0 as usize).map(|b| b.bytes()).ok_or_else(missing)
    }

    fn bytes_mut(&mut self, id: ArrayId) -> Result<&mut [u8]> {
        self.arrays.get_mut(id.0 as usize).map(|b| b.bytes_mut()).ok_or_else(missing)
    }

    /// Copies the rows of a loop out of their arrays, or back.
    fn rows(&mut self, id: LoopId, back: bool) -> Result<()> {
        let (round, rounds) = self.now.get(&id).copied().ok_or_else(missing)?;
        for (row, array) in self.plan.arrays.iter() {
            let ArrayPlace::Row { of, within, reverse } = array.place else { continue };
            if within != id {
                continue;
            }
            let at = if reverse { rounds - 1 - round } else { round } as usize;
            let mut own = self.bytes(row)?.to_vec();
            let n = own.len();
            let place = self.bytes_mut(of)?.get_mut(at * n..(at + 1) * n).ok_or_else(missing)?;
            if back {
                place.copy_from_slice(&own);
            } else {
                own.copy_from_slice(place);
                self.bytes_mut(row)?.copy_from_slice(&own);
            }
        }
        Ok(())
    }
}

impl Runner for OnBuffers<'_, '_> {
    type Error = Error;
    fn step(&mut self, at: usize) -> Result<()> {
        let plan = self.plan;
        plan.steps.get(at).ok_or_else(missing).and_then(|step| self.keep(step))
    }
    fn copy(&mut self, (from, to): &Move) -> Result<()> {
        let from = self.bytes(*from)?.to_vec();
        let to = self.bytes_mut(*to)?;
        if to.len() != from.len() {
            return Err(missing());
        }
        to.copy_from_slice(&from);
        Ok(())
    }
    fn rounds(&mut self, id: LoopId) -> Result<u64> {
        let l = self.plan.loops.get(id).ok_or_else(missing)?;
        let range = || Error::argument("a loop's number of rounds is out of range".to_string());
        extent::value(&l.rounds, self.symbols).and_then(|n| u64::try_from(n).ok()).ok_or_else(range)
    }
    fn holds(&mut self, condition: ArrayId) -> Result<bool> {
        Ok(self.bytes(condition)?.iter().any(|b| *b != 0))
    }
    fn begin(&mut self, id: LoopId, round: u64, of: u64) -> Result<()> {
        // A loop may not end by itself, and its rounds may be too short to be stopped in.
        if signals::attention() {
            return Err(Error::Interrupted);
        }
        self.now.insert(id, (round, of));
        self.rows(id, false)
    }
    fn end(&mut self, id: LoopId) -> Result<()> {
        self.rows(id, true)
    }
}

/// Checks the rules of Tensor IR.
struct Graphs<'a> {
    run: &'a Prepared<'a>,
    last: Option<Vec<Tensor>>,
    checked: u64,
}

impl Observer for Graphs<'_> {
    fn see(&mut self, event: &Event<'_>) -> std::result::Result<(), Diagnostic> {
        let Event::Tensor(ran) = event else { return Ok(()) };
        let Some(after) = ran.after else { return Ok(()) };
        let rule = format!("rule {}", ran.name);
        let before = match self.last.take() {
            Some(last) => last,
            None => {
                self.run.evaluate_graph(ran.before, false).map_err(|e| changes(&rule, &format!("even before, {e}")))?
            }
        };
        let now = self.run.evaluate_graph(after, false).map_err(|e| changes(&rule, &e.to_string()))?;
        for (k, (old, new)) in before.iter().zip(&now).enumerate() {
            let (a, b, dtype) = (old.buffer(), new.buffer(), old.dtype());
            if let Some(e) = (0..a.elements()).find(|&e| !same(dtype, a.get(e), b.get(e))) {
                let name = after.outputs.get(k).map_or("?", |o| &o.name);
                let (was, is) = (values::text(dtype, a.get(e)), values::text(dtype, b.get(e)));
                return Err(changes(&rule, &format!("element {e} of `{name}` was {was} and is {is}")));
            }
        }
        self.last = Some(now);
        self.checked += 1;
        Ok(())
    }
}

/// Equal bits, or two NaNs.
fn same(dtype: DType, a: u64, b: u64) -> bool {
    a == b || dtype.is_float() && convert::is_nan(dtype, a) && convert::is_nan(dtype, b)
}
