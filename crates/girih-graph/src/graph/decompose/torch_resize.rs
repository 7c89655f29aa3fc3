//! Resampling and padding of PyTorch.

use super::resize::resample;
use super::taps::{Coords, Kernel, Mode, Nearest};
use super::types::{element_attr, same_place};
use super::{Call, old};
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg};
use crate::index::Ix;

rules! {
    upsample "Other extents of the spatial axes: the nearest element, or a weighted sum of neighbours, one axis after the \
         other.\n\n`y = upsample_nearest2d(x, twice)` --> `y = map x[i0, i1, i2 // 2, i3 // 2]`\n\n\
         Refuses symbolic extents, except whole multiples of the nearest, and `align_corners` with antialiasing." {
        "aten.upsample_nearest1d" | "aten.upsample_nearest2d" | "aten.upsample_nearest3d" |
        "aten._upsample_nearest_exact1d" | "aten._upsample_nearest_exact2d" | "aten._upsample_nearest_exact3d" |
        "aten.upsample_linear1d" | "aten.upsample_bilinear2d" | "aten.upsample_trilinear3d" | "aten.upsample_bicubic2d" |
        "aten._upsample_bilinear2d_aa" | "aten._upsample_bicubic2d_aa" => old(upsample),
    }
    pad "More elements (or fewer) around the last axes: a constant, a reflection, the border, or the other end.\n\n\
         `y = pad(x [3], [1, 1])` --> `y [5] = map x[i0 - 1] where 1 <= i0 and i0 < 4 else 0`\n\n\
         `y = reflection_pad1d(x [3], [1, 1])` --> `y [5] = map x[2 - abs(2 - abs(i0 - 1))]`" {
        "aten.pad" | "aten.constant_pad_nd" | "aten.reflection_pad1d" | "aten.reflection_pad2d" | "aten.reflection_pad3d" |
        "aten.replication_pad1d" | "aten.replication_pad2d" | "aten.replication_pad3d" | "aten._pad_circular" => old(pad),
    }
}

/// Scales as the operation gives them: one list, or one attribute for each axis.
fn scales(call: &Call<'_>, n: usize) -> Result<Vec<Option<f64>>> {
    if let Some(list) = call.floats(call.given(&["scale_factors", "scale_factor"]))? {
        return Ok((0..n).map(|d| list.get(d).or(list.first()).copied()).collect());
    }
    let names: &[&str] = if n == 1 { &["scales"] } else { &["scales_d", "scales_h", "scales_w"] };
    let names = &names[names.len().saturating_sub(n)..];
    names.iter().map(|name| call.float_of(name)).collect()
}

fn upsample(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let from = b.shape(x);
    if from.len() < 3 {
        return Err(Refusal::new(format!("{} has no spatial axes", b.shape_text(&from))));
    }
    let n = from.len() - 2;
    let scales = scales(call, n)?;
    let sizes = call.extents("output_size")?;
    let name = call.name;
    let nearest = name.contains("nearest");
    let exact = name.contains("exact");
    let align = call.flag("align_corners", false)?;
    if align && name.ends_with("_aa") {
        return Err(Refusal::new("antialias together with align_corners is not supported"));
    }
    let kernel = Kernel {
        mode: if nearest {
            Mode::Nearest(if exact { Nearest::PreferCeil } else { Nearest::Floor })
        } else if name.contains("cubic") {
            Mode::Cubic
        } else {
            Mode::Linear
        },
        coords: if align {
            Coords::AlignCorners
        } else if nearest && !exact {
            Coords::Asymmetric
        } else {
            Coords::HalfPixel
        },
        antialias: name.ends_with("_aa"),
        exclude_outside: name.ends_with("_aa"),
        a: if name.ends_with("_aa") { -0.5 } else { -0.75 },
        single: false,
    };
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let mut y = if nearest { x } else { b.convert(x, wide)? };
    for d in 0..n {
        let at = 2 + d;
        let scale = scales.get(d).copied().flatten();
        let out = match (sizes.as_ref().and_then(|s| s.get(d)), scale, from[at].as_const()) {
            (Some(size), _, _) => size.clone(),
            (None, Some(s), Some(len)) => Ix::Const((len as f64 * s).floor() as i64),
            (None, Some(s), None) if s.fract() == 0.0 && s >= 1.0 => Ix::mul(from[at].clone(), Ix::Const(s as i64)),
            _ => return Err(Refusal::new("neither the extents nor the scales of the result are known")),
        };
        if b.same(&out, &from[at]) && scale.unwrap_or(1.0) == 1.0 {
            continue;
        }
        let (Some(len), Some(count)) = (from[at].as_const(), out.as_const()) else {
            let times = b.simplify(&Ix::floor_div(out.clone(), from[at].clone()));
            let times = times
                .as_const()
                .or(scale.map(|s| s as i64))
                .filter(|t| *t > 0 && nearest && b.same(&Ix::mul(from[at].clone(), Ix::Const(*t)), &out));
            let Some(times) = times else {
                return Err(Refusal::new(
                    "resampling a symbolic extent is supported for whole multiples of the nearest",
                ));
            };
            let mut shape = b.shape(y);
            shape[at] = out;
            let mut coords = same_place(from.len());
            coords[at] = Ix::floor_div(ir::axis(at), Ix::Const(times));
            y = b.map("nearest", y, shape, coords);
            continue;
        };
        if !(0..=1 << 24).contains(&count) || len < 1 {
            return Err(Refusal::new(format!("an axis of {len} elements cannot be resampled to {count}")));
        }
        let scale = scale.filter(|_| !align).unwrap_or(count as f64 / len as f64);
        if scale <= 0.0 || !scale.is_finite() {
            return Err(Refusal::new(format!("a scale must be positive and finite, not {scale}")));
        }
        let mut kernel = kernel.clone();
        if align && count == 1 {
            kernel.coords = Coords::Asymmetric;
        }
        b.list(kernel.listing(count, scale), 1)?;
        let taps = kernel.taps(len, count, scale);
        y = resample(b, y, at, &taps, 0.0)?;
    }
    Ok(vec![b.convert(y, narrow)?])
}

/// `|x|`.
fn size(x: Ix) -> Ix {
    Ix::max(x.clone(), Ix::sub(Ix::Const(0), x))
}

fn pad(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let from = b.shape(x);
    let amounts =
        call.extents(call.given(&["pad", "padding"]))?.ok_or_else(|| Refusal::new("the padding is missing"))?;
    if amounts.len() % 2 != 0 || amounts.len() / 2 > from.len() {
        return Err(Refusal::new(format!("{} amounts of padding do not fit rank {}", amounts.len(), from.len())));
    }
    let mode = match call.name {
        "aten.pad" => call.text("mode")?.unwrap_or("constant"),
        "aten.constant_pad_nd" => "constant",
        "aten._pad_circular" => "circular",
        n if n.contains("reflection") => "reflect",
        _ => "replicate",
    };
    // The last axis comes first.
    let (mut before, mut after) = (vec![Ix::Const(0); from.len()], vec![Ix::Const(0); from.len()]);
    for (i, pair) in amounts.chunks_exact(2).enumerate() {
        let at = from.len() - 1 - i;
        (before[at], after[at]) = (pair[0].clone(), pair[1].clone());
    }
    if mode == "constant" {
        let value = element_attr(b, call, "value", b.elem(x))?;
        return Ok(vec![b.pad(x, &before, &after, value)?]);
    }
    let (mut shape, mut coords) = (vec![], vec![]);
    for d in 0..from.len() {
        let n = from[d].clone();
        let at = Ix::sub(ir::axis(d), before[d].clone());
        let last = Ix::sub(n.clone(), Ix::Const(1));
        let none = before[d].is_const(0) && after[d].is_const(0);
        let limit = match mode {
            "reflect" => Some(last.clone()),
            "circular" => Some(n.clone()),
            _ => None,
        };
        if let Some(limit) = limit.and_then(|l| b.simplify(&l).as_const())
            && [&before[d], &after[d]].iter().any(|p| p.as_const().is_some_and(|p| p > limit))
        {
            return Err(Refusal::new(format!("{mode} padding can be at most {limit} elements here")));
        }
        coords.push(match mode {
            _ if none => ir::axis(d),
            "reflect" => Ix::sub(last.clone(), size(Ix::sub(last, size(at)))),
            "replicate" => Ix::max(Ix::Const(0), Ix::min(at, last)),
            "circular" => Ix::modulo(at, n.clone()),
            other => return Err(Refusal::new(format!("padding by {other:?} is not supported"))),
        });
        shape.push(b.simplify(&Ix::add(Ix::add(n, before[d].clone()), after[d].clone())));
    }
    Ok(vec![b.map("pad", x, shape, coords)])
}
