//! ONNX operators that read or write at positions given by a tensor.

use super::common::{from_start, known_ints};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{self, Arg, Coord, ScatterOp};
use crate::index::{Cmp, Ix};
use crate::num::op::Predicate;

rules! {
    onnx_gather "Slices of an axis at indices; negative ones count from the end. One known index is a map.\n\n\
         `y = Gather(x, i)` --> `y = gather x[i, i1, ..]`" {
        "onnx.Gather" => old(gather),
    }
    onnx_gather_elements "One element for each index.\n\n`y = GatherElements(x, i)` --> `y = gather x[i, i1, ..]`" {
        "onnx.GatherElements" => old(gather_elements),
    }
    onnx_gather_nd "Slices at tuples of indices, which are in the last axis.\n\n\
         `y = GatherND(x, i)` --> `y = gather x[i[.., 0], i[.., 1], ..]`" {
        "onnx.GatherND" => old(gather_nd),
    }
    onnx_scatter "A copy in which elements at indices are replaced by updates or combined with them, in their order.\n\n\
         `y = ScatterElements(x, i, u)` --> `y = scatter x[i, i1, ..] u`" {
        "onnx.ScatterElements" | "onnx.Scatter" | "onnx.ScatterND" => old(scatter),
    }
    onnx_one_hot "A new axis that is `on` at the index, `off` elsewhere.\n\n\
         `y = OneHot(i, depth, v)` --> `y = select(i == index, v[1], v[0])`" {
        "onnx.OneHot" => old(one_hot),
    }
    onnx_compress "The slices where a condition holds, which must be known when the model is compiled.\n\n\
         `y = Compress(x, c)` --> `y = gather x[constant, ..]`" {
        "onnx.Compress" => old(compress),
    }
    onnx_non_zero "The positions of the elements that are not 0, of a tensor that is known when the model is compiled.\n\n\
         `y = NonZero(x)` --> `y = constant`" {
        "onnx.NonZero" => old(non_zero),
    }
    onnx_reverse_sequence "Reverses the first elements along the time axis; each batch has its own number of elements.\n\n\
         `y = ReverseSequence(x, n)` --> `y = gather x[select(i0 < n, n - 1 - i0, i0), i1, ..]`" {
        "onnx.ReverseSequence" => old(reverse_sequence),
    }
}

/// `indices` with `count` axes of extent 1 behind its own.
fn trailing(b: &mut Builder<'_>, indices: Arg, count: usize) -> Result<Arg> {
    let rank = b.rank(indices);
    let axes: Vec<usize> = (rank..rank + count).collect();
    b.unsqueeze(indices, &axes)
}

fn gather(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, indices) = (call.arg(0)?, call.arg(1)?);
    let from = b.shape(x);
    let axis = normal_axis(call.int("axis", 0)?, from.len())?;
    let extent = from[axis].clone();
    let around = b.shape(indices);
    let ri = around.len();
    let mut shape = from[..axis].to_vec();
    shape.extend(around.iter().cloned());
    shape.extend(from[axis + 1..].iter().cloned());
    let other = |d: usize| if d < axis { ir::axis(d) } else { ir::axis(d + ri - 1) };
    // One position that is known needs no tensor of indices.
    if let Some([only]) = b.ints(indices).as_deref() {
        let range = b.facts().range(only);
        let at = if range.hi < 0 { Ix::add(extent.clone(), only.clone()) } else { only.clone() };
        let inside = b.facts().range(&b.simplify(&at)).lo >= 0
            && b.facts().range(&b.simplify(&Ix::sub(extent.clone(), at.clone()))).lo > 0;
        if inside {
            let coords = (0..from.len()).map(|d| if d == axis { at.clone() } else { other(d) }).collect();
            return Ok(vec![b.map("gather", x, shape, coords)]);
        }
        if let (Some(n), Some(i)) = (extent.as_const(), only.as_const())
            && !(-n..n).contains(&i)
        {
            return Err(Refusal::new(format!("the index {i} lies outside an axis of {n}")));
        }
    }
    let indices = from_start(b, indices, &extent)?;
    let indices = trailing(b, indices, from.len() - axis - 1)?;
    let coords = (0..from.len()).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(other(d)) }).collect();
    Ok(vec![b.gather(x, &[indices], coords, shape)?])
}

fn gather_elements(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, indices) = (call.arg(0)?, call.arg(1)?);
    let from = b.shape(x);
    let axis = normal_axis(call.int("axis", 0)?, from.len())?;
    let shape = b.shape(indices);
    check_elements(b, &from, &shape, axis)?;
    let indices = from_start(b, indices, &from[axis])?;
    let coords = (0..from.len()).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
    Ok(vec![b.gather(x, &[indices], coords, shape)?])
}

/// The indices reach at most as far as the tensor, except along the axis they index.
fn check_elements(b: &Builder<'_>, from: &[Ix], shape: &[Ix], axis: usize) -> Result<()> {
    let fits = from.len() == shape.len()
        && (0..from.len()).all(|d| {
            let left = b.simplify(&Ix::sub(from[d].clone(), shape[d].clone()));
            d == axis || b.holds(&left, Cmp::Ge, &Ix::Const(0)) || b.same(&from[d], &shape[d])
        });
    if fits {
        return Ok(());
    }
    let (from, shape) = (b.shape_text(from), b.shape_text(shape));
    Err(Refusal::new(format!("indices of shape {shape} do not fit a tensor of shape {from}")))
}

/// The index tensors of tuples that stand in the last axis, each with axes of extent 1 behind.
fn tuples(b: &mut Builder<'_>, indices: Arg, into: &[Ix], behind: usize) -> Result<Vec<Arg>> {
    let last = b.rank(indices) - 1;
    let mut out = vec![];
    for (j, extent) in into.iter().enumerate() {
        let one = b.slice(indices, last, Ix::Const(j as i64), 1, Ix::Const(1))?;
        let one = b.squeeze(one, &[last])?;
        let one = from_start(b, one, extent)?;
        out.push(trailing(b, one, behind)?);
    }
    Ok(out)
}

/// How many indices a tuple has.
fn tuple_length(b: &Builder<'_>, indices: Arg, rank: usize) -> Result<usize> {
    match b.shape(indices).last().map(Ix::as_const) {
        Some(Some(k)) if (0..=rank as i64).contains(&k) => Ok(k as usize),
        _ => {
            let shape = b.shape_text(&b.shape(indices));
            Err(Refusal::new(format!("indices of shape {shape} are not tuples into a tensor of rank {rank}")))
        }
    }
}

fn gather_nd(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, indices) = (call.arg(0)?, call.arg(1)?);
    let (from, around) = (b.shape(x), b.shape(indices));
    let batch = call.int("batch_dims", 0)?;
    if !(0..around.len().min(from.len() + 1) as i64).contains(&batch) {
        return Err(Refusal::new(format!("{batch} batch dimensions are out of range")));
    }
    let batch = batch as usize;
    if !b.same_shape(&from[..batch], &around[..batch]) {
        return Err(Refusal::new("the batch dimensions of its operands differ"));
    }
    let k = tuple_length(b, indices, from.len() - batch)?;
    let rest = &from[batch + k..];
    let lead = around.len() - 1;
    let mut shape = around[..lead].to_vec();
    shape.extend(rest.iter().cloned());
    let parts = tuples(b, indices, &from[batch..batch + k], rest.len())?;
    let mut coords: Vec<Coord> = (0..batch).map(|d| Coord::Ix(ir::axis(d))).collect();
    coords.extend((0..k).map(|j| Coord::Arg(j as u32 + 1)));
    coords.extend((0..rest.len()).map(|d| Coord::Ix(ir::axis(lead + d))));
    Ok(vec![b.gather(x, &parts, coords, shape)?])
}

fn scatter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, indices, updates) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let from = b.shape(x);
    let op = match call.text("reduction")?.unwrap_or("none") {
        "none" => ScatterOp::Set,
        "add" => ScatterOp::Add,
        "mul" => ScatterOp::Mul,
        "max" => ScatterOp::Max,
        "min" => ScatterOp::Min,
        other => return Err(Refusal::new(format!("unknown reduction `{other}`"))),
    };
    if b.elem(x) != b.elem(updates) {
        return Err(Refusal::new(format!("{} and {} are different element types", b.elem(x), b.elem(updates))));
    }
    if call.name == "onnx.ScatterND" {
        let k = tuple_length(b, indices, from.len())?;
        let around = b.shape(indices);
        let lead = around.len() - 1;
        let mut shape = around[..lead].to_vec();
        shape.extend(from[k..].iter().cloned());
        if !b.same_shape(&shape, &b.shape(updates)) {
            let (given, needed) = (b.shape_text(&b.shape(updates)), b.shape_text(&shape));
            return Err(Refusal::new(format!("its updates must have shape {needed}, not {given}")));
        }
        let parts = tuples(b, indices, &from[..k], from.len() - k)?;
        let mut coords: Vec<Coord> = (0..k).map(|j| Coord::Arg(j as u32 + 1)).collect();
        coords.extend((0..from.len() - k).map(|d| Coord::Ix(ir::axis(lead + d))));
        return Ok(vec![b.scatter(x, &parts, updates, coords, op)?]);
    }
    let axis = normal_axis(call.int("axis", 0)?, from.len())?;
    let shape = b.shape(indices);
    check_elements(b, &from, &shape, axis)?;
    if !b.same_shape(&shape, &b.shape(updates)) {
        return Err(Refusal::new("its indices and updates have different shapes"));
    }
    let indices = from_start(b, indices, &from[axis])?;
    let coords = (0..from.len()).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
    Ok(vec![b.scatter(x, &[indices], updates, coords, op)?])
}

fn one_hot(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (indices, depth, values) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let depth = match (b.ints(depth).as_deref(), b.floats(depth).as_deref()) {
        (Some([n]), _) => n.clone(),
        (_, Some([x])) => Ix::Const(*x as i64),
        _ => return Err(Refusal::new("its depth must be known when the model is compiled")),
    };
    let rank = b.rank(indices) + 1;
    let axis = normal_axis(call.int("axis", -1)?, rank)?;
    let indices = b.convert(indices, Elem::I64)?;
    let indices = from_start(b, indices, &depth)?;
    let indices = b.unsqueeze(indices, &[axis])?;
    let mut shape = b.shape(indices);
    shape[axis] = depth;
    let place = b.index(ir::axis(axis), Elem::I64, shape);
    let here = b.compare(Predicate::Equal, place, indices)?;
    if !b.same_shape(&b.shape(values), &[Ix::Const(2)]) {
        return Err(Refusal::new("its values must be two numbers"));
    }
    let off = b.slice(values, 0, Ix::Const(0), 1, Ix::Const(1))?;
    let on = b.slice(values, 0, Ix::Const(1), 1, Ix::Const(1))?;
    let (off, on) = (b.squeeze(off, &[0])?, b.squeeze(on, &[0])?);
    Ok(vec![b.select(here, on, off)?])
}

fn compress(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let keep = known_ints(b, call, 1, "condition")?;
    let axis = match call.int_of("axis")? {
        Some(axis) => normal_axis(axis, b.rank(x))?,
        None => {
            let n = b.numel(&b.shape(x));
            x = b.reshape(x, &[n])?;
            0
        }
    };
    let places: Vec<i64> = (0..keep.len() as i64).filter(|i| keep[*i as usize] != 0).collect();
    let mut shape = b.shape(x);
    if shape[axis].as_const().is_some_and(|n| places.last().is_some_and(|p| *p >= n)) {
        return Err(Refusal::new("its condition is longer than the axis"));
    }
    shape[axis] = Ix::Const(places.len() as i64);
    let indices = b.int_constant(Elem::I64, &[places.len() as u64], &places);
    let indices = trailing(b, indices, shape.len() - axis - 1)?;
    let coords = (0..shape.len()).map(|d| if d == axis { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
    Ok(vec![b.gather(x, &[indices], coords, shape)?])
}

fn non_zero(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let shape: Option<Vec<i64>> = b.shape(x).iter().map(Ix::as_const).collect();
    let holds: Option<Vec<bool>> = b.floats(x).map(|list| list.iter().map(|v| *v != 0.0).collect());
    let (Some(shape), Some(holds)) = (shape, holds) else {
        return Err(Refusal::new("how many positions it gives must be known when the model is compiled"));
    };
    let rank = shape.len().max(1);
    let mut places = vec![vec![]; rank];
    for (at, _) in holds.iter().enumerate().filter(|(_, h)| **h) {
        let mut rest = at as i64;
        for d in (0..rank).rev() {
            let n = shape.get(d).copied().unwrap_or(1).max(1);
            places[d].push(rest % n);
            rest /= n;
        }
    }
    let count = places[0].len() as u64;
    Ok(vec![b.int_constant(Elem::I64, &[rank as u64, count], &places.concat())])
}

fn reverse_sequence(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, lengths) = (call.arg(0)?, call.arg(1)?);
    let shape = b.shape(x);
    let rank = shape.len();
    let time = normal_axis(call.int("time_axis", 0)?, rank)?;
    let batch = normal_axis(call.int("batch_axis", 1)?, rank)?;
    if time == batch || b.rank(lengths) != 1 {
        return Err(Refusal::new("its axes are the same, or its lengths are not a list"));
    }
    // Lengths along the batch's axis.
    b.expect_shape("the list of lengths", lengths, &shape[batch..=batch])?;
    let lengths = b.convert(lengths, Elem::I64)?;
    let around: Vec<usize> = (0..rank).filter(|d| *d != batch).collect();
    let lengths = b.unsqueeze(lengths, &around)?;
    let place = b.index(ir::axis(time), Elem::I64, shape.clone());
    let inside = b.compare(Predicate::LessThan, place, lengths)?;
    let last = b.sub(lengths, ir::int_scalar(Elem::I64, 1))?;
    let mirrored = b.sub(last, place)?;
    let place = b.select(inside, mirrored, place)?;
    let coords = (0..rank).map(|d| if d == time { Coord::Arg(1) } else { Coord::Ix(ir::axis(d)) }).collect();
    Ok(vec![b.gather(x, &[place], coords, shape)?])
}
