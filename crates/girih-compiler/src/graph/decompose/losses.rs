//! Losses of PyTorch.

use super::activations::log_sigmoid;
use super::types::{number_attr, operand};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, axis};
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "cross_entropy",
        handles: &["aten.cross_entropy_loss"],
        doc: "From scores and class numbers (or class probabilities), along axis 1. The score is gathered before the \
              logarithm is taken, so no table of logarithms is made.\n\n\
              `y = cross_entropy(x, t)` --> `l = log(sum exp(x - max x)) + max x - gather x[t]`, `y = mean(l)`",
        run: cross_entropy,
    },
    Decomposition {
        name: "nll_loss",
        handles: &[
            "aten.nll_loss",
            "aten.nll_loss_nd",
            "aten.nll_loss2d",
            "aten.nll_loss_forward",
            "aten.nll_loss2d_forward",
        ],
        doc: "From logarithms of probabilities and class numbers.\n\n`y = nll_loss(x, t)` --> `y = mean(-gather x[t])`",
        run: nll_loss,
    },
    Decomposition {
        name: "pointwise_loss",
        handles: &[
            "aten.mse_loss",
            "aten.l1_loss",
            "aten.smooth_l1_loss",
            "aten.huber_loss",
            "aten.binary_cross_entropy",
            "aten.binary_cross_entropy_with_logits",
            "aten.kl_div",
            "aten.soft_margin_loss",
        ],
        doc: "A function of two tensors, then the mean, the sum, or nothing (`reduction` 1, 2, 0).\n\n\
              `y = mse_loss(a, b)` --> `d = a - b`, `y = mean(d*d)`",
        run: pointwise,
    },
];

/// `reduction`: 0 nothing, 1 the mean, 2 the sum.
fn reduced(b: &mut Builder<'_>, x: Arg, reduction: i64) -> Result<Arg> {
    let axes: Vec<usize> = (0..b.rank(x)).collect();
    match reduction {
        _ if axes.is_empty() => Ok(x),
        1 => b.mean(x, &axes, false),
        2 => b.reduce(ReduceOp::Sum, x, &axes, false),
        _ => Ok(x),
    }
}

fn reduction(call: &Call<'_>) -> Result<i64> {
    match call.word("reduction") {
        Some("none") => Ok(0),
        Some("mean") => Ok(1),
        Some("sum") => Ok(2),
        Some(other) => Err(Refusal::new(format!("unknown reduction {other}"))),
        None => match call.int("reduction", 1)? {
            n @ 0..=2 => Ok(n),
            n => Err(Refusal::new(format!("unknown reduction {n}"))),
        },
    }
}

/// What class numbers select: the elements of `x` along an axis, where the class counts, and the weights.
struct Chosen {
    picked: Arg,
    counts: Arg,
    /// 0 where the class is ignored.
    weights: Arg,
}

fn choose(b: &mut Builder<'_>, call: &Call<'_>, x: Arg, target: Arg, at: usize) -> Result<Chosen> {
    let elem = b.elem(x);
    let target = b.convert(target, Elem::I64)?;
    let ignored = number_attr(b, call, "ignore_index", -100.0, Elem::I64)?;
    let zero = ir::int_scalar(Elem::I64, 0);
    let counts = b.compare(Predicate::NotEqual, target, ignored)?;
    let class = b.select(counts, target, zero)?;
    let shape = b.shape(target);
    let rank = b.rank(x);
    let coords = (0..rank).map(|d| match d {
        d if d < at => Coord::Ix(axis(d)),
        d if d == at => Coord::Arg(1),
        d => Coord::Ix(axis(d - 1)),
    });
    let mut want = b.shape(x);
    want.remove(at);
    if !b.same_shape(&want, &shape) {
        return Err(Refusal::new(format!(
            "classes of shape {} do not fit scores of shape {}",
            b.shape_text(&shape),
            b.shape_text(&b.shape(x))
        )));
    }
    let coords = coords.collect();
    let picked = b.gather(x, &[class], coords, shape.clone())?;
    let (one, none) = (ir::scalar(elem, 1.0), ir::scalar(elem, 0.0));
    let weights = match call.opt(2) {
        Some(w) => {
            let w = b.convert(w, elem)?;
            let w = b.gather(w, &[class], vec![Coord::Arg(1)], shape)?;
            b.select(counts, w, none)?
        }
        None => b.select(counts, one, none)?,
    };
    Ok(Chosen { picked, counts, weights })
}

/// Weighted losses reduced; the total weight too.
fn weighted(b: &mut Builder<'_>, loss: Arg, c: &Chosen, how: i64) -> Result<(Arg, Arg)> {
    let zero = b.scalar_like(loss, 0.0);
    let loss = b.mul(loss, c.weights)?;
    let loss = b.select(c.counts, loss, zero)?;
    let axes: Vec<usize> = (0..b.rank(loss)).collect();
    let fold =
        |b: &mut Builder<'_>, x: Arg| if axes.is_empty() { Ok(x) } else { b.reduce(ReduceOp::Sum, x, &axes, false) };
    let total = fold(b, c.weights)?;
    let y = match how {
        0 => loss,
        1 => {
            let sum = fold(b, loss)?;
            b.div(sum, total)?
        }
        _ => fold(b, loss)?,
    };
    Ok((y, total))
}

/// `(input, target, weight?)`.
fn cross_entropy(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, target) = (call.arg(0)?, call.arg(1)?);
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    if rank == 0 {
        return Err(Refusal::new("cross entropy needs an axis of classes"));
    }
    let how = reduction(call)?;
    let smoothing = call.float("label_smoothing", 0.0)?;
    let at = usize::from(rank > 1);
    let x = b.convert(x, wide)?;
    let max = b.reduce(ReduceOp::Max, x, &[at], true)?;
    let shifted = b.sub(x, max)?;
    let e = b.exp(shifted)?;
    let sum = b.reduce(ReduceOp::Sum, e, &[at], true)?;
    let log = b.log(sum)?;
    let classes = b.shape(x)[at].clone();
    let classes = super::reductions::extent(b, classes, wide)?;
    if b.elem(target).is_float() {
        let mut target = b.convert(target, wide)?;
        if smoothing > 0.0 {
            let (keep, spread) = (ir::scalar(wide, 1.0 - smoothing), ir::scalar(wide, smoothing));
            let share = b.div(spread, classes)?;
            target = b.mul(target, keep)?;
            target = b.add(target, share)?;
        }
        let logs = b.sub(shifted, log)?;
        let mut terms = b.mul(logs, target)?;
        if let Some(w) = call.opt(2) {
            let w = b.convert(w, wide)?;
            let rest: Vec<usize> = (1..rank - at).collect();
            let w = b.unsqueeze(w, &rest)?;
            terms = b.mul(terms, w)?;
        }
        let sum = b.reduce(ReduceOp::Sum, terms, &[at], false)?;
        let loss = b.neg(sum)?;
        let y = if how == 1 && rank > 1 {
            let axes: Vec<usize> = (0..rank - 1).collect();
            b.mean(loss, &axes, false)?
        } else {
            reduced(b, loss, how)?
        };
        return Ok(vec![b.convert(y, narrow)?]);
    }
    let c = choose(b, call, x, target, at)?;
    let (max, log) = (b.squeeze(max, &[at])?, b.squeeze(log, &[at])?);
    let lse = b.add(max, log)?;
    let loss = b.sub(lse, c.picked)?;
    let (mut y, total) = weighted(b, loss, &c, how)?;
    if smoothing > 0.0 {
        // The part of every class: the mean over classes of the weighted losses.
        let log = b.unsqueeze(log, &[at])?;
        let logs = b.sub(shifted, log)?;
        let mut each = b.neg(logs)?;
        if let Some(w) = call.opt(2) {
            let w = b.convert(w, wide)?;
            let rest: Vec<usize> = (1..rank - at).collect();
            let w = b.unsqueeze(w, &rest)?;
            each = b.mul(each, w)?;
        }
        let smooth = b.reduce(ReduceOp::Sum, each, &[at], false)?;
        let zero = b.scalar_like(smooth, 0.0);
        let smooth = b.select(c.counts, smooth, zero)?;
        let axes: Vec<usize> = (0..b.rank(smooth)).collect();
        let smooth = match how {
            0 => smooth,
            _ if axes.is_empty() => smooth,
            1 => {
                let s = b.reduce(ReduceOp::Sum, smooth, &axes, false)?;
                b.div(s, total)?
            }
            _ => b.reduce(ReduceOp::Sum, smooth, &axes, false)?,
        };
        let (keep, spread) = (ir::scalar(wide, 1.0 - smoothing), ir::scalar(wide, smoothing));
        let share = b.div(spread, classes)?;
        y = b.mul(y, keep)?;
        let part = b.mul(smooth, share)?;
        y = b.add(y, part)?;
    }
    Ok(vec![b.convert(y, narrow)?])
}

/// `(input, target, weight?)`; the forms with `_forward` give the total weight too.
fn nll_loss(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, target) = (call.arg(0)?, call.arg(1)?);
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    if rank == 0 {
        return Err(Refusal::new("the loss needs an axis of classes"));
    }
    let x = b.convert(x, wide)?;
    let c = choose(b, call, x, target, usize::from(rank > 1))?;
    let loss = b.neg(c.picked)?;
    let how = reduction(call)?;
    let (y, total) = weighted(b, loss, &c, how)?;
    let y = b.convert(y, narrow)?;
    if !call.name.ends_with("_forward") {
        return Ok(vec![y]);
    }
    // PyTorch gives no total where nothing is reduced.
    let total = if how == 0 { ir::scalar(wide, 0.0) } else { total };
    Ok(vec![y, b.convert(total, narrow)?])
}

fn pointwise(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = super::types::pair(b, call.arg(0)?, call.arg(1)?)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let (x, y) = (b.convert(x, wide)?, b.convert(y, wide)?);
    let c = |v: f64| ir::scalar(wide, v);
    let (zero, one, half) = (c(0.0), c(1.0), c(0.5));
    let how = reduction(call)?;
    let loss = match call.name {
        "aten.mse_loss" => {
            let d = b.sub(x, y)?;
            b.mul(d, d)?
        }
        "aten.l1_loss" => {
            let d = b.sub(x, y)?;
            b.abs(d)?
        }
        name @ ("aten.smooth_l1_loss" | "aten.huber_loss") => {
            let smooth = name == "aten.smooth_l1_loss";
            let limit = call.float(if smooth { "beta" } else { "delta" }, 1.0)?;
            let d = b.sub(x, y)?;
            let size = b.abs(d)?;
            let square = b.mul(size, size)?;
            let square = b.mul(square, half)?;
            let shifted = b.sub(size, c(0.5 * limit))?;
            let (near, far) =
                if smooth { (b.div(square, c(limit))?, shifted) } else { (square, b.mul(shifted, c(limit))?) };
            let is_near = b.compare(Predicate::LessThan, size, c(limit))?;
            b.select(is_near, near, far)?
        }
        "aten.soft_margin_loss" => {
            let p = b.mul(x, y)?;
            let n = b.neg(p)?;
            let e = b.exp(n)?;
            b.log1p(e)?
        }
        "aten.kl_div" => {
            if call.flag("log_target", false)? {
                let e = b.exp(y)?;
                let d = b.sub(y, x)?;
                b.mul(e, d)?
            } else {
                let l = b.log(y)?;
                let own = b.mul(y, l)?;
                let none = b.compare(Predicate::Equal, y, zero)?;
                let own = b.select(none, zero, own)?;
                let cross = b.mul(y, x)?;
                b.sub(own, cross)?
            }
        }
        "aten.binary_cross_entropy" => {
            // Logarithms are cut at -100, as in PyTorch.
            let rest = b.sub(one, x)?;
            let (p, q) = (b.log(x)?, b.log(rest)?);
            let (p, q) = (b.max(p, c(-100.0))?, b.max(q, c(-100.0))?);
            let less = b.sub(y, one)?;
            let right = b.mul(less, q)?;
            let left = b.mul(y, p)?;
            let loss = b.sub(right, left)?;
            match call.opt(2) {
                Some(w) => {
                    let w = b.convert(w, wide)?;
                    b.mul(loss, w)?
                }
                None => loss,
            }
        }
        _ => {
            // (1 - y)*x - l*log_sigmoid(x), with l = 1 + (pos_weight - 1)*y
            let rest = b.sub(one, y)?;
            let left = b.mul(rest, x)?;
            let mut right = log_sigmoid(b, x)?;
            if let Some(w) = operand(b, call, 3, "pos_weight")? {
                let w = b.convert(w, wide)?;
                let w = b.sub(w, one)?;
                let w = b.mul(w, y)?;
                let w = b.add(w, one)?;
                right = b.mul(right, w)?;
            }
            let loss = b.sub(left, right)?;
            match call.opt(2) {
                Some(w) => {
                    let w = b.convert(w, wide)?;
                    b.mul(loss, w)?
                }
                None => loss,
            }
        }
    };
    let y = reduced(b, loss, how)?;
    Ok(vec![b.convert(y, narrow)?])
}
