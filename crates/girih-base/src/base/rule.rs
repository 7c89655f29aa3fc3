//! The forms of a rewrite rule, of its report, and of the lists in which rules run.

use std::fmt::Display;

/// The number of rewrites that a compilation may still make, and the number made. All stages share one limit, so that
/// stopping after fewer and fewer rewrites finds the one that breaks something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewrites {
    left: usize,
    done: usize,
}

impl Rewrites {
    /// At most `most` rewrites; `None`: all.
    pub fn at_most(most: Option<usize>) -> Rewrites {
        Rewrites { left: most.unwrap_or(usize::MAX), done: 0 }
    }

    /// Returns true if no rule may run any more.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// Counts a rewrite and gives its number, from 1.
    pub fn count(&mut self) -> usize {
        self.left = self.left.saturating_sub(1);
        self.done += 1;
        self.done
    }

    pub fn done(&self) -> usize {
        self.done
    }
}

/// The results of a rule at its sites, in order.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub applied: Vec<String>,
    /// (site, reason)
    pub skipped: Vec<(String, String)>,
    /// Requests of knobs that the target cannot satisfy: the number that is needed, and the limit. They end the
    /// compilation.
    pub impossible: Vec<String>,
    /// Where `record` asks for it: the primitives that the rule is made of, one a line.
    pub steps: Vec<String>,
    pub record: bool,
}

/// The reason why a rule leaves a site as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub why: String,
    /// True if a knob asked for it and the target cannot hold it.
    pub impossible: bool,
}

impl Refusal {
    pub fn impossible(why: impl Into<String>) -> Refusal {
        Refusal { why: why.into(), impossible: true }
    }
}

impl<S: Into<String>> From<S> for Refusal {
    fn from(why: S) -> Refusal {
        Refusal { why: why.into(), impossible: false }
    }
}

impl Log {
    pub fn applied(&mut self, site: impl Into<String>) {
        self.applied.push(site.into());
    }
    pub fn skipped(&mut self, site: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push((site.into(), reason.into()));
    }
    /// Says that the rule applied at a site, or why it did not; gives what it made there.
    pub fn outcome<T>(&mut self, site: impl Into<String>, made: Result<T, impl Into<Refusal>>) -> Option<T> {
        match made {
            Ok(made) => {
                self.applied(site);
                Some(made)
            }
            Err(why) => {
                self.refused(site, why.into());
                None
            }
        }
    }
    /// Says what the rule did at a site, or why it did nothing; gives true if it applied.
    pub fn described(&mut self, site: impl Display, did: Result<impl Display, impl Into<Refusal>>) -> bool {
        match did {
            Ok(did) => self.applied(format!("{site}: {did}")),
            Err(why) => {
                self.refused(site.to_string(), why.into());
                return false;
            }
        }
        true
    }
    pub fn refused(&mut self, site: impl Into<String>, refusal: Refusal) {
        if refusal.impossible {
            self.impossible.push(refusal.why.clone());
        }
        self.skipped(site, refusal.why);
    }
}

/// A named rewrite of a whole program `P`: pure, idempotent, with explanations in its [`Log`]. `C` is the information
/// that it may use besides the program.
pub struct Rule<P: 'static, C: 'static> {
    /// `blockify`; traces also give its position in the list: see [`Rules::named`].
    pub name: &'static str,
    /// Markdown: a summary, before `-->` after, the reasons for refusals.
    pub doc: &'static str,
    /// `None`: unchanged.
    pub run: fn(&P, &C, &mut Log) -> Option<P>,
}

/// Rules in the order in which they run.
pub struct Rules<P: 'static, C: 'static> {
    /// Names the stage in traces: the `t` of `t:003_blockify`.
    pub letter: char,
    /// The number of the first rule.
    pub first: usize,
    /// The most runs of the list: more than one where the rules enable each other.
    pub rounds: usize,
    pub list: Vec<&'static Rule<P, C>>,
    /// Logs state the primitives that rules are made of.
    pub record: bool,
}

/// The events that a list reports while it runs.
pub enum Step<'a, P> {
    /// The rule of this name is about to run.
    Begin(&'a str),
    Ran(Ran<'a, P>),
}

/// One run of a rule.
pub struct Ran<'a, P> {
    /// `t:003_blockify`.
    pub name: &'a str,
    pub before: &'a P,
    /// `None`: unchanged.
    pub after: Option<&'a P>,
    pub log: &'a Log,
    /// The number of rewrites in the compilation so far, including this one.
    pub number: usize,
}

impl<P, C> Rules<P, C> {
    /// The rules with their names in traces, `t:003_blockify`: the number is the position in the list.
    pub fn named(&self) -> impl Iterator<Item = (String, &'static Rule<P, C>)> + '_ {
        let name = |(at, rule): (usize, &&'static Rule<P, C>)| {
            (format!("{}:{:03}_{}", self.letter, self.first + at, rule.name), *rule)
        };
        self.list.iter().enumerate().map(name)
    }

    /// Runs the rules until nothing changes, or until the last round or the last rewrite that may be made. `see` gets
    /// each run, except runs of later rounds that change nothing: their refusals were reported before. Its error ends
    /// the run.
    pub fn run<E>(
        &self,
        program: P,
        cx: &C,
        rewrites: &mut Rewrites,
        see: &mut dyn FnMut(Step<'_, P>) -> Result<(), E>,
    ) -> Result<P, E> {
        let mut now = program;
        for round in 0..self.rounds {
            let mut changed = false;
            for (name, rule) in self.named() {
                if rewrites.is_over() {
                    return Ok(now);
                }
                see(Step::Begin(&name))?;
                let mut log = Log { record: self.record, ..Log::default() };
                let after = (rule.run)(&now, cx, &mut log);
                if after.is_none() && round > 0 {
                    continue;
                }
                let number = if after.is_some() { rewrites.count() } else { rewrites.done() };
                see(Step::Ran(Ran { name: &name, before: &now, after: after.as_ref(), log: &log, number }))?;
                if let Some(after) = after {
                    (now, changed) = (after, true);
                }
            }
            if !changed {
                break;
            }
        }
        Ok(now)
    }
}
