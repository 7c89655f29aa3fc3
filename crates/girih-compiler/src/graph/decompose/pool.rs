//! Pooling: reductions over mapped windows.

use super::window::{Slide, kernel_shape, onnx_slides, spatial, windows};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp, axis};
use crate::index::Ix;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "max_pool",
        handles: &["onnx.MaxPool"],
        doc: "The greatest number of each window; the padding reads the least value of the type, and so does NaN.\n\n\
              `y = max_pool(x)` --> `x = max x, -inf`, `xw = map x[n, c, o*stride + k*dilation - pad] else -inf`, `y = reduce \
              max xw over k`",
        run: max_pool,
    },
    Decomposition {
        name: "average_pool",
        handles: &["onnx.AveragePool"],
        doc: "The mean of each window; its count follows from the position.\n\n\
              `y = average_pool(x)` --> `s = reduce sum (windows of x, else 0) over k`, `y = s / count(o)`",
        run: average_pool,
    },
    Decomposition {
        name: "lp_pool",
        handles: &["onnx.LpPool", "onnx.GlobalLpPool"],
        doc: "The p-norm of each window.\n\n`y = lp_pool(x)` --> `y = (reduce sum |windows of x|^p over k)^(1/p)`",
        run: lp_pool,
    },
    Decomposition {
        name: "global_pool",
        handles: &["onnx.GlobalMaxPool", "onnx.GlobalAveragePool"],
        doc: "The greatest element, or the mean, of each channel.\n\n`y = global_max_pool(x)` --> `y = reduce max x over \
              2, 3, ..`",
        run: global_pool,
    },
    Decomposition {
        name: "max_unpool",
        handles: &["onnx.MaxUnpool"],
        doc: "Puts each element where its index says in a tensor of zeros.\n\n\
              `y = max_unpool(x, i)` --> `y = scatter set zeros[i] = x`",
        run: max_unpool,
    },
];

/// The least value of a type: what does not change a maximum.
pub fn least(elem: Elem) -> Arg {
    if elem.is_float() {
        return ir::scalar(elem, f64::NEG_INFINITY);
    }
    let bits = if elem.unsigned || elem.is_bool() { 0 } else { 1u64 << (elem.dtype.bits() - 1) };
    Arg::Scalar { elem, bits }
}

/// The maximum of each window of `x [n, c, d..]`.
pub fn max_windows(b: &mut Builder<'_>, x: Arg, slides: &[Slide], counts: &[Ix]) -> Result<Arg> {
    let xw = windows(b, x, slides, counts, least(b.elem(x)));
    let first = b.rank(x);
    let axes: Vec<usize> = (first..first + slides.len()).collect();
    b.reduce(ReduceOp::Max, xw, &axes, false)
}

/// Where in `x` the maximum of each window is: for each spatial axis an i64 tensor `[n, c, o..]`.
pub fn max_places(b: &mut Builder<'_>, x: Arg, slides: &[Slide], counts: &[Ix]) -> Result<Vec<Arg>> {
    let from = b.shape(x);
    let lead = from.len() - slides.len();
    // One axis runs over all positions of the window in row-major order.
    let size = slides.iter().fold(Ix::Const(1), |n, s| Ix::mul(n, s.size.clone()));
    let mut out: Vec<Ix> = from[..lead].to_vec();
    out.extend(counts.iter().cloned());
    let mut shape = out.clone();
    let flat = shape.len();
    shape.push(b.simplify(&size));
    let mut coords: Vec<Ix> = (0..lead).map(axis).collect();
    let mut rest = axis(flat);
    let mut tail = vec![];
    for (d, slide) in slides.iter().enumerate().rev() {
        let k = if d == 0 { rest.clone() } else { Ix::modulo(rest.clone(), slide.size.clone()) };
        tail.push(slide.place(axis(lead + d), k));
        rest = Ix::floor_div(rest, slide.size.clone());
    }
    coords.extend(tail.into_iter().rev());
    let xw = super::window::masked(b, "windows", x, shape, coords, least(b.elem(x)));
    let mut position = b.reduce(ReduceOp::ArgMax { last: false }, xw, &[flat], false)?;
    let mut places = vec![];
    for (d, slide) in slides.iter().enumerate().rev() {
        let size = b.index(slide.size.clone(), Elem::I64, vec![]);
        let k = if d == 0 { position } else { b.rem(position, size)? };
        position = b.div(position, size)?;
        let start = b.index(slide.start(axis(lead + d)), Elem::I64, out.clone());
        let step = ir::int_scalar(Elem::I64, slide.dilation);
        let step = b.mul(k, step)?;
        places.push(b.add(start, step)?);
    }
    places.reverse();
    Ok(places)
}

/// The sum of each window of `x` (zeros outside), in [`Builder::wide`].
pub fn sum_windows(b: &mut Builder<'_>, x: Arg, slides: &[Slide], counts: &[Ix]) -> Result<Arg> {
    let wide = b.wide(x);
    let x = b.convert(x, wide)?;
    let zero = b.scalar_like(x, 0.0);
    let xw = windows(b, x, slides, counts, zero);
    let first = b.rank(x);
    let axes: Vec<usize> = (first..first + slides.len()).collect();
    b.reduce(ReduceOp::Sum, xw, &axes, false)
}

/// The mean of each window. The padding counts as zeros where `padding_counts`; what lies beyond it never does.
pub fn mean_windows(b: &mut Builder<'_>, x: Arg, slides: &[Slide], counts: &[Ix], padding_counts: bool) -> Result<Arg> {
    let narrow = b.elem(x);
    let from = b.shape(x);
    let lead = from.len() - slides.len();
    let sum = sum_windows(b, x, slides, counts)?;
    let wide = b.elem(sum);
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
    let shape = b.shape(sum);
    let mut facts = b.facts().clone();
    for (d, extent) in shape.iter().enumerate() {
        facts.set_axis(crate::index::AxisId(d as u32), &Ix::Const(0), extent);
    }
    let size = crate::index::simplify(&size, &facts);
    let divisor = match facts.tight_range(&size).as_point() {
        Some(n) => ir::scalar(wide, n as f64),
        None => {
            let n = b.index(size, Elem::I64, shape);
            b.convert(n, wide)?
        }
    };
    let mean = b.div(sum, divisor)?;
    b.convert(mean, narrow)
}

/// The windows of a pooling, and how many along each axis.
fn pooled(b: &Builder<'_>, call: &Call<'_>, x: Arg) -> Result<(Vec<Slide>, Vec<Ix>)> {
    let extents = spatial(b, x)?;
    let slides = onnx_slides(b, call, &extents, &kernel_shape(call)?)?;
    let ceil = call.flag("ceil_mode", false)?;
    let same = call.text("auto_pad")?.is_some_and(|a| a.starts_with("SAME"));
    let count = |(s, d): (&Slide, &Ix)| {
        let n = if same { Ix::ceil_div(d.clone(), Ix::Const(s.stride)) } else { s.count(d, ceil) };
        b.simplify(&n)
    };
    let counts = slides.iter().zip(&extents).map(count).collect();
    Ok((slides, counts))
}

fn max_pool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (slides, counts) = pooled(b, call, x)?;
    let x = if b.elem(x).is_float() { b.max_number(x, least(b.elem(x)))? } else { x };
    let y = max_windows(b, x, &slides, &counts)?;
    let places = max_places(b, x, &slides, &counts)?;
    // The second result numbers the elements of the whole input: row-major, or with the spatial axes reversed.
    let (from, out) = (b.shape(x), b.shape(y));
    let plane = Ix::add(Ix::mul(axis(0), from[1].clone()), axis(1));
    let mut at = b.index(plane, Elem::I64, out.clone());
    let mut order: Vec<usize> = (0..places.len()).collect();
    if call.flag("storage_order", false)? {
        order.reverse();
    }
    for d in order {
        let extent = b.index(from[2 + d].clone(), Elem::I64, vec![]);
        let scaled = b.mul(at, extent)?;
        at = b.add(scaled, places[d])?;
    }
    Ok(vec![y, at])
}

fn average_pool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (slides, counts) = pooled(b, call, x)?;
    Ok(vec![mean_windows(b, x, &slides, &counts, call.flag("count_include_pad", false)?)?])
}

fn lp_pool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let narrow = b.elem(x);
    let p = call.int("p", 2)?;
    if p < 1 {
        return Err(Refusal::new(format!("p must be at least 1, not {p}")));
    }
    let wide = b.wide(x);
    let wide_x = b.convert(x, wide)?;
    let magnitude = b.abs(wide_x)?;
    let power = match p {
        1 => magnitude,
        2 => b.mul(wide_x, wide_x)?,
        _ => {
            let p = b.scalar_like(wide_x, p as f64);
            b.pow(magnitude, p)?
        }
    };
    let sum = if call.name == "onnx.GlobalLpPool" {
        spatial(b, x)?;
        let axes: Vec<usize> = (2..b.rank(x)).collect();
        b.reduce(ReduceOp::Sum, power, &axes, true)?
    } else {
        let (slides, counts) = pooled(b, call, x)?;
        sum_windows(b, power, &slides, &counts)?
    };
    let root = match p {
        1 => sum,
        2 => b.sqrt(sum)?,
        _ => {
            let inverse = b.scalar_like(sum, 1.0 / p as f64);
            b.pow(sum, inverse)?
        }
    };
    Ok(vec![b.convert(root, narrow)?])
}

fn global_pool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    spatial(b, x)?;
    let axes: Vec<usize> = (2..b.rank(x)).collect();
    let y = if call.name.contains("Max") { b.reduce(ReduceOp::Max, x, &axes, true)? } else { b.mean(x, &axes, true)? };
    Ok(vec![y])
}

fn max_unpool(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, at) = (call.arg(0)?, call.arg(1)?);
    let inputs = spatial(b, x)?;
    let slides = onnx_slides(b, call, &inputs, &kernel_shape(call)?)?;
    // The indices number the elements of the tensor that was pooled; `output_shape` may be larger.
    let mut pooled = b.shape(x)[..2].to_vec();
    for (slide, d) in slides.iter().zip(&inputs) {
        let last = Ix::mul(Ix::sub(d.clone(), Ix::Const(1)), Ix::Const(slide.stride));
        let full = Ix::add(last, slide.size.clone());
        pooled.push(b.simplify(&Ix::sub(full, Ix::add(slide.before.clone(), slide.after.clone()))));
    }
    let out = match call.opt(2) {
        Some(shape) => b.ints(shape).ok_or_else(|| Refusal::new("the output_shape of MaxUnpool is not constant"))?,
        None => pooled.clone(),
    };
    if out.len() != b.rank(x) {
        return Err(Refusal::new("the output_shape of MaxUnpool does not have the rank of its input"));
    }
    let count = b.numel(&pooled);
    let zero = b.scalar_like(x, 0.0);
    let zeros = b.full(zero, b.elem(x), vec![count]);
    let shape = b.shape(x);
    let many = b.numel(&shape);
    let (x, at) = (b.reshape(x, std::slice::from_ref(&many))?, b.reshape(at, &[many])?);
    let y = b.scatter(zeros, &[at], x, vec![Coord::Arg(1)], ScatterOp::Set)?;
    let y = b.reshape(y, &pooled)?;
    let none = vec![Ix::Const(0); pooled.len()];
    let more: Vec<Ix> = out.iter().zip(&pooled).map(|(o, p)| b.simplify(&Ix::sub(o.clone(), p.clone()))).collect();
    Ok(vec![if more.iter().all(|m| m.is_const(0)) { y } else { b.pad(y, &none, &more, zero)? }])
}
