//! Running sums and orders of PyTorch.

use super::types::{axis_attr, cast};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, MapSource, ReduceOp, ScanOp};
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::num::op::Predicate;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "cumsum",
        handles: &["aten.cumsum", "aten.cumprod"],
        doc: "Running sums and products; integers are summed as i64, f16 and bf16 in f32.\n\n`y = cumsum(x)` --> `y = scan sum x`",
        run: cumsum,
    },
    Decomposition {
        name: "cummax",
        handles: &["aten.cummax", "aten.cummin"],
        doc: "Running extrema and where they are; of equal ones the last, and NaN wins.\n\n\
              `v, at = cummax(x)` --> `v = scan max x`, `at = scan max select(x == v or x != x, i0, 0)`",
        run: cummax,
    },
    Decomposition {
        name: "sort",
        handles: &[
            "aten.sort",
            "aten.argsort",
            "aten.topk",
            "aten.msort",
            "aten.kthvalue",
            "aten.median",
            "aten.nanmedian",
        ],
        doc: "The elements of an axis in order, and where they came from; equal ones keep their order.\n\n\
              `v, at = topk(x, k)` --> `s, o = sort x descending`, `v, at = s[..k], o[..k]`",
        run: sort,
    },
    Decomposition {
        name: "logcumsumexp",
        handles: &["aten.logcumsumexp"],
        doc: "Logarithms of running sums of exponentials.\n\n`y = logcumsumexp(x)` --> `y = logaddexp(x[i - 1], x)`, then of \
              `y[i - 2]`, `y[i - 4]`, ..., up to the greatest extent that the axis may have.",
        run: logcumsumexp,
    },
    Decomposition {
        name: "mode",
        handles: &["aten.mode"],
        doc: "The most frequent element of an axis, the least of several, and where it stands last.\n\n\
              `v, at = mode(x)` --> `s, o = sort x`, `n = position in a run of equal ones`, `v, at = s[argmax n], o[argmax n]`",
        run: mode,
    },
];

fn cumsum(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axis = axis_attr(call, "dim", 0, rank)?;
    let to = call.elem("dtype")?.unwrap_or(if b.elem(x).is_float() { b.elem(x) } else { Elem::I64 });
    let x = cast(b, x, to)?;
    if rank == 0 {
        return Ok(vec![x]);
    }
    let wide = b.wide(x);
    let x = b.convert(x, wide)?;
    let op = if call.name == "aten.cumsum" { ScanOp::Sum } else { ScanOp::Prod };
    let y = b.scan(op, x, axis, false, false)?;
    Ok(vec![b.convert(y, to)?])
}

/// In steps of twice the distance, as many as the axis needs: each element is combined with the sum before its own.
fn logcumsumexp(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (rank, narrow) = (b.rank(x), b.elem(x));
    let axis = axis_attr(call, "dim", 0, rank)?;
    if !narrow.is_float() {
        return Err(Refusal::new(format!("the exponentials of {narrow} have no logarithms")));
    }
    if rank == 0 {
        return Ok(vec![x]);
    }
    let most = b.facts().range(&b.shape(x)[axis]).hi.min(ir::MAX_EXTENT.into());
    let wide = b.wide(x);
    let mut y = b.convert(x, wide)?;
    let shape = b.shape(y);
    let mut step = 1;
    while i128::from(step) < most {
        let mut coords = super::types::same_place(rank);
        coords[axis] = Ix::sub(ir::axis(axis), Ix::Const(step));
        let there = Cond::new(ir::axis(axis), Cmp::Ge, Ix::Const(step));
        let sources = vec![
            MapSource { arg: 0, coords, when: Mask { conds: vec![there], vals: vec![] } },
            MapSource { arg: 1, coords: vec![], when: Mask::default() },
        ];
        let nothing = b.scalar_like(y, f64::NEG_INFINITY);
        let before = b.map_sources("before", vec![y, nothing], shape.clone(), sources);
        y = super::arithmetic::log_add_exp(b, before, y)?;
        step *= 2;
    }
    Ok(vec![b.convert(y, narrow)?])
}

/// The most frequent element of an axis, the least of several, and where it stands last.
fn mode(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    if rank == 0 {
        let at = b.full(ir::int_scalar(Elem::I64, 0), Elem::I64, vec![]);
        return Ok(vec![x, at]);
    }
    let axis = axis_attr(call, "dim", -1, rank)?;
    super::reductions::some_elements(b, call, x, &[axis])?;
    let (sorted, order) = b.sort(x, axis, false)?;
    let shape = b.shape(x);
    let mut coords = super::types::same_place(rank);
    coords[axis] = Ix::max(Ix::sub(ir::axis(axis), Ix::Const(1)), Ix::Const(0));
    let before = b.map("before", sorted, shape.clone(), coords);
    let begins = b.compare(Predicate::NotEqual, sorted, before)?;
    let position = b.index(ir::axis(axis), Elem::I64, shape.clone());
    let start = b.select(begins, position, ir::int_scalar(Elem::I64, 0))?;
    let start = b.scan(ScanOp::Max, start, axis, false, false)?;
    let length = b.sub(position, start)?;
    let best = b.reduce(ReduceOp::ArgMax { last: false }, length, &[axis], true)?;
    let found = b.shape(best);
    let keep = call.flag("keepdim", false)?;
    let mut results = vec![];
    for of in [sorted, order] {
        let coords = (0..rank).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
        let y = b.gather(of, &[best], coords, found.clone())?;
        results.push(if keep { y } else { b.squeeze(y, &[axis])? });
    }
    Ok(results)
}

fn cummax(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    let axis = axis_attr(call, "dim", 0, rank)?;
    let zero = ir::int_scalar(Elem::I64, 0);
    if rank == 0 {
        return Ok(vec![x, b.full(zero, Elem::I64, vec![])]);
    }
    let op = if call.name == "aten.cummax" { ScanOp::Max } else { ScanOp::Min };
    let values = b.scan(op, x, axis, false, false)?;
    let mut here = b.compare(Predicate::Equal, x, values)?;
    if b.elem(x).is_float() {
        let nan = b.compare(Predicate::NotEqual, x, x)?;
        here = b.or(here, nan)?;
    }
    let shape = b.shape(x);
    let position = b.index(ir::axis(axis), Elem::I64, shape);
    let position = b.select(here, position, zero)?;
    Ok(vec![values, b.scan(ScanOp::Max, position, axis, false, false)?])
}

/// The median of the elements that are not NaN, which stand first in the order, and where it is; NaN where there are none.
fn median_of_numbers(
    b: &mut Builder<'_>,
    x: Arg,
    axis: usize,
    sorted: Arg,
    order: Arg,
    keep: bool,
) -> Result<Vec<Arg>> {
    let known = b.compare(Predicate::Equal, x, x)?;
    let known = b.convert(known, Elem::I64)?;
    let count = b.reduce(ReduceOp::Sum, known, &[axis], true)?;
    let (one, two) = (ir::int_scalar(Elem::I64, 1), ir::int_scalar(Elem::I64, 2));
    let count = b.max(count, one)?;
    let last = b.sub(count, one)?;
    let at = b.div(last, two)?;
    let shape = b.shape(at);
    let coords = |d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) };
    let mut results = vec![];
    for of in [sorted, order] {
        let y = b.gather(of, &[at], (0..shape.len()).map(coords).collect(), shape.clone())?;
        results.push(if keep { y } else { b.squeeze(y, &[axis])? });
    }
    Ok(results)
}

fn sort(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let mut rank = b.rank(x);
    let zero = ir::int_scalar(Elem::I64, 0);
    if rank == 0 {
        let at = b.full(zero, Elem::I64, vec![]);
        return Ok(match call.name {
            "aten.argsort" => vec![at],
            "aten.msort" => vec![x],
            _ => vec![x, at],
        });
    }
    let median = matches!(call.name, "aten.median" | "aten.nanmedian");
    let whole = median && !call.has("dim");
    if whole {
        let n = b.numel(&b.shape(x));
        x = b.reshape(x, &[n])?;
        rank = 1;
    }
    let axis = if call.name == "aten.msort" { 0 } else { axis_attr(call, "dim", -1, rank)? };
    let descending = match call.name {
        "aten.topk" => call.flag("largest", true)?,
        _ => call.flag("descending", false)?,
    };
    if median || call.name == "aten.kthvalue" {
        super::reductions::some_elements(b, call, x, &[axis])?;
    }
    let n = b.shape(x)[axis].clone();
    if call.name == "aten.topk" {
        let k = call.extents("k")?.and_then(|k| k.first().cloned()).ok_or_else(|| Refusal::new("k is missing"))?;
        if let (Some(k), Some(n)) = (k.as_const(), n.as_const())
            && !(0..=n).contains(&k)
        {
            return Err(Refusal::new(format!("k is {k}, but the axis has {n} elements")));
        }
        let (values, places) = b.sort_first(x, axis, descending, k)?;
        return Ok(vec![values, places]);
    }
    // Of a known axis, only as many as are asked for.
    let most = match (call.name, n.as_const()) {
        ("aten.kthvalue", Some(n)) => call.int("k", 1)?.clamp(0, n),
        _ => 0,
    };
    let (sorted, order) = match most {
        0 => b.sort(x, axis, descending)?,
        k => b.sort_first(x, axis, descending, Ix::Const(k))?,
    };
    match call.name {
        "aten.nanmedian" if b.elem(x).is_float() => {
            let results = median_of_numbers(b, x, axis, sorted, order, call.flag("keepdim", false)?)?;
            Ok(if whole { results[..1].to_vec() } else { results })
        }
        "aten.kthvalue" | "aten.median" | "aten.nanmedian" => {
            let at = match call.name {
                "aten.kthvalue" => Ix::Const(call.int("k", 1)? - 1),
                _ => b.simplify(&Ix::floor_div(Ix::sub(n, Ix::Const(1)), Ix::Const(2))),
            };
            let (mut value, mut place) =
                (super::slices::select(b, sorted, axis, at.clone())?, super::slices::select(b, order, axis, at)?);
            if b.elem(x).is_float() && call.name == "aten.median" {
                // NaN wins: it stands last in the order.
                let last = b.simplify(&Ix::sub(b.shape(x)[axis].clone(), Ix::Const(1)));
                let top = super::slices::select(b, sorted, axis, last.clone())?;
                let top_at = super::slices::select(b, order, axis, last)?;
                let nan = b.compare(Predicate::NotEqual, top, top)?;
                value = b.select(nan, top, value)?;
                place = b.select(nan, top_at, place)?;
            }
            if call.flag("keepdim", false)? {
                value = b.unsqueeze(value, &[axis])?;
                place = b.unsqueeze(place, &[axis])?;
            }
            Ok(if whole { vec![value] } else { vec![value, place] })
        }
        "aten.argsort" => Ok(vec![order]),
        "aten.msort" => Ok(vec![sorted]),
        _ => Ok(vec![sorted, order]),
    }
}
