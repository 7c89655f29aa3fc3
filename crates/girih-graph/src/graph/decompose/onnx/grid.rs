//! Sampling at computed positions: GridSample, AffineGrid, RoiAlign.

use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::{Cx, Tensor};
use crate::graph::decompose::resize::{nearest_even, polynomial};
use crate::graph::decompose::window::spatial;
use crate::graph::ir::{Coord, ReduceOp, axis};
use crate::index::Ix;

rules! {
    grid_sample "Interpolates at positions that a tensor gives, each axis in -1..1.\n\n\
         `y = grid_sample(x, grid)` --> `p = (grid + 1) * n/2 - 1/2`, gathers of the neighbours of `p`, weighted" {
        "onnx.GridSample" => |c| {
            let modes = (c.text("mode")?.unwrap_or("linear"), c.text("padding_mode")?.unwrap_or("zeros"));
            grid_sample(c, modes)
        },
        "aten.grid_sampler_2d" | "aten.grid_sampler_3d" => |c| {
            let mode = numbered(c, "interpolation_mode", ["linear", "nearest", "cubic"])?;
            grid_sample(c, (mode, numbered(c, "padding_mode", ["zeros", "border", "reflection"])?))
        },
    }
    affine_grid "Positions of an image under affine maps.\n\n`g = affine_grid(theta, size)` --> `g = dot theta, (x, y, 1)`" {
        "onnx.AffineGrid" => affine_grid,
    }
    roi_align "Pools bilinear samples of regions.\n\n\
         `y = roi_align(x, rois, batch)` --> gathers of the four neighbours of each sample, weighted, then a mean or \
         maximum\n\nWith a sampling_ratio of 0 the number of samples depends on the region: their means are two products with the weight of each \
         position.\n\nRefuses their maximum." {
        "onnx.RoiAlign" => roi_align,
    }
}

/// The elements that a sampler reads outside the tensor.
#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Positions along one axis of the operand, and how long it is.
struct Line<'g> {
    /// In floats of the grid.
    at: Tensor<'g>,
    extent: Ix,
}

fn number<'g>(cx: &'g Cx<'g>, ix: &Ix, elem: Elem) -> Tensor<'g> {
    cx.index(ix.clone(), Elem::I64, vec![]).to(elem)
}

/// Two conditions, where there is a first.
fn both<'g>(x: Option<Tensor<'g>>, y: Tensor<'g>) -> Option<Tensor<'g>> {
    Some(x.map_or(y, |x| x & y))
}

/// Reflects positions at both ends until they lie inside.
fn reflect<'g>(x: Tensor<'g>, low: Tensor<'g>, high: Tensor<'g>) -> Tensor<'g> {
    let span = high - low;
    let distance = (low - x).max(x - low);
    // Distance into a period of twice the span.
    let period = span * 2.0;
    let rest = distance % period;
    let inner = rest.min(period - rest);
    low + span.equals(0.0).select(0.0, inner)
}

/// The ends that positions are reflected at: the centres of the corners, or their outer edges.
fn ends<'g>(last: Tensor<'g>, align: bool) -> (Tensor<'g>, Tensor<'g>) {
    if align { (last.like(0.0), last) } else { (last.like(-0.5), last + 0.5) }
}

/// The element of `x [n, c, d..]` at integer positions (f32 or f64 that hold integers) along each spatial axis.
fn pixel<'g>(
    x: Tensor<'g>,
    at: &[Tensor<'g>],
    lines: &[Line<'g>],
    align: bool,
    outside: Outside,
) -> Result<Tensor<'g>> {
    let mut inside: Option<Tensor<'g>> = None;
    let mut place: Option<Tensor<'g>> = None;
    let mut shape = x.shape()?[..2].to_vec();
    let pixels = lines.iter().map(|line| line.extent.clone()).fold(Ix::Const(1), Ix::mul);
    // Vectors have twice as many places of 32 bits.
    let short = pixels.as_const().is_some_and(|n| n <= i64::from(i32::MAX));
    let places = if short { Elem::I32 } else { Elem::I64 };
    for (d, (&p, line)) in at.iter().zip(lines).enumerate() {
        let mut p = p;
        let last = number(x.cx, &Ix::sub(line.extent.clone(), Ix::Const(1)), p.elem());
        match outside {
            Outside::Zeros => inside = both(inside, p.at_least(0.0) & p.at_most(last)),
            Outside::Border => {}
            Outside::Reflection => {
                let (low, high) = ends(last, align);
                let reflected = reflect(p, low, high);
                let out = p.below(low) | p.above(high);
                // The reflection of a centre is a centre.
                p = out.select(nearest_even(reflected), p);
            }
        }
        // A NaN would become 0 here.
        let p = p.max(0.0).min(last).to(places);
        if d == 0 {
            shape.extend(p.shape()?.into_iter().skip(2));
        }
        place = Some(place.map_or(p, |before| before * number(x.cx, &line.extent, places) + p));
    }
    let Some(place) = place else { return Err(Refusal::new("an image has no axes")) };
    let flat = x.reshape(&[x.shape()?[..2].to_vec(), vec![pixels.clone()]].concat());
    let read = |place: Tensor<'g>| {
        let low = place.max(0.0);
        let within = match pixels.as_const() {
            Some(n) => low.min((n - 1) as f64),
            None => low.min(number(x.cx, &Ix::sub(pixels.clone(), Ix::Const(1)), places)),
        };
        flat.gather(&[within], vec![Coord::Ix(axis(0)), Coord::Ix(axis(1)), Coord::Arg(1)], shape.clone())
    };
    // A place is computed once for all channels; -1 is outside.
    Ok(inside.map_or(read(place), |inside| {
        let place = inside.select(place, -1.0);
        place.at_least(0.0).select(read(place), 0.0)
    }))
}

/// The neighbours of a position along one axis: offsets from its floor, with weights.
fn neighbours<'g>(at: Tensor<'g>, cubic: bool) -> Vec<(Tensor<'g>, Tensor<'g>)> {
    let floor = at.floor();
    let t = at - floor;
    let rest = 1.0 - t;
    if !cubic {
        return vec![(floor, rest), (floor + 1.0, t)];
    }
    let a = -0.75;
    let (inner, outer) = ([1.0, 0.0, -(a + 3.0), a + 2.0], [-4.0 * a, 8.0 * a, -5.0 * a, a]);
    let (before, after) = (t + 1.0, rest + 1.0);
    let weights =
        [(before, outer), (t, inner), (rest, inner), (after, outer)].map(|(t, factors)| polynomial(t, factors));
    weights.into_iter().enumerate().map(|(i, w)| (floor + (i as f64 - 1.0), w)).collect()
}

/// A word that PyTorch has a number for.
fn numbered(c: &Call<'_>, name: &str, words: [&'static str; 3]) -> Result<&'static str> {
    let at = c.int(name, 0)?;
    let word = usize::try_from(at).ok().and_then(|at| words.get(at).copied());
    word.ok_or_else(|| Refusal::new(format!("{name} is {at}, which is not defined")))
}

/// `(x [n, c, d..], grid [n, o.., r])`
fn grid_sample<'g>(c: &Call<'g>, (mode, padding): (&str, &str)) -> Result<Tensor<'g>> {
    let (x, grid, cx) = (c.x(0), c.x(1), c.cx);
    let extents = cx.read(|b| spatial(b, x.arg))?;
    let r = extents.len();
    let grid_shape = grid.shape()?;
    let fits = grid_shape.len() == r + 2 && grid_shape[r + 1].is_const(r as i64);
    if !fits || !cx.same(&grid_shape[0], &x.shape()?[0]) {
        return Err(Refusal::new(format!(
            "a grid of shape {} does not fit an input of shape {}",
            grid.shape_text(),
            x.shape_text()
        )));
    }
    let align = c.flag("align_corners", false)?;
    let outside = match padding {
        "zeros" => Outside::Zeros,
        "border" => Outside::Border,
        "reflection" => Outside::Reflection,
        other => return Err(Refusal::new(format!("padding_mode is {other:?}, which is not defined"))),
    };
    let grid = grid.wide();
    // PyTorch's kernels of images move a position that is not a number to the first pixel, those of volumes to the last.
    let clip = |at: Tensor<'g>, last: Tensor<'g>| match r {
        3 => at.min_number(last).max(0.0),
        _ => at.max_number(0.0).min(last),
    };
    let mut lines = vec![];
    for (d, extent) in extents.iter().enumerate() {
        // The grid's last axis names the spatial axes from the last to the first.
        let shape = [&[grid_shape[0].clone(), Ix::Const(1)], &grid_shape[1..=r]].concat();
        let mut coords = vec![axis(0)];
        coords.extend((0..r).map(|i| axis(2 + i)));
        coords.push(Ix::Const((r - 1 - d) as i64));
        let g = grid.map("position", shape, coords);
        let n = number(cx, extent, grid.elem());
        let shifted = g + 1.0;
        let mut at = if align { shifted * (n - 1.0) * 0.5 } else { (shifted * n - 1.0) * 0.5 };
        if mode == "nearest" {
            at = nearest_even(at);
        }
        let last = n - 1.0;
        match outside {
            // In volumes nothing is read there, and weighted by nothing.
            Outside::Zeros if r == 3 => at = at.abs().below(f64::INFINITY).select(at, -2.0),
            Outside::Zeros => {}
            // PyTorch and ONNX Runtime move the neighbours inside, not the position.
            Outside::Border if mode.ends_with("cubic") => {}
            Outside::Border => at = clip(at, last),
            Outside::Reflection => {
                let (low, high) = ends(last, align);
                let reflected = reflect(at, low, high);
                at = (at.below(low) | at.above(high)).select(reflected, at);
                if !mode.ends_with("cubic") {
                    at = clip(at, last);
                }
            }
        }
        lines.push(Line { at, extent: extent.clone() });
    }
    let sums = if x.elem().is_float() { x.wide_elem() } else { Elem::F32 };
    let y = match mode {
        "nearest" => pixel(x, &lines.iter().map(|l| l.at).collect::<Vec<_>>(), &lines, align, outside)?,
        "linear" | "bilinear" | "cubic" | "bicubic" => {
            let near: Vec<_> = lines.iter().map(|line| neighbours(line.at, mode.ends_with("cubic"))).collect();
            weighted(&near, sums, &|at| pixel(x, at, &lines, align, outside))?
        }
        other => return Err(Refusal::new(format!("mode is {other:?}, which is not defined"))),
    };
    Ok(y.to(x.elem()))
}

/// The sum over all combinations of neighbours, one of each axis, of the value there times their weights.
fn weighted<'g>(
    near: &[Vec<(Tensor<'g>, Tensor<'g>)>],
    sums: Elem,
    value: &dyn Fn(&[Tensor<'g>]) -> Result<Tensor<'g>>,
) -> Result<Tensor<'g>> {
    let count: usize = near.iter().map(Vec::len).product();
    let mut sum = None;
    for i in 0..count {
        let (mut rest, mut at, mut weight) = (i, vec![], None);
        for axis in near {
            let (p, w) = axis[rest % axis.len()];
            rest /= axis.len();
            at.push(p);
            weight = Some(weight.map_or(w, |other: Tensor<'g>| other * w));
        }
        let v = value(&at)?.to(sums);
        let Some(weight) = weight else { continue };
        let term = v * weight.to(sums);
        sum = Some(sum.map_or(term, |sum: Tensor<'g>| sum + term));
    }
    sum.ok_or_else(|| Refusal::new("a sampler has no neighbours"))
}

/// `(theta [n, r, r + 1], size [r + 2])` to `[n, d.., r]`.
fn affine_grid<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let size = c.x(1).ints().ok_or_else(|| Refusal::new("the size of AffineGrid is not constant"))?;
    let (shape, cx) = (c.x(0).shape()?, c.cx);
    let r = size.len().saturating_sub(2);
    let fits = r > 0 && shape.len() == 3 && shape[1].is_const(r as i64) && shape[2].is_const(r as i64 + 1);
    if !fits || !cx.same(&shape[0], &size[0]) {
        let (maps, images) = (c.x(0).shape_text(), cx.shape_text(&size));
        return Err(Refusal::new(format!("maps of shape {maps} do not fit images of shape {images}")));
    }
    let theta = c.x(0).wide();
    let align = c.flag("align_corners", false)?;
    // [n, d.., r]: the sum over columns of theta times the position, the last axis first.
    let out = [&[shape[0].clone()], &size[2..], &[Ix::Const(r as i64)]].concat();
    let column = |j: usize| {
        let mut s = vec![Ix::Const(1); r + 2];
        (s[0], s[r + 1]) = (shape[0].clone(), Ix::Const(r as i64));
        theta.map("theta", s, vec![axis(0), axis(r + 1), Ix::Const(j as i64)])
    };
    let mut sum = column(r);
    for j in 0..r {
        let d = r - 1 - j;
        let mut line = vec![Ix::Const(1); r + 2];
        line[1 + d] = size[2 + d].clone();
        let i = cx.index(axis(1 + d), Elem::I64, line).to(theta.elem());
        let n = number(cx, &size[2 + d], theta.elem());
        // -1..1 between the centres of the corners, or between their outer edges.
        let at = if align {
            // One centre is the first corner.
            let last = (n - 1.0).max(1.0);
            i * 2.0 / last - 1.0
        } else {
            (i * 2.0 + 1.0) / n - 1.0
        };
        sum = sum + column(j) * at;
    }
    Ok(sum.broadcast_to(&out).to(c.x(0).elem()))
}

/// The cells of regions along an axis: the first begins at `low`, each is `bin` long; both `[k, 1, 1, 1, 1]`.
struct Cells<'g> {
    low: Tensor<'g>,
    bin: Tensor<'g>,
    count: i64,
    extent: Ix,
}

impl<'g> Cells<'g> {
    /// The number of samples of a cell: one for each position that it is long.
    fn samples(&self) -> Tensor<'g> {
        self.bin.ceil().max(0.0)
    }

    /// How much each position counts in the sum over the samples of a cell: `[k, 1, .., cell, .., position]`, with cells along
    /// axis `at`. Samples are more than half a position apart, so that a few of them lie around a position.
    fn weights(&self, at: usize) -> Tensor<'g> {
        let (cx, elem) = (self.low.cx, self.low.elem());
        let line = |at: usize, n: Ix| {
            let mut shape = vec![Ix::Const(1); 5];
            shape[at] = n;
            cx.index(axis(at), Elem::I64, shape).to(elem)
        };
        let (cell, place) = (line(at, Ix::Const(self.count)), line(4, self.extent.clone()));
        let begin = self.low + cell * self.bin;
        let samples = self.samples();
        let step = self.bin / samples.max(1.0);
        let some = step.above(0.0);
        let first = some.select(((place - 1.0 - begin) / some.select(step, 1.0) - 0.5).floor().max(0.0), 0.0);
        let n = number(cx, &self.extent, elem);
        let last = n - 1.0;
        let mut sum = None;
        for candidate in 0..6 {
            let i = first + f64::from(candidate);
            let y = begin + (i + 0.5) * step;
            let counts = i.below(samples) & y.at_least(-1.0) & y.at_most(n);
            let near = 1.0 - (y.max(0.0).min(last) - place).abs();
            let weight = (counts & near.above(0.0)).select(near, 0.0);
            sum = Some(sum.map_or(weight, |sum: Tensor<'g>| sum + weight));
        }
        sum.unwrap_or(place)
    }
}

/// The means over the samples of cells, as two products: the samples of a cell are a grid.
fn means<'g>(x: Tensor<'g>, batch: Tensor<'g>, [rows, columns]: &[Cells<'g>; 2], elem: Elem) -> Result<Tensor<'g>> {
    let (channels, k) = (x.shape()?[1].clone(), batch.shape()?[0].clone());
    let batch = batch.to(Elem::I64).unsqueeze(&[1, 2, 3, 4]);
    let shape = vec![k, channels, Ix::Const(1), columns.extent.clone(), rows.extent.clone()];
    let coords = vec![Coord::Arg(1), Coord::Ix(axis(1)), Coord::Ix(axis(4)), Coord::Ix(axis(3))];
    let image = x.to(elem).gather(&[batch], coords, shape);
    let high = image.dot(rows.weights(2), elem, &[4]).unsqueeze(&[3]);
    let sums = high.dot(columns.weights(3), elem, &[4]);
    let count = (rows.samples() * columns.samples()).max(1.0).squeeze(&[4]);
    Ok(sums / count)
}

/// `(x [n, c, h, w], rois [k, 4], batch [k])` to `[k, c, oh, ow]`.
fn roi_align<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, cx) = (c.x(0), c.cx);
    let extents = cx.read(|b| spatial(b, x.arg))?;
    let ratio = c.int("sampling_ratio", 0)?;
    let [regions, of] = [c.x(1).shape()?, c.x(2).shape()?];
    let fits = extents.len() == 2 && regions.len() == 2 && regions[1].is_const(4);
    if !fits || !cx.same_shape(&of, &regions[..1]) {
        return Err(Refusal::new("RoiAlign needs an input [n, c, h, w], regions [k, 4] and their batch indices [k]"));
    }
    let max = c.text("mode")?.unwrap_or("avg").eq_ignore_ascii_case("max");
    if ratio < 1 && max {
        return Err(Refusal::new("RoiAlign with sampling_ratio 0 takes a number of samples that depends on the data")
            .help("the mode avg does without that number"));
    }
    let elem = x.wide_elem();
    let rois = c.x(1).to(elem);
    // Version 10 has no such attribute, and does not move regions.
    let modes = ["half_pixel", "output_half_pixel"];
    let half_pixel = c.int("opset", 16)? >= 16 && c.choice("coordinate_transformation_mode", &modes)? == modes[0];
    let outs = [c.int("output_height", 1)?, c.int("output_width", 1)?];
    let scale = c.float("spatial_scale", 1.0)?;
    let k = rois.shape()?[0].clone();
    if ratio < 1 {
        let moved = if half_pixel { 0.5 } else { 0.0 };
        let ends = |d: usize, column: i64| {
            let line = [vec![k.clone()], vec![Ix::Const(1); 4]].concat();
            let end = rois.map("region", line, vec![axis(0), Ix::Const(column - d as i64)]);
            end * scale - moved
        };
        let axes = [0, 1].map(|d| {
            let (low, high) = (ends(d, 1), ends(d, 3));
            let size = if half_pixel { high - low } else { (high - low).max(1.0) };
            Cells { low, bin: size / outs[d] as f64, count: outs[d], extent: extents[d].clone() }
        });
        return Ok(means(x, c.x(2), &axes, elem)?.to(x.elem()));
    }
    // [k, 1, oh, ow, ratio, ratio]
    let counted = |at: usize, n: i64| {
        let mut line = vec![Ix::Const(1); 6];
        line[at] = Ix::Const(n);
        cx.index(axis(at), Elem::I64, line).to(elem)
    };
    let (mut lines, mut inside) = (vec![], None);
    for d in 0..2 {
        let end = |column: i64| {
            let shape = [vec![k.clone()], vec![Ix::Const(1); 5]].concat();
            let v = rois.map("region", shape, vec![axis(0), Ix::Const(column)]) * scale;
            if half_pixel { v - 0.5 } else { v }
        };
        let (low, high) = (end(1 - d as i64), end(3 - d as i64));
        let size = high - low;
        let bin = if half_pixel { size } else { size.max(1.0) } / outs[d] as f64;
        let cell = counted(2 + d, outs[d]);
        let sample = (counted(4 + d, ratio) + 0.5) * bin / ratio as f64;
        let at = low + cell * bin + sample;
        // Samples more than one beyond the edge are 0; the others are pulled inside.
        let n = number(cx, &extents[d], elem);
        inside = both(inside, at.at_least(-1.0) & at.at_most(n));
        let last = n - 1.0;
        let at = at.max(0.0).min(last);
        let floor = at.floor();
        let next = (floor + 1.0).min(last);
        let part = at - floor;
        lines.push(vec![(floor, 1.0 - part), (next, part)]);
    }
    let channels = x.shape()?[1].clone();
    let shape = [vec![k, channels], [outs[0], outs[1], ratio, ratio].map(Ix::Const).to_vec()].concat();
    let batch = c.x(2).to(Elem::I64).unsqueeze(&[1, 2, 3, 4, 5]);
    let value = |at: &[Tensor<'g>]| {
        let indices: Vec<_> = [batch].into_iter().chain(at.iter().map(|p| p.to(Elem::I64))).collect();
        let coords = vec![Coord::Arg(1), Coord::Ix(axis(1)), Coord::Arg(2), Coord::Arg(3)];
        Ok(x.gather(&indices, coords, shape.clone()))
    };
    let seen = |y: Tensor<'g>| inside.map_or(y, |inside| inside.select(y, 0.0));
    let y = if !max {
        seen(weighted(&lines, elem, &value)?).mean(&[4, 5], false)
    } else {
        // ONNX takes the maximum over the four weighted neighbours, not over their sum.
        let mut most: Option<Tensor<'g>> = None;
        for &(y, wy) in &lines[0] {
            for &(x, wx) in &lines[1] {
                let v = value(&[y, x])?.to(elem) * (wy * wx);
                most = Some(most.map_or(v, |most| most.max(v)));
            }
        }
        let most = most.unwrap_or(cx.number(elem, 0.0));
        seen(most).reduce(ReduceOp::Max, &[4, 5], false)
    };
    Ok(y.to(x.elem()))
}
