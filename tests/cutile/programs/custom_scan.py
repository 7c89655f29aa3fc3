"""Scans with functions of one's own: running extremes, linear recurrences, parentheses."""
import operator

import cupy as cp
import numpy as np
import cuda.tile as ct

OPEN, CLOSE = ord("("), ord(")")


def compose(a2, b2, a1, b1):
    """x -> a1 x + b1 followed by x -> a2 x + b2: an element comes first, what stands before it second."""
    return a1 * a2, a2 * b1 + b2


def deeper(rise, low, rise_before, low_before):
    return rise_before + rise, min(low_before, rise_before + low)


@ct.kernel
def running(x, result, n: ct.Constant[int]):
    tile = ct.load(x, (ct.bid(0), 0), (1, n))
    ct.store(result, (ct.bid(0), 0), ct.scan(tile, 1, max, -1000))
    ct.store(result, (ct.bid(0), 1), ct.scan(tile, 1, operator.add, 0, reverse=True))
    ct.store(result, (ct.bid(0), 2), ct.scan(tile, -1, lambda a, b: a ^ b, 0))


@ct.kernel
def recurrence(slopes, offsets, result, n: ct.Constant[int], reverse: ct.Constant[bool]):
    """y[i] = a[i] y[i-1] + b[i], every row at once."""
    a = ct.load(slopes, (0, 0), (4, n))
    b = ct.load(offsets, (0, 0), (4, n))
    _, y = ct.scan((a, b), 1, compose, (1.0, 0.0), reverse=reverse)
    ct.store(result, (0, 0), y)


@ct.kernel
def depth_of_brackets(text, result, n: ct.Constant[int]):
    """How deep each character stands, and the lowest depth up to it."""
    code = ct.load(text, (0,), (n,))
    step = ct.where(code == OPEN, 1, 0) - ct.where(code == CLOSE, 1, 0)
    depth, lowest = ct.scan((step, step), 0, deeper, (0, 1 << 20))
    ct.store(result, (0, 0), depth[None, :])
    ct.store(result, (1, 0), lowest[None, :])


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(29)
    for n in (2, 16, 64):
        x = rng.integers(-99, 99, (3, n)).astype(np.int32)
        result = cp.zeros((3, 3 * n), dtype=np.int32)
        ct.launch(stream, (3,), running, (cp.asarray(x), result, n))
        want = [np.maximum.accumulate(x, axis=1), np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
                np.bitwise_xor.accumulate(x, axis=1)]
        np.testing.assert_array_equal(cp.asnumpy(result), np.concatenate(want, axis=1))

    for reverse in (False, True):
        slopes = rng.uniform(-0.9, 0.9, (4, 32)).astype(np.float32)
        offsets = rng.standard_normal((4, 32)).astype(np.float32)
        result = cp.zeros((4, 32), dtype=np.float32)
        ct.launch(stream, (1,), recurrence, (cp.asarray(slopes), cp.asarray(offsets), result, 32, reverse))
        y, want = np.zeros(4), np.zeros((4, 32))
        for i in reversed(range(32)) if reverse else range(32):
            y = slopes[:, i] * y + offsets[:, i]
            want[:, i] = y
        np.testing.assert_allclose(cp.asnumpy(result), want, rtol=1e-4, atol=1e-5)

    for text in ("(()(()))", "())(()()", "a(b)c)d(e(f)g)h("):
        codes = np.frombuffer(text.encode(), dtype=np.uint8)
        result = cp.zeros((2, len(text)), dtype=np.int32)
        ct.launch(stream, (1,), depth_of_brackets, (cp.asarray(codes), result, len(text)))
        depth = np.cumsum([{"(": 1, ")": -1}.get(c, 0) for c in text])
        want = [depth, np.minimum.accumulate(depth)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)


if __name__ == "__main__":
    main()
