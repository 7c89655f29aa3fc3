//! Deformable convolution: a convolution whose samples move by given offsets.

use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::conv::{finish, kernel_of};
use crate::graph::decompose::window::{onnx_slides, spatial};
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[Decomposition {
    name: "deform_conv",
    handles: &["onnx.DeformConv"],
    doc: "Samples by linear interpolation at moved positions (zeros outside), then a sum of products.\n\n\
          `y = deform_conv(x, w, offset, mask)` --> `p = o*stride + k*dilation - pad + offset`, `s = gathers of x around p, \
          weighted, * mask`, `y = dot s, w over c, k`\n\nSource: Dai et al., Deformable Convolutional Networks, 2017.",
    run: deform_conv,
}];

/// `(x [n, c, d..], w [m, c / groups, k..], offset [n, og * k * r, o..], bias?, mask? [n, og * k, o..])`
fn deform_conv(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, w, offset) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let extents = spatial(b, x)?;
    let r = extents.len();
    let sizes = kernel_of(b, call, w)?;
    let slides = onnx_slides(b, call, &extents, &sizes)?;
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let (xs, ws, offsets) = (b.shape(x), b.shape(w), b.shape(offset));
    let (groups, parts) = (call.int("group", 1)?, call.int("offset_group", 1)?);
    let taps = b.simplify(&sizes.iter().cloned().fold(Ix::Const(1), Ix::mul));
    let expected = b.simplify(&Ix::mul(taps.clone(), Ix::Const(parts * r as i64)));
    let known = (xs[1].as_const(), ws[0].as_const());
    let (Some(channels), Some(outputs)) = known else {
        return Err(Refusal::new("DeformConv needs known numbers of channels"));
    };
    let fits = groups > 0
        && parts > 0
        && channels % groups == 0
        && channels % parts == 0
        && outputs % groups == 0
        && ws.len() == r + 2
        && ws[1].is_const(channels / groups)
        && offsets.len() == r + 2
        && b.same(&offsets[1], &expected);
    if !fits {
        return Err(Refusal::new(format!(
            "{}, {} and offsets {} do not fit a deformable convolution",
            b.shape_text(&xs),
            b.shape_text(&ws),
            b.shape_text(&offsets)
        )));
    }
    // Samples are [n, c, o.., k..]; positions have no channels but those of their part.
    let mut shape = vec![xs[0].clone(), xs[1].clone()];
    shape.extend(offsets[2..].iter().cloned());
    shape.extend(sizes.iter().cloned());
    let part = Ix::floor_div(axis(1), Ix::Const(channels / parts));
    let tap = (0..r).fold(Ix::Const(0), |t, d| Ix::add(Ix::mul(t, sizes[d].clone()), axis(2 + r + d)));
    let spread = |b: &mut Builder<'_>, v: Arg, channel: Ix| {
        let mut coords = vec![axis(0), channel];
        coords.extend((0..r).map(|d| axis(2 + d)));
        b.map("moved", v, shape.clone(), coords)
    };
    let c = |v: f64| ir::scalar(wide, v);
    let mut near: Vec<[(Arg, Arg); 2]> = vec![];
    for (d, slide) in slides.iter().enumerate() {
        let line = {
            let mut s = vec![Ix::Const(1); 2 + 2 * r];
            (s[2 + d], s[2 + r + d]) = (shape[2 + d].clone(), sizes[d].clone());
            s
        };
        let place = b.index(slide.place(axis(2 + d), axis(2 + r + d)), Elem::I64, line);
        let place = b.convert(place, wide)?;
        let entry = Ix::add(
            Ix::mul(Ix::add(Ix::mul(part.clone(), taps.clone()), tap.clone()), Ix::Const(r as i64)),
            Ix::Const(d as i64),
        );
        let moved = spread(b, offset, entry);
        let moved = b.convert(moved, wide)?;
        let at = b.add(place, moved)?;
        let floor = b.floor(at)?;
        let fraction = b.sub(at, floor)?;
        let rest = b.sub(c(1.0), fraction)?;
        let next = b.add(floor, c(1.0))?;
        near.push([(floor, rest), (next, fraction)]);
    }
    let mut samples = None;
    for corner in 0..1usize << r {
        let (mut weight, mut inside, mut indices) = (None, None, vec![]);
        let mut coords = vec![Coord::Ix(axis(0)), Coord::Ix(axis(1))];
        for (d, ends) in near.iter().enumerate() {
            let (at, w) = ends[corner >> d & 1];
            let last = b.index(Ix::sub(extents[d].clone(), Ix::Const(1)), Elem::I64, vec![]);
            let last = b.convert(last, wide)?;
            let low = b.compare(Predicate::GreaterThanOrEqual, at, c(0.0))?;
            let high = b.compare(Predicate::LessThanOrEqual, at, last)?;
            let both = b.and(low, high)?;
            inside = Some(match inside {
                Some(i) => b.and(i, both)?,
                None => both,
            });
            weight = Some(match weight {
                Some(other) => b.mul(other, w)?,
                None => w,
            });
            let at = b.max(at, c(0.0))?;
            let at = b.min(at, last)?;
            indices.push(b.convert(at, Elem::I64)?);
            coords.push(Coord::Arg(1 + d as u32));
        }
        let (Some(inside), Some(weight)) = (inside, weight) else { continue };
        let value = b.gather(x, &indices, coords, shape.clone())?;
        let value = b.convert(value, wide)?;
        let value = b.select(inside, value, c(0.0))?;
        let term = b.mul(value, weight)?;
        samples = Some(match samples {
            Some(sum) => b.add(sum, term)?,
            None => term,
        });
    }
    let mut samples = samples.ok_or_else(|| Refusal::new("a deformable convolution has no samples"))?;
    if let Some(mask) = call.opt(4) {
        let mask = spread(b, mask, Ix::add(Ix::mul(part, taps), tap));
        let mask = b.convert(mask, wide)?;
        samples = b.mul(samples, mask)?;
    }
    // [n, groups, m / groups, o.., c / groups, k..]
    let (each, per) = (channels / groups, outputs / groups);
    let (c_at, k_at) = (3 + r, 4 + r);
    let mut left = vec![xs[0].clone(), Ix::Const(groups), Ix::Const(1)];
    left.extend(offsets[2..].iter().cloned());
    left.push(Ix::Const(each));
    left.extend(sizes.iter().cloned());
    let channel = |each: i64, at: usize| Ix::add(Ix::mul(axis(1), Ix::Const(each)), axis(at));
    let mut coords = vec![axis(0), channel(each, c_at)];
    coords.extend((0..r).map(|d| axis(3 + d)));
    coords.extend((0..r).map(|d| axis(k_at + d)));
    let left = b.map("samples", samples, left, coords);
    let mut right = vec![Ix::Const(1), Ix::Const(groups), Ix::Const(per)];
    right.extend(vec![Ix::Const(1); r]);
    right.push(Ix::Const(each));
    right.extend(sizes.iter().cloned());
    let mut coords = vec![channel(per, 2), axis(c_at)];
    coords.extend((0..r).map(|d| axis(k_at + d)));
    let w = b.convert(w, wide)?;
    let right = b.map("weight", w, right, coords);
    let axes: Vec<usize> = (c_at..k_at + r).collect();
    let y = b.dot(left, right, wide, &axes, false)?;
    let mut out = vec![xs[0].clone(), ws[0].clone()];
    out.extend(offsets[2..].iter().cloned());
    let y = b.reshape(y, &out)?;
    Ok(vec![finish(b, y, call.opt(3), narrow)?])
}
