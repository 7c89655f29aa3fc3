//! Observers of a compilation: each rule checked by running the kernel before and after it.

use girih_compiler::base::host::Host;
use girih_compiler::base::launch::{Launch, Trap};
use girih_compiler::base::memory::Memory;
use girih_compiler::base::rule::Log;
use girih_compiler::base::{Code, Diagnostic};
use girih_compiler::graph::decompose::Applied;
use girih_compiler::kernel::{eval, ir};
use girih_compiler::loops;
use girih_compiler::loops::ir::Kernel as LoopKernel;
use girih_compiler::pipeline::trace::Trace;
use girih_compiler::pipeline::{GraphEvent, Observer, RuleEvent};
use std::time::Instant;

use crate::args::{self, Arg, Bound, ParamKind};
use crate::buffer::Buffer;
use crate::error::Result;
use crate::launch::check_grid;
use crate::machine;
use crate::program::Kernel;
use crate::widen;

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
    fn begin(&mut self, _what: &str) {
        self.began = Instant::now();
    }
    fn decomposed(&mut self, applied: &Applied<'_>) {
        self.trace.decomposed(applied);
    }
    fn simplified(&mut self, event: &GraphEvent<'_>) -> std::result::Result<(), Diagnostic> {
        self.trace.simplified(event)
    }
    fn fused(&mut self, number: usize, log: &Log) {
        self.trace.fused(number, log);
    }
    fn planned(&mut self, rule: &str, number: Option<usize>, log: &Log) {
        self.trace.planned(rule, number, log);
    }
    fn kernel(&mut self, name: &str) {
        self.trace.kernel(name);
    }
    fn rule(&mut self, event: &RuleEvent<'_>) -> std::result::Result<(), Diagnostic> {
        let took = self.began.elapsed();
        self.trace.rule(event)?;
        if !self.trace.full {
            self.trace.note(&format!("{:.2} ms", took.as_secs_f64() * 1e3));
        }
        Ok(())
    }
}

/// How far a rule that reassociates a float reduction may move a result, in units of the type's epsilon times the
/// largest value.
const SLACK: f64 = 256.0;

/// Runs the first and the last block of a launch on the evaluators before and after each rule and as kernel IR, and stops
/// the compilation at the first step that changes what they store.
pub struct VerifyEach<'a> {
    kernel: &'a Kernel<'a>,
    bound: Bound<'a>,
    grid: [u32; 3],
    /// What the kernel stored when it last ran: one buffer per pointer parameter.
    last: Option<Vec<Option<Buffer>>>,
    /// Rules that were checked, and what `legalise` made.
    pub checked: u64,
}

impl<'a> VerifyEach<'a> {
    pub fn new(kernel: &'a Kernel<'a>, grid: [u32; 3], args: &'a mut [Arg<'_>]) -> Result<VerifyEach<'a>> {
        check_grid(grid)?;
        let bound = args::bind(kernel.name(), kernel.params(), args)?;
        Ok(VerifyEach { kernel, bound, grid, last: None, checked: 0 })
    }

    /// What the kernel stores, run on copies of the arguments.
    fn results(&self, run: &Run<'_>) -> std::result::Result<Vec<Option<Buffer>>, String> {
        let mut copies = Vec::new();
        let mut slots = self.bound.slots.clone();
        let mut memory = crate::memory::RealMemory::new();
        for (i, (param, extent)) in self.kernel.params().iter().zip(&self.bound.extents).enumerate() {
            let (Some(e), ParamKind::Pointer(dtype)) = (extent, param.kind) else {
                copies.push(None);
                continue;
            };
            if self.bound.owner[i] != i {
                copies.push(None);
                continue;
            }
            let elements = self.bound.elements(i, dtype).unwrap_or(0);
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
            copies.push(Some(copy));
        }
        // Who shares a buffer shares its copy.
        for (i, &owner) in self.bound.owner.iter().enumerate() {
            slots[i] = slots[owner];
        }
        let last = self.grid.map(|g| g - 1);
        for block in [[0; 3], last] {
            let launch =
                Launch { only_block: Some(block), budget: machine::budget(), ..Launch::new(self.grid, slots.clone()) };
            run(&launch, &mut memory).map_err(|t| t.message)?;
        }
        Ok(copies)
    }

    /// Runs a kernel after the one before it, and compares what they store.
    fn compare(&mut self, what: &str, before: &Run<'_>, after: &Run<'_>) -> std::result::Result<(), Diagnostic> {
        let fail = |why: String| Diagnostic::error(Code::InternalBug, format!("{what} changes the answer: {why}"));
        let before = match self.last.take() {
            Some(last) => last,
            None => self.results(before).map_err(|e| fail(format!("it already trapped before: {e}")))?,
        };
        let now = self.results(after).map_err(|e| fail(format!("it traps now: {e}")))?;
        for (param, pair) in self.kernel.params().iter().zip(before.iter().zip(&now)) {
            let (Some(old), Some(new)) = pair else { continue };
            let d = widen::deviation(new, old);
            let bound = if old.dtype().is_float() { SLACK * widen::epsilon(old.dtype()) * d.scale } else { 0.0 };
            if d.error > bound {
                let (e, dtype) = (d.element, old.dtype());
                let (was, is) = (crate::values::text(dtype, old.get(e)), crate::values::text(dtype, new.get(e)));
                return Err(fail(format!("element {e} of `{}` was {was} and is {is}", param.name)));
            }
        }
        self.last = Some(now);
        self.checked += 1;
        Ok(())
    }
}

/// Runs a kernel of some IR.
type Run<'r> = dyn Fn(&Launch, &mut dyn Memory) -> std::result::Result<(), Trap> + 'r;

fn placed(kernel: &LoopKernel) -> impl Fn(&Launch, &mut dyn Memory) -> std::result::Result<(), Trap> + '_ {
    |launch, memory| loops::eval::run(kernel, launch, memory, &mut Quiet)
}

impl Observer for VerifyEach<'_> {
    fn rule(&mut self, event: &RuleEvent<'_>) -> std::result::Result<(), Diagnostic> {
        let Some(after) = event.after else { return Ok(()) };
        let what = format!("rule {}:{}", event.letter.text(), event.name);
        self.compare(&what, &placed(event.before), &placed(after))
    }

    fn legalised(&mut self, tile: &LoopKernel, kernel: &ir::Kernel) -> std::result::Result<(), Diagnostic> {
        let after = |launch: &Launch, memory: &mut dyn Memory| eval::run(kernel, tile, launch, memory, &mut Quiet);
        self.compare("legalise", &placed(tile), &after)
    }
}

struct Quiet;
impl Host for Quiet {
    fn print(&mut self, _: [u32; 3], _: &str) {}
    fn interrupted(&self) -> bool {
        crate::signals::interrupted()
    }
}
