"""Fused attention, forward: softmax(Q Kᵀ / √d) V without ever holding the matrix of scores.

A block owns some queries of one head and walks over the keys; a running maximum and a running sum rescale what it has.
Several query heads may share one head of keys and values. Causal attention stops at the diagonal and masks only the
tiles that it crosses."""
import math

import cuda.tile as ct
import cupy as cp
import numpy as np

INV_LOG_2 = 1.0 / math.log(2)


@ct.kernel(occupancy=2)
def attention(q, k, v, out, log_sum, scale, heads: ct.Constant[int], queries_per_head: ct.Constant[int],
              tm: ct.Constant[int], tn: ct.Constant[int], d: ct.Constant[int], causal: ct.Constant[bool],
              even: ct.Constant[bool]):
    block, both = ct.bid(0), ct.bid(1)
    batch, head = both // heads, both % heads
    kv_head = head // queries_per_head
    scale = scale * INV_LOG_2
    rows = block * tm + ct.arange(tm, dtype=ct.int32)[:, None]
    lanes = ct.arange(tn, dtype=ct.int32)[None, :]
    top = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((tm, 1), dtype=ct.float32)
    acc = ct.zeros((tm, d), dtype=ct.float32)
    queries = ct.load(q, (batch, head, block, 0), (1, 1, tm, d), padding_mode=ct.PaddingMode.ZERO).reshape((tm, d))
    n_keys = k.shape[2]
    # Query r sees keys up to r + (number of keys - number of queries).
    offset = n_keys - q.shape[2]
    if causal:
        last = min((block + 1) * tm + offset, n_keys)
        unmasked = (block * tm + offset + 1) // tn
        tiles = ct.cdiv(last, tn)
    else:
        unmasked = n_keys // tn
        tiles = ct.cdiv(n_keys, tn)
    for j in range(0, tiles):
        keys = ct.load(k, (batch, kv_head, 0, j), (1, 1, d, tn), order=(0, 1, 3, 2),
                       padding_mode=ct.PaddingMode.ZERO, latency=2).reshape((d, tn))
        scores = ct.mma(queries, keys, ct.zeros((tm, tn), dtype=ct.float32))
        if (causal or not even) and j >= unmasked:
            cols = j * tn + lanes
            mask = ct.full((tm, tn), True, dtype=ct.bool_)
            if not even:
                mask = mask & (cols < n_keys)
            if causal:
                mask = mask & (rows + offset >= cols)
            scores = scores + ct.where(mask, 0.0, -math.inf)
        new_top = ct.maximum(top, ct.max(scores, axis=1, keepdims=True) * scale)
        weights = ct.exp2(scores * scale - new_top, flush_to_zero=True)
        shrink = ct.exp2(top - new_top, flush_to_zero=True)
        total = total * shrink + ct.sum(weights, axis=1, keepdims=True)
        values = ct.load(v, (batch, kv_head, j, 0), (1, 1, tn, d), padding_mode=ct.PaddingMode.ZERO,
                         latency=4).reshape((tn, d))
        acc = ct.mma(weights.astype(q.dtype), values, acc * shrink)
        top = new_top
    acc = ct.truediv(acc, total, flush_to_zero=True, rounding_mode=ct.RoundingMode.APPROX)
    ct.store(out, (batch, head, block, 0), acc.reshape((1, 1, tm, d)).astype(out.dtype))
    ct.store(log_sum, (batch, head, block), (top / INV_LOG_2 + ct.log(total)).reshape((1, 1, tm)))


def reference(q, k, v, causal):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    if causal:
        n, m = scores.shape[-2:]
        scores[..., np.tril(np.ones((n, m)), m - n) == 0] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total @ v, (top + np.log(total))[..., 0]


def main():
    rng = np.random.default_rng(7)
    stream = cp.cuda.get_current_stream()
    tm, tn = 32, 32
    half, single = (np.float16, 4e-3), (np.float32, 2e-6)
    cases = [
        # batch, query heads, key heads, queries, keys, width, element types
        (2, 4, 4, 64, 64, 64, [half]),
        (1, 4, 2, 100, 100, 32, [half, single]),
        (1, 2, 1, 1, 77, 64, [single]),
        (1, 1, 1, 40, 130, 16, [single]),
    ]
    for batch, heads, kv_heads, n_q, n_k, d, dtypes in cases:
        for dtype, tolerance in dtypes:
            q = rng.standard_normal((batch, heads, n_q, d)).astype(dtype)
            k = rng.standard_normal((batch, kv_heads, n_k, d)).astype(dtype)
            v = rng.standard_normal((batch, kv_heads, n_k, d)).astype(dtype)
            for causal in (False, True):
                out = cp.zeros(q.shape, dtype=dtype)
                log_sum = cp.zeros(q.shape[:3], dtype=np.float32)
                ct.launch(stream, (ct.cdiv(n_q, tm), batch * heads), attention,
                          (cp.asarray(q), cp.asarray(k), cp.asarray(v), out, log_sum, 1 / math.sqrt(d), heads,
                           heads // kv_heads, tm, tn, d, causal, n_k % tn == 0))
                want, want_log_sum = reference(q, k, v, causal)
                np.testing.assert_allclose(cp.asnumpy(out), want, rtol=0, atol=tolerance)
                np.testing.assert_allclose(cp.asnumpy(log_sum), want_log_sum, rtol=0, atol=4e-6)


if __name__ == "__main__":
    main()
