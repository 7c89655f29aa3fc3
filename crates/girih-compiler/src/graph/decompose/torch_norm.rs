//! Normalisations of PyTorch.

use super::conv::per_channel;
use super::norm::{affine, standardize};
use super::reductions::{count, extent};
use super::types::axis_attr;
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "torch_layer_norm",
        handles: &["aten.layer_norm", "aten.native_layer_norm"],
        doc: "Rows with mean 0 and variance 1, then a weight and a bias; computed in f32 where narrower, rounded once.\n\n\
              `y = layer_norm(x, w, c)` --> `d = x - mean(x)`, `y = d * rsqrt(mean(d*d) + eps) * w + c`",
        run: layer_norm,
    },
    Decomposition {
        name: "torch_group_norm",
        handles: &["aten.group_norm", "aten.native_group_norm", "aten.instance_norm"],
        doc: "Groups of channels of each element of the batch.\n\n\
              `y = group_norm(x, w, c)` --> `x` as `[n, groups, c / groups, ..]`, standardized over the axes after the \
              groups, `* w + c`\n\nRefuses instance norm with running statistics.",
        run: group_norm,
    },
    Decomposition {
        name: "torch_batch_norm",
        handles: &[
            "aten.batch_norm",
            "aten.native_batch_norm",
            "aten._native_batch_norm_legit_no_training",
            "aten._native_batch_norm_legit",
            "aten._native_batch_norm_legit_functional",
            "aten._batch_norm_with_update_functional",
            "aten._batch_norm_no_update",
        ],
        doc: "Each channel by given statistics, folded into one scale and one shift.\n\n\
              `y = batch_norm(x, w, c, m, v)` --> `s = w * rsqrt(v + eps)`, `y = x * s + (c - m*s)`\n\n\
              In training, and without running statistics, those of the batch; functional forms give the running ones \
              that follow. Refuses forms that would write them.",
        run: batch_norm,
    },
    Decomposition {
        name: "normalize",
        handles: &["aten.normalize", "aten.cosine_similarity", "aten.pairwise_distance"],
        doc: "`y = normalize(x)` --> `y = x / max(norm(x), eps)`\n\n\
              `y = cosine_similarity(a, b)` --> `y = sum(a*b) / (max(norm a, eps) * max(norm b, eps))`",
        run: similar,
    },
];

/// Three results: the value, the mean and the inverse deviation.
fn layer_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    let normalized = call.extents("normalized_shape")?.unwrap_or_else(|| vec![Ix::Const(-1)]);
    let Some(first) = rank.checked_sub(normalized.len()).filter(|_| !normalized.is_empty()) else {
        return Err(Refusal::new(format!("{} axes of a tensor of rank {rank} cannot be normalized", normalized.len())));
    };
    let axes: Vec<usize> = (first..rank).collect();
    let x = b.convert(x, wide)?;
    let s = standardize(b, x, &axes, call.float("eps", 1e-5)?)?;
    let y = affine(b, s.y, call.opt(1), call.opt(2))?;
    let y = b.convert(y, narrow)?;
    if call.name == "aten.layer_norm" {
        return Ok(vec![y]);
    }
    Ok(vec![y, b.convert(s.mean, narrow)?, b.convert(s.inverse, narrow)?])
}

fn group_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, shape) = (b.elem(x), b.wide(x), b.shape(x));
    if shape.len() < 2 {
        return Err(Refusal::new(format!("{} has no axis of channels", b.shape_text(&shape))));
    }
    let instance = call.name == "aten.instance_norm";
    if instance && call.opt(3).is_some() && !call.flag("use_input_stats", true)? {
        return Err(Refusal::new("instance_norm by running statistics is not supported"));
    }
    let x = b.convert(x, wide)?;
    let eps = call.float("eps", 1e-5)?;
    let (y, mean, inverse, groups) = if instance {
        let axes: Vec<usize> = (2..shape.len()).collect();
        let s = standardize(b, x, &axes, eps)?;
        (s.y, s.mean, s.inverse, 0)
    } else {
        let groups = call.int(if call.name == "aten.group_norm" { "num_groups" } else { "group" }, 1)?;
        let each = match shape[1].as_const() {
            Some(c) if groups > 0 && c % groups == 0 => Ix::Const(c / groups),
            None if groups == 1 => shape[1].clone(),
            None if groups > 0 => b.simplify(&Ix::floor_div(shape[1].clone(), Ix::Const(groups))),
            _ => {
                let text = b.graph.ix_text(&shape[1]);
                return Err(Refusal::new(format!("{text} channels cannot be split into {groups} groups")));
            }
        };
        let mut grouped = vec![shape[0].clone(), Ix::Const(groups), each];
        grouped.extend(shape[2..].iter().cloned());
        let g = b.reshape(x, &grouped)?;
        let axes: Vec<usize> = (2..grouped.len()).collect();
        let s = standardize(b, g, &axes, eps)?;
        (b.reshape(s.y, &shape)?, s.mean, s.inverse, groups)
    };
    let mut channels = vec![];
    for v in [call.opt(1), call.opt(2)] {
        channels.push(match v {
            Some(v) => Some(per_channel(b, v, shape.len())?),
            None => None,
        });
    }
    let y = affine(b, y, channels[0], channels[1])?;
    let y = b.convert(y, narrow)?;
    if call.name != "aten.native_group_norm" {
        return Ok(vec![y]);
    }
    let flat = [shape[0].clone(), Ix::Const(groups)];
    let (mean, inverse) = (b.reshape(mean, &flat)?, b.reshape(inverse, &flat)?);
    Ok(vec![y, b.convert(mean, narrow)?, b.convert(inverse, narrow)?])
}

/// `(x, weight?, bias?, running_mean?, running_var?)`.
fn batch_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    if rank < 2 {
        return Err(Refusal::new(format!("{} has no axis of channels", b.shape_text(&b.shape(x)))));
    }
    let inference =
        call.name == "aten._native_batch_norm_legit_no_training" || call.name == "aten._batch_norm_no_update";
    let functional = call.name.ends_with("_functional");
    let training = !inference && call.flag("training", functional)?;
    if training && call.opt(3).is_some() && !functional {
        return Err(Refusal::new("batch norm in training updates its running statistics, which is not supported")
            .help("call model.eval(), or make the layer with track_running_stats=False"));
    }
    let eps = call.float("eps", 1e-5)?;
    let x = b.convert(x, wide)?;
    let channel = |b: &mut Builder<'_>, v: Option<Arg>| -> Result<Option<Arg>> {
        let Some(v) = v else { return Ok(None) };
        let v = b.convert(v, wide)?;
        Ok(Some(per_channel(b, v, rank)?))
    };
    let (weight, bias) = (channel(b, call.opt(1))?, channel(b, call.opt(2))?);
    let mut saved = None;
    let mut updated = vec![];
    let kept = call.word("statistics");
    let y = match (channel(b, call.opt(3))?, channel(b, call.opt(4))?) {
        (Some(mean), Some(variance)) if !training => {
            let eps = b.scalar_like(variance, eps);
            let shifted = b.add(variance, eps)?;
            let mut scale = b.rsqrt(shifted)?;
            if kept.is_some_and(|kept| kept != "none") {
                let count = vec![b.shape(x).swap_remove(1)];
                saved = Some((b.reshape(mean, &count)?, b.reshape(scale, &count)?));
            }
            if let Some(w) = weight {
                scale = b.mul(scale, w)?;
            }
            let part = b.mul(mean, scale)?;
            let shift = match bias {
                Some(c) => b.sub(c, part)?,
                None => b.neg(part)?,
            };
            let y = b.mul(x, scale)?;
            b.add(y, shift)?
        }
        _ => {
            let axes: Vec<usize> = (0..rank).filter(|d| *d != 1).collect();
            let s = standardize(b, x, &axes, eps)?;
            let mean = b.squeeze(s.mean, &axes)?;
            if functional {
                let variance = b.squeeze(s.variance, &axes)?;
                updated = running(b, call, count(b, x, &axes), mean, variance)?;
            }
            saved = Some((mean, b.squeeze(s.inverse, &axes)?));
            affine(b, s.y, weight, bias)?
        }
    };
    let y = b.convert(y, narrow)?;
    if call.name == "aten.batch_norm" {
        return Ok(vec![y]);
    }
    let (mean, inverse) = match saved {
        // On processors they are what the input is, on GPUs wider.
        Some((mean, inverse)) if kept == Some(narrow.to_string().as_str()) => {
            (b.convert(mean, narrow)?, b.convert(inverse, narrow)?)
        }
        Some(pair) => pair,
        None => {
            let elem = if kept.is_some() { narrow } else { wide };
            let empty = b.full(ir::scalar(elem, 0.0), elem, vec![Ix::Const(0)]);
            (empty, empty)
        }
    };
    let mut results = vec![y, mean, inverse];
    if matches!(call.name, "aten._batch_norm_no_update" | "aten._batch_norm_with_update_functional") {
        // PyTorch keeps room here for what its own backward function reserves.
        results.push(b.full(ir::scalar(Elem::U8, 0.0), Elem::U8, vec![Ix::Const(0)]));
    }
    if functional && updated.is_empty() {
        updated = vec![call.arg(3)?, call.arg(4)?];
    }
    results.extend(updated);
    Ok(results)
}

/// The running mean and variance after a batch of `n` elements a channel; the variance is the sample's.
fn running(b: &mut Builder<'_>, call: &Call<'_>, n: Ix, mean: Arg, variance: Arg) -> Result<Vec<Arg>> {
    let wide = b.elem(variance);
    let momentum = call.float("momentum", 0.1)?;
    let n = extent(b, n, wide)?;
    let less = b.sub(n, ir::scalar(wide, 1.0))?;
    let bessel = b.div(n, less)?;
    let variance = b.mul(variance, bessel)?;
    let mut results = vec![];
    for (i, new) in [(3, mean), (4, variance)] {
        let old = call.arg(i)?;
        let narrow = b.elem(old);
        let old = b.convert(old, wide)?;
        let kept = b.mul(old, ir::scalar(wide, 1.0 - momentum))?;
        let taken = b.mul(new, ir::scalar(wide, momentum))?;
        let sum = b.add(taken, kept)?;
        results.push(b.convert(sum, narrow)?);
    }
    Ok(results)
}

fn norm_of(b: &mut Builder<'_>, x: Arg, axis: usize, keep: bool) -> Result<Arg> {
    let square = b.mul(x, x)?;
    let sum = b.reduce(ReduceOp::Sum, square, &[axis], keep)?;
    b.sqrt(sum)
}

fn similar(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    let x = b.convert(x, wide)?;
    if call.name == "aten.normalize" {
        let axis = axis_attr(call, "dim", 1, rank)?;
        if call.float("p", 2.0)? != 2.0 {
            return Err(Refusal::new("normalize is supported for the second norm only"));
        }
        let norm = norm_of(b, x, axis, true)?;
        let eps = b.scalar_like(norm, call.float("eps", 1e-12)?);
        let norm = b.max(norm, eps)?;
        let y = b.div(x, norm)?;
        return Ok(vec![b.convert(y, narrow)?]);
    }
    let y = b.convert(call.arg(1)?, wide)?;
    let shape = b.broadcast_shape(&[b.shape(x), b.shape(y)])?;
    let (x, y) = (b.broadcast_to(x, &shape)?, b.broadcast_to(y, &shape)?);
    let out = if call.name == "aten.cosine_similarity" {
        let axis = axis_attr(call, "dim", 1, shape.len())?;
        let eps = b.scalar_like(x, call.float("eps", 1e-8)?);
        let mut sides = vec![];
        for side in [x, y] {
            let norm = norm_of(b, side, axis, true)?;
            let norm = b.max(norm, eps)?;
            sides.push(b.div(side, norm)?);
        }
        let product = b.mul(sides[0], sides[1])?;
        b.reduce(ReduceOp::Sum, product, &[axis], false)?
    } else {
        if call.float("p", 2.0)? != 2.0 || shape.is_empty() {
            return Err(Refusal::new("pairwise_distance is supported for vectors and the second norm"));
        }
        let d = b.sub(x, y)?;
        let eps = b.scalar_like(d, call.float("eps", 1e-6)?);
        let d = b.add(d, eps)?;
        norm_of(b, d, shape.len() - 1, call.flag("keepdim", false)?)?
    };
    Ok(vec![b.convert(out, narrow)?])
}
