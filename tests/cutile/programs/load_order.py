"""Loads and stores whose tile axes are array axes in another order."""
import itertools

import cupy as cp
import numpy as np
import cuda.tile as ct


def kernels(order):
    """A kernel that loads and one that stores in the given order, and one that counts tiles."""

    @ct.kernel
    def transposed_load(source, result, tile: ct.Constant[int]):
        i, j = ct.bid(0), ct.bid(1)
        piece = ct.load(source, (i, j), (tile, tile), order=order, padding_mode=ct.PaddingMode.ZERO)
        ct.store(result, (i, j), piece)

    @ct.kernel
    def transposed_store(source, result, rows: ct.Constant[int], columns: ct.Constant[int]):
        i, j = ct.bid(0), ct.bid(1)
        piece = ct.load(source, (i, j), (rows, columns), padding_mode=ct.PaddingMode.ZERO)
        ct.store(result, (i, j), piece, order=order)

    @ct.kernel
    def count_tiles(source, result):
        for axis in ct.static_iter(range(2)):
            ct.store(result, (axis,), ct.num_tiles(source, axis, (4, 8), order=order))

    return transposed_load, transposed_store, count_tiles


@ct.kernel
def permuted_load(source, result, shape: ct.Constant, order: ct.Constant):
    index = (ct.bid(0), ct.bid(1), ct.bid(2))
    ct.store(result, index, ct.load(source, index, shape, order=order))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(2)
    made = {order: kernels(order) for order in ("C", "F", (0, 1), (1, 0))}

    for shape in ((16, 16), (24, 8), (13, 30)):
        source = rng.integers(-99, 99, shape).astype(np.int32)
        for order, (load, store, _) in made.items():
            want = source if order in ("C", (0, 1)) else source.T
            result = cp.zeros(want.shape, dtype=np.int32)
            grid = (ct.cdiv(want.shape[0], 8), ct.cdiv(want.shape[1], 8))
            ct.launch(stream, grid, load, (cp.asarray(source), result, 8))
            np.testing.assert_array_equal(cp.asnumpy(result), want)

            result = cp.zeros(want.shape, dtype=np.int32)
            grid = (ct.cdiv(shape[0], 4), ct.cdiv(shape[1], 8))
            ct.launch(stream, grid, store, (cp.asarray(source), result, 4, 8))
            np.testing.assert_array_equal(cp.asnumpy(result), want)

    source = rng.standard_normal((4, 8, 16)).astype(np.float32)
    for order in itertools.permutations(range(3)):
        want = source.transpose(order)
        tile = tuple(size // 2 for size in want.shape)
        result = cp.zeros(want.shape, dtype=np.float32)
        ct.launch(stream, (2, 2, 2), permuted_load, (cp.asarray(source), result, tile, order))
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    # Arrays that are themselves views: transposed, with gaps, and in column-major order.
    base = cp.asarray(rng.integers(0, 1000, (32, 48)).astype(np.int32))
    for view in (base.T, base[::2, 1::3], base[3:27, 5:29], base[:, 7:8]):
        for order in ("C", "F"):
            want = cp.asnumpy(view) if order == "C" else cp.asnumpy(view).T
            result = cp.zeros(want.shape, dtype=np.int32)
            grid = (ct.cdiv(want.shape[0], 8), ct.cdiv(want.shape[1], 8))
            ct.launch(stream, grid, made[order][0], (view, result, 8))
            np.testing.assert_array_equal(cp.asnumpy(result), want)

    source = cp.zeros((13, 30), dtype=np.int32)
    for order, want in (("C", [4, 4]), ("F", [8, 2])):
        result = cp.zeros(2, dtype=np.int32)
        ct.launch(stream, (1,), made[order][2], (source, result))
        np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
