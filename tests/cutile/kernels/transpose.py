"""Transpose: a block loads one tile, turns it in registers and stores it at the mirrored place; the second kernel loads
it in transposed order instead, which leaves nothing to do but store."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def transpose_tile(x, y, tm: ct.Constant[int], tn: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(x, (i, j), (tm, tn))
    ct.store(y, (j, i), ct.transpose(tile))


@ct.kernel
def transpose_order(x, y, tm: ct.Constant[int], tn: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(x, (j, i), (tn, tm), order="F")
    ct.store(y, (j, i), tile)


@ct.kernel
def permute_axes(x, y, t: ct.Constant[int]):
    """(batch, row, column, head) becomes (batch, head, row, column)."""
    b, r = ct.bid(0), ct.bid(1)
    tile = ct.load(x, (b, r, 0, 0), (1, t, 8, 4))
    ct.store(y, (b, 0, r, 0), ct.permute(tile, (0, 3, 1, 2)))


def main():
    rng = np.random.default_rng(1)
    stream = cp.cuda.get_current_stream()
    for dtype in (np.float32, np.float16, np.int8):
        for m, n in ((64, 64), (200, 72), (33, 129), (1, 7)):
            x = cp.asarray((100 * rng.standard_normal((m, n))).astype(dtype))
            for kernel in (transpose_tile, transpose_order):
                y = cp.zeros((n, m), dtype=dtype)
                ct.launch(stream, (ct.cdiv(m, 32), ct.cdiv(n, 64)), kernel, (x, y, 32, 64))
                np.testing.assert_array_equal(cp.asnumpy(y), cp.asnumpy(x).T)
    x = cp.asarray(rng.standard_normal((3, 20, 7, 4)).astype(np.float32))
    y = cp.zeros((3, 4, 20, 7), dtype=np.float32)
    ct.launch(stream, (3, ct.cdiv(20, 16)), permute_axes, (x, y, 16))
    np.testing.assert_array_equal(cp.asnumpy(y), cp.asnumpy(x).transpose(0, 3, 1, 2))


if __name__ == "__main__":
    main()
