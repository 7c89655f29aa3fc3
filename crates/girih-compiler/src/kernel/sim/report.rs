//! What a simulation saw: plain data, and a text that a person can read.

use std::fmt;

use super::count::{Counts, Requests};
use super::finding::{Finding, Statement};
use super::{Options, Policy};
use crate::base::Code;
use crate::base::launch::Trap;

/// A statement and what it took.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub statement: Statement,
    pub counts: Counts,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub kernel: String,
    pub policy: Policy,
    pub seed: u64,
    /// Blocks that began, and the threads of each.
    pub blocks: u64,
    pub threads: u32,
    /// In order of the statements.
    pub findings: Vec<Finding>,
    /// Events beyond those that the findings tell apart.
    pub untold: u64,
    /// Every statement that ran, in order of the text.
    pub rows: Vec<Row>,
    pub total: Counts,
    /// Times that all threads of a block met.
    pub barriers: u64,
    /// Whether races were looked for, and whether for all of global memory: the shadow has a bound.
    pub races: bool,
    pub watched_all: bool,
    /// Why the run ended before its end, and where: an assertion, an interrupt, a deadlock, the limit of steps.
    pub stopped: Option<(Trap, Option<Statement>)>,
}

impl Report {
    /// Whether the run ended and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.stopped.is_none()
    }

    /// The report of a run that must end and find nothing; otherwise what went wrong.
    pub fn clean(mut self) -> Result<Report, Trap> {
        if let Some((trap, _)) = self.stopped.take() {
            return Err(trap);
        }
        match self.findings.first() {
            None => Ok(self),
            Some(first) => Err(Trap { block: first.thread.block, ..Trap::new(Code::Simulated, self.told()) }),
        }
    }

    /// The first findings in words.
    fn told(&self) -> String {
        let mut text = format!("the kernel `{}` is wrong on a GPU", self.kernel);
        for finding in self.findings.iter().take(MOST_FINDINGS) {
            text += &format!("\n{}", finding.to_string().trim_end());
        }
        if self.findings.len() > MOST_FINDINGS {
            text += &format!("\nand {} more findings", self.findings.len() - MOST_FINDINGS);
        }
        text
    }

    pub(super) fn empty(kernel: &str, threads: u32, options: &Options) -> Report {
        Report {
            kernel: kernel.to_string(),
            policy: options.policy,
            seed: options.seed,
            blocks: 0,
            threads,
            findings: vec![],
            untold: 0,
            rows: vec![],
            total: Counts::default(),
            barriers: 0,
            races: options.races,
            watched_all: true,
            stopped: None,
        }
    }
}

/// Findings that a trap's message holds.
const MOST_FINDINGS: usize = 4;

fn plural(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// `128 (1.00x)`: what was taken, against the least.
fn against(r: &Requests) -> String {
    if r.requests == 0 { String::new() } else { format!("{} ({:.2}x)", r.taken, r.ratio()) }
}

/// One line on all of a memory.
fn memory_line(f: &mut fmt::Formatter<'_>, which: &str, r: &Requests, taken: &str) -> fmt::Result {
    if r.requests == 0 {
        return Ok(());
    }
    let (requests, taken) = (plural(r.requests, "request"), plural(r.taken, taken));
    writeln!(f, "{which} memory: {} bytes in {requests}, {taken} ({:.2}x)", r.bytes, r.ratio())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, threads) = (plural(self.blocks, "block"), plural(self.threads.into(), "thread"));
        writeln!(f, "{}: {blocks} of {threads}, schedule {} (seed {})", self.kernel, self.policy.name(), self.seed)?;
        for finding in &self.findings {
            write!(f, "{finding}")?;
        }
        if self.untold > 0 {
            writeln!(f, "and {} more that are not told apart", plural(self.untold, "event"))?;
        }
        if let Some((trap, at)) = &self.stopped {
            let [x, y, z] = trap.block;
            writeln!(f, "stopped: {} (block {x},{y},{z})", trap.message)?;
            if let Some(at) = at {
                writeln!(f, "  at line {}: `{}`", at.line, at.text)?;
            }
        }
        match (self.races, self.findings.len() as u64) {
            _ if self.stopped.is_some() => {}
            (true, 0) => writeln!(f, "nothing found")?,
            (false, 0) => writeln!(f, "nothing found; races were not looked for")?,
            (_, n) => writeln!(f, "{}", plural(n, "finding"))?,
        }
        if !self.watched_all {
            writeln!(f, "part of global memory was too large to be watched for races")?;
        }
        let (ran, barriers) = (plural(self.total.executions, "thread-statement"), plural(self.barriers, "barrier"));
        writeln!(f, "{ran}, {barriers}")?;
        memory_line(f, "shared", &self.total.shared, "wavefront")?;
        memory_line(f, "global", &self.total.global, "sector")?;
        let rows: Vec<&Row> =
            self.rows.iter().filter(|r| r.counts.shared.requests + r.counts.global.requests > 0).collect();
        if rows.is_empty() {
            return Ok(());
        }
        writeln!(f, "line  threads     wavefronts        sectors           statement")?;
        for row in rows {
            let (Statement { line, text, .. }, c) = (&row.statement, &row.counts);
            let (shared, global) = (against(&c.shared), against(&c.global));
            writeln!(f, "{line:>4}  {:<10}  {shared:<16}  {global:<16}  {text}", c.executions)?;
        }
        Ok(())
    }
}
