"""Reshapes, permutations, transposes, new axes and broadcasts."""
import itertools

import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def reshape_all(x, result):
    """Through many shapes and back; the elements keep their order."""
    tile = ct.load(x, (0,), (64,))
    shaped = tile.reshape((8, -1))
    ct.static_assert(shaped.shape == (8, 8))
    shaped = ct.reshape(shaped + 1, (2, 4, 8))
    shaped = ct.reshape(shaped * 2, (-1, 1, 16, 2, 1))
    ct.static_assert(shaped.shape == (2, 1, 16, 2, 1))
    ct.store(result, (0,), shaped.reshape((-1,)))


def permuter(axes):
    back = tuple(axes.index(i) for i in range(3))

    @ct.kernel
    def kernel(x, result, shape: ct.Constant):
        tile = ct.load(x, (0, 0, 0), shape)
        moved = ct.permute(tile, axes)
        ct.static_assert(moved.shape == tuple(shape[axis] for axis in axes))
        ct.store(result, (0, 0, 0), moved)
        ct.store(result, (1, 0, 0), ct.permute(moved.permute(back), axes))

    return kernel


@ct.kernel
def transpose_pairs(x, result):
    """Each result has the shape (4, 2, 8) again by swapping two axes twice."""
    tile = ct.load(x, (0, 0, 0), (4, 2, 8))
    first = ct.transpose(tile, 0, 1)
    ct.static_assert(first.shape == (2, 4, 8))
    ct.store(result, (0, 0, 0), first.reshape((4, 2, 8)))
    second = tile.transpose(-1, 1)
    ct.static_assert(second.shape == (4, 8, 2))
    ct.store(result, (1, 0, 0), second.reshape((4, 2, 8)))
    flat = tile.reshape((4, 16)).transpose()
    ct.static_assert(flat.shape == (16, 4))
    ct.store(result, (2, 0, 0), flat.reshape((4, 2, 8)))


@ct.kernel
def outer_operations(x, y, result, m: ct.Constant[int], n: ct.Constant[int]):
    a, b = ct.load(x, (0,), (m,)), ct.load(y, (0,), (n,))
    ct.store(result, (0, 0), a[:, None] * b[None, :])
    ct.store(result, (1, 0), ct.expand_dims(a, 1) + ct.expand_dims(b, 0))
    ct.store(result, (2, 0), a[:, np.newaxis] - b)
    ct.store(result, (3, 0), ct.broadcast_to(b, (m, n)))
    ct.store(result, (4, 0), ct.broadcast_to(a[:, None], (m, n)))
    ct.store(result, (5, 0), ct.broadcast_to(ct.sum(a), (m, n)))
    deep = a[None, :, None] * b[None, None, :]
    ct.static_assert(deep.shape == (1, m, n) and deep.ndim == 3)
    ct.store(result, (6, 0), ct.expand_dims(deep, -1).reshape((m, n)))


@ct.kernel
def scalars(x, result):
    tile = ct.load(x, (0,), (1,))
    ct.store(result, (0,), tile.item() + 1)
    ct.store(result, (1,), tile.reshape(()) * 2)
    ct.store(result, (2,), ct.reshape(tile.item(), (1,)))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(35)
    for dtype in (np.int8, np.float16, np.int32, np.float64):
        x = rng.integers(-30, 30, 64).astype(dtype)
        result = cp.zeros(64, dtype=dtype)
        ct.launch(stream, (1,), reshape_all, (cp.asarray(x), result))
        np.testing.assert_array_equal(cp.asnumpy(result), (x + 1) * 2)

    for axes in itertools.permutations(range(3)):
        kernel = permuter(axes)
        for shape in ((2, 4, 8), (8, 1, 2)):
            x = rng.integers(0, 1000, shape).astype(np.int32)
            want = x.transpose(axes)
            result = cp.zeros((2 * want.shape[0], *want.shape[1:]), dtype=np.int32)
            ct.launch(stream, (1,), kernel, (cp.asarray(x), result, shape))
            np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate([want, want]))

    x = rng.integers(0, 1000, (4, 2, 8)).astype(np.int32)
    result = cp.zeros((12, 2, 8), dtype=np.int32)
    ct.launch(stream, (1,), transpose_pairs, (cp.asarray(x), result))
    want = [x.swapaxes(0, 1), x.swapaxes(1, 2), x.reshape(4, 16).T]
    np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate([w.reshape(4, 2, 8) for w in want]))

    for m, n in ((4, 8), (1, 16), (16, 1)):
        a, b = rng.integers(-9, 9, m).astype(np.float32), rng.integers(-9, 9, n).astype(np.float32)
        result = cp.zeros((7 * m, n), dtype=np.float32)
        ct.launch(stream, (1,), outer_operations, (cp.asarray(a), cp.asarray(b), result, m, n))
        outer = np.outer(a, b)
        want = [outer, np.add.outer(a, b), np.subtract.outer(a, b), np.tile(b, (m, 1)),
                np.tile(a[:, None], (1, n)), np.full((m, n), a.sum()), outer]
        np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want))

    result = cp.zeros(3, dtype=np.int32)
    ct.launch(stream, (1,), scalars, (cp.asarray(np.int32([21])), result))
    np.testing.assert_array_equal(cp.asnumpy(result), [22, 42, 21])


if __name__ == "__main__":
    main()
