"""`@` between vectors, matrices and batches of matrices."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def vectors(x, y, matrix, result, n: ct.Constant[int]):
    a, b = ct.load(x, (0,), (n,)), ct.load(y, (0,), (n,))
    m = ct.load(matrix, (0, 0), (n, n))
    dot = a @ b
    ct.static_assert(dot.shape == ())
    ct.store(result, (0, 0), ct.broadcast_to(dot.reshape((1, 1)), (1, n)))
    left, right = a @ m, m @ b
    ct.static_assert(left.shape == (n,) and right.shape == (n,))
    ct.store(result, (1, 0), left[None, :])
    ct.store(result, (2, 0), right[None, :])


@ct.kernel
def batches(x, y, z, result, batch: ct.Constant[int], n: ct.Constant[int]):
    a = ct.load(x, (0, 0, 0), (batch, n, n))
    b = ct.load(y, (0, 0, 0), (batch, n, n))
    m = ct.load(z, (0, 0), (n, n))
    ct.store(result, (0, 0, 0), a @ b)
    ct.store(result, (1, 0, 0), a @ m)
    ct.store(result, (2, 0, 0), m @ b)
    ct.store(result, (3, 0, 0), ct.matmul(ct.extract(a, (0, 0, 0), (1, n, n)), b))
    ct.store(result, (4, 0, 0), ct.mma(m, b, ct.ones((batch, n, n), dtype=result.dtype)))


@ct.kernel
def chain(x, result, n: ct.Constant[int], times):
    """A power of a matrix by squaring and multiplying, one step for each bit of the exponent."""
    base = ct.load(x, (0, 0), (n, n))
    row = ct.arange(n, dtype=ct.int32)
    power = ct.where(row[:, None] == row[None, :], 1.0, 0.0)
    while times > 0:
        if times % 2 == 1:
            power = power @ base
        base = base @ base
        times = times // 2
    ct.store(result, (0, 0), power)


@ct.kernel
def mixed(x, y, result, n: ct.Constant[int]):
    """Operands of two types meet in their common one."""
    product = ct.load(x, (0, 0), (n, n)) @ ct.load(y, (0, 0), (n, n))
    ct.static_assert(product.dtype == ct.float32)
    ct.store(result, (0, 0), product)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(33)
    for dtype in (np.float16, np.float32, np.float64):
        x, y = rng.integers(-4, 5, (2, 8)).astype(dtype)
        matrix = rng.integers(-4, 5, (8, 8)).astype(dtype)
        result = cp.zeros((3, 8), dtype=dtype)
        ct.launch(stream, (1,), vectors, (cp.asarray(x), cp.asarray(y), cp.asarray(matrix), result, 8))
        np.testing.assert_array_equal(cp.asnumpy(result), [np.full(8, x @ y), x @ matrix, matrix @ y])

    for batch, n in ((2, 8), (4, 4), (1, 16)):
        x, y = rng.integers(-3, 4, (2, batch, n, n)).astype(np.float32)
        z = rng.integers(-3, 4, (n, n)).astype(np.float32)
        result = cp.zeros((5 * batch, n, n), dtype=np.float32)
        ct.launch(stream, (1,), batches, (cp.asarray(x), cp.asarray(y), cp.asarray(z), result, batch, n))
        want = [x @ y, x @ z, z @ y, x[:1] @ y, z @ y + 1]
        np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want))

    x = (rng.integers(0, 3, (4, 4)) / 2).astype(np.float32)
    for times in (0, 1, 2, 5, 8):
        result = cp.zeros((4, 4), dtype=np.float32)
        ct.launch(stream, (1,), chain, (cp.asarray(x), result, 4, times))
        want = np.linalg.matrix_power(x.astype(np.float64), times)
        np.testing.assert_allclose(cp.asnumpy(result), want, rtol=1e-5)

    x, y = rng.integers(-4, 5, (2, 8, 8))
    result = cp.zeros((8, 8), dtype=np.float32)
    ct.launch(stream, (1,), mixed, (cp.asarray(x.astype(np.float16)), cp.asarray(y.astype(np.float32)), result, 8))
    np.testing.assert_array_equal(cp.asnumpy(result), x @ y)


if __name__ == "__main__":
    main()
