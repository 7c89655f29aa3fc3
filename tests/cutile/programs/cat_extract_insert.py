"""Tiles joined, cut into pieces and put together again."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def join(x, y, by_rows, by_columns):
    a, b = ct.load(x, (0, 0), (4, 8)), ct.load(y, (0, 0), (4, 8))
    ct.store(by_rows, (0, 0), ct.cat((a, b), 0))
    ct.store(by_columns, (0, 0), ct.cat((a, b), axis=-1))


@ct.kernel
def interleave(x, y, result, n: ct.Constant[int]):
    a, b = ct.load(x, (0,), (n,)), ct.load(y, (0,), (n,))
    ct.store(result, (0,), ct.cat((a[:, None], b[:, None]), 1).reshape((2 * n,)))


@ct.kernel
def rotate_quarters(x, result, steps):
    """Cut into four pieces of (4, 8) and store them in another order; pieces chosen at run time."""
    tile = ct.load(x, (0, 0), (8, 16))
    for k in range(4):
        place = (k + steps) % 4
        piece = ct.extract(tile, (place // 2, place % 2), (4, 8))
        ct.store(result, (k // 2, k % 2), piece)


@ct.kernel
def patch(x, result, row, column):
    """Put a small tile over a larger one, at a place known only at run time."""
    tile = ct.load(x, (0, 0), (8, 16))
    small = ct.full((2, 4), -1, dtype=tile.dtype)
    ct.store(result, (0, 0), ct.insert(tile, (row, column), small))
    again = tile.insert((row, column), tile.extract((3, 3), (2, 4)))
    ct.store(result, (1, 0), again)


@ct.kernel
def set_elements(result, n: ct.Constant[int]):
    """Build a tile one element at a time."""
    tile = ct.zeros((n,), dtype=ct.int32)
    for i in range(n):
        tile = ct.insert(tile, (i,), ct.full((1,), i * i, dtype=ct.int32))
    ct.store(result, (0,), tile)


@ct.kernel
def butterfly(x, result, n: ct.Constant[int]):
    """A Walsh-Hadamard transform by halves."""
    tile = ct.load(x, (0,), (n,))
    for level in ct.static_iter(range(4)):
        pairs = tile.reshape((1 << level, 2, n >> (level + 1)))
        a = ct.extract(pairs, (0, 0, 0), (1 << level, 1, n >> (level + 1)))
        b = ct.extract(pairs, (0, 1, 0), (1 << level, 1, n >> (level + 1)))
        tile = ct.cat((a + b, a - b), 1).reshape((n,))
    ct.store(result, (0,), tile)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(36)
    for dtype in (np.int8, np.float16, np.float32, np.int64):
        x, y = rng.integers(-99, 99, (2, 4, 8)).astype(dtype)
        by_rows, by_columns = cp.zeros((8, 8), dtype=dtype), cp.zeros((4, 16), dtype=dtype)
        ct.launch(stream, (1,), join, (cp.asarray(x), cp.asarray(y), by_rows, by_columns))
        np.testing.assert_array_equal(cp.asnumpy(by_rows), np.concatenate([x, y]))
        np.testing.assert_array_equal(cp.asnumpy(by_columns), np.concatenate([x, y], axis=1))

        result = cp.zeros(16, dtype=dtype)
        ct.launch(stream, (1,), interleave, (cp.asarray(x[0].copy()), cp.asarray(y[0].copy()), result, 8))
        np.testing.assert_array_equal(cp.asnumpy(result), np.stack([x[0], y[0]], axis=1).reshape(-1))

    x = rng.integers(0, 999, (8, 16)).astype(np.int32)
    pieces = [x[i:i + 4, j:j + 8] for i in (0, 4) for j in (0, 8)]
    for steps in range(5):
        result = cp.zeros((8, 16), dtype=np.int32)
        ct.launch(stream, (1,), rotate_quarters, (cp.asarray(x), result, steps))
        a, b, c, d = (pieces[(k + steps) % 4] for k in range(4))
        np.testing.assert_array_equal(cp.asnumpy(result), np.block([[a, b], [c, d]]))

    for row, column in ((0, 0), (3, 1), (2, 3)):
        result = cp.zeros((16, 16), dtype=np.int32)
        ct.launch(stream, (1,), patch, (cp.asarray(x), result, row, column))
        first, second = x.copy(), x.copy()
        first[row * 2:row * 2 + 2, column * 4:column * 4 + 4] = -1
        second[row * 2:row * 2 + 2, column * 4:column * 4 + 4] = x[6:8, 12:16]
        np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate([first, second]))

    result = cp.zeros(8, dtype=np.int32)
    ct.launch(stream, (1,), set_elements, (result, 8))
    np.testing.assert_array_equal(cp.asnumpy(result), np.arange(8) ** 2)

    x = rng.integers(-9, 9, 16).astype(np.int32)
    result = cp.zeros(16, dtype=np.int32)
    ct.launch(stream, (1,), butterfly, (cp.asarray(x), result, 16))
    hadamard = np.array([[1]])
    for _ in range(4):
        hadamard = np.kron(hadamard, [[1, 1], [1, -1]])
    np.testing.assert_array_equal(cp.asnumpy(result), hadamard @ x)


if __name__ == "__main__":
    main()
