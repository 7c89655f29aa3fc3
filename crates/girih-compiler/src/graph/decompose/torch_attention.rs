//! Attention as PyTorch has it.

use super::onnx::attention::{Masking, attend};
use super::types::head_scale;
use super::{Call, Decomposition};
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::ir::Arg;
use crate::index::Ix;

pub(super) const RULES: &[Decomposition] = &[Decomposition {
    name: "scaled_dot_product_attention",
    handles: &[
        "aten.scaled_dot_product_attention",
        "aten._scaled_dot_product_flash_attention_for_cpu",
        "aten._scaled_dot_product_attention_math",
    ],
    doc: "Softmax of scaled products of queries and keys, times values. Fewer heads of keys than of queries are read by \
          `head // group`; nothing is repeated in memory. Scores and softmax of f16 and bf16 are f32.\n\n\
          `y = sdpa(q, k, v)` --> `s = (dot q, k over d) * scale`, `s = select(allowed, s + mask, -inf)`, \
          `p = softmax(s)`, `y = dot p, v over keys`\n\n\
          A row whose keys are all masked gives 0, as in PyTorch. Refuses dropout.",
    run: attention,
}];

/// `(query, key, value, attn_mask?)`, each `[.., heads, length, size]`.
fn attention(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (q, k, v) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    if call.float("dropout_p", 0.0)? != 0.0 {
        return Err(Refusal::new("attention with dropout draws random numbers").help("call model.eval()"));
    }
    let rank = b.rank(q);
    if rank < 2 || b.rank(k) != rank || b.rank(v) != rank {
        return Err(Refusal::new(format!(
            "queries {}, keys {} and values {} must have the same rank, 2 or more",
            b.shape_text(&b.shape(q)),
            b.shape_text(&b.shape(k)),
            b.shape_text(&b.shape(v))
        )));
    }
    let out_shape = {
        let mut s = b.shape(q);
        s[rank - 1] = b.shape(v)[rank - 1].clone();
        s
    };
    let (q, k, v) = (four(b, q)?, four(b, k)?, four(b, v)?);
    let (heads, groups) = (b.shape(q)[1].clone(), b.shape(k)[1].clone());
    // Keys and values may broadcast, and with enable_gqa have fewer heads.
    let batch = b.shape(q)[0].clone();
    let same = b.same(&heads, &groups);
    if !same && !groups.is_const(1) && !call.flag("enable_gqa", false)? {
        return Err(Refusal::new(format!(
            "{} heads of queries do not fit {} heads of keys",
            b.graph.ix_text(&heads),
            b.graph.ix_text(&groups)
        ))
        .help("pass enable_gqa=True where groups of query heads share keys"));
    }
    let spread = |b: &mut Builder<'_>, x: Arg| {
        let mut want = b.shape(x);
        want[0] = batch.clone();
        b.broadcast_to(x, &want)
    };
    let (k, v) = (spread(b, k)?, spread(b, v)?);
    let mask = match call.opt(3) {
        // [queries, keys] or with heads and batch in front; three axes are those of three operand axes.
        Some(m) if b.rank(m) == 3 && rank == 3 => Some(b.unsqueeze(m, &[0])?),
        other => other,
    };
    let masking = Masking { causal: call.flag("is_causal", false)?, mask, ..Masking::default() };
    let (scale, q) = scaled_by_head(b, call.float_of("scale")?, q)?;
    let wide = b.wide(q);
    let a = attend(b, [q, k, v], scale, 0.0, &masking, wide)?;
    let y = b.reshape(a.y, &out_shape)?;
    match call.name {
        "aten.scaled_dot_product_attention" => Ok(vec![y]),
        "aten._scaled_dot_product_attention_math" => {
            let weights = b.convert(a.weights, b.elem(y))?;
            Ok(vec![y, weights])
        }
        _ => {
            let log = b.log(a.sum)?;
            let lse = b.add(a.max, log)?;
            Ok(vec![y, b.squeeze(lse, &[3])?])
        }
    }
}

/// The scale of scores, and the queries; these are scaled where the size of a head is not known.
fn scaled_by_head(b: &mut Builder<'_>, stated: Option<f64>, q: Arg) -> Result<(f64, Arg)> {
    let size = b.shape(q).get(3).cloned().unwrap_or(Ix::Const(1));
    if stated.is_some() || size.as_const().is_some() {
        return Ok((head_scale(b, stated, q)?, q));
    }
    let wide = b.wide(q);
    let size = super::reductions::extent(b, Ix::max(size, Ix::Const(1)), Elem::F64)?;
    let root = b.sqrt(size)?;
    let scale = b.div(crate::graph::ir::scalar(Elem::F64, 1.0), root)?;
    let scale = b.convert(scale, wide)?;
    let (narrow, x) = (b.elem(q), b.convert(q, wide)?);
    let x = b.mul(x, scale)?;
    Ok((1.0, b.convert(x, narrow)?))
}

/// `[batch, heads, length, size]`: leading axes are added, or more than two made one.
fn four(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let shape = b.shape(x);
    let rank = shape.len();
    match rank {
        4 => Ok(x),
        2 | 3 => b.unsqueeze(x, &(0..4 - rank).collect::<Vec<_>>()),
        _ => {
            let mut to: Vec<Ix> = vec![b.numel(&shape[..rank - 3])];
            to.extend_from_slice(&shape[rank - 3..]);
            b.reshape(x, &to)
        }
    }
}
