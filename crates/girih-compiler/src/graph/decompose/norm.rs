//! Normalisations: batch, layer, group and instance norm, and their relatives.
//!
//! [`standardize`] is the mathematics that they share.

use super::conv::per_channel;
use super::{Call, Decomposition, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;
use crate::num::DType;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "batch_norm",
        handles: &["onnx.BatchNormalization"],
        doc: "Shifts and scales each channel by given statistics, or (in training) by those of the batch.\n\n\
              `y = batch_norm(x, w, b, mean, var)` --> `y = (x - mean) * (w / sqrt(var + eps)) + b`",
        run: batch_norm,
    },
    Decomposition {
        name: "layer_norm",
        handles: &["onnx.LayerNormalization"],
        doc: "Shifts and scales each row to mean 0 and variance 1, then by a weight and a bias. f16 and bf16 are computed \
              in f32.\n\n`y = layer_norm(x, w, b)` --> `d = x - mean(x)`, `y = d * rsqrt(mean(d*d) + eps) * w + b`\n\n\
              Source: Ba, Kiros and Hinton, Layer Normalization, 2016.",
        run: layer_norm,
    },
    Decomposition {
        name: "group_norm",
        handles: &["onnx.GroupNormalization", "onnx.InstanceNormalization"],
        doc: "Standardizes groups of channels (of one channel: instance norm) of each element of the batch.\n\n\
              `y = group_norm(x, w, b)` --> `x` as `[n, groups, rest]`, standardized over the last axis, `* w + b`",
        run: group_norm,
    },
    Decomposition {
        name: "lp_norm",
        handles: &["onnx.LpNormalization"],
        doc: "Divides by the p-norm along an axis; a norm of 0 gives 0.\n\n\
              `y = lp_norm(x)` --> `n = (sum |x|^p)^(1/p)`, `y = select(n == 0, 0, x / n)`",
        run: lp_norm,
    },
    Decomposition {
        name: "mean_variance_norm",
        handles: &["onnx.MeanVarianceNormalization"],
        doc: "Mean 0 and variance 1 over given axes.\n\n\
              `y = mvn(x)` --> `d = x - mean(x)`, `y = d / (sqrt(mean(d*d)) + 1e-9)`",
        run: mean_variance_norm,
    },
    Decomposition {
        name: "local_response_norm",
        handles: &["onnx.LRN"],
        doc: "Divides by a power of the sum of squares of neighbouring channels.\n\n\
              `y = lrn(x)` --> `s = reduce sum (windows over channels of x*x)`, `y = x / (bias + alpha / size * s)^beta`",
        run: local_response_norm,
    },
];

/// A tensor with mean 0 and variance 1 over some axes, which stay with extent 1 in `mean`, `variance` and `inverse`.
pub struct Standard {
    pub y: Arg,
    pub mean: Arg,
    /// The population's.
    pub variance: Arg,
    /// `1 / sqrt(variance + eps)`
    pub inverse: Arg,
}

/// `x` is of a type that sums are made in; the variance is the population's.
pub fn standardize(b: &mut Builder<'_>, x: Arg, axes: &[usize], eps: f64) -> Result<Standard> {
    let mean = b.mean(x, axes, true)?;
    let centred = b.sub(x, mean)?;
    let square = b.mul(centred, centred)?;
    let variance = b.mean(square, axes, true)?;
    let eps = b.scalar_like(variance, eps);
    let shifted = b.add(variance, eps)?;
    let inverse = b.rsqrt(shifted)?;
    let y = b.mul(centred, inverse)?;
    Ok(Standard { y, mean, variance, inverse })
}

/// `y * weight + bias`, each where given, in the type of `y`.
pub fn affine(b: &mut Builder<'_>, mut y: Arg, weight: Option<Arg>, bias: Option<Arg>) -> Result<Arg> {
    let elem = b.elem(y);
    if let Some(weight) = weight {
        let weight = b.convert(weight, elem)?;
        y = b.mul(y, weight)?;
    }
    if let Some(bias) = bias {
        let bias = b.convert(bias, elem)?;
        y = b.add(y, bias)?;
    }
    Ok(y)
}

/// The operand in the type that ONNX computes the first stage in (attribute `stash_type`), never a narrower one.
pub(super) fn stash(b: &mut Builder<'_>, call: &Call<'_>, x: Arg) -> Result<(Arg, Elem)> {
    let stated = super::onnx::types::elem_of(call.int("stash_type", 1)?)?;
    let wide = if b.elem(x).dtype == DType::F64 || stated.dtype == DType::F64 { Elem::F64 } else { Elem::F32 };
    Ok((b.convert(x, wide)?, stated))
}

fn batch_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, wide, rank) = (b.elem(x), b.wide(x), b.rank(x));
    if rank < 2 {
        return Err(Refusal::new(format!("{} has no axis of channels", b.shape_text(&b.shape(x)))));
    }
    let eps = call.float("epsilon", 1e-5)?;
    let x = b.convert(x, wide)?;
    let mut of_channels = vec![];
    for i in 1..5 {
        let v = call.arg(i)?;
        let v = b.convert(v, wide)?;
        of_channels.push(per_channel(b, v, rank)?);
    }
    let &[weight, bias, mean, variance] = &of_channels[..] else { return Ok(vec![]) };
    if !call.flag("training_mode", false)? {
        let eps = b.scalar_like(variance, eps);
        let shifted = b.add(variance, eps)?;
        let inverse = b.rsqrt(shifted)?;
        let scale = b.mul(weight, inverse)?;
        let centred = b.sub(x, mean)?;
        let scaled = b.mul(centred, scale)?;
        let y = b.add(scaled, bias)?;
        return Ok(vec![b.convert(y, narrow)?]);
    }
    let axes: Vec<usize> = (0..rank).filter(|d| *d != 1).collect();
    let now = standardize(b, x, &axes, eps)?;
    let y = affine(b, now.y, Some(weight), Some(bias))?;
    let momentum = call.float("momentum", 0.9)?;
    let mut out = vec![b.convert(y, narrow)?];
    for (i, (old, new)) in [(mean, now.mean), (variance, now.variance)].into_iter().enumerate() {
        let new = b.squeeze(new, &axes)?;
        let old = b.squeeze(old, &(1..rank - 1).collect::<Vec<_>>())?;
        let (keep, take) = (b.scalar_like(old, momentum), b.scalar_like(old, 1.0 - momentum));
        let (old, new) = (b.mul(old, keep)?, b.mul(new, take)?);
        let sum = b.add(old, new)?;
        let given = b.elem(call.arg(3 + i)?);
        out.push(b.convert(sum, given)?);
    }
    Ok(out)
}

/// `(x, weight, bias?)` over the axes from `axis` on; also the mean and the inverse deviation.
fn layer_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, rank) = (b.elem(x), b.rank(x));
    let axes: Vec<usize> = (normal_axis(call.int("axis", -1)?, rank)?..rank).collect();
    let (wide, stated) = stash(b, call, x)?;
    let s = standardize(b, wide, &axes, call.float("epsilon", 1e-5)?)?;
    let y = b.convert(s.y, narrow)?;
    let y = affine(b, y, call.opt(1), call.opt(2))?;
    Ok(vec![y, b.convert(s.mean, stated)?, b.convert(s.inverse, stated)?])
}

fn group_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, mut weight, mut bias) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let (narrow, shape) = (b.elem(x), b.shape(x));
    if shape.len() < 3 {
        return Err(Refusal::new(format!("{} has no spatial axes", b.shape_text(&shape))));
    }
    let (wide, _) = stash(b, call, x)?;
    let y = if call.name.contains("Instance") {
        let axes: Vec<usize> = (2..shape.len()).collect();
        standardize(b, wide, &axes, call.float("epsilon", 1e-5)?)?.y
    } else {
        let groups = call.int("num_groups", 0)?;
        let each = match shape[1].as_const() {
            Some(c) if groups > 0 && c % groups == 0 => c / groups,
            _ => {
                let text = b.graph.ix_text(&shape[1]);
                return Err(Refusal::new(format!("{text} channels cannot be split into {groups} groups")));
            }
        };
        let mut grouped = vec![shape[0].clone(), Ix::Const(groups), Ix::Const(each)];
        grouped.extend(shape[2..].iter().cloned());
        let g = b.reshape(wide, &grouped)?;
        let axes: Vec<usize> = (2..grouped.len()).collect();
        let s = standardize(b, g, &axes, call.float("epsilon", 1e-5)?)?;
        // Up to version 20 the weight has one entry for each group.
        for v in [&mut weight, &mut bias] {
            let per_group = b.shape(*v).first().is_some_and(|n| n.is_const(groups)) && groups != each * groups;
            if per_group {
                let stretched = b.unsqueeze(*v, &[1])?;
                let stretched = b.broadcast_to(stretched, &[Ix::Const(groups), Ix::Const(each)])?;
                *v = b.reshape(stretched, &[shape[1].clone()])?;
            }
        }
        b.reshape(s.y, &shape)?
    };
    let y = b.convert(y, narrow)?;
    let (weight, bias) = (per_channel(b, weight, shape.len())?, per_channel(b, bias, shape.len())?);
    Ok(vec![affine(b, y, Some(weight), Some(bias))?])
}

fn lp_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let axis = normal_axis(call.int("axis", -1)?, b.rank(x))?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let norm = match call.int("p", 2)? {
        1 => {
            let magnitude = b.abs(x)?;
            b.reduce(ReduceOp::Sum, magnitude, &[axis], true)?
        }
        2 => {
            let square = b.mul(x, x)?;
            let sum = b.reduce(ReduceOp::Sum, square, &[axis], true)?;
            b.sqrt(sum)?
        }
        p => return Err(Refusal::new(format!("LpNormalization has p = {p}; it is defined for 1 and 2"))),
    };
    let zero = b.scalar_like(norm, 0.0);
    let none = b.compare(Predicate::Equal, norm, zero)?;
    let y = b.div(x, norm)?;
    let y = b.select(none, zero, y)?;
    Ok(vec![b.convert(y, narrow)?])
}

fn mean_variance_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axes = call.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = axes.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let mean = b.mean(x, &axes, true)?;
    let centred = b.sub(x, mean)?;
    let square = b.mul(centred, centred)?;
    let variance = b.mean(square, &axes, true)?;
    let deviation = b.sqrt(variance)?;
    let eps = b.scalar_like(deviation, 1e-9);
    let deviation = b.add(deviation, eps)?;
    let y = b.div(centred, deviation)?;
    Ok(vec![b.convert(y, narrow)?])
}

fn local_response_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let size = call.int("size", 0)?;
    let rank = b.rank(x);
    if rank < 2 || size < 1 {
        return Err(Refusal::new("LRN needs an axis of channels and a size of at least 1"));
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let square = b.mul(x, x)?;
    let shape = b.shape(x);
    let mut windowed = shape.clone();
    windowed.push(Ix::Const(size));
    let mut coords: Vec<Ix> = (0..rank).map(ir::axis).collect();
    coords[1] = Ix::sub(Ix::add(ir::axis(1), ir::axis(rank)), Ix::Const((size - 1) / 2));
    let zero = b.scalar_like(square, 0.0);
    let windows = super::window::masked(b, "windows", square, windowed, coords, zero);
    let sum = b.reduce(ReduceOp::Sum, windows, &[rank], false)?;
    let alpha = b.scalar_like(sum, call.float("alpha", 1e-4)? / size as f64);
    let bias = b.scalar_like(sum, call.float("bias", 1.0)?);
    let beta = b.scalar_like(sum, call.float("beta", 0.75)?);
    let scaled = b.mul(sum, alpha)?;
    let base = b.add(scaled, bias)?;
    let divisor = b.pow(base, beta)?;
    let y = b.div(x, divisor)?;
    Ok(vec![b.convert(y, narrow)?])
}
