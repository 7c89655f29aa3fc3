"""Array.slice: windows into an array whose bounds are known only when the kernel runs."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def copy_window(source, result, top, bottom, left, right):
    window = source.slice(axis=0, start=top, stop=bottom).slice(axis=-1, start=left, stop=right)
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(window, (i, j), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (i, j), tile)
    ct.static_assert(window.ndim == 2)


@ct.kernel
def segment_sums(values, offsets, result, tile: ct.Constant[int]):
    """One block per segment of a ragged array."""
    segment = ct.bid(0)
    start = ct.load(offsets, (segment,), ())
    stop = ct.load(offsets, (segment + 1,), ())
    part = values.slice(axis=0, start=start, stop=stop)
    total = ct.zeros((tile,), dtype=ct.float32)
    for i in range(ct.num_tiles(part, 0, tile)):
        total = total + ct.load(part, (i,), (tile,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (segment,), ct.sum(total))


@ct.kernel
def fill_band(matrix, first, count, value):
    """Stores through a slice stay inside it."""
    band = matrix.slice(1, first, first + count)
    for i in range(ct.num_tiles(band, 0, (4, 4))):
        for j in range(ct.num_tiles(band, 1, (4, 4))):
            ct.store(band, (i, j), ct.full((4, 4), value, dtype=matrix.dtype))


@ct.kernel
def window_facts(source, result, start, stop):
    window = source.slice(axis=1, start=start, stop=stop)
    numbers = (window.shape[0], window.shape[1], window.strides[0], window.strides[1])
    for i in ct.static_iter(range(4)):
        ct.store(result, (i,), numbers[i])
    ct.scatter(result, 4, ct.gather(window, (1, 0)))
    ct.scatter(result, 5, ct.gather(window, (1, stop - start), padding_value=-3))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(6)
    source = rng.integers(1, 1000, (23, 37)).astype(np.int32)
    for top, bottom, left, right in ((0, 23, 0, 37), (3, 9, 5, 6), (22, 23, 1, 37), (8, 16, 8, 24)):
        want = source[top:bottom, left:right]
        result = cp.zeros(want.shape, dtype=np.int32)
        grid = (ct.cdiv(bottom - top, 4), ct.cdiv(right - left, 8))
        ct.launch(stream, grid, copy_window, (cp.asarray(source), result, top, bottom, left, right))
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    lengths = [5, 0, 16, 1, 33, 0]
    offsets = np.cumsum([0] + lengths).astype(np.int32)
    values = rng.integers(-50, 50, offsets[-1]).astype(np.float32)
    result = cp.full(len(lengths), -1, dtype=np.float32)
    # An empty last segment would start at the end of the array, where no slice may start.
    ct.launch(stream, (len(lengths) - 1,), segment_sums,
              (cp.asarray(values), cp.asarray(offsets), result, 8))
    want = [values[a:b].sum() for a, b in zip(offsets, offsets[1:])][:-1]
    np.testing.assert_array_equal(cp.asnumpy(result), want + [-1])

    for first, count in ((0, 10), (2, 5), (9, 1)):
        matrix = cp.zeros((6, 10), dtype=np.float32)
        ct.launch(stream, (1,), fill_band, (matrix, first, count, 2.5))
        want = np.zeros((6, 10), dtype=np.float32)
        want[:, first:first + count] = 2.5
        np.testing.assert_array_equal(cp.asnumpy(matrix), want)

    result = cp.zeros(6, dtype=np.int32)
    ct.launch(stream, (1,), window_facts, (cp.asarray(source), result, 4, 9))
    np.testing.assert_array_equal(cp.asnumpy(result), [23, 5, 37, 1, source[1, 4], -3])


if __name__ == "__main__":
    main()
