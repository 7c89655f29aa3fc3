"""Arrays made inside a kernel from a base pointer, a shape and strides."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def diagonal(matrix, result, n: ct.Constant[int]):
    """One long stride turns the diagonal into an array of rank 1."""
    size = min(matrix.shape[0], matrix.shape[1])
    line = ct.Array.from_foreign(matrix.foreign_pointer, (size,), (matrix.strides[0] + matrix.strides[1],))
    ct.static_assert(line.ndim == 1 and line.dtype == matrix.dtype)
    block = ct.bid(0)
    tile = ct.load(line, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (block,), tile)


@ct.kernel
def as_matrix(line, result, columns: ct.Constant[int]):
    """A flat array seen as rows; the last, incomplete row is left out."""
    rows = line.shape[0] // columns
    view = ct.Array.from_foreign(line.foreign_pointer, (rows, columns), (columns, 1))
    i = ct.bid(0)
    ct.store(result, (i,), ct.sum(ct.load(view, (i, 0), (1, columns))))


@ct.kernel
def broadcast_row(row, result, n: ct.Constant[int]):
    """A stride of zero repeats one row."""
    view = ct.Array.from_foreign(row.foreign_pointer, (result.shape[0], row.shape[0]), (0, 1))
    ct.store(result, (0, 0), ct.load(view, (0, 0), (n, n), padding_mode=ct.PaddingMode.ZERO))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(10)
    for shape in ((16, 16), (9, 20), (20, 5)):
        matrix = rng.standard_normal(shape).astype(np.float32)
        size = min(shape)
        result = cp.zeros(size, dtype=np.float32)
        ct.launch(stream, (ct.cdiv(size, 4),), diagonal, (cp.asarray(matrix), result, 4))
        np.testing.assert_array_equal(cp.asnumpy(result), np.diagonal(matrix))

    for size in (8, 35, 64):
        line = rng.integers(-50, 50, size).astype(np.int32)
        rows = size // 8
        result = cp.zeros(rows, dtype=np.int32)
        ct.launch(stream, (rows,), as_matrix, (cp.asarray(line), result, 8))
        np.testing.assert_array_equal(cp.asnumpy(result), line[:rows * 8].reshape(rows, 8).sum(axis=1))

    row = rng.standard_normal(7).astype(np.float32)
    result = cp.zeros((8, 7), dtype=np.float32)
    ct.launch(stream, (1,), broadcast_row, (cp.asarray(row), result, 8))
    np.testing.assert_array_equal(cp.asnumpy(result), np.tile(row, (8, 1)))


if __name__ == "__main__":
    main()
