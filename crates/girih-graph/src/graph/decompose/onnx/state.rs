//! ONNX's operations on sequences with a state that a model carries from run to run, and dropout.

use super::attention::{extent_or_none, merge_heads, misfits, scale_of, split_heads};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::expr::{Tensor, along};
use crate::graph::decompose::window::Slide;
use crate::graph::decompose::{Call, conv, normal_axis};
use crate::graph::ir::axis;
use crate::index::{Cmp, Ix};

rules! {
    onnx_dropout "Nothing is dropped: the operand, and a mask of true.\n\n`y, m = dropout(x)` --> `y = x`, `m = true`\n\n\
         Refuses training with a ratio above 0, which is random." {
        "onnx.Dropout" => dropout,
    }
    swiglu "A gate times a value.\n\n`y = swiglu(a, b)` --> `y = a * sigmoid(alpha * a) * b`" {
        "onnx.SwiGLU" => |c| {
            let alpha = c.float("alpha", 1.0)?;
            let v = c.x(1).of_shape("the value", &c.x(0).shape()?)?;
            let (a, v) = (c.x(0).wide(), v.to(c.x(0).wide_elem()));
            Ok::<_, Refusal>((a * sigmoid(a * alpha) * v).to(c.x(0).elem()))
        },
    }
    causal_conv_with_state "A depthwise convolution along a sequence that sees the past only, and the end of the sequence as the next \
         state.\n\n`y, s = causal_conv(x, w, b, past)` --> `z = concat(past, x)`, `y = conv(z, w) + b`, \
         `s = the last k - 1 of z`" {
        "onnx.CausalConvWithState" => causal_conv,
    }
    linear_attention "Attention as a recurrence over a matrix of state, step by step.\n\n\
         `s[t] = exp(g) * s[t-1] + k (beta * (v - s^T k))^T`, `y[t] = scale * q^T s[t]`\n\n\
         Refuses a sequence length that is not known, or more than 256. Source: Yang et al., Gated Delta Networks, \
         2024." {
        "onnx.LinearAttention" => linear_attention,
    }
    tensor_scatter "Writes new entries of a cache, each element of the batch at its own place.\n\n\
         `y = tensor_scatter(past, new, at)` --> `i = position - at`, `y = select(0 <= i < n, gather new[i], past)`" {
        "onnx.TensorScatter" => tensor_scatter,
    }
}

fn dropout<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let first = |x: Tensor<'g>| c.cx.read(|b| b.floats(x.arg)).and_then(|x| x.first().copied());
    if let Some(training) = c.maybe(2) {
        let ratio = c.maybe(1).map_or(Some(0.5), first);
        if first(training) != Some(0.0) && ratio != Some(0.0) {
            return Err(Refusal::new("Dropout in training mode is random").help("export the model for inference"));
        }
    }
    Ok([c.x(0), c.cx.full(Elem::BOOL, 1.0, c.x(0).shape()?)])
}

/// `(x [b, c, l], w [c, 1, k], bias?, past? [b, c, k - 1])`
fn causal_conv<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, w) = (c.x(0), c.x(1));
    let (xs, ws, wide) = (x.shape()?, w.shape()?, x.wide_elem());
    let (3, 3, Some(channels), Some(k)) =
        (xs.len(), ws.len(), ws.first().and_then(Ix::as_const), ws.get(2).and_then(Ix::as_const).filter(|k| *k >= 1))
    else {
        return Err(Refusal::new("CausalConvWithState needs an input [b, c, l] and a known weight [c, 1, k]"));
    };
    let padded = match c.maybe(3) {
        Some(past) => {
            let shape = [&xs[..2], &[Ix::Const(k - 1)]].concat();
            c.cx.concat(&[past.of_shape("the past state", &shape)?, x], 2)
        }
        None => {
            let none = || Ix::Const(0);
            x.pad(&[none(), none(), Ix::Const(k - 1)], &[none(), none(), none()], x.like(0.0))
        }
    };
    let slide = Slide { size: Ix::Const(k), stride: 1, dilation: 1, before: Ix::Const(0), after: Ix::Const(0) };
    let y = c.cx.made(&[padded, w], |b| {
        let y = conv::conv(b, padded.arg, w.arg, &[slide], channels, wide)?;
        conv::finish(b, y, c.opt(2), wide)
    });
    let y = match c.text("activation")?.unwrap_or("none") {
        "none" => y,
        "silu" | "swish" => {
            // The convolution's result is of the operand's type before the activation.
            let y = y.to(x.elem()).to(wide);
            y * sigmoid(y)
        }
        other => return Err(Refusal::new(format!("activation is {other:?}, which ONNX does not define"))),
    };
    let start = c.cx.simplify(&Ix::sub(padded.shape()?[2].clone(), Ix::Const(k - 1)));
    let state = padded.slice(2, start, 1, Ix::Const(k - 1));
    Ok([y.to(x.elem()), state])
}

/// `(q, k, v, past?, decay?, beta?)`, packed `[b, t, heads * size]`.
fn linear_attention<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (cx, narrow) = (c.cx, c.x(0).elem());
    let wide = if narrow.dtype.bits() == 64 { Elem::F64 } else { Elem::F32 };
    let (heads, kv_heads) = (c.int("q_num_heads", 0)?, c.int("kv_num_heads", 0)?);
    if heads < 1 || kv_heads < 1 || heads % kv_heads != 0 {
        return Err(Refusal::new(format!("{heads} query heads cannot share {kv_heads} heads of keys")));
    }
    let packed = |i: usize, heads: i64| Ok(split_heads(c.x(i), heads)?.to(wide));
    let (q, k, v) = (packed(0, heads)?, packed(1, kv_heads)?, packed(2, kv_heads)?);
    let (qs, ks, vs) = (q.shape()?, k.shape()?, v.shape()?);
    if !cx.same_shape(&qs[..1], &ks[..1]) || !cx.same_shape(&qs[2..3], &ks[2..3]) || !cx.same_shape(&ks[..3], &vs[..3])
    {
        return Err(misfits([0, 1, 2].map(|i| c.x(i))));
    }
    let steps = qs[2].as_const().filter(|t| *t <= 256).ok_or_else(|| {
        let text = cx.ix_text(&qs[2]);
        Refusal::new(format!("LinearAttention over {text} steps: the number must be known and at most 256"))
    })?;
    let (gated, delta) = match c.text("update_rule")?.unwrap_or("gated_delta") {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Refusal::new(format!("update_rule is {other:?}, which ONNX does not define"))),
    };
    // One number for each head and step, or one for each feature.
    let each = |x: Tensor<'g>, what: &str, features: &Ix| {
        let shape = x.shape()?;
        let one = |i: usize| shape[i].is_const(1);
        let heads = if one(1) { Ix::Const(1) } else { Ix::Const(kv_heads) };
        let features = if one(3) { Ix::Const(1) } else { features.clone() };
        x.of_shape(what, &[qs[0].clone(), heads, qs[2].clone(), features])
    };
    let decay = if gated { Some(each(packed(4, kv_heads)?, "the decay", &ks[3])?) } else { None };
    let one_beta = || c.x(5).shape().map(|s| s.get(2).is_some_and(|n| n.is_const(1)));
    let beta = match delta {
        true => Some(each(packed(5, if one_beta()? { 1 } else { kv_heads })?, "beta", &Ix::Const(1))?),
        false => None,
    };
    let scale = scale_of(q, c.float_of("scale")?.filter(|s| *s != 0.0))?;
    let state_shape = vec![qs[0].clone(), Ix::Const(kv_heads), ks[3].clone(), vs[3].clone()];
    let mut state = match c.maybe(3) {
        Some(past) => past.of_shape("the past state", &state_shape)?.to(wide),
        None => cx.full(wide, 0.0, state_shape),
    };
    // Entry `t` of [b, h, t, n], as [b, h, n, 1] or [b, h, 1, n].
    let row = |x: Tensor<'g>, t: i64| x.slice(2, Ix::Const(t), 1, Ix::Const(1));
    let column = |x: Tensor<'g>, t: i64| row(x, t).transposed();
    let head = Ix::floor_div(axis(1), Ix::Const(heads / kv_heads));
    let mut outputs = vec![];
    for t in 0..steps {
        if let Some(decay) = decay {
            state = state * column(decay, t).exp();
        }
        let (key, mut value) = (column(k, t), row(v, t));
        if let Some(beta) = beta {
            let error = value - state.dot_kept(key, wide, 2);
            value = row(beta, t) * error;
        }
        state = state + key * value;
        let query = column(q, t);
        let mut shape = state.shape()?;
        shape[1] = Ix::Const(heads);
        let shared = state.map("state", shape, vec![axis(0), head.clone(), axis(2), axis(3)]);
        outputs.push(query.dot_kept(shared, wide, 2) * scale);
    }
    let y = if outputs.is_empty() {
        cx.full(wide, 0.0, vec![qs[0].clone(), Ix::Const(heads), Ix::Const(0), vs[3].clone()])
    } else {
        cx.concat(&outputs, 2)
    };
    Ok([merge_heads(y)?.to(narrow), state.to(c.maybe(3).map_or(narrow, Tensor::elem))])
}

/// `(past, new, at? [batch])`
fn tensor_scatter<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (past, new, cx) = (c.x(0), c.x(1), c.cx);
    let shape = past.shape()?;
    let rank = shape.len();
    let d = normal_axis(c.int("axis", -2)?, rank)?;
    let count = extent_or_none(new, d)?;
    let mut entries = shape.clone();
    entries[d] = count.clone();
    new.of_shape("the tensor of new entries", &entries)?;
    if cx.read(|b| b.holds(&count, Cmp::Gt, &shape[d])) {
        let (new, past) = (new.shape_text(), past.shape_text());
        return Err(Refusal::new(format!("new entries {new} do not fit into a cache {past}")));
    }
    let mut line = vec![Ix::Const(1); rank];
    line[d] = shape[d].clone();
    let mut i = cx.index(axis(d), Elem::I64, line);
    if let Some(at) = c.maybe(2) {
        let at = at.of_shape("the list of places", &shape[..1])?;
        i = i - at.to(Elem::I64).unsqueeze(&(1..rank).collect::<Vec<_>>());
    }
    match c.text("mode")?.unwrap_or("linear") {
        "linear" => {}
        "circular" => {
            // The remainder that is not negative.
            let n = cx.index(shape[d].clone(), Elem::I64, vec![]);
            let r = i % n;
            i = r.below(0).select(r + n, r);
        }
        other => return Err(Refusal::new(format!("mode is {other:?}, which ONNX does not define"))),
    }
    let n = cx.index(count.clone(), Elem::I64, vec![]);
    let inside = i.at_least(0) & i.below(n);
    if count.is_const(0) {
        return Ok(past);
    }
    // Where nothing is written, any element may be read.
    Ok(inside.select(new.gather(&[inside.select(i, 0)], along(d, rank), shape), past))
}
