//! What a model is compiled to: kernels in order, and the arrays they read and write.
//!
//! Invariants:
//! 1. A step reads arrays that are inputs, constants, or written by an earlier step (or by a step of `load`).
//! 2. Arrays are contiguous and row-major. Distinct arrays of one step never overlap.
//! 3. Steps of `load` read only constants, parameters and what other steps of `load` wrote: they run once.
//! 4. A step all of whose results are without elements does not run: its kernel may read what is not there.
//! 5. A step's kernel has one parameter for each of its arguments, in order: a pointer for an array, an `i64` for a
//!    symbol.

use crate::base::IdMap;
use crate::graph::{ConstId, Elem, OriginId, SymId};
use crate::id_type;
use crate::index::Ix;
use crate::loops::ir::Kernel;

id_type! {
    /// An array of a plan.
    ArrayId
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
}

#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub name: String,
    pub elem: Elem,
    /// Over the symbols of the graph (see [`SymId::ix`]).
    pub shape: Vec<Ix>,
    pub place: ArrayPlace,
    /// Known when the model is loaded: a constant, a parameter, or made of those.
    pub at_load: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepArg {
    Array(ArrayId),
    Symbol(SymId),
}

/// One kernel and what it is called with.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// In Loop IR, open: how many blocks it takes is for Tile IR to decide.
    pub kernel: Kernel,
    pub args: Vec<StepArg>,
    pub reads: Vec<ArrayId>,
    pub writes: Vec<ArrayId>,
    /// The operations of the model that it computes.
    pub origins: Vec<OriginId>,
    /// Multiplications and additions of its contractions, over symbols.
    pub flops: Ix,
    /// Bytes that it must move at least: each array read and written once, over symbols.
    pub bytes: Ix,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub arrays: IdMap<ArrayId, Array>,
    /// Runs once, when the model is loaded.
    pub load: Vec<Step>,
    pub steps: Vec<Step>,
    /// The array of each output of the graph, in order; may be an input or a constant, and may repeat.
    pub outputs: Vec<ArrayId>,
}
