"""argmax and argmin: ties go to the first, NaN loses or wins as asked."""
import cupy as cp
import numpy as np
import cuda.tile as ct


def finder(function, axis, keepdims, propagate_nan=False):
    @ct.kernel
    def kernel(x, result, shape: ct.Constant):
        tile = ct.load(x, (0, 0), shape)
        place = function(tile, axis, keepdims=keepdims, propagate_nan=propagate_nan)
        ct.static_assert(place.dtype == ct.int32)
        ct.static_assert(place.shape == np.empty(shape).sum(axis=axis, keepdims=keepdims).shape)
        ct.store(result, (0,), place.reshape((-1,)))

    return kernel


@ct.kernel
def top_four(x, values, places, n: ct.Constant[int]):
    """The largest elements of a row, one after the other."""
    row = ct.bid(0)
    tile = ct.load(x, (row, 0), (1, n), padding_mode=ct.PaddingMode.NEG_INF).reshape((n,))
    index = ct.arange(n, dtype=ct.int32)
    for k in range(4):
        place = ct.argmax(tile, 0, propagate_nan=False)
        ct.store(values, (row, k), ct.max(tile, 0))
        ct.store(places, (row, k), place)
        tile = ct.where(index == place, float("-inf"), tile)


@ct.kernel
def both_ends(x, result):
    """Where each row of a matrix is lowest and highest; NaN is both."""
    tile = ct.load(x, (0, 0), (8, 16))
    ct.store(result, (0, 0), ct.argmin(tile, 1, keepdims=True, propagate_nan=True))
    ct.store(result, (0, 1), ct.argmax(tile, 1, keepdims=True, propagate_nan=True))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(25)
    for function, reference in ((ct.argmax, np.argmax), (ct.argmin, np.argmin)):
        for axis in (None, 0, 1, -2):
            for keepdims in (False, True):
                kernel = finder(function, axis, keepdims)
                for dtype in (np.int8, np.int32, np.uint64, np.float16, np.float32, np.float64):
                    x = rng.integers(0, 5, (8, 16)).astype(dtype)  # many ties
                    want = reference(x, axis=axis, keepdims=keepdims)
                    result = cp.zeros(want.size, dtype=np.int32)
                    ct.launch(stream, (1,), kernel, (cp.asarray(x), result, (8, 16)))
                    np.testing.assert_array_equal(cp.asnumpy(result), want.reshape(-1))

        x = rng.standard_normal((8, 16)).astype(np.float32)
        x[rng.random((8, 16)) < 0.4] = np.nan
        x[:, 5] = rng.standard_normal(8)  # at least one number in each row
        ignoring = {np.argmax: np.nanargmax, np.argmin: np.nanargmin}[reference]
        for propagate, wanted in ((False, ignoring(x, axis=1)), (True, reference(x, axis=1))):
            result = cp.zeros(8, dtype=np.int32)
            ct.launch(stream, (1,), finder(function, 1, False, propagate), (cp.asarray(x), result, (8, 16)))
            np.testing.assert_array_equal(cp.asnumpy(result), wanted)

    result = cp.zeros((8, 2), dtype=np.int32)
    ct.launch(stream, (1,), both_ends, (cp.asarray(x), result))
    np.testing.assert_array_equal(cp.asnumpy(result), np.stack([x.argmin(axis=1), x.argmax(axis=1)], axis=1))

    for width in (5, 16, 11):
        x = rng.permutation(6 * width).reshape(6, width).astype(np.float32)
        values, places = cp.zeros((6, 4), dtype=np.float32), cp.zeros((6, 4), dtype=np.int32)
        ct.launch(stream, (6,), top_four, (cp.asarray(x), values, places, 16))
        order = np.argsort(-x, axis=1)[:, :4]
        np.testing.assert_array_equal(cp.asnumpy(places), order)
        np.testing.assert_array_equal(cp.asnumpy(values), np.take_along_axis(x, order, axis=1))


if __name__ == "__main__":
    main()
