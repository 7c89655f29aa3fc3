//! Primitives of the section `model`: each changes the kernels of a model together, and has one rule for when that is legal.
//!
//! In: a plan, and a [`Step`] that names a kernel of it and a loop or an array there. Out: the plan changed, or a sentence that says why
//! not. The results of the model stay as they are, but for the order of sums.
//!
//! ```text
//! swap k_linear.k            pack k_linear.weight            split_k k_linear.k by 448
//! merge k_sum.k
//! ```
//!
//! Names are those that the kernel has where the step stands: the names of its text as Loop IR.

pub mod merge;
pub mod pack;
pub mod split_k;
pub mod split_keys;
pub mod split_rows;
pub mod swap;

use super::line::{Line, LoopRef, holds, loop_at};
use super::part::{Part, Reader, Target, number};
use crate::base::rule::Log;
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::model::{ArrayId, Plan, StepArg};
use crate::loops::print::Namer;
use crate::tile::Context;
use crate::tile::tile_nest::OpenNest;

/// One change of the kernels of a model. A kernel is named as its step in the plan is.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Merge { kernel: String, at: LoopRef },
    Swap { kernel: String, at: LoopRef, batch: bool },
    Pack { kernel: String, arrays: Vec<ArrayId>, pairs: bool },
    SplitK { kernel: String, at: LoopRef, length: u32 },
}

/// Every primitive of the section `model`, in the order of the alphabet.
pub const ALL: &[&str] = &["merge", "pack", "split_k", "swap"];

impl Step {
    /// The step as text, in the names of the plan that it is for.
    pub fn line(&self, plan: &Plan) -> Line {
        let (Step::Merge { kernel, .. }
        | Step::Swap { kernel, .. }
        | Step::Pack { kernel, .. }
        | Step::SplitK { kernel, .. }) = self;
        let step = place(plan, kernel).map(|at| &plan.steps[at]);
        let name = |at: &LoopRef| step.as_ref().map_or("?".into(), |step| at.name(&Namer::new(&step.kernel)));
        let words = |on: bool, word: &str| if on { vec![word.to_string()] } else { vec![] };
        let (word, names, by) = match self {
            Step::Merge { at, .. } => ("merge", vec![name(at)], vec![]),
            Step::Swap { at, batch, .. } => ("swap", vec![name(at)], words(*batch, "batch")),
            Step::SplitK { at, length, .. } => ("split_k", vec![name(at)], words(true, &length.to_string())),
            Step::Pack { arrays, pairs, .. } => {
                let known = step.as_ref().map_or(vec![], |step| named(step));
                let one = |id: &ArrayId| known.iter().find(|(_, array)| array == id).map_or("?", |(name, _)| name);
                ("pack", arrays.iter().map(|id| one(id).to_string()).collect(), words(*pairs, "pairs"))
            }
        };
        let targets = names.into_iter().map(|name| format!("{kernel}.{name}")).collect();
        Line { targets, by, ..Line::new(word) }
    }

    /// The step that a line states of a plan.
    pub fn read(line: &Line, plan: &Plan) -> Result<Step, String> {
        if !ALL.contains(&line.word.as_str()) {
            let known = suggestion("primitives", &line.word, ALL.iter().copied().chain(["policy"]));
            return Err(format!("`{}` is not a step of the section `model`; {known}", line.word));
        }
        let what = if line.word == "pack" { "array" } else { "loop" };
        let form = || format!("expected `KERNEL.{}`, the name of a kernel and of its {what}", what.to_uppercase());
        let mut kernel = None;
        let mut targets = vec![];
        for target in &line.targets {
            let (of, name) = target.split_once('.').ok_or_else(form)?;
            if *kernel.get_or_insert(of) != of {
                return Err("the arrays are of several kernels".into());
            }
            targets.push(name.to_string());
        }
        let kernel = kernel.ok_or_else(form)?.to_string();
        let step = place(plan, &kernel).map(|at| &plan.steps[at])?;
        let own = Line { targets, ..line.clone() };
        let mut parts = Reader::new(&own, &step.kernel);
        let at = |parts: &mut Reader<'_>| LoopRef::read(parts, number("", 1));
        let step = match line.word.as_str() {
            "merge" => Step::Merge { at: at(&mut parts)?, kernel },
            "swap" => Step::Swap { at: at(&mut parts)?, batch: parts.flag("batch"), kernel },
            "split_k" => {
                let at = at(&mut parts)?;
                Step::SplitK { at, length: parts.number("how many iterations a part has", 1)?, kernel }
            }
            _ => {
                let known = named(step);
                let one = |name: &String| {
                    let found = known.iter().find(|(known, _)| known == name).map(|(_, id)| *id);
                    let others = || suggestion("arrays", name, known.iter().map(|(name, _)| name.as_str()));
                    found.ok_or_else(|| format!("unknown array `{name}`; {}", others()))
                };
                let arrays = own.targets.iter().map(one).collect::<Result<_, String>>()?;
                Step::Pack { kernel, arrays, pairs: parts.flag("pairs") }
            }
        };
        parts.end()?;
        Ok(step)
    }

    /// Changes the plan. A step that is refused changes nothing.
    pub fn apply(&self, plan: &mut Plan, ctx: &Context) -> Result<(), String> {
        let (Step::Merge { kernel, .. }
        | Step::Swap { kernel, .. }
        | Step::Pack { kernel, .. }
        | Step::SplitK { kernel, .. }) = self;
        let at = place(plan, kernel)?;
        if !plan.steps[at].kernel.open {
            return Err("the kernel is placed already".into());
        }
        match self {
            Step::Merge { at: name, .. } => merge::apply(&mut plan.steps[at].kernel, *name).map(drop),
            Step::Swap { at: name, batch, .. } => swap::apply(&mut plan.steps[at].kernel, *name, *batch),
            Step::Pack { arrays, pairs, .. } => pack::apply(plan, ctx, at, arrays, *pairs),
            Step::SplitK { at: name, length, .. } => split_k::apply(plan, ctx, at, *name, *length),
        }
    }
}

/// Where the step of a kernel stands in a plan.
fn place(plan: &Plan, kernel: &str) -> Result<usize, String> {
    plan.steps.iter().position(|step| step.kernel.name == kernel).ok_or_else(|| {
        let known = suggestion("kernels", kernel, plan.steps.iter().map(|step| step.kernel.name.as_str()));
        format!("unknown kernel `{kernel}`; {known}")
    })
}

/// The arrays of a step by the names that its kernel has for them.
fn named(step: &crate::loops::model::Step) -> Vec<(String, ArrayId)> {
    let namer = Namer::new(&step.kernel);
    let params = step.kernel.params.iter().zip(&step.args);
    params
        .filter_map(|(param, arg)| match arg {
            StepArg::Array(id) => Some((namer.val(param.val), *id)),
            StepArg::Symbol(_) => None,
        })
        .collect()
}

/// The nest of contractions whose sum a loop is, and where it stands in the kernel.
fn nest_of(kernel: &Kernel, at: LoopRef) -> Result<(usize, OpenNest<'_>), String> {
    let f = loop_at(kernel, at)?;
    let not_a_sum = "it is not the loop of a sum, the outermost if there are several";
    let place = kernel.body.iter().position(|s| holds(std::slice::from_ref(s), f)).ok_or(not_a_sum)?;
    let nest = OpenNest::of(&kernel.body[place]).ok_or(not_a_sum)??;
    match nest.sums.iter().any(|sum| sum.loops.first().is_some_and(|first| std::ptr::eq(*first, f))) {
        true => Ok((place, nest)),
        false => Err(not_a_sum.into()),
    }
}

/// The work of a rule that chooses all its steps beforehand.
pub fn run(
    plan: &Plan,
    ctx: &Context,
    log: &mut Log,
    policy: fn(&Plan, &Context, &mut Log) -> Vec<Step>,
) -> Option<Plan> {
    let steps = policy(plan, ctx, log);
    let mut out = (!steps.is_empty()).then(|| plan.clone())?;
    let mut changed = false;
    for step in &steps {
        let line = log.record.then(|| step.line(&out).to_string());
        match step.apply(&mut out, ctx) {
            Ok(()) => {
                log.steps.extend(line);
                changed = true;
            }
            Err(why) => log.skipped("a step", why),
        }
    }
    changed.then_some(out)
}

#[cfg(test)]
mod tests;
