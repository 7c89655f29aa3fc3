//! A model on the reference evaluator: its expected results, and a bound on rounding errors.
//!
//! In: a run made ready. Out: its outputs by the definitions of the primitives, in the model's types or with every float
//! as an f64; and how far rounding may move the results, by the length of the longest chain of dependent roundings on the way
//! to an output.

use girih_compiler::base::Code;
use girih_compiler::base::budget::{Budget, elements};
use girih_compiler::base::launch::Trap;
use girih_compiler::graph::eval::{self, EvalError};
use girih_compiler::graph::{Graph, Op, ReduceOp};
use girih_compiler::num::ScalarOp;
use girih_compiler::pipeline::{self, Silent};

use super::{Prepared, Tensor, extent};
use crate::compile::version::PLANNED;
use crate::compile::widen::ErrorBound;
use crate::error::{Error, Result};
use crate::system::machine;
use crate::system::signals::{self, Launching};

impl Prepared<'_> {
    /// The outputs by the reference evaluator; with `widen` every float is an f64.
    ///
    /// # Errors
    /// [`Error::Trap`] where an index lies outside its array; parameters that were bound since the run was made ready.
    pub fn evaluate(&self, widen: bool) -> Result<Vec<(String, Tensor)>> {
        let _turn = self.turn()?;
        let tensors = self.evaluate_graph(&self.model.graph, widen)?;
        let names = self.model.graph.outputs.iter().map(|o| o.name.clone());
        Ok(names.zip(tensors).collect())
    }

    /// The outputs of a graph with the model's inputs.
    pub(super) fn evaluate_graph(&self, graph: &Graph, widen: bool) -> Result<Vec<Tensor>> {
        let mut budget = match self.model.options.max_memory {
            Some(limit) => Budget::of_memory(limit),
            None => machine::budget(),
        };
        let mut inputs = vec![];
        for one in &self.inputs {
            let raw = one.raw();
            let bytes = super::tensor::bytes_of(raw.elem, raw.shape).and_then(|n| usize::try_from(n).ok());
            let bytes = bytes.ok_or_else(|| Error::argument("an input is too large".to_string()))?;
            // The evaluator holds its own copy, eight bytes an element.
            let much = |why| Error::argument(format!("an input cannot be evaluated: {why}"));
            budget.take(elements(raw.shape).and_then(|n| n.checked_mul(8))).map_err(much)?;
            // SAFETY: the tensor's memory is as long as its type and shape say, and stays borrowed.
            let bytes = if bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(raw.data, bytes) } };
            let tensor = eval::Tensor::from_bytes(raw.elem, raw.shape, bytes);
            inputs.push(tensor.ok_or_else(|| Error::Internal("an input cannot be evaluated".into()))?);
        }
        let symbols = self.symbols.iter().copied().map(Some).collect();
        // A loop may have no end.
        let _launching = Launching::begin()?;
        let options = eval::Options { widen, budget, symbols, stop: Some(signals::stopping_here) };
        let outputs = eval::evaluate(graph, &inputs, &eval::no_files, &options).map_err(refused)?;
        let mut tensors = vec![];
        for t in outputs {
            let mut tensor = Tensor::zeroed(t.elem, &t.shape)?;
            t.write_bytes(tensor.buffer_mut().bytes_mut());
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    /// How far rounding may move this model's results.
    pub fn error_bound(&self) -> Result<ErrorBound> {
        let options = self.model.options.pipeline(PLANNED)?;
        let tensor = pipeline::lower_tensor(&self.model.graph, &options, &mut Silent).map_err(Error::Program)?;
        Ok(self.bound(&tensor))
    }

    /// How much rounding a graph of primitives may do.
    pub(super) fn bound(&self, tensor: &Graph) -> ErrorBound {
        let coarsest = eval::bound(tensor, &self.symbols).coarsest;
        ErrorBound { chain: longest_chain(tensor, &self.symbols), eps: self.model.options.rounding(coarsest) }
    }
}

fn refused(error: EvalError) -> Error {
    match error {
        EvalError::Refused(diagnostics) => Error::Program(diagnostics),
        EvalError::TooMuch { value, why } => Error::argument(format!("`{value}` cannot be evaluated: {why}")),
        EvalError::Stopped => Error::Interrupted,
        EvalError::Node { value, message, .. } => {
            Error::Trap(Box::new(Trap::new(Code::IndexOutside, format!("`{value}`: {message}"))))
        }
    }
}

/// The length of the longest chain of dependent roundings on the way to an output; at least 1.
fn longest_chain(graph: &Graph, symbols: &[i64]) -> f64 {
    chains(graph, symbols).into_iter().fold(1f64, f64::max)
}

/// The longest chain on the way to each output.
fn chains(graph: &Graph, symbols: &[i64]) -> Vec<f64> {
    let mut chain = vec![0f64; graph.values.len()];
    for node in graph.nodes.values() {
        let before = node.values().filter_map(|v| chain.get(v.0 as usize)).fold(0f64, |a, b| a.max(*b));
        if let Op::Repeat(r) = &node.op {
            // The chain grows by the roundings of one round for each round.
            let rounds = extent::value(&r.rounds, symbols).unwrap_or(1).clamp(1, 1 << 20) as f64;
            let one = chains(&r.body, symbols).into_iter().fold(0f64, f64::max);
            for v in &node.results {
                if let Some(slot) = chain.get_mut(v.0 as usize) {
                    *slot = before + rounds * one;
                }
            }
            continue;
        }
        let folded: Vec<u32> = match &node.op {
            Op::Reduce { op: ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Dot, axes } => axes.clone(),
            Op::Scan { axis, .. } => vec![*axis],
            _ => vec![],
        };
        let shape = node.values().next().and_then(|v| graph.values.get(v)).map(|v| v.shape.as_slice());
        let extent = |a: &u32| shape.and_then(|s| extent::value(s.get(*a as usize)?, symbols)).unwrap_or(1) as f64;
        let own = match &node.op {
            _ if !folded.is_empty() => folded.iter().map(extent).product(),
            Op::Elementwise(ScalarOp::Copy | ScalarOp::Select | ScalarOp::NegF | ScalarOp::AbsF) => 0.0,
            Op::Elementwise(_) | Op::Scatter { .. } => 1.0,
            _ => 0.0,
        };
        for v in &node.results {
            if let (Some(slot), Some(value)) = (chain.get_mut(v.0 as usize), graph.values.get(*v)) {
                *slot = if value.elem.is_float() { before + own } else { 0.0 };
            }
        }
    }
    graph.outputs.iter().filter_map(|o| chain.get(o.value.0 as usize)).copied().collect()
}
