//! Normalisations: batch, layer, group and instance norm, and their relatives.
//!
//! [`standardize`] is the mathematics that they share.

use super::conv::by_channel;
use super::expr::Tensor;
use super::reductions::count;
use super::types::axis_attr;
use super::window::masked;
use super::{Call, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir;
use crate::index::Ix;
use crate::num::DType;

rules! {
    batch_norm "Shifts and scales each channel by given statistics, or (in training) by those of the batch.\n\n\
         `y = batch_norm(x, w, b, mean, var)` --> `y = (x - mean) * (w / sqrt(var + eps)) + b`" {
        "onnx.BatchNormalization" => batch_norm,
    }
    layer_norm "Shifts and scales each row to mean 0 and variance 1, then by a weight and a bias. f16 and bf16 are computed \
         in f32.\n\n`y = layer_norm(x, w, b)` --> `d = x - mean(x)`, `y = d * rsqrt(mean(d*d) + eps) * w + b`\n\n\
         Source: Ba, Kiros and Hinton, Layer Normalization, 2016." {
        "onnx.LayerNormalization" => layer_norm,
    }
    group_norm "Standardizes groups of channels (of one channel: instance norm) of each element of the batch.\n\n\
         `y = group_norm(x, w, b)` --> `x` as `[n, groups, rest]`, standardized over the last axis, `* w + b`" {
        "onnx.GroupNormalization" | "onnx.InstanceNormalization" => group_norm,
    }
    lp_norm "Divides by the p-norm along an axis; a norm of 0 gives 0.\n\n\
         `y = lp_norm(x)` --> `n = (sum |x|^p)^(1/p)`, `y = select(n == 0, 0, x / n)`" {
        "onnx.LpNormalization" => lp_norm,
    }
    mean_variance_norm "Mean 0 and variance 1 over given axes.\n\n\
         `y = mvn(x)` --> `d = x - mean(x)`, `y = d / (sqrt(mean(d*d)) + 1e-9)`" {
        "onnx.MeanVarianceNormalization" => mean_variance_norm,
    }
    local_response_norm "Divides by a power of the sum of squares of neighbouring channels.\n\n\
         `y = lrn(x)` --> `s = reduce sum (windows over channels of x*x)`, `y = x / (bias + alpha / size * s)^beta`" {
        "onnx.LRN" => local_response_norm,
    }
    torch_layer_norm "Rows with mean 0 and variance 1, then a weight and a bias; computed in f32 where narrower, rounded once.\n\n\
         `y = layer_norm(x, w, c)` --> `d = x - mean(x)`, `y = d * rsqrt(mean(d*d) + eps) * w + c`" {
        "aten.layer_norm" => |c| torch_layer_norm(c).map(|(y, _)| y),
        "aten.native_layer_norm" => |c| torch_layer_norm(c).map(|(y, s)| [y, s.mean.to(y.elem()), s.inverse.to(y.elem())]),
    }
    torch_group_norm "Groups of channels of each element of the batch.\n\n\
         `y = group_norm(x, w, c)` --> `x` as `[n, groups, c / groups, ..]`, standardized over the axes after the \
         groups, `* w + c`\n\nRefuses instance norm with running statistics." {
        "aten.group_norm" => |c| torch_group_norm(c, "num_groups").map(|(y, _)| y),
        "aten.native_group_norm" => |c| {
            let (y, s) = torch_group_norm(c, "group")?;
            let groups: Vec<Ix> = s.mean.shape()?.into_iter().take(2).collect();
            let [mean, inverse] = [s.mean, s.inverse].map(|x| x.reshape(&groups)).map(|x| x.to(y.elem()));
            Ok::<_, Refusal>([y, mean, inverse])
        },
        "aten.instance_norm" => torch_instance_norm,
    }
    torch_batch_norm "Normalises each channel by given statistics, folded into one scale and one shift.\n\n\
         `y = batch_norm(x, w, c, m, v)` --> `s = w * rsqrt(v + eps)`, `y = x * s + (c - m*s)`\n\n\
         In training, and without running statistics, it uses the statistics of the batch; functional forms also give \
         the new running statistics. Refuses forms that would write them." {
        "aten.batch_norm" | "aten.native_batch_norm" | "aten._native_batch_norm_legit_no_training" |
        "aten._native_batch_norm_legit" | "aten._native_batch_norm_legit_functional" |
        "aten._batch_norm_with_update_functional" | "aten._batch_norm_no_update" => torch_batch_norm,
    }
    normalize "`y = normalize(x)` --> `y = x / max(norm(x), eps)`\n\n\
         `y = cosine_similarity(a, b)` --> `y = sum(a*b) / (max(norm a, eps) * max(norm b, eps))`" {
        "aten.normalize" => normalize,
        "aten.cosine_similarity" => cosine_similarity,
        "aten.pairwise_distance" => pairwise_distance,
    }
    rms_norm "Scales each row to root mean square 1, then by a weight. Sums of f16 and bf16 are made in f32.\n\n\
         `y = rms_norm(x, w)` --> `y = x * rsqrt(mean(x*x) + eps) * w`\n\n\
         Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019." {
        "aten.rms_norm" | "onnx.RMSNormalization" => rms_norm,
    }
}

/// A tensor with mean 0 and variance 1 over some axes, which stay with extent 1 in `mean`, `variance` and `inverse`.
pub struct Standard<'g> {
    pub y: Tensor<'g>,
    pub mean: Tensor<'g>,
    /// The population's.
    pub variance: Tensor<'g>,
    /// `1 / sqrt(variance + eps)`
    pub inverse: Tensor<'g>,
}

/// `x` is of a type that sums are made in; the variance is the population's.
pub fn standardize<'g>(x: Tensor<'g>, axes: &[usize], eps: f64) -> Standard<'g> {
    let mean = x.mean(axes, true);
    let centred = x - mean;
    let variance = (centred * centred).mean(axes, true);
    let inverse = (variance + eps).rsqrt();
    Standard { y: centred * inverse, mean, variance, inverse }
}

/// One over the root of the mean of squares.
pub fn inverse_rms<'g>(x: Tensor<'g>, axes: &[usize], eps: f64) -> (Tensor<'g>, Tensor<'g>) {
    let mean = (x * x).mean(axes, true);
    (mean, (mean + eps).rsqrt())
}

/// `y * weight + bias`, each where given, in the type of `y`. They may be broadcast to `y`, which has the shape of the result.
pub fn affine<'g>(y: Tensor<'g>, weight: Option<Tensor<'g>>, bias: Option<Tensor<'g>>) -> Tensor<'g> {
    let elem = y.elem();
    let [weight, bias] = [weight, bias].map(|v| v.map(|v| v.to(elem).into_shape_of(y)));
    let y = weight.map_or(y, |weight| y * weight);
    bias.map_or(y, |bias| y + bias)
}

/// The operand in the type that ONNX computes the first stage in (attribute `stash_type`), never a narrower one.
fn stash<'g>(c: &Call<'g>) -> Result<(Tensor<'g>, Elem)> {
    let stated = super::onnx::types::elem_of(c.int("stash_type", 1)?)?;
    let double = c.x(0).elem().dtype == DType::F64 || stated.dtype == DType::F64;
    Ok((c.x(0).to(if double { Elem::F64 } else { Elem::F32 }), stated))
}

/// All axes but that of the channels.
fn but_channels(rank: usize) -> Vec<usize> {
    (0..rank).filter(|d| *d != 1).collect()
}

/// The rank of the first operand, which has an axis of channels.
fn with_channels(c: &Call<'_>) -> Result<usize> {
    match c.x(0).rank()? {
        0 | 1 => Err(Refusal::new(format!("{} has no axis of channels", c.x(0).shape_text()))),
        rank => Ok(rank),
    }
}

fn batch_norm<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let rank = with_channels(c)?;
    let (narrow, x, shape) = (c.x(0).elem(), c.x(0).wide(), c.x(0).shape()?);
    let eps = c.float("epsilon", 1e-5)?;
    let [weight, bias, mean, variance] = [1, 2, 3, 4].map(|i| by_channel(c.x(i).to(x.elem()), &shape));
    if !c.flag("training_mode", false)? {
        let scale = weight * (variance + eps).rsqrt();
        return Ok(vec![((x - mean) * scale + bias).to(narrow)]);
    }
    let axes = but_channels(rank);
    let now = standardize(x, &axes, eps);
    let y = affine(now.y, Some(weight), Some(bias));
    let momentum = c.float("momentum", 0.9)?;
    let mut out = vec![y.to(narrow)];
    for (i, (old, new)) in [(mean, now.mean), (variance, now.variance)].into_iter().enumerate() {
        let new = new.squeeze(&axes);
        let old = old.squeeze(&(1..rank - 1).collect::<Vec<_>>());
        out.push((old * momentum + new * (1.0 - momentum)).to(c.x(3 + i).elem()));
    }
    Ok(out)
}

/// `(x, weight, bias?)` over the axes from `axis` on; also the mean and the inverse deviation.
fn layer_norm<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    let rank = c.x(0).rank()?;
    let axes: Vec<usize> = (normal_axis(c.int("axis", -1)?, rank)?..rank).collect();
    let (wide, stated) = stash(c)?;
    let s = standardize(wide, &axes, c.float("epsilon", 1e-5)?);
    let y = affine(s.y.to(c.x(0).elem()), c.maybe(1), c.maybe(2));
    Ok([y, s.mean.to(stated), s.inverse.to(stated)])
}

/// `[n, groups, c / groups, ..]` standardized over the axes after the groups, of a shape `[n, c, ..]`; and the channels of a group.
fn standardize_groups<'g>(x: Tensor<'g>, groups: i64, eps: f64) -> Result<(Standard<'g>, Ix)> {
    let (shape, cx) = (x.shape()?, x.cx);
    let each = match shape[1].as_const() {
        Some(c) if groups > 0 && c % groups == 0 => Ix::Const(c / groups),
        None if groups == 1 => shape[1].clone(),
        None if groups > 0 => cx.simplify(&Ix::floor_div(shape[1].clone(), Ix::Const(groups))),
        _ => {
            let text = cx.ix_text(&shape[1]);
            return Err(Refusal::new(format!("{text} channels cannot be split into {groups} groups")));
        }
    };
    let grouped = [&[shape[0].clone(), Ix::Const(groups), each.clone()], &shape[2..]].concat();
    let s = standardize(x.reshape(&grouped), &(2..grouped.len()).collect::<Vec<_>>(), eps);
    Ok((s, each))
}

fn group_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (shape, mut of_channels) = (c.x(0).shape()?, [c.x(1), c.x(2)]);
    if shape.len() < 3 {
        return Err(Refusal::new(format!("{} has no spatial axes", c.x(0).shape_text())));
    }
    let (wide, _) = stash(c)?;
    let eps = c.float("epsilon", 1e-5)?;
    let y = if c.name.contains("Instance") {
        standardize(wide, &(2..shape.len()).collect::<Vec<_>>(), eps).y
    } else {
        let groups = c.int("num_groups", 0)?;
        let (s, each) = standardize_groups(wide, groups, eps)?;
        // Up to version 20 the weight has one entry for each group.
        for v in &mut of_channels {
            if v.shape()?.first().is_some_and(|n| n.is_const(groups)) && !each.is_const(1) {
                let stretched = v.unsqueeze(&[1]).broadcast_to(&[Ix::Const(groups), each.clone()]);
                *v = stretched.reshape(&[shape[1].clone()]);
            }
        }
        s.y.reshape(&shape)
    };
    let y = y.to(c.x(0).elem());
    let [weight, bias] = of_channels.map(|v| by_channel(v, &shape));
    Ok(affine(y, Some(weight), Some(bias)))
}

fn lp_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let axis = normal_axis(c.int("axis", -1)?, c.x(0).rank()?)?;
    let x = c.x(0).wide();
    let norm = match c.int("p", 2)? {
        1 => x.abs().sum(&[axis], true),
        2 => norm_of(x, axis, true),
        p => return Err(Refusal::new(format!("LpNormalization has p = {p}; it is defined for 1 and 2"))),
    };
    Ok(norm.equals(0.0).select(0.0, x / norm).to(c.x(0).elem()))
}

fn mean_variance_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let rank = c.x(0).rank()?;
    let axes = c.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = axes.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?;
    Ok(c.x(0).in_wide(|x| {
        let centred = x - x.mean(&axes, true);
        centred / ((centred * centred).mean(&axes, true).sqrt() + 1e-9)
    }))
}

fn local_response_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (size, shape) = (c.int("size", 0)?, c.x(0).shape()?);
    let rank = shape.len();
    if rank < 2 || size < 1 {
        return Err(Refusal::new("LRN needs an axis of channels and a size of at least 1"));
    }
    let windowed = [&shape[..], &[Ix::Const(size)]].concat();
    let mut coords: Vec<Ix> = (0..rank).map(ir::axis).collect();
    coords[1] = Ix::sub(Ix::add(ir::axis(1), ir::axis(rank)), Ix::Const((size - 1) / 2));
    let (alpha, bias) = (c.float("alpha", 1e-4)? / size as f64, c.float("bias", 1.0)?);
    let beta = c.float("beta", 0.75)?;
    Ok(c.x(0).in_wide(|x| {
        let (square, zero) = (x * x, x.like(0.0).arg);
        let windows = x.cx.made(&[square], |b| Ok(masked(b, "windows", square.arg, windowed, coords, zero)));
        x / (windows.sum(&[rank], false) * alpha + bias).pow(beta)
    }))
}

/// `(x, weight?)`. Torch: over the last `len(normalized_shape)` axes; ONNX: from `axis` to the last.
fn rms_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (narrow, rank) = (c.x(0).elem(), c.x(0).rank()?);
    let first = match c.extents("normalized_shape")? {
        Some(normalized) => rank.saturating_sub(normalized.len()),
        None => normal_axis(c.int("axis", -1)?, rank)?,
    };
    let x = c.x(0).wide();
    // PyTorch's default is the type's epsilon.
    let default = if x.elem().dtype.bits() == 64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let eps = c.float("eps", c.float("epsilon", if c.name.starts_with("onnx") { 1e-5 } else { default })?)?;
    let (_, scale) = inverse_rms(x, &(first..rank).collect::<Vec<_>>(), eps);
    Ok(affine((x * scale).to(narrow), c.maybe(1), None))
}

/// The value, and the statistics.
fn torch_layer_norm<'g>(c: &Call<'g>) -> Result<(Tensor<'g>, Standard<'g>)> {
    let rank = c.x(0).rank()?;
    let normalized = c.extents("normalized_shape")?.unwrap_or_else(|| vec![Ix::Const(-1)]);
    let Some(first) = rank.checked_sub(normalized.len()).filter(|_| !normalized.is_empty()) else {
        return Err(Refusal::new(format!("{} axes of a tensor of rank {rank} cannot be normalized", normalized.len())));
    };
    let s = standardize(c.x(0).wide(), &(first..rank).collect::<Vec<_>>(), c.float("eps", 1e-5)?);
    Ok((affine(s.y, c.maybe(1), c.maybe(2)).to(c.x(0).elem()), s))
}

/// The weight and the bias of the channels, where given.
fn torch_affine<'g>(c: &Call<'g>, y: Tensor<'g>) -> Result<Tensor<'g>> {
    let shape = y.shape()?;
    let [weight, bias] = [1, 2].map(|i| c.maybe(i).map(|v| by_channel(v, &shape)));
    Ok(affine(y, weight, bias).to(c.x(0).elem()))
}

/// The value, and the statistics of each group.
fn torch_group_norm<'g>(c: &Call<'g>, groups: &str) -> Result<(Tensor<'g>, Standard<'g>)> {
    with_channels(c)?;
    let (x, eps) = (c.x(0).wide(), c.float("eps", 1e-5)?);
    let (s, _) = standardize_groups(x, c.int(groups, 1)?, eps)?;
    Ok((torch_affine(c, s.y.reshape(&x.shape()?))?, s))
}

fn torch_instance_norm<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let rank = with_channels(c)?;
    if c.maybe(3).is_some() && !c.flag("use_input_stats", true)? {
        return Err(Refusal::new("instance_norm by running statistics is not supported"));
    }
    let (x, eps) = (c.x(0).wide(), c.float("eps", 1e-5)?);
    torch_affine(c, standardize(x, &(2..rank).collect::<Vec<_>>(), eps).y)
}

/// `(x, weight?, bias?, running_mean?, running_var?)`.
fn torch_batch_norm<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let rank = with_channels(c)?;
    let inference = c.name == "aten._native_batch_norm_legit_no_training" || c.name == "aten._batch_norm_no_update";
    let functional = c.name.ends_with("_functional");
    let training = !inference && c.flag("training", functional)?;
    if training && c.maybe(3).is_some() && !functional {
        return Err(Refusal::new("batch norm in training updates its running statistics, which is not supported")
            .help("call model.eval(), or make the layer with track_running_stats=False"));
    }
    let eps = c.float("eps", 1e-5)?;
    let (narrow, x, shape) = (c.x(0).elem(), c.x(0).wide(), c.x(0).shape()?);
    let wide = x.elem();
    let [weight, bias, mean, variance] = [1, 2, 3, 4].map(|i| c.maybe(i).map(|v| by_channel(v.to(wide), &shape)));
    let mut saved = None;
    let mut updated = vec![];
    let kept = c.word("statistics");
    let y = match (mean, variance) {
        (Some(mean), Some(variance)) if !training => {
            let mut scale = (variance + eps).rsqrt();
            if kept.is_some_and(|kept| kept != "none") {
                saved = Some([mean, scale].map(|v| v.flat()));
            }
            scale = weight.map_or(scale, |w| scale * w);
            let part = mean * scale;
            let shift = bias.map_or_else(|| -part, |bias| bias - part);
            x * scale + shift
        }
        _ => {
            let axes = but_channels(rank);
            let s = standardize(x, &axes, eps);
            let mean = s.mean.squeeze(&axes);
            if functional {
                updated = running(c, count(x, &axes)?, mean, s.variance.squeeze(&axes))?;
            }
            saved = Some([mean, s.inverse.squeeze(&axes)]);
            affine(s.y, weight, bias)
        }
    };
    let y = y.to(narrow);
    if c.name == "aten.batch_norm" {
        return Ok(vec![y]);
    }
    let empty = |elem: Elem| c.cx.full(elem, 0.0, vec![Ix::Const(0)]);
    let [mean, inverse] = match saved {
        // On processors they are what the input is, on GPUs wider.
        Some(saved) if kept == Some(narrow.to_string().as_str()) => saved.map(|x| x.to(narrow)),
        Some(saved) => saved,
        None => [empty(if kept.is_some() { narrow } else { wide }); 2],
    };
    let mut results = vec![y, mean, inverse];
    if matches!(c.name, "aten._batch_norm_no_update" | "aten._batch_norm_with_update_functional") {
        // PyTorch keeps room here for what its own backward function reserves.
        results.push(empty(Elem::U8));
    }
    if functional && updated.is_empty() {
        updated = vec![c.x(3), c.x(4)];
    }
    results.extend(updated);
    Ok(results)
}

/// The running mean and variance after a batch of `n` elements a channel; the variance is the sample's.
fn running<'g>(c: &Call<'g>, n: Ix, mean: Tensor<'g>, variance: Tensor<'g>) -> Result<Vec<Tensor<'g>>> {
    let momentum = c.float("momentum", 0.1)?;
    let n = c.cx.extent(&n, variance.elem());
    let variance = variance * (n / (n - 1.0));
    let after = |(i, new): (usize, Tensor<'g>)| {
        let old = c.x(i);
        let kept = old.to(new.elem()) * (1.0 - momentum);
        (new * momentum + kept).to(old.elem())
    };
    Ok([(3, mean), (4, variance)].map(after).to_vec())
}

fn norm_of(x: Tensor<'_>, axis: usize, keep: bool) -> Tensor<'_> {
    (x * x).sum(&[axis], keep).sqrt()
}

fn normalize<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let axis = axis_attr(c, "dim", 1, c.x(0).rank()?)?;
    if c.float("p", 2.0)? != 2.0 {
        return Err(Refusal::new("normalize is supported for the second norm only"));
    }
    let eps = c.float("eps", 1e-12)?;
    Ok(c.x(0).in_wide(|x| x / norm_of(x, axis, true).max(eps)))
}

/// Both operands in the type that sums of the first are made in, with the shape that they broadcast to.
fn both<'g>(c: &Call<'g>) -> Result<([Tensor<'g>; 2], usize)> {
    let x = c.x(0).wide();
    let y = c.x(1).to(x.elem());
    let shape = c.cx.broadcast_shape(&[x.shape()?, y.shape()?])?;
    Ok(([x, y].map(|x| x.broadcast_to(&shape)), shape.len()))
}

fn cosine_similarity<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (sides, rank) = both(c)?;
    let axis = axis_attr(c, "dim", 1, rank)?;
    let eps = c.float("eps", 1e-8)?;
    let [x, y] = sides.map(|side| side / norm_of(side, axis, true).max(eps));
    Ok((x * y).sum(&[axis], false).to(c.x(0).elem()))
}

fn pairwise_distance<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let ([x, y], rank) = both(c)?;
    if c.float("p", 2.0)? != 2.0 || rank == 0 {
        return Err(Refusal::new("pairwise_distance is supported for vectors and the second norm"));
    }
    let d = x - y + c.float("eps", 1e-6)?;
    Ok(norm_of(d, rank - 1, c.flag("keepdim", false)?).to(c.x(0).elem()))
}
