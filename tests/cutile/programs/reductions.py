"""Sums, products, maxima and minima along each axis, several axes and all of them."""
import cupy as cp
import ml_dtypes
import numpy as np
import cuda.tile as ct


def reducer(function, axis, keepdims):
    @ct.kernel
    def kernel(x, result, shape: ct.Constant):
        tile = ct.load(x, (0, 0, 0), shape)
        reduced = function(tile, axis, keepdims=keepdims)
        expected = ct.static_eval(np.empty(shape).sum(axis=axis, keepdims=keepdims).shape)
        ct.static_assert(reduced.shape == expected)
        # The elements lie in the same order for any rank.
        ct.store(result, (0,), reduced.reshape((-1,)))

    return kernel


@ct.kernel
def ragged_total(x, result, n: ct.Constant[int]):
    """Reduce an array of any length, tile by tile."""
    total = ct.zeros((n,), dtype=x.dtype)
    highest = ct.full((n,), -1e30, dtype=x.dtype)
    for i in range(ct.num_tiles(x, 0, n)):
        total = total + ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.ZERO)
        tile = ct.load(x, (i,), (n,), padding_mode=ct.PaddingMode.NEG_INF)
        highest = ct.maximum(highest, tile)
    ct.store(result, (0,), ct.sum(total))
    ct.store(result, (1,), ct.max(highest))


@ct.kernel
def rounded_sums(x, result, n: ct.Constant[int]):
    """Two terms per sum and product, so that the rounding shows."""
    tile = ct.load(x, (0, 0), (2, n))
    down, up = ct.RoundingMode.RM, ct.RoundingMode.RP
    ct.store(result, (0, 0), ct.sum(tile, axis=0, keepdims=True, rounding_mode=down))
    ct.store(result, (1, 0), ct.sum(tile, axis=0, keepdims=True, rounding_mode=up))
    ct.store(result, (2, 0), ct.prod(tile, axis=0, keepdims=True, rounding_mode=down))
    ct.store(result, (3, 0), ct.prod(tile, axis=0, keepdims=True, rounding_mode=up))


@ct.kernel
def bfloat_sums(x, result):
    tile = ct.bitcast(ct.load(x, (0, 0), (4, 16)), ct.bfloat16)
    ct.store(result, (0,), ct.bitcast(ct.sum(tile, axis=1), ct.uint16))
    ct.store(result, (1,), ct.bitcast(ct.max(tile, axis=1), ct.uint16))


PAIRS = ((ct.sum, np.sum), (ct.prod, np.prod), (ct.max, np.max), (ct.min, np.min))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(24)
    shape = (4, 2, 8)
    for axis in (None, 0, 1, 2, -1, (0, 1), (1, 2), (2, 0), (0, 1, 2)):
        for keepdims in (False, True):
            types = (np.int32, np.float32) if keepdims else (np.int16, np.uint32, np.int64, np.float16, np.float64)
            for function, reference in PAIRS:
                kernel = reducer(function, axis, keepdims)
                for dtype in types:
                    # Whole numbers, so small that every order of adding them is exact.
                    x = rng.integers(1, 4, shape) if function is not ct.prod else rng.integers(1, 3, shape)
                    if function is ct.prod:
                        x[rng.random(shape) < 0.8] = 1
                    if np.dtype(dtype).kind != "u":
                        x = x * rng.choice([-1, 1], shape)
                    x = x.astype(dtype)
                    want = reference(x, axis=axis, keepdims=keepdims).astype(dtype)
                    result = cp.zeros(want.size, dtype=dtype)
                    ct.launch(stream, (1,), kernel, (cp.asarray(x), result, shape))
                    np.testing.assert_array_equal(cp.asnumpy(result), want.reshape(-1),
                                                  err_msg=f"{reference.__name__} over {axis} of {dtype.__name__}")

    for size in (1, 31, 32, 33, 500):
        x = rng.integers(-100, 100, size).astype(np.float32)
        result = cp.zeros(2, dtype=np.float32)
        ct.launch(stream, (1,), ragged_total, (cp.asarray(x), result, 32))
        np.testing.assert_array_equal(cp.asnumpy(result), [x.sum(), x.max()])

    x = rng.standard_normal((2, 64)).astype(np.float32)
    result = cp.zeros((4, 64), dtype=np.float32)
    ct.launch(stream, (1,), rounded_sums, (cp.asarray(x), result, 64))
    got = cp.asnumpy(result).astype(np.float64)
    a, b = x.astype(np.float64)
    for low, high, exact in ((got[0], got[1], a + b), (got[2], got[3], a * b)):
        assert (low <= exact).all() and (exact <= high).all() and (low < high).any()
        assert (np.nextafter(np.float32(low), np.float32(np.inf)) >= np.float32(high)).all()

    x = rng.integers(-8, 8, (4, 16)).astype(ml_dtypes.bfloat16)
    result = cp.zeros(8, dtype=np.uint16)
    ct.launch(stream, (1,), bfloat_sums, (cp.asarray(x.view(np.uint16)), result))
    want = np.concatenate([x.astype(np.float32).sum(axis=1), x.astype(np.float32).max(axis=1)])
    np.testing.assert_array_equal(cp.asnumpy(result).view(ml_dtypes.bfloat16).astype(np.float32), want)


if __name__ == "__main__":
    main()
