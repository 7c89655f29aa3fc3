"""Loads and stores of whole rows, columns or planes chosen by a tile of indices."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def take_rows(source, rows, result, start, n: ct.Constant[int], width: ct.Constant[int]):
    index = ct.load(rows, (0,), (n,))
    tile = ct.load_advanced_indexing(source, (index, ct.Slice(start, width)),
                                     padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (0, 0), tile)


@ct.kernel
def take_columns(source, columns, result, n: ct.Constant[int], height: ct.Constant[int]):
    index = ct.load(columns, (0,), (n,))
    tile = ct.load_advanced_indexing(source, (ct.Slice(ct.bid(0) * height, height), index),
                                     padding_mode=ct.PaddingMode.NEG_INF, latency=4, allow_tma=False)
    ct.store(result, (ct.bid(0), 0), tile)


@ct.kernel
def put_rows(source, rows, result, n: ct.Constant[int], width: ct.Constant[int]):
    index = ct.load(rows, (0,), (n,))
    tile = ct.load(source, (0, 0), (n, width))
    ct.store_advanced_indexing(result, (index, ct.Slice(1, width)), tile)


@ct.kernel
def swap_planes(source, result, order, n: ct.Constant[int]):
    index = ct.load(order, (0,), (n,))
    block = ct.bid(0)
    tile = ct.load_advanced_indexing(source, (ct.Slice(block * 2, 2), index, ct.Slice(0, 4)))
    here = ct.arange(n, dtype=ct.int32)
    ct.store_advanced_indexing(result, (ct.Slice(block * 2, 2), here, ct.Slice(0, 4)), tile,
                               latency=3, allow_tma=True)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(5)

    for dtype in (np.float32, np.float16, np.int32):
        for height, width, start in ((10, 16, 0), (7, 11, 3), (3, 9, 5)):
            source = rng.integers(1, 99, (height, width)).astype(dtype)
            rows = rng.integers(0, height + 3, 8).astype(np.int32)
            result = cp.zeros((8, 8), dtype=dtype)
            ct.launch(stream, (1,), take_rows,
                      (cp.asarray(source), cp.asarray(rows), result, start, 8, 8))
            want = np.zeros((8, 8), dtype=dtype)
            for i, row in enumerate(rows):
                if row < height:
                    part = source[row, start:start + 8]
                    want[i, :len(part)] = part
            np.testing.assert_array_equal(cp.asnumpy(result), want)

    for height, width in ((8, 20), (6, 5)):
        source = rng.standard_normal((height, width)).astype(np.float32)
        columns = rng.integers(0, width + 2, 4).astype(np.int32)
        result = cp.zeros((8, 4), dtype=np.float32)
        ct.launch(stream, (2,), take_columns, (cp.asarray(source), cp.asarray(columns), result, 4, 4))
        want = np.full((8, 4), -np.inf, dtype=np.float32)
        for j, column in enumerate(columns):
            if column < width:
                want[:height, j] = source[:, column]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    source = rng.integers(1, 99, (4, 8)).astype(np.int32)
    rows = np.array([5, 0, 9, 2], dtype=np.int32)  # row 9 does not exist
    result = cp.full((7, 6), -1, dtype=np.int32)
    ct.launch(stream, (1,), put_rows, (cp.asarray(source), cp.asarray(rows), result, 4, 8))
    want = np.full((7, 6), -1, dtype=np.int32)
    for i, row in enumerate(rows):
        if row < 7:
            want[row, 1:] = source[i, :5]
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    source = rng.integers(0, 1000, (4, 8, 4)).astype(np.int32)
    order = rng.permutation(8).astype(np.int32)
    result = cp.zeros((4, 8, 4), dtype=np.int32)
    ct.launch(stream, (2,), swap_planes, (cp.asarray(source), result, cp.asarray(order), 8))
    np.testing.assert_array_equal(cp.asnumpy(result), source[:, order, :])


if __name__ == "__main__":
    main()
