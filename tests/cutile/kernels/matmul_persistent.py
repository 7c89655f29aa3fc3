"""Matrix product with one block for each processor of the machine: each walks over several output tiles."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel(num_ctas=ct.ByTarget(sm_100=2, default=1))
def matmul_persistent(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int],
                      group: ct.Constant[int]):
    tiles_m = ct.cdiv(a.shape[0], tm)
    tiles_n = ct.cdiv(b.shape[1], tn)
    tiles_k = ct.cdiv(a.shape[1], tk)
    per_group = group * tiles_n
    for tile in range(ct.bid(0), tiles_m * tiles_n, ct.num_blocks(0)):
        first = tile // per_group * group
        rows = min(tiles_m - first, group)
        i = first + tile % per_group % rows
        j = tile % per_group // rows
        acc = ct.full((tm, tn), 0.0, dtype=ct.float32)
        for k in range(tiles_k):
            x = ct.load(a, (i, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO)
            y = ct.load(b, (k, j), (tk, tn), padding_mode=ct.PaddingMode.ZERO)
            acc = ct.mma(x, y, acc)
        ct.store(c, (i, j), ct.astype(acc, c.dtype))


def main():
    rng = np.random.default_rng(3)
    stream = cp.cuda.get_current_stream()
    for dtype, rounding in ((np.float16, 2.0**-11), (np.float32, 0.0)):
        for m, n, k in ((256, 192, 64), (129, 70, 33), (5, 300, 17)):
            a = rng.standard_normal((m, k)).astype(dtype)
            b = rng.standard_normal((k, n)).astype(dtype)
            c = cp.zeros((m, n), dtype=dtype)
            args = (cp.asarray(a), cp.asarray(b), c, 32, 64, 16, 3)
            ct.launch(stream, (5,), matmul_persistent, args)
            a, b = a.astype(np.float64), b.astype(np.float64)
            bound = 2.0**-22 * np.sqrt(k) * (np.abs(a) @ np.abs(b)) + rounding * np.abs(a @ b)
            assert np.all(np.abs(cp.asnumpy(c) - a @ b) <= bound + 1e-7)


if __name__ == "__main__":
    main()
