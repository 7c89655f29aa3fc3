//! One-line expressions: `torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))`.
//!
//! In: text in a subset of Python, and the known facts about the inputs it does not define. Out: a graph in Torch IR
//! whose outputs are the tensors of the last expression. There is neither Python nor PyTorch here: the evaluator runs
//! the text on Python's values and on tensors with a type and a shape but no elements, and appends an operation of ATen
//! for each operation on tensors.
//!
//! ```text
//! x = torch.randn(32, 64)          an input `x`, filled with normal numbers when nobody gives it
//! fc = torch.nn.Linear(64, 16)     inputs `weight` and `bias`, parameters
//! fc(x).relu()                     aten.linear, aten.relu; its result is the output `out`
//! ```
//!
//! * A tuple has the outputs `out0`, `out1`, ...; a dict those of its keys.
//! * Names that the text does not define are inputs where `inputs` has them. Among the extents of `torch.randn` and its
//!   like an undefined name is a symbolic extent: `torch.randn(B, 128)`.
//! * Weights are named by their path, `fc1.weight`, and get PyTorch's default initialisation as their fill.
//! * Models are evaluated, not trained: dropout is the identity, batch normalisation uses running statistics.
//!
//! Invariants: no text panics or runs without end (steps, nesting and sizes are bounded); every problem has the place in
//! the text, and problems that do not depend on each other are reported together.

mod ast;
mod error;
mod eval;
mod lexer;
mod library;
mod parse;
mod release;
#[cfg(test)]
mod tests;
mod value;

pub use library::help::{Known, asked, help, table};

use crate::base::Diagnostic;
use crate::graph::{Elem, Graph};

/// The file name in places within a text.
pub const PLACE: &str = "expression";

/// The known facts about an input that the text does not define.
#[derive(Clone, PartialEq, Debug)]
pub struct Given {
    pub name: String,
    pub elem: Elem,
    /// `None` is an extent that is known only at run time.
    pub shape: Vec<Option<u64>>,
}

/// A text that was evaluated.
#[derive(Debug)]
pub struct Evaluated {
    /// Torch IR.
    pub graph: Graph,
}

/// Evaluates a text. Every problem has the code E0805 and a span.
pub fn evaluate(text: &str, inputs: &[Given]) -> Result<Evaluated, Vec<Diagnostic>> {
    let program = parse::parse(text)?;
    eval::Eval::new(text, inputs).run(&program)
}
