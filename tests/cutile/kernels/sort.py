"""Sorting rows with a bitonic network: log² steps of comparisons between fixed partners. In one tile, where partners
meet by reshaping; and through memory, one kernel per step, for rows longer than a tile."""
import cuda.tile as ct
import cupy as cp
import numpy as np


@ct.kernel
def bitonic_tile(x, y, n: ct.Constant[int], log_n: ct.Constant[int]):
    row = ct.bid(0)
    values = ct.load(x, (row, 0), (1, n), padding_mode=ct.PaddingMode.POS_INF).reshape((n,))
    places = ct.arange(n, dtype=ct.int32)
    for size in ct.static_iter(range(1, log_n + 1)):
        for distance in ct.static_iter(range(size - 1, -1, -1)):
            pairs = values.reshape((n >> (distance + 1), 2, 1 << distance))
            a = ct.extract(pairs, (0, 0, 0), (n >> (distance + 1), 1, 1 << distance))
            b = ct.extract(pairs, (0, 1, 0), (n >> (distance + 1), 1, 1 << distance))
            smaller, larger = ct.minimum(a, b), ct.maximum(a, b)
            first = places.reshape((n >> (distance + 1), 2, 1 << distance))
            first = ct.extract(first, (0, 0, 0), (n >> (distance + 1), 1, 1 << distance))
            up = (first >> size) % 2 == 0
            values = ct.cat((ct.where(up, smaller, larger), ct.where(up, larger, smaller)), 1).reshape((n,))
    ct.store(y, (row, 0), values.reshape((1, n)))


@ct.kernel
def bitonic_step(keys, payload, size, distance, t: ct.Constant[int]):
    """One step on a whole vector: thread i of the first half of each pair exchanges with i + distance."""
    i = ct.bid(0) * t + ct.arange(t, dtype=ct.int32)
    first = i // distance * (2 * distance) + i % distance
    second = first + distance
    a, b = ct.gather(keys, first), ct.gather(keys, second)
    p, q = ct.gather(payload, first), ct.gather(payload, second)
    up = first // size % 2 == 0
    swap = (a > b) == up
    ct.scatter(keys, first, ct.where(swap, b, a))
    ct.scatter(keys, second, ct.where(swap, a, b))
    ct.scatter(payload, first, ct.where(swap, q, p))
    ct.scatter(payload, second, ct.where(swap, p, q))


def main():
    rng = np.random.default_rng(21)
    stream = cp.cuda.get_current_stream()
    for rows, n in ((3, 64), (2, 50), (4, 1)):
        x = rng.standard_normal((rows, n)).astype(np.float32)
        y = cp.zeros((rows, n), dtype=np.float32)
        log_n = max(1, (n - 1).bit_length())
        ct.launch(stream, (rows,), bitonic_tile, (cp.asarray(x), y, 1 << log_n, log_n))
        np.testing.assert_array_equal(cp.asnumpy(y), np.sort(x, axis=1))
    n = 1024
    keys = rng.permutation(n).astype(np.int32)
    k, p = cp.asarray(keys), cp.asarray(np.arange(n, dtype=np.int32))
    size = 2
    while size <= n:
        distance = size // 2
        while distance >= 1:
            ct.launch(stream, (n // 2 // 64,), bitonic_step, (k, p, size, distance, 64))
            distance //= 2
        size *= 2
    np.testing.assert_array_equal(cp.asnumpy(k), np.arange(n))
    np.testing.assert_array_equal(keys[cp.asnumpy(p)], np.arange(n))


if __name__ == "__main__":
    main()
