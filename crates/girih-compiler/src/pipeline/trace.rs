//! The trace of a compilation as text: `-v` counts what each rule did, `-vv` shows each as a diff.

use super::{Event, Observer};
use crate::base::Diagnostic;
use crate::base::rule::{Log, Ran};
use crate::graph::print::print_nodes;
use crate::graph::{self, decompose};
use crate::loops;
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
    fn see(&mut self, event: &Event<'_>) -> Result<(), Diagnostic> {
        match event {
            Event::Begin(_) | Event::Legalised { .. } => {}
            Event::Decomposed(applied) => self.decomposed(applied),
            // Most rules of Tensor IR find nothing to do.
            Event::Tensor(ran) if !self.full && ran.after.is_none() => {}
            Event::Tensor(ran) => self.changed(ran, |g| graph::print::print(g, graph::print::Dialect::Tensor)),
            Event::Fused { number, log } => self.ran("l:fuse", Some(*number), log),
            Event::Plan(ran) => self.ran(ran.name, ran.after.map(|_| ran.number), ran.log),
            Event::Kernel(name) => self.text.push_str(&format!("=== {name}\n")),
            Event::Loop(ran) => self.changed(ran, |k| loops::print::print(k, loops::print::Dialect::Loop)),
            Event::Tile(ran) => self.changed(ran, |k| loops::print::print(k, loops::print::Dialect::Tile)),
        }
        Ok(())
    }
}

impl Trace {
    /// What a rule did, with the diff of what it printed before and prints after.
    fn changed<P>(&mut self, ran: &Ran<'_, P>, print: fn(&P) -> String) {
        if self.full
            && let Some(after) = ran.after
        {
            let diff = diff_text(&print(ran.before), &print(after));
            self.text.push_str(&format!(">>> {0}\n{diff}<<< {0}\n", ran.name));
        }
        self.ran(ran.name, ran.after.map(|_| ran.number), ran.log);
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
}

fn diff_text(old: &str, new: &str) -> String {
    let mut text = String::new();
    for hunk in TextDiff::from_lines(old, new).unified_diff().context_radius(2).iter_hunks() {
        text.push_str(&hunk.to_string());
    }
    text
}
