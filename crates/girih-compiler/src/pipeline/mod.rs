//! The stages in order: `front` makes modules of files, `compile` takes a source through every IR, by the stages of `model` and `kernel`,
//! and `source_text` prints C or CUDA.
//!
//! ```text
//! text ─ front ─► cuda_tile ─ lift ─► loop ─ loops::fuse::rules ─► loop ─ tile::rules ─► tile ─ legalise ─► kernel ─ emit ─► c
//! model ─ source ─► torch ─ graph::decompose ─► tensor ─ loops::model ─► loop, a kernel for each step, and on as above
//! ```
//!
//! In: text and [`Options`]. Out: every stage as a value. An [`Observer`] gets each event on the way: each rule with
//! the sites where it applied and its refusals. Clocks and files belong to the observer.

mod compile;
mod front;
mod kernel;
mod model;
mod reference;
mod source_text;
pub mod trace;

use std::sync::Arc;

use crate::base::Diagnostic;
use crate::base::launch::Assumptions;
use crate::base::rule::{Log, Ran, Rewrites};
use crate::graph::{Graph, decompose};
use crate::kernel::ir::Kernel;
use crate::loops::model::Plan;
use crate::tile::knobs::Knobs;
use crate::tile::schedule::{Schedule, Writer};
use crate::tile::target::{Capability, Target};
use crate::{loops, tile};

pub use compile::{
    Compiled, Lowered, Model, Source, compile, lower, lower_kernels, lower_loops, lower_model, lower_tensor, nameless,
    schedule_plan,
};
pub use front::{Front, add_frames, front, front_bytecode};
pub use reference::{Description, descriptions, first_sentence};
pub use source_text::{emit_c, emit_cuda, emit_library};

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
    /// The kernel of a step of a model is about to be lowered: step `at` of `of`, from 1.
    Kernel { name: &'a str, at: usize, of: usize },
    /// A rule of Loop IR ran.
    Loop(&'a Ran<'a, loops::ir::Kernel>),
    /// A rule of Tile IR ran.
    Tile(&'a Ran<'a, loops::ir::Kernel>),
    /// A placed kernel became kernel IR.
    Legalised { placed: &'a loops::ir::Kernel, kernel: &'a Kernel },
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
            Event::Plan(ran) => self.plan(bare(ran.name), ran),
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

/// The state that all stages of a compilation share.
struct Passes<'a> {
    options: &'a Options,
    rewrites: &'a mut Rewrites,
    observer: &'a mut dyn Observer,
}

impl Passes<'_> {
    fn tell(&mut self, event: Event<'_>) -> Result<(), Vec<Diagnostic>> {
        tell(self.observer, event)
    }
}

/// Returns true if a graph contains operations of its source, which decompositions replace.
pub fn is_torch(graph: &Graph) -> bool {
    graph.has_source()
}
