//! The trace of a compilation as text: `-v` counts what each rule did, `-vv` shows each as a diff.

use super::{GraphEvent, Letter, Observer, RuleEvent};
use crate::base::Diagnostic;
use crate::base::rule::Log;
use crate::graph::print::print_nodes;
use crate::graph::{self, decompose};
use crate::loops::{self, ir::Kernel};
use similar::TextDiff;

/// An observer that writes the trace into a string.
pub struct Trace {
    /// Diffs and refusals too.
    pub full: bool,
    pub text: String,
}

impl Trace {
    pub fn new(full: bool) -> Trace {
        Trace { full, text: String::new() }
    }
}

impl Trace {
    /// Adds to the end of the last line.
    pub fn note(&mut self, note: &str) {
        if self.text.ends_with('\n') {
            self.text.truncate(self.text.len() - 1);
            self.text.push_str(&format!("  {note}\n"));
        }
    }
}

impl Trace {
    /// What a rule did: each site, or how many; with the number of the rewrite, if it was one.
    fn ran(&mut self, name: &str, number: Option<usize>, log: &Log) {
        if self.full {
            return self.say(name, log);
        }
        let (applied, skipped) = (log.applied.len(), log.skipped.len());
        self.text.push_str(&match number {
            Some(number) => format!("{number:>3}  {name:<28} applied {applied}, skipped {skipped}\n"),
            None => format!("     {name:<28} (unchanged)\n"),
        });
    }

    /// Each site of a rule, with the reason where it was left alone.
    fn say(&mut self, name: &str, log: &Log) {
        for site in &log.applied {
            self.text.push_str(&format!("+++ {name} applied at {site}\n"));
        }
        for (site, reason) in &log.skipped {
            self.text.push_str(&format!("--- {name} skipped at {site}: {reason}\n"));
        }
    }
}

impl Observer for Trace {
    fn rule(&mut self, event: &RuleEvent<'_>) -> Result<(), Diagnostic> {
        let name = format!("{}:{}", event.letter.text(), event.name);
        if self.full
            && let Some(after) = event.after
        {
            self.text.push_str(&format!(">>> {name}\n{}<<< {name}\n", diff(event.letter, event.before, after)));
        }
        self.ran(&name, event.after.map(|_| event.number), event.log);
        Ok(())
    }

    fn decomposed(&mut self, applied: &decompose::Applied<'_>) {
        let name = format!("o:{}", applied.rule);
        let site = applied.before.origins.get(applied.node.origin).map_or(String::new(), |o| match o.name.as_str() {
            "" => o.op.clone(),
            name => format!("{} {name}", o.op),
        });
        if !self.full {
            self.text.push_str(&format!("     {name:<28} applied at {site}\n"));
            return;
        }
        let signed = |sign: char, text: String| text.lines().map(|l| format!("{sign}{l}\n")).collect::<String>();
        let before = print_nodes(applied.before, std::iter::once(applied.node));
        let after = print_nodes(applied.after, applied.after.nodes.values().skip(applied.first));
        let (minus, plus) = (signed('-', before), signed('+', after));
        self.text.push_str(&format!(">>> {name}\n{minus}{plus}<<< {name}\n+++ {name} applied at {site}\n"));
    }

    fn simplified(&mut self, event: &GraphEvent<'_>) -> Result<(), Diagnostic> {
        let name = format!("n:{}", event.name);
        if self.full
            && let Some(after) = event.after
        {
            let text = |g| graph::print::print(g, graph::print::Dialect::Tensor);
            let diff = diff_text(&text(event.before), &text(after));
            self.text.push_str(&format!(">>> {name}\n{diff}<<< {name}\n"));
        }
        // The rules of Tensor IR run in many rounds, of which most change nothing.
        if self.full || event.after.is_some() {
            self.ran(&name, event.after.map(|_| event.number), event.log);
        }
        Ok(())
    }

    fn fused(&mut self, number: usize, log: &Log) {
        self.ran("l:fuse", Some(number), log);
    }

    fn planned(&mut self, rule: &str, number: Option<usize>, log: &Log) {
        self.ran(&format!("t:{rule}"), number, log);
    }

    fn kernel(&mut self, name: &str) {
        self.text.push_str(&format!("=== {name}\n"));
    }
}

/// The unified diff of two kernels of one stage.
pub fn diff(letter: Letter, before: &Kernel, after: &Kernel) -> String {
    let stage = match letter {
        Letter::Loop => loops::print::Dialect::Loop,
        Letter::Tile => loops::print::Dialect::Tile,
    };
    diff_text(&loops::print::print(before, stage), &loops::print::print(after, stage))
}

fn diff_text(old: &str, new: &str) -> String {
    let mut text = String::new();
    for hunk in TextDiff::from_lines(old, new).unified_diff().context_radius(2).iter_hunks() {
        text.push_str(&hunk.to_string());
    }
    text
}
