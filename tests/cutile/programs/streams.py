"""Launches on several streams, ordered by events and synchronisation."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def add(x, amount, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, (i,), ct.load(x, (i,), (n,)) + amount)


@ct.kernel
def double(x, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(x, (i,), ct.load(x, (i,), (n,)) * 2)


@ct.kernel
def add_arrays(x, y, result, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(result, (i,), ct.load(x, (i,), (n,)) + ct.load(y, (i,), (n,)))


def main():
    x = cp.zeros(64, dtype=np.int32)
    current = cp.cuda.get_current_stream()
    current.synchronize()

    # One stream keeps the order of its launches.
    for stream in (current, cp.cuda.Stream(), cp.cuda.Stream(non_blocking=True)):
        x[...] = 0
        current.synchronize()
        want = 0
        for step in range(10):
            ct.launch(stream, (4,), add, (x, step, 16))
            ct.launch(stream, (4,), double, (x, 16))
            want = (want + step) * 2
        stream.synchronize()
        np.testing.assert_array_equal(cp.asnumpy(x), np.full(64, want))

    # A stream is also taken as the number of its handle.
    ct.launch(current.ptr, (4,), add, (x, 1, 16))
    current.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(x), np.full(64, want + 1))

    # Two streams, then a third that waits for both.
    first, second, third = (cp.cuda.Stream(non_blocking=True) for _ in range(3))
    y, z, result = (cp.zeros(64, dtype=np.int32) for _ in range(3))
    current.synchronize()
    for k in range(5):
        ct.launch(first, (4,), add, (y, k, 16))
        ct.launch(second, (4,), add, (z, 10 * k, 16))
    third.wait_event(first.record())
    third.wait_event(second.record())
    ct.launch(third, (4,), add_arrays, (y, z, result, 16))
    third.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(result), np.full(64, 110))

    with cp.cuda.Stream(non_blocking=True) as stream:
        w = cp.zeros(32, dtype=np.int32)
        ct.launch(cp.cuda.get_current_stream(), (2,), add, (w, 7, 16))
        stream.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(w), np.full(32, 7))


if __name__ == "__main__":
    main()
