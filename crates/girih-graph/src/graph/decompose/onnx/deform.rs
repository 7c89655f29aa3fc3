//! Deformable convolution: a convolution whose samples move by given offsets.

use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::conv::{finish, kernel_of};
use crate::graph::decompose::expr::Tensor;
use crate::graph::decompose::window::{onnx_slides, spatial};
use crate::graph::ir::{Coord, axis};
use crate::index::Ix;

rules! {
    deform_conv "Samples by linear interpolation at moved positions (zeros outside), then a sum of products.\n\n\
         `y = deform_conv(x, w, offset, mask)` --> `p = o*stride + k*dilation - pad + offset`, `s = gathers of x around p, \
         weighted, * mask`, `y = dot s, w over c, k`\n\nSource: Dai et al., Deformable Convolutional Networks, 2017." {
        "onnx.DeformConv" => deform_conv,
    }
}

/// `(x [n, c, d..], w [m, c / groups, k..], offset [n, og * k * r, o..], bias?, mask? [n, og * k, o..])`
fn deform_conv<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (x, w, offset, cx) = (c.x(0), c.x(1), c.x(2), c.cx);
    let (xs, ws, offsets) = (x.shape()?, w.shape()?, offset.shape()?);
    let extents = cx.read(|b| spatial(b, x.arg))?;
    let r = extents.len();
    let sizes = cx.read(|b| kernel_of(b, c, w.arg))?;
    let slides = cx.read(|b| onnx_slides(b, c, &extents, &sizes))?;
    let counts = slides.iter().zip(&extents).map(|(s, d)| cx.read(|b| s.counted(b, d, false)));
    let counts = counts.collect::<Result<Vec<Ix>>>()?;
    let wide = x.wide_elem();
    let (groups, parts) = (c.int("group", 1)?, c.int("offset_group", 1)?);
    let taps = cx.simplify(&sizes.iter().cloned().fold(Ix::Const(1), Ix::mul));
    let expected = cx.simplify(&Ix::mul(taps.clone(), Ix::Const(parts * r as i64)));
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
        && cx.same(&offsets[0], &xs[0])
        && cx.same(&offsets[1], &expected)
        && cx.same_shape(&offsets[2..], &counts);
    if !fits {
        return Err(Refusal::new(format!(
            "{}, {} and offsets {} do not fit a deformable convolution",
            x.shape_text(),
            w.shape_text(),
            offset.shape_text()
        )));
    }
    // Samples are [n, c, o.., k..]; positions have no channels but those of their part.
    let mut shape = vec![xs[0].clone(), xs[1].clone()];
    shape.extend(offsets[2..].iter().cloned());
    shape.extend(sizes.iter().cloned());
    let part = Ix::floor_div(axis(1), Ix::Const(channels / parts));
    let tap = (0..r).fold(Ix::Const(0), |t, d| Ix::add(Ix::mul(t, sizes[d].clone()), axis(2 + r + d)));
    let spread = |v: Tensor<'g>, channel: Ix| {
        let mut coords = vec![axis(0), channel];
        coords.extend((0..r).map(|d| axis(2 + d)));
        v.map("moved", shape.clone(), coords)
    };
    let mut near: Vec<[(Tensor<'g>, Tensor<'g>); 2]> = vec![];
    for (d, slide) in slides.iter().enumerate() {
        let mut line = vec![Ix::Const(1); 2 + 2 * r];
        (line[2 + d], line[2 + r + d]) = (shape[2 + d].clone(), sizes[d].clone());
        let place = cx.index(slide.place(axis(2 + d), axis(2 + r + d)), Elem::I64, line).to(wide);
        let entry = Ix::add(
            Ix::mul(Ix::add(Ix::mul(part.clone(), taps.clone()), tap.clone()), Ix::Const(r as i64)),
            Ix::Const(d as i64),
        );
        let at = place + spread(offset, entry).to(wide);
        let floor = at.floor();
        let fraction = at - floor;
        let rest = 1.0 - fraction;
        near.push([(floor, rest), (floor + 1.0, fraction)]);
    }
    let mut samples: Option<Tensor<'g>> = None;
    for corner in 0..1usize << r {
        let (mut weight, mut inside, mut indices): (Option<Tensor<'g>>, Option<Tensor<'g>>, _) = (None, None, vec![]);
        let mut coords = vec![Coord::Ix(axis(0)), Coord::Ix(axis(1))];
        for (d, ends) in near.iter().enumerate() {
            let (at, w) = ends[corner >> d & 1];
            let last = cx.index(Ix::sub(extents[d].clone(), Ix::Const(1)), Elem::I64, vec![]).to(wide);
            let both = at.at_least(0.0) & at.at_most(last);
            inside = Some(inside.map_or(both, |inside| inside & both));
            weight = Some(weight.map_or(w, |other| other * w));
            indices.push(at.max(0.0).min(last).to(Elem::I64));
            coords.push(Coord::Arg(1 + d as u32));
        }
        let (Some(inside), Some(weight)) = (inside, weight) else { continue };
        let value = x.gather(&indices, coords, shape.clone()).to(wide);
        let term = inside.select(value, 0.0) * weight;
        samples = Some(samples.map_or(term, |sum| sum + term));
    }
    let mut samples = samples.ok_or_else(|| Refusal::new("a deformable convolution has no samples"))?;
    if let Some(mask) = c.maybe(4) {
        let shape = [&xs[..1], &[cx.simplify(&Ix::mul(taps.clone(), Ix::Const(parts)))], &counts[..]].concat();
        let mask = mask.of_shape("the mask", &shape)?;
        samples = samples * spread(mask, Ix::add(Ix::mul(part, taps), tap)).to(wide);
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
    let left = samples.map("samples", left, coords);
    let mut right = vec![Ix::Const(1), Ix::Const(groups), Ix::Const(per)];
    right.extend(vec![Ix::Const(1); r]);
    right.push(Ix::Const(each));
    right.extend(sizes.iter().cloned());
    let mut coords = vec![channel(per, 2), axis(c_at)];
    coords.extend((0..r).map(|d| axis(k_at + d)));
    let right = w.to(wide).map("weight", right, coords);
    let y = left.dot(right, wide, &(c_at..k_at + r).collect::<Vec<_>>());
    let mut out = vec![xs[0].clone(), ws[0].clone()];
    out.extend(offsets[2..].iter().cloned());
    let y = y.reshape(&out);
    Ok(cx.made(&[y], |b| finish(b, y.arg, c.opt(3), b.elem(x.arg))))
}
