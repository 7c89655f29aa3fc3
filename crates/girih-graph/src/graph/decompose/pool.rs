//! Pooling: reductions over mapped windows.

use super::Call;
use super::expr::Tensor;
use super::window::{Slide, kernel_shape, masked, onnx_slides, spatial, windows};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp, axis};
use crate::index::Ix;

rules! {
    max_pool "The greatest number of each window; the padding reads the least value of the type, and so does NaN.\n\n\
         `y = max_pool(x)` --> `x = max x, -inf`, `xw = map x[n, c, o*stride + k*dilation - pad] else -inf`, `y = reduce \
         max xw over k`" {
        "onnx.MaxPool" => max_pool,
    }
    average_pool "The mean of each window; its count follows from the position.\n\n\
         `y = average_pool(x)` --> `s = reduce sum (windows of x, else 0) over k`, `y = s / count(o)`" {
        "onnx.AveragePool" => |c| {
            let (slides, counts) = pooled(c)?;
            mean_windows(c.x(0), &slides, &counts, c.flag("count_include_pad", false)?)
        },
    }
    lp_pool "The p-norm of each window.\n\n`y = lp_pool(x)` --> `y = (reduce sum |windows of x|^p over k)^(1/p)`" {
        "onnx.LpPool" => |c| lp_pool(c, |power| {
            let (slides, counts) = pooled(c)?;
            sum_windows(power, &slides, &counts)
        }),
        "onnx.GlobalLpPool" => |c| lp_pool(c, |power| Ok(power.sum(&spatial_axes(c)?, true))),
    }
    global_pool "The greatest element, or the mean, of each channel.\n\n`y = global_max_pool(x)` --> `y = reduce max x over \
         2, 3, ..`" {
        "onnx.GlobalMaxPool" => |c| spatial_axes(c).map(|axes| c.x(0).greatest(&axes, true)),
        "onnx.GlobalAveragePool" => |c| spatial_axes(c).map(|axes| c.x(0).mean(&axes, true)),
    }
    max_unpool "Puts each element where its index says in a tensor of zeros.\n\n\
         `y = max_unpool(x, i)` --> `y = scatter set zeros[i] = x`" {
        "onnx.MaxUnpool" => max_unpool,
    }
}

/// The least value of a type: what does not change a maximum.
pub fn least(elem: Elem) -> Arg {
    if elem.is_float() {
        return ir::scalar(elem, f64::NEG_INFINITY);
    }
    let bits = if elem.unsigned || elem.is_bool() { 0 } else { 1u64 << (elem.dtype.bits() - 1) };
    Arg::Scalar { elem, bits }
}

/// Folds each window of `x [n, c, d..]`, which reads `none` outside.
fn fold_windows<'g>(op: ReduceOp, x: Tensor<'g>, slides: &[Slide], counts: &[Ix], none: Arg) -> Result<Tensor<'g>> {
    let first = x.rank()?;
    let xw = x.cx.made(&[x], |b| Ok(windows(b, x.arg, slides, counts, none)));
    Ok(xw.reduce(op, &(first..first + slides.len()).collect::<Vec<_>>(), false))
}

/// The maximum of each window of `x [n, c, d..]`.
pub fn max_windows<'g>(x: Tensor<'g>, slides: &[Slide], counts: &[Ix]) -> Result<Tensor<'g>> {
    fold_windows(ReduceOp::Max, x, slides, counts, least(x.elem()))
}

/// Where in `x` the maximum of each window is: for each spatial axis an i64 tensor `[n, c, o..]`.
pub fn max_places<'g>(x: Tensor<'g>, slides: &[Slide], counts: &[Ix]) -> Result<Vec<Tensor<'g>>> {
    let (from, cx) = (x.shape()?, x.cx);
    let lead = from.len() - slides.len();
    // One axis runs over all positions of the window in row-major order.
    let size = slides.iter().fold(Ix::Const(1), |n, s| Ix::mul(n, s.size.clone()));
    let out = [&from[..lead], counts].concat();
    let flat = out.len();
    let shape = [&out[..], &[cx.simplify(&size)]].concat();
    let mut coords: Vec<Ix> = (0..lead).map(axis).collect();
    let mut rest = axis(flat);
    let mut tail = vec![];
    for (d, slide) in slides.iter().enumerate().rev() {
        let k = if d == 0 { rest.clone() } else { Ix::modulo(rest.clone(), slide.size.clone()) };
        tail.push(slide.place(axis(lead + d), k));
        rest = Ix::floor_div(rest, slide.size.clone());
    }
    coords.extend(tail.into_iter().rev());
    let none = least(x.elem());
    let xw = cx.made(&[x], |b| Ok(masked(b, "windows", x.arg, shape, coords, none)));
    let mut position = xw.reduce(ReduceOp::ArgMax { last: false }, &[flat], false);
    let mut places = vec![];
    for (d, slide) in slides.iter().enumerate().rev() {
        let size = cx.index(slide.size.clone(), Elem::I64, vec![]);
        let k = if d == 0 { position } else { position % size };
        position = position / size;
        let start = cx.index(slide.start(axis(lead + d)), Elem::I64, out.clone());
        places.push(start + k * slide.dilation);
    }
    places.reverse();
    Ok(places)
}

/// The sum of each window of `x` (zeros outside), in the type that sums are made in.
pub fn sum_windows<'g>(x: Tensor<'g>, slides: &[Slide], counts: &[Ix]) -> Result<Tensor<'g>> {
    let x = x.wide();
    fold_windows(ReduceOp::Sum, x, slides, counts, x.like(0.0).arg)
}

/// The mean of each window. The padding counts as zeros where `padding_counts`; what lies beyond it never does.
pub fn mean_windows<'g>(x: Tensor<'g>, slides: &[Slide], counts: &[Ix], padding_counts: bool) -> Result<Tensor<'g>> {
    let from = x.shape()?;
    let lead = from.len() - slides.len();
    let sum = sum_windows(x, slides, counts)?;
    let mut size = Ix::Const(1);
    for (d, slide) in slides.iter().enumerate() {
        let extent = from[lead + d].clone();
        let (lo, hi) = if padding_counts {
            (Ix::sub(Ix::Const(0), slide.before.clone()), Ix::add(extent, slide.after.clone()))
        } else {
            (Ix::Const(0), extent)
        };
        size = Ix::mul(size, slide.inside(axis(lead + d), lo, hi));
    }
    let shape = sum.shape()?;
    let mut facts = x.cx.read(|b| b.facts().clone());
    for (d, extent) in shape.iter().enumerate() {
        facts.set_axis(crate::index::AxisId(d as u32), &Ix::Const(0), extent);
    }
    let size = crate::index::simplify(&size, &facts);
    let divisor = match facts.tight_range(&size).as_point() {
        Some(n) => sum.like(n as f64),
        None => x.cx.index(size, Elem::I64, shape).to(sum.elem()),
    };
    Ok((sum / divisor).to(x.elem()))
}

/// The windows of a pooling, and how many along each axis.
fn pooled(c: &Call<'_>) -> Result<(Vec<Slide>, Vec<Ix>)> {
    let extents = c.cx.read(|b| spatial(b, c.arg(0)?))?;
    let slides = c.cx.read(|b| onnx_slides(b, c, &extents, &kernel_shape(c)?))?;
    let ceil = c.flag("ceil_mode", false)?;
    let same = c.text("auto_pad")?.is_some_and(|a| a.starts_with("SAME"));
    let count = |(s, d): (&Slide, &Ix)| match same {
        true => Ok(c.cx.simplify(&Ix::ceil_div(d.clone(), Ix::Const(s.stride)))),
        false => c.cx.read(|b| s.counted(b, d, ceil)),
    };
    let counts = slides.iter().zip(&extents).map(count).collect::<Result<_>>()?;
    Ok((slides, counts))
}

/// The axes behind that of the channels.
fn spatial_axes(c: &Call<'_>) -> Result<Vec<usize>> {
    c.cx.read(|b| spatial(b, c.arg(0)?))?;
    Ok((2..c.x(0).rank()?).collect())
}

fn max_pool<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (slides, counts) = pooled(c)?;
    let x = c.x(0);
    let x = if x.elem().is_float() { x.max_number(c.cx.tensor(least(x.elem()))) } else { x };
    let y = max_windows(x, &slides, &counts)?;
    let places = max_places(x, &slides, &counts)?;
    // The second result numbers the elements of the whole input: row-major, or with the spatial axes reversed.
    let from = c.x(0).shape()?;
    let plane = Ix::add(Ix::mul(axis(0), from[1].clone()), axis(1));
    let mut at = c.cx.index(plane, Elem::I64, y.shape()?);
    let mut order: Vec<usize> = (0..places.len()).collect();
    if c.flag("storage_order", false)? {
        order.reverse();
    }
    for d in order {
        at = at * c.cx.index(from[2 + d].clone(), Elem::I64, vec![]) + places[d];
    }
    Ok([y, at])
}

/// The p-norm, by the sum of powers.
fn lp_pool<'g>(c: &Call<'g>, sum: impl FnOnce(Tensor<'g>) -> Result<Tensor<'g>>) -> Result<Tensor<'g>> {
    let p = c.int("p", 2)?;
    if p < 1 {
        return Err(Refusal::new(format!("p must be at least 1, not {p}")));
    }
    let x = c.x(0).wide();
    let magnitude = x.abs();
    let sum = sum(match p {
        1 => magnitude,
        2 => x * x,
        _ => magnitude.pow(p as f64),
    })?;
    let root = match p {
        1 => sum,
        2 => sum.sqrt(),
        _ => sum.pow(1.0 / p as f64),
    };
    Ok(root.to(c.x(0).elem()))
}

fn max_unpool<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, at, cx) = (c.x(0), c.x(1), c.cx);
    let inputs = cx.read(|b| spatial(b, x.arg))?;
    let slides = cx.read(|b| onnx_slides(b, c, &inputs, &kernel_shape(c)?))?;
    // The indices number the elements of the tensor that was pooled; `output_shape` may be larger.
    let mut pooled = x.shape()?[..2].to_vec();
    for (slide, d) in slides.iter().zip(&inputs) {
        let last = Ix::mul(Ix::sub(d.clone(), Ix::Const(1)), Ix::Const(slide.stride));
        let full = Ix::add(last, slide.size.clone());
        pooled.push(cx.simplify(&Ix::sub(full, Ix::add(slide.before.clone(), slide.after.clone()))));
    }
    let constant = || Refusal::new("the output_shape of MaxUnpool is not constant");
    let out = c.maybe(2).map_or(Ok(pooled.clone()), |shape| shape.ints().ok_or_else(constant))?;
    if out.len() != pooled.len() || !cx.same_shape(&out[..2], &pooled[..2]) {
        let (out, x) = (cx.shape_text(&out), x.shape_text());
        return Err(Refusal::new(format!("the output_shape {out} of MaxUnpool does not fit its input {x}")));
    }
    let at = at.of_shape("the tensor of places", &x.shape()?)?;
    let zeros = x.like(0.0).fill(vec![cx.numel(&pooled)]);
    let many = [x.numel()?];
    let (line, at) = (x.reshape(&many), at.reshape(&many));
    let y = zeros.scatter(&[at], line, vec![Coord::Arg(1)], ScatterOp::Set);
    let y = y.reshape(&pooled);
    let none = vec![Ix::Const(0); pooled.len()];
    let more: Vec<Ix> = out.iter().zip(&pooled).map(|(o, p)| cx.simplify(&Ix::sub(o.clone(), p.clone()))).collect();
    Ok(if more.iter().all(|m| m.is_const(0)) { y } else { y.pad(&none, &more, x.like(0.0)) })
}
