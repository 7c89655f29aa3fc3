//! A source through every IR, in the order of the IRs.
//!
//! ```text
//! torch ─ decompose ─► tensor ─ fuse ─► loop ─┐
//!                               cuda_tile ─ lift ─► loop ─ place ─► tile ─ legalise ─► kernel ─ source_text ─► c, cuda
//! ```
//!
//! In: a tile program or a model, and [`Options`]. Out: the source at each IR. Every line of [`compile`], [`planned`] and [`lowered`] is
//! one stage; the functions after them begin or end in the middle, for callers that keep kernels.

use std::collections::BTreeSet;

use super::kernel::{legalise, lift, place, splice};
use super::model::{decompose, fuse, schedule, simplify};
use super::{Event, Observer, Options, Passes};
use crate::base::rule::Rewrites;
use crate::base::{Code, Diagnostic};
use crate::graph::Graph;
use crate::graph::build::repeat::lift_all;
use crate::loops::ir::Kernel;
use crate::loops::model::{Plan, Step};
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::{cuda_tile, kernel};

/// A source, as its front end leaves it.
pub enum Source<'a> {
    /// An entry of a verified tile program.
    Program { module: &'a cuda_tile::ir::Module, entry: &'a str },
    /// A captured model.
    Model(&'a Graph),
    /// A model whose plan is known.
    Planned(&'a Model),
}

/// A source at each IR below its own.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The stages of a model above its kernels.
    pub model: Option<Model>,
    /// The kernel of a program, or the different kernels of a model in the order of its plan.
    pub kernels: Vec<Lowered>,
}

/// A model at the stages above its kernels.
#[derive(Clone, Debug)]
pub struct Model {
    /// Primitives only.
    pub tensor: Graph,
    /// Its kernels in Loop IR: open, and the same for all targets with workers that multiply signed bytes alike, and
    /// for all targets with blocks of threads.
    pub plan: Plan,
    /// The plan after this target's rules: with weights in panels, which other kernels write when the model is loaded.
    pub scheduled: Plan,
    /// The rewrites made so far, and the number that the kernels may still take.
    pub rewrites: Rewrites,
}

/// A kernel at each stage below `cuda_tile`.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub loops: Kernel,
    pub tile: Kernel,
    pub kernel: kernel::ir::Kernel,
}

/// Takes a source through every IR.
///
/// # Errors
/// What the source, a schedule or the target does not allow, and errors of the observer.
pub fn compile(
    source: Source<'_>,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Compiled, Vec<Diagnostic>> {
    let mut rewrites = options.rewrites();
    let passes = &mut Passes { options, rewrites: &mut rewrites, observer };
    let model = match source {
        Source::Program { module, entry } => {
            let kernel = lift(module, entry, passes)?; // cuda_tile to loop
            return Ok(Compiled { model: None, kernels: vec![lowered(kernel, passes)?] });
        }
        Source::Model(torch) => planned(torch, passes)?,
        Source::Planned(model) => model.clone(),
    };
    *passes.rewrites = model.rewrites.clone();
    let kernels = kernels(&model.scheduled, passes)?;
    Ok(Compiled { model: Some(model), kernels })
}

/// The stages of a model above its kernels.
fn planned(torch: &Graph, passes: &mut Passes<'_>) -> Result<Model, Vec<Diagnostic>> {
    let tensor = decompose(torch, passes)?; // torch to tensor
    let tensor = simplify(tensor, passes)?;
    // Values that a plan computes once stand in the graph around the loops, even if the rule that moves them there has not run.
    let tensor = lift_all(tensor);
    let plan = fuse(&tensor, passes)?; // tensor to loop
    let scheduled = schedule(&plan, passes)?;
    if let Some(schedule) = &passes.options.schedule {
        let kernels = scheduled.load.iter().chain(&scheduled.steps).map(|step| step.kernel.name.as_str());
        schedule.check(&passes.options.target, kernels)?;
    }
    Ok(Model { tensor, plan, scheduled, rewrites: passes.rewrites.clone() })
}

/// The stages of a kernel.
fn lowered(kernel: Kernel, passes: &mut Passes<'_>) -> Result<Lowered, Vec<Diagnostic>> {
    let loops = splice(kernel, passes)?;
    let tile = place(&loops, passes)?; // loop to tile
    let kernel = legalise(&tile, passes)?; // tile to kernel
    Ok(Lowered { loops, tile, kernel })
}

/// The different kernels of a plan, in its order.
fn kernels(plan: &Plan, passes: &mut Passes<'_>) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    let (mut seen, mut all) = (BTreeSet::new(), vec![]);
    let of = plan.load.len() + plan.steps.len();
    for (at, Step { kernel, .. }) in plan.load.iter().chain(&plan.steps).enumerate() {
        if seen.insert(nameless(kernel)) {
            passes.tell(Event::Kernel { name: &kernel.name, at: at + 1, of })?;
            all.push(lowered(sound(kernel.clone())?, passes)?);
        }
    }
    Ok(all)
}

/// The kernel, unless the stage that made it is wrong.
fn sound(kernel: Kernel) -> Result<Kernel, Vec<Diagnostic>> {
    let Some(first) = verify(&kernel, Dialect::Loop).into_iter().next() else { return Ok(kernel) };
    let bug = Diagnostic::error(Code::InternalBug, format!("a kernel does not verify: {}", first.message));
    Err(vec![bug.help(format!("the kernel:\n{}", print(&kernel, Dialect::Loop)))])
}

/// The kernel of an entry of a verified module.
///
/// # Errors
/// As [`compile`].
pub fn lower(
    module: &cuda_tile::ir::Module,
    entry: &str,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Lowered, Vec<Diagnostic>> {
    let compiled = compile(Source::Program { module, entry }, options, observer)?;
    let none = || vec![Diagnostic::error(Code::InternalBug, format!("`{entry}` was compiled to no kernel"))];
    compiled.kernels.into_iter().next().ok_or_else(none)
}

/// A captured graph as a plan of kernels in Loop IR.
pub fn lower_model(graph: &Graph, options: &Options, observer: &mut dyn Observer) -> Result<Model, Vec<Diagnostic>> {
    planned(graph, &mut Passes { options, rewrites: &mut options.rewrites(), observer })
}

/// A captured graph in primitives.
pub fn lower_tensor(graph: &Graph, options: &Options, observer: &mut dyn Observer) -> Result<Graph, Vec<Diagnostic>> {
    let passes = &mut Passes { options, rewrites: &mut options.rewrites(), observer };
    simplify(decompose(graph, passes)?, passes)
}

/// The kernel of a step of a model, whose stages share `rewrites`.
pub fn lower_loops(
    kernel: Kernel,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Lowered, Vec<Diagnostic>> {
    lowered(sound(kernel)?, &mut Passes { options, rewrites, observer })
}

/// The different kernels of a plan, in its order.
pub fn lower_kernels(
    plan: &Plan,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    kernels(plan, &mut Passes { options, rewrites, observer })
}

/// A plan after the rules that look at all kernels of a model together.
pub fn schedule_plan(
    plan: &Plan,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Plan, Vec<Diagnostic>> {
    schedule(plan, &mut Passes { options, rewrites, observer })
}

/// A kernel as text without the names people gave: equal for kernels that compute the same alike.
pub fn nameless(kernel: &Kernel) -> String {
    let mut k = kernel.clone();
    k.name = "k".into();
    for param in &mut k.params {
        param.name.clear();
    }
    let vals: Vec<_> = k.vals.keys().collect();
    vals.into_iter().for_each(|v| k.vals[v].name.clear());
    let axes: Vec<_> = k.axes.keys().collect();
    axes.into_iter().for_each(|a| k.axes[a] = Default::default());
    let bufs: Vec<_> = k.bufs.keys().collect();
    bufs.into_iter().for_each(|b| k.bufs[b].name.clear());
    print(&k, Dialect::Loop)
}
