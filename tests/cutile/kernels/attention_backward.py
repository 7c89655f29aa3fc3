"""Fused attention, backward, from the logarithms of the sums that the forward pass left behind.

One kernel forms the row sums of out * dout. A second owns some keys and walks over the queries for dK and dV, a third
owns some queries and walks over the keys for dQ, so nobody needs atomics."""
import math

import cuda.tile as ct
import cupy as cp
import numpy as np

ZERO = ct.PaddingMode.ZERO


@ct.kernel
def row_dots(out, d_out, delta, tm: ct.Constant[int], d: ct.Constant[int]):
    head, i = ct.bid(1), ct.bid(0)
    o = ct.load(out, (head, i, 0), (1, tm, d), padding_mode=ZERO)
    g = ct.load(d_out, (head, i, 0), (1, tm, d), padding_mode=ZERO)
    ct.store(delta, (head, i), ct.sum(o.astype(ct.float32) * g, axis=2))


def visible(rows, cols, n_keys, causal):
    mask = cols < n_keys
    return mask & (rows >= cols) if causal else mask & (rows >= 0)


@ct.kernel
def d_keys_values(q, k, v, d_out, log_sum, delta, d_k, d_v, scale, tm: ct.Constant[int], tn: ct.Constant[int],
                  d: ct.Constant[int], causal: ct.Constant[bool]):
    j, head = ct.bid(0), ct.bid(1)
    keys = ct.load(k, (head, j, 0), (1, tn, d), padding_mode=ZERO).reshape((tn, d))
    values = ct.load(v, (head, j, 0), (1, tn, d), padding_mode=ZERO).reshape((tn, d))
    cols = (j * tn + ct.arange(tn, dtype=ct.int32))[None, :]
    dk = ct.zeros((tn, d), dtype=ct.float32)
    dv = ct.zeros((tn, d), dtype=ct.float32)
    first = j * tn // tm if causal else 0
    for i in range(first, ct.num_tiles(q, 1, (1, tm, d))):
        queries = ct.load(q, (head, i, 0), (1, tm, d), padding_mode=ZERO).reshape((tm, d))
        grads = ct.load(d_out, (head, i, 0), (1, tm, d), padding_mode=ZERO).reshape((tm, d))
        ls = ct.load(log_sum, (head, i), (1, tm), padding_mode=ZERO).reshape((tm, 1))
        dl = ct.load(delta, (head, i), (1, tm), padding_mode=ZERO).reshape((tm, 1))
        rows = (i * tm + ct.arange(tm, dtype=ct.int32))[:, None]
        scores = ct.mma(queries, keys.transpose(), ct.zeros((tm, tn), ct.float32)) * scale
        seen = visible(rows, cols, k.shape[1], causal) & (rows < q.shape[1])
        p = ct.where(seen, ct.exp(scores - ls), 0.0)
        dv = ct.mma(p.astype(q.dtype).transpose(), grads, dv)
        dp = ct.mma(grads, values.transpose(), ct.zeros((tm, tn), ct.float32))
        ds = p * (dp - dl) * scale
        dk = ct.mma(ds.astype(q.dtype).transpose(), queries, dk)
    ct.store(d_k, (head, j, 0), dk.reshape((1, tn, d)).astype(d_k.dtype))
    ct.store(d_v, (head, j, 0), dv.reshape((1, tn, d)).astype(d_v.dtype))


@ct.kernel
def d_queries(q, k, v, d_out, log_sum, delta, d_q, scale, tm: ct.Constant[int], tn: ct.Constant[int],
              d: ct.Constant[int], causal: ct.Constant[bool]):
    i, head = ct.bid(0), ct.bid(1)
    queries = ct.load(q, (head, i, 0), (1, tm, d), padding_mode=ZERO).reshape((tm, d))
    grads = ct.load(d_out, (head, i, 0), (1, tm, d), padding_mode=ZERO).reshape((tm, d))
    ls = ct.load(log_sum, (head, i), (1, tm), padding_mode=ZERO).reshape((tm, 1))
    dl = ct.load(delta, (head, i), (1, tm), padding_mode=ZERO).reshape((tm, 1))
    rows = (i * tm + ct.arange(tm, dtype=ct.int32))[:, None]
    dq = ct.zeros((tm, d), dtype=ct.float32)
    n_keys = k.shape[1]
    if causal:
        n_keys = min(n_keys, (i + 1) * tm)
    for j in range(ct.cdiv(n_keys, tn)):
        keys = ct.load(k, (head, j, 0), (1, tn, d), padding_mode=ZERO).reshape((tn, d))
        values = ct.load(v, (head, 0, j), (1, d, tn), order=(0, 2, 1), padding_mode=ZERO).reshape((d, tn))
        cols = (j * tn + ct.arange(tn, dtype=ct.int32))[None, :]
        scores = ct.mma(queries, keys.transpose(), ct.zeros((tm, tn), ct.float32)) * scale
        p = ct.where(visible(rows, cols, k.shape[1], causal), ct.exp(scores - ls), 0.0)
        dp = ct.mma(grads, values, ct.zeros((tm, tn), ct.float32))
        ds = p * (dp - dl) * scale
        dq = ct.mma(ds.astype(q.dtype), keys, dq)
    ct.store(d_q, (head, i, 0), dq.reshape((1, tm, d)).astype(d_q.dtype))


def main():
    rng = np.random.default_rng(8)
    stream = cp.cuda.get_current_stream()
    tm, tn = 32, 16
    for heads, n, d in ((2, 64, 32), (1, 75, 64), (3, 9, 16)):
        for dtype, tolerance in ((np.float32, 1e-5), (np.float16, 2e-2)):
            q, k, v, g = (rng.standard_normal((heads, n, d)).astype(dtype) for _ in range(4))
            for causal in (False, True):
                scale = 1 / math.sqrt(d)
                wq, wk, wv, wg = (x.astype(np.float64) for x in (q, k, v, g))
                scores = wq @ wk.transpose(0, 2, 1) * scale
                if causal:
                    scores[:, np.triu(np.ones((n, n)), 1) == 1] = -np.inf
                top = scores.max(axis=-1, keepdims=True)
                log_sum = top + np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
                p = np.exp(scores - log_sum)
                out = p @ wv
                dp = wg @ wv.transpose(0, 2, 1)
                ds = p * (dp - (wg * out).sum(axis=-1, keepdims=True)) * scale
                want = (ds @ wk, ds.transpose(0, 2, 1) @ wq, p.transpose(0, 2, 1) @ wg)

                inputs = tuple(cp.asarray(x) for x in (q, k, v, g))
                sums = cp.asarray(log_sum[..., 0].astype(np.float32))
                delta = cp.zeros((heads, n), dtype=np.float32)
                ct.launch(stream, (ct.cdiv(n, tm), heads), row_dots,
                          (cp.asarray(out.astype(dtype)), inputs[3], delta, tm, d))
                dq, dk, dv = (cp.zeros((heads, n, d), dtype=dtype) for _ in range(3))
                ct.launch(stream, (ct.cdiv(n, tn), heads), d_keys_values,
                          (*inputs, sums, delta, dk, dv, scale, tm, tn, d, causal))
                ct.launch(stream, (ct.cdiv(n, tm), heads), d_queries,
                          (*inputs, sums, delta, dq, scale, tm, tn, d, causal))
                for got, expected in zip((dq, dk, dv), want):
                    size = max(1.0, np.abs(expected).max())
                    np.testing.assert_allclose(cp.asnumpy(got), expected, rtol=0, atol=tolerance * size)


if __name__ == "__main__":
    main()
