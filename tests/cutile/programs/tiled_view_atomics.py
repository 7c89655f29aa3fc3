"""Atomic updates of a whole tile through a view, from many blocks at once."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def update_all(source, add, largest, smallest, meet, join, toggle, n: ct.Constant[int]):
    """Every block folds its own row of `source` into each of the results."""
    row = ct.bid(0)
    for j in range(ct.num_tiles(add, 0, n)):
        tile = ct.load(source, (row, j), (1, n), padding_mode=ct.PaddingMode.ZERO).reshape((n,))
        add.tiled_view(n).atomic_store_add(j, tile)
        largest.tiled_view(n).atomic_store_max(j, tile)
        smallest.tiled_view(n).atomic_store_min(j, tile)
        meet.tiled_view(n).atomic_store_and(j, tile)
        join.tiled_view(n).atomic_store_or(j, tile)
        toggle.tiled_view(n).atomic_store_xor(j, tile)


@ct.kernel
def add_scaled(source, result):
    """The update is stretched to the tile and converted to the result's element type."""
    view = result.tiled_view((4, 8))
    block = ct.bid(0)
    view.atomic_store_add((0, 0), ct.load(source, (block, 0), (1, 8)))


@ct.kernel
def column_sums(matrix, result, rows: ct.Constant[int], columns: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(matrix, (i, j), (rows, columns), padding_mode=ct.PaddingMode.ZERO)
    result.tiled_view((columns,)).atomic_store_add((j,), ct.sum(tile, axis=0))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(8)
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        limit = np.iinfo(dtype)
        for size in (8, 13, 40):
            source = rng.integers(limit.min, limit.max, (9, size), dtype=dtype, endpoint=True)
            start = rng.integers(limit.min, limit.max, size, dtype=dtype, endpoint=True)
            results = [cp.asarray(start) for _ in range(6)]
            ct.launch(stream, (9,), update_all, (cp.asarray(source), *results, 8))
            folds = (np.add, np.maximum, np.minimum, np.bitwise_and, np.bitwise_or, np.bitwise_xor)
            for fold, result in zip(folds, results):
                want = start.copy()
                for row in source:
                    want = fold(want, row)
                np.testing.assert_array_equal(cp.asnumpy(result), want, err_msg=f"{fold} {dtype}")

    source = rng.integers(-9, 9, (5, 8)).astype(np.int32)
    for dtype in (np.float16, np.float32, np.float64):
        result = cp.zeros((4, 8), dtype=dtype)
        ct.launch(stream, (5,), add_scaled, (cp.asarray(source), result))
        np.testing.assert_array_equal(cp.asnumpy(result), np.tile(source.sum(axis=0), (4, 1)))

    for shape in ((32, 64), (17, 29), (1, 5)):
        matrix = rng.integers(-20, 20, shape).astype(np.float32)
        result = cp.zeros(shape[1], dtype=np.float32)
        grid = (ct.cdiv(shape[0], 4), ct.cdiv(shape[1], 8))
        ct.launch(stream, grid, column_sums, (cp.asarray(matrix), result, 4, 8))
        np.testing.assert_array_equal(cp.asnumpy(result), matrix.sum(axis=0))


if __name__ == "__main__":
    main()
