"""Softmax of rows: one pass where a row fits one tile; in pieces with a running maximum and sum; and through gathers."""
import math

import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel(occupancy=4)
def softmax_one_pass(x, y, tm: ct.Constant[int], tn: ct.Constant[int]):
    for i in range(ct.bid(0), ct.num_tiles(x, 0, (tm, tn)), ct.num_blocks(0)):
        row = ct.load(x, (i, 0), (tm, tn), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        weights = ct.exp(row - ct.max(row, axis=1, keepdims=True))
        ct.store(y, (i, 0), (weights / ct.sum(weights, axis=1, keepdims=True)).astype(y.dtype))


@ct.kernel
def softmax_online(x, y, tn: ct.Constant[int]):
    """Two walks over the row: the first finds maximum and sum together."""
    row = ct.bid(0)
    tiles = ct.num_tiles(x, 1, (1, tn))
    top = ct.full((1, 1), -math.inf, dtype=ct.float32)
    total = ct.zeros((1, 1), dtype=ct.float32)
    for j in range(tiles):
        tile = ct.load(x, (row, j), (1, tn), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        new_top = ct.maximum(top, ct.max(tile, axis=1, keepdims=True))
        total = total * ct.exp(top - new_top) + ct.sum(ct.exp(tile - new_top), axis=1, keepdims=True)
        top = new_top
    for j in range(tiles):
        tile = ct.load(x, (row, j), (1, tn), padding_mode=ct.PaddingMode.NEG_INF).astype(ct.float32)
        ct.store(y, (row, j), (ct.exp(tile - top) / total).astype(y.dtype))


@ct.kernel
def softmax_gather(x, y, n: ct.Constant[int], tn: ct.Constant[int]):
    row = ct.bid(0)
    cols = ct.arange(tn, dtype=ct.int32)
    tile = ct.gather(x, (row, cols), padding_value=-math.inf).astype(ct.float32)
    weights = ct.exp(tile - ct.max(tile, axis=0, keepdims=True))
    ct.scatter(y, (row, cols), (weights / ct.sum(weights, axis=0, keepdims=True)).astype(y.dtype))


def main():
    rng = np.random.default_rng(11)
    stream = cp.cuda.get_current_stream()
    for dtype, tolerance in ((np.float32, 2e-6), (np.float16, 1e-3)):
        for rows, n in ((8, 256), (13, 300), (3, 1), (2, 1025)):
            x = (4 * rng.standard_normal((rows, n))).astype(dtype)
            e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True).astype(np.float64))
            want = e / e.sum(axis=1, keepdims=True)
            tn = 1 << (n - 1).bit_length()
            for kernel, grid, constants in ((softmax_one_pass, 3, (2, tn)), (softmax_online, rows, (128,)),
                                            (softmax_gather, rows, (n, tn))):
                y = cp.zeros((rows, n), dtype=dtype)
                ct.launch(stream, (grid,), kernel, (cp.asarray(x), y, *constants))
                np.testing.assert_allclose(cp.asnumpy(y), want, rtol=tolerance, atol=1e-7)


if __name__ == "__main__":
    main()
