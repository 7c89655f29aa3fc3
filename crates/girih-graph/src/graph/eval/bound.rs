//! Bounds on the rounding errors of a graph, for comparing its results with the widened ones.

use super::super::ir::{Graph, Op, ReduceOp};
use crate::graph::bind;
use crate::num::{DType, ScalarOp};

/// The numbers that rounding depends on: results may differ from the widened ones by
/// `c * sqrt(longest) * epsilon(coarsest)`, relative to their size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The most elements that one sum or product folds; at least 1.
    pub longest: u64,
    /// The float type of fewest digits that something is computed in; `None` when nothing rounds.
    pub coarsest: Option<DType>,
}

/// The bound for a graph of primitives with values for its symbols (see [`bind::bind_symbols`]).
pub fn bound(graph: &Graph, symbols: &[i64]) -> Bound {
    let digits = |d: DType| match d {
        DType::F64 => 53,
        DType::F32 => 24,
        DType::F16 | DType::TF32 => 11,
        DType::BF16 => 8,
        _ => 3,
    };
    let mut out = Bound { longest: 1, coarsest: None };
    for node in graph.nodes.values() {
        if let Op::Repeat(r) = &node.op {
            let inner = bound(&r.body, symbols);
            out.longest = out.longest.max(inner.longest);
            out.coarsest = match (out.coarsest, inner.coarsest) {
                (Some(a), Some(b)) => Some(if digits(b) < digits(a) { b } else { a }),
                (a, b) => a.or(b),
            };
            continue;
        }
        let folded = match &node.op {
            Op::Reduce { op: ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Dot, axes } => axes.clone(),
            Op::Scan { axis, .. } => vec![*axis],
            _ => vec![],
        };
        if let Some(x) = node.values().next().and_then(|v| graph.values.get(v)) {
            let extent = |a: &u32| x.shape.get(*a as usize).and_then(|d| bind::eval_extent(d, symbols)).unwrap_or(1);
            let count = folded.iter().fold(1u64, |n, a| n.saturating_mul(extent(a).max(1) as u64));
            out.longest = out.longest.max(count);
        }
        let rounds = match &node.op {
            Op::Elementwise(op) => !matches!(op, ScalarOp::Copy | ScalarOp::Select | ScalarOp::NegF | ScalarOp::AbsF),
            Op::Reduce { .. } | Op::Scan { .. } | Op::Scatter { .. } => true,
            _ => false,
        };
        let floats = node.results.iter().filter_map(|v| graph.values.get(*v)).map(|v| v.elem.dtype);
        for d in floats.filter(|d| rounds && d.is_float()) {
            if out.coarsest.is_none_or(|c| digits(d) < digits(c)) {
                out.coarsest = Some(d);
            }
        }
    }
    out
}
