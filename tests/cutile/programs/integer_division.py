"""Quotients and remainders of integers, of either sign, against Python's."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def divide(x, y, result, n: ct.Constant[int]):
    block = ct.bid(0)
    a = ct.load(x, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(y, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.where(b == 0, 1, b)
    quotient, remainder = divmod(a, b)
    rows = (a // b, a % b, ct.floordiv(a, b), ct.mod(a, b), quotient, remainder, ct.cdiv(a, b))
    for k in ct.static_iter(range(7)):
        ct.store(result, (k, block), rows[k][None, :])


@ct.kernel
def divide_unsigned(x, y, result, n: ct.Constant[int]):
    """Unsigned integers have remainders and quotients rounded up, but no `//` of their own."""
    block = ct.bid(0)
    a = ct.load(x, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.load(y, (block,), (n,), padding_mode=ct.PaddingMode.ZERO)
    b = ct.where(b == 0, 1, b)
    rows = (a % b, ct.mod(a, b), ct.cdiv(a, b))
    for k in ct.static_iter(range(3)):
        ct.store(result, (k, block), rows[k][None, :])


@ct.kernel
def divide_by_constants(x, result, n: ct.Constant[int]):
    """Powers of two, other numbers and negative ones."""
    a = ct.load(x, (0,), (n,))
    divisors = (1, 2, 3, 7, 8, 10, 64, -1, -2, -3, -8)
    for k in ct.static_iter(range(11)):
        ct.store(result, (k, 0, 0), (a // divisors[k])[None, None, :])
        ct.store(result, (k, 1, 0), (a % divisors[k])[None, None, :])
        q, r = ct.divmod(a, divisors[k])
        ct.store(result, (k, 2, 0), q[None, None, :])
        ct.store(result, (k, 3, 0), r[None, None, :])


@ct.kernel
def true_quotient(x, y, result, n: ct.Constant[int]):
    ct.store(result, (0,), ct.load(x, (0,), (n,)) / ct.load(y, (0,), (n,)))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(15)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        limit = np.iinfo(dtype)
        edge = [limit.min, limit.min + 1, limit.max, limit.max - 1, 0, 1, 2, 3, 7, limit.max // 2]
        if limit.min < 0:
            edge += [-1, -2, -3, -7]
        pairs = [(a, b) for a in edge for b in edge]
        random = rng.integers(limit.min, limit.max, (200, 2), dtype=dtype, endpoint=True)
        small = rng.integers(max(limit.min, -20), 20, (100, 2)).astype(dtype)
        pairs += [(int(a), int(b)) for a, b in (*random, *small)]
        # The one quotient that does not fit has no defined value.
        pairs = [(a, b or 1) for a, b in pairs if not (a == limit.min < 0 and b == -1)]
        a, b = (np.array(column, dtype=dtype) for column in zip(*pairs))
        kernel, rows = (divide, 7) if limit.min < 0 else (divide_unsigned, 3)
        result = cp.zeros((rows, len(pairs)), dtype=dtype)
        ct.launch(stream, (ct.cdiv(len(pairs), 64),), kernel, (cp.asarray(a), cp.asarray(b), result, 64))
        got = cp.asnumpy(result)
        for i, (p, q) in enumerate(pairs):
            want = [p // q, p % q] * 3 if limit.min < 0 else [p % q] * 2
            want.append(-(-p // q))
            assert got[:, i].tolist() == want, f"{p} and {q} as {dtype.__name__}: {got[:, i]}, not {want}"

        if limit.min < 0:
            x = rng.integers(limit.min + 1, limit.max, 64, dtype=dtype)
            x[:5] = (limit.max, limit.min + 1, 0, -1, 1)
            result = cp.zeros((11, 4, 64), dtype=dtype)
            ct.launch(stream, (1,), divide_by_constants, (cp.asarray(x), result, 64))
            got = cp.asnumpy(result)
            for k, divisor in enumerate((1, 2, 3, 7, 8, 10, 64, -1, -2, -3, -8)):
                want = [[int(v) // divisor for v in x], [int(v) % divisor for v in x]] * 2
                np.testing.assert_array_equal(got[k], want, err_msg=f"{dtype.__name__} by {divisor}")

        a = rng.integers(limit.min, limit.max, 32, dtype=dtype)
        b = rng.integers(1, 100, 32).astype(dtype)
        result = cp.zeros(32, dtype=np.float32)
        ct.launch(stream, (1,), true_quotient, (cp.asarray(a), cp.asarray(b), result, 32))
        want = a.astype(np.float32) / b.astype(np.float32)
        np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
