//! The pass loop: runs the rules of a stage in order, checks each result, and reports.

use super::{Observer, RuleEvent};
use crate::base::rule::{Context, Log, Rewrites, Rule, numbered};
use crate::base::{Code, Diagnostic};
use crate::loops::{self, ir::Kernel, model::Plan};
use crate::tile;

/// The letter that names a stage in traces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letter {
    Loop,
    Tile,
}

impl Letter {
    pub fn text(self) -> &'static str {
        match self {
            Letter::Loop => "l",
            Letter::Tile => "t",
        }
    }
    fn stage(self) -> loops::print::Dialect {
        match self {
            Letter::Loop => loops::print::Dialect::Loop,
            Letter::Tile => loops::print::Dialect::Tile,
        }
    }
    /// How often the list is run: fusion and promotion enable each other, placement is decided once.
    fn rounds(self) -> usize {
        match self {
            Letter::Loop => 4,
            Letter::Tile => 1,
        }
    }
}

/// The rules of a stage in the order in which they run, with their numbered names.
pub(super) fn rules(letter: Letter) -> impl Iterator<Item = (String, &'static Rule<Kernel>)> {
    match letter {
        Letter::Loop => numbered(1, loops::fuse::RULES),
        Letter::Tile => numbered(1 + tile::PLAN_RULES.len(), tile::RULES),
    }
}

/// The rules of Tile IR that look at all kernels of a plan; they come before those of single kernels.
pub(super) fn plan_rules() -> impl Iterator<Item = (String, &'static Rule<Plan>)> {
    numbered(1, tile::PLAN_RULES)
}

pub(super) fn run(
    letter: Letter,
    mut kernel: Kernel,
    cx: &Context,
    rewrites: &mut Rewrites,
    observer: &mut dyn Observer,
) -> Result<Kernel, Vec<Diagnostic>> {
    for round in 0..letter.rounds() {
        let mut changed = false;
        for (name, rule) in rules(letter) {
            if rewrites.is_over() {
                return Ok(kernel);
            }
            observer.begin(&name);
            let mut log = Log::default();
            let after = (rule.run)(&kernel, cx, &mut log);
            if after.is_none() && round > 0 {
                continue; // its refusals were reported in the first round
            }
            if let Some(after) = &after {
                check(letter, &name, after)?;
                rewrites.count();
                changed = true;
            }
            let event = RuleEvent {
                letter,
                name: &name,
                number: rewrites.done(),
                before: &kernel,
                after: after.as_ref(),
                log: &log,
            };
            observer.rule(&event).map_err(|d| vec![d])?;
            if let Some(after) = after {
                kernel = after;
            }
        }
        if !changed {
            break;
        }
    }
    Ok(kernel)
}

/// A rule whose result does not verify is a bug of ours, named by the rule.
fn check(letter: Letter, name: &str, after: &Kernel) -> Result<(), Vec<Diagnostic>> {
    let breaches = loops::verify::verify(after, letter.stage());
    let Some(first) = breaches.first() else { return Ok(()) };
    let message = format!("rule {}:{name} made IR that does not verify: {}", letter.text(), first.message);
    let help = format!("the IR after the rule:\n{}", loops::print::print(after, letter.stage()));
    Err(vec![Diagnostic::error(Code::InternalBug, message).help(help)])
}
