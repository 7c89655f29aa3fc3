//! Attention as PyTorch has it.

use super::Call;
use super::expr::Tensor;
use super::onnx::attention::{Attended, Masking, attend, scale_of};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::index::Ix;

rules! {
    scaled_dot_product_attention "Softmax of scaled products of queries and keys, times values. Fewer heads of keys than of queries are read by \
         `head // group`; nothing is repeated in memory. Scores and softmax of f16 and bf16 are f32.\n\n\
         `y = sdpa(q, k, v)` --> `s = (dot q, k over d) * scale`, `s = select(allowed, s + mask, -inf)`, \
         `p = softmax(s)`, `y = dot p, v over keys`\n\n\
         A row whose keys are all masked gives 0, as in PyTorch. Refuses dropout." {
        "aten.scaled_dot_product_attention" => |c| attention(c).map(|(y, _)| y),
        "aten._scaled_dot_product_flash_attention_for_cpu" => |c| {
            let (y, a) = attention(c)?;
            Ok::<_, Refusal>([y, (a.max + a.sum.log()).squeeze(&[3])])
        },
        "aten._scaled_dot_product_attention_math" => |c| attention(c).map(|(y, a)| [y, a.weights.to(y.elem())]),
    }
}

/// `(query, key, value, attn_mask?)`, each `[.., heads, length, size]`.
fn attention<'g>(c: &Call<'g>) -> Result<(Tensor<'g>, Attended<'g>)> {
    let (q, k, v, cx) = (c.x(0), c.x(1), c.x(2), c.cx);
    if c.float("dropout_p", 0.0)? != 0.0 {
        return Err(Refusal::new("attention with dropout draws random numbers").help("call model.eval()"));
    }
    let rank = q.rank()?;
    if rank < 2 || k.rank()? != rank || v.rank()? != rank {
        return Err(Refusal::new(format!(
            "queries {}, keys {} and values {} must have the same rank, 2 or more",
            q.shape_text(),
            k.shape_text(),
            v.shape_text()
        )));
    }
    let mut out_shape = q.shape()?;
    out_shape[rank - 1] = v.shape()?[rank - 1].clone();
    let (q, k, v) = (four(q)?, four(k)?, four(v)?);
    // Keys and values may broadcast, and with enable_gqa have fewer heads.
    let (qs, groups) = (q.shape()?, k.shape()?[1].clone());
    let same = cx.same(&qs[1], &groups);
    if !same && !groups.is_const(1) && !c.flag("enable_gqa", false)? {
        return Err(Refusal::new(format!(
            "{} heads of queries do not fit {} heads of keys",
            cx.ix_text(&qs[1]),
            cx.ix_text(&groups)
        ))
        .help("pass enable_gqa=True where groups of query heads share keys"));
    }
    let spread = |x: Tensor<'g>| {
        let mut want = x.shape()?;
        want[0] = qs[0].clone();
        Ok(x.broadcast_to(&want))
    };
    let (k, v) = (spread(k)?, spread(v)?);
    let mask = match c.maybe(3) {
        // [queries, keys] or with heads and batch in front; three axes are those of three operand axes.
        Some(m) if m.rank()? == 3 && rank == 3 => Some(m.unsqueeze(&[0])),
        other => other,
    };
    let masking = Masking { causal: c.flag("is_causal", false)?, mask, ..Masking::default() };
    let (scale, q) = scaled_by_head(c.float_of("scale")?, q)?;
    let a = attend([q, k, v], scale, 0.0, &masking, q.wide_elem())?;
    Ok((a.y.reshape(&out_shape), a))
}

/// The scale of scores, and the queries; these are scaled where the size of a head is not known.
fn scaled_by_head<'g>(stated: Option<f64>, q: Tensor<'g>) -> Result<(f64, Tensor<'g>)> {
    let size = q.shape()?.get(3).cloned().unwrap_or(Ix::Const(1));
    if stated.is_some() || size.as_const().is_some() {
        return Ok((scale_of(q, stated)?, q));
    }
    let size = q.cx.extent(&Ix::max(size, Ix::Const(1)), Elem::F64);
    let scale = (1.0 / size.sqrt()).to(q.wide_elem());
    Ok((1.0, q.in_wide(|q| q * scale)))
}

/// `[batch, heads, length, size]`: leading axes are added, or more than two made one.
fn four(x: Tensor<'_>) -> Result<Tensor<'_>> {
    let shape = x.shape()?;
    Ok(match shape.len() {
        4 => x,
        rank @ (2 | 3) => x.unsqueeze(&(0..4 - rank).collect::<Vec<_>>()),
        rank => x.reshape(&[&[x.cx.numel(&shape[..rank - 3])], &shape[rank - 3..]].concat()),
    })
}
