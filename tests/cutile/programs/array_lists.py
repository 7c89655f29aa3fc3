"""Lists of arrays: one kernel over arrays whose number and sizes are known only at run time."""
from typing import Annotated

import cupy as cp
import numpy as np
import cuda.tile as ct

WideList = Annotated[list, ct.ListAnnotation(element=ct.ArrayAnnotation(index_dtype=ct.int64))]


@ct.kernel
def sum_of_lists(arrays, result, n: ct.Constant[int]):
    """Element by element, over every array of the list."""
    block = ct.bid(0)
    total = ct.zeros((n,), dtype=ct.float32)
    for k in range(len(arrays)):
        total = total + ct.load(arrays[k], (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (block,), total)


@ct.kernel
def scale_each(arrays, factors, n: ct.Constant[int]):
    """One row of blocks per array, which differ in length."""
    k, block = ct.bid(0), ct.bid(1)
    array = arrays[k]
    if block * n < array.shape[0]:
        tile = ct.load(array, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(array, (block,), tile * ct.gather(factors, k))


@ct.kernel
def grouped_products(lefts, rights, results, n: ct.Constant[int]):
    """Matrices of different shapes in one launch."""
    group = ct.bid(0)
    a, b, c = lefts[group], rights[group], results[group]
    for i in range(ct.num_tiles(c, 0, (n, n))):
        for j in range(ct.num_tiles(c, 1, (n, n))):
            total = ct.zeros((n, n), dtype=ct.float32)
            for k in range(ct.num_tiles(a, 1, (n, n))):
                x = ct.load(a, (i, k), (n, n), padding_mode=ct.PaddingMode.ZERO)
                y = ct.load(b, (k, j), (n, n), padding_mode=ct.PaddingMode.ZERO)
                total = ct.mma(x, y, total)
            ct.store(c, (i, j), total)


@ct.kernel
def lengths(arrays: WideList, result):
    k = ct.bid(0)
    length = arrays[k].shape[0]
    ct.static_assert(length.dtype == ct.int64)
    ct.scatter(result, (k, 0), ct.astype(length, ct.int32))
    ct.scatter(result, (k, 1), ct.astype(arrays[k].strides[0], ct.int32))
    ct.scatter(result, (k, 2), ct.gather(arrays[k], (length - 1,)))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(44)
    for count in (1, 2, 5):
        arrays = [rng.integers(-9, 9, 37).astype(np.float32) for _ in range(count)]
        result = cp.zeros(37, dtype=np.float32)
        ct.launch(stream, (3,), sum_of_lists, ([cp.asarray(a) for a in arrays], result, 16))
        np.testing.assert_array_equal(cp.asnumpy(result), sum(arrays))

    sizes = (5, 64, 33, 1)
    arrays = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    factors = np.float32([2, -1, 0.5, 10])
    device = [cp.asarray(a) for a in arrays]
    ct.launch(stream, (4, 4), scale_each, (device, cp.asarray(factors), 16))
    for got, array, factor in zip(device, arrays, factors):
        np.testing.assert_array_equal(cp.asnumpy(got), array * factor)

    shapes = ((8, 8, 8), (5, 12, 3), (16, 1, 9))
    lefts = [rng.integers(-4, 5, (m, k)).astype(np.float32) for m, k, _ in shapes]
    rights = [rng.integers(-4, 5, (k, n)).astype(np.float32) for _, k, n in shapes]
    results = [cp.zeros((m, n), dtype=np.float32) for m, _, n in shapes]
    ct.launch(stream, (3,), grouped_products,
              ([cp.asarray(a) for a in lefts], [cp.asarray(b) for b in rights], results, 8))
    for left, right, got in zip(lefts, rights, results):
        np.testing.assert_array_equal(cp.asnumpy(got), left @ right)

    base = cp.asarray(np.arange(60, dtype=np.int32))
    result = cp.zeros((3, 3), dtype=np.int32)
    ct.launch(stream, (3,), lengths, ([base[:7], base[10:50:4], base[59:]], result))
    np.testing.assert_array_equal(cp.asnumpy(result)[:, (0, 2)], [[7, 6], [10, 46], [1, 59]])
    np.testing.assert_array_equal(cp.asnumpy(result)[:2, 1], [1, 4])


if __name__ == "__main__":
    main()
