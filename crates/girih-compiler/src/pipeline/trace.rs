//! The rewrites of a compilation, as values and as text: `-v` counts the rewrites of each rule, `-vv` shows each
//! rewrite as a diff.

use super::{Event, Observer};
use crate::base::Diagnostic;
use crate::base::rule::{Log, Ran};
use crate::graph::print::print_nodes;
use crate::graph::{self, decompose};
use crate::loops;
use similar::TextDiff;

/// One run of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The kernel of a model that it ran on; empty if it ran on the model, or if there is one kernel.
    pub kernel: String,
    /// `t:003_blockify`, or `o:NAME` for a decomposition.
    pub name: String,
    /// The number of the rewrite among all of the compilation; `None` if it changed nothing, and for decompositions.
    pub number: Option<usize>,
    /// The sites where it applied.
    pub applied: Vec<String>,
    /// The primitives that it is made of, where it is made of these.
    pub steps: Vec<String>,
    /// The sites that it left alone, with the reasons.
    pub skipped: Vec<(String, String)>,
    /// Its changes, as hunks of a unified diff; empty if nothing changed, or if diffs are not wanted.
    pub diff: String,
    /// True if an operation of a model was replaced: the step has no number, but it changed something.
    pub decomposition: bool,
}

impl Step {
    /// A rule's sites and reasons, one per line.
    fn sites(&self) -> String {
        let name = &self.name;
        let applied = self.applied.iter().map(|site| format!("+++ {name} applied at {site}\n"));
        let steps = self.steps.iter().map(|step| format!("+++ {name} makes `{step}`\n"));
        let skipped = self.skipped.iter().map(|(site, why)| format!("--- {name} skipped at {site}: {why}\n"));
        applied.chain(steps).chain(skipped).collect()
    }

    /// The step as `-vv` prints it, or as `-v` does.
    fn text(&self, full: bool) -> String {
        let Step { name, number, applied, skipped, diff, .. } = self;
        if full {
            let diff = if diff.is_empty() { String::new() } else { format!(">>> {name}\n{diff}<<< {name}\n") };
            return diff + &self.sites();
        }
        match number {
            _ if self.decomposition => format!("     {name:<28} applied at {}\n", applied.join(", ")),
            Some(n) => format!("{n:>3}  {name:<28} applied {}, skipped {}\n", applied.len(), skipped.len()),
            None => format!("     {name:<28} (unchanged)\n"),
        }
    }
}

/// An observer that keeps the steps of all rules.
pub struct Steps {
    /// True if diffs are kept too.
    pub full: bool,
    pub list: Vec<Step>,
    kernel: String,
}

impl Steps {
    pub fn new(full: bool) -> Steps {
        Steps { full, list: vec![], kernel: String::new() }
    }

    fn ran(&self, name: &str, number: Option<usize>, log: &Log) -> Step {
        Step {
            kernel: self.kernel.clone(),
            name: name.to_string(),
            number,
            applied: log.applied.clone(),
            steps: log.steps.clone(),
            skipped: log.skipped.clone(),
            ..Step::default()
        }
    }

    /// A rule that ran, with the diff between the program before and after.
    fn changed<P>(&self, ran: &Ran<'_, P>, print: fn(&P) -> String) -> Step {
        let step = self.ran(ran.name, ran.after.map(|_| ran.number), ran.log);
        match ran.after.filter(|_| self.full) {
            Some(after) => Step { diff: diff_text(&print(ran.before), &print(after)), ..step },
            None => step,
        }
    }

    fn decomposed(&self, applied: &decompose::Applied<'_>) -> Step {
        let site = applied.before.origins.get(applied.node.origin).map_or(String::new(), |o| match o.name.as_str() {
            "" => o.op.clone(),
            name => format!("{} {name}", o.op),
        });
        let mut diff = String::new();
        if self.full {
            let signed = |sign: char, text: String| text.lines().map(|l| format!("{sign}{l}\n")).collect::<String>();
            let before = print_nodes(applied.before, std::iter::once(applied.node));
            let after = print_nodes(applied.after, applied.after.nodes.values().skip(applied.first));
            diff = signed('-', before) + &signed('+', after);
        }
        let name = format!("o:{}", applied.rule);
        Step { name, applied: vec![site], diff, decomposition: true, ..Step::default() }
    }

    /// The step for an event.
    fn step(&self, event: &Event<'_>) -> Option<Step> {
        Some(match event {
            Event::Begin(_) | Event::Legalised { .. } | Event::Kernel { .. } => return None,
            Event::Decomposed(applied) => self.decomposed(applied),
            // Most rules of Tensor IR find nothing to rewrite.
            Event::Tensor(ran) if !self.full && ran.after.is_none() => return None,
            Event::Tensor(ran) => self.changed(ran, |g| graph::print::print(g, graph::print::Dialect::Tensor)),
            Event::Fused { number, log } => self.ran("l:fuse", Some(*number), log),
            Event::Plan(ran) => self.ran(ran.name, ran.after.map(|_| ran.number), ran.log),
            Event::Loop(ran) => self.changed(ran, |k| loops::print::print(k, loops::print::Dialect::Loop)),
            Event::Tile(ran) => self.changed(ran, |k| loops::print::print(k, loops::print::Dialect::Tile)),
        })
    }
}

impl Observer for Steps {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        if let Event::Kernel { name, .. } = event {
            self.kernel = name.to_string();
        }
        self.list.extend(self.step(event));
        Ok(())
    }
    fn wants_steps(&self) -> bool {
        self.full
    }
}

/// An observer that writes the trace into a string.
pub struct Trace {
    /// True if diffs and refusals are written too.
    pub full: bool,
    pub text: String,
    steps: Steps,
}

impl Trace {
    pub fn new(full: bool) -> Trace {
        Trace { full, text: String::new(), steps: Steps::new(full) }
    }

    /// Appends to the last line.
    pub fn note(&mut self, note: &str) {
        if self.text.ends_with('\n') {
            self.text.truncate(self.text.len() - 1);
            self.text.push_str(&format!("  {note}\n"));
        }
    }
}

impl Observer for Trace {
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        if let Event::Kernel { name, .. } = event {
            self.text.push_str(&format!("=== {name}\n"));
        }
        if let Some(step) = self.steps.step(event) {
            self.text.push_str(&step.text(self.full));
        }
        Ok(())
    }
    fn wants_steps(&self) -> bool {
        self.full
    }
}

fn diff_text(old: &str, new: &str) -> String {
    let mut text = String::new();
    for hunk in TextDiff::from_lines(old, new).unified_diff().context_radius(2).iter_hunks() {
        text.push_str(&hunk.to_string());
    }
    text
}
