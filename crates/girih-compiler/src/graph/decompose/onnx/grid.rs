//! Sampling at computed positions: GridSample, AffineGrid, RoiAlign.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::resize::round_even;
use crate::graph::decompose::window::spatial;
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "grid_sample",
        handles: &["onnx.GridSample", "aten.grid_sampler_2d", "aten.grid_sampler_3d"],
        doc: "Interpolates at positions that a tensor gives, each axis in -1..1.\n\n\
              `y = grid_sample(x, grid)` --> `p = (grid + 1) * n/2 - 1/2`, gathers of the neighbours of `p`, weighted",
        run: grid_sample,
    },
    Decomposition {
        name: "affine_grid",
        handles: &["onnx.AffineGrid"],
        doc: "Positions of an image under affine maps.\n\n`g = affine_grid(theta, size)` --> `g = dot theta, (x, y, 1)`",
        run: affine_grid,
    },
    Decomposition {
        name: "roi_align",
        handles: &["onnx.RoiAlign"],
        doc: "Pools bilinear samples of regions.\n\n\
              `y = roi_align(x, rois, batch)` --> gathers of the four neighbours of each sample, weighted, then a mean or \
              maximum\n\nRefuses a sampling_ratio of 0, whose sample count depends on the data.",
        run: roi_align,
    },
];

/// What a sampler reads outside the tensor.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Positions along one axis of the operand, and how long it is.
struct Line {
    /// In floats of the grid.
    at: Arg,
    extent: Ix,
}

fn number(b: &mut Builder<'_>, ix: Ix, elem: Elem) -> Result<Arg> {
    let n = b.index(ix, Elem::I64, vec![]);
    b.convert(n, elem)
}

/// Reflects positions at both ends until they lie inside.
fn reflect(b: &mut Builder<'_>, x: Arg, low: Arg, high: Arg) -> Result<Arg> {
    let elem = b.elem(x);
    let span = b.sub(high, low)?;
    let below = b.sub(low, x)?;
    let above = b.sub(x, low)?;
    let distance = b.max(below, above)?;
    // Distance into a period of twice the span.
    let two = ir::scalar(elem, 2.0);
    let period = b.mul(span, two)?;
    let rest = b.rem(distance, period)?;
    let other = b.sub(period, rest)?;
    let inner = b.min(rest, other)?;
    let zero = ir::scalar(elem, 0.0);
    let flat = b.compare(Predicate::Equal, span, zero)?;
    let inner = b.select(flat, zero, inner)?;
    b.add(low, inner)
}

/// The element of `x [n, c, d..]` at integer positions (f32 or f64 that hold integers) along each spatial axis.
fn pixel(b: &mut Builder<'_>, x: Arg, at: &[Arg], lines: &[Line], align: bool, outside: Outside) -> Result<Arg> {
    let rank = at.len();
    let mut inside: Option<Arg> = None;
    let (mut indices, mut coords) = (vec![], vec![Coord::Ix(axis(0)), Coord::Ix(axis(1))]);
    let mut shape = b.shape(x)[..2].to_vec();
    for (d, (p, line)) in at.iter().zip(lines).enumerate() {
        let elem = b.elem(*p);
        let last = number(b, Ix::sub(line.extent.clone(), Ix::Const(1)), elem)?;
        let zero = ir::scalar(elem, 0.0);
        let mut p = *p;
        match outside {
            Outside::Zeros => {
                let low = b.compare(Predicate::GreaterThanOrEqual, p, zero)?;
                let high = b.compare(Predicate::LessThanOrEqual, p, last)?;
                let both = b.and(low, high)?;
                inside = Some(match inside {
                    Some(i) => b.and(i, both)?,
                    None => both,
                });
            }
            Outside::Border => {}
            Outside::Reflection => {
                let half = ir::scalar(elem, 0.5);
                let (low, high) = if align { (zero, last) } else { (ir::scalar(elem, -0.5), b.add(last, half)?) };
                let reflected = reflect(b, p, low, high)?;
                let (under, over) =
                    (b.compare(Predicate::LessThan, p, low)?, b.compare(Predicate::GreaterThan, p, high)?);
                let out = b.or(under, over)?;
                // The reflection of a centre is a centre.
                let reflected = round_even(b, reflected)?;
                p = b.select(out, reflected, p)?;
            }
        }
        let p = b.max(p, zero)?;
        let p = b.min(p, last)?;
        // A NaN would become 0 here.
        let p = b.convert(p, Elem::I64)?;
        if d == 0 {
            let positions = b.shape(p);
            shape.extend(positions[2..].iter().cloned());
        }
        indices.push(p);
        coords.push(Coord::Arg(1 + d as u32));
    }
    debug_assert_eq!(coords.len(), rank + 2);
    let value = b.gather(x, &indices, coords, shape)?;
    match inside {
        Some(inside) => {
            let zero = b.scalar_like(value, 0.0);
            b.select(inside, value, zero)
        }
        None => Ok(value),
    }
}

/// The neighbours of a position along one axis: offsets from its floor, with weights.
fn neighbours(b: &mut Builder<'_>, at: Arg, cubic: bool) -> Result<Vec<(Arg, Arg)>> {
    let elem = b.elem(at);
    let c = |x: f64| ir::scalar(elem, x);
    let floor = b.floor(at)?;
    let t = b.sub(at, floor)?;
    let rest = b.sub(c(1.0), t)?;
    if !cubic {
        let next = b.add(floor, c(1.0))?;
        return Ok(vec![(floor, rest), (next, t)]);
    }
    let a = -0.75;
    let polynomial = |b: &mut Builder<'_>, t: Arg, k: [f64; 4]| -> Result<Arg> {
        let mut v = b.mul(t, c(k[3]))?;
        for k in [k[2], k[1]] {
            v = b.add(v, c(k))?;
            v = b.mul(v, t)?;
        }
        b.add(v, c(k[0]))
    };
    let (inner, outer) = ([1.0, 0.0, -(a + 3.0), a + 2.0], [-4.0 * a, 8.0 * a, -5.0 * a, a]);
    let (before, after) = (b.add(t, c(1.0))?, b.add(rest, c(1.0))?);
    let weights = [
        polynomial(b, before, outer)?,
        polynomial(b, t, inner)?,
        polynomial(b, rest, inner)?,
        polynomial(b, after, outer)?,
    ];
    let mut out = vec![];
    for (i, w) in weights.into_iter().enumerate() {
        out.push((b.add(floor, c(i as f64 - 1.0))?, w));
    }
    Ok(out)
}

/// How to interpolate, and what lies outside: words of ONNX, numbers of PyTorch.
fn modes<'c>(call: &Call<'c>) -> Result<(&'c str, &'c str)> {
    if !call.name.starts_with("aten.") {
        return Ok((call.text("mode")?.unwrap_or("linear"), call.text("padding_mode")?.unwrap_or("zeros")));
    }
    let numbered = |name: &str, words: [&'static str; 3]| {
        let at = call.int(name, 0)?;
        let word = usize::try_from(at).ok().and_then(|at| words.get(at).copied());
        word.ok_or_else(|| Refusal::new(format!("{name} is {at}, which is not defined")))
    };
    let mode = numbered("interpolation_mode", ["linear", "nearest", "cubic"])?;
    Ok((mode, numbered("padding_mode", ["zeros", "border", "reflection"])?))
}

/// `(x [n, c, d..], grid [n, o.., r])`
fn grid_sample(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, grid) = (call.arg(0)?, call.arg(1)?);
    let extents = spatial(b, x)?;
    let r = extents.len();
    let grid_shape = b.shape(grid);
    if grid_shape.len() != r + 2 || !grid_shape[r + 1].is_const(r as i64) {
        return Err(Refusal::new(format!(
            "a grid of shape {} does not fit an input of shape {}",
            b.shape_text(&grid_shape),
            b.shape_text(&b.shape(x))
        )));
    }
    let align = call.flag("align_corners", false)?;
    let (mode, padding) = modes(call)?;
    let outside = match padding {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return Err(Refusal::new(format!("padding_mode is {other:?}, which is not defined"))),
    };
    let (narrow, elem) = (b.elem(x), b.wide(grid));
    let grid = b.convert(grid, elem)?;
    let mut lines = vec![];
    for (d, extent) in extents.iter().enumerate() {
        // The grid's last axis names the spatial axes from the last to the first.
        let mut shape = vec![grid_shape[0].clone(), Ix::Const(1)];
        shape.extend(grid_shape[1..=r].iter().cloned());
        let mut coords = vec![axis(0)];
        coords.extend((0..r).map(|i| axis(2 + i)));
        coords.push(Ix::Const((r - 1 - d) as i64));
        let g = b.map("position", grid, shape, coords);
        let n = number(b, extent.clone(), elem)?;
        let (one, half) = (ir::scalar(elem, 1.0), ir::scalar(elem, 0.5));
        let shifted = b.add(g, one)?;
        let mut at = if align {
            let last = b.sub(n, one)?;
            let scaled = b.mul(shifted, last)?;
            b.mul(scaled, half)?
        } else {
            let scaled = b.mul(shifted, n)?;
            let less = b.sub(scaled, one)?;
            b.mul(less, half)?
        };
        if mode == "nearest" {
            at = round_even(b, at)?;
        }
        let (zero, last) = (ir::scalar(elem, 0.0), b.sub(n, one)?);
        match outside {
            Outside::Zeros => {}
            // PyTorch and ONNX Runtime move the neighbours inside, not the position.
            Outside::Border if mode.ends_with("cubic") => {}
            Outside::Border => {
                at = b.max(at, zero)?;
                at = b.min(at, last)?;
            }
            Outside::Reflection => {
                let (low, high) = if align { (zero, last) } else { (ir::scalar(elem, -0.5), b.add(last, half)?) };
                let reflected = reflect(b, at, low, high)?;
                let (under, over) =
                    (b.compare(Predicate::LessThan, at, low)?, b.compare(Predicate::GreaterThan, at, high)?);
                let out = b.or(under, over)?;
                at = b.select(out, reflected, at)?;
            }
        }
        lines.push(Line { at, extent: extent.clone() });
    }
    let sums = match narrow.is_float() {
        true => b.wide(x),
        false => Elem::F32,
    };
    let y = match mode {
        "nearest" => {
            let at: Vec<Arg> = lines.iter().map(|l| l.at).collect();
            pixel(b, x, &at, &lines, align, outside)?
        }
        "linear" | "bilinear" | "cubic" | "bicubic" => {
            let cubic = mode.ends_with("cubic");
            let mut near = vec![];
            for line in &lines {
                near.push(neighbours(b, line.at, cubic)?);
            }
            weighted(b, &near, sums, &mut |b, at| pixel(b, x, at, &lines, align, outside))?
        }
        other => return Err(Refusal::new(format!("mode is {other:?}, which is not defined"))),
    };
    Ok(vec![b.convert(y, narrow)?])
}

/// The sum over all combinations of neighbours, one of each axis, of the value there times their weights.
fn weighted(
    b: &mut Builder<'_>,
    near: &[Vec<(Arg, Arg)>],
    sums: Elem,
    value: &mut dyn FnMut(&mut Builder<'_>, &[Arg]) -> Result<Arg>,
) -> Result<Arg> {
    let count: usize = near.iter().map(Vec::len).product();
    let mut sum = None;
    for i in 0..count {
        let (mut rest, mut at, mut weight) = (i, vec![], None);
        for axis in near {
            let (p, w) = axis[rest % axis.len()];
            rest /= axis.len();
            at.push(p);
            weight = Some(match weight {
                Some(other) => b.mul(other, w)?,
                None => w,
            });
        }
        let v = value(b, &at)?;
        let v = b.convert(v, sums)?;
        let Some(weight) = weight else { continue };
        let weight = b.convert(weight, sums)?;
        let term = b.mul(v, weight)?;
        sum = Some(match sum {
            Some(s) => b.add(s, term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| Refusal::new("a sampler has no neighbours"))
}

/// `(theta [n, r, r + 1], size [r + 2])` to `[n, d.., r]`.
fn affine_grid(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let theta = call.arg(0)?;
    let size = b.ints(call.arg(1)?).ok_or_else(|| Refusal::new("the size of AffineGrid is not constant"))?;
    let shape = b.shape(theta);
    let r = size.len().saturating_sub(2);
    if r < 1 || shape.len() != 3 || !shape[1].is_const(r as i64) || !shape[2].is_const(r as i64 + 1) {
        return Err(Refusal::new(format!(
            "maps of shape {} do not fit images of shape {}",
            b.shape_text(&shape),
            b.shape_text(&size)
        )));
    }
    let (narrow, elem) = (b.elem(theta), b.wide(theta));
    let theta = b.convert(theta, elem)?;
    let align = call.flag("align_corners", false)?;
    let c = |x: f64| ir::scalar(elem, x);
    // [n, d.., r]: the sum over columns of theta times the position, the last axis first.
    let mut out = vec![shape[0].clone()];
    out.extend(size[2..].iter().cloned());
    out.push(Ix::Const(r as i64));
    let column = |b: &mut Builder<'_>, j: usize| {
        let mut s = vec![Ix::Const(1); r + 2];
        (s[0], s[r + 1]) = (shape[0].clone(), Ix::Const(r as i64));
        b.map("theta", theta, s, vec![axis(0), axis(r + 1), Ix::Const(j as i64)])
    };
    let mut sum = column(b, r);
    for j in 0..r {
        let d = r - 1 - j;
        let mut line = vec![Ix::Const(1); r + 2];
        line[1 + d] = size[2 + d].clone();
        let i = b.index(axis(1 + d), Elem::I64, line);
        let i = b.convert(i, elem)?;
        let n = number(b, size[2 + d].clone(), elem)?;
        // -1..1 between the centres of the corners, or between their outer edges.
        let at = if align {
            let last = b.sub(n, c(1.0))?;
            // One centre is the first corner.
            let last = b.max(last, c(1.0))?;
            let twice = b.mul(i, c(2.0))?;
            let part = b.div(twice, last)?;
            b.sub(part, c(1.0))?
        } else {
            let twice = b.mul(i, c(2.0))?;
            let centre = b.add(twice, c(1.0))?;
            let part = b.div(centre, n)?;
            b.sub(part, c(1.0))?
        };
        let factor = column(b, j);
        let term = b.mul(factor, at)?;
        sum = b.add(sum, term)?;
    }
    let y = b.broadcast_to(sum, &out)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `(x [n, c, h, w], rois [k, 4], batch [k])` to `[k, c, oh, ow]`.
fn roi_align(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, rois, batch) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let extents = spatial(b, x)?;
    let ratio = call.int("sampling_ratio", 0)?;
    if extents.len() != 2 || b.rank(rois) != 2 || b.rank(batch) != 1 {
        return Err(Refusal::new("RoiAlign needs an input [n, c, h, w], regions [k, 4] and their batch indices [k]"));
    }
    if ratio < 1 {
        return Err(Refusal::new("RoiAlign with sampling_ratio 0 takes a number of samples that depends on the data"));
    }
    let (narrow, elem) = (b.elem(x), b.wide(x));
    let rois = b.convert(rois, elem)?;
    let half_pixel =
        call.choice("coordinate_transformation_mode", &["half_pixel", "output_half_pixel"])? == "half_pixel";
    let outs = [call.int("output_height", 1)?, call.int("output_width", 1)?];
    let k = b.shape(rois)[0].clone();
    let c = |x: f64| ir::scalar(elem, x);
    // [k, 1, oh, ow, ratio, ratio]
    let (mut lines, mut inside): (Vec<Vec<(Arg, Arg)>>, Option<Arg>) = (vec![], None);
    for d in 0..2 {
        let end = |b: &mut Builder<'_>, column: i64| -> Result<Arg> {
            let one = vec![Ix::Const(1); 5];
            let shape = std::iter::once(k.clone()).chain(one).collect();
            let v = b.map("region", rois, shape, vec![axis(0), Ix::Const(column)]);
            let v = b.mul(v, c(call.float("spatial_scale", 1.0)?))?;
            if half_pixel { b.sub(v, c(0.5)) } else { Ok(v) }
        };
        let (low, high) = (end(b, 1 - d as i64)?, end(b, 3 - d as i64)?);
        let mut size = b.sub(high, low)?;
        if !half_pixel {
            size = b.max(size, c(1.0))?;
        }
        let bin = b.div(size, c(outs[d] as f64))?;
        let mut line = vec![Ix::Const(1); 6];
        line[2 + d] = Ix::Const(outs[d]);
        let cell = b.index(axis(2 + d), Elem::I64, line);
        let cell = b.convert(cell, elem)?;
        let mut line = vec![Ix::Const(1); 6];
        line[4 + d] = Ix::Const(ratio);
        let sample = b.index(axis(4 + d), Elem::I64, line);
        let sample = b.convert(sample, elem)?;
        let sample = b.add(sample, c(0.5))?;
        let sample = b.mul(sample, bin)?;
        let sample = b.div(sample, c(ratio as f64))?;
        let start = b.mul(cell, bin)?;
        let start = b.add(low, start)?;
        let at = b.add(start, sample)?;
        // Samples more than one beyond the edge are 0; the others are pulled inside.
        let n = number(b, extents[d].clone(), elem)?;
        let (a, z) =
            (b.compare(Predicate::GreaterThanOrEqual, at, c(-1.0))?, b.compare(Predicate::LessThanOrEqual, at, n)?);
        let both = b.and(a, z)?;
        inside = Some(match inside {
            Some(i) => b.and(i, both)?,
            None => both,
        });
        let last = b.sub(n, c(1.0))?;
        let at = b.max(at, c(0.0))?;
        let at = b.min(at, last)?;
        let floor = b.floor(at)?;
        let next = b.add(floor, c(1.0))?;
        let next = b.min(next, last)?;
        let part = b.sub(at, floor)?;
        let rest = b.sub(c(1.0), part)?;
        lines.push(vec![(floor, rest), (next, part)]);
    }
    let xs = b.shape(x);
    let shape: Vec<Ix> =
        vec![k.clone(), xs[1].clone(), Ix::Const(outs[0]), Ix::Const(outs[1]), Ix::Const(ratio), Ix::Const(ratio)];
    let batch = b.convert(batch, Elem::I64)?;
    let batch = b.unsqueeze(batch, &[1, 2, 3, 4, 5])?;
    let mut value = |b: &mut Builder<'_>, at: &[Arg]| -> Result<Arg> {
        let mut indices = vec![batch];
        for p in at {
            indices.push(b.convert(*p, Elem::I64)?);
        }
        let coords = vec![Coord::Arg(1), Coord::Ix(axis(1)), Coord::Arg(2), Coord::Arg(3)];
        b.gather(x, &indices, coords, shape.clone())
    };
    let average = !call.text("mode")?.unwrap_or("avg").eq_ignore_ascii_case("max");
    let zero = c(0.0);
    let y = if average {
        let sampled = weighted(b, &lines, elem, &mut value)?;
        let sampled = match inside {
            Some(inside) => b.select(inside, sampled, zero)?,
            None => sampled,
        };
        b.mean(sampled, &[4, 5], false)?
    } else {
        // ONNX takes the maximum over the four weighted neighbours, not over their sum.
        let mut most = None;
        for (y, wy) in lines[0].clone() {
            for (x, wx) in lines[1].clone() {
                let v = value(b, &[y, x])?;
                let v = b.convert(v, elem)?;
                let w = b.mul(wy, wx)?;
                let v = b.mul(v, w)?;
                most = Some(match most {
                    Some(m) => b.max(m, v)?,
                    None => v,
                });
            }
        }
        let most = most.unwrap_or(zero);
        let most = match inside {
            Some(inside) => b.select(inside, most, zero)?,
            None => most,
        };
        b.reduce(ReduceOp::Max, most, &[4, 5], false)?
    };
    Ok(vec![b.convert(y, narrow)?])
}
