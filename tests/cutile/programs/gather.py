"""Gathers: indices of any shape, masks, padding values, and indices outside the array."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def gather_row(source, indices, result, n: ct.Constant[int]):
    index = ct.load(indices, (0,), (n,))
    ct.store(result, (0,), ct.gather(source, index))
    ct.store(result, (1,), ct.gather(source, (index,), padding_value=-5))


@ct.kernel
def gather_masked(source, indices, result, n: ct.Constant[int]):
    index = ct.load(indices, (0,), (n,))
    mask = index % 3 != 0
    ct.store(result, (0,), ct.gather(source, index, mask=mask))
    padding = ct.astype(ct.arange(n, dtype=ct.int32), source.dtype) + 1000
    ct.store(result, (1,), ct.gather(source, index, mask=mask, padding_value=padding))


@ct.kernel
def gather_unchecked(source, indices, result, n: ct.Constant[int]):
    """Indices that a mask turns off may point anywhere; the others lie inside."""
    index = ct.load(indices, (0,), (n,))
    mask = (index >= 0) & (index < source.shape[0])
    ct.store(result, (0,), ct.gather(source, index, mask=mask, check_bounds=False, padding_value=7))


@ct.kernel
def gather_plane(source, result, rows: ct.Constant[int], columns: ct.Constant[int]):
    """Indices of shapes (rows, 1) and (columns,) meet in a tile of (rows, columns)."""
    row = ct.arange(rows, dtype=ct.int32)[:, None] * 2 - 1
    column = columns - ct.arange(columns, dtype=ct.int64)
    ct.store(result, (0, 0), ct.gather(source, (row, column), padding_value=-1))


@ct.kernel
def gather_scalar(source, result):
    i = ct.bid(0)
    ct.scatter(result, i, ct.gather(source, (i, source.shape[1] - 1 - i)))


def expected(source, index, padding):
    inside = (index >= 0) & (index < len(source))
    return np.where(inside, source[np.clip(index, 0, len(source) - 1)], padding)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(3)
    for dtype in (np.float16, np.float32, np.float64, np.int8, np.uint32, np.int64):
        for size in (1, 13, 100):
            source = rng.integers(0, 100, size).astype(dtype)
            for index_type in (np.int32, np.int64):
                index = rng.integers(-8, size + 8, 32).astype(index_type)
                index[:4] = (0, size - 1, size, -1)
                device = [cp.asarray(source), cp.asarray(index)]

                if np.dtype(dtype).kind != "u":
                    result = cp.zeros(64, dtype=dtype)
                    ct.launch(stream, (1,), gather_row, (*device, result, 32))
                    want = [expected(source, index, dtype(0)), expected(source, index, dtype(-5))]
                    np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want))

                if np.dtype(dtype).itemsize > 1:
                    result = cp.zeros(64, dtype=dtype)
                    ct.launch(stream, (1,), gather_masked, (*device, result, 32))
                    masked = np.where(index % 3 != 0, index, -1)
                    padding = np.arange(1000, 1032).astype(dtype)
                    want = [expected(source, masked, dtype(0)), expected(source, masked, padding)]
                    np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want))

                result = cp.zeros(32, dtype=dtype)
                ct.launch(stream, (1,), gather_unchecked, (*device, result, 32))
                np.testing.assert_array_equal(cp.asnumpy(result), expected(source, index, dtype(7)))

    for shape in ((20, 20), (7, 9), (1, 40)):
        source = rng.integers(0, 1000, shape).astype(np.int32)
        result = cp.zeros((8, 16), dtype=np.int32)
        ct.launch(stream, (1,), gather_plane, (cp.asarray(source), result, 8, 16))
        want = np.full((8, 16), -1, dtype=np.int32)
        for i in range(8):
            for j in range(16):
                row, column = 2 * i - 1, 16 - j
                if 0 <= row < shape[0] and column < shape[1]:
                    want[i, j] = source[row, column]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    # A view with gaps, element by element.
    base = rng.standard_normal((16, 30)).astype(np.float32)
    view = cp.asarray(base)[::2, 1::3]
    result = cp.zeros(8, dtype=np.float32)
    ct.launch(stream, (8,), gather_scalar, (view, result))
    np.testing.assert_array_equal(cp.asnumpy(result), [base[::2, 1::3][i, 9 - i] for i in range(8)])


if __name__ == "__main__":
    main()
