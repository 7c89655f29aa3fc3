"""Scatters: permutations, masks, indices outside the array, broadcast values."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def permute_elements(source, places, result, n: ct.Constant[int]):
    block = ct.bid(0)
    place = ct.load(places, (block,), (n,))
    ct.scatter(result, place, ct.load(source, (block,), (n,)))


@ct.kernel
def scatter_masked(places, result, n: ct.Constant[int]):
    place = ct.load(places, (0,), (n,))
    ct.scatter(result, place, place * 10, mask=place % 2 == 0)


@ct.kernel
def scatter_unchecked(places, result, n: ct.Constant[int]):
    place = ct.load(places, (0,), (n,))
    inside = (place >= 0) & (place < result.shape[0])
    ct.scatter(result, (place,), place + 1, mask=inside, check_bounds=False)


@ct.kernel
def checkerboard(result, n: ct.Constant[int]):
    """A scalar, a row and a column meet; everything outside is dropped."""
    row = ct.arange(n, dtype=ct.int32)[:, None]
    column = ct.arange(n, dtype=ct.int32)[None, :]
    ct.scatter(result, (row, column), 1, mask=(row + column) % 2 == 0)
    ct.scatter(result, (row - 2, column), column * 2, mask=(row + column) % 2 == 1)


@ct.kernel
def reverse_rows(source, result, n: ct.Constant[int]):
    row = ct.bid(0)
    column = ct.arange(n, dtype=ct.int32)
    values = ct.gather(source, (row, column))
    ct.scatter(result, (row, source.shape[1] - 1 - column), values)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(4)

    for dtype in (np.int8, np.float16, np.float32, np.float64, np.uint16, np.int64):
        source = rng.integers(0, 100, 64).astype(dtype)
        places = rng.permutation(64).astype(np.int32)
        result = cp.zeros(64, dtype=dtype)
        ct.launch(stream, (4,), permute_elements, (cp.asarray(source), cp.asarray(places), result, 16))
        want = np.zeros_like(source)
        want[places] = source
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for size in (1, 10, 40):
        places = rng.permutation(np.arange(-8, 24)).astype(np.int32)
        result = cp.full(size, -1, dtype=np.int32)
        ct.launch(stream, (1,), scatter_masked, (cp.asarray(places), result, 32))
        want = np.array([i * 10 if i % 2 == 0 and i < 24 else -1 for i in range(size)])
        np.testing.assert_array_equal(cp.asnumpy(result), want)

        result = cp.full(size, -1, dtype=np.int32)
        ct.launch(stream, (1,), scatter_unchecked, (cp.asarray(places), result, 32))
        want = np.array([i + 1 if i < 24 else -1 for i in range(size)])
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for shape in ((8, 8), (5, 11), (3, 2)):
        frame = cp.zeros((shape[0] + 2, shape[1] + 2), dtype=np.int32)
        ct.launch(stream, (1,), checkerboard, (frame[1:-1, 1:-1], 8))
        want = np.zeros((shape[0] + 2, shape[1] + 2), dtype=np.int32)
        for i in range(8):
            for j in range(min(8, shape[1])):
                if (i + j) % 2 == 0 and i < shape[0]:
                    want[1 + i, 1 + j] = 1
                if (i + j) % 2 == 1 and 0 <= i - 2 < shape[0]:
                    want[1 + i - 2, 1 + j] = 2 * j
        np.testing.assert_array_equal(cp.asnumpy(frame), want)

    source = rng.standard_normal((6, 13)).astype(np.float32)
    result = cp.zeros((6, 13), dtype=np.float32)
    ct.launch(stream, (6,), reverse_rows, (cp.asarray(source), result, 16))
    np.testing.assert_array_equal(cp.asnumpy(result), source[:, ::-1])


if __name__ == "__main__":
    main()
