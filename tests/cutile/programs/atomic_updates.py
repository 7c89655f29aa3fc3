"""Each atomic operation on each type it has: the memory it leaves and the values it returns."""
import cupy as cp
import numpy as np
import cuda.tile as ct
from cuda.tile import MemoryOrder, MemoryScope


@ct.kernel
def update(memory, places, amounts, old, n: ct.Constant[int]):
    """Row k of `memory` and of `old` belongs to the k-th operation."""
    place = ct.load(places, (0,), (n,))
    amount = ct.load(amounts, (0,), (n,))
    before = (
        ct.atomic_add(memory, (0, place), amount),
        ct.atomic_max(memory, (1, place), amount),
        ct.atomic_min(memory, (2, place), amount),
        ct.atomic_xchg(memory, (3, place), amount),
        ct.atomic_cas(memory, (4, place), amount, 77),
        ct.atomic_and(memory, (5, place), amount),
        ct.atomic_or(memory, (6, place), amount),
        ct.atomic_xor(memory, (7, place), amount),
    )
    for k in ct.static_iter(range(8)):
        ct.store(old, (k, 0), before[k][None, :])


@ct.kernel
def update_in_order(memory, places, amounts, old, n: ct.Constant[int]):
    """The same without tests of bounds, with an ordering and a scope for each; row 3 is left alone."""
    place = ct.load(places, (0,), (n,))
    amount = ct.load(amounts, (0,), (n,))
    before = (
        ct.atomic_add(memory, (0, place), amount),
        ct.atomic_max(memory, (1, place), amount, check_bounds=False, memory_order=MemoryOrder.RELAXED,
                      memory_scope=MemoryScope.BLOCK),
        ct.atomic_min(memory, (2, place), amount, check_bounds=False, memory_order=MemoryOrder.ACQUIRE,
                      memory_scope=MemoryScope.DEVICE),
        ct.gather(memory, (3, place)),
        ct.atomic_cas(memory, (4, place), amount, 77, check_bounds=False, memory_order=MemoryOrder.ACQ_REL,
                      memory_scope=MemoryScope.SYS),
        ct.atomic_and(memory, (5, place), amount, check_bounds=False, memory_order=MemoryOrder.RELEASE,
                      memory_scope=MemoryScope.SYS),
        ct.atomic_or(memory, (6, place), amount, check_bounds=False, memory_order=MemoryOrder.ACQ_REL,
                     memory_scope=MemoryScope.BLOCK),
        ct.atomic_xor(memory, (7, place), amount, check_bounds=False, memory_order=MemoryOrder.RELAXED,
                      memory_scope=MemoryScope.DEVICE),
    )
    for k in ct.static_iter(range(8)):
        ct.store(old, (k, 0), before[k][None, :])


@ct.kernel
def update_floats(memory, places, amounts, old, n: ct.Constant[int]):
    place = ct.load(places, (0,), (n,))
    amount = ct.load(amounts, (0,), (n,))
    ct.store(old, (0, 0), ct.atomic_add(memory, (0, place), amount, check_bounds=False)[None, :])
    ct.store(old, (1, 0), ct.atomic_xchg(memory, (1, place), amount, check_bounds=False)[None, :])
    ct.store(old, (2, 0), ct.atomic_cas(memory, (2, place), amount, 77.0, check_bounds=False)[None, :])


@ct.kernel
def half_sums(memory, places, amounts, n: ct.Constant[int]):
    ct.atomic_add(memory, ct.load(places, (0,), (n,)), ct.load(amounts, (0,), (n,)))


@ct.kernel
def outside(memory, old, n: ct.Constant[int]):
    """Indices outside the array change nothing; a compare-and-swap returns what it expected."""
    place = ct.arange(n, dtype=ct.int32) - 4
    ct.atomic_add(memory, place, 100)
    ct.store(old, (0,), ct.atomic_cas(memory, place, place + 1000, 5))


@ct.kernel
def scalar_index(memory, old):
    """One element per block, and a broadcast amount over a plane."""
    block = ct.bid(0)
    ct.scatter(old, block, ct.atomic_add(memory, (block, 1), 5))
    ct.atomic_xor(memory, (block, ct.arange(4, dtype=ct.int32)[:, None] * 0 + 2), ct.ones((1, 1), dtype=ct.int32))


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(37)
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        limit = np.iinfo(dtype)
        places = rng.permutation(16).astype(np.int32)[:8]
        start = rng.integers(limit.min, limit.max, (8, 16), dtype=dtype, endpoint=True)
        amounts = rng.integers(limit.min, limit.max, 8, dtype=dtype, endpoint=True)
        start[4, places[:4]] = amounts[:4]  # these compare equal
        memory, old = cp.asarray(start), cp.zeros((8, 8), dtype=dtype)
        ct.launch(stream, (1,), update, (memory, cp.asarray(places), cp.asarray(amounts), old, 8))
        want = start.copy()
        np.add.at(want[0], places, amounts)
        np.maximum.at(want[1], places, amounts)
        np.minimum.at(want[2], places, amounts)
        want[3, places] = amounts
        want[4, places] = np.where(start[4, places] == amounts, 77, start[4, places])
        np.bitwise_and.at(want[5], places, amounts)
        np.bitwise_or.at(want[6], places, amounts)
        np.bitwise_xor.at(want[7], places, amounts)
        np.testing.assert_array_equal(cp.asnumpy(memory), want, err_msg=dtype.__name__)
        np.testing.assert_array_equal(cp.asnumpy(old), start[:, places], err_msg=dtype.__name__)

        memory, old = cp.asarray(start), cp.zeros((8, 8), dtype=dtype)
        ct.launch(stream, (1,), update_in_order, (memory, cp.asarray(places), cp.asarray(amounts), old, 8))
        want[3] = start[3]
        np.testing.assert_array_equal(cp.asnumpy(memory), want, err_msg=dtype.__name__)
        np.testing.assert_array_equal(cp.asnumpy(old), start[:, places], err_msg=dtype.__name__)

    for dtype in (np.float32, np.float64):
        places = rng.permutation(16).astype(np.int64)[:8]
        start = rng.standard_normal((3, 16)).astype(dtype)
        amounts = rng.standard_normal(8).astype(dtype)
        start[2, places[:3]] = amounts[:3]
        memory, old = cp.asarray(start), cp.zeros((3, 8), dtype=dtype)
        ct.launch(stream, (1,), update_floats, (memory, cp.asarray(places), cp.asarray(amounts), old, 8))
        want = start.copy()
        want[0, places] += amounts
        want[1, places] = amounts
        want[2, places[:3]] = 77
        np.testing.assert_array_equal(cp.asnumpy(memory), want)
        np.testing.assert_array_equal(cp.asnumpy(old), start[:, places])

    places = rng.integers(0, 6, 64).astype(np.int32)
    amounts = rng.integers(-3, 4, 64).astype(np.float16)
    memory = cp.zeros(6, dtype=np.float16)
    ct.launch(stream, (1,), half_sums, (memory, cp.asarray(places), cp.asarray(amounts), 64))
    want = np.zeros(6)
    np.add.at(want, places, amounts)
    np.testing.assert_array_equal(cp.asnumpy(memory), want)

    memory, old = cp.asarray(np.arange(5, dtype=np.int32)), cp.zeros(16, dtype=np.int32)
    ct.launch(stream, (1,), outside, (memory, old, 16))
    np.testing.assert_array_equal(cp.asnumpy(memory), np.arange(5) + 100)
    place = np.arange(16) - 4
    np.testing.assert_array_equal(cp.asnumpy(old), np.where((place >= 0) & (place < 5), place + 100, place + 1000))

    memory, old = cp.asarray(np.arange(12, dtype=np.int32).reshape(4, 3)), cp.zeros(4, dtype=np.int32)
    ct.launch(stream, (4,), scalar_index, (memory, old))
    np.testing.assert_array_equal(cp.asnumpy(old), [1, 4, 7, 10])
    np.testing.assert_array_equal(cp.asnumpy(memory), np.arange(12).reshape(4, 3) + [0, 5, 0])


if __name__ == "__main__":
    main()
