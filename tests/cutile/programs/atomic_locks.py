"""Blocks that wait for each other: locks, a compare-and-swap loop, a flag, the last block to finish."""
import cupy as cp
import numpy as np
import cuda.tile as ct
from cuda.tile import MemoryOrder, MemoryScope

ORDERS = (MemoryOrder.RELAXED, MemoryOrder.ACQUIRE, MemoryOrder.RELEASE, MemoryOrder.ACQ_REL)
SCOPES = (MemoryScope.BLOCK, MemoryScope.DEVICE, MemoryScope.SYS)


@ct.kernel
def locked_update(lock, shared, n: ct.Constant[int]):
    """A lock by compare-and-swap guards an update that is not atomic itself."""
    while ct.atomic_cas(lock, 0, 0, 1, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.DEVICE) == 1:
        pass
    tile = ct.load(shared, (0,), (n,), memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.DEVICE)
    ct.store(shared, (0,), tile * 3 + 1, memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.DEVICE)
    ct.atomic_xchg(lock, 0, 0, memory_order=MemoryOrder.RELEASE)


@ct.kernel
def product_of_all(result, n: ct.Constant[int]):
    """An operation that has no atomic of its own: multiply by comparing and swapping."""
    factor = ct.bid(0) % 3 + 1
    seen = ct.atomic_or(result, 0, 0)
    done = False
    while not done:
        old = ct.atomic_cas(result, 0, seen, seen * factor)
        done = old == seen
        seen = old


@ct.kernel
def pass_message(data, flag, result, n: ct.Constant[int]):
    """Block 0 writes, then raises a flag; the others wait for it, then read."""
    block = ct.bid(0)
    if block == 0:
        ct.store(data, (0,), ct.arange(n, dtype=ct.int32) + 10)
        ct.atomic_xchg(flag, 0, 1, memory_order=MemoryOrder.RELEASE, memory_scope=MemoryScope.DEVICE)
    else:
        while ct.atomic_add(flag, 0, 0, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.DEVICE) == 0:
            pass
        tile = ct.load(data, (0,), (n,))
        ct.store(result, (block - 1, 0), (tile * block)[None, :])


@ct.kernel
def last_one_sums(values, partial, arrived, result, n: ct.Constant[int]):
    """Every block leaves a partial sum; the one that arrives last adds them up."""
    block = ct.bid(0)
    ct.store(partial, (block,), ct.sum(ct.load(values, (block,), (n,))))
    place = ct.atomic_add(arrived, 0, 1, memory_order=MemoryOrder.ACQ_REL, memory_scope=MemoryScope.DEVICE)
    if place == ct.num_blocks(0) - 1:
        total = ct.load(partial, (0,), (16,), padding_mode=ct.PaddingMode.ZERO)
        ct.store(result, (0,), ct.sum(total))


@ct.kernel
def every_order(memory):
    """Any ordering and scope leaves the same sum behind."""
    for k in ct.static_iter(range(12)):
        order = ct.static_eval(ORDERS[k % 4])
        scope = ct.static_eval(SCOPES[k // 4])
        place = ct.arange(4, dtype=ct.int32) + 4 * k
        ct.atomic_add(memory, place, k + 1, memory_order=order, memory_scope=scope)


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(39)
    lock, shared = cp.zeros(1, dtype=np.int32), cp.zeros(8, dtype=np.int64)
    ct.launch(stream, (20,), locked_update, (lock, shared, 8))
    want = 0
    for _ in range(20):
        want = want * 3 + 1
    np.testing.assert_array_equal(cp.asnumpy(shared), np.full(8, want))
    assert int(lock[0]) == 0

    result = cp.ones(1, dtype=np.int32)
    ct.launch(stream, (24,), product_of_all, (result, 1))
    assert int(result[0]) == 6**8

    for readers in (1, 3):
        data, flag = cp.zeros(16, dtype=np.int32), cp.zeros(1, dtype=np.int32)
        result = cp.zeros((readers, 16), dtype=np.int32)
        ct.launch(stream, (1 + readers,), pass_message, (data, flag, result, 16))
        want = np.arange(10, 26) * np.arange(1, readers + 1)[:, None]
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    values = rng.integers(-99, 99, 12 * 32).astype(np.int32)
    partial, arrived, result = (cp.zeros(size, dtype=np.int32) for size in (12, 1, 1))
    ct.launch(stream, (12,), last_one_sums, (cp.asarray(values), partial, arrived, result, 32))
    assert int(result[0]) == values.sum()

    memory = cp.zeros(48, dtype=np.int32)
    ct.launch(stream, (5,), every_order, (memory,))
    np.testing.assert_array_equal(cp.asnumpy(memory), np.repeat(np.arange(1, 13) * 5, 4))


if __name__ == "__main__":
    main()
