//! ONNX's softmax family and losses.

use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::expr::{Tensor, all};
use crate::graph::decompose::softmax::{log_softmax, softmax};
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::{Coord, ReduceOp, axis};

rules! {
    onnx_softmax "Softmax and its logarithm along one axis (before version 13: over all axes from there on), and hardmax, \
         which is 1 at the first maximum.\n\n`y = softmax(x)` --> `e = exp(x - max x)`, `y = e * (1 / sum e)`" {
        "onnx.Softmax" => |c| along(c, softmax),
        "onnx.LogSoftmax" => |c| along(c, log_softmax),
        "onnx.Hardmax" => |c| along(c, hardmax),
    }
    onnx_losses "The negated log-probability of the label, weighted, and its mean or sum.\n\n\
         `l = nll(x, t, w)` --> `l = -gather x[n, t, ..] * w[t]`, `sum l / sum w[t]`" {
        "onnx.NegativeLogLikelihoodLoss" => |c| loss(c, c.x(0).wide()),
        "onnx.SoftmaxCrossEntropyLoss" => |c| {
            let log = log_softmax(c.x(0).wide(), 1);
            let y = loss(c, log)?;
            Ok::<_, Refusal>([y, log.to(c.x(0).elem())])
        },
    }
}

/// `f` along an axis; before version 13, along all from there on.
fn along<'g>(c: &Call<'g>, f: fn(Tensor<'g>, usize) -> Tensor<'g>) -> Result<Tensor<'g>> {
    let (x, shape) = (c.x(0), c.x(0).shape()?);
    let older = c.int("opset", 13)? < 13;
    let at = normal_axis(c.int("axis", if older { 1 } else { -1 })?, shape.len())?;
    if !older {
        return Ok(f(x, at));
    }
    let rows = [c.cx.numel(&shape[..at]), c.cx.numel(&shape[at..])];
    Ok(f(x.reshape(&rows), 1).reshape(&shape))
}

fn hardmax(x: Tensor<'_>, at: usize) -> Tensor<'_> {
    if x.shape().is_ok_and(|shape| shape.get(at).is_some_and(|n| n.is_const(0))) {
        return x;
    }
    let first = x.reduce(ReduceOp::ArgMax { last: false }, &[at], true);
    let position = x.shape().map(|shape| x.cx.index(axis(at), Elem::I64, shape));
    x.cx.good(position).equals(first).select(x.like(1.0), 0.0)
}

/// The loss of `log [n, c, d..]`, with `(.., labels [n, d..], weight? [c])`.
fn loss<'g>(c: &Call<'g>, log: Tensor<'g>) -> Result<Tensor<'g>> {
    let (labels, shape) = (c.x(1), c.x(1).shape()?);
    let mut expected = log.shape()?;
    let classes = if expected.len() > 1 { Some(expected.remove(1)) } else { None };
    let Some(classes) = classes.filter(|_| c.cx.same_shape(&expected, &shape)) else {
        let (labels, scores) = (labels.shape_text(), log.shape_text());
        return Err(Refusal::new(format!("labels of shape {labels} do not fit scores of shape {scores}")));
    };
    let weight = c.maybe(2).map(|w| w.of_shape("the weight of classes", &[classes])).transpose()?;
    let labels = labels.to(Elem::I64);
    let ignored = c.int_of("ignore_index")?.map(|index| labels.equals(index));
    // An ignored label may lie outside the classes.
    let safe = ignored.map_or(labels, |ignored| ignored.select(0, labels));
    let mut coords = vec![Coord::Ix(axis(0)), Coord::Arg(1)];
    coords.extend((1..shape.len()).map(|d| Coord::Ix(axis(d))));
    let mut loss = -log.gather(&[safe], coords, shape.clone());
    let mut weight = weight.map(|w| w.to(log.elem()).gather(&[safe], vec![Coord::Arg(1)], shape.clone()));
    if let Some(ignored) = ignored {
        weight = Some(ignored.select(0.0, weight.unwrap_or(loss.like(1.0))));
        loss = ignored.select(0.0, loss);
    }
    loss = weight.map_or(loss, |weight| loss * weight);
    let axes = all(shape.len());
    let y = match (c.text("reduction")?.unwrap_or("mean"), weight) {
        ("none", _) => loss,
        ("sum", _) => loss.sum(&axes, false),
        ("mean", None) => loss.mean(&axes, false),
        ("mean", Some(weight)) => loss.sum(&axes, false) / weight.sum(&axes, false),
        (other, _) => return Err(Refusal::new(format!("reduction is {other:?}, which ONNX does not define"))),
    };
    Ok(y.to(c.x(0).elem()))
}
