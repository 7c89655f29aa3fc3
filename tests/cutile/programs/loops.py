"""`for` loops: bounds known late, steps, no trips at all, nests, values carried along."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def count_trips(result, start, stop, stop_only):
    trips, last, total = 0, -1, 0
    for i in range(start, stop):
        trips += 1
        last = i
        total = total + i
    ct.store(result, (0,), trips)
    ct.store(result, (1,), last)
    ct.store(result, (2,), total)
    trips = 0
    for _ in range(stop_only):
        trips = trips + 1
    ct.store(result, (3,), trips)
    total = 0
    for i in range(start, stop, 3):
        total = total * 2 + i
    ct.store(result, (4,), total)


@ct.kernel
def triangle(result, n):
    """The inner loop's bounds are the outer one's variable."""
    for i in range(n):
        row = ct.zeros((8,), dtype=ct.int32)
        place = ct.arange(8, dtype=ct.int32)
        for j in range(i + 1):
            row = ct.where(place == j, i * 10 + j, row)
        ct.store(result, (i, 0), row[None, :])


@ct.kernel
def pascal(result, rows, n: ct.Constant[int]):
    """A tile carried through a loop, changed by a gather from memory of the step before."""
    place = ct.arange(n, dtype=ct.int32)
    row = ct.where(place == 0, 1, 0)
    ct.store(result, (0, 0), row[None, :])
    for i in range(1, rows):
        shifted = ct.gather(result, (i - 1, place - 1))
        row = row + shifted
        ct.store(result, (i, 0), row[None, :])


@ct.kernel
def fibonacci(result, n):
    """Two values exchanged each time."""
    a, b = 0, 1
    for i in range(n):
        ct.store(result, (i,), a)
        a, b = b, a + b


@ct.kernel
def three_deep(result, p, q, r):
    total = ct.zeros((), dtype=ct.int64)
    steps = 0
    for i in range(p):
        subtotal = 0
        for j in range(i, q):
            for k in range(j, r, 2):
                total = total + i * 100 + j * 10 + k
                steps += 1
            subtotal = subtotal + j
        total = total + subtotal * 1000
    ct.store(result, (0,), total)
    ct.store(result, (1,), ct.astype(steps, ct.int64))


@ct.kernel
def changing_list(x, result, n: ct.Constant[int]):
    """A tuple of tiles as the loop's state."""
    state = (ct.load(x, (0,), (n,)), ct.zeros((n,), dtype=ct.float32), 0)
    for i in range(4):
        state = (state[1] + 1.0, state[0] * 2.0, state[2] + i)
    ct.store(result, (0, 0), state[0][None, :])
    ct.store(result, (1, 0), state[1][None, :])
    ct.store(result, (2, 0), ct.full((1, n), state[2], dtype=ct.float32))


def main():
    stream = cp.cuda.get_current_stream()
    for start, stop, stop_only in ((0, 5, 3), (-3, 4, 1), (5, 5, 0), (7, 2, -4), (-9, -2, 10)):
        result = cp.full(5, 99, dtype=np.int32)
        ct.launch(stream, (1,), count_trips, (result, start, stop, stop_only))
        numbers = range(start, stop)
        folded = 0
        for i in range(start, stop, 3):
            folded = folded * 2 + i
        want = [len(numbers), numbers[-1] if numbers else -1, sum(numbers), max(stop_only, 0), folded]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for n in (0, 1, 5, 8):
        result = cp.full((8, 8), -1, dtype=np.int32)
        ct.launch(stream, (1,), triangle, (result, n))
        want = np.full((8, 8), -1)
        for i in range(n):
            want[i] = [i * 10 + j if j <= i else 0 for j in range(8)]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros((10, 16), dtype=np.int32)
    ct.launch(stream, (1,), pascal, (result, 10, 16))
    row, want = np.eye(16, dtype=np.int32)[0], []
    for _ in range(10):
        want.append(row)
        row = row + np.concatenate([[0], row[:-1]])
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    result = cp.zeros(20, dtype=np.int32)
    ct.launch(stream, (1,), fibonacci, (result, 20))
    want = [0, 1]
    while len(want) < 20:
        want.append(want[-1] + want[-2])
    np.testing.assert_array_equal(cp.asnumpy(result), want)

    for p, q, r in ((3, 4, 5), (0, 9, 9), (4, 2, 7), (6, 6, 3)):
        result = cp.zeros(2, dtype=np.int64)
        ct.launch(stream, (1,), three_deep, (result, p, q, r))
        triples = [(i, j, k) for i in range(p) for j in range(i, q) for k in range(j, r, 2)]
        want = sum(i * 100 + j * 10 + k for i, j, k in triples)
        want += 1000 * sum(j for i in range(p) for j in range(i, q))
        np.testing.assert_array_equal(cp.asnumpy(result), [want, len(triples)])

    x = np.arange(8, dtype=np.float32)
    result = cp.zeros((3, 8), dtype=np.float32)
    ct.launch(stream, (1,), changing_list, (cp.asarray(x), result, 8))
    a, b = x, np.zeros(8, dtype=np.float32)
    for _ in range(4):
        a, b = b + 1, a * 2
    np.testing.assert_array_equal(cp.asnumpy(result), [a, b, np.full(8, 6)])


if __name__ == "__main__":
    main()
