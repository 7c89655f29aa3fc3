//! The result of compiling a model: kernels in order, and the arrays they read and write.
//!
//! Invariants:
//! 1. A step reads arrays that are inputs, constants, or written by an earlier step (or by a step of `load`).
//! 2. Arrays are contiguous and row-major. Distinct arrays of one step never overlap.
//! 3. Steps of `load` read only constants, parameters and arrays that other steps of `load` wrote: they run once.
//! 4. A step whose results all have no elements does not run: its kernel may read elements that do not exist.
//! 5. The steps of a loop follow one another, and there is at least one; loops stand inside each other or apart.
//! 6. A step's kernel has one parameter for each of its arguments, in order: a pointer for an array, an `i64` for a
//!    symbol.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::IdMap;
use crate::graph::{ConstId, Elem, OriginId, SymId};
use crate::index::Ix;
use crate::loops::ir::Kernel;
use girih_base::id_type;

id_type! {
    /// An array of a plan.
    ArrayId
}

id_type! {
    /// A loop of a plan.
    LoopId
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayPlace {
    /// Position in the graph's inputs (arguments and parameters alike).
    Input(u32),
    Constant(ConstId),
    /// Written by a step of `load`, once; kept as long as the model.
    Loaded,
    /// Written by a step; memory that may be reused before the first write and after the last read.
    Temp,
    /// Each round of a loop gets another row of an array, along its axis 0; from the last one where `reverse`.
    Row {
        of: ArrayId,
        within: LoopId,
        reverse: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub name: String,
    pub elem: Elem,
    /// Over the symbols of the graph (see [`SymId::ix`]).
    pub shape: Vec<Ix>,
    pub place: ArrayPlace,
    /// Known when the model is loaded: a constant, a parameter, or computed from those.
    pub at_load: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepArg {
    Array(ArrayId),
    Symbol(SymId),
}

/// One kernel and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// In Loop IR, open: Tile IR decides how many blocks it takes.
    pub kernel: Kernel,
    pub args: Vec<StepArg>,
    pub reads: Vec<ArrayId>,
    pub writes: Vec<ArrayId>,
    /// The operations of the model that it computes.
    pub origins: Vec<OriginId>,
    /// Multiplications and additions of its contractions, over symbols.
    pub flops: Ix,
    /// The fewest bytes that it must move, over symbols: each array read and written once, and of a gathered array the elements read.
    pub bytes: Ix,
    /// The innermost loop that it belongs to.
    pub within: Option<LoopId>,
}

/// A copy of a whole array to another.
pub type Move = (ArrayId, ArrayId);

/// Steps that run in rounds: those with this loop in their `within`, and those of loops inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub within: Option<LoopId>,
    /// How many rounds, at most; over symbols.
    pub rounds: Ix,
    /// A bool: a round begins only while it is true.
    pub condition: Option<ArrayId>,
    /// Copied before the first round, at the beginning of each, and at its end; one after the other.
    pub before: Vec<Move>,
    pub first: Vec<Move>,
    pub last: Vec<Move>,
}

/// One part of what runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its index in [`Plan::steps`].
    Step(usize),
    Loop(LoopId, Range<usize>),
}

/// Runs a plan, piece by piece.
pub trait Runner {
    type Error;
    fn step(&mut self, at: usize) -> Result<(), Self::Error>;
    fn copy(&mut self, what: &Move) -> Result<(), Self::Error>;
    /// How many rounds a loop has at most.
    fn rounds(&mut self, id: LoopId) -> Result<u64, Self::Error>;
    /// Returns the value of a bool.
    fn holds(&mut self, condition: ArrayId) -> Result<bool, Self::Error>;
    /// Round `round` of `of` begins, or has ended.
    fn begin(&mut self, id: LoopId, round: u64, of: u64) -> Result<(), Self::Error>;
    fn end(&mut self, _: LoopId) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub loops: IdMap<LoopId, Loop>,
    pub arrays: IdMap<ArrayId, Array>,
    /// Runs once, when the model is loaded.
    pub load: Vec<Step>,
    pub steps: Vec<Step>,
    /// The array of each output of the graph, in order; may be an input or a constant, and may repeat.
    pub outputs: Vec<ArrayId>,
}

impl Plan {
    /// The outermost loop around a step that stands inside of `within`.
    fn outermost(&self, at: usize, within: Option<LoopId>) -> Option<LoopId> {
        let mut around = self.steps.get(at)?.within;
        let mut found = None;
        while around != within {
            found = around;
            around = self.loops.get(around?)?.within;
        }
        found
    }

    /// The parts of some of the steps, which belong to one loop or to none.
    pub fn parts(&self, range: Range<usize>, within: Option<LoopId>) -> Vec<Part> {
        let mut parts: Vec<Part> = vec![];
        for at in range {
            match (self.outermost(at, within), parts.last_mut()) {
                (None, _) => parts.push(Part::Step(at)),
                (Some(id), Some(Part::Loop(last, range))) if *last == id => range.end = at + 1,
                (Some(id), _) => parts.push(Part::Loop(id, at..at + 1)),
            }
        }
        parts
    }

    /// Runs the steps that are not of `load`.
    ///
    /// # Errors
    /// The runner's.
    pub fn walk<R: Runner>(&self, runner: &mut R) -> Result<(), R::Error> {
        self.walk_parts(&self.parts(0..self.steps.len(), None), runner)
    }

    fn walk_parts<R: Runner>(&self, parts: &[Part], runner: &mut R) -> Result<(), R::Error> {
        for part in parts {
            let (id, range) = match part {
                Part::Step(at) => {
                    runner.step(*at)?;
                    continue;
                }
                Part::Loop(id, range) => (*id, range.clone()),
            };
            let Some(l) = self.loops.get(id) else { continue };
            let inner = self.parts(range, Some(id));
            l.before.iter().try_for_each(|m| runner.copy(m))?;
            let rounds = runner.rounds(id)?;
            for round in 0..rounds {
                if let Some(condition) = l.condition
                    && !runner.holds(condition)?
                {
                    break;
                }
                runner.begin(id, round, rounds)?;
                l.first.iter().try_for_each(|m| runner.copy(m))?;
                self.walk_parts(&inner, runner)?;
                l.last.iter().try_for_each(|m| runner.copy(m))?;
                runner.end(id)?;
            }
        }
        Ok(())
    }

    /// The array that contains a row; for a row of a row, the outermost array.
    pub fn base(&self, id: ArrayId) -> ArrayId {
        match self.arrays.get(id).map(|a| a.place) {
            Some(ArrayPlace::Row { of, .. }) => self.base(of),
            _ => id,
        }
    }

    /// Temporary arrays in the order in which steps name them, with the first and the last step during which each holds
    /// something.
    pub fn lives(&self) -> Vec<(ArrayId, [u32; 2])> {
        let mut ranges: BTreeMap<LoopId, [u32; 2]> = BTreeMap::new();
        for (at, step) in (0u32..).zip(&self.steps) {
            let mut around = step.within;
            while let Some(id) = around {
                ranges.entry(id).or_insert([at, at])[1] = at;
                around = self.loops.get(id).and_then(|l| l.within);
            }
        }
        let mut found: Vec<(ArrayId, [u32; 2])> = vec![];
        let mut index: BTreeMap<ArrayId, usize> = BTreeMap::new();
        let mut note = |id: ArrayId, [first, last]: [u32; 2]| match index.get(&id).and_then(|i| found.get_mut(*i)) {
            Some((_, life)) => *life = [life[0].min(first), life[1].max(last)],
            None => {
                index.insert(id, found.len());
                found.push((id, [first, last]));
            }
        };
        let mut named = |mut id: ArrayId, at: [u32; 2]| {
            let mut at = at;
            // The array that contains a row holds values in all rounds.
            while let Some(ArrayPlace::Row { of, within, .. }) = self.arrays.get(id).map(|a| a.place) {
                (id, at) = (of, ranges.get(&within).copied().unwrap_or(at));
            }
            if self.arrays.get(id).is_some_and(|a| a.place == ArrayPlace::Temp) {
                note(id, at);
            }
        };
        for (at, step) in (0u32..).zip(&self.steps) {
            let args = step.args.iter().filter_map(|a| if let StepArg::Array(id) = a { Some(*id) } else { None });
            args.chain(step.reads.iter().copied())
                .chain(step.writes.iter().copied())
                .for_each(|id| named(id, [at, at]));
        }
        for (id, range) in &ranges {
            let Some(l) = self.loops.get(*id) else { continue };
            for (from, to) in &l.before {
                named(*from, [range[0]; 2]);
                named(*to, *range);
            }
            l.first.iter().flat_map(|(a, b)| [a, b]).for_each(|id| named(*id, [range[0]; 2]));
            l.last.iter().flat_map(|(a, b)| [a, b]).for_each(|id| named(*id, [range[1]; 2]));
            l.condition.iter().for_each(|id| named(*id, *range));
        }
        // An array that is not of a loop alone stays through all its rounds.
        let mut grew = true;
        while grew {
            grew = false;
            for [a, b] in ranges.values().copied() {
                for (_, life) in &mut found {
                    let meets = life[0] <= b && a <= life[1];
                    let inside = a <= life[0] && life[1] <= b;
                    let covers = life[0] <= a && b <= life[1];
                    if meets && !inside && !covers {
                        *life = [life[0].min(a), life[1].max(b)];
                        grew = true;
                    }
                }
            }
        }
        found
    }
}
