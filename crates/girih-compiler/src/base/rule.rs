//! The form of a rewrite rule and of what it reports.

use super::knobs::Knobs;
use super::launch::Assumptions;
use super::target::Target;

/// What a rule may look at besides the program.
#[derive(Clone, Debug)]
pub struct Context {
    pub target: Target,
    pub knobs: Knobs,
    pub assume: Assumptions,
}

/// How many rewrites a compilation may still make, and how many it has made. All stages share one, so that stopping after
/// fewer and fewer finds the rewrite that breaks something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewrites {
    left: usize,
    done: usize,
}

impl Rewrites {
    /// At most so many; `None`: all.
    pub fn at_most(most: Option<usize>) -> Rewrites {
        Rewrites { left: most.unwrap_or(usize::MAX), done: 0 }
    }

    /// No rule may run any more.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// One was made; gives its number, from 1.
    pub fn count(&mut self) -> usize {
        self.left = self.left.saturating_sub(1);
        self.done += 1;
        self.done
    }

    pub fn done(&self) -> usize {
        self.done
    }
}

/// What a rule did at its sites, in order.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub applied: Vec<String>,
    /// (site, reason)
    pub skipped: Vec<(String, String)>,
}

impl Log {
    pub fn applied(&mut self, site: impl Into<String>) {
        self.applied.push(site.into());
    }
    pub fn skipped(&mut self, site: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push((site.into(), reason.into()));
    }
}

/// A named rewrite of a whole program `P`: pure, idempotent, explaining itself through its [`Log`].
pub struct Rule<P: 'static> {
    /// `blockify`; traces say where it is in its list too: see [`numbered`].
    pub name: &'static str,
    /// Markdown: what it does, before `-->` after, when it refuses.
    pub doc: &'static str,
    /// `None`: unchanged.
    pub run: fn(&P, &Context, &mut Log) -> Option<P>,
}

/// The rules of a list with their names in traces, `001_blockify`: the number is the position in the list, from `first`.
pub fn numbered<P>(first: usize, rules: &'static [Rule<P>]) -> impl Iterator<Item = (String, &'static Rule<P>)> {
    rules.iter().enumerate().map(move |(at, rule)| (format!("{:03}_{}", first + at, rule.name), rule))
}
