"""Products of 8-bit integers, signed and unsigned in any mix, summed in 32 bits."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def multiply(a, b, c, m: ct.Constant[int], n: ct.Constant[int], k: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO
    total = ct.zeros((m, n), dtype=ct.int32)
    for step in range(ct.num_tiles(a, 1, (m, k))):
        x = ct.load(a, (i, step), (m, k), padding_mode=zero)
        y = ct.load(b, (step, j), (k, n), padding_mode=zero)
        total = ct.mma(x, y, total)
    ct.store(c, (i, j), total)


@ct.kernel
def batched(a, b, c, shape: ct.Constant):
    batch, m, n, k = shape
    x = ct.load(a, (0, 0, 0), (batch, m, k))
    y = ct.load(b, (0, 0), (k, n))
    ct.store(c, (0, 0, 0), ct.mma(x, y, ct.full((batch, m, n), 100, dtype=ct.int32)))
    ct.store(c, (1, 0, 0), ct.matmul(x, y))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(31)
    for left in (np.int8, np.uint8):
        for right in (np.int8, np.uint8):
            for rows, columns, depth in ((16, 16, 32), (19, 5, 70), (1, 33, 16)):
                a = rng.integers(np.iinfo(left).min, np.iinfo(left).max, (rows, depth), dtype=left, endpoint=True)
                b = rng.integers(np.iinfo(right).min, np.iinfo(right).max, (depth, columns), dtype=right, endpoint=True)
                a[0], b[:, 0] = np.iinfo(left).min, np.iinfo(right).max
                c = cp.zeros((rows, columns), dtype=np.int32)
                grid = (ct.cdiv(rows, 16), ct.cdiv(columns, 8))
                ct.launch(stream, grid, multiply, (cp.asarray(a), cp.asarray(b), c, 16, 8, 32))
                want = a.astype(np.int64) @ b.astype(np.int64)
                np.testing.assert_array_equal(cp.asnumpy(c), want, err_msg=f"{left.__name__} {right.__name__}")

    a = rng.integers(-128, 128, (2, 8, 16)).astype(np.int8)
    b = rng.integers(-128, 128, (16, 8)).astype(np.int8)
    c = cp.zeros((4, 8, 8), dtype=np.int32)
    ct.launch(stream, (1,), batched, (cp.asarray(a), cp.asarray(b), c, (2, 8, 8, 16)))
    want = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(cp.asnumpy(c)[:2], want + 100)
    # matmul() gives the operands' own type back, whatever of the sum fits in it.
    np.testing.assert_array_equal(cp.asnumpy(c)[2:], want.astype(np.int8))


if __name__ == "__main__":
    main()
