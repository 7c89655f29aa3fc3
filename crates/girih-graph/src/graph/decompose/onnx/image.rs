//! ONNX's rearrangements of images: Col2Im and CenterCropPad.

use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::window::{masked, onnx_slides};
use crate::graph::decompose::{Call, normal_axis, old};
use crate::graph::ir::{Arg, MapSource, ReduceOp, axis};
use crate::index::{Cmp, Cond, Ix, Mask};

rules! {
    col2im "Adds overlapping blocks into an image: each element sums the blocks that cover it.\n\n\
         `y = col2im(x)` --> `y = reduce sum (map x[.., k, (i + pad - k*dilation) / stride] else 0) over k`" {
        "onnx.Col2Im" => old(col2im),
    }
    center_crop_pad "Cuts from both ends, or pads them with zeros.\n\n\
         `y = center_crop_pad(x)` --> `y = map x[i + start] else 0`" {
        "onnx.CenterCropPad" => old(center_crop_pad),
    }
}

/// `(x [n, c * blocks, l], image_shape, block_shape)` to `[n, c, image..]`.
fn col2im(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let constant = |what: &str| Refusal::new(format!("the {what} of Col2Im is not constant"));
    let image = b.ints(call.arg(1)?).ok_or_else(|| constant("image_shape"))?;
    let block = b.ints(call.arg(2)?).ok_or_else(|| constant("block_shape"))?;
    let xs = b.shape(x);
    let slides = onnx_slides(b, call, &image, &block)?;
    let n = slides.len();
    let size = b.simplify(&block.iter().cloned().fold(Ix::Const(1), Ix::mul));
    let counts: Vec<Ix> = slides.iter().zip(&image).map(|(s, d)| b.simplify(&s.count(d, false))).collect();
    let total = b.simplify(&counts.iter().cloned().fold(Ix::Const(1), Ix::mul));
    let channels = match (xs.get(1).and_then(Ix::as_const), size.as_const()) {
        (Some(c), Some(k)) if xs.len() == 3 && k > 0 && c % k == 0 && b.same(&xs[2], &total) => Ix::Const(c / k),
        _ => {
            return Err(Refusal::new(format!(
                "blocks {} of shape {} do not make an image {}",
                b.shape_text(&xs),
                b.shape_text(&block),
                b.shape_text(&image)
            )));
        }
    };
    // [n, c, image.., block..]
    let mut shape = vec![xs[0].clone(), channels];
    shape.extend(image.iter().cloned());
    shape.extend(block.iter().cloned());
    let (mut k, mut l, mut conds) = (Ix::Const(0), Ix::Const(0), vec![]);
    for (d, slide) in slides.iter().enumerate() {
        let place = axis(2 + n + d);
        k = Ix::add(Ix::mul(k, block[d].clone()), place.clone());
        let from = Ix::sub(Ix::add(axis(2 + d), slide.before.clone()), Ix::mul(place, Ix::Const(slide.dilation)));
        let stride = Ix::Const(slide.stride);
        let at = Ix::floor_div(from.clone(), stride.clone());
        conds.push(Cond::new(from.clone(), Cmp::Ge, Ix::Const(0)));
        conds.push(Cond::new(at.clone(), Cmp::Lt, counts[d].clone()));
        if slide.stride > 1 {
            conds.push(Cond::new(Ix::modulo(from, stride), Cmp::Eq, Ix::Const(0)));
        }
        l = Ix::add(Ix::mul(l, counts[d].clone()), at);
    }
    let channel = Ix::add(Ix::mul(axis(1), size), k);
    let zero = b.scalar_like(x, 0.0);
    let inside = MapSource { arg: 0, coords: vec![axis(0), channel, l], when: Mask { conds, vals: vec![] } };
    let outside = MapSource { arg: 1, coords: vec![], when: Mask::default() };
    let blocks = b.map_sources("blocks", vec![x, zero], shape, vec![inside, outside]);
    let axes: Vec<usize> = (2 + n..2 + 2 * n).collect();
    Ok(vec![b.reduce(ReduceOp::Sum, blocks, &axes, false)?])
}

/// `(x, shape)`
fn center_crop_pad(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    let target = b.ints(call.arg(1)?).ok_or_else(|| Refusal::new("the shape of CenterCropPad is not constant"))?;
    let mut shape = b.shape(x);
    let rank = shape.len();
    let axes = match call.ints("axes")? {
        Some(axes) => axes.into_iter().map(|a| normal_axis(a, rank)).collect::<Result<Vec<usize>>>()?,
        None => (0..rank).collect(),
    };
    if axes.len() != target.len() {
        return Err(Refusal::new(format!("{} extents are given for {} axes", target.len(), axes.len())));
    }
    let mut coords: Vec<Ix> = (0..rank).map(axis).collect();
    for (a, to) in axes.into_iter().zip(target) {
        let from = shape[a].clone();
        let half = |x: Ix| Ix::floor_div(Ix::max(x, Ix::Const(0)), Ix::Const(2));
        let cut = half(Ix::sub(from.clone(), to.clone()));
        let padded = half(Ix::sub(to.clone(), from));
        coords[a] = Ix::sub(Ix::add(axis(a), cut), padded);
        shape[a] = to;
    }
    let zero = b.scalar_like(x, 0.0);
    Ok(vec![masked(b, "centre", x, shape, coords, zero)])
}
