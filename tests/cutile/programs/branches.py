"""Branches: chains of conditions, values that leave them, nests, conditional expressions."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def classify(x, result):
    i = ct.bid(0)
    value = ct.gather(x, i)
    if value < 0:
        if value % 2 == 0:
            kind = 1
        else:
            kind = 2
    elif value == 0:
        kind = 3
    elif value < 10:
        kind = 4 if value % 3 == 0 else 5
    else:
        kind = 6
    ct.store(result, (i,), kind)


@ct.kernel
def several_values(x, result, n: ct.Constant[int], mode):
    """A tile, a scalar and a tuple change together, or not at all."""
    tile = ct.load(x, (0,), (n,))
    factor = 1.0
    pair = (0, 0)
    if mode == 1:
        tile = tile + 1.0
        factor = 2.0
        pair = (1, 5)
    elif mode == 2:
        tile = -tile
        pair = (pair[1] + 2, 6)
    ct.store(result, (0, 0), (tile * factor)[None, :])
    ct.store(result, (1, 0), ct.full((1, n), pair[0] * 10 + pair[1], dtype=ct.float32))


@ct.kernel
def logic(a, b, result):
    """`and`, `or` and `not` on scalars, and chained comparisons."""
    i = ct.bid(0)
    p, q = ct.gather(a, i), ct.gather(b, i)
    ct.store(result, (i, 0), 1 if p > 0 and q > 0 else 0)
    ct.store(result, (i, 1), 1 if p > 0 or q > 0 else 0)
    ct.store(result, (i, 2), 1 if not p == q else 0)
    ct.store(result, (i, 3), 1 if (0 <= p and p < 5) and not (q < 0 or q > 3) else 0)


@ct.kernel
def one_branch_stores(result, n: ct.Constant[int]):
    """Side effects on one side only, inside a loop."""
    for i in range(n):
        if i % 3 == 1:
            ct.scatter(result, i, i * 10)
        elif i % 3 == 2:
            if i > 5:
                ct.scatter(result, i, -i)


@ct.kernel
def known_when_compiling(x, result, wide: ct.Constant[bool], shape: ct.Constant[int]):
    """A constant condition keeps only one side, which alone must make sense."""
    if wide:
        tile = ct.load(x, (0,), (shape * 2,))
        total = ct.sum(tile)
    else:
        total = ct.sum(ct.load(x, (0,), (shape,)))
    ct.store(result, (0,), total)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(41)
    x = np.arange(-8, 16, dtype=np.int32)
    result = cp.zeros(24, dtype=np.int32)
    ct.launch(stream, (24,), classify, (cp.asarray(x), result))
    want = [(1 if v % 2 == 0 else 2) if v < 0 else 3 if v == 0 else (4 if v % 3 == 0 else 5) if v < 10 else 6
            for v in x.tolist()]
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    x = rng.standard_normal(8).astype(np.float32)
    for mode, tile, number in ((0, x, 0), (1, (x + 1) * 2, 15), (2, -x, 26), (3, x, 0)):
        result = cp.zeros((2, 8), dtype=np.float32)
        ct.launch(stream, (1,), several_values, (cp.asarray(x), result, 8, mode))
        np.testing.assert_array_equal(cp.asnumpy(result), [tile, np.full(8, number)])

    a, b = rng.integers(-3, 7, (2, 40)).astype(np.int32)
    result = cp.zeros((40, 4), dtype=np.int32)
    ct.launch(stream, (40,), logic, (cp.asarray(a), cp.asarray(b), result))
    want = [[p > 0 and q > 0, p > 0 or q > 0, p != q, 0 <= p < 5 and 0 <= q <= 3] for p, q in zip(a, b)]
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros(12, dtype=np.int32)
    ct.launch(stream, (1,), one_branch_stores, (result, 12))
    want = [i * 10 if i % 3 == 1 else -i if i % 3 == 2 and i > 5 else 0 for i in range(12)]
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    x = rng.integers(0, 99, 16).astype(np.int32)
    for wide in (False, True):
        result = cp.zeros(1, dtype=np.int32)
        ct.launch(stream, (1,), known_when_compiling, (cp.asarray(x), result, wide, 8))
        assert int(result[0]) == x[:16 if wide else 8].sum()


if __name__ == "__main__":
    main()
