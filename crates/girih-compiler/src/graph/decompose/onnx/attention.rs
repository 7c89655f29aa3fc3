//! Attention and rotary embedding as ONNX defines them.
//!
//! Attention stays two products around a softmax, which the rules of the loop stage make one kernel: grouped heads are a
//! map (`head // group`) on keys and values, and masks are selections of -inf.

use super::types::elem_of;
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::types::head_scale;
use crate::graph::decompose::{Call, Decomposition};
use crate::graph::ir::{self, Arg, Coord, ReduceOp, axis};
use crate::index::{Cmp, Cond, Ix};
use crate::num::DType;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "onnx_attention",
        handles: &["onnx.Attention"],
        doc: "Scaled dot-product attention over heads, with masks, a cache of keys and values, and a soft cap.\n\n\
              `y = attention(q, k, v, mask)` --> `s = dot q, k over d`, `s * scale`, `select(allowed, s + mask, -inf)`, \
              `p = softmax(s)`, `y = dot p, v over keys`\n\n\
              A row whose keys are all masked gives zeros.",
        run: attention,
    },
    Decomposition {
        name: "onnx_flex_attention",
        handles: &["onnx.FlexAttention.scores", "onnx.FlexAttention.result"],
        doc: "The two products of FlexAttention. Between them are what the model does to the scores, a softmax, and what it does \
              to the probabilities: graphs of the node, which are read in place.\n\n\
              `s = flex scores(q, k, v)` --> `s = dot q, k over d`, `s * scale`, in the type of the softmax\n\n\
              `y = flex result(q, k, v, p)` --> `y = dot p, v over keys`",
        run: |b, call| if call.name.ends_with("scores") { flex_scores(b, call) } else { flex_result(b, call) },
    },
    Decomposition {
        name: "onnx_rotary_embedding",
        handles: &["onnx.RotaryEmbedding"],
        doc: "Rotates pairs of features by angles that depend on the position.\n\n\
              `y = rotary(x, cos, sin)` --> `x * c + partner(x) * s`, where the partner is the other of the pair, \
              negated for the first\n\nSource: Su et al., RoFormer, 2021.",
        run: rotary,
    },
];

/// What decides which keys a query sees.
#[derive(Default)]
pub(in crate::graph::decompose) struct Masking {
    pub causal: bool,
    /// How far to the left and right of its own position a query sees.
    pub left: Option<i64>,
    pub right: Option<i64>,
    /// Keys before the first query: a known extent, or a vector over the batch (i64).
    pub offset: Offset,
    /// Valid keys of each element of the batch (i64), where keys may be padding.
    pub valid: Option<Arg>,
    /// Bool (where to attend) or added; broadcasts to `[batch, heads, queries, keys]`.
    pub mask: Option<Arg>,
    /// A score that every query sees beside those of keys, of a value that is 0; broadcasts to `[1, heads, 1, 1]`.
    pub sink: Option<Arg>,
}

#[derive(Clone)]
pub(in crate::graph::decompose) enum Offset {
    Known(Ix),
    Batch(Arg),
}

impl Default for Offset {
    fn default() -> Offset {
        Offset::Known(Ix::Const(0))
    }
}

/// The stages of attention that ONNX lets a model see.
pub(in crate::graph::decompose) struct Attended {
    /// `[batch, heads, queries, value size]`
    pub y: Arg,
    pub scores: Arg,
    pub capped: Arg,
    pub biased: Arg,
    pub weights: Arg,
    /// Of each row's scores, and of their exponentials: `[batch, heads, queries, 1]`.
    pub max: Arg,
    pub sum: Arg,
}

/// The heads of queries that share one of keys and values: `h / g` of `q [b, h, s, d]`, `k [b, g, t, d]`, `v [b, g, t, e]`.
fn group_of(b: &Builder<'_>, [q, k, v]: [Arg; 3]) -> Result<i64> {
    let (qs, ks, vs) = (b.shape(q), b.shape(k), b.shape(v));
    let fits = qs.len() == 4
        && ks.len() == 4
        && vs.len() == 4
        && b.same(&qs[3], &ks[3])
        && b.same_shape(&ks[..3], &vs[..3])
        && b.same(&qs[0], &ks[0]);
    match (fits, qs.get(1).and_then(Ix::as_const), ks.get(1).and_then(Ix::as_const)) {
        (true, Some(h), Some(g)) if g > 0 && h % g == 0 => Ok(h / g),
        (true, _, _) if b.same(&qs[1], &ks[1]) => Ok(1),
        _ => Err(Refusal::new(format!(
            "queries {}, keys {} and values {} do not fit",
            b.shape_text(&qs),
            b.shape_text(&ks),
            b.shape_text(&vs)
        ))),
    }
}

/// `q . k * scale`, `[b, h, s, t]` in `wide`.
fn scaled_scores(b: &mut Builder<'_>, [q, k]: [Arg; 2], group: i64, scale: f64, wide: Elem) -> Result<Arg> {
    let (qs, ks) = (b.shape(q), b.shape(k));
    // [b, h, s, t, d]
    let lined = vec![qs[0].clone(), qs[1].clone(), qs[2].clone(), Ix::Const(1), qs[3].clone()];
    let qx = b.map("q", q, lined, vec![axis(0), axis(1), axis(2), axis(4)]);
    let lined = vec![qs[0].clone(), qs[1].clone(), Ix::Const(1), ks[2].clone(), ks[3].clone()];
    let head = Ix::floor_div(axis(1), Ix::Const(group));
    let kx = b.map("k", k, lined, vec![axis(0), head, axis(3), axis(4)]);
    let scores = b.dot(qx, kx, wide, &[4], false)?;
    let factor = b.scalar_like(scores, scale);
    b.mul(scores, factor)
}

/// `p . v`, `[b, h, s, e]` in `sums`, of weights `[b, h, s, t]` in the type of the values.
fn weighted(b: &mut Builder<'_>, p: Arg, v: Arg, group: i64, sums: Elem) -> Result<Arg> {
    let (ps, vs) = (b.shape(p), b.shape(v));
    // [b, h, s, e, t]
    let lined = vec![ps[0].clone(), ps[1].clone(), ps[2].clone(), Ix::Const(1), ps[3].clone()];
    let px = b.map("p", p, lined, vec![axis(0), axis(1), axis(2), axis(4)]);
    let lined = vec![ps[0].clone(), ps[1].clone(), Ix::Const(1), vs[3].clone(), ps[3].clone()];
    let head = Ix::floor_div(axis(1), Ix::Const(group));
    let vx = b.map("v", v, lined, vec![axis(0), head, axis(4), axis(3)]);
    b.dot(px, vx, sums, &[4], false)
}

/// FlexAttention up to what the model may change first: the scores of `(q, k, v)`, in the type of the softmax.
fn flex_scores(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let [mut q, mut k, v] = [call.arg(0)?, call.arg(1)?, call.arg(2)?];
    let group = group_of(b, [q, k, v])?;
    let elem = b.elem(q);
    if let Some(other) = [q, k, v].map(|x| b.elem(x)).iter().find(|e| **e != elem || !e.dtype.is_base_float()) {
        return Err(Refusal::new(format!("queries, keys and values are floats of one type, not {elem} and {other}")));
    }
    let precision = match call.int_of("softmax_precision")?.map(elem_of).transpose()? {
        None if elem == Elem::F64 => Elem::F64,
        None => Elem::F32,
        Some(e) if e.dtype.is_base_float() => e,
        Some(e) => return Err(Refusal::new(format!("softmax_precision must be a float, not {e}"))),
    };
    let scale = head_scale(b, call.float_of("scale")?, q)?;
    if precision == Elem::F64 {
        (q, k) = (b.convert(q, precision)?, b.convert(k, precision)?);
    }
    let wide = b.wide(q);
    let scores = scaled_scores(b, [q, k], group, scale, wide)?;
    Ok(vec![b.convert(scores, precision)?])
}

/// Its result, from `(q, k, v, probabilities)`.
fn flex_result(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let [q, k, v, probabilities] = [call.arg(0)?, call.arg(1)?, call.arg(2)?, call.arg(3)?];
    let group = group_of(b, [q, k, v])?;
    let narrow = b.elem(v);
    let v = b.convert(v, b.elem(probabilities))?;
    let sums = b.wide(v);
    let y = weighted(b, probabilities, v, group, sums)?;
    Ok(vec![b.convert(y, narrow)?])
}

/// `q [b, h, s, d]`, `k [b, g, t, d]`, `v [b, g, t, e]` with `g` dividing `h`. Computed in `wide`.
pub(in crate::graph::decompose) fn attend(
    b: &mut Builder<'_>,
    [q, k, v]: [Arg; 3],
    scale: f64,
    softcap: f64,
    masking: &Masking,
    wide: Elem,
) -> Result<Attended> {
    let narrow = b.elem(v);
    let group = group_of(b, [q, k, v])?;
    let scores = scaled_scores(b, [q, k], group, scale, wide)?;
    let mut capped = scores;
    if softcap > 0.0 {
        let cap = b.scalar_like(scores, softcap);
        let part = b.div(scores, cap)?;
        let part = b.tanh(part)?;
        capped = b.mul(part, cap)?;
    }
    let (biased, seen) = apply_mask(b, capped, masking)?;
    let mut max = b.reduce(ReduceOp::Max, biased, &[3], true)?;
    let sink = masking.sink.map(|sink| b.convert(sink, b.elem(max))).transpose()?;
    if let Some(sink) = sink {
        max = b.max(max, sink)?;
    }
    let shifted = b.sub(biased, max)?;
    let exp = b.exp(shifted)?;
    let mut sum = b.reduce(ReduceOp::Sum, exp, &[3], true)?;
    if let Some(sink) = sink {
        let own = b.sub(sink, max)?;
        let own = b.exp(own)?;
        sum = b.add(sum, own)?;
    }
    let probabilities = b.div(exp, sum)?;
    // What sees nothing is told from the mask and not from the scores: the product stays one that can be streamed.
    let mut weights = probabilities;
    if let Some(seen) = seen {
        let zero = b.scalar_like(weights, 0.0);
        weights = b.select(seen, weights, zero)?;
    }
    let rounded = b.convert(probabilities, narrow)?;
    let sums = b.wide(v);
    let y = weighted(b, rounded, v, group, sums)?;
    let mut y = b.convert(y, narrow)?;
    if let Some(seen) = seen {
        let zero = b.scalar_like(y, 0.0);
        y = b.select(seen, y, zero)?;
    }
    Ok(Attended { y, scores, capped, biased, weights, max, sum })
}

/// The scores with what may not be seen at -inf, and (where that is not always so) whether a row sees anything.
pub(in crate::graph::decompose) fn apply_mask(
    b: &mut Builder<'_>,
    scores: Arg,
    m: &Masking,
) -> Result<(Arg, Option<Arg>)> {
    let shape = b.shape(scores);
    let mut out = scores;
    let mut allowed: Option<Arg> = None;
    let mut added = None;
    let mut may_be_empty = m.mask.is_some() || m.valid.is_some();
    if let Some(mask) = m.mask {
        if b.elem(mask).is_bool() {
            allowed = Some(mask);
        } else {
            let mask = b.convert(mask, b.elem(scores))?;
            out = b.add(out, mask)?;
            added = Some(mask);
        }
    }
    // A query's distance to the right of a key must lie in lo..=hi.
    let hi = m.left;
    let lo = if m.causal { Some(0) } else { m.right.map(|r| -r) };
    if lo.is_some() || hi.is_some() {
        let own = match &m.offset {
            Offset::Known(offset) => {
                let distance = Ix::sub(Ix::add(axis(2), offset.clone()), axis(3));
                may_be_empty |= hi.is_some();
                b.index(distance, Elem::I64, vec![Ix::Const(1), Ix::Const(1), shape[2].clone(), shape[3].clone()])
            }
            Offset::Batch(offset) => {
                may_be_empty = true;
                let distance = Ix::sub(axis(2), axis(3));
                let plane = vec![Ix::Const(1), Ix::Const(1), shape[2].clone(), shape[3].clone()];
                let distance = b.index(distance, Elem::I64, plane);
                let offset = b.unsqueeze(*offset, &[1, 2, 3])?;
                b.add(distance, offset)?
            }
        };
        for (bound, pred) in [(lo, Predicate::GreaterThanOrEqual), (hi, Predicate::LessThanOrEqual)] {
            if let Some(bound) = bound {
                let bound = ir::int_scalar(Elem::I64, bound);
                let near = b.compare(pred, own, bound)?;
                allowed = Some(match allowed {
                    Some(a) => b.and(a, near)?,
                    None => near,
                });
            }
        }
    }
    if let Some(valid) = m.valid {
        let at = b.index(axis(0), Elem::I64, vec![shape[3].clone()]);
        let valid = b.unsqueeze(valid, &[1, 2, 3])?;
        let inside = b.compare(Predicate::LessThan, at, valid)?;
        allowed = Some(match allowed {
            Some(a) => b.and(a, inside)?,
            None => inside,
        });
    }
    if let Some(allowed) = allowed {
        let lowest = b.scalar_like(out, f64::NEG_INFINITY);
        out = b.select(allowed, out, lowest)?;
    }
    if !b.same_shape(&b.shape(out), &shape) {
        return Err(Refusal::new(format!(
            "the mask does not broadcast to the scores, which are {}",
            b.shape_text(&shape)
        )));
    }
    if !may_be_empty {
        return Ok((out, None));
    }
    let mut visible = allowed;
    if let Some(added) = added {
        let lowest = b.scalar_like(added, f64::NEG_INFINITY);
        let above = b.compare(Predicate::NotEqual, added, lowest)?;
        visible = Some(match visible {
            Some(v) => b.and(v, above)?,
            None => above,
        });
    }
    let Some(visible) = visible else { return Ok((out, None)) };
    let last = b.rank(visible).checked_sub(1).ok_or_else(|| Refusal::new("a mask has no axis of keys"))?;
    Ok((out, Some(b.reduce(ReduceOp::Or, visible, &[last], true)?)))
}

/// `[batch, seq, heads * size]` as `[batch, heads, seq, size]`.
pub(super) fn split_heads(b: &mut Builder<'_>, x: Arg, heads: i64) -> Result<Arg> {
    let shape = b.shape(x);
    let size = match shape.get(2).and_then(Ix::as_const) {
        Some(hidden) if shape.len() == 3 && heads > 0 && hidden % heads == 0 => hidden / heads,
        _ => return Err(Refusal::new(format!("{} cannot be split into {heads} heads", b.shape_text(&shape)))),
    };
    let out = vec![shape[0].clone(), Ix::Const(heads), shape[1].clone(), Ix::Const(size)];
    let feature = Ix::add(Ix::mul(axis(1), Ix::Const(size)), axis(3));
    Ok(b.map("heads", x, out, vec![axis(0), axis(2), feature]))
}

/// `[batch, heads, seq, size]` as `[batch, seq, heads * size]`.
pub(super) fn merge_heads(b: &mut Builder<'_>, x: Arg) -> Result<Arg> {
    let s = b.shape(x);
    let y = b.transpose(x, &[0, 2, 1, 3])?;
    let hidden = b.simplify(&Ix::mul(s[1].clone(), s[3].clone()));
    b.reshape(y, &[s[0].clone(), s[2].clone(), hidden])
}

/// `(Q, K, V, attn_mask?, past_key?, past_value?, nonpad_kv_seqlen?)` to `(Y, present_key, present_value, scores)`.
fn attention(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut q, mut k, mut v) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let flat = b.rank(q) == 3;
    let out_elem = b.elem(q);
    if flat {
        let (heads, kv_heads) = (call.int("q_num_heads", 0)?, call.int("kv_num_heads", 0)?);
        q = split_heads(b, q, heads)?;
        k = split_heads(b, k, kv_heads)?;
        v = split_heads(b, v, kv_heads)?;
    }
    if b.rank(q) != 4 || b.rank(k) != 4 || b.rank(v) != 4 {
        return Err(Refusal::new("Attention needs queries, keys and values of one rank, 3 or 4"));
    }
    let mut masking = Masking { causal: call.flag("is_causal", false)?, ..Masking::default() };
    let window = |name: &str| Ok(call.int_of(name)?.filter(|w| *w >= 0));
    (masking.left, masking.right) = (window("left_window_size")?, window("right_window_size")?);
    if let (Some(past_key), Some(past_value)) = (call.opt(4), call.opt(5)) {
        masking.offset = Offset::Known(b.shape(past_key).get(2).cloned().unwrap_or(Ix::Const(0)));
        k = b.concat(&[past_key, k], 2)?;
        v = b.concat(&[past_value, v], 2)?;
    } else if let Some(valid) = call.opt(6) {
        let valid = b.convert(valid, Elem::I64)?;
        let queries = b.index(b.shape(q)[2].clone(), Elem::I64, vec![]);
        masking.offset = Offset::Batch(b.sub(valid, queries)?);
        masking.valid = Some(valid);
    }
    let keys = b.shape(k).get(2).cloned().unwrap_or(Ix::Const(0));
    if let Some(mask) = call.opt(3) {
        masking.mask = Some(fit_mask(b, mask, &keys)?);
    }
    let scale = head_scale(b, call.float_of("scale")?, q)?;
    let precision = call.int_of("softmax_precision")?.map(elem_of).transpose()?;
    let wide = match precision {
        Some(e) if e.dtype == DType::F64 => Elem::F64,
        _ => b.wide(q),
    };
    let a = attend(b, [q, k, v], scale, call.float("softcap", 0.0)?, &masking, wide)?;
    let shown = match call.int("qk_matmul_output_mode", 0)? {
        0 => a.scores,
        1 => a.capped,
        2 => a.biased,
        3 => a.weights,
        other => return Err(Refusal::new(format!("qk_matmul_output_mode must be 0, 1, 2 or 3, not {other}"))),
    };
    let shown = b.convert(shown, out_elem)?;
    let y = if flat { merge_heads(b, a.y)? } else { a.y };
    Ok(vec![b.convert(y, out_elem)?, k, v, shown])
}

/// A mask may be shorter than the keys: what it does not reach is not seen.
fn fit_mask(b: &mut Builder<'_>, mask: Arg, keys: &Ix) -> Result<Arg> {
    let shape = b.shape(mask);
    let Some(last) = shape.last() else { return Ok(mask) };
    let shorter = b.facts().decide(&Cond::new(last.clone(), Cmp::Lt, keys.clone()));
    if b.same(last, keys) || (last.is_const(1) && !matches!(shorter, Some(true))) {
        return Ok(mask);
    }
    if shorter != Some(true) {
        return Err(Refusal::new(format!(
            "a mask of shape {} does not fit {} keys",
            b.shape_text(&shape),
            b.graph.ix_text(keys)
        )));
    }
    let elem = b.elem(mask);
    let hidden = if elem.is_bool() { ir::int_scalar(elem, 0) } else { ir::scalar(elem, f64::NEG_INFINITY) };
    let none = vec![Ix::Const(0); shape.len()];
    let mut after = none.clone();
    after[shape.len() - 1] = b.simplify(&Ix::sub(keys.clone(), last.clone()));
    b.pad(mask, &none, &after, hidden)
}

/// `(X, cos_cache, sin_cache, position_ids?)`, with X `[b, heads, s, size]` or `[b, s, heads * size]`.
fn rotary(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, cos, sin) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    let flat = b.rank(x) == 3;
    if flat {
        x = split_heads(b, x, call.int("num_heads", 0)?)?;
    }
    let mut tables = vec![];
    for table in [cos, sin] {
        tables.push(match call.opt(3) {
            Some(positions) => {
                let mut shape = b.shape(positions);
                shape.extend(b.shape(table).last().cloned());
                let positions = b.convert(positions, Elem::I64)?;
                let positions = b.unsqueeze(positions, &[2])?;
                b.gather(table, &[positions], vec![Coord::Arg(1), Coord::Ix(axis(2))], shape)?
            }
            None => table,
        });
    }
    let y = rotate(b, x, tables[0], tables[1], call.flag("interleaved", false)?, call.int("rotary_embedding_dim", 0)?)?;
    Ok(vec![if flat { merge_heads(b, y)? } else { y }])
}

/// Rotates the first `dim` features (0: all) of `x [b, h, s, size]` by `cos` and `sin` of `[b, s, dim / 2]`.
pub(super) fn rotate(b: &mut Builder<'_>, x: Arg, cos: Arg, sin: Arg, interleaved: bool, dim: i64) -> Result<Arg> {
    let shape = b.shape(x);
    let size = match shape.get(3).and_then(Ix::as_const) {
        Some(size) if shape.len() == 4 => size,
        _ => return Err(Refusal::new(format!("the size of the heads of {} is not known", b.shape_text(&shape)))),
    };
    let dim = if dim == 0 { size } else { dim };
    let half = dim / 2;
    let table = b.shape(cos);
    if dim < 2 || dim > size || dim % 2 != 0 || table.len() != 3 || !table[2].is_const(half) {
        return Err(Refusal::new(format!(
            "{dim} rotated features of {size} do not fit angles of shape {}",
            b.shape_text(&table)
        )));
    }
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
    let whole = b.map("x", x, part.clone(), (0..4).map(axis).collect());
    let other = b.map("partner", x, part.clone(), vec![axis(0), axis(1), axis(2), partner]);
    let elem = b.elem(x);
    let (cos, sin) = (b.convert(cos, elem)?, b.convert(sin, elem)?);
    let cos = b.map("cos", cos, part.clone(), at.clone());
    let sin = b.map("sin", sin, part.clone(), at);
    // The first of a pair gets -partner * sin, the second +partner * sin.
    let first = if interleaved { Ix::modulo(axis(3), Ix::Const(2)) } else { Ix::floor_div(axis(3), Ix::Const(half)) };
    let line = vec![Ix::Const(1), Ix::Const(1), Ix::Const(1), Ix::Const(dim)];
    let which = b.index(first, Elem::I64, line);
    let zero = ir::int_scalar(Elem::I64, 0);
    let is_first = b.compare(Predicate::Equal, which, zero)?;
    let negated = b.neg(other)?;
    let signed = b.select(is_first, negated, other)?;
    let (straight, crossed) = (b.mul(whole, cos)?, b.mul(signed, sin)?);
    let turned = b.add(straight, crossed)?;
    if dim == size {
        return Ok(turned);
    }
    let rest = b.slice(x, 3, Ix::Const(dim), 1, Ix::Const(size - dim))?;
    b.concat(&[turned, rest], 3)
}
