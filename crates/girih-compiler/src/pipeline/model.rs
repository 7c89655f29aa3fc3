//! The stages of a model above its kernels: Torch IR to Tensor IR, Tensor IR to a plan of kernels in Loop IR.
//!
//! In: a graph that a front end built. Out: the same in primitives, and the plan of its kernels. A plan is complete at any
//! `--stop-after`: decompositions are always made, and if fusion may not run, every operation has a kernel of its own.

use super::{Event, Passes, tell};
use crate::base::rule::{Log, Ran, Rules, Step};
use crate::base::{Code, Diagnostic, Frame};
use crate::graph::decompose::{self, Failure};
use crate::graph::{Graph, channels_first, long_sorts, scaled_weights, scatter_parts, signed_bytes, simplify};
use crate::loops::model::{self, Plan};
use crate::tile;
use crate::tile::schedule::Entry;
use crate::tile::target::Capability;

/// The graph in primitives. All operations that cannot be lowered are reported together.
pub fn decompose(torch: &Graph, passes: &mut Passes<'_>) -> Result<Graph, Vec<Diagnostic>> {
    passes.tell(Event::Begin("decompose"))?;
    let mut stopped = Ok(());
    let tensor = decompose::decompose(torch, &mut |applied| {
        if stopped.is_ok() {
            stopped = passes.tell(Event::Decomposed(applied));
        }
    })
    .map_err(|all| all.iter().map(refused).collect::<Vec<_>>())?;
    stopped.map(|()| tensor)
}

/// The graph after the rules of Tensor IR.
pub fn simplify(tensor: Graph, passes: &mut Passes<'_>) -> Result<Graph, Vec<Diagnostic>> {
    passes.tell(Event::Begin("simplify"))?;
    let Passes { rewrites, observer, .. } = passes;
    simplify::rules().run(tensor, &(), rewrites, &mut |step| match step {
        Step::Begin(_) => Ok(()),
        Step::Ran(ran) => tell(*observer, Event::Tensor(&ran)),
    })
}

/// The graph in the form that the target computes fastest, divided among kernels.
pub fn fuse(tensor: &Graph, passes: &mut Passes<'_>) -> Result<Plan, Vec<Diagnostic>> {
    passes.tell(Event::Begin("fusion"))?;
    let (options, mut log) = (passes.options, Log::default());
    let fuse = !passes.rewrites.is_over();
    let workers = options.target.has(Capability::Workers);
    // Blocks of threads sort rows in the memory that they share; workers make updates that may meet one after the other.
    let parts = match (fuse, workers) {
        (false, _) => None,
        (true, false) => long_sorts::in_parts(tensor, &mut log),
        (true, true) => scatter_parts::in_parts(tensor, &mut log),
    };
    let tensor = parts.as_ref().unwrap_or(tensor);
    // One instruction computes four products of an unsigned and a signed byte, but only two of signed bytes.
    let by_bytes = fuse && options.target.has(Capability::ProductsOfBytes) && options.context().knobs.pairs;
    let shifted = if by_bytes { signed_bytes::shifted(tensor, &mut log) } else { None };
    let suited = shifted.as_ref().unwrap_or(tensor);
    let turned = if workers && fuse { channels_first::turned(suited, &mut log) } else { None };
    let suited = turned.as_ref().unwrap_or(suited);
    // Filters are turned first, so that they are multiplied as they will lie.
    let scaled = if fuse { scaled_weights::scaled(suited, &mut log) } else { None };
    let suited = scaled.as_ref().unwrap_or(suited);
    let outcome = model::lower(suited, &model::Options { fuse, workers, quads: by_bytes }, &mut log);
    if fuse {
        let number = passes.rewrites.count();
        passes.tell(Event::Fused { number, log: &log })?;
    }
    outcome
}

/// The plan after what is decided for all kernels of a model together: by the section `model` of a schedule if there is one, else by
/// the rules of the target.
pub fn schedule(plan: &Plan, passes: &mut Passes<'_>) -> Result<Plan, Vec<Diagnostic>> {
    let cx = passes.options.context();
    if let Some(schedule) = &passes.options.schedule
        && let Some(entries) = schedule.model()
    {
        match replay(entries, plan, &cx, passes) {
            Ok(plan) => return Ok(plan),
            Err(all) => schedule.refused(all)?,
        }
    }
    let rules = Rules { record: passes.observer.wants_steps(), ..tile::plan_rules(&cx.target) };
    let Passes { rewrites, observer, .. } = passes;
    rules.run(plan.clone(), &cx, rewrites, &mut |step| match step {
        Step::Begin(name) => tell(*observer, Event::Begin(name)),
        Step::Ran(ran) => tell(*observer, Event::Plan(&ran)),
    })
}

/// Follows the section `model` of a schedule.
fn replay(
    entries: &[Entry],
    plan: &Plan,
    cx: &tile::Context,
    passes: &mut Passes<'_>,
) -> Result<Plan, Vec<Diagnostic>> {
    let mut now = plan.clone();
    for entry in entries.iter() {
        if passes.rewrites.is_over() {
            break;
        }
        let (name, mut log) = (entry.name(), Log { record: passes.observer.wants_steps(), ..Log::default() });
        passes.tell(Event::Begin(&name))?;
        let after = entry.replay_model(&now, cx, &mut log).map_err(|d| vec![d])?;
        let number = passes.rewrites.count();
        passes.tell(Event::Plan(&Ran { name: &name, before: &now, after: Some(&after), log: &log, number }))?;
        now = after;
    }
    Ok(now)
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
