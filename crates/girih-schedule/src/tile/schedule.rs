//! A schedule as text: the steps of each kernel in order, which a person can read, change and have replayed.
//!
//! ```text
//! file    := "schedule" "1" "for" TARGET ("with" KNOB "=" INT)* section*
//! section := ("model" | "kernel" NAME) line*
//! line    := step | "policy" NAME                     a step is a primitive: `tile/primitives/line.rs` has its grammar
//! ```
//!
//! `#` starts a comment. A policy is a rule that runs as a whole where its line stands, as a person may write; a printed schedule has
//! its steps. The section `model` has the steps that change the kernels of a model together (`tile/primitives/model`). A kernel without
//! a section is scheduled by the rules of its target.
//!
//! ```text
//! schedule 1 for sm_90a
//!
//! kernel k_relu
//!   fuse a0, a1 -> n                      # blockify_launch: loop a0: 7168 blocks
//!   split n by 256 guard -> b, t
//!   bind b to block.x
//!   bind t to thread
//! ```

use std::sync::Arc;

use super::primitives::{self, Line, Step, model};
use super::rules::{OF_KERNELS, OF_PLANS};
use super::{Context, applicable};
use crate::base::location::Location;
use crate::base::rule::{Log, Ran};
use crate::base::words::suggestion;
use crate::base::{Code, Diagnostic, Frame};
use crate::loops::ir::Kernel;
use crate::loops::model::Plan;
use crate::loops::print::{Dialect, print};
use crate::loops::verify::verify;
use crate::tile::knobs::Knobs;
use crate::tile::target::Target;

pub mod changes;

/// The version of the form, which its first line states.
const VERSION: &str = "1";
/// The longest text that is read: a schedule of a thousand kernels is a tenth as long.
pub const LONGEST: usize = 4 << 20;

/// A schedule that was read.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    file: Arc<str>,
    text: String,
    target: String,
    knobs: Vec<(String, i64)>,
    /// The rules for all kernels of a model together.
    model: Option<Vec<Entry>>,
    kernels: Vec<(Entry, Vec<Entry>)>,
    kept: bool,
}

/// One line of a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    place: Location,
    does: Does,
}

#[derive(Clone, PartialEq, Debug)]
enum Does {
    Step(Line),
    Policy(String),
    /// A section begins, of a kernel of that name.
    Kernel(String),
}

impl Entry {
    /// As traces name it.
    pub fn name(&self) -> String {
        let word = match &self.does {
            Does::Step(line) => &line.word,
            Does::Policy(name) | Does::Kernel(name) => name,
        };
        format!("s:{:03}_{word}", self.place.line)
    }

    /// A diagnostic at the place of the line.
    pub fn wrong(&self, message: impl std::fmt::Display) -> Diagnostic {
        let frame = Frame { place: self.place.clone(), function: None };
        Diagnostic::error(Code::BadSchedule, message.to_string()).from([frame].into())
    }

    /// Applies the line to a kernel.
    pub fn replay(&self, kernel: &Kernel, cx: &Context, log: &mut Log) -> Result<Kernel, Diagnostic> {
        match &self.does {
            Does::Step(line) => {
                let step = Step::read(line, kernel).map_err(|why| self.wrong(why))?;
                let mut out = kernel.clone();
                let refused = |why| self.wrong(format!("`{}` refuses: {why}", line.word));
                step.apply(&mut out, cx).map_err(refused)?;
                if let Some(first) = verify(&out, Dialect::Tile).first() {
                    return Err(refused(first.message.clone()));
                }
                log.applied(line.to_string());
                log.steps.push(line.to_string());
                Ok(out)
            }
            Does::Policy(name) => {
                let list = applicable(OF_KERNELS, &cx.target);
                let rule = list.into_iter().find(|rule| rule.name == name);
                let rule = rule.ok_or_else(|| self.wrong(format!("`{name}` is not a rule for {}", cx.target.name)))?;
                (rule.run)(kernel, cx, log).ok_or_else(|| self.idle(name, log))
            }
            Does::Kernel(_) => Ok(kernel.clone()),
        }
    }

    pub fn idle(&self, name: &str, log: &Log) -> Diagnostic {
        let why = log.skipped.first().map_or(String::new(), |(site, why)| format!(": {site}: {why}"));
        self.wrong(format!("the policy `{name}` changes nothing here{why}")).help("leave the line out")
    }

    /// Applies a line of the section `model` to a plan.
    pub fn replay_model(&self, plan: &Plan, cx: &Context, log: &mut Log) -> Result<Plan, Diagnostic> {
        let name = match &self.does {
            Does::Step(line) => {
                let step = model::Step::read(line, plan).map_err(|why| self.wrong(why))?;
                let mut out = plan.clone();
                let refused = |why| self.wrong(format!("`{}` refuses: {why}", line.word));
                step.apply(&mut out, cx).map_err(refused)?;
                let kernels = || out.load.iter().chain(&out.steps).map(|step| &step.kernel);
                if let Some(first) = kernels().find_map(|k| verify(k, Dialect::Loop).into_iter().next()) {
                    return Err(refused(first.message));
                }
                log.applied(line.to_string());
                log.steps.push(line.to_string());
                return Ok(out);
            }
            Does::Policy(name) | Does::Kernel(name) => name,
        };
        let list = applicable(OF_PLANS, &cx.target);
        let rule = list.into_iter().find(|r| r.name == name).ok_or_else(|| {
            let known = suggestion("rules", name, OF_PLANS.iter().map(|(rule, _)| rule.name));
            self.wrong(format!("`{name}` is not a rule for all kernels of a model on {}; {known}", cx.target.name))
        })?;
        (rule.run)(plan, cx, log).ok_or_else(|| self.idle(rule.name, log))
    }
}

impl Schedule {
    /// Reads a schedule. `file` is what messages call it.
    ///
    /// # Errors
    /// Every line that is wrong.
    pub fn parse(file: &str, text: &str) -> Result<Schedule, Vec<Diagnostic>> {
        let file: Arc<str> = file.into();
        let at = |number: usize, line: &str| {
            let column = line.len() - line.trim_start().len() + 1;
            Location { file: file.clone(), line: number as u32, column: column as u32 }
        };
        let wrong = |place, message: String| Entry { place, does: Does::Policy(String::new()) }.wrong(message);
        if text.len() > LONGEST {
            return Err(vec![wrong(
                at(1, ""),
                format!("a schedule has at most {LONGEST} bytes; this has {}", text.len()),
            )]);
        }
        let bare = |line: &str| line.split('#').next().unwrap_or_default().trim_end().to_string();
        let mut lines = (1..).zip(text.lines()).map(|(n, l)| (n, bare(l))).filter(|(_, l)| !l.trim().is_empty());
        let Some((number, head)) = lines.next() else {
            return Err(vec![wrong(at(1, ""), "expected `schedule 1 for TARGET`, found nothing".into())]);
        };
        let (target, knobs) = head_of(head.trim()).map_err(|why| vec![wrong(at(number, &head), why)])?;
        let text = text.to_string();
        let mut out = Schedule { file: file.clone(), text, target, knobs, model: None, kernels: vec![], kept: false };
        let mut problems = vec![];
        // True within the section of the model, false within a kernel's; `None` before the first section.
        let mut section = None;
        for (number, line) in lines {
            let place = at(number, &line);
            match entry(&line) {
                Err(why) => problems.push(wrong(place, why)),
                Ok(None) if out.model.is_some() => {
                    problems.push(wrong(place, "there is a section `model` already".into()))
                }
                Ok(None) => (out.model, section) = (Some(vec![]), Some(true)),
                Ok(Some(Does::Kernel(name))) => {
                    if out.of(&name).is_some() {
                        problems
                            .push(wrong(place.clone(), format!("there is a section of the kernel `{name}` already")));
                    }
                    out.kernels.push((Entry { place, does: Does::Kernel(name) }, vec![]));
                    section = Some(false);
                }
                Ok(Some(does)) => match (section, &mut out.model, out.kernels.last_mut()) {
                    (Some(true), Some(model), _) => model.push(Entry { place, does }),
                    (Some(false), _, Some((_, steps))) => steps.push(Entry { place, does }),
                    _ => problems.push(wrong(place, "expected `model` or `kernel NAME` before the first step".into())),
                },
            }
        }
        if problems.is_empty() { Ok(out) } else { Err(problems) }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The schedule as one that was found once and is followed where it still can be: it is refused for nothing, and a kernel for which one
    /// of its lines is not legal is scheduled as always.
    pub fn kept(self) -> Schedule {
        Schedule { kept: true, ..self }
    }

    /// True if [`Schedule::kept`] made it.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    fn head(&self) -> String {
        head(&self.target, self.knobs.iter().map(|(name, value)| (&name[..], *value)))
    }

    /// The diagnostics of a compilation that followed this schedule, but for those that say that a kept one cannot be followed.
    pub fn refused(&self, all: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
        if self.kept && all.iter().all(|d| d.code == Code::BadSchedule) { Ok(()) } else { Err(all) }
    }

    /// The knobs that the schedule was made with.
    pub fn knobs(&self) -> &[(String, i64)] {
        &self.knobs
    }

    /// The lines of a kernel's section.
    pub fn of(&self, kernel: &str) -> Option<&[Entry]> {
        self.kernels
            .iter()
            .find(|(e, _)| matches!(&e.does, Does::Kernel(n) if n == kernel))
            .map(|(_, steps)| &steps[..])
    }

    /// The lines of the section `model`.
    pub fn model(&self) -> Option<&[Entry]> {
        self.model.as_deref()
    }

    /// Refuses a schedule for another target or for other kernels.
    pub fn check<'k>(
        &self,
        target: &Target,
        kernels: impl Iterator<Item = &'k str> + Clone,
    ) -> Result<(), Vec<Diagnostic>> {
        if self.kept {
            return Ok(());
        }
        if self.target != target.name {
            let place = Location { file: self.file.clone(), line: 1, column: 1 };
            let head = Entry { place, does: Does::Policy(String::new()) };
            let message = format!("the schedule is for {}, and the target is {}", self.target, target.name);
            return Err(vec![head.wrong(message).help(format!("compile with --target {}", self.target))]);
        }
        let unknown = self.kernels.iter().filter_map(|(entry, _)| match &entry.does {
            Does::Kernel(name) if !kernels.clone().any(|k| k == name) => {
                let known = suggestion("kernels", name, kernels.clone());
                Some(entry.wrong(format!("unknown kernel `{name}`; {known}")))
            }
            _ => None,
        });
        let unknown: Vec<Diagnostic> = unknown.collect();
        if unknown.is_empty() { Ok(()) } else { Err(unknown) }
    }
}

/// `schedule 1 for cpu with kc=64`.
fn head<'n>(target: &str, knobs: impl Iterator<Item = (&'n str, i64)>) -> String {
    let knobs: Vec<String> = knobs.map(|(name, value)| format!(" {name}={value}")).collect();
    let with = if knobs.is_empty() { String::new() } else { format!(" with{}", knobs.concat()) };
    format!("schedule {VERSION} for {target}{with}")
}

/// The target and the knobs of `schedule 1 for TARGET with kc=64`.
fn head_of(head: &str) -> Result<(String, Vec<(String, i64)>), String> {
    let words: Vec<&str> = head.split_whitespace().collect();
    let (version, target, rest) = match words[..] {
        ["schedule", version, "for", target, ref rest @ ..] => (version, target, rest),
        _ => return Err(format!("expected `schedule {VERSION} for TARGET`, found `{head}`")),
    };
    if version != VERSION {
        return Err(format!("the schedule is of version {version}; this build reads version {VERSION}"));
    }
    let given = match rest {
        [] => &[][..],
        ["with", given @ ..] => given,
        [other, ..] => return Err(format!("expected `with` and knobs, found `{other}`")),
    };
    let mut knobs = Knobs::default();
    let set = given.iter().map(|text| knobs.set(text).map(|(name, value)| (name.to_string(), value)));
    Ok((target.to_string(), set.collect::<Result<_, String>>()?))
}

/// Reads a line; `None` for the line `model`.
fn entry(line: &str) -> Result<Option<Does>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["model"] => return Ok(None),
        ["kernel", name] => return Ok(Some(Does::Kernel(name.into()))),
        ["kernel", ..] => return Err("expected `kernel` and one name".into()),
        ["policy", name] => {
            let known =
                || OF_KERNELS.iter().map(|(rule, _)| rule.name).chain(OF_PLANS.iter().map(|(rule, _)| rule.name));
            return match known().any(|rule| rule == name) {
                true => Ok(Some(Does::Policy(name.into()))),
                false => Err(format!("unknown policy `{name}`; {}", suggestion("policies", name, known()))),
            };
        }
        ["policy", ..] => return Err("expected `policy` and one name".into()),
        _ => {}
    }
    let line = Line::parse(line).unwrap_or_else(|| Err("expected a step".into()))?;
    let words = || primitives::words().chain(model::words());
    if words().any(|word| word == line.word) {
        return Ok(Some(Does::Step(line)));
    }
    let words = words().chain(["policy", "kernel"]);
    Err(format!("unknown primitive `{}`; {}", line.word, suggestion("primitives", &line.word, words)))
}

/// Writes a schedule while rules run.
pub struct Writer {
    cx: Context,
    text: String,
    kernel: Option<String>,
}

impl Writer {
    pub fn new(cx: Context) -> Writer {
        Writer { text: format!("{}\n", head(cx.target.name, cx.knobs.given())), cx, kernel: None }
    }

    /// A rule looked at all kernels of a model.
    pub fn plan(&mut self, name: &str, ran: &Ran<'_, Plan>) {
        if self.kernel.is_none() {
            self.text += "\nmodel\n";
            self.kernel = Some(String::new());
        }
        let Some(after) = ran.after else { return };
        let made = !ran.log.steps.is_empty() && self.makes_plan(ran.before, &ran.log.steps, after);
        self.ran(name, ran.log, made);
    }

    /// A rule ran on a kernel.
    pub fn rule(&mut self, name: &str, ran: &Ran<'_, Kernel>) {
        if self.kernel.as_ref() != Some(&ran.before.name) {
            self.text += &format!("\nkernel {}\n", ran.before.name);
            self.kernel = Some(ran.before.name.clone());
        }
        let Some(after) = ran.after else { return };
        let made = !ran.log.steps.is_empty() && self.makes(ran.before, &ran.log.steps, after);
        self.ran(name, ran.log, made);
    }

    /// Writes a rule as the steps that it is `made` of, or as a policy.
    fn ran(&mut self, name: &str, log: &Log, made: bool) {
        let said = log.applied.join("; ");
        if !made {
            return self.line(&format!("policy {name}"), &said);
        }
        // A step that a schedule asks for needs no other reason.
        let asked = log.applied == log.steps;
        let mut comment = if asked { String::new() } else { format!("{name}: {said}") };
        for step in &log.steps {
            self.line(step, &std::mem::take(&mut comment));
        }
    }

    /// True if steps, read back, turn one plan into the other.
    fn makes_plan(&self, before: &Plan, steps: &[String], after: &Plan) -> bool {
        let mut now = before.clone();
        for step in steps {
            let step = Line::parse(step).and_then(Result::ok).and_then(|line| model::Step::read(&line, &now).ok());
            if step.is_none_or(|step| step.apply(&mut now, &self.cx).is_err()) {
                return false;
            }
        }
        now == *after
    }

    /// True if steps, read back, turn one kernel into the other.
    fn makes(&self, before: &Kernel, steps: &[String], after: &Kernel) -> bool {
        let mut now = before.clone();
        for step in steps {
            let step = Line::parse(step).and_then(Result::ok).and_then(|line| Step::read(&line, &now).ok());
            if step.is_none_or(|step| step.apply(&mut now, &self.cx).is_err()) {
                return false;
            }
        }
        print(&now, Dialect::Tile) == print(after, Dialect::Tile)
    }

    fn line(&mut self, step: &str, comment: &str) {
        // A comment is one line of what may be a user's words.
        let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text += match comment.is_empty() {
            true => format!("  {step}\n"),
            false => format!("  {step:<38} # {comment}\n"),
        }
        .as_str();
    }

    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests;
