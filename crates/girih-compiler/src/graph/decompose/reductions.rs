//! Reductions of PyTorch: sums, means, extrema, variances, norms.

use super::types::{axes_attr, cast, floating, is_number, number_attr};
use super::{Call, Decomposition, normal_axis};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, ReduceOp};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "sum",
        handles: &["aten.sum", "aten.prod", "aten.nansum", "aten.count_nonzero"],
        doc: "Sums and products; integers and bools are summed as i64, f16 and bf16 in f32.\n\n\
              `y = sum(x)` --> `y = reduce sum x`",
        run: sum,
    },
    Decomposition {
        name: "mean",
        handles: &["aten.mean", "aten.nanmean"],
        doc: "`y = mean(x)` --> `y = (reduce sum x) / n`",
        run: mean,
    },
    Decomposition {
        name: "variance",
        handles: &["aten.var", "aten.std", "aten.var_mean", "aten.std_mean"],
        doc: "Around the mean, which is computed first.\n\n\
              `y = var(x)` --> `d = x - mean(x)`, `y = (reduce sum d*d) / max(n - correction, 0)`",
        run: variance,
    },
    Decomposition {
        name: "greatest",
        handles: &["aten.amax", "aten.amin", "aten.max", "aten.min", "aten.aminmax"],
        doc: "Extrema, NaN wins; with an axis, `max` gives the first position too.\n\n`y = amax(x)` --> `y = reduce max x`",
        run: greatest,
    },
    Decomposition {
        name: "argmax",
        handles: &["aten.argmax", "aten.argmin"],
        doc: "The first position of an extremum, along an axis or in row-major order.\n\n`y = argmax(x)` --> `y = reduce argmax x`",
        run: argmax,
    },
    Decomposition {
        name: "any",
        handles: &["aten.any", "aten.all"],
        doc: "`y = any(x)` --> `y = reduce or (x != 0)`",
        run: any,
    },
    Decomposition {
        name: "vector_norm",
        handles: &["aten.norm", "aten.linalg_vector_norm", "aten.frobenius_norm"],
        doc: "The p-norm.\n\n`y = norm(x, 2)` --> `y = sqrt(reduce sum x*x)`\n\n\
              `y = norm(x, p)` --> `y = (reduce sum abs(x)^p)^(1/p)`",
        run: vector_norm,
    },
    Decomposition {
        name: "cdist",
        handles: &["aten._cdist_forward", "aten.dist"],
        doc: "Distances between each row of one matrix and each of another, by the p-norm.\n\n\
              `y = cdist(a, b, 2)` --> `d = a[.., i0, 1, :] - b[.., 1, i1, :]`, `y = sqrt(reduce sum d*d)`\n\n\
              `y = dist(a, b)` is the norm of `a - b`.",
        run: cdist,
    },
    Decomposition {
        name: "logsumexp",
        handles: &["aten.logsumexp"],
        doc: "`y = logsumexp(x)` --> `m = max x`, `y = m + log(reduce sum exp(x - m))`",
        run: logsumexp,
    },
];

/// Folds axes, in the wide type.
fn fold(b: &mut Builder<'_>, op: ReduceOp, x: Arg, axes: &[usize], keep: bool) -> Result<Arg> {
    if axes.is_empty() {
        return Ok(x);
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let y = b.reduce(op, x, axes, keep)?;
    b.convert(y, narrow)
}

/// Refuses to look for an extremum where there is no element.
pub(super) fn some_elements(b: &Builder<'_>, call: &Call<'_>, x: Arg, axes: &[usize]) -> Result<()> {
    match axes.iter().find(|a| b.shape(x).get(**a).is_some_and(|n| n.is_const(0))) {
        Some(a) => Err(Refusal::new(format!(
            "{} over axis {a} of {}, which has no elements, has no result",
            call.name.trim_start_matches("aten."),
            b.shape_text(&b.shape(x))
        ))),
        None => Ok(()),
    }
}

/// The number of elements along axes.
pub(super) fn count(b: &Builder<'_>, x: Arg, axes: &[usize]) -> Ix {
    let shape = b.shape(x);
    let of: Vec<Ix> = axes.iter().filter_map(|a| shape.get(*a)).cloned().collect();
    b.numel(&of)
}

/// An extent as a number of a type.
pub(super) fn extent(b: &mut Builder<'_>, ix: Ix, elem: Elem) -> Result<Arg> {
    match ix.as_const() {
        Some(c) => Ok(ir::int_scalar(elem, c)),
        None => {
            let n = b.index(ix, Elem::I64, vec![]);
            b.convert(n, elem)
        }
    }
}

fn sum(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let axes = axes_attr(call, b.rank(x))?;
    let keep = call.flag("keepdim", false)?;
    if call.name == "aten.count_nonzero" {
        x = b.convert(x, Elem::BOOL)?;
    }
    let to = call.elem("dtype")?.unwrap_or(if b.elem(x).is_float() { b.elem(x) } else { Elem::I64 });
    // Sums of narrow floats in a wider type start from the operand, which loses nothing.
    x = cast(b, x, to)?;
    if call.name == "aten.nansum" && to.is_float() {
        let nan = b.compare(Predicate::NotEqual, x, x)?;
        let zero = b.scalar_like(x, 0.0);
        x = b.select(nan, zero, x)?;
    }
    let op = if call.name == "aten.prod" { ReduceOp::Prod } else { ReduceOp::Sum };
    Ok(vec![fold(b, op, x, &axes, keep)?])
}

fn mean(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let axes = axes_attr(call, b.rank(x))?;
    let keep = call.flag("keepdim", false)?;
    if let Some(e) = call.elem("dtype")? {
        x = b.convert(x, e)?;
    }
    if !b.elem(x).is_float() {
        return Err(Refusal::new(format!("the mean of {} is not defined", b.elem(x))).help("convert to a float first"));
    }
    if call.name == "aten.nanmean" {
        let (narrow, wide) = (b.elem(x), b.wide(x));
        let x = b.convert(x, wide)?;
        let known = b.compare(Predicate::Equal, x, x)?;
        let zero = b.scalar_like(x, 0.0);
        let clean = b.select(known, x, zero)?;
        let ones = b.convert(known, wide)?;
        let sum = fold(b, ReduceOp::Sum, clean, &axes, keep)?;
        let n = fold(b, ReduceOp::Sum, ones, &axes, keep)?;
        let y = b.div(sum, n)?;
        return Ok(vec![b.convert(y, narrow)?]);
    }
    if axes.is_empty() {
        return Ok(vec![x]);
    }
    Ok(vec![b.mean(x, &axes, keep)?])
}

fn variance(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let axes = axes_attr(call, b.rank(x))?;
    let keep = call.flag("keepdim", false)?;
    let x = floating(b, x)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let correction = if call.has("unbiased") {
        ir::scalar(wide, f64::from(u8::from(call.flag("unbiased", true)?)))
    } else {
        number_attr(b, call, "correction", 1.0, wide)?
    };
    let x = b.convert(x, wide)?;
    let mean = if axes.is_empty() { x } else { b.mean(x, &axes, true)? };
    let d = b.sub(x, mean)?;
    let square = b.mul(d, d)?;
    let sum = fold(b, ReduceOp::Sum, square, &axes, keep)?;
    let n = count(b, x, &axes);
    let n = extent(b, n, wide)?;
    let zero = ir::scalar(wide, 0.0);
    let n = if is_number(correction, 0.0) { n } else { b.sub(n, correction)? };
    let n = b.max(n, zero)?;
    let mut y = b.div(sum, n)?;
    if call.name.starts_with("aten.std") {
        y = b.sqrt(y)?;
    }
    let mut results = vec![b.convert(y, narrow)?];
    if call.name.ends_with("_mean") {
        let mean = if keep || axes.is_empty() { mean } else { b.squeeze(mean, &axes)? };
        results.push(b.convert(mean, narrow)?);
    }
    Ok(results)
}

fn greatest(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if call.opt(1).is_some() || call.has("other") {
        // The form of two tensors.
        let y = super::types::needed(b, call, 1, "other")?;
        let (x, y) = super::types::pair(b, x, y)?;
        return Ok(vec![if call.name == "aten.max" { b.max(x, y)? } else { b.min(x, y)? }]);
    }
    let rank = b.rank(x);
    let keep = call.flag("keepdim", false)?;
    let axes = axes_attr(call, rank)?;
    some_elements(b, call, x, &axes)?;
    if call.name == "aten.aminmax" {
        return Ok(vec![fold(b, ReduceOp::Min, x, &axes, keep)?, fold(b, ReduceOp::Max, x, &axes, keep)?]);
    }
    let max = matches!(call.name, "aten.max" | "aten.amax");
    let op = if max { ReduceOp::Max } else { ReduceOp::Min };
    let mut results = vec![fold(b, op, x, &axes, keep)?];
    if matches!(call.name, "aten.max" | "aten.min") && call.has("dim") {
        results.push(position(b, x, &axes, max, keep)?);
    }
    Ok(results)
}

/// The first position of an extremum along the only axis.
fn position(b: &mut Builder<'_>, x: Arg, axes: &[usize], max: bool, keep: bool) -> Result<Arg> {
    if axes.is_empty() {
        return Ok(ir::int_scalar(Elem::I64, 0));
    }
    let op = if max { ReduceOp::ArgMax { last: false } } else { ReduceOp::ArgMin { last: false } };
    b.reduce(op, x, axes, keep)
}

fn argmax(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let max = call.name == "aten.argmax";
    let (rank, keep) = (b.rank(x), call.flag("keepdim", false)?);
    let axes = axes_attr(call, rank)?;
    some_elements(b, call, x, &axes)?;
    if call.has("dim") {
        return Ok(vec![position(b, x, &axes, max, keep)?]);
    }
    let n = b.numel(&b.shape(x));
    let flat = b.reshape(x, &[n])?;
    let y = position(b, flat, &[0], max, false)?;
    let ones = vec![Ix::Const(1); rank];
    Ok(vec![if keep { b.reshape(y, &ones)? } else { y }])
}

fn any(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    // PyTorch keeps u8.
    let back = (b.elem(x) == Elem::U8).then_some(Elem::U8);
    let axes = axes_attr(call, b.rank(x))?;
    let x = b.convert(x, Elem::BOOL)?;
    let op = if call.name == "aten.any" { ReduceOp::Or } else { ReduceOp::And };
    let y = fold(b, op, x, &axes, call.flag("keepdim", false)?)?;
    Ok(vec![b.convert(y, back.unwrap_or(Elem::BOOL))?])
}

fn vector_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let rank = b.rank(x);
    let axes = axes_attr(call, rank)?;
    let keep = call.flag("keepdim", false)?;
    if let Some(e) = call.elem("dtype")? {
        x = b.convert(x, e)?;
    }
    let name = if call.name == "aten.linalg_vector_norm" { "ord" } else { "p" };
    let p = match call.word(name) {
        Some("fro") => 2.0,
        Some(other) => return Err(Refusal::new(format!("the norm {other} is not supported"))),
        None => call.float(name, 2.0)?,
    };
    if p < 0.0 || p == f64::INFINITY {
        some_elements(b, call, x, &axes)?;
    }
    let x = floating(b, x)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let y = norm(b, x, p, &axes, keep)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `(x1 [.., n, m], x2 [.., k, m])`
fn cdist(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, y) = (call.arg(0)?, call.arg(1)?);
    if call.name == "aten.dist" {
        let (x, y) = super::types::pair(b, x, y)?;
        let (narrow, wide) = (b.elem(x), b.wide(x));
        let (x, y) = (b.convert(x, wide)?, b.convert(y, wide)?);
        let d = b.sub(x, y)?;
        let axes: Vec<usize> = (0..b.rank(d)).collect();
        let y = norm(b, d, call.float("p", 2.0)?, &axes, false)?;
        return Ok(vec![b.convert(y, narrow)?]);
    }
    let (rx, ry) = (b.rank(x), b.rank(y));
    if rx < 2 || ry < 2 {
        return Err(Refusal::new("distances are between rows of two matrices"));
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let (x, y) = (b.convert(x, wide)?, b.convert(y, wide)?);
    let (x, y) = (b.unsqueeze(x, &[rx - 1])?, b.unsqueeze(y, &[ry - 2])?);
    let d = b.sub(x, y)?;
    let last = b.rank(d) - 1;
    let y = norm(b, d, call.float("p", 2.0)?, &[last], false)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// The p-norm over axes, in the type of `x`.
fn norm(b: &mut Builder<'_>, x: Arg, p: f64, axes: &[usize], keep: bool) -> Result<Arg> {
    let wide = b.elem(x);
    let size = b.abs(x)?;
    Ok(if p == f64::INFINITY {
        fold(b, ReduceOp::Max, size, axes, keep)?
    } else if p == f64::NEG_INFINITY {
        fold(b, ReduceOp::Min, size, axes, keep)?
    } else if p == 0.0 {
        let some = b.convert(x, Elem::BOOL)?;
        let ones = b.convert(some, wide)?;
        fold(b, ReduceOp::Sum, ones, axes, keep)?
    } else if p == 1.0 {
        fold(b, ReduceOp::Sum, size, axes, keep)?
    } else if p == 2.0 {
        let square = b.mul(x, x)?;
        let sum = fold(b, ReduceOp::Sum, square, axes, keep)?;
        b.sqrt(sum)?
    } else {
        let (power, root) = (ir::scalar(wide, p), ir::scalar(wide, 1.0 / p));
        let t = b.pow(size, power)?;
        let sum = fold(b, ReduceOp::Sum, t, axes, keep)?;
        b.pow(sum, root)?
    })
}

fn logsumexp(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axes = axes_attr(call, rank)?;
    let keep = call.flag("keepdim", false)?;
    let x = floating(b, x)?;
    if axes.is_empty() {
        for dim in call.ints("dim")?.unwrap_or_default() {
            normal_axis(dim, rank.max(1))?;
        }
        return Ok(vec![x]);
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let max = b.reduce(ReduceOp::Max, x, &axes, true)?;
    // A row of -inf, or one with an infinity, must not subtract it from itself.
    let size = b.abs(max)?;
    let (inf, zero) = (b.scalar_like(x, f64::INFINITY), b.scalar_like(x, 0.0));
    let endless = b.compare(Predicate::Equal, size, inf)?;
    let max = b.select(endless, zero, max)?;
    let shifted = b.sub(x, max)?;
    let e = b.exp(shifted)?;
    let sum = b.reduce(ReduceOp::Sum, e, &axes, true)?;
    let log = b.log(sum)?;
    let y = b.add(log, max)?;
    let y = if keep { y } else { b.squeeze(y, &axes)? };
    Ok(vec![b.convert(y, narrow)?])
}
