"""Bitwise operations and shifts of every integer type, and wrap-around."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def combine(x, y, result, n: ct.Constant[int], signed: ct.Constant[bool]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    rows = (
        a & b, a | b, a ^ b, ~a,
        ct.bitwise_and(a, 0x55), ct.bitwise_or(a, b), ct.bitwise_xor(a, b), ct.bitwise_not(b),
        a + b, a - b, a * b, -a, ct.abs(a) if signed else a, ct.minimum(a, b), ct.maximum(a, b), a * 3 + 1,
    )
    for k in ct.static_iter(range(16)):
        ct.store(result, (k, 0), rows[k][None, :])


@ct.kernel
def shift(x, amounts, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    s = ct.load(amounts, (0,), (n,))
    rows = (a << s, a >> s, ct.bitwise_lshift(a, 1), ct.bitwise_rshift(a, 1), 1 << s, a >> 7)
    for k in ct.static_iter(range(6)):
        ct.store(result, (k, 0), rows[k][None, :])


@ct.kernel
def logic(x, y, result, n: ct.Constant[int]):
    a = ct.load(x, (0,), (n,))
    b = ct.load(y, (0,), (n,))
    rows = (a & b, a | b, a ^ b, ~a, a == b, ct.where(a, b, ~b))
    for k in ct.static_iter(range(6)):
        ct.store(result, (k, 0), rows[k][None, :])


def wrap(value, dtype):
    """A Python integer reduced to what the type can hold."""
    bits = np.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.iinfo(dtype).min < 0 and value >> (bits - 1) else value


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(16)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        limit = np.iinfo(dtype)
        x, y = rng.integers(limit.min, limit.max, (2, 64), dtype=dtype, endpoint=True)
        x[:4], y[:4] = (limit.min, limit.max, 0, 1), (limit.max, limit.max, limit.min, 1)
        result = cp.zeros((16, 64), dtype=dtype)
        ct.launch(stream, (1,), combine, (cp.asarray(x), cp.asarray(y), result, 64, bool(limit.min)))
        got = cp.asnumpy(result)
        for i, (a, b) in enumerate(zip(x.tolist(), y.tolist())):
            want = [a & b, a | b, a ^ b, ~a, a & 0x55, a | b, a ^ b, ~b,
                    a + b, a - b, a * b, -a, abs(a), min(a, b), max(a, b), a * 3 + 1]
            want = [wrap(value, dtype) for value in want]
            assert got[:, i].tolist() == want, f"{a} and {b} as {dtype.__name__}: {got[:, i]}, not {want}"

        amounts = rng.integers(0, limit.bits, 64).astype(dtype)
        amounts[:3] = (0, limit.bits - 1, 1)
        result = cp.zeros((6, 64), dtype=dtype)
        ct.launch(stream, (1,), shift, (cp.asarray(x), cp.asarray(amounts), result, 64))
        got = cp.asnumpy(result)
        for i, (a, s) in enumerate(zip(x.tolist(), amounts.tolist())):
            want = [wrap(value, dtype) for value in (a << s, a >> s, a << 1, a >> 1, 1 << s, a >> 7)]
            assert got[:, i].tolist() == want, f"{a} by {s} as {dtype.__name__}: {got[:, i]}, not {want}"

    x, y = rng.integers(0, 2, (2, 32)).astype(np.bool_)
    result = cp.zeros((6, 32), dtype=np.bool_)
    ct.launch(stream, (1,), logic, (cp.asarray(x), cp.asarray(y), result, 32))
    want = [x & y, x | y, x ^ y, ~x, x == y, np.where(x, y, ~y)]
    np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
