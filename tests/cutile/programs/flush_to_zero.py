"""Subnormal f32 numbers are kept by default and flushed, sign and all, on request."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def compute(x, y, result, n: ct.Constant[int], flush: ct.Constant[bool]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    rows = (
        ct.add(a, b, flush_to_zero=flush),
        ct.sub(a, b, flush_to_zero=flush),
        ct.mul(a, b, flush_to_zero=flush),
        ct.minimum(a, b, flush_to_zero=flush),
        ct.maximum(a, b, flush_to_zero=flush),
        ct.truediv(a, b, flush_to_zero=flush),
        ct.sqrt(ct.abs(a), flush_to_zero=flush),
    )
    for k in ct.static_iter(range(7)):
        ct.store(result, (k, 0), rows[k][None, :])


@ct.kernel
def reduce_rows(x, result, n: ct.Constant[int], flush: ct.Constant[bool]):
    a = ct.load(x, (0, 0), (4, n))
    ct.store(result, (0, 0), ct.sum(a, axis=1, keepdims=True, flush_to_zero=flush))
    ct.store(result, (0, 1), ct.max(a, axis=1, keepdims=True, flush_to_zero=flush))
    ct.store(result, (0, 2), ct.min(a, axis=1, keepdims=True, flush_to_zero=flush))
    ct.store(result, (0, 3), ct.prod(a, axis=1, keepdims=True, flush_to_zero=flush))


@ct.kernel
def approximate(x, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    ct.store(result, (0, 0), ct.exp2(a, flush_to_zero=True)[None, :])
    ct.store(result, (1, 0), ct.rsqrt(a, flush_to_zero=True)[None, :])


TINY = np.float32(2.0) ** -126


def flushed(x):
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x).astype(np.float32)


def smaller(a, b):
    return np.where((a < b) | ((a == b) & np.signbit(a)), a, b)


def main():
    stream = cp.cuda.get_current_stream()
    np.seterr(all="ignore")
    values = [1.0, -1.0, TINY, -TINY, TINY / 2, -TINY / 2, TINY / 2**20, 0.0, -0.0,
              TINY * 1.5, -TINY * 1.5, 2.0**-70, -(2.0**-60), 3.0, 2.0**40, np.inf]
    a = np.repeat(values, 16).astype(np.float32)
    b = np.tile(values, 16).astype(np.float32)
    for flush in (False, True):
        clean = flushed if flush else np.asarray
        x, y = clean(a), clean(b)
        result = cp.zeros((7, 256), dtype=np.float32)
        ct.launch(stream, (1,), compute, (cp.asarray(a), cp.asarray(b), result, 256, flush))
        want = [x + y, x - y, x * y, smaller(x, y), -smaller(-x, -y), x / y, np.sqrt(abs(x))]
        got = cp.asnumpy(result)
        for k, row in enumerate(want):
            row = clean(row)
            np.testing.assert_array_equal(got[k], row, err_msg=f"operation {k}, flush {flush}")
            known = ~np.isnan(row)
            np.testing.assert_array_equal(np.signbit(got[k])[known], np.signbit(row)[known])

    # Rows of equal numbers, so that the order of a reduction does not matter.
    rows = np.repeat(np.float32([[TINY / 4], [TINY], [-TINY / 8], [1.0]]), 8, axis=1)
    for flush in (False, True):
        result = cp.zeros((4, 4), dtype=np.float32)
        ct.launch(stream, (1,), reduce_rows, (cp.asarray(rows), result, 8, flush))
        clean = flushed if flush else np.asarray
        value = clean(rows[:, 0])
        want = np.stack([value * 8, value, value, np.where(value == 1, 1, 0)], axis=1)
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    x = np.float32([-130.0, 3.0, -126.0, 16.0, 0.25, 1.0, 4.0, 64.0])
    result = cp.zeros((2, 8), dtype=np.float32)
    ct.launch(stream, (1,), approximate, (cp.asarray(x), result, 8))
    got = cp.asnumpy(result)
    np.testing.assert_allclose(got[0], flushed(np.exp2(x)), rtol=1e-6)
    np.testing.assert_allclose(got[1], 1 / np.sqrt(x), rtol=1e-6)


if __name__ == "__main__":
    main()
