"""`while`, `break`, `continue` and leaving a kernel early."""
import math

import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def collatz(starts, steps, peaks):
    i = ct.bid(0)
    n = ct.load(starts, (i,), ())
    count = 0
    peak = n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        peak = max(peak, n)
        count += 1
    ct.store(steps, (i,), count)
    ct.store(peaks, (i,), peak)


@ct.kernel
def divisors(pairs, result):
    i = ct.bid(0)
    a = ct.gather(pairs, (i, 0))
    b = ct.gather(pairs, (i, 1))
    while b != 0:
        a, b = b, a % b
    ct.store(result, (i,), a)


@ct.kernel
def find_first(x, wanted, result):
    """Stop at the first hit; -1 when there is none."""
    row = ct.bid(0)
    found = -1
    for j in range(x.shape[1]):
        if ct.gather(x, (row, j)) == wanted:
            found = j
            break
    ct.store(result, (row,), found)


@ct.kernel
def sum_selected(x, result, limit):
    """Skip negative numbers, stop before the sum passes a limit."""
    total, used, j = 0, 0, 0
    while True:
        if j == x.shape[0]:
            break
        value = ct.gather(x, j)
        j += 1
        if value < 0:
            continue
        if total + value > limit:
            break
        total = total + value
        used += 1
    ct.store(result, (0,), total)
    ct.store(result, (1,), used)
    ct.store(result, (2,), j)


@ct.kernel
def leave_early(x, result):
    """Some blocks return before they write."""
    i = ct.bid(0)
    if i >= x.shape[0]:
        return
    value = ct.gather(x, i)
    if value < 0:
        if value < -5:
            return
        ct.store(result, (i,), -1)
        return
    ct.store(result, (i,), value * 2)


@ct.kernel
def newton(x, result, trips, n: ct.Constant[int]):
    """Iterate on a whole tile until its worst element is good enough."""
    a = ct.load(x, (0,), (n,))
    guess = a * 0.5 + 0.5
    count = 0
    while ct.max(ct.abs(guess * guess - a) / a) > 1e-5 and count < 40:
        guess = 0.5 * (guess + a / guess)
        count += 1
    ct.store(result, (0,), guess)
    ct.store(trips, (0,), count)


@ct.kernel
def primes(result, limit):
    """Nested loops, each with its own break and continue."""
    count = 0
    for candidate in range(2, limit):
        is_prime = True
        d = 2
        while d * d <= candidate:
            if candidate % d != 0:
                d += 1
                continue
            is_prime = False
            break
        if not is_prime:
            continue
        ct.scatter(result, count, candidate)
        count += 1


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(40)
    starts = np.array([1, 2, 3, 7, 27, 97, 871], dtype=np.int32)
    steps, peaks = cp.zeros(7, dtype=np.int32), cp.zeros(7, dtype=np.int32)
    ct.launch(stream, (7,), collatz, (cp.asarray(starts), steps, peaks))
    want = []
    for n in starts.tolist():
        path = [n]
        while path[-1] != 1:
            path.append(path[-1] // 2 if path[-1] % 2 == 0 else 3 * path[-1] + 1)
        want.append((len(path) - 1, max(path)))
    np.testing.assert_array_equal(np.stack([cp.asnumpy(steps), cp.asnumpy(peaks)], axis=1), want)

    pairs = rng.integers(0, 500, (12, 2)).astype(np.int64) * 6
    pairs[0], pairs[1] = (0, 0), (36, 0)
    result = cp.zeros(12, dtype=np.int64)
    ct.launch(stream, (12,), divisors, (cp.asarray(pairs), result))
    np.testing.assert_array_equal(cp.asnumpy(result), [math.gcd(*pair) for pair in pairs.tolist()])

    x = rng.integers(0, 6, (9, 7)).astype(np.int32)
    for wanted in (3, 9):
        result = cp.zeros(9, dtype=np.int32)
        ct.launch(stream, (9,), find_first, (cp.asarray(x), wanted, result))
        want = [row.tolist().index(wanted) if wanted in row else -1 for row in x]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    x = rng.integers(-10, 10, 30).astype(np.int32)
    for limit in (0, 15, 40, 10000):
        result = cp.zeros(3, dtype=np.int32)
        ct.launch(stream, (1,), sum_selected, (cp.asarray(x), result, limit))
        total = used = seen = 0
        for value in x.tolist():
            seen += 1
            if value >= 0:
                if total + value > limit:
                    break
                total, used = total + value, used + 1
        np.testing.assert_array_equal(cp.asnumpy(result), [total, used, seen])

    x = np.array([3, -2, 0, -9, 8], dtype=np.int32)
    result = cp.full(8, 100, dtype=np.int32)
    ct.launch(stream, (8,), leave_early, (cp.asarray(x), result))
    np.testing.assert_array_equal(cp.asnumpy(result), [6, -1, 0, 100, 16, 100, 100, 100])

    for scale in (1.0, 1e4):
        x = (rng.uniform(0.5, 2.0, 16) * scale).astype(np.float32)
        result, trips = cp.zeros(16, dtype=np.float32), cp.zeros(1, dtype=np.int32)
        ct.launch(stream, (1,), newton, (cp.asarray(x), result, trips, 16))
        np.testing.assert_allclose(cp.asnumpy(result), np.sqrt(x), rtol=1e-5)
        assert 0 < int(trips[0]) < 40

    result = cp.zeros(15, dtype=np.int32)
    ct.launch(stream, (1,), primes, (result, 48))
    np.testing.assert_array_equal(cp.asnumpy(result), [n for n in range(2, 48) if all(n % d for d in range(2, n))])


if __name__ == "__main__":
    main()
