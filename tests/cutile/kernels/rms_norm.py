"""RMS normalisation: with gathers, one row per block; and persistent, where each block walks over tiles of rows."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def rms_norm_gather(x, w, out, rstd, n: ct.Constant[int], eps: ct.Constant[float], tn: ct.Constant[int]):
    row = ct.bid(0)
    squares = ct.full((tn,), 0.0, dtype=ct.float32)
    tiles = ct.cdiv(n, tn)
    offsets = ct.arange(tn, dtype=ct.int32)
    for j in range(0, tiles):
        values = ct.gather(x, (row, j * tn + offsets), latency=1).astype(ct.float32)
        squares += values * values
    r = ct.rsqrt(ct.sum(squares, axis=0, keepdims=False) / n + eps)
    ct.scatter(rstd, row, r)
    for j in range(0, tiles):
        cols = j * tn + offsets
        weight = ct.gather(w, cols, latency=1).astype(ct.float32)
        values = ct.gather(x, (row, cols), latency=1).astype(ct.float32)
        ct.scatter(out, (row, cols), (values * r * weight).astype(x.dtype), latency=1)


@ct.kernel(occupancy=4)
def rms_norm_persistent(x, w, out, tm: ct.Constant[int], tn: ct.Constant[int], eps: ct.Constant[float]):
    n = x.shape[1]
    weight = ct.load(w, (0,), (tn,), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
    for i in range(ct.bid(0), ct.cdiv(x.shape[0], tm), ct.num_blocks(0)):
        tile = ct.load(x, (i, 0), (tm, tn), padding_mode=ct.PaddingMode.ZERO, latency=10).astype(ct.float32)
        mean = ct.sum(tile * tile, axis=1, keepdims=True) / n
        scaled = tile * ct.rsqrt(mean + eps) * ct.expand_dims(weight, axis=0)
        ct.store(out, (i, 0), scaled.astype(out.dtype), allow_tma=False, latency=3)


def main():
    rng = np.random.default_rng(10)
    stream = cp.cuda.get_current_stream()
    eps = 1e-6
    for dtype, tolerance in ((np.float32, 2e-6), (np.float16, 1e-3)):
        for rows, n in ((16, 512), (21, 300), (1, 1), (3, 1025)):
            x = rng.standard_normal((rows, n)).astype(dtype)
            w = rng.standard_normal(n).astype(dtype)
            wide = x.astype(np.float64)
            r = 1 / np.sqrt((wide**2).mean(axis=1, keepdims=True) + eps)
            want = wide * r * w.astype(np.float64)
            out, rstd = cp.zeros((rows, n), dtype=dtype), cp.zeros(rows, dtype=np.float32)
            ct.launch(stream, (rows,), rms_norm_gather, (cp.asarray(x), cp.asarray(w), out, rstd, n, eps, 256))
            np.testing.assert_allclose(cp.asnumpy(out), want, rtol=tolerance, atol=1e-6)
            np.testing.assert_allclose(cp.asnumpy(rstd), r[:, 0], rtol=2e-6)
            out = cp.zeros((rows, n), dtype=dtype)
            tn = 1 << (n - 1).bit_length()
            ct.launch(stream, (3,), rms_norm_persistent, (cp.asarray(x), cp.asarray(w), out, 4, tn, eps))
            np.testing.assert_allclose(cp.asnumpy(out), want, rtol=tolerance, atol=1e-6)


if __name__ == "__main__":
    main()
