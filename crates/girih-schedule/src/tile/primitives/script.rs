//! The steps of a rule, and the names that steps have for the loops of a kernel.

use rustc_hash::FxHashMap;

use super::{Line, LoopRef, Step, find, look};
use crate::base::rule::Log;
use crate::loops::ir::*;
use crate::tile::Context;

/// The steps of a rule, each applied where it is added, so that the next may name what it made.
pub struct Script<'a> {
    pub kernel: Kernel,
    pub ctx: &'a Context,
    pub log: &'a mut Log,
    changed: bool,
}

impl<'a> Script<'a> {
    pub fn new(p: &Kernel, ctx: &'a Context, log: &'a mut Log) -> Script<'a> {
        Script { kernel: p.clone(), ctx, log, changed: false }
    }

    /// Applies a step and gives the loops that it made, in the order of their names.
    pub fn step(&mut self, step: Step) -> Result<Vec<LoopRef>, String> {
        if self.log.record {
            self.log.steps.push(step.line(&self.kernel).to_string());
        }
        let made = step.apply(&mut self.kernel, self.ctx)?;
        self.changed = true;
        Ok(made.into_iter().map(|axis| LoopRef { axis, nth: 0 }).collect())
    }

    /// The same; a step that is refused changes nothing.
    pub fn try_step(&mut self, step: Step) -> Result<Vec<LoopRef>, String> {
        self.attempt(|script| script.step(step))
    }

    /// Makes several steps, or none where one is refused.
    pub fn attempt<T>(&mut self, f: impl FnOnce(&mut Script<'a>) -> Result<T, String>) -> Result<T, String> {
        let (kernel, steps, changed) = (self.kernel.clone(), self.log.steps.len(), self.changed);
        let done = f(self);
        if done.is_err() {
            (self.kernel, self.changed) = (kernel, changed);
            self.log.steps.truncate(steps);
        }
        done
    }

    /// The loop of that name, as it is now.
    pub fn find(&self, name: LoopRef) -> Option<For> {
        find(&self.kernel, name).cloned()
    }

    pub fn changed(&self) -> bool {
        self.changed
    }

    /// The changed kernel; `None` where no step was made.
    pub fn done(self) -> Option<Kernel> {
        self.changed.then_some(self.kernel)
    }
}

/// A step of a kernel, or of the kernels of a model.
pub trait Change {
    type Of: Clone;
    /// The step as text, in the names of what it is for.
    fn said(&self, of: &Self::Of) -> Line;
    /// A step that is refused changes nothing.
    fn attempt(&self, of: &mut Self::Of, ctx: &Context) -> Result<(), String>;
}

/// What a rule does that chooses all its steps beforehand. `None` where no step was made.
pub fn run<C: Change>(
    p: &C::Of,
    ctx: &Context,
    log: &mut Log,
    policy: fn(&C::Of, &Context, &mut Log) -> Vec<C>,
) -> Option<C::Of> {
    let steps = policy(p, ctx, log);
    let mut out = (!steps.is_empty()).then(|| p.clone())?;
    let mut changed = false;
    for step in &steps {
        let line = log.record.then(|| step.said(&out).to_string());
        match step.attempt(&mut out, ctx) {
            Ok(()) => {
                log.steps.extend(line);
                changed = true;
            }
            Err(why) => log.skipped("a step", why),
        }
    }
    changed.then_some(out)
}

/// The names that steps have for the loops of a kernel.
pub struct Names(FxHashMap<*const For, LoopRef>);

impl Names {
    pub fn of(kernel: &Kernel) -> Names {
        let mut names = FxHashMap::default();
        look(kernel, &mut |at, f| names.insert(std::ptr::from_ref(f), at).is_none());
        Names(names)
    }

    /// The name of a loop of that kernel.
    pub fn name(&self, f: &For) -> Option<LoopRef> {
        self.0.get(&std::ptr::from_ref(f)).copied()
    }
}

/// The names of loops with these axes that stand in each other, from a loop on.
pub fn names_behind(kernel: &Kernel, at: LoopRef, axes: &[AxisId]) -> Vec<LoopRef> {
    let (mut within, mut out) = (false, vec![]);
    look(kernel, &mut |own, f| {
        within |= own == at;
        if within && axes.get(out.len()) == Some(&f.axis) {
            out.push(own);
        }
        out.len() < axes.len()
    });
    out
}

/// The names that steps have for some loops of a kernel.
pub fn names_of(kernel: &Kernel, loops: &[&For]) -> Vec<LoopRef> {
    let mut out = vec![];
    look(kernel, &mut |at, f| {
        if loops.iter().any(|l| std::ptr::eq(*l, f)) {
            out.push(at);
        }
        true
    });
    out
}
