//! Losses of PyTorch.

use super::Call;
use super::activations::log_sigmoid;
use super::expr::{Tensor, all};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{Coord, axis};

rules! {
    cross_entropy "From scores and class numbers (or class probabilities), along axis 1. The score is gathered before the \
         logarithm is taken, so no table of logarithms is made.\n\n\
         `y = cross_entropy(x, t)` --> `l = log(sum exp(x - max x)) + max x - gather x[t]`, `y = mean(l)`" {
        "aten.cross_entropy_loss" => cross_entropy,
    }
    nll_loss "From logarithms of probabilities and class numbers.\n\n`y = nll_loss(x, t)` --> `y = mean(-gather x[t])`" {
        "aten.nll_loss" | "aten.nll_loss_nd" | "aten.nll_loss2d" => |c| nll_loss(c).map(|(y, _)| y),
        "aten.nll_loss_forward" | "aten.nll_loss2d_forward" => |c| nll_loss(c).map(|(y, total)| [y, total.to(y.elem())]),
    }
    pointwise_loss "A function of two tensors, then the mean, the sum, or nothing (`reduction` 1, 2, 0).\n\n\
         `y = mse_loss(a, b)` --> `d = a - b`, `y = mean(d*d)`" {
        "aten.mse_loss" => |c| pointwise(c, |x, y| {
            let d = x - y;
            Ok(d * d)
        }),
        "aten.l1_loss" => |c| pointwise(c, |x, y| Ok((x - y).abs())),
        "aten.smooth_l1_loss" => |c| pointwise(c, |x, y| bent(x, y, c.float("beta", 1.0)?, true)),
        "aten.huber_loss" => |c| pointwise(c, |x, y| bent(x, y, c.float("delta", 1.0)?, false)),
        "aten.soft_margin_loss" => |c| pointwise(c, |x, y| Ok((-(x * y.into_shape_of(x))).exp().log1p())),
        "aten.kl_div" => |c| pointwise(c, |x, y| kl_div(c, x, y)),
        "aten.binary_cross_entropy" => |c| pointwise(c, |x, y| {
            // Logarithms are cut at -100, as in PyTorch.
            let rest = 1.0 - x;
            let (p, q) = (x.log(), rest.log());
            let (p, q) = (p.max(-100.0), q.max(-100.0));
            Ok(weighed(c, (y - 1.0) * q - y * p))
        }),
        // (1 - y)*x - l*log_sigmoid(x), with l = 1 + (pos_weight - 1)*y
        "aten.binary_cross_entropy_with_logits" => |c| pointwise(c, |x, y| {
            let left = (1.0 - y) * x;
            let right = log_sigmoid(x);
            let weight = c.operand(3, "pos_weight")?;
            let right = weight.map_or(right, |w| right * ((w.to(x.elem()) - 1.0) * y + 1.0));
            Ok(weighed(c, left - right))
        }),
    }
}

/// `reduction`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reduction {
    None,
    Mean,
    Sum,
}

impl Reduction {
    pub(super) fn of(c: &Call<'_>) -> Result<Reduction> {
        let unknown = |what: &dyn std::fmt::Display| Err(Refusal::new(format!("unknown reduction {what}")));
        match c.word("reduction") {
            Some("none") => Ok(Reduction::None),
            Some("mean") => Ok(Reduction::Mean),
            Some("sum") => Ok(Reduction::Sum),
            Some(other) => unknown(&other),
            None => match c.int("reduction", 1)? {
                0 => Ok(Reduction::None),
                1 => Ok(Reduction::Mean),
                2 => Ok(Reduction::Sum),
                n => unknown(&n),
            },
        }
    }

    fn over_all(self, x: Tensor<'_>) -> Result<Tensor<'_>> {
        let axes = all(x.rank()?);
        Ok(match self {
            _ if axes.is_empty() => x,
            Reduction::None => x,
            Reduction::Mean => x.mean(&axes, false),
            Reduction::Sum => x.sum(&axes, false),
        })
    }
}

/// The sum of all elements.
fn total(x: Tensor<'_>) -> Result<Tensor<'_>> {
    Reduction::Sum.over_all(x)
}

/// The selection by class numbers: the elements of `x` along an axis, where the class counts, and the weights.
struct Chosen<'g> {
    picked: Tensor<'g>,
    counts: Tensor<'g>,
    /// 0 where the class is ignored.
    weights: Tensor<'g>,
}

fn choose<'g>(c: &Call<'g>, x: Tensor<'g>, target: Tensor<'g>, at: usize) -> Result<Chosen<'g>> {
    let target = target.to(Elem::I64);
    let counts = target.differs(c.number_or("ignore_index", -100.0, Elem::I64));
    let class = counts.select(target, 0);
    let shape = target.shape()?;
    let mut want = x.shape()?;
    let coords = (0..want.len()).map(|d| match d {
        d if d < at => Coord::Ix(axis(d)),
        d if d == at => Coord::Arg(1),
        d => Coord::Ix(axis(d - 1)),
    });
    let coords = coords.collect();
    want.remove(at);
    if !c.cx.same_shape(&want, &shape) {
        let (classes, scores) = (c.cx.shape_text(&shape), x.shape_text());
        return Err(Refusal::new(format!("classes of shape {classes} do not fit scores of shape {scores}")));
    }
    let picked = x.gather(&[class], coords, shape.clone());
    let weight = match c.maybe(2) {
        Some(w) => w.to(x.elem()).gather(&[class], vec![Coord::Arg(1)], shape),
        None => x.like(1.0),
    };
    Ok(Chosen { picked, counts, weights: counts.select(weight, 0.0) })
}

/// Weighted losses reduced; the total weight too.
fn weighted<'g>(loss: Tensor<'g>, chosen: &Chosen<'g>, how: Reduction) -> Result<(Tensor<'g>, Tensor<'g>)> {
    let loss = chosen.counts.select(loss * chosen.weights, 0.0);
    let of_weights = total(chosen.weights)?;
    let y = match how {
        Reduction::None => loss,
        Reduction::Mean => total(loss)? / of_weights,
        Reduction::Sum => total(loss)?,
    };
    Ok((y, of_weights))
}

/// `(input, target, weight?)`.
fn cross_entropy<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (narrow, target, rank) = (c.x(0).elem(), c.x(1), c.x(0).rank()?);
    if rank == 0 {
        return Err(Refusal::new("cross entropy needs an axis of classes"));
    }
    let how = Reduction::of(c)?;
    let smoothing = c.float("label_smoothing", 0.0)?;
    let at = usize::from(rank > 1);
    let x = c.x(0).wide();
    let max = x.greatest(&[at], true);
    let shifted = x - max;
    let log = shifted.exp().sum(&[at], true).log();
    let classes = c.cx.extent(&x.shape()?[at], x.elem());
    let spread = || x.like(smoothing) / classes;
    // The weight of each class, along the axis of classes.
    let by_class = |terms: Tensor<'g>| {
        let weight = |w: Tensor<'g>| w.to(x.elem()).unsqueeze(&(1..rank - at).collect::<Vec<_>>());
        c.maybe(2).map_or(terms, |w| terms * weight(w))
    };
    if target.elem().is_float() {
        let mut target = target.to(x.elem());
        if smoothing > 0.0 {
            let share = spread();
            target = target * (1.0 - smoothing) + share;
        }
        let loss = -by_class((shifted - log) * target).sum(&[at], false);
        let mean = how == Reduction::Mean && rank > 1;
        return Ok(if mean { loss.mean(&all(rank - 1), false) } else { how.over_all(loss)? }.to(narrow));
    }
    let chosen = choose(c, x, target, at)?;
    let (max, log) = (max.squeeze(&[at]), log.squeeze(&[at]));
    let (mut y, of_weights) = weighted(max + log - chosen.picked, &chosen, how)?;
    if smoothing > 0.0 {
        // The part of every class: the mean over classes of the weighted losses.
        let each = by_class(-(shifted - log.unsqueeze(&[at])));
        let smooth = chosen.counts.select(each.sum(&[at], false), 0.0);
        let smooth = match how {
            Reduction::Mean if smooth.rank()? > 0 => total(smooth)? / of_weights,
            Reduction::Sum => total(smooth)?,
            _ => smooth,
        };
        let share = spread();
        y = y * (1.0 - smoothing) + smooth * share;
    }
    Ok(y.to(narrow))
}

/// `(input, target, weight?)`; the total weight too.
fn nll_loss<'g>(c: &Call<'g>) -> Result<(Tensor<'g>, Tensor<'g>)> {
    let (x, rank) = (c.x(0), c.x(0).rank()?);
    if rank == 0 {
        return Err(Refusal::new("the loss needs an axis of classes"));
    }
    let chosen = choose(c, x.wide(), c.x(1), usize::from(rank > 1))?;
    let loss = -chosen.picked;
    let how = Reduction::of(c)?;
    let (y, of_weights) = weighted(loss, &chosen, how)?;
    // PyTorch gives no total where nothing is reduced.
    let of_weights = if how == Reduction::None { y.like(0.0) } else { of_weights };
    Ok((y.to(x.elem()), of_weights))
}

/// A function of two tensors of one type, reduced.
fn pointwise<'g>(c: &Call<'g>, loss: impl FnOnce(Tensor<'g>, Tensor<'g>) -> Result<Tensor<'g>>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.x(1));
    let how = Reduction::of(c)?;
    Ok(how.over_all(loss(x.wide(), y.wide())?)?.to(x.elem()))
}

/// A parabola near 0 and a line beyond the limit.
fn bent<'g>(x: Tensor<'g>, y: Tensor<'g>, limit: f64, smooth: bool) -> Result<Tensor<'g>> {
    let size = (x - y).abs();
    let square = size * size * 0.5;
    let shifted = size - 0.5 * limit;
    let (near, far) = if smooth { (square / limit, shifted) } else { (square, shifted * limit) };
    Ok(size.below(limit).select(near, far))
}

fn kl_div<'g>(c: &Call<'g>, x: Tensor<'g>, y: Tensor<'g>) -> Result<Tensor<'g>> {
    if c.flag("log_target", false)? {
        return Ok(y.exp() * (y - x));
    }
    let own = y * y.log();
    let own = y.equals(0.0).select(0.0, own);
    Ok(own - y * x)
}

/// Losses times the weights, where there are some.
fn weighed<'g>(c: &Call<'g>, loss: Tensor<'g>) -> Tensor<'g> {
    c.maybe(2).map_or(loss, |w| loss * w.to(loss.elem()))
}
