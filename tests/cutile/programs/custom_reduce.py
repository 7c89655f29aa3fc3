"""Reductions with functions of one's own, of one tile and of several at once."""
import math
import operator

import cupy as cp
import numpy as np
import cuda.tile as ct


def greatest_common_divisor(a, b):
    """A fixed number of Euclid's steps serves numbers below 100."""
    for _ in ct.static_iter(range(10)):
        a, b = ct.where(b == 0, a, b), ct.where(b == 0, 0, a % ct.where(b == 0, 1, b))
    return a


def join_moments(count_a, mean_a, spread_a, count_b, mean_b, spread_b):
    """Chan's rule for count, mean and sum of squared deviations of two groups."""
    count = count_a + count_b
    safe = ct.where(count == 0.0, 1.0, count)
    delta = mean_b - mean_a
    mean = mean_a + delta * count_b / safe
    spread = spread_a + spread_b + delta * delta * count_a * count_b / safe
    return count, mean, spread


@ct.kernel
def fold_rows(x, result, rows: ct.Constant[int], columns: ct.Constant[int]):
    tile = ct.load(x, (0, 0), (rows, columns))
    ct.store(result, (0, 0), ct.reduce(tile, 1, operator.add, 0)[None, :])
    ct.store(result, (1, 0), ct.reduce(tile, 1, lambda a, b: a | b, 0)[None, :])
    ct.store(result, (2, 0), ct.reduce(tile, 1, lambda a, b: a ^ b, 0)[None, :])
    ct.store(result, (3, 0), ct.reduce(tile, 1, max, 0)[None, :])
    ct.store(result, (4, 0), ct.reduce(tile, -1, greatest_common_divisor, 0, keepdims=True).transpose())


@ct.kernel
def moments(x, result, rows: ct.Constant[int], columns: ct.Constant[int]):
    tile = ct.load(x, (0, 0), (rows, columns))
    ones = ct.ones((1, columns), dtype=ct.float32)  # stretched to the tile's shape
    count, mean, spread = ct.reduce((ones, tile, ct.zeros((rows, 1), dtype=ct.float32)), 1,
                                    join_moments, (0.0, 0.0, 0.0))
    ct.store(result, (0, 0), count[None, :])
    ct.store(result, (1, 0), mean[None, :])
    ct.store(result, (2, 0), (spread / count)[None, :])


@ct.kernel
def extent(x, result, n: ct.Constant[int]):
    """The smallest and the largest in one pass over each column."""
    tile = ct.load(x, (0, ct.bid(0)), (n, n))
    low, high = ct.reduce((tile, tile), 0, lambda a, b, c, d: (min(a, c), max(b, d)),
                          (math.inf, -math.inf))
    ct.store(result, (0, ct.bid(0)), low[None, :])
    ct.store(result, (1, ct.bid(0)), high[None, :])


@ct.kernel
def count_and_any(x, limit, result, n: ct.Constant[int]):
    """Operands of different element types, and a value captured by the function."""
    row = ct.bid(0)
    tile = ct.load(x, (row, 0), (1, n)).reshape((n,))
    hits = tile > limit
    count, found = ct.reduce((ct.astype(hits, ct.int64), hits), 0,
                             lambda a, p, b, q: (a + b, p | q), (0, False))
    ct.store(result, (row, 0), count)
    ct.store(result, (row, 1), ct.astype(found, ct.int64))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(27)
    for columns in (2, 8, 32):
        x = rng.integers(1, 9, (4, columns)).astype(np.int32) * rng.integers(1, 9, (4, 1)).astype(np.int32)
        result = cp.zeros((5, 4), dtype=np.int32)
        ct.launch(stream, (1,), fold_rows, (cp.asarray(x), result, 4, columns))
        want = [x.sum(axis=1), np.bitwise_or.reduce(x, axis=1), np.bitwise_xor.reduce(x, axis=1),
                x.max(axis=1), np.gcd.reduce(x, axis=1)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

        x = (rng.standard_normal((8, columns)) + 100).astype(np.float32)
        result = cp.zeros((3, 8), dtype=np.float32)
        ct.launch(stream, (1,), moments, (cp.asarray(x), result, 8, columns))
        count, mean, variance = cp.asnumpy(result)
        np.testing.assert_array_equal(count, columns)
        np.testing.assert_allclose(mean, x.astype(np.float64).mean(axis=1), rtol=1e-6)
        np.testing.assert_allclose(variance, x.astype(np.float64).var(axis=1), rtol=1e-3)

    x = rng.standard_normal((16, 48)).astype(np.float64)
    result = cp.zeros((2, 48), dtype=np.float64)
    ct.launch(stream, (3,), extent, (cp.asarray(x), result, 16))
    np.testing.assert_array_equal(cp.asnumpy(result), [x.min(axis=0), x.max(axis=0)])

    x = rng.integers(0, 10, (6, 16)).astype(np.float32)
    for limit in (3.5, 8.5, 20.0):
        result = cp.zeros((6, 2), dtype=np.int64)
        ct.launch(stream, (6,), count_and_any, (cp.asarray(x), limit, result, 16))
        want = np.stack([(x > limit).sum(axis=1), (x > limit).any(axis=1)], axis=1)
        np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
