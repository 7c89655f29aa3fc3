//! Operators of the domain `com.microsoft` that exported transformers hold.

use super::attention::{Masking, Offset, attend, merge_heads, rotate, split_heads};
use super::elementwise::torch;
use crate::graph::Elem;
use crate::graph::build::{Builder, Refusal, Result};
use crate::graph::decompose::activations::{gelu, sigmoid};
use crate::graph::decompose::norm::{affine, standardize};
use crate::graph::decompose::types::{head_scale, known_extent};
use crate::graph::decompose::{Call, Decomposition, normal_axis};
use crate::graph::ir::{self, Arg, Coord, axis};
use crate::index::Ix;
use crate::num::op::Predicate;

pub(in crate::graph::decompose) const RULES: &[Decomposition] = &[
    Decomposition {
        name: "contrib_skip_norm",
        handles: &[
            "com.microsoft.SimplifiedLayerNormalization",
            "com.microsoft.SkipLayerNormalization",
            "com.microsoft.SkipSimplifiedLayerNormalization",
            "onnx.SimplifiedLayerNormalization",
        ],
        doc: "Layer norm or root-mean-square norm of a sum of two (and a bias).\n\n\
              `y, .., s = skip_norm(x, skip, w)` --> `s = x + skip`, `y = norm(s) * w`",
        run: norm,
    },
    Decomposition {
        name: "contrib_gelu",
        handles: &["com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu", "com.microsoft.QuickGelu"],
        doc: "GELU of a sum with a bias: exact, by the tanh formula, or `x * sigmoid(alpha * x)`.\n\n\
              `y = bias_gelu(x, b)` --> `z = x + b`, `y = z/2 * (1 + erf(z / sqrt 2))`",
        run: gelus,
    },
    Decomposition {
        name: "contrib_fused_matmul",
        handles: &["com.microsoft.FusedMatMul"],
        doc: "A scaled product of operands that may be transposed.\n\n`y = fused_matmul(a, b)` --> `y = (a @ b) * alpha`",
        run: fused_matmul,
    },
    Decomposition {
        name: "contrib_rotary_embedding",
        handles: &["com.microsoft.RotaryEmbedding"],
        doc: "Rotary embedding at given positions, or counted from one.\n\n\
              `y = rotary(x, positions, cos, sin)` --> `cos[positions]`, `sin[positions]`, rotation of pairs",
        run: rotary,
    },
    Decomposition {
        name: "contrib_multi_head_attention",
        handles: &["com.microsoft.MultiHeadAttention"],
        doc: "Attention over packed heads.\n\n`y = mha(q, k, v)` --> heads split, scores, softmax, product, heads merged\n\n\
              Refuses packed keys and values.",
        run: multi_head,
    },
    Decomposition {
        name: "contrib_decoder_masked_attention",
        handles: &["com.microsoft.DecoderMaskedMultiHeadAttention"],
        doc: "Attention of one new token over a cache that is as long as the longest sequence.\n\n\
              `y = decoder_masked_attention(q, k, v, past)` --> `y = softmax(q @ present_k^T) @ present_v`\n\n\
              Refuses beams, and a mask of keys.",
        run: decoder_masked,
    },
    Decomposition {
        name: "contrib_attention",
        handles: &["com.microsoft.Attention"],
        doc: "A projection to queries, keys and values at once, and attention over their heads.\n\n\
              `y = attention(x, w, b)` --> `q, k, v = split(x @ w + b)`, heads, scores, softmax, product\n\n\
              Refuses rotary embedding and a past that shares its memory.",
        run: packed_attention,
    },
    Decomposition {
        name: "contrib_embed_norm",
        handles: &["com.microsoft.EmbedLayerNormalization"],
        doc: "The sum of a word's, its position's and its segment's rows, normalised.\n\n\
              `y = embed_norm(ids, segments, ..)` --> `s = words[ids] + positions[p] + segments[t]`, `y = norm(s)*w + b`",
        run: embed_norm,
    },
    Decomposition {
        name: "contrib_group_query_attention",
        handles: &["com.microsoft.GroupQueryAttention"],
        doc: "Causal attention with fewer heads of keys, a cache, and rotary embedding at its inputs. Each element of the \
              batch appends behind its own length.\n\n\
              `y, pk, pv = gqa(q, k, v, past.., lengths)` --> `rotary(q), rotary(k)`, `pk = select(t < past, past, new)`, \
              attention",
        run: group_query,
    },
];

fn norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    let narrow = b.elem(x);
    let skips = call.name.contains("Skip");
    let simple = call.name.contains("Simplified");
    // (x, skip, gamma, beta?, bias?), (x, skip, gamma, bias?) or (x, gamma)
    let (gamma, beta, bias) = match (skips, simple) {
        (true, false) => (call.arg(2)?, call.opt(3), call.opt(4)),
        (true, true) => (call.arg(2)?, None, call.opt(3)),
        _ => (call.arg(1)?, None, None),
    };
    if skips {
        x = b.add(x, call.arg(1)?)?;
        if let Some(bias) = bias {
            x = b.add(x, bias)?;
        }
    }
    let rank = b.rank(x);
    let axes: Vec<usize> = (normal_axis(call.int("axis", -1)?, rank)?..rank).collect();
    let eps = call.float("epsilon", if skips { 1e-12 } else { 1e-5 })?;
    let wide = b.wide(x);
    let wide_x = b.convert(x, wide)?;
    let (y, mean, inverse) = if simple {
        let square = b.mul(wide_x, wide_x)?;
        let mean = b.mean(square, &axes, true)?;
        let eps = b.scalar_like(mean, eps);
        let shifted = b.add(mean, eps)?;
        let inverse = b.rsqrt(shifted)?;
        (b.mul(wide_x, inverse)?, mean, inverse)
    } else {
        let s = standardize(b, wide_x, &axes, eps)?;
        (s.y, s.mean, s.inverse)
    };
    let y = b.convert(y, narrow)?;
    let y = affine(b, y, Some(gamma), beta)?;
    Ok(if skips { vec![y, mean, inverse, x] } else { vec![y, inverse] })
}

fn gelus(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut x = call.arg(0)?;
    if let Some(bias) = call.opt(1) {
        x = b.add(x, bias)?;
    }
    if call.name != "com.microsoft.QuickGelu" {
        return Ok(vec![gelu(b, x, call.name == "com.microsoft.FastGelu")?]);
    }
    let (narrow, wide) = (b.elem(x), b.wide(x));
    let x = b.convert(x, wide)?;
    let alpha = b.scalar_like(x, call.float("alpha", 1.702)?);
    let scaled = b.mul(x, alpha)?;
    let gate = sigmoid(b, scaled)?;
    let y = b.mul(x, gate)?;
    Ok(vec![b.convert(y, narrow)?])
}

fn fused_matmul(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let mut operands = [call.arg(0)?, call.arg(1)?];
    for (x, name) in operands.iter_mut().zip(["transA", "transB"]) {
        let rank = b.rank(*x);
        if call.flag(name, false)? && rank >= 2 {
            *x = b.swap_axes(*x, rank - 2, rank - 1)?;
        }
    }
    if call.flag("transBatchA", false)? || call.flag("transBatchB", false)? {
        return Err(Refusal::new("FusedMatMul that transposes batches is not supported"));
    }
    let y = b.matmul(operands[0], operands[1])?;
    let alpha = b.scalar_like(y, call.float("alpha", 1.0)?);
    Ok(vec![b.mul(y, alpha)?])
}

/// Rows `at [batch, seq]` of a table `[positions, n]`.
fn rows_at(b: &mut Builder<'_>, table: Arg, at: Arg) -> Result<Arg> {
    let mut shape = b.shape(at);
    shape.extend(b.shape(table).last().cloned());
    let at = b.convert(at, Elem::I64)?;
    let rank = b.rank(at);
    let at = b.unsqueeze(at, &[rank])?;
    b.gather(table, &[at], vec![Coord::Arg(1), Coord::Ix(axis(rank))], shape)
}

/// Positions `start[batch] + 0, 1, ..` of `seq` tokens.
fn counted(b: &mut Builder<'_>, start: Arg, seq: Ix) -> Result<Arg> {
    let start = b.convert(start, Elem::I64)?;
    let start = if b.rank(start) == 2 { start } else { b.unsqueeze(start, &[1])? };
    let i = b.index(axis(1), Elem::I64, vec![Ix::Const(1), seq]);
    b.add(start, i)
}

/// `(x, position_ids, cos, sin)`
fn rotary(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (mut x, positions, cos, sin) = (call.arg(0)?, call.arg(1)?, call.arg(2)?, call.arg(3)?);
    let flat = b.rank(x) == 3;
    if flat {
        let half = known_extent(b, cos, 1, "the size of a head")?;
        let hidden = known_extent(b, x, 2, "the hidden size")?;
        let heads = match call.int("num_heads", 0)? {
            0 => hidden / (2 * half).max(1),
            n => n,
        };
        x = split_heads(b, x, heads)?;
    }
    let seq = b.shape(x).get(2).cloned().unwrap_or(Ix::Const(1));
    let positions = if b.rank(positions) == 1 { counted(b, positions, seq)? } else { positions };
    let (cos, sin) = (rows_at(b, cos, positions)?, rows_at(b, sin, positions)?);
    let y = rotate(b, x, cos, sin, call.flag("interleaved", false)?, call.int("rotary_embedding_dim", 0)?)?;
    let scale = call.float("scale", 1.0)?;
    let factor = b.scalar_like(y, scale);
    let y = if scale == 1.0 { y } else { b.mul(y, factor)? };
    Ok(vec![if flat { merge_heads(b, y)? } else { y }])
}

/// `(query, key, value, mask_index?, attention_bias?, past_key?, past_value?, past_sequence_length?, beam_width?,
/// cache_indirection?, bias?)`
fn decoder_masked(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let heads = call.int("num_heads", 0)?;
    let (mut q, mut k, mut v) = (call.arg(0)?, call.arg(1)?, call.arg(2)?);
    if call.opt(3).is_some() || call.opt(8).is_some() || call.opt(9).is_some() {
        return Err(Refusal::new("DecoderMaskedMultiHeadAttention with a mask of keys or with beams is not supported"));
    }
    if let Some(bias) = call.opt(10) {
        add_bias(b, bias, [&mut q, &mut k, &mut v])?;
    }
    let q = split_heads(b, q, heads)?;
    let mut masking = Masking { mask: call.opt(4), ..Masking::default() };
    let (k, v) = match (call.opt(5), call.opt(6), call.opt(7)) {
        // Keys of another sequence, all of them.
        (None, None, _) if b.rank(k) == 4 => (k, v),
        (Some(past_key), Some(past_value), Some(length)) => {
            let batch = b.shape(q)[0].clone();
            let length = b.convert(length, Elem::I64)?;
            let length = b.reshape(length, &[])?;
            let before = b.broadcast_to(length, &[batch])?;
            let total = b.shape(past_key).get(2).cloned().unwrap_or(Ix::Const(0));
            (masking.causal, masking.offset) = (true, Offset::Batch(before));
            let (k, v) = (split_heads(b, k, heads)?, split_heads(b, v, heads)?);
            (append(b, k, Some(past_key), before, &total)?, append(b, v, Some(past_value), before, &total)?)
        }
        _ => return Err(Refusal::new("DecoderMaskedMultiHeadAttention needs a cache and how much of it is used")),
    };
    let (scale, wide) = (head_scale(b, call.float_of("scale")?.filter(|s| *s != 0.0), q)?, b.wide(q));
    let a = attend(b, [q, k, v], scale, 0.0, &masking, wide)?;
    Ok(vec![merge_heads(b, a.y)?, k, v])
}

/// Adds one vector: of queries, keys and values in turn.
fn add_bias(b: &mut Builder<'_>, bias: Arg, all: [&mut Arg; 3]) -> Result<()> {
    let mut start = Ix::Const(0);
    for x in all {
        let width = b.shape(*x).last().cloned().unwrap_or(Ix::Const(0));
        let part = b.slice(bias, 0, start.clone(), 1, width.clone())?;
        start = b.simplify(&Ix::add(start, width));
        if b.rank(*x) == 3 {
            *x = b.add(*x, part)?;
        }
    }
    Ok(())
}

/// `(query, key, value, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?)`
fn multi_head(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let heads = call.int("num_heads", 0)?;
    let (mut q, k, v) = (call.arg(0)?, call.opt(1), call.opt(2));
    let (Some(mut k), Some(mut v), 3) = (k, v, b.rank(q)) else {
        return Err(Refusal::new("MultiHeadAttention with packed queries, keys and values is not supported"));
    };
    if let Some(bias) = call.opt(3) {
        add_bias(b, bias, [&mut q, &mut k, &mut v])?;
    }
    let q = split_heads(b, q, heads)?;
    // Keys and values of cross attention come with heads apart.
    let mut k = if b.rank(k) == 4 { k } else { split_heads(b, k, heads)? };
    let mut v = if b.rank(v) == 4 { v } else { split_heads(b, v, heads)? };
    let mut masking = Masking { causal: call.flag("unidirectional", false)?, ..Masking::default() };
    if let (Some(past_key), Some(past_value)) = (call.opt(6), call.opt(7)) {
        masking.offset = Offset::Known(b.shape(past_key).get(2).cloned().unwrap_or(Ix::Const(0)));
        k = b.concat(&[past_key, k], 2)?;
        v = b.concat(&[past_value, v], 2)?;
    }
    pad(b, &mut masking, call.opt(4), call.opt(5), q)?;
    let (scale, wide) = (head_scale(b, call.float_of("scale")?.filter(|s| *s != 0.0), q)?, b.wide(q));
    let a = attend(b, [q, k, v], scale, 0.0, &masking, wide)?;
    Ok(vec![merge_heads(b, a.y)?, k, v])
}

/// What padding and a bias say: the number of keys of each element of the batch, or which keys or pairs are there.
fn pad(b: &mut Builder<'_>, masking: &mut Masking, padding: Option<Arg>, bias: Option<Arg>, q: Arg) -> Result<()> {
    masking.mask = bias;
    let Some(padding) = padding else { return Ok(()) };
    let around: &[usize] = match b.rank(padding) {
        1 if b.same(&b.shape(padding)[0], &b.shape(q)[0]) => {
            masking.valid = Some(b.convert(padding, Elem::I64)?);
            return Ok(());
        }
        2 => &[1, 2],
        3 => &[1],
        _ => return Err(Refusal::new("a padding mask of this form is not supported")),
    };
    if bias.is_some() {
        return Err(Refusal::new("attention with both a padding mask and a bias is not supported"));
    }
    let zero = ir::int_scalar(b.elem(padding), 0);
    let kept = b.compare(Predicate::NotEqual, padding, zero)?;
    masking.mask = Some(b.unsqueeze(kept, around)?);
    Ok(())
}

/// `(x, weights, bias?, mask_index?, past?, attention_bias?, past_sequence_length?)` to `(y, present)`
fn packed_attention(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (heads, rotary) = (call.int("num_heads", 0)?, call.flag("do_rotary", false)?);
    if rotary || call.flag("past_present_share_buffer", false)? {
        return Err(Refusal::new("this form of Attention is not supported"));
    }
    let mut all = b.matmul(call.arg(0)?, call.arg(1)?)?;
    if let Some(bias) = call.opt(2) {
        all = b.add(all, bias)?;
    }
    let (Some(width), 3) = (b.shape(all).last().and_then(Ix::as_const), b.rank(all)) else {
        return Err(Refusal::new("Attention needs weights of a known shape and an input of rank 3"));
    };
    let sizes = match call.ints("qkv_hidden_sizes")? {
        Some(sizes) if sizes.len() == 3 && sizes.iter().sum::<i64>() == width => sizes,
        Some(_) => return Err(Refusal::new("qkv_hidden_sizes do not fit the weights")),
        None => vec![width / 3; 3],
    };
    let (mut parts, mut start) = (vec![], 0);
    for size in sizes {
        let part = b.slice(all, 2, Ix::Const(start), 1, Ix::Const(size))?;
        parts.push(split_heads(b, part, heads)?);
        start += size;
    }
    let (q, mut k, mut v) = (parts[0], parts[1], parts[2]);
    let mut masking = Masking { causal: call.flag("unidirectional", false)?, ..Masking::default() };
    if let Some(past) = call.opt(4) {
        masking.offset = Offset::Known(b.shape(past).get(3).cloned().unwrap_or(Ix::Const(0)));
        for (at, x) in [(0, &mut k), (1, &mut v)] {
            let before = b.slice(past, 0, Ix::Const(at), 1, Ix::Const(1))?;
            let before = b.squeeze(before, &[0])?;
            *x = b.concat(&[before, *x], 2)?;
        }
    }
    pad(b, &mut masking, call.opt(3), call.opt(5), q)?;
    let (scale, wide) = (head_scale(b, call.float_of("scale")?.filter(|s| *s != 0.0), q)?, b.wide(q));
    let a = attend(b, [q, k, v], scale, 0.0, &masking, wide)?;
    let mut results = vec![merge_heads(b, a.y)?];
    if call.int("outputs", 1)? > 1 {
        let (keys, values) = (b.unsqueeze(k, &[0])?, b.unsqueeze(v, &[0])?);
        results.push(b.concat(&[keys, values], 0)?);
    }
    Ok(results)
}

/// `(ids, segments?, words, positions, segment_words?, gamma, beta, mask?, position_ids?)` to `(y, lengths, sum)`
fn embed_norm(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let ids = call.arg(0)?;
    let row = |b: &mut Builder<'_>, table: Arg, at: Arg| torch(b, "onnx.Gather", &[table, at], &[]);
    let mut sum = row(b, call.arg(2)?, ids)?;
    let places = match call.opt(8) {
        Some(at) => row(b, call.arg(3)?, at)?,
        None => {
            let length = b.shape(ids).get(1).cloned().unwrap_or(Ix::Const(1));
            b.slice(call.arg(3)?, 0, Ix::Const(0), 1, length)?
        }
    };
    sum = b.add(sum, places)?;
    if let (Some(segments), Some(table)) = (call.opt(1), call.opt(4)) {
        let of_segment = row(b, table, segments)?;
        sum = b.add(sum, of_segment)?;
    }
    let (narrow, wide, last) = (b.elem(sum), b.wide(sum), b.rank(sum).saturating_sub(1));
    let x = b.convert(sum, wide)?;
    let y = standardize(b, x, &[last], call.float("epsilon", 1e-12)?)?.y;
    let y = b.convert(y, narrow)?;
    let y = affine(b, y, Some(call.arg(5)?), call.opt(6))?;
    let batch = b.shape(ids).first().cloned().unwrap_or(Ix::Const(1));
    let lengths = match call.opt(7) {
        Some(mask) => b.reduce(ir::ReduceOp::Sum, mask, &[1], false)?,
        None => b.full(ir::int_scalar(Elem::I32, 0), Elem::I32, vec![batch]),
    };
    Ok(vec![y, lengths, sum])
}

/// `(query, key?, value?, past_key?, past_value?, seqlens_k, total_sequence_length, cos?, sin?, position_ids?,
/// attention_bias?, head_sink?)`
fn group_query(b: &mut Builder<'_>, call: &Call<'_>) -> Result<Vec<Arg>> {
    let (heads, kv_heads) = (call.int("num_heads", 0)?, call.int("kv_num_heads", 0)?);
    if let Some(at) = (12..16).find(|i| call.opt(*i).is_some()) {
        return Err(Refusal::new(format!("operand {} of GroupQueryAttention is not supported", at + 1)));
    }
    if heads < 1 || kv_heads < 1 {
        return Err(Refusal::new(format!("{heads} heads of queries and {kv_heads} of keys are not supported")));
    }
    let packed = call.arg(0)?;
    let (q, k, v) = match (call.opt(1), call.opt(2)) {
        (Some(k), Some(v)) => {
            (split_heads(b, packed, heads)?, split_heads(b, k, kv_heads)?, split_heads(b, v, kv_heads)?)
        }
        _ => {
            let all = split_heads(b, packed, heads + 2 * kv_heads)?;
            let part = |b: &mut Builder<'_>, from: i64, n: i64| b.slice(all, 1, Ix::Const(from), 1, Ix::Const(n));
            (part(b, 0, heads)?, part(b, heads, kv_heads)?, part(b, heads + kv_heads, kv_heads)?)
        }
    };
    let (qs, ks) = (b.shape(q), b.shape(k));
    let (batch, seq) = (qs[0].clone(), qs[2].clone());
    let capacity = match call.opt(3) {
        Some(past) => b.shape(past).get(2).cloned().unwrap_or(Ix::Const(0)),
        None => Ix::Const(0),
    };
    let total = call.opt(6).and_then(|t| b.ints(t)).and_then(|t| t.into_iter().next());
    let total = match total {
        // A cache as long as the longest sequence is kept; a shorter one grows.
        Some(total) => Ix::max(capacity.clone(), total),
        None => Ix::add(capacity.clone(), seq.clone()),
    };
    let total = b.simplify(&total);
    // Keys that were there before: seqlens_k counts all of them but one.
    let lengths = b.convert(call.arg(5)?, Elem::I64)?;
    let lengths = match b.rank(lengths) {
        1 => lengths,
        _ => b.reshape(lengths, std::slice::from_ref(&batch))?,
    };
    let less = b.index(Ix::sub(seq.clone(), Ix::Const(1)), Elem::I64, vec![]);
    let before = b.sub(lengths, less)?;
    let before = b.max(before, ir::int_scalar(Elem::I64, 0))?;
    let (mut q, mut k) = (q, k);
    if call.flag("do_rotary", false)? {
        let positions = match call.opt(9) {
            Some(positions) if b.rank(positions) == 2 => positions,
            _ => counted(b, before, seq.clone())?,
        };
        let (cos, sin) = (rows_at(b, call.arg(7)?, positions)?, rows_at(b, call.arg(8)?, positions)?);
        let dim = known_extent(b, cos, b.rank(cos).saturating_sub(1), "the size of a head")? * 2;
        let interleaved = call.flag("rotary_interleaved", false)?;
        q = rotate(b, q, cos, sin, interleaved, dim)?;
        k = rotate(b, k, cos, sin, interleaved, dim)?;
    }
    let mut present = vec![];
    for (new, past) in [(k, call.opt(3)), (v, call.opt(4))] {
        present.push(append(b, new, past, before, &total)?);
    }
    let mut masking = Masking { causal: true, offset: Offset::Batch(before), ..Masking::default() };
    masking.mask = call.opt(10);
    masking.sink = match call.opt(11) {
        Some(sink) => Some(b.reshape(sink, &[Ix::Const(1), Ix::Const(heads), Ix::Const(1), Ix::Const(1)])?),
        // The score of nothing is 0.
        None => call.flag("smooth_softmax", false)?.then(|| ir::scalar(b.wide(q), 0.0)),
    };
    let window = call.int("local_window_size", -1)?;
    if window > 0 {
        masking.left = Some(window - 1);
    }
    let (scale, wide) = (head_scale(b, call.float_of("scale")?.filter(|s| *s != 0.0), q)?, b.wide(q));
    debug_assert_eq!(ks.len(), 4);
    let a = attend(b, [q, present[0], present[1]], scale, call.float("softcap", 0.0)?, &masking, wide)?;
    Ok(vec![merge_heads(b, a.y)?, present[0], present[1]])
}

/// `[b, h, total, d]`: the first `before[b]` entries of the past, then the new ones, then what the past has there.
fn append(b: &mut Builder<'_>, new: Arg, past: Option<Arg>, before: Arg, total: &Ix) -> Result<Arg> {
    let mut shape = b.shape(new);
    let count = shape[2].clone();
    shape[2] = total.clone();
    let old = match past {
        Some(past) => {
            let none = vec![Ix::Const(0); 4];
            let mut more = none.clone();
            more[2] = b.simplify(&Ix::sub(total.clone(), b.shape(past).get(2).cloned().unwrap_or(Ix::Const(0))));
            let zero = b.scalar_like(past, 0.0);
            b.pad(past, &none, &more, zero)?
        }
        None => b.scalar_like(new, 0.0),
    };
    let i = b.index(axis(2), Elem::I64, vec![Ix::Const(1), Ix::Const(1), total.clone(), Ix::Const(1)]);
    let before = b.unsqueeze(before, &[1, 2, 3])?;
    let at = b.sub(i, before)?;
    let zero = ir::int_scalar(Elem::I64, 0);
    let n = b.index(count, Elem::I64, vec![]);
    let (low, high) = (b.compare(Predicate::GreaterThanOrEqual, at, zero)?, b.compare(Predicate::LessThan, at, n)?);
    let inside = b.and(low, high)?;
    let safe = b.select(inside, at, zero)?;
    let coords = vec![Coord::Ix(axis(0)), Coord::Ix(axis(1)), Coord::Arg(1), Coord::Ix(axis(3))];
    let fresh = b.gather(new, &[safe], coords, shape)?;
    b.select(inside, fresh, old)
}
