//! Gradients that PyTorch has as operations of their own: of convolutions, poolings and attention. Those of everything
//! else PyTorch takes apart.

use super::conv::{conv, conv_transpose};
use super::onnx::attention::{Masking, apply_mask};
use super::types::{head_scale, numbers};
use super::window::{Slide, masked, spatial};
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, ScatterOp, axis};
use crate::index::Ix;

pub(super) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "convolution_backward",
        handles: &["aten.convolution_backward"],
        doc: "The gradients of a convolution's input, weight and bias.\n\n\
              `dx, dw, dc = convolution_backward(dy, x, w)` --> `dx = conv_transpose(dy, w)`, \
              `xw = map x[n, c, o*stride + k*dilation - padding] else 0`, `dw = dot dy, xw over n, o`, \
              `dc = reduce sum dy over n, o`\n\n\
              Of a transposed convolution, `dx = conv(dy, w)`, and `x` and `dy` change places in `dw`.",
        run: convolution_backward,
    },
    Decomposition {
        name: "max_pool_backward",
        handles: &["aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward"],
        doc: "Each gradient goes to the element that was the greatest of its window.\n\n\
              `dx = max_pool2d_with_indices_backward(dy, x, at)` --> `dx = scatter add zeros[n, c, at] with dy`",
        run: max_pool_backward,
    },
    Decomposition {
        name: "avg_pool_backward",
        handles: &["aten.avg_pool2d_backward", "aten.avg_pool3d_backward"],
        doc: "Each gradient, divided by the count of its window, goes to all elements of the window: a transposed \
              convolution with ones.\n\n`dx = avg_pool2d_backward(dy, x)` --> `dx = conv_transpose(dy / count(o), ones)`",
        run: avg_pool_backward,
    },
    Decomposition {
        name: "attention_backward",
        handles: &["aten._scaled_dot_product_flash_attention_for_cpu_backward"],
        doc: "Gradients of queries, keys and values, from the logarithms of the sums that the forward function kept.\n\n\
              `dq, dk, dv = backward(dy, q, k, v, y, lse)` --> `p = exp(s - lse)`, \
              `ds = p * ((dot dy, v over d) - (reduce sum dy*y over d)) * scale`, `dq = dot ds, k over keys`, \
              `dk = dot ds, q over queries`, `dv = dot p, dy over queries`\n\nRefuses dropout.",
        run: attention_backward,
    },
];

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

/// `(grad_output, input, indices)`
fn max_pool_backward(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (grad, x, at) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let n = if call.name.contains("2d") { 2 } else { 3 };
    let (from, shape) = (b.shape(x), b.shape(grad));
    let Some(lead) = from.len().checked_sub(n).filter(|lead| *lead > 0 && shape.len() == from.len()) else {
        return Err(Refusal::new(format!("{} is not a tensor of planes", b.shape_text(&from))));
    };
    let flat = |b: &Builder<'_>, s: &[Ix]| vec![b.numel(&s[..lead]), b.numel(&s[lead..])];
    let (planes, windows) = (flat(b, &from), flat(b, &shape));
    let (grad, at) = (b.reshape(grad, &windows)?, b.reshape(at, &windows)?);
    let (narrow, wide) = (b.elem(grad), b.wide(grad));
    let grad = b.convert(grad, wide)?;
    let zeros = b.full(ir::scalar(wide, 0.0), wide, planes);
    let y = b.scatter(zeros, &[at], grad, vec![Coord::Ix(axis(0)), Coord::Arg(1)], ScatterOp::Add)?;
    let y = b.convert(y, narrow)?;
    Ok(vec![b.reshape(y, &from)?])
}

/// `(grad_output, input)`
fn avg_pool_backward(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (grad, x) = (call.arg(0)?, call.arg(1)?);
    let n = if call.name.contains("2d") { 2 } else { 3 };
    let (from, shape) = (b.shape(x), b.shape(grad));
    let Some(lead) = from.len().checked_sub(n).filter(|lead| *lead > 0 && shape.len() == from.len()) else {
        return Err(Refusal::new(format!("{} is not a tensor of planes", b.shape_text(&from))));
    };
    let sizes = numbers(call, "kernel_size", n, 1)?;
    let stride = match call.ints("stride")? {
        Some(s) if !s.is_empty() => numbers(call, "stride", n, 1)?,
        _ => sizes.clone(),
    };
    let padding = numbers(call, "padding", n, 0)?;
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
    let planes = |b: &Builder<'_>, s: &[Ix]| {
        let mut all = vec![b.numel(&s[..lead]), Ix::Const(1)];
        all.extend(s[lead..].iter().cloned());
        all
    };
    let (images, windows) = (planes(b, &from), planes(b, &shape));
    let (narrow, wide) = (b.elem(grad), b.wide(grad));
    let grad = b.convert(grad, wide)?;
    let grad = b.reshape(grad, &windows)?;
    let count = match call.float_of("divisor_override")? {
        Some(divisor) => ir::scalar(wide, divisor),
        None => {
            let padded = call.flag("count_include_pad", true)?;
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
            let count = b.index(count, Elem::I64, windows);
            b.convert(count, wide)?
        }
    };
    let each = b.div(grad, count)?;
    let mut kernel = vec![Ix::Const(1); 2];
    kernel.extend(sizes.into_iter().map(Ix::Const));
    let ones = b.full(ir::scalar(wide, 1.0), wide, kernel);
    let y = conv_transpose(b, each, ones, &slides, &images[2..], 1, wide)?;
    let y = b.reshape(y, &from)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `(grad_out, query, key, value, out, logsumexp, attn_mask?)`, each `[batch, heads, length, size]`.
fn attention_backward(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    if call.float("dropout_p", 0.0)? != 0.0 {
        return Err(Refusal::new("attention with dropout draws random numbers").help("call model.eval()"));
    }
    let mut given = vec![];
    let narrow = b.elem(call.arg(1)?);
    let wide = b.wide(call.arg(1)?);
    for i in 0..6 {
        let x = call.arg(i)?;
        given.push(b.convert(x, wide)?);
    }
    let &[grad, q, k, v, y, lse] = &given[..] else { return Err(Refusal::new("operands are missing")) };
    if [grad, q, k, v, y].iter().any(|x| b.rank(*x) != 4) || b.rank(lse) != 3 {
        return Err(Refusal::new("attention takes tensors of rank 4, and logarithms of sums of rank 3"));
    }
    let scale = head_scale(b, call.float_of("scale")?, q)?;
    let scale = ir::scalar(wide, scale);
    let flipped = |b: &mut Builder<'_>, x: Arg| b.swap_axes(x, 2, 3);
    let keys = flipped(b, k)?;
    let scores = b.matmul(q, keys)?;
    let scores = b.mul(scores, scale)?;
    let masking = Masking { causal: call.flag("is_causal", false)?, mask: call.opt(6), ..Masking::default() };
    let (scores, seen) = apply_mask(b, scores, &masking)?;
    let lse = b.unsqueeze(lse, &[3])?;
    let less = b.sub(scores, lse)?;
    let mut p = b.exp(less)?;
    if let Some(seen) = seen {
        p = b.select(seen, p, ir::scalar(wide, 0.0))?;
    }
    let values = flipped(b, v)?;
    let dp = b.matmul(grad, values)?;
    let both = b.mul(grad, y)?;
    let delta = b.reduce(ReduceOp::Sum, both, &[3], true)?;
    let ds = b.sub(dp, delta)?;
    let ds = b.mul(p, ds)?;
    let ds = b.mul(ds, scale)?;
    let (pt, dst) = (flipped(b, p)?, flipped(b, ds)?);
    let results = [b.matmul(ds, k)?, b.matmul(dst, q)?, b.matmul(pt, grad)?];
    results.into_iter().map(|x| b.convert(x, narrow)).collect()
}
