"""Tiles made from nothing: constants of every type, ranges, nested tuples."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def constants(result, value):
    """Zeros, ones, a constant and a value known only at run time."""
    ct.store(result, (0, 0), ct.zeros((2, 8), dtype=result.dtype))
    ct.store(result, (1, 0), ct.ones((2, 8), dtype=result.dtype))
    ct.store(result, (2, 0), ct.full((2, 8), 3, dtype=result.dtype))
    ct.store(result, (3, 0), ct.full((2, 8), value, dtype=result.dtype))
    ct.store(result, (4, 0), ct.astile(((1, 2, 3, 4, 5, 6, 7, 8), (8, 7, 6, 5, 4, 3, 2, 1)), dtype=result.dtype))


@ct.kernel
def ranges(result, start, step):
    ct.store(result, (0, 0), ct.arange(8, dtype=ct.int32)[None, :])
    ct.store(result, (1, 0), ct.arange(8, dtype=ct.int32, start=5)[None, :])
    ct.store(result, (2, 0), ct.arange(8, dtype=ct.int32, start=20, step=-3)[None, :])
    ct.store(result, (3, 0), ct.arange(8, dtype=ct.int32, start=start, step=step)[None, :])
    ct.store(result, (4, 0), ct.arange(8, dtype=ct.int64, start=ct.bid(0))[None, :].astype(ct.int32))


@ct.kernel
def float_range(result):
    ct.store(result, (0,), ct.arange(8, dtype=result.dtype, start=1, step=2))


@ct.kernel
def special(result):
    """Constants that text would not keep: infinities, NaN, zeros of both signs, a subnormal."""
    values = (float("inf"), -float("inf"), float("nan"), -0.0, 0.0, 1e-40, 0.1, -3.4e38)
    ct.store(result, (0,), ct.astile(values, dtype=ct.float32))
    for k in ct.static_iter(range(8)):
        ct.store(result, (8 + k,), ct.full((1,), values[k], dtype=ct.float32))


@ct.kernel
def run_time_tuple(x, result):
    """Elements that are computed, one by one, become a tile."""
    a, b = ct.load(x, (0,), ()), ct.load(x, (1,), ())
    ct.store(result, (0, 0), ct.astile(((a, b), (a + b, a * b)), dtype=ct.int32))
    ct.store(result, (0, 1), ct.astile(((True, False), (False, True)), dtype=ct.bool_).astype(ct.int32))


def main():
    stream = cp.cuda.get_current_stream()
    for dtype in (np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.float16, np.float32, np.float64):
        result = cp.zeros((10, 8), dtype=dtype)
        ct.launch(stream, (1,), constants, (result, 7))
        count = np.arange(1, 9)
        want = np.concatenate([np.repeat([[0], [0], [1], [1], [3], [3], [7], [7]], 8, axis=1), [count, count[::-1]]])
        np.testing.assert_array_equal(cp.asnumpy(result), want)
    result = cp.full((10, 8), True, dtype=np.bool_)
    ct.launch(stream, (1,), constants, (result, True))
    np.testing.assert_array_equal(cp.asnumpy(result)[:, 0], [0, 0, 1, 1, 1, 1, 1, 1, 1, 1])

    for start, step in ((0, 1), (-4, 3), (100, -20)):
        result = cp.zeros((5, 8), dtype=np.int32)
        ct.launch(stream, (1,), ranges, (result, start, step))
        i = np.arange(8)
        np.testing.assert_array_equal(cp.asnumpy(result), [i, 5 + i, 20 - 3 * i, start + step * i, i])

    for dtype in (np.float16, np.float32, np.float64, np.int8, np.uint64):
        result = cp.zeros(8, dtype=dtype)
        ct.launch(stream, (1,), float_range, (result,))
        np.testing.assert_array_equal(cp.asnumpy(result), np.arange(1, 17, 2))

    result = cp.zeros(16, dtype=np.float32)
    ct.launch(stream, (1,), special, (result,))
    want = np.float32([np.inf, -np.inf, np.nan, -0.0, 0.0, 1e-40, 0.1, -3.4e38])
    np.testing.assert_array_equal(cp.asnumpy(result), np.tile(want, 2))
    np.testing.assert_array_equal(np.signbit(cp.asnumpy(result)[3:5]), [True, False])

    result = cp.zeros((2, 4), dtype=np.int32)
    ct.launch(stream, (1,), run_time_tuple, (cp.asarray(np.int32([3, 5])), result))
    np.testing.assert_array_equal(cp.asnumpy(result), [[3, 5, 1, 0], [8, 15, 0, 1]])


if __name__ == "__main__":
    main()
