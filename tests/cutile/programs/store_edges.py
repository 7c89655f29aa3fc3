"""Stores that reach past the edge leave everything outside the array alone; ranks 0 to 4."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def fill(result, value, shape: ct.Constant):
    index = (ct.bid(0), ct.bid(1))
    ct.store(result, index, ct.full(shape, value, dtype=result.dtype))


@ct.kernel
def fill_scalars(result):
    """A scalar stored with an index of rank 2 is a tile of one element."""
    i, j = ct.bid(0), ct.bid(1)
    ct.store(result, (i, j), i * 100 + j)


@ct.kernel
def copy_scalars(source, result):
    i = ct.bid(0)
    value = ct.load(source, (i,), shape=())
    ct.store(result, (i,), value * 2)


@ct.kernel
def add_one_4d(source, result, shape: ct.Constant):
    index = (ct.bid(0), ct.bid(1), ct.bid(2) // 2, ct.bid(2) % 2)
    tile = ct.load(source, index, shape, padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, index, tile + 1)


def main():
    stream = cp.cuda.get_current_stream()

    # The array is a window in a larger one, so a store outside would be seen.
    for height, width, tile in ((5, 7, (4, 4)), (1, 1, (2, 8)), (9, 16, (8, 16)), (3, 33, (1, 32))):
        frame = cp.full((height + 6, width + 10), -1, dtype=np.int32)
        window = frame[3:3 + height, 5:5 + width]
        grid = (ct.cdiv(height, tile[0]), ct.cdiv(width, tile[1]))
        ct.launch(stream, grid, fill, (window, 7, tile))
        want = np.full((height + 6, width + 10), -1, dtype=np.int32)
        want[3:3 + height, 5:5 + width] = 7
        np.testing.assert_array_equal(cp.asnumpy(frame), want)

    for dtype in (np.int32, np.int64, np.float32, np.float16):
        result = cp.zeros((6, 5), dtype=dtype)
        ct.launch(stream, (6, 5), fill_scalars, (result,))
        want = np.arange(6)[:, None] * 100 + np.arange(5)
        np.testing.assert_array_equal(cp.asnumpy(result), want.astype(dtype))

    source = np.linspace(-3, 3, 11).astype(np.float32)
    result = cp.zeros(11, dtype=np.float32)
    ct.launch(stream, (11,), copy_scalars, (cp.asarray(source), result))
    np.testing.assert_array_equal(cp.asnumpy(result), source * 2)

    source = np.arange(3 * 4 * 5 * 6, dtype=np.int16).reshape(3, 4, 5, 6)
    result = cp.zeros(source.shape, dtype=np.int16)
    ct.launch(stream, (3, 2, 3 * 2), add_one_4d, (cp.asarray(source), result, (1, 2, 2, 4)))
    np.testing.assert_array_equal(cp.asnumpy(result), source + 1)


if __name__ == "__main__":
    main()
