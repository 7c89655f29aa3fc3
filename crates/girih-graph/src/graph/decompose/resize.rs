//! Resampling along axes: nearest, linear and cubic, with ONNX's coordinate transformations.
//!
//! Interpolation is separable: each axis in turn becomes a weighted sum of a few gathered neighbours. Where extents are
//! known the neighbours and weights are constants ([`Taps`]); nearest neighbours that follow a simple law are a map.
//! Symbolic extents compute both when the model runs.

use bytes::Bytes;

use super::expr::{Cx, Tensor, along};
use super::taps::{Coords, Kernel, Mode, Nearest, Taps};
use super::{Call, normal_axis, old};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;

rules! {
    resize "Resamples axis by axis.\n\n`y = resize(x)` --> for each axis `y = sum over t of x[neighbour(o, t)] * weight(o, t)`\
         \n\nRefuses antialiasing of symbolic axes." {
        "onnx.Resize" | "onnx.Upsample" => old(resize),
    }
}

/// Resamples one axis of `x` (of a type that sums may be made in, unless every weight is 1).
pub fn resample(b: &mut Builder<'_>, x: Arg, at: usize, taps: &Taps, extrapolation: f64) -> Result<Arg> {
    let out = taps.outside.len();
    let column = |t: usize| -> Vec<i64> { taps.index.iter().skip(t).step_by(taps.count).copied().collect() };
    let weights = |t: usize| -> Vec<f64> { taps.weight.iter().skip(t).step_by(taps.count).copied().collect() };
    let mut shape = b.shape(x);
    let rank = shape.len();
    let mut y = None;
    if taps.count > 4 {
        // [.., out, .., taps]
        shape[at] = Ix::Const(out as i64);
        shape.push(Ix::Const(taps.count as i64));
        let mut small = vec![1u64; rank + 1];
        (small[at], small[rank]) = (out as u64, taps.count as u64);
        let index = b.int_constant(index_type(&taps.index), &small, &taps.index);
        let weight = float_constant(b, b.elem(x), &small, &taps.weight);
        let coords = (0..rank).map(|d| if d == at { Coord::Arg(1) } else { Coord::Ix(axis(d)) }).collect();
        let near = b.gather(x, &[index], coords, shape)?;
        y = Some(b.dot(near, weight, b.elem(x), &[rank], false)?);
    } else {
        for t in 0..taps.count {
            let w = weights(t);
            if w.iter().all(|w| *w == 0.0) && taps.count > 1 {
                continue;
            }
            let near = pick(b, x, at, &column(t))?;
            let term = if w.iter().all(|w| *w == 1.0) {
                near
            } else {
                let mut small = vec![1u64; rank];
                small[at] = out as u64;
                let weight = float_constant(b, b.elem(x), &small, &w);
                b.mul(near, weight)?
            };
            y = Some(match y {
                Some(sum) => b.add(sum, term)?,
                None => term,
            });
        }
    }
    let y = y.ok_or_else(|| Refusal::new("an interpolation has no neighbours"))?;
    if !taps.outside.contains(&true) {
        return Ok(y);
    }
    let mut small = vec![1u64; rank];
    small[at] = out as u64;
    let marks: Vec<i64> = taps.outside.iter().map(|o| (*o).into()).collect();
    let outside = b.int_constant(Elem::BOOL, &small, &marks);
    let value = b.scalar_like(y, extrapolation);
    b.select(outside, value, y)
}

/// `x` at given positions of an axis: a map where they follow a simple law, else a gather.
pub fn pick(b: &mut Builder<'_>, x: Arg, at: usize, index: &[i64]) -> Result<Arg> {
    let mut shape = b.shape(x);
    let rank = shape.len();
    let out = index.len() as i64;
    let len = shape[at].as_const().unwrap_or(0);
    shape[at] = Ix::Const(out);
    let (first, step) = match index {
        [a, b, ..] => (*a, b - a),
        [a] => (*a, 0),
        [] => (0, 0),
    };
    let i = || axis(at);
    let fits = |f: &dyn Fn(i64) -> i64| index.iter().enumerate().all(|(i, x)| f(i as i64) == *x);
    let law = if fits(&|i| first + step * i) {
        Some(Ix::add(Ix::mul(i(), Ix::Const(step)), Ix::Const(first)))
    } else if len > 0 && out % len == 0 && fits(&|i| i / (out / len)) {
        Some(Ix::floor_div(i(), Ix::Const(out / len)))
    } else if out > 0 && fits(&|i| i * len / out) {
        Some(Ix::floor_div(Ix::mul(i(), Ix::Const(len)), Ix::Const(out)))
    } else {
        None
    };
    if let Some(law) = law {
        let mut coords: Vec<Ix> = (0..rank).map(axis).collect();
        coords[at] = law;
        return Ok(b.map("nearest", x, shape, coords));
    }
    let mut small = vec![1u64; rank];
    small[at] = out as u64;
    let index = b.int_constant(index_type(index), &small, index);
    gather_along(b, x, at, index, shape)
}

/// The type of a table of positions: the narrowest that vectors gather by, where it holds them.
fn index_type(index: &[i64]) -> Elem {
    if index.iter().all(|i| i32::try_from(*i).is_ok()) { Elem::I32 } else { Elem::I64 }
}

/// `x` along an axis at positions that a tensor holds, which broadcasts to the result's shape.
pub fn gather_along(b: &mut Builder<'_>, x: Arg, at: usize, index: Arg, shape: Vec<Ix>) -> Result<Arg> {
    let coords = (0..shape.len()).map(|d| if d == at { Coord::Arg(1) } else { Coord::Ix(axis(d)) }).collect();
    b.gather(x, &[index], coords, shape)
}

/// A constant of floats.
pub fn float_constant(b: &mut Builder<'_>, elem: Elem, shape: &[u64], values: &[f64]) -> Arg {
    let width = elem.dtype.bytes() as usize;
    let mut bytes = Vec::with_capacity(values.len() * width);
    for v in values {
        if let Arg::Scalar { bits, .. } = ir::scalar(elem, *v) {
            bytes.extend(bits.to_le_bytes().into_iter().take(width));
        }
    }
    b.constant("const", elem, shape, Bytes::from(bytes))
}

/// Resamples an axis whose extent is symbolic, by an expression over positions. `scale` is a scalar or a tensor
/// of rank 0.
fn resample_symbolic<'g>(x: Tensor<'g>, at: usize, out: &Ix, scale: Tensor<'g>, kernel: &Kernel) -> Result<Tensor<'g>> {
    if kernel.antialias || kernel.exclude_outside || matches!(kernel.coords, Coords::Crop(..)) {
        return Err(Refusal::new(
            "Resize along an axis of symbolic extent with antialias, exclude_outside or tf_crop_and_resize is not supported",
        ));
    }
    let (mut shape, cx) = (x.shape()?, x.cx);
    let len = std::mem::replace(&mut shape[at], out.clone());
    let mut line = vec![Ix::Const(1); shape.len()];
    line[at] = out.clone();
    // As in [`Kernel::taps`].
    let wide = if kernel.single && matches!(kernel.mode, Mode::Nearest(_)) { Elem::F32 } else { Elem::F64 };
    let number = |ix: Ix, shape: Vec<Ix>| cx.index(ix, Elem::I64, shape).to(wide);
    let scale = scale.to(wide);
    let o = number(axis(at), line);
    let n = number(len.clone(), vec![]);
    let half = || (o + 0.5) / scale - 0.5;
    let pos = match kernel.coords {
        Coords::HalfPixel => half(),
        Coords::PytorchHalfPixel => {
            let wide = n * scale;
            let usual = half();
            wide.equals(1.0).select(-0.5, usual)
        }
        Coords::HalfPixelSymmetric => {
            let wide = n * scale;
            let usual = half();
            let rest = 1.0 - number(out.clone(), vec![]) / wide;
            usual + n * 0.5 * rest
        }
        Coords::AlignCorners => {
            let wide = n * scale;
            let (above, below) = (n - 1.0, wide - 1.0);
            let usual = o * above / below;
            wide.equals(1.0).select(0.0, usual)
        }
        Coords::TfHalfPixel => (o + 0.5) / scale,
        Coords::Asymmetric | Coords::Crop(..) => o / scale,
    };
    let floor = pos.floor();
    let ratio = pos - floor;
    let base = floor.to(Elem::I64);
    let last = cx.index(Ix::sub(len, Ix::Const(1)), Elem::I64, vec![]);
    let near = |offset: Tensor<'g>| {
        let i = (base + offset).max(0).min(last);
        x.gather(&[i], along(at, shape.len()), shape.clone())
    };
    let weighted = match kernel.mode {
        Mode::Nearest(mode) => {
            let up = match mode {
                Nearest::PreferFloor => ratio.above(0.5),
                Nearest::PreferCeil => ratio.at_least(0.5),
                Nearest::Floor => return Ok(near(cx.int(0))),
                Nearest::Ceil => ratio.above(0.0),
            };
            return Ok(near(up.select(cx.int(1), 0)));
        }
        Mode::Linear => vec![(0, 1.0 - ratio), (1, ratio)],
        Mode::Cubic => {
            let a = kernel.a;
            let (inner, outer) = ([1.0, 0.0, -(a + 3.0), a + 2.0], [-4.0 * a, 8.0 * a, -5.0 * a, a]);
            let rest = 1.0 - ratio;
            let (before, after) = (ratio + 1.0, rest + 1.0);
            vec![
                (-1, polynomial(before, outer)),
                (0, polynomial(ratio, inner)),
                (1, polynomial(rest, inner)),
                (2, polynomial(after, outer)),
            ]
        }
    };
    let terms = weighted.into_iter().map(|(offset, weight)| near(cx.int(offset)) * weight.to(x.elem()));
    terms.reduce(|sum, term| sum + term).ok_or_else(|| Refusal::new("an interpolation has no neighbours"))
}

/// The nearest integer, ties to even.
pub(super) fn nearest_even(x: Tensor<'_>) -> Tensor<'_> {
    let up = (x + 0.5).floor();
    let tie = (up - x).equals(0.5);
    let even = (up * 0.5).floor() * 2.0;
    (tie & even.differs(up)).select(up - 1.0, up)
}

/// `((c3 * t + c2) * t + c1) * t + c0`.
pub(super) fn polynomial(t: Tensor<'_>, c: [f64; 4]) -> Tensor<'_> {
    ((t * c[3] + c[2]) * t + c[1]) * t + c[0]
}

/// Returns true for `Upsample`, and for `Resize` before version 11: `(x, scales)` by the positions `o / scale`.
fn is_old(call: &Call<'_>) -> Result<bool> {
    Ok(call.name == "onnx.Upsample" || call.int("opset", 11)? < 11)
}

/// The kernel that the attributes describe; the crop's ends are set for each axis.
fn kernel(call: &Call<'_>) -> Result<Kernel> {
    let unknown = |what: &str, word: &str| Refusal::new(format!("{what} is {word:?}, which ONNX does not define"));
    if is_old(call)? {
        let mode = match call.text("mode")?.unwrap_or("nearest") {
            "nearest" => Mode::Nearest(Nearest::Floor),
            "linear" | "bilinear" => Mode::Linear,
            other => return Err(unknown("mode", other)),
        };
        return Ok(Kernel {
            mode,
            coords: Coords::Asymmetric,
            antialias: false,
            exclude_outside: false,
            a: -0.75,
            single: true,
        });
    }
    let nearest = match call.text("nearest_mode")?.unwrap_or("round_prefer_floor") {
        "round_prefer_floor" => Nearest::PreferFloor,
        "round_prefer_ceil" => Nearest::PreferCeil,
        "floor" => Nearest::Floor,
        "ceil" => Nearest::Ceil,
        other => return Err(unknown("nearest_mode", other)),
    };
    let mode = match call.text("mode")?.unwrap_or("nearest") {
        "nearest" => Mode::Nearest(nearest),
        "linear" => Mode::Linear,
        "cubic" => Mode::Cubic,
        other => return Err(unknown("mode", other)),
    };
    let coords = match call.text("coordinate_transformation_mode")?.unwrap_or("half_pixel") {
        "half_pixel" => Coords::HalfPixel,
        "half_pixel_symmetric" => Coords::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coords::PytorchHalfPixel,
        "align_corners" => Coords::AlignCorners,
        "asymmetric" => Coords::Asymmetric,
        "tf_half_pixel_for_nn" => Coords::TfHalfPixel,
        "tf_crop_and_resize" => Coords::Crop(0.0, 1.0),
        other => return Err(unknown("coordinate_transformation_mode", other)),
    };
    Ok(Kernel {
        mode,
        coords,
        antialias: call.flag("antialias", false)?,
        exclude_outside: call.flag("exclude_outside", false)?,
        a: call.float("cubic_coeff_a", -0.75)?,
        single: true,
    })
}

/// The fraction `p / q` that a scale is, with a small `q`.
fn fraction(scale: f64) -> Option<(i64, i64)> {
    (1..=64i64).find_map(|q| {
        let p = scale * q as f64;
        (p.fract() == 0.0 && p.abs() < 1e9).then_some((p as i64, q))
    })
}

/// `(x, roi?, scales?, sizes?)`
fn resize(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let (narrow, rank) = (b.elem(x), b.rank(x));
    let kernel = kernel(call)?;
    let old = is_old(call)?;
    let axes = match call.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?,
        None => (0..rank).collect(),
    };
    let given = |i: usize| call.opt(i).filter(|a| !b.shape(*a).first().is_some_and(|n| n.is_const(0)));
    let scales = given(if old { 1 } else { 2 });
    let sizes = if old { None } else { given(3) };
    let roi = if old { None } else { given(1) };
    let constant = |what: &str| Refusal::new(format!("the {what} of Resize are not constant"));
    // Before version 9, Upsample had them as an attribute.
    let attribute = if old { call.floats("scales")? } else { None };
    let scales = scales.map(|s| b.floats(s).ok_or_else(|| constant("scales"))).transpose()?.or(attribute);
    let sizes = sizes.map(|s| b.ints(s).ok_or_else(|| constant("sizes"))).transpose()?;
    let roi = match kernel.coords {
        Coords::Crop(..) => roi.map(|r| b.floats(r).ok_or_else(|| constant("regions"))).transpose()?,
        _ => None,
    };
    let n = axes.len();
    let fits = scales.as_ref().is_none_or(|s| s.len() == n)
        && sizes.as_ref().is_none_or(|s| s.len() == n && !s.iter().filter_map(Ix::as_const).any(|size| size < 0))
        && roi.as_ref().is_none_or(|r| r.len() == 2 * n);
    if !fits || (scales.is_none() && sizes.is_none()) {
        return Err(Refusal::new(format!("Resize needs {n} scales or sizes, one for each axis")));
    }
    let aspect = call.text("keep_aspect_ratio_policy")?.unwrap_or("stretch");
    let shared = match (&sizes, aspect) {
        (Some(sizes), "not_larger" | "not_smaller") => {
            let shape = b.shape(x);
            let ratio = |(s, a): (&Ix, &usize)| Some(s.as_const()? as f64 / shape[*a].as_const()? as f64);
            let ratios = sizes.iter().zip(&axes).map(ratio).collect::<Option<Vec<f64>>>();
            let ratios = ratios.ok_or_else(|| Refusal::new(format!("{aspect} needs known extents")))?;
            let pick = if aspect == "not_larger" { f64::min } else { f64::max };
            ratios.into_iter().reduce(pick)
        }
        (_, "stretch" | "not_larger" | "not_smaller") => None,
        (_, other) => {
            return Err(Refusal::new(format!("keep_aspect_ratio_policy is {other:?}, which ONNX does not define")));
        }
    };
    // Whole neighbours keep the type; sums are made in floats.
    let exact = matches!(kernel.mode, Mode::Nearest(_));
    let wide = match narrow.is_float() {
        true => b.wide(x),
        false if narrow.dtype.bits() > 16 => Elem::F64,
        false => Elem::F32,
    };
    let mut y = if exact { x } else { b.convert(x, wide)? };
    for (i, &at) in axes.iter().enumerate() {
        let len = b.shape(y)[at].clone();
        let mut kernel = kernel.clone();
        if let (Coords::Crop(..), Some(roi)) = (kernel.coords, &roi) {
            kernel.coords = Coords::Crop(roi[i], roi[n + i]);
        }
        let whole = match kernel.coords {
            Coords::Crop(s, e) => s == 0.0 && e == 1.0,
            // An axis that keeps its extent is not moved, though TensorFlow's formula would move it by half.
            _ => true,
        };
        let scale = match (&shared, &scales, &sizes) {
            (Some(s), ..) => Some(*s),
            (None, Some(s), _) => Some(s[i]),
            _ => None,
        };
        if scale.is_some_and(|s| !s.is_finite() || s <= 0.0) {
            return Err(Refusal::new(format!("Resize has a scale of {}", scale.unwrap_or(0.0))));
        }
        // In old versions, shrinking took the neighbour after the position.
        if let (true, Mode::Nearest(_), Some(s)) = (old, kernel.mode, scale)
            && s < 1.0
        {
            kernel.mode = Mode::Nearest(Nearest::Ceil);
        }
        let out = match (scale, len.as_const()) {
            (Some(s), Some(len)) if shared.is_some() => Ix::Const((s * len as f64 + 0.5).floor() as i64),
            // Runtimes multiply in f32: 10 by 0.7 is 7.
            (Some(s), Some(len)) => Ix::Const((s as f32 * len as f32).floor() as i64),
            (Some(s), None) => match fraction(s) {
                Some((p, q)) => Ix::floor_div(Ix::mul(len.clone(), Ix::Const(p)), Ix::Const(q)),
                None => scaled_extent(b, &len, s)?,
            },
            (None, _) => sizes.as_ref().map_or(Ix::Const(0), |s| s[i].clone()),
        };
        let out = b.simplify(&out);
        if b.same(&out, &len) && scale.is_none_or(|s| s == 1.0) && whole {
            continue;
        }
        y = match (len.as_const(), out.as_const()) {
            (Some(len), Some(out)) => {
                if len == 0 && out > 0 {
                    return Err(Refusal::new("Resize of an empty axis"));
                }
                let scale = scale.unwrap_or(out as f64 / len as f64);
                b.list(kernel.listing(out, scale), 1)?;
                let taps = kernel.taps(len, out, scale);
                resample(b, y, at, &taps, call.float("extrapolation_value", 0.0)?)?
            }
            _ => match (whole_step(&kernel, scale), scale) {
                (Some(k), _) => {
                    let mut shape = b.shape(y);
                    shape[at] = out;
                    let mut coords: Vec<Ix> = (0..rank).map(axis).collect();
                    coords[at] = Ix::floor_div(axis(at), Ix::Const(k));
                    b.map("nearest", y, shape, coords)
                }
                (None, scale) => Cx::one(b, |cx| {
                    let number = |n: &Ix| cx.index(n.clone(), Elem::I64, vec![]);
                    let quotient = || {
                        let (to, from) = (number(&out), number(&len));
                        to.to(Elem::F64) / from.to(Elem::F64)
                    };
                    let scale = scale.map_or_else(quotient, |scale| cx.number(Elem::F64, scale));
                    resample_symbolic(cx.tensor(y), at, &out, scale, &kernel)
                })?,
            },
        };
    }
    if !narrow.is_float() && !exact {
        y = Cx::one(b, |cx| Ok(nearest_even(cx.tensor(y))))?;
    }
    Ok(vec![b.convert(y, narrow)?])
}

/// An extent times a scale that is not a small fraction, as runtimes compute it: in f32.
fn scaled_extent(b: &mut Builder<'_>, len: &Ix, scale: f64) -> Result<Ix> {
    let made = Cx::one(b, |cx| {
        let wide = cx.index(len.clone(), Elem::I64, vec![]).to(Elem::F32) * cx.number(Elem::F32, scale);
        Ok(wide.floor().to(Elem::I64))
    })?;
    let known = b.ints(made).and_then(|list| list.into_iter().next());
    known.ok_or_else(|| Refusal::new(format!("Resize by {scale} along an axis of symbolic extent is not supported")))
}

/// `k` where every position of the operand is repeated `k` times.
fn whole_step(kernel: &Kernel, scale: Option<f64>) -> Option<i64> {
    let Mode::Nearest(mode) = kernel.mode else { return None };
    let (k, _) = scale.and_then(fraction).filter(|(k, q)| *q == 1 && *k >= 1)?;
    match (kernel.coords, mode) {
        (Coords::Asymmetric, Nearest::Floor) => Some(k),
        (Coords::HalfPixel, Nearest::PreferFloor | Nearest::PreferCeil) => Some(k),
        _ => None,
    }
}
