"""Programmatic dependent launches: a kernel that may start before its predecessor has ended."""
import cupy as cp
import numpy as np
import cuda.tile as ct


@ct.kernel
def produce(x, factor, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.grid_dependency_control_launch_dependents()
    ct.store(x, (i,), (ct.arange(n, dtype=ct.int32) + i * n) * factor)


@ct.kernel
def consume(x, result, n: ct.Constant[int]):
    i = ct.bid(0)
    mine = ct.full((n,), i, dtype=ct.int32)  # does not need the predecessor
    ct.grid_dependency_control_wait()
    ct.store(result, (i,), ct.load(x, (i,), (n,)) + mine)


@ct.kernel
def both(x, n: ct.Constant[int]):
    i = ct.bid(0)
    ct.grid_dependency_control_wait()
    ct.store(x, (i,), ct.load(x, (i,), (n,)) + 1)
    ct.grid_dependency_control_launch_dependents()


def main():
    stream = cp.cuda.Stream(non_blocking=True)
    x, result = cp.zeros(128, dtype=np.int32), cp.zeros(128, dtype=np.int32)
    cp.cuda.get_current_stream().synchronize()
    for factor in (1, -3, 7):
        ct.launch(stream, (8,), produce, (x, factor, 16))
        ct.launch(stream, (8,), consume, (x, result, 16), programmatic_dependent_launch=True)
        stream.synchronize()
        want = np.arange(128) * factor + np.repeat(np.arange(8), 16)
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for _ in range(10):
        ct.launch(stream, (8,), both, (result, 16), programmatic_dependent_launch=True)
    stream.synchronize()
    np.testing.assert_array_equal(cp.asnumpy(result), want + 10)


if __name__ == "__main__":
    main()
