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
//! `steps!` has a row for each, as for the steps of one kernel. Names are those that the kernel has where the step stands: the names of
//! its text as Loop IR.

pub mod merge;
pub mod pack;
pub mod split_k;
pub mod split_keys;
pub mod split_rows;
pub mod swap;

use super::Change;
use super::line::{Line, LoopRef, holds, loop_at};
use super::part::{Scope, number};
use crate::base::words::suggestion;
use crate::loops::ir::*;
use crate::loops::model::{ArrayId, Plan};
use crate::tile::Context;
use crate::tile::tile_nest::OpenNest;

steps! {
    /// One change of the kernels of a model, which begins at one of them.
    Act (plan: &mut Plan, kernel: usize, ctx: &Context)

    /// `merge KERNEL.LOOP`: A reduction and the one that is all it does become one loop.
    "merge" Merge { at: LoopRef } => merge::apply(&mut plan.steps[kernel].kernel, *at).map(drop);
    /// `pack KERNEL.ARRAY, .. by pairs?`: Sums read a weight in panels, which a kernel writes once, when the model is
    /// loaded. `pairs`: words of neighbouring terms lie there.
    "pack" Pack { arrays: Vec<ArrayId>, pairs: bool } => pack::apply(plan, ctx, kernel, arrays, *pairs);
    /// `split_k KERNEL.LOOP by N`: A kernel before computes a reduction in parts of N iterations; this one adds the
    /// parts, and does what follows the sum.
    "split_k" SplitK { at: LoopRef, length: u32 = number("how many iterations a part has", 1) }
        => split_k::apply(plan, ctx, kernel, *at, *length);
    /// `swap KERNEL.LOOP by batch?`: The operands of a product, and so its rows and columns, change places. `batch`:
    /// axes along which only the right operand differs become rows too.
    "swap" Swap { at: LoopRef, batch: bool } => swap::apply(&mut plan.steps[kernel].kernel, *at, *batch);
}

/// A step of the section `model`.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The name of the kernel, as that of its step in the plan.
    pub kernel: String,
    pub act: Act,
}

impl Step {
    /// The step as text, in the names of the plan that it is for.
    pub fn line(&self, plan: &Plan) -> Line {
        let Ok(at) = place(plan, &self.kernel) else { return Line::new("?") };
        let mut line = self.act.text(&scope(plan, at));
        line.targets.iter_mut().for_each(|name| *name = format!("{}.{name}", self.kernel));
        line
    }

    /// The step that a line states of a plan.
    pub fn read(line: &Line, plan: &Plan) -> Result<Step, String> {
        let Some(row) = FORMS.iter().find(|row| row.word == line.word) else {
            let known = suggestion("primitives", &line.word, words().chain(["policy"]));
            return Err(format!("`{}` is not a step of the section `model`; {known}", line.word));
        };
        let what = if row.word == "pack" { "array" } else { "loop" };
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
        let at = place(plan, &kernel)?;
        let act = row.step(&Line { targets, ..line.clone() }, &scope(plan, at))?;
        Ok(Step { kernel, act })
    }

    /// Changes the plan. A step that is refused changes nothing.
    pub fn apply(&self, plan: &mut Plan, ctx: &Context) -> Result<(), String> {
        let at = place(plan, &self.kernel)?;
        if !plan.steps[at].kernel.open {
            return Err("the kernel is placed already".into());
        }
        self.act.call(plan, at, ctx)
    }
}

impl Change for Step {
    type Of = Plan;
    fn said(&self, of: &Plan) -> Line {
        self.line(of)
    }
    fn attempt(&self, of: &mut Plan, ctx: &Context) -> Result<(), String> {
        self.apply(of, ctx)
    }
}

/// The names of a kernel and of its arrays.
fn scope(plan: &Plan, at: usize) -> Scope<'_> {
    Scope::new(&plan.steps[at].kernel, &plan.steps[at].args)
}

/// Where the step of a kernel stands in a plan.
fn place(plan: &Plan, kernel: &str) -> Result<usize, String> {
    plan.steps.iter().position(|step| step.kernel.name == kernel).ok_or_else(|| {
        let known = suggestion("kernels", kernel, plan.steps.iter().map(|step| step.kernel.name.as_str()));
        format!("unknown kernel `{kernel}`; {known}")
    })
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

#[cfg(test)]
mod tests;
