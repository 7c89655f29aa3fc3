//! The results of a simulation: plain data, and a text that a person can read.

use std::collections::BTreeMap;
use std::fmt;

use super::count::{Counts, Requests};
use super::finding::{Finding, Origin, Statement};
use super::{Instruction, Options, Policy, Recording};
use crate::base::Code;
use crate::base::launch::Trap;
use crate::base::provenance::SourceId;
use crate::kernel::ir::Kernel;

/// A statement and what it took.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub statement: Statement,
    pub kind: Instruction,
    pub counts: Counts,
}

/// An array of global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touched {
    /// Its sectors that were touched, each once.
    pub sectors: u64,
    /// All its bytes.
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub kernel: String,
    pub policy: Policy,
    pub seed: u64,
    /// Blocks that began, and the threads of each.
    pub blocks: u64,
    pub threads: u32,
    /// Shared memory of each block.
    pub shared_bytes: u64,
    /// In order of the statements.
    pub findings: Vec<Finding>,
    /// Events beyond those that the findings tell apart.
    pub untold: u64,
    /// Every statement that ran, in order of the text.
    pub rows: Vec<Row>,
    pub total: Counts,
    /// The arrays that were touched.
    pub touched: Vec<Touched>,
    /// Sectors of global memory that blocks loaded, each block each of them once; and those that a block loaded again, which its
    /// multiprocessor's own cache may have.
    pub loaded: u64,
    pub reloaded: u64,
    /// Times that all threads of a block met.
    pub barriers: u64,
    /// `races`: races were looked for; `watched_all`: in all of global memory (the shadow has a bound).
    pub races: bool,
    pub watched_all: bool,
    /// Why the run ended before its end, and where: an assertion, an interrupt, a deadlock, the limit of steps.
    pub stopped: Option<(Trap, Option<Statement>)>,
    /// The data for pictures, if it was recorded.
    pub recording: Option<Box<Recording>>,
}

impl Report {
    /// Returns true if the run ended and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.stopped.is_none()
    }

    /// How often threads ran statements of each kind; of those that ran.
    pub fn instructions(&self) -> BTreeMap<Instruction, u64> {
        let mut all = BTreeMap::new();
        for row in &self.rows {
            *all.entry(row.kind).or_default() += row.counts.executions;
        }
        all
    }

    /// The report of a run that must end and find nothing; otherwise what went wrong.
    pub fn clean(mut self) -> Result<Report, Trap> {
        if let Some((trap, _)) = self.stopped.take() {
            // The findings say why it did not end.
            let why = trap.code == Code::OutOfFuel && !self.findings.is_empty();
            let message = if why { format!("{}\n{}", trap.message, self.told()) } else { trap.message };
            return Err(Trap { message, ..trap });
        }
        match self.findings.first() {
            None => Ok(self),
            Some(first) => {
                let mut trap = Trap { block: first.thread.block, ..Trap::new(Code::Simulated, self.told()) };
                if let Some(origin) = &first.origin {
                    (trap.span, trap.frames) = (origin.span, Box::new(origin.frames.clone()));
                }
                Err(trap)
            }
        }
    }

    /// Says of each statement in a finding, and of the one where the run stopped, which operation of the user's it was made
    /// for, where `origin` knows, and its line in the CUDA.
    pub fn locate(
        &mut self,
        kernel: &Kernel,
        origin: &dyn Fn(SourceId) -> Option<Origin>,
        cuda: &dyn Fn(u32) -> Option<u32>,
    ) {
        if self.is_clean() {
            return;
        }
        let made_for = crate::kernel::provenance::of_statements(kernel);
        let located = |statement: &mut Statement| {
            let sources = made_for.get(statement.number as usize).map_or(&[][..], Vec::as_slice);
            let found = sources.iter().find_map(|s| origin(*s));
            if let Some(found) = &found {
                statement.from = Some(found.text.clone());
            }
            statement.cuda = cuda(statement.number);
            found
        };
        for finding in &mut self.findings {
            if let Some((statement, _)) = &mut finding.first {
                located(statement);
            }
            finding.origin = located(&mut finding.statement);
        }
        if let Some((trap, Some(statement))) = &mut self.stopped
            && let Some(found) = located(statement)
            && trap.frames.is_empty()
            && trap.span.is_none()
        {
            (trap.span, trap.frames) = (found.span, Box::new(found.frames));
        }
    }

    /// The first findings in words.
    fn told(&self) -> String {
        let (policy, seed) = (self.policy.name(), self.seed);
        let mut text =
            format!("the kernel `{}` is wrong on a GPU, under the schedule {policy} (seed {seed})", self.kernel);
        for finding in self.findings.iter().take(MOST_FINDINGS) {
            text += &format!("\n{}", finding.to_string().trim_end());
        }
        if self.findings.len() > MOST_FINDINGS {
            text += &format!("\nand {} more findings", self.findings.len() - MOST_FINDINGS);
        }
        text
    }

    pub(super) fn empty(kernel: &Kernel, options: &Options) -> Report {
        Report {
            kernel: kernel.name.to_string(),
            policy: options.policy,
            seed: options.seed,
            blocks: 0,
            threads: kernel.threads,
            shared_bytes: kernel.shared,
            findings: vec![],
            untold: 0,
            rows: vec![],
            total: Counts::default(),
            touched: vec![],
            loaded: 0,
            reloaded: 0,
            barriers: 0,
            races: options.races,
            watched_all: true,
            stopped: None,
            recording: None,
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
fn memory_line(which: &str, r: &Requests, taken: &str) -> String {
    if r.requests == 0 {
        return String::new();
    }
    let (requests, taken) = (plural(r.requests, "request"), plural(r.taken, taken));
    format!("{which} memory: {} bytes in {requests}, {taken} ({:.2}x)\n", r.bytes, r.ratio())
}

impl Report {
    /// Why and where the run was stopped; nothing where it ended.
    pub fn stop(&self) -> String {
        let Some((trap, at)) = &self.stopped else { return String::new() };
        let [x, y, z] = trap.block;
        let at = at.as_ref().map_or(String::new(), |Statement { line, text, from, .. }| match from {
            Some(from) => format!("  at {from}, line {line} of Kernel IR: `{text}`\n"),
            None => format!("  at line {line}: `{text}`\n"),
        });
        format!("stopped: {} (block {x},{y},{z})\n{at}", trap.message)
    }

    /// All but the table of statements.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        let (blocks, threads) = (plural(self.blocks, "block"), plural(self.threads.into(), "thread"));
        let (policy, seed) = (self.policy.name(), self.seed);
        out += &format!("{}: {blocks} of {threads}, schedule {policy} (seed {seed})\n", self.kernel);
        for finding in &self.findings {
            out += &finding.to_string();
        }
        if self.untold > 0 {
            out += &format!("and {} more that are not told apart\n", plural(self.untold, "event"));
        }
        out += &self.stop();
        match (self.races, self.findings.len() as u64) {
            _ if self.stopped.is_some() => {}
            (true, 0) => out += "nothing found\n",
            (false, 0) => out += "nothing found; races were not looked for\n",
            (_, n) => out += &format!("{}\n", plural(n, "finding")),
        }
        if !self.watched_all {
            out += "part of global memory was too large to be watched for races\n";
        }
        let (ran, barriers) = (plural(self.total.executions, "thread-statement"), plural(self.barriers, "barrier"));
        out += &format!("{ran}, {barriers}\n");
        let kinds: Vec<String> = self.instructions().into_iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        if !kinds.is_empty() {
            out += &format!("by kind: {}\n", kinds.join(", "));
        }
        if self.shared_bytes > 0 {
            out += &format!("{} bytes of shared memory for each block\n", self.shared_bytes);
        }
        out += &memory_line("shared", &self.total.shared, "wavefront");
        out += &memory_line("global", &self.total.global, "sector");
        out
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
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
