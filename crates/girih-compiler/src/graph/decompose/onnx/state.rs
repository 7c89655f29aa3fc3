//! ONNX's operations on sequences with a state that a model carries from run to run, and dropout.

use super::attention::{merge_heads, split_heads};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::activations::sigmoid;
use crate::graph::decompose::types::head_scale;
use crate::graph::decompose::window::Slide;
use crate::graph::decompose::{Call, Decomposition, conv, normal_axis};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_dropout",
        handles: &["onnx.Dropout"],
        doc: "Nothing is dropped: the operand, and a mask of true.\n\n`y, m = dropout(x)` --> `y = x`, `m = true`\n\n\
              Refuses training with a ratio above 0, which is random.",
        run: dropout,
    },
    Decomposition {
        name: "swiglu",
        handles: &["onnx.SwiGLU"],
        doc: "A gate times a value.\n\n`y = swiglu(a, b)` --> `y = a * sigmoid(alpha * a) * b`",
        run: swiglu,
    },
    Decomposition {
        name: "causal_conv_with_state",
        handles: &["onnx.CausalConvWithState"],
        doc: "A depthwise convolution along a sequence that sees the past only, and the end of the sequence as the next \
              state.\n\n`y, s = causal_conv(x, w, b, past)` --> `z = concat(past, x)`, `y = conv(z, w) + b`, \
              `s = the last k - 1 of z`",
        run: causal_conv,
    },
    Decomposition {
        name: "linear_attention",
        handles: &["onnx.LinearAttention"],
        doc: "Attention as a recurrence over a matrix of state, step by step.\n\n\
              `s[t] = exp(g) * s[t-1] + k (beta * (v - s^T k))^T`, `y[t] = scale * q^T s[t]`\n\n\
              Refuses a sequence length that is not known, or more than 256. Source: Yang et al., Gated Delta Networks, \
              2024.",
        run: linear_attention,
    },
    Decomposition {
        name: "tensor_scatter",
        handles: &["onnx.TensorScatter"],
        doc: "Writes new entries of a cache, each element of the batch at its own place.\n\n\
              `y = tensor_scatter(past, new, at)` --> `i = position - at`, `y = select(0 <= i < n, gather new[i], past)`",
        run: tensor_scatter,
    },
];

fn dropout(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let x = call.arg(0)?;
    if let Some(training) = call.opt(2) {
        let on = b.floats(training).and_then(|t| t.first().copied());
        let ratio = match call.opt(1) {
            Some(r) => b.floats(r).and_then(|r| r.first().copied()),
            None => Some(0.5),
        };
        if on != Some(0.0) && ratio != Some(0.0) {
            return Err(Refusal::new("Dropout in training mode is random").help("export the model for inference"));
        }
    }
    let shape = b.shape(x);
    let yes = ir::int_scalar(Elem::BOOL, 1);
    let mask = b.full(yes, Elem::BOOL, shape);
    Ok(vec![x, mask])
}

fn swiglu(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (a, v) = (call.arg(0)?, call.arg(1)?);
    let (narrow, wide) = (b.elem(a), b.wide(a));
    let (a, v) = (b.convert(a, wide)?, b.convert(v, wide)?);
    let alpha = b.scalar_like(a, call.float("alpha", 1.0)?);
    let scaled = b.mul(a, alpha)?;
    let gate = sigmoid(b, scaled)?;
    let swish = b.mul(a, gate)?;
    let y = b.mul(swish, v)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `(x [b, c, l], w [c, 1, k], bias?, past? [b, c, k - 1])`
fn causal_conv(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (x, w) = (call.arg(0)?, call.arg(1)?);
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let (xs, ws) = (b.shape(x), b.shape(w));
    let (3, 3, Some(channels), Some(k)) =
        (xs.len(), ws.len(), ws.first().and_then(Ix::as_const), ws.get(2).and_then(Ix::as_const).filter(|k| *k >= 1))
    else {
        return Err(Refusal::new("CausalConvWithState needs an input [b, c, l] and a known weight [c, 1, k]"));
    };
    let padded = match call.opt(3) {
        Some(past) => b.concat(&[past, x], 2)?,
        None => {
            let zero = b.scalar_like(x, 0.0);
            let none = vec![Ix::Const(0); 3];
            b.pad(x, &[Ix::Const(0), Ix::Const(0), Ix::Const(k - 1)], &none, zero)?
        }
    };
    let slide = Slide { size: Ix::Const(k), stride: 1, dilation: 1, before: Ix::Const(0), after: Ix::Const(0) };
    let y = conv::conv(b, padded, w, &[slide], channels, wide)?;
    let mut y = conv::finish(b, y, call.opt(2), wide)?;
    match call.text("activation")?.unwrap_or("none") {
        "none" => {}
        "silu" | "swish" => {
            // The convolution's result is of the operand's type before the activation.
            y = b.convert(y, narrow)?;
            y = b.convert(y, wide)?;
            let gate = sigmoid(b, y)?;
            y = b.mul(y, gate)?;
        }
        other => return Err(Refusal::new(format!("activation is {other:?}, which ONNX does not define"))),
    }
    let start = b.simplify(&Ix::sub(b.shape(padded)[2].clone(), Ix::Const(k - 1)));
    let state = b.slice(padded, 2, start, 1, Ix::Const(k - 1))?;
    Ok(vec![b.convert(y, narrow)?, state])
}

/// `(q, k, v, past?, decay?, beta?)`, packed `[b, t, heads * size]`.
fn linear_attention(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let narrow = b.elem(call.arg(0)?);
    let wide = if narrow.dtype.bits() == 64 { Elem::F64 } else { Elem::F32 };
    let (heads, kv_heads) = (call.int("q_num_heads", 0)?, call.int("kv_num_heads", 0)?);
    if heads < 1 || kv_heads < 1 || heads % kv_heads != 0 {
        return Err(Refusal::new(format!("{heads} query heads cannot share {kv_heads} heads of keys")));
    }
    let packed = |b: &mut Builder<'_>, x: Arg, heads: i64| -> Result<Arg> {
        let x = split_heads(b, x, heads)?;
        b.convert(x, wide)
    };
    let (q, k, v) =
        (packed(b, call.arg(0)?, heads)?, packed(b, call.arg(1)?, kv_heads)?, packed(b, call.arg(2)?, kv_heads)?);
    let (qs, ks, vs) = (b.shape(q), b.shape(k), b.shape(v));
    let steps = qs[2].as_const().filter(|t| *t <= 256).ok_or_else(|| {
        let text = b.graph.ix_text(&qs[2]);
        Refusal::new(format!("LinearAttention over {text} steps: the number must be known and at most 256"))
    })?;
    let rule = call.text("update_rule")?.unwrap_or("gated_delta").to_string();
    let (gated, delta) = match rule.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Refusal::new(format!("update_rule is {other:?}, which ONNX does not define"))),
    };
    let decay = if gated { Some(packed(b, call.arg(4)?, kv_heads)?) } else { None };
    let beta = if delta {
        let x = call.arg(5)?;
        let one = b.shape(x).get(2).is_some_and(|n| n.is_const(1));
        Some(packed(b, x, if one { 1 } else { kv_heads })?)
    } else {
        None
    };
    let scale = head_scale(b, call.float_of("scale")?.filter(|s| *s != 0.0), q)?;
    let state_shape = vec![qs[0].clone(), Ix::Const(kv_heads), ks[3].clone(), vs[3].clone()];
    let (mut state, state_elem) = match call.opt(3) {
        Some(past) => (b.convert(past, wide)?, b.elem(past)),
        None => (b.full(ir::scalar(wide, 0.0), wide, state_shape), narrow),
    };
    // Entry `t` of [b, h, t, n], as [b, h, n, 1] or [b, h, 1, n].
    let at = |b: &mut Builder<'_>, x: Arg, t: i64, column: bool| -> Result<Arg> {
        let row = b.slice(x, 2, Ix::Const(t), 1, Ix::Const(1))?;
        if column { b.swap_axes(row, 2, 3) } else { Ok(row) }
    };
    let group = heads / kv_heads;
    let factor = ir::scalar(wide, scale);
    let mut outputs = vec![];
    for t in 0..steps {
        if let Some(decay) = decay {
            let g = at(b, decay, t, true)?;
            let g = b.exp(g)?;
            state = b.mul(state, g)?;
        }
        let (key, mut value) = (at(b, k, t, true)?, at(b, v, t, false)?);
        if let Some(beta) = beta {
            let read = b.dot(state, key, wide, &[2], true)?;
            let error = b.sub(value, read)?;
            let rate = at(b, beta, t, false)?;
            value = b.mul(rate, error)?;
        }
        let write = b.mul(key, value)?;
        state = b.add(state, write)?;
        let query = at(b, q, t, true)?;
        let mut shape = b.shape(state);
        shape[1] = Ix::Const(heads);
        let head = Ix::floor_div(axis(1), Ix::Const(group));
        let shared = b.map("state", state, shape, vec![axis(0), head, axis(2), axis(3)]);
        let y = b.dot(query, shared, wide, &[2], true)?;
        outputs.push(b.mul(y, factor)?);
    }
    let y = if outputs.is_empty() {
        let shape = vec![qs[0].clone(), Ix::Const(heads), Ix::Const(0), vs[3].clone()];
        b.full(ir::scalar(wide, 0.0), wide, shape)
    } else {
        b.concat(&outputs, 2)?
    };
    let y = merge_heads(b, y)?;
    Ok(vec![b.convert(y, narrow)?, b.convert(state, state_elem)?])
}

/// `(past, new, at? [batch])`
fn tensor_scatter(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (past, new) = (call.arg(0)?, call.arg(1)?);
    let shape = b.shape(past);
    let rank = shape.len();
    let d = normal_axis(call.int("axis", -2)?, rank)?;
    let count = b.shape(new).get(d).cloned().unwrap_or(Ix::Const(0));
    let mut line = vec![Ix::Const(1); rank];
    line[d] = shape[d].clone();
    let mut i = b.index(axis(d), Elem::I64, line);
    if let Some(at) = call.opt(2) {
        let at = b.convert(at, Elem::I64)?;
        let at = b.unsqueeze(at, &(1..rank).collect::<Vec<_>>())?;
        i = b.sub(i, at)?;
    }
    let zero = ir::int_scalar(Elem::I64, 0);
    match call.text("mode")?.unwrap_or("linear") {
        "linear" => {}
        "circular" => {
            // The remainder that is not negative.
            let n = b.index(shape[d].clone(), Elem::I64, vec![]);
            let r = b.rem(i, n)?;
            let negative = b.compare(Predicate::LessThan, r, zero)?;
            let up = b.add(r, n)?;
            i = b.select(negative, up, r)?;
        }
        other => return Err(Refusal::new(format!("mode is {other:?}, which ONNX does not define"))),
    }
    let n = b.index(count.clone(), Elem::I64, vec![]);
    let (low, high) = (b.compare(Predicate::GreaterThanOrEqual, i, zero)?, b.compare(Predicate::LessThan, i, n)?);
    let inside = b.and(low, high)?;
    if count.is_const(0) {
        return Ok(vec![past]);
    }
    // Where nothing is written, any element may be read.
    let safe = b.select(inside, i, zero)?;
    let coords = (0..rank).map(|k| if k == d { Coord::Arg(1) } else { Coord::Ix(axis(k)) }).collect();
    let written = b.gather(new, &[safe], coords, shape)?;
    Ok(vec![b.select(inside, written, past)?])
}
