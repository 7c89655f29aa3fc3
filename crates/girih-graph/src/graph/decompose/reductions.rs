//! Reductions of PyTorch: sums, means, extrema, variances, norms.

use super::expr::{Tensor, all};
use super::types::axes_attr;
use super::{Call, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::ReduceOp;
use crate::index::Ix;

rules! {
    sum "Sums and products; integers and bools are summed as i64, f16 and bf16 in f32.\n\n\
         `y = sum(x)` --> `y = reduce sum x`" {
        "aten.sum" | "aten.nansum" => |c| sum(c, c.x(0), ReduceOp::Sum),
        "aten.prod" => |c| sum(c, c.x(0), ReduceOp::Prod),
        "aten.count_nonzero" => |c| sum(c, c.x(0).to(Elem::BOOL), ReduceOp::Sum),
    }
    mean "`y = mean(x)` --> `y = (reduce sum x) / n`" {
        "aten.mean" | "aten.nanmean" => mean,
    }
    variance "Around the mean, which is computed first.\n\n\
         `y = var(x)` --> `d = x - mean(x)`, `y = (reduce sum d*d) / max(n - correction, 0)`" {
        "aten.var" | "aten.var_mean" => |c| variance(c, |x| x),
        "aten.std" | "aten.std_mean" => |c| variance(c, Tensor::sqrt),
    }
    greatest "Extrema, NaN wins; with an axis, `max` gives the first position too.\n\n`y = amax(x)` --> `y = reduce max x`" {
        "aten.amax" => |c| greatest(c, true).map(|x| x.y),
        "aten.amin" => |c| greatest(c, false).map(|x| x.y),
        "aten.max" => |c| if c.maybe(1).is_some() || c.has("other") { greater(c) } else { with_position(c, true) },
        "aten.min" => |c| if c.maybe(1).is_some() || c.has("other") { lesser(c) } else { with_position(c, false) },
        "aten.aminmax" => |c| Ok::<_, Refusal>([greatest(c, false)?.y, greatest(c, true)?.y]),
    }
    argmax "The first position of an extremum, along an axis or in row-major order.\n\n`y = argmax(x)` --> `y = reduce argmax x`" {
        "aten.argmax" => |c| argmax(c, true),
        "aten.argmin" => |c| argmax(c, false),
    }
    any "`y = any(x)` --> `y = reduce or (x != 0)`" {
        "aten.any" => |c| any(c, ReduceOp::Or),
        "aten.all" => |c| any(c, ReduceOp::And),
    }
    vector_norm "The p-norm.\n\n`y = norm(x, 2)` --> `y = sqrt(reduce sum x*x)`\n\n\
         `y = norm(x, p)` --> `y = (reduce sum abs(x)^p)^(1/p)`" {
        "aten.norm" | "aten.frobenius_norm" => |c| vector_norm(c, "p"),
        "aten.linalg_vector_norm" => |c| vector_norm(c, "ord"),
    }
    cdist "Distances between each row of one matrix and each of another, by the p-norm.\n\n\
         `y = cdist(a, b, 2)` --> `d = a[.., i0, 1, :] - b[.., 1, i1, :]`, `y = sqrt(reduce sum d*d)`\n\n\
         `y = dist(a, b)` is the norm of `a - b`." {
        "aten._cdist_forward" => cdist,
        "aten.dist" => dist,
    }
    logsumexp "`y = logsumexp(x)` --> `m = max x`, `y = m + log(reduce sum exp(x - m))`" {
        "aten.logsumexp" => logsumexp,
    }
}

/// Folds axes, in the wide type.
fn fold<'g>(op: ReduceOp, x: Tensor<'g>, axes: &[usize], keep: bool) -> Tensor<'g> {
    if axes.is_empty() { x } else { x.in_wide(|x| x.reduce(op, axes, keep)) }
}

/// Refuses to look for an extremum where there is no element.
pub(super) fn some_elements(c: &Call<'_>, x: Tensor<'_>, axes: &[usize]) -> Result<()> {
    let shape = x.shape()?;
    match axes.iter().find(|a| shape.get(**a).is_some_and(|n| n.is_const(0))) {
        Some(a) => Err(Refusal::new(format!(
            "{} over axis {a} of {}, which has no elements, has no result",
            c.name.trim_start_matches("aten."),
            x.shape_text()
        ))),
        None => Ok(()),
    }
}

/// The number of elements along axes.
pub(super) fn count(x: Tensor<'_>, axes: &[usize]) -> Result<Ix> {
    let shape = x.shape()?;
    let of: Vec<Ix> = axes.iter().filter_map(|a| shape.get(*a)).cloned().collect();
    Ok(x.cx.numel(&of))
}

/// The axes of `dim` and whether they stay.
fn axes_and_keep(c: &Call<'_>) -> Result<(Vec<usize>, bool)> {
    Ok((axes_attr(c, c.x(0).rank()?)?, c.flag("keepdim", false)?))
}

fn sum<'g>(c: &Call<'g>, x: Tensor<'g>, op: ReduceOp) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    let to = c.elem("dtype")?.unwrap_or(if x.elem().is_float() { x.elem() } else { Elem::I64 });
    // Sums of narrow floats in a wider type start from the operand, which loses nothing.
    let mut x = x.cast(to);
    if c.name == "aten.nansum" && to.is_float() {
        x = x.is_nan().select(0.0, x);
    }
    Ok(fold(op, x, &axes, keep))
}

fn mean<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    let x = c.elem("dtype")?.map_or(c.x(0), |elem| c.x(0).to(elem));
    if !x.elem().is_float() {
        return Err(Refusal::new(format!("the mean of {} is not defined", x.elem())).help("convert to a float first"));
    }
    Ok(match c.name {
        "aten.nanmean" => x.in_wide(|x| {
            let known = x.equals(x);
            let (clean, ones) = (known.select(x, 0.0), known.to(x.elem()));
            fold(ReduceOp::Sum, clean, &axes, keep) / fold(ReduceOp::Sum, ones, &axes, keep)
        }),
        _ if axes.is_empty() => x,
        _ => x.mean(&axes, keep),
    })
}

/// The variance as `f` makes it, and the mean where the operation gives it.
fn variance<'g>(c: &Call<'g>, f: fn(Tensor<'g>) -> Tensor<'g>) -> Result<Vec<Tensor<'g>>> {
    let (axes, keep) = axes_and_keep(c)?;
    let x = c.x(0).floating();
    let (narrow, wide) = (x.elem(), x.wide_elem());
    let correction = match c.has("unbiased") {
        true => c.cx.number(wide, f64::from(u8::from(c.flag("unbiased", true)?))),
        false => c.number_or("correction", 1.0, wide),
    };
    let x = x.to(wide);
    let mean = if axes.is_empty() { x } else { x.mean(&axes, true) };
    let d = x - mean;
    let sum = fold(ReduceOp::Sum, d * d, &axes, keep);
    let n = c.cx.extent(&count(x, &axes)?, wide);
    let n = if correction.is(0.0) { n } else { n - correction };
    let y = f(sum / n.max(0.0)).to(narrow);
    if !c.name.ends_with("_mean") {
        return Ok(vec![y]);
    }
    let mean = if keep || axes.is_empty() { mean } else { mean.squeeze(&axes) };
    Ok(vec![y, mean.to(narrow)])
}

fn greater<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    Ok(vec![x.max(y)])
}

fn lesser<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let (x, y) = c.x(0).with(c.needed(1, "other"));
    Ok(vec![x.min(y)])
}

/// An extremum over axes.
struct Extremum<'g> {
    y: Tensor<'g>,
    axes: Vec<usize>,
    keep: bool,
}

fn greatest<'g>(c: &Call<'g>, max: bool) -> Result<Extremum<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    some_elements(c, c.x(0), &axes)?;
    let y = fold(if max { ReduceOp::Max } else { ReduceOp::Min }, c.x(0), &axes, keep);
    Ok(Extremum { y, axes, keep })
}

/// The first position too, along an axis.
fn with_position<'g>(c: &Call<'g>, max: bool) -> Result<Vec<Tensor<'g>>> {
    let found = greatest(c, max)?;
    let at = c.has("dim").then(|| position(c.x(0), &found.axes, max, found.keep));
    Ok([found.y].into_iter().chain(at).collect())
}

/// The first position of an extremum along the only axis.
fn position<'g>(x: Tensor<'g>, axes: &[usize], max: bool, keep: bool) -> Tensor<'g> {
    if axes.is_empty() {
        return x.cx.int(0);
    }
    x.reduce(if max { ReduceOp::ArgMax { last: false } } else { ReduceOp::ArgMin { last: false } }, axes, keep)
}

fn argmax<'g>(c: &Call<'g>, max: bool) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    some_elements(c, c.x(0), &axes)?;
    if c.has("dim") {
        return Ok(position(c.x(0), &axes, max, keep));
    }
    let y = position(c.x(0).flat(), &[0], max, false);
    Ok(if keep { y.reshape(&vec![Ix::Const(1); c.x(0).rank()?]) } else { y })
}

fn any<'g>(c: &Call<'g>, op: ReduceOp) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    // PyTorch keeps u8.
    let back = if c.x(0).elem() == Elem::U8 { Elem::U8 } else { Elem::BOOL };
    Ok(fold(op, c.x(0).to(Elem::BOOL), &axes, keep).to(back))
}

fn vector_norm<'g>(c: &Call<'g>, order: &str) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    let x = c.elem("dtype")?.map_or(c.x(0), |elem| c.x(0).to(elem));
    let p = match c.word(order) {
        Some("fro") => 2.0,
        Some(other) => return Err(Refusal::new(format!("the norm {other} is not supported"))),
        None => c.float(order, 2.0)?,
    };
    if p < 0.0 || p == f64::INFINITY {
        some_elements(c, x, &axes)?;
    }
    Ok(x.widened(|x| norm(x, p, &axes, keep)))
}

/// `(x1 [.., n, m], x2 [.., k, m])`
fn cdist<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (rx, ry) = (c.x(0).rank()?, c.x(1).rank()?);
    if rx < 2 || ry < 2 {
        return Err(Refusal::new("distances are between rows of two matrices"));
    }
    let wide = c.x(0).wide_elem();
    let (x, y) = (c.x(0).to(wide), c.x(1).to(wide));
    let d = x.unsqueeze(&[rx - 1]) - y.unsqueeze(&[ry - 2]);
    Ok(norm(d, c.float("p", 2.0)?, &[d.rank()? - 1], false).to(c.x(0).elem()))
}

fn dist<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, y) = c.x(0).with(c.x(1));
    let d = x.wide() - y.wide();
    Ok(norm(d, c.float("p", 2.0)?, &all(d.rank()?), false).to(x.elem()))
}

/// The p-norm over axes, in the type of `x`.
fn norm<'g>(x: Tensor<'g>, p: f64, axes: &[usize], keep: bool) -> Tensor<'g> {
    let sum = |x: Tensor<'g>| fold(ReduceOp::Sum, x, axes, keep);
    let size = x.abs();
    match p {
        f64::INFINITY => fold(ReduceOp::Max, size, axes, keep),
        f64::NEG_INFINITY => fold(ReduceOp::Min, size, axes, keep),
        0.0 => sum(x.to(Elem::BOOL).to(x.elem())),
        1.0 => sum(size),
        2.0 => sum(x * x).sqrt(),
        p => sum(size.pow(p)).pow(1.0 / p),
    }
}

fn logsumexp<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (axes, keep) = axes_and_keep(c)?;
    let x = c.x(0).floating();
    if axes.is_empty() {
        for dim in c.ints("dim")?.unwrap_or_default() {
            normal_axis(dim, x.rank()?.max(1))?;
        }
        return Ok(x);
    }
    Ok(x.in_wide(|x| log_sum_exp(x, &axes, keep)))
}

/// `m + log(sum exp(x - m))` with the greatest element `m`, or 0 where that is infinite: a row of -inf, or one with an infinity,
/// must not subtract it from itself.
pub(super) fn log_sum_exp<'g>(x: Tensor<'g>, axes: &[usize], keep: bool) -> Tensor<'g> {
    let max = x.greatest(axes, true);
    let max = max.abs().equals(f64::INFINITY).select(0.0, max);
    let y = (x - max).exp().sum(axes, true).log() + max;
    if keep { y } else { y.squeeze(axes) }
}
