"""Batched matrix products: a batch index per block with a product of rank 2, or several batches in one product of rank
3."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def batched_matmul(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    batch, i, j = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=2, shape=(1, tm, tk))):
        x = ct.load(a, (batch, i, k), (1, tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (batch, k, j), (1, tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x.reshape((tm, tk)), y.reshape((tk, tn)), acc)
    ct.store(c, (batch, i, j), acc.reshape((1, tm, tn)).astype(c.dtype))


@ct.kernel
def batched_matmul_rank3(a, b, c, tb: ct.Constant[int], tm: ct.Constant[int], tn: ct.Constant[int],
                         tk: ct.Constant[int]):
    batch, i, j = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = ct.zeros((tb, tm, tn), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=2, shape=(tb, tm, tk))):
        x = ct.load(a, (batch, i, k), (tb, tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (batch, k, j), (tb, tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, (batch, i, j), acc.astype(c.dtype))


def main():
    rng = np.random.default_rng(4)
    stream = cp.cuda.get_current_stream()
    for dtype, rounding in ((np.float16, 2.0**-11), (np.float32, 0.0)):
        for n_batch, m, n, k in ((4, 64, 64, 64), (3, 50, 70, 33), (5, 1, 40, 20)):
            a = rng.standard_normal((n_batch, m, k)).astype(dtype)
            b = rng.standard_normal((n_batch, k, n)).astype(dtype)
            x, y = cp.asarray(a), cp.asarray(b)
            c, d = cp.zeros((n_batch, m, n), dtype=dtype), cp.zeros((n_batch, m, n), dtype=dtype)
            tiles = (ct.cdiv(m, 32), ct.cdiv(n, 32))
            ct.launch(stream, (n_batch, *tiles), batched_matmul, (x, y, c, 32, 32, 16))
            ct.launch(stream, (ct.cdiv(n_batch, 2), *tiles), batched_matmul_rank3, (x, y, d, 2, 32, 32, 16))
            a, b = a.astype(np.float64), b.astype(np.float64)
            bound = 2.0**-22 * np.sqrt(k) * (np.abs(a) @ np.abs(b)) + rounding * np.abs(a @ b) + 1e-7
            assert np.all(np.abs(cp.asnumpy(c) - a @ b) <= bound)
            assert np.all(np.abs(cp.asnumpy(d) - a @ b) <= bound)


if __name__ == "__main__":
    main()
