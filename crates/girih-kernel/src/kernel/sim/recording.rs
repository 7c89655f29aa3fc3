//! The parts of a run that are kept for pictures: the worst request of each statement to shared memory, and the order
//! in which the warps of the first block ran their statements.
//!
//! Time is counted in steps: a warp takes a step for each statement, and where the threads of a block meet, all go on
//! from the step of the last. Loops and accesses of a thread's own arrays take no step, since unrolling removes most of
//! them.

use std::collections::BTreeMap;

use super::{Instruction, WARP};
use crate::kernel::ir::*;

/// A request of a warp to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// By lane, bytes from the start of shared memory; lanes that take part are bits.
    pub address: [u64; WARP as usize],
    pub lanes: u32,
    /// The bytes that each lane accesses.
    pub bytes: u32,
    /// Wavefronts, and the fewest that would do.
    pub taken: u32,
    pub least: u32,
}

/// The number of steps of each kind in an interval.
pub type Bin = BTreeMap<Instruction, u64>;

/// The steps of the warps of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timeline {
    /// Steps of a bin.
    pub width: u64,
    /// By warp.
    pub bins: Vec<Vec<Bin>>,
}

/// A copy to shared memory, from the step that begins it to the one that has waited for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    pub warp: u32,
    pub statement: u32,
    pub from: u64,
    pub until: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recording {
    /// By statement.
    pub requests: BTreeMap<u32, Request>,
    pub timeline: Timeline,
    /// The copies that are kept.
    pub flights: Vec<Flight>,
    /// By statement: the array of global memory that it touches.
    pub arrays: BTreeMap<u32, String>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { width: 1, bins: vec![] }
    }
}

impl Timeline {
    /// Adds steps of a warp of one kind, from a step on. Bins grow where there would be too many.
    fn add(&mut self, warp: u32, kind: Instruction, from: u64, steps: u64) {
        while (from + steps).div_ceil(self.width) > MOST_BINS {
            self.width *= 2;
            for bins in &mut self.bins {
                let pairs = bins.chunks(2).map(|pair| {
                    let mut sum = Bin::new();
                    pair.iter().flatten().for_each(|(kind, n)| *sum.entry(*kind).or_default() += n);
                    sum
                });
                *bins = pairs.collect();
            }
        }
        let Some(bins) = self.bins.get_mut(warp as usize) else { return };
        let (mut at, until) = (from, from + steps);
        while at < until {
            let number = at / self.width;
            let end = until.min((number + 1) * self.width);
            if bins.len() <= number as usize {
                bins.resize(number as usize + 1, Bin::new());
            }
            *bins[number as usize].entry(kind).or_default() += end - at;
            at = end;
        }
    }
}

/// Bins of a warp.
const MOST_BINS: u64 = 300;
/// Flights that are kept.
const MOST: usize = 1000;

/// A recording in the making.
pub(super) struct Recorder {
    pub made: Recording,
    kinds: Vec<Instruction>,
    block: Option<[u32; 3]>,
    /// The step of each warp.
    warps: Vec<u64>,
}

impl Recorder {
    pub fn new(kernel: &Kernel) -> Recorder {
        let mut arrays = BTreeMap::new();
        let mut next = 0;
        name(kernel, &kernel.body, &mut next, &mut arrays);
        let made = Recording { arrays, ..Recording::default() };
        Recorder { made, kinds: Instruction::all(kernel), block: None, warps: vec![] }
    }

    pub fn begin(&mut self, block: [u32; 3], warps: u32) {
        if self.block.is_none() {
            self.block = Some(block);
            self.warps = vec![0; warps as usize];
            self.made.timeline.bins = vec![vec![]; warps as usize];
        }
    }

    pub fn ran(&mut self, block: [u32; 3], warp: u32, statement: u32) {
        if self.block == Some(block)
            && let Some(kind) = self.kinds.get(statement as usize)
            && !matches!(kind, Instruction::ControlFlow | Instruction::Local)
        {
            let kind = *kind;
            self.step(warp, kind, 1);
        }
    }

    fn step(&mut self, warp: u32, kind: Instruction, steps: u64) {
        let Some(at) = self.warps.get_mut(warp as usize) else { return };
        self.made.timeline.add(warp, kind, *at, steps);
        *at += steps;
    }

    /// All threads of a block have met.
    pub fn met(&mut self, block: [u32; 3]) {
        if self.block != Some(block) {
            return;
        }
        let last = self.warps.iter().copied().max().unwrap_or(0);
        for warp in 0..self.warps.len() as u32 {
            let behind = last - self.warps[warp as usize];
            if behind > 0 {
                self.step(warp, Instruction::Barrier, behind);
            }
        }
    }

    /// A request to shared memory.
    pub fn requested(&mut self, statement: u32, request: Request) {
        let worst = self.made.requests.entry(statement).or_insert(request);
        if u64::from(request.taken) * u64::from(worst.least) > u64::from(worst.taken) * u64::from(request.least) {
            *worst = request;
        }
    }

    pub fn takes_off(&mut self, block: [u32; 3], warp: u32, statement: u32) {
        let Some(at) = self.warps.get(warp as usize).filter(|_| self.block == Some(block)) else { return };
        let under_way = |f: &&Flight| f.until.is_none() && (f.warp, f.statement) == (warp, statement);
        // Copies that begin one after the other are shown as one.
        if self.made.flights.iter().rev().take(8).find(under_way).is_some_and(|f| at - f.from < NEAR) {
            return;
        }
        if self.made.flights.len() < MOST {
            self.made.flights.push(Flight { warp, statement, from: *at, until: None });
        }
    }

    pub fn lands(&mut self, block: [u32; 3], warp: u32, statement: u32) {
        let Some(at) = self.warps.get(warp as usize).filter(|_| self.block == Some(block)) else { return };
        let under_way = |f: &&mut Flight| f.until.is_none() && (f.warp, f.statement) == (warp, statement);
        if let Some(flight) = self.made.flights.iter_mut().find(under_way) {
            flight.until = Some(*at);
        }
    }
}

/// Steps within which copies of a statement are one.
const NEAR: u64 = 64;

/// The arrays that statements touch, by their numbers.
fn name(kernel: &Kernel, body: &[Stmt], next: &mut u32, out: &mut BTreeMap<u32, String>) {
    for stmt in body {
        let number = *next;
        *next += 1;
        let base = match stmt {
            Stmt::Load { place: Address::Mem { base, .. }, .. }
            | Stmt::Store { place: Address::Mem { base, .. }, .. }
            | Stmt::Rmw { place: Address::Mem { base, .. }, .. }
            | Stmt::Cas { place: Address::Mem { base, .. }, .. }
            | Stmt::CopyAsync { from: Address::Mem { base, .. }, .. } => Some(*base),
            Stmt::TmaLoad { tensor, .. } | Stmt::TmaStore { tensor, .. } => kernel.tensors.get(*tensor).map(|t| t.base),
            _ => None,
        };
        if let Some(val) = base.and_then(|base| kernel.vals.get(base)) {
            out.insert(number, val.name.to_string());
        }
        match stmt {
            Stmt::For { body, .. } | Stmt::Loop { body } => name(kernel, body, next, out),
            Stmt::If { then, els, .. } => {
                name(kernel, then, next, out);
                name(kernel, els, next, out);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_the_run() {
        let mut t = Timeline { bins: vec![vec![]; 2], ..Timeline::default() };
        for step in 0..1000 {
            t.add(0, if step % 2 == 0 { Instruction::Matrix } else { Instruction::Arithmetic }, step, 1);
        }
        t.add(1, Instruction::Barrier, 0, 1000);
        assert_eq!((t.width, t.bins[0].len(), t.bins[1].len()), (4, 250, 250));
        assert!(t.bins[0].iter().all(|bin| bin[&Instruction::Matrix] == 2 && bin[&Instruction::Arithmetic] == 2));
        assert!(t.bins[1].iter().all(|bin| bin[&Instruction::Barrier] == 4));
    }
}
