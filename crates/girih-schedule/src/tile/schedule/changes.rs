//! Changes of a schedule's lines: the places where a line may say something else, and the schedule with something else there.
//!
//! ```text
//! 7.0=4     line 7: the first word behind `by` becomes 4        split n by 8 -> b, r   -->  split n by 4 -> b, r
//! 3.all.32=64   each 32 of the section that begins at line 3 becomes 64
//! 9.swap.0=1    line 9: the first two loops change places       reorder i, j, k        -->  reorder j, i, k
//! 12.out=1      line 12 is left out
//! ```
//! A change may make a step illegal, or a later step that needs the names or numbers of before. It never makes a wrong kernel: the steps
//! are checked when the schedule is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::{Does, Entry, Schedule};
use crate::tile::primitives::Line;

/// A place of a schedule, by the lines of its text, which count from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Site {
    /// Every number `old` behind `by` of a kernel's section.
    Numbers { section: u32, old: u32 },
    /// A number: the word behind `by` at a position, from 0 on.
    Number { line: u32, at: u32 },
    /// Two neighbouring targets of `reorder`.
    Swap { line: u32, at: u32 },
    /// A line.
    Out { line: u32 },
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Site::Numbers { section, old } => write!(f, "{section}.all.{old}"),
            Site::Number { line, at } => write!(f, "{line}.{at}"),
            Site::Swap { line, at } => write!(f, "{line}.swap.{at}"),
            Site::Out { line } => write!(f, "{line}.out"),
        }
    }
}

impl FromStr for Site {
    type Err = String;
    fn from_str(text: &str) -> Result<Site, String> {
        let number = |word: &str| word.parse::<u32>().ok();
        let site = || {
            let (line, rest) = text.split_once('.')?;
            let line = number(line)?;
            Some(match rest.split_once('.') {
                None if rest == "out" => Site::Out { line },
                None => Site::Number { line, at: number(rest)? },
                Some(("all", old)) => Site::Numbers { section: line, old: number(old)? },
                Some(("swap", at)) => Site::Swap { line, at: number(at)? },
                Some(_) => return None,
            })
        };
        site().ok_or_else(|| format!("expected a place in a schedule such as `7.0` or `9.out`, found `{text}`"))
    }
}

/// The value at each place that is changed: a number, or 1 where the place has one change only.
pub type Changes = BTreeMap<Site, i64>;

/// A line that changes: its number, what it says, and what it says then; `None` if it goes.
pub type Difference = (u32, String, Option<String>);

/// Numbers up to here are tried one by one.
const SMALL: u32 = 4;

/// Numbers to try in place of one.
fn others(number: u32) -> Vec<i64> {
    let number = i64::from(number);
    let all: Vec<i64> = match number <= i64::from(SMALL) {
        true => vec![1, 2, 3, 4, 6, 8],
        false => [1, 2, 3, 6, 8, 16].iter().filter(|n| number * **n % 4 == 0).map(|n| number * n / 4).collect(),
    };
    all.into_iter().filter(|n| *n != number).collect()
}

/// The positions of the numbers behind `by`, and the numbers.
fn numbers(line: &Line) -> impl Iterator<Item = (u32, u32)> + '_ {
    (0..).zip(&line.by).filter_map(|(at, word)| Some((at, word.parse().ok()?)))
}

impl Entry {
    fn step(&self) -> Option<&Line> {
        if let Does::Step(line) = &self.does { Some(line) } else { None }
    }

    /// The line as text.
    fn words(&self) -> String {
        match &self.does {
            Does::Step(line) => line.to_string(),
            Does::Policy(name) => format!("policy {name}"),
            Does::Kernel(name) => format!("kernel {name}"),
        }
    }

    fn sites(&self) -> Vec<(Site, Vec<i64>)> {
        let line = self.place.line;
        let mut all = vec![];
        if let Some(step) = self.step() {
            all.extend(numbers(step).map(|(at, number)| (Site::Number { line, at }, others(number))));
            if step.word == "reorder" {
                let pairs = step.targets.len().saturating_sub(1) as u32;
                all.extend((0..pairs).map(|at| (Site::Swap { line, at }, vec![1])));
            }
        }
        all.push((Site::Out { line }, vec![1]));
        all
    }

    /// The line with the changes that concern it; `None` if it goes.
    fn changed(&self, changes: &Changes, section: u32) -> Option<String> {
        let line = self.place.line;
        if changes.contains_key(&Site::Out { line }) {
            return None;
        }
        let Some(step) = self.step() else { return Some(self.words()) };
        let mut out = step.clone();
        for (at, number) in numbers(step) {
            let own = changes.get(&Site::Number { line, at });
            if let Some(new) = own.or_else(|| changes.get(&Site::Numbers { section, old: number })) {
                out.by[at as usize] = new.to_string();
            }
        }
        for at in 0..out.targets.len().saturating_sub(1) {
            if changes.contains_key(&Site::Swap { line, at: at as u32 }) {
                out.targets.swap(at, at + 1);
            }
        }
        Some(out.to_string())
    }
}

impl Schedule {
    /// Places to change and what to try there: of each kernel one after the other in turns, its numbers that stand in several
    /// lines first.
    pub fn sites(&self) -> Vec<(Site, Vec<i64>)> {
        let mut sections: Vec<Vec<(Site, Vec<i64>)>> = vec![];
        for (head, entries) in &self.kernels {
            let mut count: BTreeMap<u32, usize> = BTreeMap::new();
            for (_, number) in entries.iter().filter_map(Entry::step).flat_map(numbers) {
                *count.entry(number).or_default() += 1;
            }
            let several = count.into_iter().rev().filter(|(number, times)| *number > 1 && *times > 1);
            let section = head.place.line;
            let several = several.map(|(old, _)| (Site::Numbers { section, old }, others(old)));
            sections.push(several.chain(entries.iter().flat_map(Entry::sites)).collect());
        }
        sections.push(self.model.iter().flatten().flat_map(Entry::sites).collect());
        let longest = sections.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest).flat_map(|at| sections.iter().filter_map(move |s| s.get(at).cloned())).collect()
    }

    /// The sections that changes concern: the kernel's name, or `None` for that of the model, its lines, and the number of its first.
    fn concerned<'s>(&'s self, changes: &Changes) -> Vec<(Option<&'s Entry>, &'s [Entry], u32)> {
        let lines: BTreeSet<u32> = changes
            .keys()
            .map(|site| match *site {
                Site::Numbers { section: line, .. } => line,
                Site::Number { line, .. } | Site::Swap { line, .. } | Site::Out { line } => line,
            })
            .collect();
        let model = self.model.iter().map(|entries| (None, &entries[..], 0));
        let kernels = self.kernels.iter().map(|(head, entries)| (Some(head), &entries[..], head.place.line));
        let has = |entries: &[Entry], head: u32| {
            lines.contains(&head) || entries.iter().any(|e| lines.contains(&e.place.line))
        };
        model.chain(kernels).filter(|(_, entries, head)| has(entries, *head)).collect()
    }

    /// The lines that say something else after changes, in the order of the text.
    pub fn differences(&self, changes: &Changes) -> Vec<Difference> {
        let mut out = vec![];
        for (_, entries, head) in self.concerned(changes) {
            for entry in entries {
                let (before, after) = (entry.words(), entry.changed(changes, head));
                if after.as_ref() != Some(&before) {
                    out.push((entry.place.line, before, after));
                }
            }
        }
        out
    }

    /// The schedule after changes, as text, of the kernels that they concern alone: the others are scheduled as always.
    ///
    /// # Errors
    /// A change at a place that the schedule does not have.
    pub fn changed(&self, changes: &Changes) -> Result<String, String> {
        let known: BTreeSet<Site> = self.sites().into_iter().map(|(site, _)| site).collect();
        if let Some(site) = changes.keys().find(|site| !known.contains(site)) {
            return Err(format!("the schedule has no place `{site}` to change"));
        }
        let mut text = format!("{}\n", self.head());
        for (kernel, entries, head) in self.concerned(changes) {
            text += &format!("\n{}\n", kernel.map_or("model".to_string(), Entry::words));
            for line in entries.iter().filter_map(|entry| entry.changed(changes, head)) {
                text += &format!("  {line}\n");
            }
        }
        Ok(text)
    }
}
