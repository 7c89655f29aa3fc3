//! Operators of the domain `com.microsoft` that exported transformers hold.

use super::attention::{
    Attended, Masking, Offset, attend, extent_or_none, merge_heads, misfits, rotate, rows_at, scale_of, split_heads,
};
use crate::graph::Elem;
use crate::graph::build::{Refusal, Result};
use crate::graph::decompose::activations::{gelu, sigmoid};
use crate::graph::decompose::expr::{Tensor, along};
use crate::graph::decompose::norm::{affine, inverse_rms, standardize};
use crate::graph::decompose::{Call, normal_axis};
use crate::graph::ir::axis;
use crate::index::Ix;

rules! {
    contrib_skip_norm "Layer norm or root-mean-square norm of a sum of two (and a bias).\n\n\
         `y, .., s = skip_norm(x, skip, w)` --> `s = x + skip`, `y = norm(s) * w`" {
        "com.microsoft.SimplifiedLayerNormalization" | "onnx.SimplifiedLayerNormalization" => simple_norm,
        "com.microsoft.SkipLayerNormalization" => |c| skip_norm(c, c.maybe(4)),
        "com.microsoft.SkipSimplifiedLayerNormalization" => |c| skip_norm(c, c.maybe(3)),
    }
    contrib_gelu "GELU of a sum with a bias: exact, by the tanh formula, or `x * sigmoid(alpha * x)`.\n\n\
         `y = bias_gelu(x, b)` --> `z = x + b`, `y = z * fma(erf(z / sqrt 2), 1/2, 1/2)`" {
        "com.microsoft.Gelu" | "com.microsoft.BiasGelu" => |c| gelu(biased(c), false),
        "com.microsoft.FastGelu" => |c| gelu(biased(c), true),
        "com.microsoft.QuickGelu" => |c| c.float("alpha", 1.702).map(|alpha| biased(c).in_wide(|x| x * sigmoid(x * alpha))),
    }
    contrib_fused_matmul "A scaled product of operands that may be transposed.\n\n`y = fused_matmul(a, b)` --> `y = (a @ b) * alpha`" {
        "com.microsoft.FusedMatMul" => fused_matmul,
    }
    contrib_rotary_embedding "Rotary embedding at given positions, or counted from one.\n\n\
         `y = rotary(x, positions, cos, sin)` --> `cos[positions]`, `sin[positions]`, rotation of pairs" {
        "com.microsoft.RotaryEmbedding" => rotary,
    }
    contrib_multi_head_attention "Attention over packed heads.\n\n`y = mha(q, k, v)` --> heads split, scores, softmax, product, heads merged\n\n\
         Refuses packed keys and values." {
        "com.microsoft.MultiHeadAttention" => multi_head,
    }
    contrib_decoder_masked_attention "Attention of one new token over a cache that is as long as the longest sequence.\n\n\
         `y = decoder_masked_attention(q, k, v, past)` --> `y = softmax(q @ present_k^T) @ present_v`\n\n\
         Refuses beams, and a mask of keys." {
        "com.microsoft.DecoderMaskedMultiHeadAttention" => decoder_masked,
    }
    contrib_attention "A projection to queries, keys and values at once, and attention over their heads.\n\n\
         `y = attention(x, w, b)` --> `q, k, v = split(x @ w + b)`, heads, scores, softmax, product\n\n\
         Refuses rotary embedding and a past that shares its memory." {
        "com.microsoft.Attention" => packed_attention,
    }
    contrib_embed_norm "The sum of a word's, its position's and its segment's rows, normalised.\n\n\
         `y = embed_norm(ids, segments, ..)` --> `s = words[ids] + positions[p] + segments[t]`, `y = norm(s)*w + b`" {
        "com.microsoft.EmbedLayerNormalization" => embed_norm,
    }
    contrib_group_query_attention "Causal attention with fewer heads of keys, a cache, and rotary embedding at its inputs. Each element of the \
         batch appends behind its own length.\n\n\
         `y, pk, pv = gqa(q, k, v, past.., lengths)` --> `rotary(q), rotary(k)`, `pk = select(t < past, past, new)`, \
         attention" {
        "com.microsoft.GroupQueryAttention" => group_query,
    }
}

/// The axes from `axis` on.
fn last_axes(c: &Call<'_>, x: Tensor<'_>) -> Result<Vec<usize>> {
    let rank = x.rank()?;
    Ok((normal_axis(c.int("axis", -1)?, rank)?..rank).collect())
}

/// `(x, gamma)` to `(y, inverse)`
fn simple_norm<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 2]> {
    let (x, axes) = (c.x(0).wide(), last_axes(c, c.x(0))?);
    let (_, inverse) = inverse_rms(x, &axes, c.float("epsilon", 1e-5)?);
    Ok([affine((x * inverse).to(c.x(0).elem()), Some(c.x(1)), None), inverse])
}

/// `(x, skip, gamma, beta?, bias?)`, or without beta, to `(y, mean, inverse, sum)`.
fn skip_norm<'g>(c: &Call<'g>, bias: Option<Tensor<'g>>) -> Result<[Tensor<'g>; 4]> {
    let narrow = c.x(0).elem();
    let sum = c.x(0) + c.x(1).into_shape_of(c.x(0));
    let sum = bias.map_or(sum, |bias| sum + bias.into_shape_of(sum));
    let (axes, eps) = (last_axes(c, sum)?, c.float("epsilon", 1e-12)?);
    let x = sum.wide();
    Ok(if c.name.contains("Simplified") {
        let (mean, inverse) = inverse_rms(x, &axes, eps);
        [affine((x * inverse).to(narrow), Some(c.x(2)), None), mean, inverse, sum]
    } else {
        let s = standardize(x, &axes, eps);
        [affine(s.y.to(narrow), Some(c.x(2)), c.maybe(3)), s.mean, s.inverse, sum]
    })
}

/// The first operand and a bias, where there is one.
fn biased<'g>(c: &Call<'g>) -> Tensor<'g> {
    c.maybe(1).map_or(c.x(0), |bias| c.x(0) + bias.into_shape_of(c.x(0)))
}

fn fused_matmul<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let operand = |i: usize, name: &str| {
        let turned = c.flag(name, false)? && c.x(i).rank()? >= 2;
        Ok(if turned { c.x(i).transposed() } else { c.x(i) })
    };
    let (x, y) = (operand(0, "transA")?, operand(1, "transB")?);
    if c.flag("transBatchA", false)? || c.flag("transBatchB", false)? {
        return Err(Refusal::new("FusedMatMul that transposes batches is not supported"));
    }
    Ok(x.matmul(y) * c.float("alpha", 1.0)?)
}

/// Positions `start[batch] + 0, 1, ..` of `seq` tokens.
fn counted<'g>(start: Tensor<'g>, seq: &Ix) -> Result<Tensor<'g>> {
    let start = start.to(Elem::I64);
    let start = if start.rank()? == 2 { start } else { start.unsqueeze(&[1]) };
    Ok(start + start.cx.index(axis(1), Elem::I64, vec![Ix::Const(1), seq.clone()]))
}

/// `(x, position_ids, cos, sin)`
fn rotary<'g>(c: &Call<'g>) -> Result<Tensor<'g>> {
    let (mut x, positions) = (c.x(0), c.x(1));
    let flat = x.rank()? == 3;
    if flat {
        let half = c.x(2).known_extent(1, "the size of a head")?;
        let hidden = x.known_extent(2, "the hidden size")?;
        let heads = match c.int("num_heads", 0)? {
            0 => hidden / (2 * half).max(1),
            n => n,
        };
        x = split_heads(x, heads)?;
    }
    let seq = x.shape()?.get(2).cloned().unwrap_or(Ix::Const(1));
    let positions = if positions.rank()? == 1 { counted(positions, &seq)? } else { positions };
    let angles = [rows_at(c.x(2), positions)?, rows_at(c.x(3), positions)?];
    let y = rotate(x, angles, c.flag("interleaved", false)?, c.int("rotary_embedding_dim", 0)?)?;
    let scale = c.float("scale", 1.0)?;
    let y = if scale == 1.0 { y } else { y * scale };
    if flat { merge_heads(y) } else { Ok(y) }
}

/// Attention with the scale of the operator, where it is not 0.
fn attended<'g>(c: &Call<'g>, [q, k, v]: [Tensor<'g>; 3], masking: &Masking<'g>) -> Result<Attended<'g>> {
    let scale = scale_of(q, c.float_of("scale")?.filter(|s| *s != 0.0))?;
    attend([q, k, v], scale, c.float("softcap", 0.0)?, masking, q.wide_elem())
}

/// `(query, key, value, mask_index?, attention_bias?, past_key?, past_value?, past_sequence_length?, beam_width?,
/// cache_indirection?, bias?)`
fn decoder_masked<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    let heads = c.int("num_heads", 0)?;
    if c.maybe(3).is_some() || c.maybe(8).is_some() || c.maybe(9).is_some() {
        return Err(Refusal::new("DecoderMaskedMultiHeadAttention with a mask of keys or with beams is not supported"));
    }
    let [q, k, v] = add_bias(c.maybe(10), [c.x(0), c.x(1), c.x(2)])?;
    let q = split_heads(q, heads)?;
    let mut masking = Masking { mask: c.maybe(4), ..Masking::default() };
    let (k, v) = match (c.maybe(5), c.maybe(6), c.maybe(7)) {
        // Keys of another sequence, all of them.
        (None, None, _) if k.rank()? == 4 => (k, v),
        (Some(past_key), Some(past_value), Some(length)) => {
            let batch = q.shape()?[0].clone();
            let before = length.to(Elem::I64).reshape(&[]).broadcast_to(&[batch]);
            let total = extent_or_none(past_key, 2)?;
            (masking.causal, masking.offset) = (true, Offset::Batch(before));
            let [k, v] = [split_heads(k, heads)?, split_heads(v, heads)?];
            let one = |x: Tensor<'g>| x.shape().map(|shape| shape[2].is_const(1));
            if !one(q)? || !one(k)? || !one(v)? {
                return Err(Refusal::new("DecoderMaskedMultiHeadAttention takes one new token"));
            }
            let cache = |new, past| append(new, Some(past), before, [&total, &total]);
            (cache(k, past_key)?, cache(v, past_value)?)
        }
        _ => return Err(Refusal::new("DecoderMaskedMultiHeadAttention needs a cache and how much of it is used")),
    };
    Ok([merge_heads(attended(c, [q, k, v], &masking)?.y)?, k, v])
}

/// Adds one vector: of queries, keys and values in turn.
fn add_bias<'g>(bias: Option<Tensor<'g>>, mut all: [Tensor<'g>; 3]) -> Result<[Tensor<'g>; 3]> {
    let Some(bias) = bias else { return Ok(all) };
    let mut start = Ix::Const(0);
    for x in &mut all {
        let width = x.shape()?.last().cloned().unwrap_or(Ix::Const(0));
        let part = bias.slice(0, start.clone(), 1, width.clone());
        start = bias.cx.simplify(&Ix::add(start, width));
        if x.rank()? == 3 {
            *x = *x + part;
        }
    }
    Ok(all)
}

/// `(query, key, value, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?)`
fn multi_head<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    let heads = c.int("num_heads", 0)?;
    let (Some(k), Some(v), 3) = (c.maybe(1), c.maybe(2), c.x(0).rank()?) else {
        return Err(Refusal::new("MultiHeadAttention with packed queries, keys and values is not supported"));
    };
    let [q, k, v] = add_bias(c.maybe(3), [c.x(0), k, v])?;
    let q = split_heads(q, heads)?;
    // Keys and values of cross attention come with heads apart.
    let apart = |x: Tensor<'g>| if x.rank()? == 4 { Ok(x) } else { split_heads(x, heads) };
    let (mut k, mut v) = (apart(k)?, apart(v)?);
    let mut masking = Masking { causal: c.flag("unidirectional", false)?, ..Masking::default() };
    if let (Some(past_key), Some(past_value)) = (c.maybe(6), c.maybe(7)) {
        masking.offset = Offset::Known(extent_or_none(past_key, 2)?);
        (k, v) = (c.cx.concat(&[past_key, k], 2), c.cx.concat(&[past_value, v], 2));
    }
    masking.mask = added(c, c.maybe(4), c.maybe(5), [q, k])?;
    Ok([merge_heads(attended(c, [q, k, v], &masking)?.y)?, k, v])
}

/// The numbers added to scores: a bias, and for keys that are padding `mask_filter_value`, a finite number: a query that sees
/// nothing but padding takes the mean of it, as in ONNX Runtime. Padding is given as a key for each pair or for all queries, as
/// the number of keys, or as the end and the start of the keys.
fn added<'g>(
    c: &Call<'g>,
    padding: Option<Tensor<'g>>,
    bias: Option<Tensor<'g>>,
    [q, k]: [Tensor<'g>; 2],
) -> Result<Option<Tensor<'g>>> {
    let Some(padding) = padding else { return Ok(bias) };
    let (batch, keys) = (q.shape()?[0].clone(), k.shape()?[2].clone());
    let length = padding.shape()?.first().cloned().unwrap_or(Ix::Const(0));
    let twice = c.cx.simplify(&Ix::mul(batch.clone(), Ix::Const(2)));
    let key = c.cx.index(axis(0), Elem::I64, vec![keys]);
    let row = |ends: Tensor<'g>| ends.to(Elem::I64).unsqueeze(&[1, 2, 3]);
    let there = match padding.rank()? {
        1 if c.cx.same(&length, &batch) => key.below(row(padding)),
        1 if c.cx.same(&length, &twice) => {
            let part = |start: Ix| row(padding.slice(0, start, 1, batch.clone()));
            let (end, start) = (part(Ix::Const(0)), part(batch.clone()));
            key.below(end) & key.at_least(start)
        }
        2 => padding.above(0).unsqueeze(&[1, 2]),
        3 => padding.above(0).unsqueeze(&[1]),
        _ => return Err(Refusal::new("a padding mask of this form is not supported")),
    };
    let filter = c.float("mask_filter_value", -10_000.0)?;
    let wide = q.wide_elem();
    let padding = there.select(c.cx.number(wide, 0.0), filter);
    Ok(Some(bias.map_or(padding, |bias| padding + bias.to(wide))))
}

/// `(x, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?)` to `(y, present)`
fn packed_attention<'g>(c: &Call<'g>) -> Result<Vec<Tensor<'g>>> {
    let (heads, rotary) = (c.int("num_heads", 0)?, c.flag("do_rotary", false)?);
    if rotary || c.flag("past_present_share_buffer", false)? {
        return Err(Refusal::new("this form of Attention is not supported"));
    }
    let all = c.x(0).matmul(c.x(1));
    let all = c.maybe(2).map_or(all, |bias| all + bias);
    let shape = all.shape()?;
    let (Some(width), 3) = (shape.last().and_then(Ix::as_const), shape.len()) else {
        return Err(Refusal::new("Attention needs weights of a known shape and an input of rank 3"));
    };
    let sizes = match c.ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 && sizes.iter().sum::<i64>() == width => sizes,
        Some(_) => return Err(Refusal::new("qkv_hidden_sizes do not fit the weights")),
        None => vec![width / 3; 3],
    };
    let mut start = 0;
    let mut part = |size: i64| {
        let part = all.slice(2, Ix::Const(start), 1, Ix::Const(size));
        start += size;
        split_heads(part, heads)
    };
    let [q, mut k, mut v] = [part(sizes[0])?, part(sizes[1])?, part(sizes[2])?];
    let mut masking = Masking { causal: c.flag("unidirectional", false)?, ..Masking::default() };
    if let Some(past) = c.maybe(4) {
        masking.offset = Offset::Known(extent_or_none(past, 3)?);
        for (at, x) in [(0, &mut k), (1, &mut v)] {
            let before = past.slice(0, Ix::Const(at), 1, Ix::Const(1)).squeeze(&[0]);
            *x = c.cx.concat(&[before, *x], 2);
        }
    }
    masking.mask = added(c, c.maybe(3), c.maybe(5), [q, k])?;
    let mut results = vec![merge_heads(attended(c, [q, k, v], &masking)?.y)?];
    if c.int("outputs", 1)? > 1 {
        results.push(c.cx.concat(&[k, v].map(|x| x.unsqueeze(&[0])), 0));
    }
    Ok(results)
}

/// `(ids, segments?, words, positions, segment_words?, gamma, beta, mask?, position_ids?)` to `(y, lengths, sum)`
fn embed_norm<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    let ids = c.x(0);
    let shape = ids.shape()?;
    if shape.len() != 2 {
        return Err(Refusal::new(format!("the ids of words are a matrix [batch, length], not {}", ids.shape_text())));
    }
    for (i, what) in [(1, "the tensor of segments"), (7, "the mask")] {
        c.maybe(i).map(|x| x.of_shape(what, &shape)).transpose()?;
    }
    let row = |table: Tensor<'g>, at: Tensor<'g>| c.other("onnx.Gather", &[table, at], &[]);
    let mut sum = row(c.x(2), ids);
    sum = sum
        + match c.maybe(8) {
            Some(at) => row(c.x(3), at),
            None => c.x(3).slice(0, Ix::Const(0), 1, shape[1].clone()),
        };
    if let (Some(segments), Some(table)) = (c.maybe(1), c.maybe(4)) {
        sum = sum + row(table, segments);
    }
    let last = sum.rank()?.saturating_sub(1);
    let eps = c.float("epsilon", 1e-12)?;
    let y = affine(sum.in_wide(|x| standardize(x, &[last], eps).y), Some(c.x(5)), c.maybe(6));
    let lengths = match c.maybe(7) {
        Some(mask) => mask.sum(&[1], false),
        None => c.cx.full(Elem::I32, 0.0, shape[..1].to_vec()),
    };
    Ok([y, lengths, sum])
}

/// `(query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos?, sin?, position_ids?,
/// attention_bias?, head_sink?)`
fn group_query<'g>(c: &Call<'g>) -> Result<[Tensor<'g>; 3]> {
    let (heads, kv_heads) = (c.int("num_heads", 0)?, c.int("kv_num_heads", 0)?);
    if let Some(at) = (12..16).find(|i| c.maybe(*i).is_some()) {
        return Err(Refusal::new(format!("operand {} of GroupQueryAttention is not supported", at + 1)));
    }
    if heads < 1 || kv_heads < 1 {
        return Err(Refusal::new(format!("{heads} heads of queries and {kv_heads} of keys are not supported")));
    }
    let [mut q, mut k, v] = match (c.maybe(1), c.maybe(2)) {
        (Some(k), Some(v)) => [split_heads(c.x(0), heads)?, split_heads(k, kv_heads)?, split_heads(v, kv_heads)?],
        _ => {
            let all = split_heads(c.x(0), heads + 2 * kv_heads)?;
            [(0, heads), (heads, kv_heads), (heads + kv_heads, kv_heads)]
                .map(|(from, n)| all.slice(1, Ix::Const(from), 1, Ix::Const(n)))
        }
    };
    let (qs, ks, vs) = (q.shape()?, k.shape()?, v.shape()?);
    let (batch, seq) = (qs[0].clone(), qs[2].clone());
    if !c.cx.same(&ks[0], &batch) || !c.cx.same(&ks[2], &seq) || !c.cx.same_shape(&ks[..3], &vs[..3]) {
        return Err(misfits([q, k, v]));
    }
    let capacity = c.maybe(3).map_or(Ok(Ix::Const(0)), |past| extent_or_none(past, 2))?;
    let total = match c.maybe(6).and_then(Tensor::ints).and_then(|t| t.into_iter().next()) {
        // A cache as long as the longest sequence is kept; a shorter one grows.
        Some(total) => Ix::max(capacity.clone(), total),
        None => Ix::add(capacity.clone(), seq.clone()),
    };
    let total = c.cx.simplify(&total);
    // Keys that were there before: seqlens_k counts all of them but one.
    let lengths = c.x(5).to(Elem::I64);
    let line = std::slice::from_ref(&batch);
    let lengths = if lengths.rank()? == 1 { lengths.of_shape("seqlens_k", line)? } else { lengths.reshape(line) };
    let before = (lengths - c.cx.index(Ix::sub(seq.clone(), Ix::Const(1)), Elem::I64, vec![])).max(0);
    if c.flag("do_rotary", false)? {
        let positions = match c.maybe(9) {
            Some(positions) if positions.rank()? == 2 => positions,
            _ => counted(before, &seq)?,
        };
        let angles = [rows_at(c.x(7), positions)?, rows_at(c.x(8), positions)?];
        let dim = angles[0].known_extent(angles[0].rank()?.saturating_sub(1), "the size of a head")? * 2;
        let interleaved = c.flag("rotary_interleaved", false)?;
        (q, k) = (rotate(q, angles, interleaved, dim)?, rotate(k, angles, interleaved, dim)?);
    }
    let [keys, values] = [(k, 3), (v, 4)].map(|(new, i)| append(new, c.maybe(i), before, [&capacity, &total]));
    let (keys, values) = (keys?, values?);
    let mut masking = Masking { causal: true, offset: Offset::Batch(before), ..Masking::default() };
    masking.mask = c.maybe(10);
    masking.sink = match c.maybe(11) {
        Some(sink) => Some(sink.reshape(&[Ix::Const(1), Ix::Const(heads), Ix::Const(1), Ix::Const(1)])),
        // The score of nothing is 0.
        None => c.flag("smooth_softmax", false)?.then(|| c.cx.number(q.wide_elem(), 0.0)),
    };
    masking.left = Some(c.int("local_window_size", -1)?).filter(|window| *window > 0).map(|window| window - 1);
    Ok([merge_heads(attended(c, [q, keys, values], &masking)?.y)?, keys, values])
}

/// `[b, h, total, d]`: the first `before[b]` entries of the past `[b, h, capacity, d]`, then the new ones, then what the past has
/// there.
fn append<'g>(
    new: Tensor<'g>,
    past: Option<Tensor<'g>>,
    before: Tensor<'g>,
    [capacity, total]: [&Ix; 2],
) -> Result<Tensor<'g>> {
    let (mut shape, cx) = (new.shape()?, new.cx);
    let count = std::mem::replace(&mut shape[2], capacity.clone());
    let past = past.map(|past| past.of_shape("the cache", &shape)).transpose()?;
    shape[2] = total.clone();
    let old = match past {
        Some(past) => {
            let none = vec![Ix::Const(0); 4];
            let mut more = none.clone();
            more[2] = cx.simplify(&Ix::sub(total.clone(), capacity.clone()));
            past.pad(&none, &more, past.like(0.0))
        }
        None => new.like(0.0),
    };
    let i = cx.index(axis(2), Elem::I64, vec![Ix::Const(1), Ix::Const(1), total.clone(), Ix::Const(1)]);
    let at = i - before.unsqueeze(&[1, 2, 3]);
    let n = cx.index(count, Elem::I64, vec![]);
    let inside = at.at_least(0) & at.below(n);
    let fresh = new.gather(&[inside.select(at, 0)], along(2, 4), shape);
    Ok(inside.select(fresh, old))
}
