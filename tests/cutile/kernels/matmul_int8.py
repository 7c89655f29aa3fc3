"""Quantised matrix product: 8-bit integers multiplied exactly into 32-bit sums, then scaled per row and per column."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def matmul_int8(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((tm, tn), dtype=ct.int32)
    for k in range(ct.num_tiles(a, 1, (tm, tk))):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc)


@ct.kernel
def quantise_rows(x, q, scale, tn: ct.Constant[int]):
    """Row by row: the largest magnitude becomes 127."""
    row = ct.bid(0)
    values = ct.load(x, (row, 0), (1, tn), padding_mode=ct.PaddingMode.ZERO)
    s = ct.max(ct.abs(values), axis=1, keepdims=True) / 127.0
    inverse = ct.where(s > 0.0, 1.0 / s, 0.0)
    scaled = values * inverse
    rounded = ct.where(scaled >= 0.0, ct.floor(scaled + 0.5), ct.ceil(scaled - 0.5))
    ct.store(q, (row, 0), rounded.astype(ct.int8))
    ct.store(scale, (row,), s.reshape((1,)))


@ct.kernel
def matmul_int8_scaled(a, b, sa, sb, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    """C = diag(sa) A Bᵀ diag(sb)."""
    i, j = ct.bid(0), ct.bid(1)
    acc = ct.zeros((tm, tn), dtype=ct.int32)
    for k in range(ct.num_tiles(a, 1, (tm, tk))):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (k, j), (tk, tn), order="F", padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    rows = ct.load(sa, (i,), (tm,), padding_mode=ct.PaddingMode.ZERO)
    cols = ct.load(sb, (j,), (tn,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, (i, j), acc.astype(ct.float32) * rows[:, None] * cols[None, :])


def main():
    rng = np.random.default_rng(6)
    stream = cp.cuda.get_current_stream()
    for m, n, k in ((128, 64, 64), (70, 90, 50), (1, 33, 200)):
        for dtype in (np.int8, np.uint8):
            info = np.iinfo(dtype)
            a = rng.integers(info.min, info.max, (m, k), dtype=dtype, endpoint=True)
            b = rng.integers(info.min, info.max, (k, n), dtype=dtype, endpoint=True)
            c = cp.zeros((m, n), dtype=np.int32)
            grid = (ct.cdiv(m, 64), ct.cdiv(n, 32))
            ct.launch(stream, grid, matmul_int8, (cp.asarray(a), cp.asarray(b), c, 64, 32, 32))
            np.testing.assert_array_equal(cp.asnumpy(c), a.astype(np.int64) @ b.astype(np.int64))
        x = rng.standard_normal((m, k)).astype(np.float32)
        w = rng.standard_normal((n, k)).astype(np.float32)
        quantised = []
        for source in (x, w):
            q = cp.zeros(source.shape, dtype=np.int8)
            scale = cp.zeros(source.shape[0], dtype=np.float32)
            ct.launch(stream, (source.shape[0],), quantise_rows, (cp.asarray(source), q, scale, 256))
            step = np.abs(source).max(axis=1, keepdims=True) / 127
            np.testing.assert_allclose(cp.asnumpy(scale), step[:, 0], rtol=1e-6)
            assert np.all(np.abs(cp.asnumpy(q) * step - source) <= 0.501 * step)
            quantised += [q, scale]
        qx, sx, qw, sw = quantised
        c = cp.zeros((m, n), dtype=np.float32)
        ct.launch(stream, (ct.cdiv(m, 64), ct.cdiv(n, 32)), matmul_int8_scaled, (qx, qw, sx, sw, c, 64, 32, 32))
        exact = cp.asnumpy(qx).astype(np.int64) @ cp.asnumpy(qw).astype(np.int64).T
        want = exact * cp.asnumpy(sx).astype(np.float64)[:, None] * cp.asnumpy(sw).astype(np.float64)[None, :]
        np.testing.assert_allclose(cp.asnumpy(c), want, rtol=1e-6)


if __name__ == "__main__":
    main()
