//! Running sums and orders of PyTorch.

use super::Call;
use super::arithmetic::log_add_exp;
use super::expr::Tensor;
use super::reductions::some_elements;
use super::types::{axis_attr, same_place};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, MapSource, ReduceOp, ScanOp};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    cumsum "Running sums and products; integers are summed as i64, f16 and bf16 in f32.\n\n`y = cumsum(x)` --> `y = scan sum x`" {
        "aten.cumsum" => |c| cumulative(c, ScanOp::Sum),
        "aten.cumprod" => |c| cumulative(c, ScanOp::Prod),
    }
    cummax "Running extrema and where they are; of equal ones the last, and NaN wins.\n\n\
         `v, at = cummax(x)` --> `v = scan max x`, `at = scan max select(x == v or x != x, i0, 0)`" {
        "aten.cummax" => |c| running_extremum(c, ScanOp::Max),
        "aten.cummin" => |c| running_extremum(c, ScanOp::Min),
    }
    sort "The elements of an axis in order, and where they came from; equal ones keep their order.\n\n\
         `v, at = topk(x, k)` --> `s, o = sort x descending`, `v, at = s[..k], o[..k]`" {
        "aten.sort" => sort,
        "aten.argsort" => |c| sort(c).map(|[_, order]| order),
        "aten.msort" => |c| match c.x(0).rank()? {
            0 => Ok(c.x(0)),
            _ => Ok(c.x(0).sort(0, false)?.0),
        },
        "aten.topk" => top_k,
        "aten.kthvalue" | "aten.median" | "aten.nanmedian" => ranked,
    }
    logcumsumexp "Logarithms of running sums of exponentials.\n\n`y = logcumsumexp(x)` --> `y = logaddexp(x[i - 1], x)`, then of \
         `y[i - 2]`, `y[i - 4]`, ..., up to the greatest extent that the axis may have." {
        "aten.logcumsumexp" => logcumsumexp,
    }
    mode "The most frequent element of an axis, the least of several, and where it stands last.\n\n\
         `v, at = mode(x)` --> `s, o = sort x`, `n = position in a run of equal ones`, `v, at = s[argmax n], o[argmax n]`" {
        "aten.mode" => mode,
    }
}

fn cumulative<'g>(c: &Call<'g>, op: ScanOp) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let rank = x.rank()?;
    let axis = axis_attr(c, "dim", 0, rank)?;
    let to = c.elem("dtype")?.unwrap_or(if x.elem().is_float() { x.elem() } else { Elem::I64 });
    let x = x.cast(to);
    Ok(if rank == 0 { x } else { x.in_wide(|x| x.scan(op, axis)) })
}

/// In steps of twice the distance, until the axis is covered: each element is combined with the sum before its own.
fn logcumsumexp<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let x = c.x(0);
    let (shape, narrow) = (x.shape()?, x.elem());
    let axis = axis_attr(c, "dim", 0, shape.len())?;
    if !narrow.is_float() {
        return Err(Refusal::new(format!("the exponentials of {narrow} have no logarithms")));
    }
    if shape.is_empty() {
        return Ok(x);
    }
    let most = c.cx.range(&shape[axis]).hi.min(ir::MAX_EXTENT.into());
    let mut y = x.wide();
    let mut step = 1;
    while i128::from(step) < most {
        let mut coords = same_place(shape.len());
        coords[axis] = Ix::sub(ir::axis(axis), Ix::Const(step));
        let there = Cond::new(ir::axis(axis), Cmp::Ge, Ix::Const(step));
        let sources = vec![
            MapSource { arg: 0, coords, when: Mask { conds: vec![there], vals: vec![] } },
            MapSource { arg: 1, coords: vec![], when: Mask::default() },
        ];
        let args = vec![y.arg, y.like(f64::NEG_INFINITY).arg];
        let before = c.cx.made(&[y], |b| Ok(b.map_sources("before", args, shape.clone(), sources)));
        y = log_add_exp(before, y);
        step *= 2;
    }
    Ok(y.to(narrow))
}

/// An axis's element for each other place, at a position; the axis goes unless it is kept.
fn picked<'g>(c: &Call<'g>, x: Tensor<'g>, at: Tensor<'g>, axis: usize) -> Result<Tensor<'g>> {
    let y = x.gather_along(at, axis);
    Ok(if c.flag("keepdim", false)? { y } else { y.squeeze(&[axis]) })
}

/// The most frequent element of an axis, the least of several, and where it stands last.
fn mode<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let x = c.x(0);
    let shape = x.shape()?;
    if shape.is_empty() {
        return Ok([x, c.cx.int(0).placed()]);
    }
    let axis = axis_attr(c, "dim", -1, shape.len())?;
    some_elements(c, x, &[axis])?;
    let (sorted, order) = x.sort(axis, false)?;
    let mut coords = same_place(shape.len());
    coords[axis] = Ix::max(Ix::sub(ir::axis(axis), Ix::Const(1)), Ix::Const(0));
    let begins = sorted.differs(sorted.map("before", shape.clone(), coords));
    let position = c.cx.index(ir::axis(axis), Elem::I64, shape);
    let length = position - begins.select(position, 0).scan(ScanOp::Max, axis);
    let best = length.reduce(ReduceOp::ArgMax { last: false }, &[axis], true);
    Ok([picked(c, sorted, best, axis)?, picked(c, order, best, axis)?])
}

fn running_extremum<'g>(c: &Call<'g>, op: ScanOp) -> Result<[Tensor<'g>; 2]> {
    let x = c.x(0);
    let shape = x.shape()?;
    let axis = axis_attr(c, "dim", 0, shape.len())?;
    if shape.is_empty() {
        return Ok([x, c.cx.int(0).placed()]);
    }
    let values = x.scan(op, axis);
    let here = x.equals(values);
    let here = if x.elem().is_float() { here | x.is_nan() } else { here };
    let position = here.select(c.cx.index(ir::axis(axis), Elem::I64, shape), 0);
    Ok([values, position.scan(ScanOp::Max, axis)])
}

/// The elements of an axis in order, and where they came from.
fn sort<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, rank) = (c.x(0), c.x(0).rank()?);
    if rank == 0 {
        return Ok([x, c.cx.int(0).placed()]);
    }
    let axis = axis_attr(c, "dim", -1, rank)?;
    let (sorted, order) = x.sort(axis, c.flag("descending", false)?)?;
    Ok([sorted, order])
}

fn top_k<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, shape) = (c.x(0), c.x(0).shape()?);
    if shape.is_empty() {
        return Ok([x, c.cx.int(0).placed()]);
    }
    let axis = axis_attr(c, "dim", -1, shape.len())?;
    let largest = c.flag("largest", true)?;
    let k = c.extents("k")?.and_then(|k| k.first().cloned()).ok_or_else(|| Refusal::new("k is missing"))?;
    if let (Some(k), Some(n)) = (k.as_const(), shape[axis].as_const())
        && !(0..=n).contains(&k)
    {
        return Err(Refusal::new(format!("k is {k}, but the axis has {n} elements")));
    }
    x.sort_first(axis, largest, k)
}

/// The element at a place of an axis's order, and where it came from.
fn ranked<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    if c.x(0).rank()? == 0 {
        return Ok(vec![c.x(0), c.cx.int(0).placed()]);
    }
    let (kth, whole) = (c.name == "aten.kthvalue", c.name != "aten.kthvalue" && !c.has("dim"));
    let x = if whole { c.x(0).flat() } else { c.x(0) };
    let shape = x.shape()?;
    let axis = axis_attr(c, "dim", -1, shape.len())?;
    let descending = c.flag("descending", false)?;
    some_elements(c, x, &[axis])?;
    let n = &shape[axis];
    // A known axis is sorted up to the element asked for.
    let most = if kth { n.as_const().map_or(Ok(0), |n| c.int("k", 1).map(|k| k.clamp(0, n)))? } else { 0 };
    let [sorted, order] = match most {
        0 => x.sort(axis, descending).map(|(sorted, order)| [sorted, order])?,
        k => x.sort_first(axis, descending, Ix::Const(k))?,
    };
    let mut results = if c.name == "aten.nanmedian" && x.elem().is_float() {
        // The elements that are not NaN stand first in the order; NaN where there are none.
        let count = x.equals(x).to(Elem::I64).sum(&[axis], true).max(1);
        let at = (count - 1) / 2;
        vec![picked(c, sorted, at, axis)?, picked(c, order, at, axis)?]
    } else {
        let at = match kth {
            true => Ix::Const(c.int("k", 1)? - 1),
            false => c.cx.simplify(&Ix::floor_div(Ix::sub(n.clone(), Ix::Const(1)), Ix::Const(2))),
        };
        let mut found = [sorted.entry(axis, at.clone()), order.entry(axis, at)];
        if x.elem().is_float() && c.name == "aten.median" {
            // NaN wins: it stands last in the order.
            let last = c.cx.simplify(&Ix::sub(n.clone(), Ix::Const(1)));
            let top = [sorted.entry(axis, last.clone()), order.entry(axis, last)];
            let nan = top[0].is_nan();
            found = [nan.select(top[0], found[0]), nan.select(top[1], found[1])];
        }
        let keep = c.flag("keepdim", false)?;
        found.map(|x| if keep { x.unsqueeze(&[axis]) } else { x }).to_vec()
    };
    results.truncate(if whole { 1 } else { 2 });
    Ok(results)
}
