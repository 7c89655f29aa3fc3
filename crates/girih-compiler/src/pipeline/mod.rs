//! The ordered list of stages and passes, and the loop that runs them.
//!
//! ```text
//! text ─ front ─► cuda_tile ─ lift ─► loop ─ loops::fuse::rules ─► loop ─ tile::rules ─► tile ─ legalise ─► kernel ─ emit ─► c
//! model ─ source ─► torch ─ graph::decompose ─► tensor ─ loops::model ─► loop, a kernel for each step, and on as above
//! ```
//!
//! In: text and [`Options`]. Out: every stage as a value. An [`Observer`] gets each event on the way: each rule with
//! the sites where it applied and its refusals. Clocks and files belong to the observer.

mod model;
mod reference;
pub mod trace;

use std::sync::Arc;

use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Ran, Rewrites, Rules, Step};
use crate::base::{Code, Diagnostic, Severity, Span};
use crate::graph::{Graph, decompose};
use crate::loops::model::Plan;
use crate::tile::knobs::Knobs;
use crate::tile::schedule::{Entry, Schedule, Writer};
use crate::tile::target::{Capability, MemoryKind, Target};
use crate::{cuda_tile, emit, kernel, loops, tile, ttir};

pub use model::{Model, is_torch, lower_kernels, lower_model, lower_tensor, nameless, schedule};
pub use reference::{Description, descriptions, first_sentence};

/// A stage that prints.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// A model in the operations of its source.
    Torch,
    /// A model in primitives.
    Tensor,
    /// A tile program.
    CudaTile,
    Loop,
    /// The steps that make Tile IR of Loop IR.
    Schedule,
    Tile,
    Kernel,
    /// The source for a CPU.
    C,
    /// The source for a GPU, NVIDIA's PTX for it, and machine code.
    Cuda,
    Ptx,
    Sass,
}

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 11] = [
        Stage::Torch,
        Stage::Tensor,
        Stage::CudaTile,
        Stage::Loop,
        Stage::Schedule,
        Stage::Tile,
        Stage::Kernel,
        Stage::C,
        Stage::Cuda,
        Stage::Ptx,
        Stage::Sass,
    ];
    /// The stages of a tile program on a CPU.
    pub const PROGRAM: [Stage; 5] = [Stage::CudaTile, Stage::Loop, Stage::Tile, Stage::Kernel, Stage::C];
    /// The stages of a model on a CPU.
    pub const MODEL: [Stage; 6] = [Stage::Torch, Stage::Tensor, Stage::Loop, Stage::Tile, Stage::Kernel, Stage::C];

    /// The stages of a tile program, or of a model, for a target, as far as Girih makes them itself.
    pub fn of(target: &Target, model: bool) -> &'static [Stage] {
        const PROGRAM: &[Stage] = &[Stage::CudaTile, Stage::Loop, Stage::Tile, Stage::Kernel, Stage::Cuda];
        const MODEL: &[Stage] = &[Stage::Torch, Stage::Tensor, Stage::Loop, Stage::Tile, Stage::Kernel, Stage::Cuda];
        match (target.has(Capability::Threads), model) {
            (false, false) => &Stage::PROGRAM,
            (false, true) => &Stage::MODEL,
            (true, false) => PROGRAM,
            (true, true) => MODEL,
        }
    }

    /// Returns true if the stage is made of all kernels together, after Kernel IR.
    pub fn is_source(self) -> bool {
        matches!(self, Stage::C | Stage::Cuda | Stage::Ptx | Stage::Sass)
    }

    /// The name that `--ir` takes.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Torch => "torch",
            Stage::Tensor => "tensor",
            Stage::CudaTile => "cuda_tile",
            Stage::Loop => "loop",
            Stage::Schedule => "schedule",
            Stage::Tile => "tile",
            Stage::Kernel => "kernel",
            Stage::C => "c",
            Stage::Cuda => "cuda",
            Stage::Ptx => "ptx",
            Stage::Sass => "sass",
        }
    }

    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// The choices of a compilation.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    pub knobs: Knobs,
    pub assume: Assumptions,
    /// Bounds-check every memory access of the native code.
    pub check: bool,
    /// The simulator runs the kernel: an access past the end of the block's memory stops it, as where accesses are checked. All
    /// other memory the simulator watches itself.
    pub simulated: bool,
    /// Stop rewriting after this many rewrites: the handle for bisecting a miscompile.
    pub stop_after: Option<usize>,
    /// Is replayed in place of the rules' choices.
    pub schedule: Option<Arc<Schedule>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            target: Target::default(),
            knobs: Knobs::default(),
            assume: Assumptions { no_wrap: true, no_alias: true },
            check: false,
            simulated: false,
            stop_after: None,
            schedule: None,
        }
    }
}

impl Options {
    /// The count of rewrites of one compilation.
    pub fn rewrites(&self) -> Rewrites {
        Rewrites::at_most(self.stop_after)
    }
    pub fn context(&self) -> tile::Context {
        tile::Context {
            target: self.target.clone(),
            knobs: self.knobs.clone(),
            check: self.check || self.simulated,
            assume: self.assume,
        }
    }
}

/// An event of a compilation.
pub enum Event<'a> {
    /// A stage, or a rule of it, is about to run.
    Begin(&'a str),
    /// An operation of a model was replaced by simpler ones.
    Decomposed(&'a decompose::Applied<'a>),
    /// A rule of Tensor IR ran.
    Tensor(&'a Ran<'a, Graph>),
    /// The operations of a model were divided among kernels: the rewrite of this number.
    Fused { number: usize, log: &'a Log },
    /// A rule of Tile IR looked at all kernels of a model.
    Plan(&'a Ran<'a, Plan>),
    /// The kernel of a step of a model is about to be lowered.
    Kernel(&'a str),
    /// A rule of Loop IR ran.
    Loop(&'a Ran<'a, loops::ir::Kernel>),
    /// A rule of Tile IR ran.
    Tile(&'a Ran<'a, loops::ir::Kernel>),
    /// A placed kernel became kernel IR.
    Legalised { placed: &'a loops::ir::Kernel, kernel: &'a kernel::ir::Kernel },
}

/// Gets the events of a compilation.
pub trait Observer {
    /// An error stops the compilation: the observer found that the answer changed.
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic>;
    /// True if logs should state the primitives that rules are made of.
    fn wants_steps(&self) -> bool {
        false
    }
}

/// An observer that writes the schedule.
impl Observer for Writer {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        match event {
            Event::Plan(ran) => self.plan(bare(ran.name), ran.log, ran.after.is_some()),
            Event::Tile(ran) => self.rule(bare(ran.name), ran),
            _ => {}
        }
        Ok(())
    }
    fn wants_steps(&self) -> bool {
        true
    }
}

/// `blockify` of `t:003_blockify`.
fn bare(name: &str) -> &str {
    name.split_once('_').map_or(name, |(_, name)| name)
}

/// Observes nothing.
pub struct Silent;
impl Observer for Silent {
    fn see(&mut self, _: &Event<'_>) -> Result<(), Diagnostic> {
        Ok(())
    }
}

/// Passes an event to an observer; its error ends the compilation.
fn tell(observer: &mut dyn Observer, event: Event<'_>) -> Result<(), Vec<Diagnostic>> {
    observer.see(&event).map_err(|d| vec![d])
}

/// A verified tile program, with the warnings about its text.
pub struct Front {
    pub module: cuda_tile::ir::Module,
    pub warnings: Vec<Diagnostic>,
}

/// Parses and verifies a tile program. Errors come with all diagnostics of the file, including warnings.
pub fn front(text: &str) -> Result<Front, Vec<Diagnostic>> {
    if ttir::is_ttir(text) {
        return verified(ttir::read(text)?, vec![]);
    }
    let parsed = cuda_tile::parse::parse(text);
    let mut diagnostics = parsed.diagnostics;
    let Some(module) = parsed.module else {
        let found = parsed.partial.iter().flat_map(cuda_tile::verify);
        let wrong = |d: &&Diagnostic| d.is_error() && d.code != Code::NoModule;
        let unread: Vec<Diagnostic> = diagnostics.iter().filter(wrong).cloned().collect();
        let known = |d: &Diagnostic| if parsed.complete { d.is_error() } else { holds_of_the_whole(d) };
        diagnostics.extend(found.filter(|d| known(d) && !meets(d, &unread)));
        diagnostics.sort_by_key(|d| d.span.map(|s| s.start));
        return Err(diagnostics);
    };
    verified(module, diagnostics)
}

/// Reads and verifies bytecode. Spans are byte ranges of the file.
pub fn front_bytecode(bytes: &[u8]) -> Result<Front, Vec<Diagnostic>> {
    let read = cuda_tile::bytecode::read(bytes)?;
    verified(read.module, vec![])
}

/// The module with the warnings about it, if the verifier finds no error.
fn verified(module: cuda_tile::ir::Module, mut diagnostics: Vec<Diagnostic>) -> Result<Front, Vec<Diagnostic>> {
    diagnostics.extend(cuda_tile::verify(&module));
    add_frames(&module, &mut diagnostics);
    diagnostics.sort_by_key(|d| d.span.map(|s| s.start));
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        Err(diagnostics)
    } else {
        Ok(Front { module, warnings: diagnostics })
    }
}

/// Adds to each diagnostic at an operation the place in the user's files that the operation comes from.
pub fn add_frames(module: &cuda_tile::ir::Module, diagnostics: &mut [Diagnostic]) {
    if diagnostics.is_empty() {
        return;
    }
    let mut ops: Vec<_> = module.funcs.iter().flat_map(|f| f.ops.values()).map(|op| (op.span, &op.loc)).collect();
    ops.sort_by_key(|(span, _)| *span);
    for d in diagnostics.iter_mut().filter(|d| d.frames.is_empty()) {
        let found = d.span.and_then(|span| ops.binary_search_by_key(&span, |(s, _)| *s).ok()).and_then(|i| ops.get(i));
        if let Some((_, loc)) = found {
            d.frames = loc.frames().into();
        }
    }
}

/// Returns true if an error in the readable part of a program would also be found in the whole program: it is about one
/// statement, not about a thing that a missing statement might have defined or ended.
fn holds_of_the_whole(d: &Diagnostic) -> bool {
    let about_others = [Code::BadTerminator, Code::BadSymbol, Code::BadArity, Code::TypeMismatch, Code::UndefinedValue];
    d.is_error() && d.span.is_some_and(|s| s.start < s.end) && !about_others.contains(&d.code)
}

/// Returns true if one of the others lies within the diagnostic's span: then an error of the statement was already
/// reported.
fn meets(d: &Diagnostic, others: &[Diagnostic]) -> bool {
    let within = |inner: Span| d.span.is_some_and(|outer| outer.start <= inner.start && inner.start < outer.end);
    others.iter().any(|other| other.span.is_some_and(within))
}

/// A kernel at each stage below `cuda_tile`.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub loops: loops::ir::Kernel,
    pub tile: loops::ir::Kernel,
    pub kernel: kernel::ir::Kernel,
}

/// Lowers one entry of a verified module to kernel IR.
pub fn lower(
    module: &cuda_tile::ir::Module,
    entry: &str,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Lowered, Vec<Diagnostic>> {
    tell(observer, Event::Begin("lift"))?;
    if let Some(schedule) = &options.schedule {
        schedule.check(&options.target, std::iter::once(entry))?;
    }
    let lift = loops::lift::Options { check: options.check };
    let lifted = loops::lift::lift_with(module, entry, lift).map_err(|mut diagnostics| {
        add_frames(module, &mut diagnostics);
        diagnostics
    })?;
    lower_kernel(lifted, options, &mut options.rewrites(), observer)
}

/// Lowers a kernel that is in Loop IR already, such as a step of a model, whose stages share `rewrites`.
pub fn lower_loops(
    kernel: loops::ir::Kernel,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Lowered, Vec<Diagnostic>> {
    if let Some(first) = loops::verify::verify(&kernel, loops::print::Dialect::Loop).first() {
        let bug = Diagnostic::error(Code::InternalBug, format!("a kernel does not verify: {}", first.message));
        return Err(vec![
            bug.help(format!("the kernel:\n{}", loops::print::print(&kernel, loops::print::Dialect::Loop))),
        ]);
    }
    lower_kernel(kernel, options, rewrites, observer)
}

fn lower_kernel(
    kernel: loops::ir::Kernel,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Lowered, Vec<Diagnostic>> {
    use loops::print::Dialect as Form;
    let loops =
        run(&loops::fuse::rules(), kernel, &options.assume, rewrites, observer, Form::Loop, |r| Event::Loop(r))?;
    let cx = options.context();
    let followed = match &options.schedule {
        Some(schedule) => follow(schedule, &loops, &cx, rewrites, observer)?,
        None => None,
    };
    let tile = match followed {
        Some(tile) => tile,
        None => {
            let rules = Rules { record: observer.wants_steps(), ..tile::rules(&cx.target) };
            run(&rules, loops.clone(), &cx, rewrites, observer, Form::Tile, |r| Event::Tile(r))?
        }
    };
    tell(observer, Event::Begin("legalise"))?;
    let shared = options.target.bytes_of(MemoryKind::Shared);
    let warp = match options.target.axes.lanes {
        0 | 1 => kernel::legalise::Options::default().warp,
        lanes => lanes,
    };
    let apart = options.assume.no_alias;
    let form = kernel::legalise::Options { check: options.check, shared, warp, apart };
    let kernel = kernel::legalise::legalise(&tile, &form)
        .map_err(|sentence| vec![at_largest_alloca(Diagnostic::error(Code::CannotLower, sentence), &tile)])?;
    if let Some(first) = kernel::verify::verify(&kernel).first() {
        let bug = Diagnostic::error(Code::InternalBug, format!("legalise made IR that does not verify: {first}"));
        return Err(vec![bug.help(format!("the kernel IR:\n{}", kernel::print::print(&kernel)))]);
    }
    tell(observer, Event::Legalised { placed: &tile, kernel: &kernel })?;
    Ok(Lowered { loops, tile, kernel })
}

/// Does what a schedule says in place of the rules' choices; `None` where it says nothing of the kernel, or is a kept one that
/// cannot be followed.
fn follow(
    schedule: &Schedule,
    kernel: &loops::ir::Kernel,
    cx: &tile::Context,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Option<loops::ir::Kernel>, Vec<Diagnostic>> {
    let Some(entries) = schedule.of(&kernel.name) else { return Ok(None) };
    let replayed = replay(entries, kernel.clone(), cx, rewrites, observer);
    replayed.map(Some).or_else(|all| schedule.refused(all).map(|()| None))
}

fn replay(
    entries: &[Entry],
    kernel: loops::ir::Kernel,
    cx: &tile::Context,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<loops::ir::Kernel, Vec<Diagnostic>> {
    let mut now = kernel;
    for entry in entries {
        if rewrites.is_over() {
            break;
        }
        let (name, mut log) = (entry.name(), Log { record: observer.wants_steps(), ..Log::default() });
        tell(observer, Event::Begin(&name))?;
        let after = entry.replay(&now, cx, &mut log).map_err(|d| vec![d])?;
        if let Some(first) = loops::verify::verify(&after, loops::print::Dialect::Tile).first() {
            return Err(vec![entry.wrong(format!("it makes a kernel that breaks a rule: {}", first.message))]);
        }
        let number = rewrites.count();
        tell(observer, Event::Tile(&Ran { name: &name, before: &now, after: Some(&after), log: &log, number }))?;
        possible(&log)?;
        now = after;
    }
    Ok(now)
}

/// Runs the rules of a stage on a kernel. A rule whose result does not verify is a bug of ours, named by the rule.
fn run<C>(
    rules: &Rules<loops::ir::Kernel, C>,
    kernel: loops::ir::Kernel,
    cx: &C,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
    form: loops::print::Dialect,
    event: for<'r> fn(&'r Ran<'r, loops::ir::Kernel>) -> Event<'r>,
) -> Result<loops::ir::Kernel, Vec<Diagnostic>> {
    rules.run(kernel, cx, rewrites, &mut |step| match step {
        Step::Begin(name) => tell(observer, Event::Begin(name)),
        Step::Ran(ran) => {
            if let Some(after) = ran.after
                && let Some(first) = loops::verify::verify(after, form).first()
            {
                let message = format!("rule {} made IR that does not verify: {}", ran.name, first.message);
                let help = format!("the IR after the rule:\n{}", loops::print::print(after, form));
                return Err(vec![Diagnostic::error(Code::InternalBug, message).help(help)]);
            }
            tell(observer, event(&ran))?;
            possible(ran.log)
        }
    })
}

/// Refuses requests of knobs that the target cannot satisfy.
fn possible(log: &Log) -> Result<(), Vec<Diagnostic>> {
    let said = log.impossible.iter().map(|why| Diagnostic::error(Code::CannotLower, why.clone()));
    let said: Vec<Diagnostic> = said.collect();
    if said.is_empty() { Ok(()) } else { Err(said) }
}

/// Places a refusal at the kernel's largest alloca, if it has one.
fn at_largest_alloca(refusal: Diagnostic, kernel: &loops::ir::Kernel) -> Diagnostic {
    let mut most = None;
    loops::walk::visit(&kernel.body, &mut |s| {
        if let loops::ir::Stmt::Alloca { bytes, site, .. } = s
            && most.is_none_or(|(b, _)| b < *bytes)
        {
            most = Some((*bytes, *site));
        }
    });
    match most.and_then(|(_, site)| kernel.sites.get(site)) {
        Some(site) => Diagnostic { span: site.span, ..refusal.from(site.frames.clone()) },
        None => refusal,
    }
}

/// The C of several kernels as one translation unit, with its lines; kernel `n` is exported as `girih_<n>`.
///
/// # Errors
/// A kernel of several threads, or a statement that only such kernels have.
pub fn emit_c(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<emit::Lined, Diagnostic> {
    emit::c::emit(kernels, target).map_err(|refusal| no_source("C", kernels, &refusal))
}

/// The same for code that calls the kernels and follows in the same text: the functions are private to it.
///
/// # Errors
/// As [`emit_c`].
pub fn emit_library(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<String, Diagnostic> {
    emit::c::emit_library(kernels, target).map_err(|refusal| no_source("C", kernels, &refusal))
}

/// The CUDA C++ of several kernels as one translation unit.
///
/// # Errors
/// A statement without a form in CUDA, or sizes that the target does not hold.
pub fn emit_cuda(kernels: &[&kernel::ir::Kernel], target: &Target) -> Result<emit::cuda::Unit, Diagnostic> {
    emit::cuda::emit(kernels, target).map_err(|refusal| no_source("CUDA", kernels, &refusal))
}

fn no_source(language: &str, kernels: &[&kernel::ir::Kernel], refusal: &emit::Refusal) -> Diagnostic {
    let name = kernels.get(refusal.kernel).map_or("?", |k| k.name.as_str());
    Diagnostic::error(Code::CannotLower, format!("kernel `{name}` has no {language}: {}", refusal.message))
}
