"""Prefix sums: of a row in pieces with a carried sum; of a long vector by three kernels (sums of tiles, their prefix
sums, and all elements); and a running maximum as a scan with a function of one's own."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def row_prefix_sum(x, y, tn: ct.Constant[int], reverse: ct.Constant[bool]):
    row = ct.bid(0)
    carry = ct.zeros((1, 1), dtype=x.dtype)
    tiles = ct.num_tiles(x, 1, (1, tn))
    for step in range(tiles):
        j = tiles - 1 - step if reverse else step
        tile = ct.load(x, (row, j), (1, tn), padding_mode=ct.PaddingMode.ZERO)
        ct.store(y, (row, j), ct.cumsum(tile, axis=1, reverse=reverse) + carry)
        carry = carry + ct.sum(tile, axis=1, keepdims=True)


@ct.kernel
def tile_sums(x, sums, t: ct.Constant[int]):
    i = ct.bid(0)
    ct.scatter(sums, i, ct.sum(ct.load(x, (i,), (t,), padding_mode=ct.PaddingMode.ZERO)))


@ct.kernel
def scan_sums(sums, t: ct.Constant[int]):
    values = ct.load(sums, (0,), (t,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(sums, (0,), ct.cumsum(values) - values)


@ct.kernel
def add_sums(x, sums, y, t: ct.Constant[int]):
    i = ct.bid(0)
    values = ct.load(x, (i,), (t,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(y, (i,), ct.cumsum(values) + ct.gather(sums, i))


@ct.kernel
def running_maximum(x, y, t: ct.Constant[int]):
    i = ct.bid(0)
    values = ct.load(x, (i, 0), (1, t), padding_mode=ct.PaddingMode.NEG_INF)
    ct.store(y, (i, 0), ct.scan(values, 1, lambda a, b: ct.maximum(a, b), float("-inf")))


def main():
    rng = np.random.default_rng(18)
    stream = cp.cuda.get_current_stream()
    for rows, n in ((4, 256), (3, 100), (1, 1)):
        for dtype in (np.int32, np.float32):
            x = (10 * rng.standard_normal((rows, n))).astype(dtype)
            for reverse in (False, True):
                y = cp.zeros((rows, n), dtype=dtype)
                ct.launch(stream, (rows,), row_prefix_sum, (cp.asarray(x), y, 64, reverse))
                wide = x.astype(np.float64)
                want = wide[:, ::-1].cumsum(axis=1)[:, ::-1] if reverse else wide.cumsum(axis=1)
                np.testing.assert_allclose(cp.asnumpy(y), want, rtol=0, atol=0 if dtype == np.int32 else 2e-3)
        x = rng.standard_normal((rows, n)).astype(np.float32)
        y = cp.zeros((rows, n), dtype=np.float32)
        ct.launch(stream, (rows,), running_maximum, (cp.asarray(x), y, 256))
        np.testing.assert_array_equal(cp.asnumpy(y), np.maximum.accumulate(x, axis=1))
    for n in (1000, 8192, 5):
        x = rng.integers(-50, 50, n).astype(np.int64)
        tiles = ct.cdiv(n, 128)
        sums, y = cp.zeros(tiles, dtype=np.int64), cp.zeros(n, dtype=np.int64)
        ct.launch(stream, (tiles,), tile_sums, (cp.asarray(x), sums, 128))
        ct.launch(stream, (1,), scan_sums, (sums, 64))
        ct.launch(stream, (tiles,), add_sums, (cp.asarray(x), sums, y, 128))
        np.testing.assert_array_equal(cp.asnumpy(y), x.cumsum())


if __name__ == "__main__":
    main()
