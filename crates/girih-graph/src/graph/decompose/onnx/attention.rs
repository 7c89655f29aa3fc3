//! Attention and rotary embedding as ONNX defines them.
//!
//! Attention stays two products around a softmax, which the rules of the loop stage make one kernel: grouped heads are a
//! map (`head // group`) on keys and values, and masks are selections of -inf.

use super::types::elem_of;
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::Call;
use crate::graph::decompose::expr::Tensor;
use crate::graph::decompose::types::head_scale;
use crate::graph::ir::{Coord, ReduceOp, axis};
use crate::index::{Cmp, Cond, Ix};
use crate::num::DType;

rules! {
    onnx_attention "Scaled dot-product attention over heads, with masks, a cache of keys and values, and a soft cap.\n\n\
         `y = attention(q, k, v, mask)` --> `s = dot q, k over d`, `s * scale`, `select(allowed, s + mask, -inf)`, \
         `p = softmax(s)`, `y = dot p, v over keys`\n\n\
         A row whose keys are all masked gives zeros." {
        "onnx.Attention" => attention,
    }
    onnx_flex_attention "The two products of FlexAttention. Between them are a softmax and the model's functions of the scores and of \
         the probabilities: graphs of the node, which are read in place.\n\n\
         `s = flex scores(q, k, v)` --> `s = dot q, k over d`, `s * scale`, in the type of the softmax\n\n\
         `y = flex result(q, k, v, p)` --> `y = dot p, v over keys`" {
        "onnx.FlexAttention.scores" => flex_scores,
        "onnx.FlexAttention.result" => flex_result,
    }
    onnx_rotary_embedding "Rotates pairs of features by angles that depend on the position.\n\n\
         `y = rotary(x, cos, sin)` --> `x * c + partner(x) * s`, where the partner is the other of the pair, \
         negated for the first\n\nSource: Su et al., RoFormer, 2021." {
        "onnx.RotaryEmbedding" => rotary,
    }
}

/// The rules by which a query sees a key.
#[derive(Default)]
pub(in crate::graph::decompose) struct Masking<'g> {
    pub causal: bool,
    /// How far to the left and right of its own position a query sees.
    pub left: Option<i64>,
    pub right: Option<i64>,
    /// Keys before the first query: a known extent, or a vector over the batch (i64).
    pub offset: Offset<'g>,
    /// Valid keys of each element of the batch (i64), where keys may be padding.
    pub valid: Option<Tensor<'g>>,
    /// Bool (where to attend) or added; broadcasts to `[batch, heads, queries, keys]`.
    pub mask: Option<Tensor<'g>>,
    /// A score that every query sees beside those of keys, of a value that is 0; broadcasts to `[1, heads, 1, 1]`.
    pub sink: Option<Tensor<'g>>,
}

#[derive(Clone)]
pub(in crate::graph::decompose) enum Offset<'g> {
    Known(Ix),
    Batch(Tensor<'g>),
}

impl Default for Offset<'_> {
    fn default() -> Self {
        Offset::Known(Ix::Const(0))
    }
}

/// The stages of attention that ONNX lets a model see.
pub(in crate::graph::decompose) struct Attended<'g> {
    /// `[batch, heads, queries, value size]`
    pub y: Tensor<'g>,
    pub scores: Tensor<'g>,
    pub capped: Tensor<'g>,
    pub biased: Tensor<'g>,
    pub weights: Tensor<'g>,
    /// The maximum of each row's scores, and the sum of their exponentials: `[batch, heads, queries, 1]`.
    pub max: Tensor<'g>,
    pub sum: Tensor<'g>,
}

/// The heads of queries that share one of keys and values: `h / g` of `q [b, h, s, d]`, `k [b, g, t, d]`, `v [b, g, t, e]`.
fn group_of([q, k, v]: [Tensor<'_>; 3]) -> Result<i64> {
    let (qs, ks, vs, cx) = (q.shape()?, k.shape()?, v.shape()?, q.cx);
    let fits = qs.len() == 4
        && ks.len() == 4
        && vs.len() == 4
        && cx.same(&qs[3], &ks[3])
        && cx.same_shape(&ks[..3], &vs[..3])
        && cx.same(&qs[0], &ks[0]);
    match (fits, qs.get(1).and_then(Ix::as_const), ks.get(1).and_then(Ix::as_const)) {
        (true, Some(h), Some(g)) if g > 0 && h % g == 0 => Ok(h / g),
        (true, _, _) if cx.same(&qs[1], &ks[1]) => Ok(1),
        _ => Err(misfits([q, k, v])),
    }
}

/// The refusal of queries, keys and values whose shapes do not fit each other.
pub(super) fn misfits(all: [Tensor<'_>; 3]) -> Refusal {
    let [q, k, v] = all.map(Tensor::shape_text);
    Refusal::new(format!("queries {q}, keys {k} and values {v} do not fit"))
}

/// `q . k * scale`, `[b, h, s, t]` in `wide`.
fn scaled_scores<'g>(q: Tensor<'g>, k: Tensor<'g>, group: i64, scale: f64, wide: Elem) -> Result<Tensor<'g>> {
    let (qs, ks) = (q.shape()?, k.shape()?);
    // [b, h, s, t, d]
    let lined = vec![qs[0].clone(), qs[1].clone(), qs[2].clone(), Ix::Const(1), qs[3].clone()];
    let qx = q.map("q", lined, vec![axis(0), axis(1), axis(2), axis(4)]);
    let lined = vec![qs[0].clone(), qs[1].clone(), Ix::Const(1), ks[2].clone(), ks[3].clone()];
    let head = Ix::floor_div(axis(1), Ix::Const(group));
    let kx = k.map("k", lined, vec![axis(0), head, axis(3), axis(4)]);
    Ok(qx.dot(kx, wide, &[4]) * scale)
}

/// `p . v`, `[b, h, s, e]` in `sums`, of weights `[b, h, s, t]` in the type of the values.
fn weighted<'g>(p: Tensor<'g>, v: Tensor<'g>, group: i64, sums: Elem) -> Result<Tensor<'g>> {
    let (ps, vs) = (p.shape()?, v.shape()?);
    // [b, h, s, e, t]
    let lined = vec![ps[0].clone(), ps[1].clone(), ps[2].clone(), Ix::Const(1), ps[3].clone()];
    let px = p.map("p", lined, vec![axis(0), axis(1), axis(2), axis(4)]);
    let lined = vec![ps[0].clone(), ps[1].clone(), Ix::Const(1), vs[3].clone(), ps[3].clone()];
    let head = Ix::floor_div(axis(1), Ix::Const(group));
    let vx = v.map("v", lined, vec![axis(0), head, axis(4), axis(3)]);
    Ok(px.dot(vx, sums, &[4]))
}

/// FlexAttention up to what the model may change first: the scores of `(q, k, v)`, in the type of the softmax.
fn flex_scores<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let [q, k, v] = [c.x(0), c.x(1), c.x(2)];
    let group = group_of([q, k, v])?;
    let elem = q.elem();
    if let Some(other) = [q, k, v].map(Tensor::elem).iter().find(|e| **e != elem || !e.dtype.is_base_float()) {
        return Err(Refusal::new(format!("queries, keys and values are floats of one type, not {elem} and {other}")));
    }
    let precision = match c.int_of("softmax_precision")?.map(elem_of).transpose()? {
        None if elem == Elem::F64 => Elem::F64,
        None => Elem::F32,
        Some(e) if e.dtype.is_base_float() => e,
        Some(e) => return Err(Refusal::new(format!("softmax_precision must be a float, not {e}"))),
    };
    let scale = scale_of(q, c.float_of("scale")?)?;
    let [q, k] = [q, k].map(|x| if precision == Elem::F64 { x.to(precision) } else { x });
    Ok(scaled_scores(q, k, group, scale, q.wide_elem())?.to(precision))
}

/// The scale of attention scores: see [`head_scale`].
pub(in crate::graph::decompose) fn scale_of(q: Tensor<'_>, stated: Option<f64>) -> Result<f64> {
    q.cx.read(|b| head_scale(b, stated, q.arg))
}

/// Its result, from `(q, k, v, probabilities)`.
fn flex_result<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let [q, k, v, probabilities] = [c.x(0), c.x(1), c.x(2), c.x(3)];
    let group = group_of([q, k, v])?;
    let wide = v.to(probabilities.elem());
    Ok(weighted(probabilities, wide, group, wide.wide_elem())?.to(v.elem()))
}

/// `q [b, h, s, d]`, `k [b, g, t, d]`, `v [b, g, t, e]` with `g` dividing `h`. Computed in `wide`.
pub(in crate::graph::decompose) fn attend<'g>(
    [q, k, v]: [Tensor<'g>; 3],
    scale: f64,
    softcap: f64,
    masking: &Masking<'g>,
    wide: Elem,
) -> Result<Attended<'g>> {
    let group = group_of([q, k, v])?;
    let scores = scaled_scores(q, k, group, scale, wide)?;
    let capped = if softcap > 0.0 { (scores / softcap).tanh() * softcap } else { scores };
    let (biased, seen) = apply_mask(capped, masking)?;
    let mut max = biased.greatest(&[3], true);
    let sink = masking.sink.map(|sink| sink.to(max.elem()));
    if let Some(sink) = sink {
        max = max.max(sink);
    }
    let exp = (biased - max).exp();
    let mut sum = exp.sum(&[3], true);
    if let Some(sink) = sink {
        sum = sum + (sink - max).exp();
    }
    let probabilities = exp / sum;
    // A row that sees nothing is told from the mask and not from the scores: the product stays one that can be streamed.
    let of_seen = |x: Tensor<'g>| seen.map_or(x, |seen| seen.select(x, 0.0));
    let weights = of_seen(probabilities);
    let y = of_seen(weighted(probabilities.to(v.elem()), v, group, v.wide_elem())?.to(v.elem()));
    Ok(Attended { y, scores, capped, biased, weights, max, sum })
}

/// The scores with what may not be seen at -inf, and (where that is not always so) whether a row sees anything.
pub(in crate::graph::decompose) fn apply_mask<'g>(
    scores: Tensor<'g>,
    m: &Masking<'g>,
) -> Result<(Tensor<'g>, Option<Tensor<'g>>)> {
    let (shape, cx) = (scores.shape()?, scores.cx);
    let both = |x: Option<Tensor<'g>>, y: Tensor<'g>| Some(x.map_or(y, |x| x & y));
    let mut out = scores;
    let mut allowed: Option<Tensor<'g>> = None;
    let mut added = None;
    let mut may_be_empty = m.mask.is_some() || m.valid.is_some();
    if let Some(mask) = m.mask {
        if mask.elem().is_bool() {
            allowed = Some(mask);
        } else {
            let mask = mask.to(scores.elem());
            out = out + mask;
            added = Some(mask);
        }
    }
    // A query's distance to the right of a key must lie in lo..=hi.
    let hi = m.left;
    let lo = if m.causal { Some(0) } else { m.right.map(|r| -r) };
    if lo.is_some() || hi.is_some() {
        let plane = vec![Ix::Const(1), Ix::Const(1), shape[2].clone(), shape[3].clone()];
        let own = match &m.offset {
            Offset::Known(offset) => {
                may_be_empty |= hi.is_some();
                cx.index(Ix::sub(Ix::add(axis(2), offset.clone()), axis(3)), Elem::I64, plane)
            }
            Offset::Batch(offset) => {
                may_be_empty = true;
                cx.index(Ix::sub(axis(2), axis(3)), Elem::I64, plane) + offset.unsqueeze(&[1, 2, 3])
            }
        };
        if let Some(lo) = lo {
            allowed = both(allowed, own.at_least(lo));
        }
        if let Some(hi) = hi {
            allowed = both(allowed, own.at_most(hi));
        }
    }
    if let Some(valid) = m.valid {
        let at = cx.index(axis(0), Elem::I64, vec![shape[3].clone()]);
        allowed = both(allowed, at.below(valid.unsqueeze(&[1, 2, 3])));
    }
    if let Some(allowed) = allowed {
        out = allowed.select(out, f64::NEG_INFINITY);
    }
    if !cx.same_shape(&out.shape()?, &shape) {
        let scores = scores.shape_text();
        return Err(Refusal::new(format!("the mask does not broadcast to the scores, which are {scores}")));
    }
    if !may_be_empty {
        return Ok((out, None));
    }
    let visible = match added {
        Some(added) => both(allowed, added.differs(f64::NEG_INFINITY)),
        None => allowed,
    };
    let Some(visible) = visible else { return Ok((out, None)) };
    let last = visible.rank()?.checked_sub(1).ok_or_else(|| Refusal::new("a mask has no axis of keys"))?;
    Ok((out, Some(visible.reduce(ReduceOp::Or, &[last], true))))
}

/// `[batch, seq, heads * size]` as `[batch, heads, seq, size]`.
pub(super) fn split_heads(x: Tensor<'_>, heads: i64) -> Result<Tensor<'_>> {
    let shape = x.shape()?;
    let size = match shape.get(2).and_then(Ix::as_const) {
        Some(hidden) if shape.len() == 3 && heads > 0 && hidden % heads == 0 => hidden / heads,
        _ => return Err(Refusal::new(format!("{} cannot be split into {heads} heads", x.shape_text()))),
    };
    let out = vec![shape[0].clone(), Ix::Const(heads), shape[1].clone(), Ix::Const(size)];
    let feature = Ix::add(Ix::mul(axis(1), Ix::Const(size)), axis(3));
    Ok(x.map("heads", out, vec![axis(0), axis(2), feature]))
}

/// `[batch, heads, seq, size]` as `[batch, seq, heads * size]`.
pub(super) fn merge_heads(x: Tensor<'_>) -> Result<Tensor<'_>> {
    let s = x.shape()?;
    let y = x.transpose(&[0, 2, 1, 3]);
    let hidden = x.cx.simplify(&Ix::mul(s[1].clone(), s[3].clone()));
    Ok(y.reshape(&[s[0].clone(), s[2].clone(), hidden]))
}

/// The extent of an axis, 0 where there is none.
pub(super) fn extent_or_none(x: Tensor<'_>, axis: usize) -> Result<Ix> {
    Ok(x.shape()?.get(axis).cloned().unwrap_or(Ix::Const(0)))
}

/// `(Q, K, V, attn_mask?, past_key?, past_value?, nonpad_kv_seqlen?)` to `(Y, present_key, present_value, scores)`.
fn attention<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 4]> {
    let (mut q, mut k, mut v, cx) = (c.x(0), c.x(1), c.x(2), c.cx);
    let flat = q.rank()? == 3;
    if flat {
        let (heads, kv_heads) = (c.int("q_num_heads", 0)?, c.int("kv_num_heads", 0)?);
        (q, k, v) = (split_heads(q, heads)?, split_heads(k, kv_heads)?, split_heads(v, kv_heads)?);
    }
    if q.rank()? != 4 || k.rank()? != 4 || v.rank()? != 4 {
        return Err(Refusal::new("Attention needs queries, keys and values of one rank, 3 or 4"));
    }
    let mut masking = Masking { causal: c.flag("is_causal", false)?, ..Masking::default() };
    let window = |name: &str| Ok(c.int_of(name)?.filter(|w| *w >= 0));
    (masking.left, masking.right) = (window("left_window_size")?, window("right_window_size")?);
    if let (Some(past_key), Some(past_value)) = (c.maybe(4), c.maybe(5)) {
        masking.offset = Offset::Known(extent_or_none(past_key, 2)?);
        (k, v) = (cx.concat(&[past_key, k], 2), cx.concat(&[past_value, v], 2));
    } else if let Some(valid) = c.maybe(6) {
        let valid = valid.to(Elem::I64);
        masking.offset = Offset::Batch(valid - cx.index(q.shape()?[2].clone(), Elem::I64, vec![]));
        masking.valid = Some(valid);
    }
    let keys = extent_or_none(k, 2)?;
    masking.mask = c.maybe(3).map(|mask| fit_mask(mask, &keys)).transpose()?;
    let scale = scale_of(q, c.float_of("scale")?)?;
    let precision = c.int_of("softmax_precision")?.map(elem_of).transpose()?;
    let wide = if precision.is_some_and(|e| e.dtype == DType::F64) { Elem::F64 } else { q.wide_elem() };
    let a = attend([q, k, v], scale, c.float("softcap", 0.0)?, &masking, wide)?;
    let shown = match c.int("qk_matmul_output_mode", 0)? {
        0 => a.scores,
        1 => a.capped,
        2 => a.biased,
        3 => a.weights,
        other => return Err(Refusal::new(format!("qk_matmul_output_mode must be 0, 1, 2 or 3, not {other}"))),
    };
    let shown = shown.to(c.x(0).elem());
    let y = if flat { merge_heads(a.y)? } else { a.y };
    Ok([y.to(c.x(0).elem()), k, v, shown])
}

/// A mask may be shorter than the keys: what it does not reach is not seen.
fn fit_mask<'g>(mask: Tensor<'g>, keys: &Ix) -> Result<Tensor<'g>> {
    let (shape, cx) = (mask.shape()?, mask.cx);
    let Some(last) = shape.last() else { return Ok(mask) };
    let shorter = cx.read(|b| b.facts().decide(&Cond::new(last.clone(), Cmp::Lt, keys.clone())));
    if cx.same(last, keys) || (last.is_const(1) && !matches!(shorter, Some(true))) {
        return Ok(mask);
    }
    if shorter != Some(true) {
        let (mask, keys) = (mask.shape_text(), cx.ix_text(keys));
        return Err(Refusal::new(format!("a mask of shape {mask} does not fit {keys} keys")));
    }
    let hidden = mask.like(if mask.elem().is_bool() { 0.0 } else { f64::NEG_INFINITY });
    let none = vec![Ix::Const(0); shape.len()];
    let mut after = none.clone();
    after[shape.len() - 1] = cx.simplify(&Ix::sub(keys.clone(), last.clone()));
    Ok(mask.pad(&none, &after, hidden))
}

/// Rows `at [batch, seq]` of a table `[positions, n]`.
pub(super) fn rows_at<'g>(table: Tensor<'g>, at: Tensor<'g>) -> Result<Tensor<'g>> {
    let mut shape = at.shape()?;
    let rank = shape.len();
    shape.extend(table.shape()?.last().cloned());
    let at = at.to(Elem::I64).unsqueeze(&[rank]);
    Ok(table.gather(&[at], vec![Coord::Arg(1), Coord::Ix(axis(rank))], shape))
}

/// `(X, cos_cache, sin_cache, position_ids?)`, with X `[b, heads, s, size]` or `[b, s, heads * size]`.
fn rotary<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let flat = c.x(0).rank()? == 3;
    let x = if flat { split_heads(c.x(0), c.int("num_heads", 0)?)? } else { c.x(0) };
    let tables = [c.x(1), c.x(2).of_shape("the table of sines", &c.x(1).shape()?)?];
    let angles = match c.maybe(3) {
        Some(positions) => [rows_at(tables[0], positions)?, rows_at(tables[1], positions)?],
        None => tables,
    };
    let y = rotate(x, angles, c.flag("interleaved", false)?, c.int("rotary_embedding_dim", 0)?)?;
    if flat { merge_heads(y) } else { Ok(y) }
}

/// Rotates the first `dim` features (0: all) of `x [b, h, s, size]` by `cos` and `sin` of `[b, s, dim / 2]`.
pub(super) fn rotate<'g>(x: Tensor<'g>, angles: [Tensor<'g>; 2], interleaved: bool, dim: i64) -> Result<Tensor<'g>> {
    let shape = x.shape()?;
    let size = match shape.get(3).and_then(Ix::as_const) {
        Some(size) if shape.len() == 4 => size,
        _ => return Err(Refusal::new(format!("the size of the heads of {} is not known", x.shape_text()))),
    };
    let dim = if dim == 0 { size } else { dim };
    let half = dim / 2;
    let table = angles[0].shape()?;
    let fits = (2..=size).contains(&dim)
        && dim % 2 == 0
        && table.len() == 3
        && table[2].is_const(half)
        // One row of angles serves all of the batch.
        && (table[0].is_const(1) || x.cx.same(&table[0], &shape[0]))
        && x.cx.same(&table[1], &shape[2]);
    if !fits {
        return Err(Refusal::new(format!(
            "{dim} rotated features of {} do not fit angles of shape {}",
            x.shape_text(),
            angles[0].shape_text()
        )));
    }
    angles[1].of_shape("the table of sines", &table)?;
    let mut part = shape.clone();
    part[3] = Ix::Const(dim);
    // Features 2i and 2i+1 are a pair, or i and i + half.
    let (angle, partner) = if interleaved {
        let pair = Ix::floor_div(axis(3), Ix::Const(2));
        let side = Ix::modulo(axis(3), Ix::Const(2));
        (pair, Ix::sub(Ix::add(axis(3), Ix::Const(1)), Ix::mul(side, Ix::Const(2))))
    } else {
        let half = Ix::Const(half);
        (Ix::modulo(axis(3), half.clone()), Ix::modulo(Ix::add(axis(3), half), Ix::Const(dim)))
    };
    let spread = |d: usize| if table[d].is_const(1) { Ix::Const(0) } else { axis(if d == 0 { 0 } else { 2 }) };
    let at = vec![spread(0), spread(1), angle];
    let whole = x.map("x", part.clone(), (0..4).map(axis).collect());
    let other = x.map("partner", part.clone(), vec![axis(0), axis(1), axis(2), partner]);
    let [cos, sin] = angles.map(|angle| angle.to(x.elem()));
    let (cos, sin) = (cos.map("cos", part.clone(), at.clone()), sin.map("sin", part, at));
    // The first of a pair gets -partner * sin, the second +partner * sin.
    let first = if interleaved { Ix::modulo(axis(3), Ix::Const(2)) } else { Ix::floor_div(axis(3), Ix::Const(half)) };
    let line = vec![Ix::Const(1), Ix::Const(1), Ix::Const(1), Ix::Const(dim)];
    let is_first = x.cx.index(first, Elem::I64, line).equals(0);
    let signed = is_first.select(-other, other);
    let turned = whole * cos + signed * sin;
    if dim == size {
        return Ok(turned);
    }
    Ok(x.cx.concat(&[turned, x.slice(3, Ix::Const(dim), 1, Ix::Const(size - dim))], 3))
}
