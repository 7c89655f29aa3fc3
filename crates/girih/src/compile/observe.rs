//! Observers of a compilation: each rule checked by running the kernel before and after it.

use girih_compiler::base::host::Host;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::kernel::{eval, sim};
use girih_compiler::loops;
use girih_compiler::loops::ir::Kernel as LoopKernel;
use girih_compiler::pipeline::trace::Trace;
use girih_compiler::pipeline::{Event, Observer};
use std::time::Instant;

use crate::compile::widen;
use crate::error::Result;
use crate::launch::prepared::check_grid;
use crate::memory::args::{self, Arg, Bound, ParamKind};
use crate::memory::buffer::Buffer;
use crate::memory::regions::RealMemory;
use crate::program::Kernel;
use crate::system::machine;
use girih_compiler::num::values;

/// A trace with the time each rule took, where the trace is one line a rule.
pub struct TimedTrace {
    pub trace: Trace,
    began: Instant,
}

impl TimedTrace {
    /// `full` as in [`Trace::new`].
    pub fn new(full: bool) -> TimedTrace {
        TimedTrace { trace: Trace::new(full), began: Instant::now() }
    }
}

impl Observer for TimedTrace {
    fn see(&mut self, event: &Event<'_>) -> std::result::Result<(), Diagnostic> {
        let took = self.began.elapsed();
        self.trace.see(event)?;
        match event {
            Event::Begin(_) => self.began = Instant::now(),
            Event::Loop(_) | Event::Tile(_) if !self.trace.full => {
                self.trace.note(&format!("{:.2} ms", took.as_secs_f64() * 1e3));
            }
            _ => {}
        }
        Ok(())
    }
    fn wants_steps(&self) -> bool {
        self.trace.full
    }
}

/// How far a rule that reassociates a float reduction may move a result, in units of the type's epsilon times the
/// largest value.
const SLACK: f64 = 256.0;

/// Runs a kernel of some IR.
pub(crate) type Run<'r> = dyn Fn(&Launch, &mut dyn Memory) -> std::result::Result<(), Trap> + 'r;

/// The contents of an array after a run of a kernel.
pub(crate) struct Stored {
    pub name: String,
    pub buffer: Buffer,
}

/// Runs a kernel on the evaluators before and after each rule and as kernel IR, and stops the compilation at the first step
/// that changes its results.
pub(crate) struct EachRewrite<'a> {
    /// Runs the kernel on copies of the arguments and returns the arrays it stored.
    pub run: &'a dyn Fn(&Run<'_>) -> std::result::Result<Vec<Stored>, String>,
    /// The kernel, in messages: ` in k_softmax`.
    pub within: String,
    /// The arrays that the kernel stored when it last ran.
    pub last: Option<Vec<Stored>>,
    /// The number of checked rewrites, and of checked results of `legalise`.
    pub checked: u64,
}

impl EachRewrite<'_> {
    /// Runs a kernel after the one before it, and compares the stored arrays.
    fn compare(&mut self, what: &str, before: &Run<'_>, after: &Run<'_>) -> std::result::Result<(), Diagnostic> {
        let fail = |why: String| changes(&format!("{what}{}", self.within), &why);
        let before = match self.last.take() {
            Some(last) => last,
            None => (self.run)(before).map_err(|e| fail(format!("it already trapped before: {e}")))?,
        };
        let now = (self.run)(after).map_err(|e| fail(format!("it traps now: {e}")))?;
        for (old, new) in before.iter().zip(&now) {
            let (name, old, new) = (&old.name, &old.buffer, &new.buffer);
            let d = widen::deviation(new, old);
            let bound = if old.dtype().is_float() { SLACK * widen::epsilon(old.dtype()) * d.scale } else { 0.0 };
            if d.error > bound {
                let (e, dtype) = (d.element, old.dtype());
                let (was, is) = (values::text(dtype, old.get(e)), values::text(dtype, new.get(e)));
                return Err(fail(format!("element {e} of `{name}` was {was} and is {is}")));
            }
        }
        self.last = Some(now);
        self.checked += 1;
        Ok(())
    }
}

/// The diagnostic of a rewrite that changes results.
pub(crate) fn changes(what: &str, why: &str) -> Diagnostic {
    Diagnostic::error(Code::InternalBug, format!("{what} changes the answer: {why}"))
}

/// A kernel of loop or tile IR, run on its evaluator.
pub(crate) fn placed(kernel: &LoopKernel) -> impl Fn(&Launch, &mut dyn Memory) -> std::result::Result<(), Trap> + '_ {
    |launch, memory| loops::eval::run(kernel, launch, memory, &mut Quiet)
}

impl Observer for EachRewrite<'_> {
    fn see(&mut self, event: &Event<'_>) -> std::result::Result<(), Diagnostic> {
        match event {
            Event::Loop(ran) | Event::Tile(ran) => match ran.after {
                Some(after) => self.compare(&format!("rule {}", ran.name), &placed(ran.before), &placed(after)),
                None => Ok(()),
            },
            Event::Legalised { placed: tile, kernel } => {
                let after = |launch: &Launch, memory: &mut dyn Memory| {
                    if kernel.threads == 1 {
                        return eval::run(kernel, tile, launch, memory, &mut Quiet);
                    }
                    let options = sim::Options::default();
                    sim::run(kernel, tile, launch, memory, &mut Quiet, &options)?.clean().map(drop)
                };
                self.compare("legalise", &placed(tile), &after)
            }
            _ => Ok(()),
        }
    }
}

/// A host that nobody listens to.
pub(crate) struct Quiet;
impl Host for Quiet {
    fn print(&mut self, _: [u32; 3], _: &str) {}
    fn interrupted(&self) -> bool {
        crate::system::signals::interrupted()
    }
}

impl Kernel<'_> {
    /// Compiles the kernel once more and runs the first and the last block of a launch before and after each rule and as
    /// kernel IR. Gives the number of rewrites that were checked.
    ///
    /// # Errors
    /// A diagnostic that names the first rule that changes the blocks' results.
    pub fn verify_each(&self, grid: [u32; 3], args: &mut [Arg<'_>]) -> Result<u64> {
        check_grid(grid)?;
        let bound = args::bind(self.name(), self.params(), args)?;
        let run = |run: &Run<'_>| self.results(&bound, grid, run);
        let mut observer = EachRewrite { run: &run, within: String::new(), last: None, checked: 0 };
        self.observe(&mut observer)?;
        Ok(observer.checked)
    }

    /// The arrays that two blocks of the kernel store, run on copies of the arguments.
    fn results(&self, bound: &Bound<'_>, grid: [u32; 3], run: &Run<'_>) -> std::result::Result<Vec<Stored>, String> {
        let mut stored = Vec::new();
        let mut slots = bound.slots.clone();
        let mut memory = RealMemory::new();
        for (i, (param, extent)) in self.params().iter().zip(&bound.extents).enumerate() {
            let (Some(e), ParamKind::Pointer(dtype)) = (extent, param.kind) else { continue };
            if bound.owner[i] != i {
                continue;
            }
            let elements = bound.elements(i, dtype).unwrap_or(0);
            let mut copy = Buffer::zeroed(dtype, &[elements]).map_err(|e| e.to_string())?;
            let len = copy.bytes().len().min(e.bytes as usize);
            // SAFETY: the extent is memory borrowed by `bound`, at least `len` bytes long.
            let original =
                unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(e.start as usize), len) };
            copy.bytes_mut()[..len].copy_from_slice(original);
            let start = copy.as_ptr();
            slots[i] = start.expose_provenance() as u64;
            // SAFETY: the copy lives until the run below has ended.
            unsafe { memory.register(&param.name, start, len as u64) };
            stored.push(Stored { name: param.name.clone(), buffer: copy });
        }
        // Who shares a buffer shares its copy.
        for (i, &owner) in bound.owner.iter().enumerate() {
            slots[i] = slots[owner];
        }
        for block in [[0; 3], grid.map(|g| g - 1)] {
            let launch =
                Launch { only_block: Some(block), budget: machine::budget(), ..Launch::new(grid, slots.clone()) };
            run(&launch, &mut memory).map_err(|t| t.message)?;
        }
        Ok(stored)
    }
}
