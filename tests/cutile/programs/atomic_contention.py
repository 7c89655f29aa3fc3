"""Many blocks on few words: histograms, tickets, sums, maxima."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def histogram(values, bins, n: ct.Constant[int]):
    tile = ct.load(values, (ct.bid(0),), (n,), padding_mode=ct.PaddingMode.ZERO)
    inside = ct.bid(0) * n + ct.arange(n, dtype=ct.int32) < values.shape[0]
    # Elements past the end are counted in no bin.
    ct.atomic_add(bins, ct.where(inside, tile, -1), ct.ones((), dtype=bins.dtype))


@ct.kernel
def take_tickets(counter, tickets, n: ct.Constant[int]):
    """Every element of every block draws a number that no other has."""
    block = ct.bid(0)
    zeros = ct.zeros((n,), dtype=ct.int32)
    ct.store(tickets, (block,), ct.atomic_add(counter, zeros, 1))


@ct.kernel
def totals(values, sum_of_all, largest, smallest, seen, n: ct.Constant[int]):
    tile = ct.load(values, (ct.bid(0),), (n,))
    ct.atomic_add(sum_of_all, 0, ct.sum(tile))
    ct.atomic_max(largest, 0, ct.max(tile))
    ct.atomic_min(smallest, 0, ct.min(tile))
    ct.atomic_or(seen, (0,), 1 << ct.bid(0))


@ct.kernel
def work_queue(head, done, total):
    """Blocks draw items until none are left; which block gets which item does not matter."""
    item = ct.atomic_add(head, 0, 1)
    while item < total:
        ct.atomic_add(done, item, item + 1)
        item = ct.atomic_add(head, 0, 1)


@ct.kernel
def push(stack, top, n: ct.Constant[int]):
    """The blocks whose number is odd append their number to a list."""
    block = ct.bid(0)
    if block % 2 == 1:
        place = ct.atomic_add(top, 0, 1)
        ct.scatter(stack, place, block)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(38)
    for size, count in ((1000, 16), (333, 3), (64, 1)):
        values = rng.integers(0, count, size).astype(np.int32)
        for dtype in (np.int32, np.uint64, np.float32):
            bins = cp.zeros(count, dtype=dtype)
            ct.launch(stream, (ct.cdiv(size, 32),), histogram, (cp.asarray(values), bins, 32))
            np.testing.assert_array_equal(cp.asnumpy(bins), np.bincount(values, minlength=count))

    counter, tickets = cp.zeros(1, dtype=np.int32), cp.zeros(40 * 16, dtype=np.int32)
    ct.launch(stream, (40,), take_tickets, (counter, tickets, 16))
    assert int(counter[0]) == 640
    np.testing.assert_array_equal(np.sort(cp.asnumpy(tickets)), np.arange(640))

    values = rng.integers(-1000, 1000, 30 * 16).astype(np.int32)
    words = [cp.full(1, start, dtype=np.int32) for start in (0, -(2**31), 2**31 - 1, 0)]
    ct.launch(stream, (30,), totals, (cp.asarray(values), *words, 16))
    got = [int(word[0]) for word in words]
    assert got == [values.sum(), values.max(), values.min(), 2**30 - 1], got

    head, done = cp.zeros(1, dtype=np.int32), cp.zeros(100, dtype=np.int32)
    ct.launch(stream, (7,), work_queue, (head, done, 100))
    np.testing.assert_array_equal(cp.asnumpy(done), np.arange(1, 101))
    assert int(head[0]) == 107

    stack, top = cp.full(32, -1, dtype=np.int32), cp.zeros(1, dtype=np.int32)
    ct.launch(stream, (64,), push, (stack, top, 1))
    np.testing.assert_array_equal(np.sort(cp.asnumpy(stack)), np.arange(1, 64, 2))


if __name__ == "__main__":
    main()
