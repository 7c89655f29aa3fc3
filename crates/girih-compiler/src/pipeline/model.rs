//! The stages of a model above its kernels: Torch IR to Tensor IR to a plan.
//!
//! In: a graph that a front end built. Out: [`Model`]: the same in primitives, and the plan of its kernels in Loop IR;
//! [`lower_kernels`] lowers each kernel further.

use std::collections::BTreeSet;

use super::{Event, Lowered, Observer, Options, lower_loops, tell};
use crate::base::rule::{Log, Ran, Rewrites, Step};
use crate::base::{Code, Diagnostic, Frame};
use crate::graph::build::repeat::lift_all;
use crate::graph::decompose::{self, Failure};
use crate::graph::{Graph, channels_first, long_sorts, signed_bytes, simplify};
use crate::loops::ir::Kernel;
use crate::loops::model::{self, Plan, Step as Launch};
use crate::loops::print;
use crate::tile;
use crate::tile::schedule::Entry;
use crate::tile::target::Capability;

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

/// Lowers a captured graph to a plan. The plan is complete at any `--stop-after`: decompositions are always made, and
/// if fusion may not run, every operation has a kernel of its own.
pub fn lower_model(graph: &Graph, options: &Options, observer: &mut dyn Observer) -> Result<Model, Vec<Diagnostic>> {
    let mut rewrites = options.rewrites();
    // Values that a plan computes once stand in the graph around the loops, even if the rule that moves them there has
    // not run.
    let tensor = lift_all(simplified(graph, &mut rewrites, observer)?);
    tell(observer, Event::Begin("fusion"))?;
    let mut log = Log::default();
    let fuse = !rewrites.is_over();
    let workers = options.target.has(Capability::Workers);
    // Blocks of threads sort rows in the memory that they share.
    let parts = if workers || !fuse { None } else { long_sorts::in_parts(&tensor, &mut log) };
    // One instruction computes four products of an unsigned and a signed byte, but only two of signed bytes.
    let by_bytes = fuse && options.target.has(Capability::ProductsOfBytes) && options.context().knobs.pairs;
    let shifted = if by_bytes { signed_bytes::shifted(&tensor, &mut log) } else { None };
    let suited = parts.as_ref().or(shifted.as_ref()).unwrap_or(&tensor);
    let turned = if workers && fuse { channels_first::turned(suited, &mut log) } else { None };
    let suited = turned.as_ref().unwrap_or(suited);
    let outcome = model::lower(suited, &model::Options { fuse, workers }, &mut log);
    if fuse {
        tell(observer, Event::Fused { number: rewrites.count(), log: &log })?;
    }
    let plan = outcome?;
    let scheduled = schedule(&plan, options, &mut rewrites, observer)?;
    if let Some(schedule) = &options.schedule {
        let kernels = scheduled.load.iter().chain(&scheduled.steps).map(|step| step.kernel.name.as_str());
        schedule.check(&options.target, kernels)?;
    }
    Ok(Model { tensor, plan, scheduled, rewrites })
}

/// Runs the rules of Tile IR that look at all kernels of a plan.
pub fn schedule(
    plan: &Plan,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Plan, Vec<Diagnostic>> {
    let cx = options.context();
    if let Some(schedule) = &options.schedule
        && let Some(entries) = schedule.model()
    {
        match replay(entries, plan, &cx, rewrites, observer) {
            Ok(plan) => return Ok(plan),
            Err(all) => schedule.refused(all)?,
        }
    }
    tile::plan_rules(&cx.target).run(plan.clone(), &cx, rewrites, &mut |step| match step {
        Step::Begin(name) => tell(observer, Event::Begin(name)),
        Step::Ran(ran) => tell(observer, Event::Plan(&ran)),
    })
}

/// Runs the rules that a schedule names.
fn replay(
    entries: &[Entry],
    plan: &Plan,
    cx: &tile::Context,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Plan, Vec<Diagnostic>> {
    let mut now = plan.clone();
    for entry in entries.iter() {
        if rewrites.is_over() {
            break;
        }
        let (name, mut log) = (entry.name(), Log::default());
        tell(observer, Event::Begin(&name))?;
        let rule = entry.plan_rule(cx).map_err(|d| vec![d])?;
        let after = (rule.run)(&now, cx, &mut log).ok_or_else(|| vec![entry.idle(rule.name, &log)])?;
        let number = rewrites.count();
        tell(observer, Event::Plan(&Ran { name: &name, before: &now, after: Some(&after), log: &log, number }))?;
        now = after;
    }
    Ok(now)
}

/// Lowers each different kernel of a plan to Kernel IR, in the order of the plan; `each` gets them, with the step that comes first, and
/// `begin` the number of each step.
pub fn lower_kernels(
    plan: &Plan,
    options: &Options,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
    begin: &mut dyn FnMut(usize),
    each: &mut dyn FnMut(&Launch, Lowered),
) -> Result<(), Vec<Diagnostic>> {
    let mut seen = BTreeSet::new();
    for (at, step) in plan.load.iter().chain(&plan.steps).enumerate() {
        begin(at);
        if seen.insert(nameless(&step.kernel)) {
            tell(observer, Event::Kernel(&step.kernel.name))?;
            each(step, lower_loops(step.kernel.clone(), options, rewrites, observer)?);
        }
    }
    Ok(())
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
    print::print(&k, print::Dialect::Loop)
}

/// Torch IR to Tensor IR, simplified. All operations that cannot be lowered are reported together.
pub fn lower_tensor(graph: &Graph, options: &Options, observer: &mut dyn Observer) -> Result<Graph, Vec<Diagnostic>> {
    simplified(graph, &mut options.rewrites(), observer)
}

fn simplified(graph: &Graph, rewrites: &mut Rewrites, observer: &mut dyn Observer) -> Result<Graph, Vec<Diagnostic>> {
    tell(observer, Event::Begin("decompose"))?;
    let mut stopped = Ok(());
    let tensor = decompose::decompose(graph, &mut |applied| {
        if stopped.is_ok() {
            stopped = tell(observer, Event::Decomposed(applied));
        }
    })
    .map_err(|all| all.iter().map(refused).collect::<Vec<_>>())?;
    stopped?;
    tell(observer, Event::Begin("simplify"))?;
    simplify::rules().run(tensor, &(), rewrites, &mut |step| match step {
        Step::Begin(_) => Ok(()),
        Step::Ran(ran) => tell(observer, Event::Tensor(&ran)),
    })
}

/// Returns true if a graph contains operations of its source, which decompositions replace.
pub fn is_torch(graph: &Graph) -> bool {
    graph.has_source()
}

/// The reason why an operation of the model cannot be lowered; the operation has its name in the model.
fn refused(failure: &Failure) -> Diagnostic {
    let origin = &failure.origin;
    let name = origin.name.as_str();
    let named = if name.is_empty() { String::new() } else { format!(" `{name}`") };
    let known = decompose::rule(&failure.op).is_some();
    let code = if known { Code::ModelShape } else { Code::UnsupportedOperator };
    let mut d = Diagnostic::error(code, format!("{}{named}: {}", failure.op, failure.refusal.message));
    d = d.maybe_help(failure.refusal.help.as_deref());
    if let Some(place) = origin.place.clone() {
        d.frames = vec![Frame { place, function: None }].into();
    }
    d
}
