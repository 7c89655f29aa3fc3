//! ONNX operators that cut tensors, put them together and pad them.

use super::common::{axes_either, known, known_ints, lone, normal_axes, tame};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{self, Arg, MapSource};
use crate::index::{Cmp, Cond, Ix, Mask};
use crate::num::op::Predicate;

rules! {
    onnx_concat "Tensors one after the other along an axis.\n\n`y = Concat(a, b)` --> `y = map a where .., else b`" {
        "onnx.Concat" => old(|b, call| {
            let first = call.arg(0)?;
            let axis = normal_axis(call.int("axis", 0)?, b.rank(first))?;
            let xs = (0..call.args.len()).map(|i| call.arg(i)).collect::<Result<Vec<Arg>>>()?;
            Ok(vec![b.concat(&xs, axis)?])
        }),
    }
    onnx_split "Consecutive pieces of an axis, of given lengths or as equal as they can be.\n\n\
         `y0, y1 = Split(x)` --> `y0 = map x[..]`, `y1 = map x[.. + n0]`" {
        "onnx.Split" => old(split),
    }
    onnx_slice "Every step-th element of ranges, which may run backwards and are cut to the extents.\n\n\
         `y = Slice(x)` --> `y = map x[start + i0*step, ..]`\n\n\
         Refuses bounds that depend on the elements of an input." {
        "onnx.Slice" => old(slice),
    }
    onnx_pad "A border of one value, of the nearest elements, or of elements mirrored or repeated.\n\n\
         `y = Pad(x)` --> `y = map x[i0 - before, ..] where inside, else value`" {
        "onnx.Pad" => old(pad),
    }
    onnx_triangle "The part of matrices above or below a diagonal, the rest 0; or ones on a diagonal.\n\n\
         `y = Trilu(x)` --> `y = map x where i1 >= i0 + k, else 0`" {
        "onnx.Trilu" | "onnx.EyeLike" => old(triangle),
    }
}

fn split(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let shape = b.shape(x);
    let axis = normal_axis(call.int("axis", 0)?, shape.len())?;
    let extent = shape[axis].clone();
    let lengths: Vec<Ix> = if let Some(lengths) = call.extents("split")? {
        lengths
    } else if call.opt(1).is_some() {
        known(b, call, 1, "split")?
    } else {
        let pieces = call.int("num_outputs", call.int("outputs", 1)?)?;
        if !(1..=1 << 16).contains(&pieces) {
            return Err(Refusal::new(format!("{pieces} pieces are out of range")));
        }
        // Before version 18, which has an attribute for their number, the pieces are of one size.
        if !call.has("num_outputs") && extent.as_const().is_some_and(|n| n % pieces != 0) {
            let text = b.graph.ix_text(&extent);
            return Err(Refusal::new(format!("{pieces} pieces of one size do not add up to the extent {text}")));
        }
        // The last ones are shorter, or empty.
        let each = b.simplify(&Ix::ceil_div(extent.clone(), Ix::Const(pieces)));
        let length = |p: i64| {
            let left = Ix::sub(extent.clone(), Ix::mul(each.clone(), Ix::Const(p)));
            b.simplify(&Ix::max(Ix::Const(0), Ix::min(left, each.clone())))
        };
        (0..pieces).map(length).collect()
    };
    let results = call.int("outputs", lengths.len() as i64)?;
    if lengths.len() as i64 > results {
        return Err(Refusal::new(format!("{} pieces do not fit {results} results", lengths.len())));
    }
    let total = lengths.iter().fold(Ix::Const(0), |a, n| Ix::add(a, n.clone()));
    let negative = lengths.iter().filter_map(Ix::as_const).any(|n| n < 0);
    if negative || !b.same(&total, &extent) {
        let text = b.graph.ix_text(&extent);
        return Err(Refusal::new(format!("the pieces do not add up to the extent {text}")));
    }
    let mut at = Ix::Const(0);
    let mut out = vec![];
    for n in lengths {
        out.push(b.slice(x, axis, at.clone(), 1, n.clone())?);
        at = b.simplify(&Ix::add(at, n));
    }
    Ok(out)
}

/// A bound counted from the start of a dimension.
fn bound(b: &Builder<'_>, at: &Ix, extent: &Ix) -> Ix {
    let at = tame(at);
    let zero = Ix::Const(0);
    if b.holds(&at, Cmp::Ge, &zero) {
        at
    } else if b.holds(&at, Cmp::Lt, &zero) {
        Ix::add(extent.clone(), at)
    } else {
        // 1 where it counts from the end.
        let back = Ix::max(Ix::min(Ix::sub(zero.clone(), at.clone()), Ix::Const(1)), zero);
        Ix::add(at, Ix::mul(back, extent.clone()))
    }
}

fn slice(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let rank = b.rank(x);
    // Before version 10, the bounds were attributes.
    let list = |name: &str, i: usize| match call.extents(name)? {
        Some(list) => Ok(list),
        None => known(b, call, i, name),
    };
    let (starts, ends) = (list("starts", 1)?, list("ends", 2)?);
    let axes = match axes_either(b, call, 3)? {
        Some(axes) => axes,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match call.opt(4) {
        Some(_) => known_ints(b, call, 4, "steps")?,
        None => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()].iter().any(|n| *n != starts.len()) {
        return Err(Refusal::new("starts, ends, axes and steps differ in number"));
    }
    normal_axes(&axes, rank)?;
    let mut y = x;
    for (i, axis) in axes.iter().enumerate() {
        let axis = normal_axis(*axis, rank)?;
        let extent = b.shape(y)[axis].clone();
        let step = steps[i].clamp(-ir::MAX_EXTENT, ir::MAX_EXTENT);
        let (start, end) = (bound(b, &starts[i], &extent), bound(b, &ends[i], &extent));
        // Backwards, the bounds are positions before which and from which it runs.
        let last = if step < 0 { b.simplify(&Ix::sub(extent.clone(), Ix::Const(1))) } else { extent.clone() };
        let (start_lo, end_lo) = if step < 0 { (Ix::Const(0), Ix::Const(-1)) } else { (Ix::Const(0), Ix::Const(0)) };
        let start = b.simplify(&Ix::min(Ix::max(start, start_lo), last.clone()));
        let end = b.simplify(&Ix::min(Ix::max(end, end_lo), last));
        let (span, stride) = match step {
            0 => return Err(Refusal::new("a step is 0")),
            1.. => (Ix::sub(end, start.clone()), step),
            _ => (Ix::sub(start.clone(), end), -step),
        };
        let span = b.simplify(&span);
        let count = b.simplify(&Ix::max(Ix::ceil_div(span, Ix::Const(stride)), Ix::Const(0)));
        y = b.slice(y, axis, start, step, count)?;
    }
    Ok(vec![y])
}

/// Amounts before and after each axis, and the axes that are padded.
fn amounts(b: &Builder<'_>, call: &Call<'_>, rank: usize) -> Result<(Vec<Ix>, Vec<Ix>)> {
    let pads = match call.extents("pads")? {
        Some(pads) => pads,
        None => known(b, call, 1, "pads")?,
    };
    let axes = match call.opt(3) {
        Some(_) => known_ints(b, call, 3, "axes")?,
        None => (0..rank as i64).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Refusal::new(format!("{} amounts of padding are given for {} axes", pads.len(), axes.len())));
    }
    let (mut before, mut after) = (vec![Ix::Const(0); rank], vec![Ix::Const(0); rank]);
    for (i, axis) in axes.iter().enumerate() {
        let axis = normal_axis(*axis, rank)?;
        before[axis] = pads[i].clone();
        after[axis] = pads[axes.len() + i].clone();
    }
    let long = |p: &Ix| p.as_const().is_some_and(|n| n.unsigned_abs() > ir::MAX_EXTENT as u64);
    if pads.iter().any(long) {
        return Err(Refusal::new("an amount of padding is too large"));
    }
    Ok((before, after))
}

fn pad(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let (mut from, elem) = (b.shape(x), b.elem(x));
    let (mut before, mut after) = amounts(b, call, from.len())?;
    let mode = call.text("mode")?.unwrap_or("constant");
    if mode == "constant" {
        let value = match call.opt(2) {
            Some(value) => lone(b, value, "value")?,
            None => ir::scalar(elem, call.float("value", 0.0)?),
        };
        if b.elem(value) != elem {
            return Err(Refusal::new(format!("the value's type {} is not {elem}", b.elem(value))));
        }
        return Ok(vec![b.pad(x, &before, &after, value)?]);
    }
    // Elements that are cut off are not there for what is padded.
    for d in 0..from.len() {
        let zero = Ix::Const(0);
        if [&before[d], &after[d]].iter().all(|n| b.holds(n, Cmp::Ge, &zero)) {
            continue;
        }
        let negative = |n: &Ix| b.simplify(&Ix::max(Ix::sub(zero.clone(), n.clone()), zero.clone()));
        let (front, back) = (negative(&before[d]), negative(&after[d]));
        let cut = b.simplify(&Ix::add(front.clone(), back));
        let rest = b.simplify(&Ix::sub(from[d].clone(), cut.clone()));
        if !b.holds(&rest, Cmp::Ge, &zero) {
            let (extent, cut) = (b.shape_text(&from[d..=d]), b.graph.ix_text(&cut));
            return Err(Refusal::new(format!("{cut} elements cannot be cut off an axis of {extent}")));
        }
        x = b.slice(x, d, front, 1, rest.clone())?;
        from[d] = rest;
        for n in [&mut before[d], &mut after[d]] {
            *n = b.simplify(&Ix::max(n.clone(), zero.clone()));
        }
    }
    let (mut shape, mut coords) = (vec![], vec![]);
    for (d, n) in from.iter().enumerate() {
        let extent = Ix::add(Ix::add(n.clone(), before[d].clone()), after[d].clone());
        shape.push(b.simplify(&extent));
        let last = b.simplify(&Ix::sub(n.clone(), Ix::Const(1)));
        let at = Ix::sub(ir::axis(d), before[d].clone());
        coords.push(match mode {
            _ if before[d].is_const(0) && after[d].is_const(0) => ir::axis(d),
            _ if n.is_const(1) => Ix::Const(0),
            "edge" => Ix::min(Ix::max(at, Ix::Const(0)), last),
            "wrap" => Ix::modulo(at, n.clone()),
            "reflect" => {
                let period = b.simplify(&Ix::mul(last, Ix::Const(2)));
                let folded = Ix::modulo(at, period.clone());
                Ix::min(folded.clone(), Ix::sub(period, folded))
            }
            other => return Err(Refusal::new(format!("unknown mode `{other}`"))),
        });
        let empty = n.is_const(0) && !extent.is_const(0);
        if empty || b.simplify(&extent).as_const().is_some_and(|n| n < 0) {
            return Err(Refusal::new("an axis has no elements to pad with"));
        }
    }
    Ok(vec![b.map("pad", x, shape, coords)])
}

fn triangle(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (shape, elem) = (b.shape(x), b.elem(x));
    let rank = shape.len();
    if rank < 2 {
        return Err(Refusal::new(format!("it needs matrices, not a tensor of rank {rank}")));
    }
    let (row, column) = (ir::axis(rank - 2), ir::axis(rank - 1));
    if call.name == "onnx.EyeLike" {
        if rank > 2 {
            return Err(Refusal::new(format!("it needs one matrix, not a tensor of rank {rank}")));
        }
        let to = match call.int_of("dtype")? {
            Some(number) => super::types::elem_of(number)?,
            None => elem,
        };
        let place = Ix::sub(column, Ix::add(row, Ix::Const(call.int("k", 0)?.clamp(-ir::MAX_EXTENT, ir::MAX_EXTENT))));
        let place = b.index(place, Elem::I64, shape);
        let on = b.compare(Predicate::Equal, place, ir::int_scalar(Elem::I64, 0))?;
        return Ok(vec![b.convert(on, to)?]);
    }
    let upper = call.flag("upper", true)?;
    let zero = ir::scalar(elem, 0.0);
    let k = match call.opt(1) {
        None => Some(Ix::Const(0)),
        Some(k) => b.ints(k).and_then(|list| list.first().map(tame)),
    };
    let Some(k) = k else {
        // The diagonal is an operand of the run.
        let k = call.arg(1)?;
        let k = lone(b, k, "k")?;
        let place = b.index(Ix::sub(column, row), Elem::I64, shape);
        let pred = if upper { Predicate::GreaterThanOrEqual } else { Predicate::LessThanOrEqual };
        let inside = b.compare(pred, place, k)?;
        return Ok(vec![b.select(inside, x, zero)?]);
    };
    let cmp = if upper { Cmp::Ge } else { Cmp::Le };
    let when = Mask { conds: vec![Cond::new(column, cmp, Ix::add(row, k))], vals: vec![] };
    let inside = MapSource { arg: 0, coords: (0..rank).map(ir::axis).collect(), when };
    let outside = MapSource { arg: 1, coords: vec![], when: Mask::default() };
    Ok(vec![b.map_sources("trilu", vec![x, zero], shape, vec![inside, outside])])
}
