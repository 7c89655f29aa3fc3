//! Gradients that PyTorch has as operations of their own: of convolutions, poolings and attention. PyTorch takes all
//! other gradients apart.

use super::conv::{conv, conv_transpose};
use super::expr::Tensor;
use super::onnx::attention::{Masking, apply_mask, scale_of};
use super::types::numbers;
use super::window::{Slide, masked, spatial};
use super::{Call, old};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp, axis};
use crate::index::Ix;

rules! {
    convolution_backward "The gradients of a convolution's input, weight and bias.\n\n\
         `dx, dw, dc = convolution_backward(dy, x, w)` --> `dx = conv_transpose(dy, w)`, \
         `xw = map x[n, c, o*stride + k*dilation - padding] else 0`, `dw = dot dy, xw over n, o`, \
         `dc = reduce sum dy over n, o`\n\n\
         For a transposed convolution, `dx = conv(dy, w)`, and `x` and `dy` change places in `dw`." {
        "aten.convolution_backward" => old(convolution_backward),
    }
    max_pool_backward "Each gradient goes to the element that was the greatest of its window.\n\n\
         `dx = max_pool2d_with_indices_backward(dy, x, at)` --> `dx = scatter add zeros[n, c, at] with dy`" {
        "aten.max_pool2d_with_indices_backward" => |c| max_pool_backward(c, 2),
        "aten.max_pool3d_with_indices_backward" => |c| max_pool_backward(c, 3),
    }
    avg_pool_backward "Each gradient, divided by the count of its window, goes to all elements of the window: a transposed \
         convolution with ones.\n\n`dx = avg_pool2d_backward(dy, x)` --> `dx = conv_transpose(dy / count(o), ones)`" {
        "aten.avg_pool2d_backward" => |c| avg_pool_backward(c, 2),
        "aten.avg_pool3d_backward" => |c| avg_pool_backward(c, 3),
    }
    attention_backward "Gradients of queries, keys and values, from the logarithms of the sums that the forward function kept.\n\n\
         `dq, dk, dv = backward(dy, q, k, v, y, lse)` --> `p = exp(s - lse)`, \
         `ds = p * ((dot dy, v over d) - (reduce sum dy*y over d)) * scale`, `dq = dot ds, k over keys`, \
         `dk = dot ds, q over queries`, `dv = dot p, dy over queries`\n\nRefuses dropout." {
        "aten._scaled_dot_product_flash_attention_for_cpu_backward" => attention_backward,
    }
}

/// A result that nobody reads.
fn unread(b: &mut Builder<'_>, elem: Elem) -> Arg {
    b.full(ir::scalar(elem, 0.0), elem, vec![])
}

/// `(grad_output, input, weight)`; `output_mask` says which of the three gradients are asked for.
fn convolution_backward(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (grad, x, w) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let sizes = spatial(b, w)?;
    let inputs = spatial(b, x)?;
    let n = sizes.len();
    if inputs.len() != n || b.rank(grad) != n + 2 {
        return Err(Refusal::new(format!(
            "gradients {}, input {} and weight {} must have the same rank",
            b.shape_text(&b.shape(grad)),
            b.shape_text(&b.shape(x)),
            b.shape_text(&b.shape(w))
        )));
    }
    let (stride, dilation) = (numbers(call, "stride", n, 1)?, numbers(call, "dilation", n, 1)?);
    let padding = numbers(call, "padding", n, 0)?;
    let groups = call.int("groups", 1)?;
    if let Some(bad) = stride.iter().chain(&dilation).find(|s| !(1..=1 << 31).contains(*s)) {
        return Err(Refusal::new(format!("a stride or dilation must be from 1 to 2^31, not {bad}")));
    }
    let slides: Vec<Slide> = (0..n)
        .map(|d| Slide {
            size: sizes[d].clone(),
            stride: stride[d],
            dilation: dilation[d],
            before: Ix::Const(padding[d]),
            after: Ix::Const(padding[d]),
        })
        .collect();
    let transposed = call.flag("transposed", false)?;
    let asked = call.ints("output_mask")?.unwrap_or_else(|| vec![1; 3]);
    let wants = |i: usize| asked.get(i).is_none_or(|flag| *flag != 0);
    let (narrow, wide) = (b.elem(grad), b.wide(grad));
    let mut results = vec![];
    results.push(match (wants(0), transposed) {
        (false, _) => unread(b, narrow),
        (true, false) => conv_transpose(b, grad, w, &slides, &inputs, groups, wide)?,
        (true, true) => conv(b, grad, w, &slides, groups, wide)?,
    });
    results.push(match (wants(1), transposed) {
        (false, _) => unread(b, narrow),
        (true, false) => weight_gradient(b, grad, x, w, &slides, groups, wide)?,
        (true, true) => weight_gradient(b, x, grad, w, &slides, groups, wide)?,
    });
    results.push(if wants(2) {
        let axes: Vec<usize> = (0..n + 2).filter(|d| *d != 1).collect();
        let grad = b.convert(grad, wide)?;
        b.reduce(ReduceOp::Sum, grad, &axes, false)?
    } else {
        unread(b, narrow)
    });
    results.into_iter().map(|y| b.convert(y, narrow)).collect()
}

/// `[m, c / groups, k..]`: sums over batch and positions of `small [n, m, o..]` times what the windows of `large
/// [n, c, d..]` read.
fn weight_gradient(
    b: &mut Builder<'_>,
    small: Arg,
    large: Arg,
    w: Arg,
    slides: &[Slide],
    groups: i64,
    wide: Elem,
) -> Result<Arg> {
    let (shape, positions, batch) = (b.shape(w), spatial(b, small)?, b.shape(small)[0].clone());
    let n = slides.len();
    let g = Ix::Const(groups.max(1));
    let rows = b.simplify(&Ix::floor_div(shape[0].clone(), g.clone()));
    let columns = shape[1].clone();
    // [groups, m / groups, c / groups, k.., n, o..]
    let (k_at, n_at, o_at) = (3, 3 + n, 4 + n);
    let ones = vec![Ix::Const(1); n];
    let mut of_small = vec![g.clone(), rows.clone(), Ix::Const(1)];
    of_small.extend(ones);
    of_small.push(batch.clone());
    of_small.extend(positions.iter().cloned());
    let mut of_large = vec![g.clone(), Ix::Const(1), columns.clone()];
    of_large.extend(shape[2..].iter().cloned());
    of_large.push(batch);
    of_large.extend(positions);
    let channel = |each: &Ix, at: usize| Ix::add(Ix::mul(axis(0), each.clone()), axis(at));
    let mut small_at = vec![axis(n_at), channel(&rows, 1)];
    let mut large_at = vec![axis(n_at), channel(&columns, 2)];
    for (d, slide) in slides.iter().enumerate() {
        small_at.push(axis(o_at + d));
        large_at.push(slide.place(axis(o_at + d), axis(k_at + d)));
    }
    let zero = b.scalar_like(large, 0.0);
    let windows = masked(b, "windows", large, of_large, large_at, zero);
    let small = b.map("gradient", small, of_small, small_at);
    let axes: Vec<usize> = (n_at..o_at + n).collect();
    let y = b.dot(small, windows, wide, &axes, false)?;
    b.reshape(y, &shape)
}

/// How many of the axes of `(grad_output, input)` stand before the spatial ones.
fn planes(c: &Call<'_>, n: usize) -> Result<usize> {
    let (shape, from) = (c.x(0).rank()?, c.x(1).rank()?);
    let lead = from.checked_sub(n).filter(|lead| *lead > 0 && shape == from);
    lead.ok_or_else(|| Refusal::new(format!("{} is not a tensor of planes", c.x(1).shape_text())))
}

/// `(grad_output, input, indices)`
fn max_pool_backward<'g>(c: &Call<'g>, n: usize) -> Result<Tensor<'g>> {
    let lead = planes(c, n)?;
    let from = c.x(1).shape()?;
    let flat = |s: &[Ix]| vec![c.cx.numel(&s[..lead]), c.cx.numel(&s[lead..])];
    let (planes, windows) = (flat(&from), flat(&c.x(0).shape()?));
    let (grad, at) = (c.x(0).reshape(&windows), c.x(2).reshape(&windows));
    let y = grad.in_wide(|grad| {
        let zeros = grad.like(0.0).fill(planes);
        zeros.scatter(&[at], grad, vec![Coord::Ix(axis(0)), Coord::Arg(1)], ScatterOp::Add)
    });
    Ok(y.reshape(&from))
}

/// `(grad_output, input)`
fn avg_pool_backward<'g>(c: &Call<'g>, n: usize) -> Result<Tensor<'g>> {
    let lead = planes(c, n)?;
    let (from, cx) = (c.x(1).shape()?, c.cx);
    let sizes = numbers(c, "kernel_size", n, 1)?;
    let stride = match c.ints("stride")? {
        Some(s) if !s.is_empty() => numbers(c, "stride", n, 1)?,
        _ => sizes.clone(),
    };
    let padding = numbers(c, "padding", n, 0)?;
    if sizes.iter().chain(&stride).any(|s| !(1..=1 << 31).contains(s)) {
        return Err(Refusal::new("windows and strides of a pooling must be positive"));
    }
    let slides: Vec<Slide> = (0..n)
        .map(|d| Slide {
            size: Ix::Const(sizes[d]),
            stride: stride[d],
            dilation: 1,
            before: Ix::Const(padding[d]),
            after: Ix::Const(padding[d]),
        })
        .collect();
    // [planes, 1, o..]: every plane is an image of one channel.
    let planes = |s: &[Ix]| [&[cx.numel(&s[..lead]), Ix::Const(1)], &s[lead..]].concat();
    let (images, windows) = (planes(&from), planes(&c.x(0).shape()?));
    let grad = c.x(0).wide().reshape(&windows);
    let count = match c.float_of("divisor_override")? {
        Some(divisor) => grad.like(divisor),
        None => {
            let padded = c.flag("count_include_pad", true)?;
            let mut count = Ix::Const(1);
            for (d, slide) in slides.iter().enumerate() {
                let extent = images[2 + d].clone();
                let (lo, hi) = if padded {
                    (Ix::sub(Ix::Const(0), slide.before.clone()), Ix::add(extent, slide.after.clone()))
                } else {
                    (Ix::Const(0), extent)
                };
                count = Ix::mul(count, slide.inside(axis(2 + d), lo, hi));
            }
            cx.index(count, Elem::I64, windows).to(grad.elem())
        }
    };
    let each = grad / count;
    let kernel = [vec![Ix::Const(1); 2], sizes.into_iter().map(Ix::Const).collect()].concat();
    let ones = grad.like(1.0).fill(kernel);
    let wide = grad.elem();
    let y = cx.made(&[each, ones], |b| conv_transpose(b, each.arg, ones.arg, &slides, &images[2..], 1, wide));
    Ok(y.reshape(&from).to(c.x(0).elem()))
}

/// `(grad_out, query, key, value, out, logsumexp, attn_mask?)`, each `[batch, heads, length, size]`.
fn attention_backward<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    if c.float("dropout_p", 0.0)? != 0.0 {
        return Err(Refusal::new("attention with dropout draws random numbers").help("call model.eval()"));
    }
    let wide = c.x(1).wide_elem();
    let [grad, q, k, v, y, lse] = [0, 1, 2, 3, 4, 5].map(|i| c.x(i).to(wide));
    for (x, rank) in [(grad, 4), (q, 4), (k, 4), (v, 4), (y, 4), (lse, 3)] {
        if x.rank()? != rank {
            return Err(Refusal::new("attention takes tensors of rank 4, and logarithms of sums of rank 3"));
        }
    }
    let scale = scale_of(q, c.float_of("scale")?)?;
    let scores = q.matmul(k.transposed()) * scale;
    let masking = Masking { causal: c.flag("is_causal", false)?, mask: c.maybe(6), ..Masking::default() };
    let (scores, seen) = apply_mask(scores, &masking)?;
    let p = (scores - lse.unsqueeze(&[3])).exp();
    let p = seen.map_or(p, |seen| seen.select(p, 0.0));
    let dp = grad.matmul(v.transposed());
    let ds = p * (dp - (grad * y).sum(&[3], true)) * scale;
    let (pt, dst) = (p.transposed(), ds.transposed());
    Ok([ds.matmul(k), dst.matmul(q), pt.matmul(grad)].map(|x| x.to(c.x(1).elem())))
}
