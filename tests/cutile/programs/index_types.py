"""Arrays indexed with 64-bit integers, 64-bit scalars, and shapes known when compiling."""
from typing import Annotated

import cupy as cp
import numpy as np
import cuda.tile as ct

StaticColumns = Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(-1,))]
StaticAll = Annotated[ct.Array, ct.ArrayAnnotation(static_shape_dims=(0, 1), static_stride_dims=(0, 1))]
WideStatic = Annotated[ct.Array, ct.ArrayAnnotation(index_dtype=ct.int64, static_shape_dims=(0,))]


@ct.kernel
def wide(source: ct.IndexedWithInt64, result: ct.IndexedWithInt64, narrow):
    ct.static_assert(source.shape[0].dtype == ct.int64)
    ct.static_assert(narrow.shape[0].dtype == ct.int32)
    i, j = ct.bid(0), ct.bid(1)
    tile = ct.load(source, (i, j), (4, 8), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (i, j), tile + ct.astype(source.shape[1], tile.dtype))
    if i + j == 0:
        ct.store(narrow, (0,), narrow.shape[0])


@ct.kernel
def describe(x, result):
    """Shapes and strides of a strided view, as the kernel sees them."""
    ct.static_assert(x.ndim == 2)
    ct.static_assert(x.dtype == ct.float32)
    values = (x.shape[0], x.shape[1], x.strides[0], x.strides[1])
    for axis in ct.static_iter(range(4)):
        ct.store(result, (axis,), values[axis])


@ct.kernel
def add_scalars(result, small, large: ct.ScalarInt64, real, flag):
    ct.static_assert(small.dtype == ct.int32)
    ct.static_assert(large.dtype == ct.int64)
    ct.store(result, (0,), small + large)
    ct.store(result, (1,), large // 3)
    ct.store(result, (2,), ct.astype(real * 4, ct.int64))
    ct.store(result, (3,), ct.astype(flag, ct.int64))


@ct.kernel
def row_sums(x: StaticColumns, result):
    columns = ct.static_eval(x.shape[1])
    total = ct.load(x, (ct.bid(0), 0), (1, 1))
    for column in ct.static_iter(range(1, columns)):
        total = total + ct.load(x, (ct.bid(0), column), (1, 1))
    ct.store(result, (ct.bid(0),), total.item())


@ct.kernel
def all_static(x: StaticAll, y: WideStatic, result):
    ct.store(result, (0,), ct.static_eval(x.shape[0] * 1000 + x.shape[1]))
    ct.store(result, (1,), ct.static_eval(x.strides[0] * 1000 + x.strides[1]))
    ct.store(result, (2,), ct.static_eval(y.shape[0]))


def main():
    stream = cp.cuda.get_current_stream()
    for shape in ((8, 16), (5, 11), (1, 1)):
        source = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
        result = cp.zeros(shape, dtype=np.int64)
        narrow = cp.zeros(7, dtype=np.int32)
        grid = (ct.cdiv(shape[0], 4), ct.cdiv(shape[1], 8))
        ct.launch(stream, grid, wide, (cp.asarray(source), result, narrow))
        np.testing.assert_array_equal(cp.asnumpy(result), source + shape[1])
        assert int(narrow[0]) == 7

    base = cp.zeros((12, 40), dtype=np.float32)
    for view in (base, base.T, base[1::2, ::3], base[:, 3:4]):
        result = cp.zeros(4, dtype=np.int32)
        ct.launch(stream, (1,), describe, (view, result))
        want = list(view.shape) + [step // 4 for step in view.strides]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for small, large, real, flag in ((5, 2**40, 2.25, True), (-7, -(2**62) + 1, -0.75, False)):
        result = cp.zeros(4, dtype=np.int64)
        ct.launch(stream, (1,), add_scalars, (result, small, large, real, flag))
        want = [small + large, large // 3, int(real * 4), int(flag)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for columns in (1, 3, 6):
        x = np.arange(4 * columns, dtype=np.int32).reshape(4, columns)
        result = cp.zeros(4, dtype=np.int32)
        ct.launch(stream, (4,), row_sums, (cp.asarray(x), result))
        np.testing.assert_array_equal(cp.asnumpy(result), x.sum(axis=1))

    result = cp.zeros(3, dtype=np.int32)
    y = cp.zeros(19, dtype=np.float32)
    ct.launch(stream, (1,), all_static, (base[1::2, ::3], y, result))
    np.testing.assert_array_equal(cp.asnumpy(result), [6014, 80003, 19])


if __name__ == "__main__":
    main()
