"""Rotary embedding of queries and keys in place: the two halves of every head turn by an angle that depends on the
position. A second kernel turns neighbouring pairs instead."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def rotary_halves(q, k, cos, sin, q_heads: ct.Constant[int], k_heads: ct.Constant[int], half: ct.Constant[int]):
    """q, k: (batch, heads, positions, 2, half), heads rounded up to powers of two."""
    batch, position = ct.bid(0), ct.bid(1)
    c = ct.load(cos, (position, 0), (1, half), padding_mode=ct.PaddingMode.ZERO).reshape((1, half))
    s = ct.load(sin, (position, 0), (1, half), padding_mode=ct.PaddingMode.ZERO).reshape((1, half))
    for array, heads in ct.static_iter(((q, q_heads), (k, k_heads))):
        shape = (1, heads, 1, 1, half)
        a = ct.load(array, (batch, 0, position, 0, 0), shape, padding_mode=ct.PaddingMode.ZERO).reshape((heads, half))
        b = ct.load(array, (batch, 0, position, 1, 0), shape, padding_mode=ct.PaddingMode.ZERO).reshape((heads, half))
        ct.store(array, (batch, 0, position, 0, 0), (a * c - b * s).reshape(shape).astype(array.dtype))
        ct.store(array, (batch, 0, position, 1, 0), (b * c + a * s).reshape(shape).astype(array.dtype))


@ct.kernel
def rotary_pairs(x, base_log2, t: ct.Constant[int], pairs: ct.Constant[int]):
    """x: (positions, heads, 2 pairs); angles are computed, not read."""
    i, head = ct.bid(0), ct.bid(1)
    positions = (i * t + ct.arange(t, dtype=ct.int32)).astype(ct.float32)
    exponent = ct.arange(pairs, dtype=ct.int32).astype(ct.float32) / pairs
    angle = positions[:, None] * ct.exp2(-exponent * base_log2)[None, :]
    c, s = ct.cos(angle), ct.sin(angle)
    rows = (i * t + ct.arange(t, dtype=ct.int32))[:, None]
    evens = (2 * ct.arange(pairs, dtype=ct.int32))[None, :]
    a = ct.gather(x, (rows, head, evens))
    b = ct.gather(x, (rows, head, evens + 1))
    ct.scatter(x, (rows, head, evens), a * c - b * s)
    ct.scatter(x, (rows, head, evens + 1), a * s + b * c)


def main():
    rng = np.random.default_rng(17)
    stream = cp.cuda.get_current_stream()
    for batch, n, q_heads, k_heads, half in ((2, 12, 4, 2, 32), (1, 5, 3, 1, 16)):
        for dtype, tolerance in ((np.float32, 1e-6), (np.float16, 4e-3)):
            angle = np.arange(n)[:, None] * 10000.0 ** (-np.arange(half) / half)
            cos, sin = np.cos(angle), np.sin(angle)
            arrays = [rng.standard_normal((batch, h, n, 2, half)).astype(dtype) for h in (q_heads, k_heads)]
            q, k = (cp.asarray(a) for a in arrays)
            ct.launch(stream, (batch, n), rotary_halves,
                      (q, k, cp.asarray(cos.astype(np.float32)), cp.asarray(sin.astype(np.float32)),
                       1 << (q_heads - 1).bit_length(), 1 << (k_heads - 1).bit_length(), half))
            for got, a in zip((q, k), arrays):
                a, b = a[..., 0, :].astype(np.float64), a[..., 1, :].astype(np.float64)
                want = np.stack((a * cos - b * sin, b * cos + a * sin), axis=-2)
                np.testing.assert_allclose(cp.asnumpy(got), want, rtol=0, atol=tolerance)
    for n, heads, pairs in ((16, 2, 32), (21, 3, 8)):
        x = rng.standard_normal((n, heads, 2 * pairs)).astype(np.float32)
        y = cp.asarray(x)
        ct.launch(stream, (ct.cdiv(n, 8), heads), rotary_pairs, (y, float(np.log2(10000.0)), 8, pairs))
        angle = (np.arange(n)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs))[:, None, :]
        a, b = x[..., 0::2].astype(np.float64), x[..., 1::2].astype(np.float64)
        want = np.empty(x.shape)
        want[..., 0::2] = a * np.cos(angle) - b * np.sin(angle)
        want[..., 1::2] = a * np.sin(angle) + b * np.cos(angle)
        np.testing.assert_allclose(cp.asnumpy(y), want, rtol=0, atol=2e-5)


if __name__ == "__main__":
    main()
