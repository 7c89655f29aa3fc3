//! The trace of a compilation as text: `-v` counts what each rule did, `-vv` shows each as a diff.

use super::{Letter, Observer, RuleEvent};
use crate::base::Diagnostic;
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

impl Observer for Trace {
    fn rule(&mut self, event: &RuleEvent<'_>) -> Result<(), Diagnostic> {
        let name = format!("{}:{}", event.letter.text(), event.name);
        if self.full {
            if let Some(after) = event.after {
                self.text.push_str(&format!(">>> {name}\n{}<<< {name}\n", diff(event.letter, event.before, after)));
            }
            for site in &event.log.applied {
                self.text.push_str(&format!("+++ {name} applied at {site}\n"));
            }
            for (site, reason) in &event.log.skipped {
                self.text.push_str(&format!("--- {name} skipped at {site}: {reason}\n"));
            }
        } else if event.after.is_some() {
            let (applied, skipped) = (event.log.applied.len(), event.log.skipped.len());
            self.text.push_str(&format!("{:>3}  {name:<28} applied {applied}, skipped {skipped}\n", event.number));
        } else {
            self.text.push_str(&format!("     {name:<28} (unchanged)\n"));
        }
        Ok(())
    }
}

/// The unified diff of two kernels of one stage.
pub fn diff(letter: Letter, before: &Kernel, after: &Kernel) -> String {
    let stage = match letter {
        Letter::Loop => loops::print::Stage::Loop,
        Letter::Tile => loops::print::Stage::Tile,
    };
    let (old, new) = (loops::print::print(before, stage), loops::print::print(after, stage));
    let mut text = String::new();
    for hunk in TextDiff::from_lines(&old, &new).unified_diff().context_radius(2).iter_hunks() {
        text.push_str(&hunk.to_string());
    }
    text
}
