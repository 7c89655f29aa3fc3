//! The parts of a run that follow from the extents of its inputs: computed once for each set of extents and remembered.
//!
//! In: a plan and the values of the symbols. Out: a grid for each step, where each of its arguments comes from, the
//! length of the arena and the shapes of the outputs.

use std::collections::BTreeMap;

use girih_compiler::graph::{Elem, Graph};
use girih_compiler::index::Ix;
use girih_compiler::loops::model::{ArrayId, ArrayPlace, LoopId, Plan, Step, StepArg};

use super::arena::{self, Life};
use super::extent;
use super::tensor::bytes_of;
use crate::error::{Error, Result};
use girih_compiler::spec::MAX_GRID;

/// Where one argument of a step comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Bits that are the same in every run: a symbol's value, the address of a constant or of a loaded array.
    Fixed(u64),
    /// The address of an input, by its position in the graph.
    Input(u32),
    /// The address of an output, by its position.
    Output(u32),
    /// In the arena, at this offset.
    Arena(u64),
    /// Another place in each round of a loop: a position in [`Binding::rows`].
    Row(u32),
}

/// A row of an array, which round after round of a loop reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    pub of: Slot,
    /// Bytes from one row to the next.
    pub stride: u64,
    pub within: LoopId,
    pub reverse: bool,
}

/// A step ready to launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundStep {
    /// `None`: an axis has no blocks or nothing that it writes has elements, and there is nothing to do.
    pub grid: Option<[u32; 3]>,
    /// Its arguments, a range of [`Binding::slots`].
    pub first: u32,
    pub count: u32,
}

impl BoundStep {
    pub fn range(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    pub elem: Elem,
    pub shape: Vec<u64>,
    pub bytes: u64,
    /// The slot that is copied to it after the last step; `None` if a step writes it in place.
    pub copy: Option<Slot>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Binding {
    pub symbols: Vec<i64>,
    pub steps: Vec<BoundStep>,
    pub slots: Vec<Slot>,
    pub rows: Vec<Row>,
    /// The most rounds of each loop.
    pub rounds: Vec<u64>,
    /// Where arrays lie that loops copy or look at, and how many bytes they are.
    pub moved: BTreeMap<ArrayId, (Slot, u64)>,
    pub outputs: Vec<Output>,
    pub arena: u64,
    /// The bytes of all temporary arrays together, had each memory of its own.
    pub unshared: u64,
}

/// The addresses of arrays that live as long as the model, by array.
pub trait Fixed {
    fn address(&self, array: ArrayId) -> Option<u64>;
}

/// Blocks along x, y and z, over symbols; a launch with an axis of 0 blocks does nothing.
pub type Grid = [Ix; 3];

/// Computes the binding of the plan's steps, whose kernels have these grids.
pub fn bind(plan: &Plan, grids: &[Grid], graph: &Graph, symbols: &[i64], fixed: &dyn Fixed) -> Result<Binding> {
    let too_large = |name: &str| {
        let text = symbols_text(graph, symbols);
        Error::argument(format!("the array `{name}` of the model is too large{text}"))
    };
    let mut binding = Binding { symbols: symbols.to_vec(), ..Binding::default() };
    // Where each array lies; those that are not arrays of these steps stay unknown.
    let mut places: Vec<Option<Slot>> = vec![None; plan.arrays.len()];
    for (id, array) in plan.arrays.iter() {
        if let Some(place) = places.get_mut(id.0 as usize) {
            *place = match array.place {
                ArrayPlace::Input(i) => Some(Slot::Input(i)),
                ArrayPlace::Constant(_) | ArrayPlace::Loaded => fixed.address(id).map(Slot::Fixed),
                ArrayPlace::Temp | ArrayPlace::Row { .. } => None,
            };
        }
    }
    for (k, &id) in plan.outputs.iter().enumerate() {
        let (Some(array), Some(place)) = (plan.arrays.get(id), places.get_mut(id.0 as usize)) else {
            return Err(Error::Internal("an output of the plan is not an array".into()));
        };
        let shape = extent::shape(&array.shape, symbols).ok_or_else(|| too_large(&array.name))?;
        let bytes = bytes_of(array.elem, &shape).ok_or_else(|| too_large(&array.name))?;
        let copy = *place;
        if place.is_none() {
            *place = Some(Slot::Output(k as u32));
        }
        binding.outputs.push(Output { elem: array.elem, shape, bytes, copy });
    }
    // Temporary arrays, from the step that first names them to the last one that does.
    let mut lives: Vec<(ArrayId, Life)> = vec![];
    let sized = |id: ArrayId| -> Result<u64> {
        let Some(array) = plan.arrays.get(id) else { return Err(Error::Internal("an array vanished".into())) };
        let shape = extent::shape(&array.shape, symbols);
        shape.and_then(|s| bytes_of(array.elem, &s)).ok_or_else(|| too_large(&array.name))
    };
    for (id, [first, last]) in plan.lives() {
        if places.get(id.0 as usize).copied().flatten().is_none() {
            lives.push((id, Life { bytes: sized(id)?, first, last }));
        }
    }
    let of = lives.iter().map(|(_, life)| *life).collect::<Vec<_>>();
    let (offsets, length) =
        arena::place(&of).ok_or_else(|| Error::argument("the model's arrays are too large".to_string()))?;
    binding.arena = length;
    binding.unshared = of.iter().fold(0u64, |n, life| n.saturating_add(life.bytes));
    for ((id, _), offset) in lives.iter().zip(offsets) {
        if let Some(place) = places.get_mut(id.0 as usize) {
            *place = Some(Slot::Arena(offset));
        }
    }
    // A row may be of a row of a loop around its own, which comes before it.
    for (id, array) in plan.arrays.iter() {
        let ArrayPlace::Row { of, within, reverse } = array.place else { continue };
        // No step names a row of an array that no step names.
        let Some(of) = places.get(of.0 as usize).copied().flatten() else { continue };
        binding.rows.push(Row { of, stride: sized(id)?, within, reverse });
        if let Some(place) = places.get_mut(id.0 as usize) {
            *place = Some(Slot::Row(binding.rows.len() as u32 - 1));
        }
    }
    let place = |id: ArrayId| places.get(id.0 as usize).copied().flatten();
    for l in plan.loops.values() {
        let rounds = extent::value(&l.rounds, symbols).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
            Error::argument(format!("a loop's number of rounds is out of range{}", symbols_text(graph, symbols)))
        })?;
        binding.rounds.push(rounds);
        let moves = l.before.iter().chain(&l.first).chain(&l.last).flat_map(|(from, to)| [*from, *to]);
        for id in moves.chain(l.condition) {
            let slot = place(id).ok_or_else(|| Error::Internal("an array of a loop has no place".into()))?;
            binding.moved.insert(id, (slot, sized(id)?));
        }
    }
    for (step, grid) in plan.steps.iter().zip(grids) {
        push_step(&mut binding, step, grid, symbols, symbols, &place)?;
        let empty = |id: &ArrayId| {
            let shape = plan.arrays.get(*id).and_then(|a| extent::shape(&a.shape, symbols));
            shape.is_some_and(|s| s.contains(&0))
        };
        if let Some(bound) = binding.steps.last_mut().filter(|_| step.writes.iter().all(empty)) {
            bound.grid = None;
        }
    }
    Ok(binding)
}

/// The binding of the steps that run once. Their extents depend on no symbol.
pub fn bind_load(plan: &Plan, grids: &[Grid], graph: &Graph, fixed: &dyn Fixed) -> Result<Binding> {
    // Every kernel takes every symbol, even unused ones.
    let any: Vec<i64> = graph.symbols.values().map(|s| s.lo).collect();
    let mut binding = Binding::default();
    for (step, grid) in plan.load.iter().zip(grids) {
        let place = |id: ArrayId| match plan.arrays.get(id)?.place {
            ArrayPlace::Input(i) => Some(Slot::Input(i)),
            _ => fixed.address(id).map(Slot::Fixed),
        };
        push_step(&mut binding, step, grid, &[], &any, &place)?;
    }
    Ok(binding)
}

/// `known` are the symbols that the grid may depend on, `symbols` those that the kernel is given.
fn push_step(
    binding: &mut Binding,
    step: &Step,
    blocks: &Grid,
    known: &[i64],
    symbols: &[i64],
    place: &dyn Fn(ArrayId) -> Option<Slot>,
) -> Result<()> {
    let name = &step.kernel.name;
    let bug = |what: &str| Error::Internal(format!("the step {name}: {what}"));
    let mut grid = [0u32; 3];
    for (n, ix) in grid.iter_mut().zip(blocks) {
        let blocks = extent::value(ix, known).ok_or_else(|| bug("its grid does not follow from the symbols"))?;
        *n = u32::try_from(blocks).ok().filter(|n| *n <= MAX_GRID).ok_or_else(|| {
            Error::argument(format!(
                "the kernel {name} would need {blocks} blocks along one axis, but at most {MAX_GRID} are possible"
            ))
        })?;
    }
    let first = binding.slots.len() as u32;
    for arg in &step.args {
        binding.slots.push(match arg {
            StepArg::Array(id) => place(*id).ok_or_else(|| bug("an array of it has no place"))?,
            StepArg::Symbol(s) => {
                // Kernels that run at load take the symbols and do not use them.
                let value = symbols.get(s.0 as usize).copied().unwrap_or(0);
                Slot::Fixed(value as u64)
            }
        });
    }
    let count = binding.slots.len() as u32 - first;
    if count as usize != step.kernel.params.len() {
        return Err(bug("it has more or fewer arguments than its kernel has parameters"));
    }
    binding.steps.push(BoundStep { grid: (!grid.contains(&0)).then_some(grid), first, count });
    Ok(())
}

/// ` for batch = 3, length = 128`, for messages.
pub fn symbols_text(graph: &Graph, symbols: &[i64]) -> String {
    let list: Vec<String> = graph.symbols.values().zip(symbols).map(|(s, v)| format!("{} = {v}", s.name)).collect();
    if list.is_empty() { String::new() } else { format!(" for {}", list.join(", ")) }
}
