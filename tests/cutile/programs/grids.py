"""Grids of one, two and three dimensions, small and large."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def describe(result):
    """Every block writes down who it is and how large the grid is."""
    x, y, z = ct.bid(0), ct.bid(1), ct.bid(2)
    nx, ny, nz = ct.num_blocks(0), ct.num_blocks(1), ct.num_blocks(2)
    number = (z * ny + y) * nx + x
    values = (x, y, z, nx, ny, nz)
    for k in ct.static_iter(range(6)):
        ct.scatter(result, (number, k), values[k])


@ct.kernel
def count(counter):
    ct.atomic_add(counter, 0, 1)


@ct.kernel
def stamp(result):
    i = ct.bid(0)
    ct.scatter(result, i, i * 7 % 1000)


@ct.kernel
def persistent(result, total):
    """A few blocks share many items."""
    for item in range(ct.bid(0), total, ct.num_blocks(0)):
        ct.scatter(result, item, item + 1)


@ct.kernel
def tile_counts(a, b, result):
    ct.store(result, (0,), ct.num_tiles(a, 0, 4))
    ct.store(result, (1,), ct.num_tiles(b, 0, (4, 8)))
    ct.store(result, (2,), ct.num_tiles(b, axis=1, shape=(4, 8)))
    ct.store(result, (3,), ct.num_tiles(b, 1, (4, 8), order="F"))
    ct.store(result, (4,), ct.cdiv(a.shape[0], 3))
    ct.store(result, (5,), b.tiled_view((2, 2)).num_tiles(1))


def main():
    stream = cp.cuda.get_current_stream()
    for grid in ((1,), (7,), (3, 4), (2, 3, 4), (1, 1, 5), (4, 1)):
        nx, ny, nz = (*grid, 1, 1)[:3]
        result = cp.full((nx * ny * nz, 6), -1, dtype=np.int32)
        ct.launch(stream, grid, describe, (result,))
        want = [[x, y, z, nx, ny, nz] for z in range(nz) for y in range(ny) for x in range(nx)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for grid in ((300, 1, 1), (1, 300), (7, 6, 5)):
        counter = cp.zeros(1, dtype=np.int32)
        ct.launch(stream, grid, count, (counter,))
        assert int(counter[0]) == np.prod(grid), grid

    result = cp.zeros(20000, dtype=np.int32)
    ct.launch(stream, (20000,), stamp, (result,))
    np.testing.assert_array_equal(cp.asnumpy(result), np.arange(20000) * 7 % 1000)

    for blocks, total in ((4, 50), (3, 2), (1, 9)):
        result = cp.zeros(64, dtype=np.int32)
        ct.launch(stream, (blocks,), persistent, (result, total))
        want = np.arange(1, 65) * (np.arange(64) < total)
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros(6, dtype=np.int32)
    a, b = cp.zeros(13, dtype=np.float32), cp.zeros((9, 20), dtype=np.float32)
    ct.launch(stream, (1,), tile_counts, (a, b, result))
    np.testing.assert_array_equal(cp.asnumpy(result), [4, 3, 3, 2, 5, 10])

    for grid in ((0,), (3, 0), (-1,)):
        try:
            ct.launch(stream, grid, count, (counter,))
            stream.synchronize()
        except Exception:
            continue
        raise SystemExit(f"a grid of {grid} was accepted")


if __name__ == "__main__":
    main()
