//! ONNX's softmax family and losses.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::softmax::{log_softmax, softmax};
use crate::graph::decompose::{Call, Decomposition, normal_axis};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, axis};
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_softmax",
        handles: &["onnx.Softmax", "onnx.LogSoftmax", "onnx.Hardmax"],
        doc: "Softmax and its logarithm along one axis (before version 13: over all axes from there on), and hardmax, \
              which is 1 at the first maximum.\n\n`y = softmax(x)` --> `e = exp(x - max x)`, `y = e * (1 / sum e)`",
        run: onnx_softmax,
    },
    Decomposition {
        name: "onnx_losses",
        handles: &["onnx.NegativeLogLikelihoodLoss", "onnx.SoftmaxCrossEntropyLoss"],
        doc: "The negated log-probability of the label, weighted, and its mean or sum.\n\n\
              `l = nll(x, t, w)` --> `l = -gather x[n, t, ..] * w[t]`, `sum l / sum w[t]`",
        run: losses,
    },
];

fn onnx_softmax(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let old = call.int("opset", 13)? < 13;
    let mut at = normal_axis(call.int("axis", if old { 1 } else { -1 })?, b.rank(x))?;
    let shape = b.shape(x);
    let mut y = x;
    if old {
        let (rows, columns) = (b.numel(&shape[..at]), b.numel(&shape[at..]));
        y = b.reshape(x, &[rows, columns])?;
        at = 1;
    }
    y = match call.name {
        "onnx.LogSoftmax" => log_softmax(b, y, at)?,
        "onnx.Hardmax" if b.shape(y)[at].is_const(0) => y,
        "onnx.Hardmax" => {
            let first = b.reduce(ReduceOp::ArgMax { last: false }, y, &[at], true)?;
            let extents = b.shape(y);
            let position = b.index(axis(at), Elem::I64, extents);
            let chosen = b.compare(Predicate::Equal, position, first)?;
            let (one, zero) = (b.scalar_like(y, 1.0), b.scalar_like(y, 0.0));
            b.select(chosen, one, zero)?
        }
        _ => softmax(b, y, at)?,
    };
    Ok(vec![if old { b.reshape(y, &shape)? } else { y }])
}

/// `(x [n, c, d..], labels [n, d..], weight? [c])`; of the cross entropy also the log-probabilities.
fn losses(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, labels) = (call.arg(0)?, call.arg(1)?);
    let narrow = b.elem(x);
    let wide = b.wide(x);
    let cross = call.name.contains("CrossEntropy");
    let x = b.convert(x, wide)?;
    let log = if cross { log_softmax(b, x, 1)? } else { x };
    let shape = b.shape(labels);
    if b.rank(x) != shape.len() + 1 {
        return Err(Refusal::new(format!(
            "labels of shape {} do not fit scores of shape {}",
            b.shape_text(&shape),
            b.shape_text(&b.shape(x))
        )));
    }
    let labels = b.convert(labels, Elem::I64)?;
    let zero = ir::scalar(wide, 0.0);
    let ignored = match call.int_of("ignore_index")? {
        Some(index) => {
            let index = ir::int_scalar(Elem::I64, index);
            Some(b.compare(Predicate::Equal, labels, index)?)
        }
        None => None,
    };
    // An ignored label may lie outside the classes.
    let safe = match ignored {
        Some(ignored) => b.select(ignored, ir::int_scalar(Elem::I64, 0), labels)?,
        None => labels,
    };
    let mut coords = vec![Coord::Ix(axis(0)), Coord::Arg(1)];
    coords.extend((1..shape.len()).map(|d| Coord::Ix(axis(d))));
    let chosen = b.gather(log, &[safe], coords, shape.clone())?;
    let mut loss = b.neg(chosen)?;
    let mut weight = None;
    if let Some(w) = call.opt(2) {
        let w = b.convert(w, wide)?;
        weight = Some(b.gather(w, &[safe], vec![Coord::Arg(1)], shape.clone())?);
    }
    if let Some(ignored) = ignored {
        let kept = weight.unwrap_or(ir::scalar(wide, 1.0));
        let kept = b.select(ignored, zero, kept)?;
        weight = Some(kept);
        loss = b.select(ignored, zero, loss)?;
    }
    if let Some(weight) = weight {
        loss = b.mul(loss, weight)?;
    }
    let axes: Vec<usize> = (0..shape.len()).collect();
    let loss = match (call.text("reduction")?.unwrap_or("mean"), weight) {
        ("none", _) => loss,
        ("sum", _) => b.reduce(ReduceOp::Sum, loss, &axes, false)?,
        ("mean", None) => b.mean(loss, &axes, false)?,
        ("mean", Some(weight)) => {
            let sum = b.reduce(ReduceOp::Sum, loss, &axes, false)?;
            let total = b.reduce(ReduceOp::Sum, weight, &axes, false)?;
            b.div(sum, total)?
        }
        (other, _) => return Err(Refusal::new(format!("reduction is {other:?}, which ONNX does not define"))),
    };
    let loss = b.convert(loss, narrow)?;
    Ok(if cross { vec![loss, b.convert(log, narrow)?] } else { vec![loss] })
}
