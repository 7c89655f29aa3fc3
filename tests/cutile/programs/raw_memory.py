"""Element offsets from an array's base pointer: loads, stores and every atomic update."""
import cupy as cp
import numpy as np
import cuda.tile as ct
from cuda.tile import MemoryOrder, MemoryScope


@ct.kernel
def copy_diagonal(matrix, result, n: ct.Constant[int]):
    """The diagonal of a matrix lies `stride0 + stride1` elements apart."""
    place = ct.arange(n, dtype=ct.int32)
    memory = matrix.get_raw_memory()
    dtype = memory.dtype
    ct.static_assert(dtype == matrix.dtype)
    inside = place < min(matrix.shape[0], matrix.shape[1])
    step = matrix.strides[0] + matrix.strides[1]
    values = memory.load_offset(place * step, mask=inside, padding_value=-1, latency=2)
    result.get_raw_memory().store_offset(place, values, latency=2)


@ct.kernel
def reverse(source, result, n: ct.Constant[int]):
    place = ct.arange(n, dtype=ct.int64)
    size = source.shape[0]
    inside = place < size
    values = source.get_raw_memory().load_offset(size - 1 - place, mask=inside)
    result.get_raw_memory().store_offset(place, values, mask=inside)


@ct.kernel
def one_element(source, result):
    i = ct.bid(0)
    value = source.get_raw_memory().load_offset(i)
    result.get_raw_memory().store_offset(i, value * value)


@ct.kernel
def update(memory, old, n: ct.Constant[int]):
    """Row k of `memory` gets the k-th kind of update; the even elements only."""
    place = ct.arange(n, dtype=ct.int32)
    mask = place % 2 == 0
    raw, out = memory.get_raw_memory(), old.get_raw_memory()
    amount = place + 3
    before = (
        raw.atomic_add_offset(place, amount, mask=mask),
        raw.atomic_max_offset(place + n, amount, mask=mask),
        raw.atomic_min_offset(place + 2 * n, amount, mask=mask),
        raw.atomic_and_offset(place + 3 * n, amount, mask=mask),
        raw.atomic_or_offset(place + 4 * n, amount, mask=mask),
        raw.atomic_xor_offset(place + 5 * n, amount, mask=mask),
        raw.atomic_xchg_offset(place + 6 * n, amount, mask=mask,
                               memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.BLOCK),
        raw.atomic_cas_offset(place + 7 * n, amount, 100, mask=mask),
    )
    for k in ct.static_iter(range(8)):
        out.store_offset(place + k * n, before[k], mask=mask)


@ct.kernel
def update_in_order(memory, old, n: ct.Constant[int]):
    """The same updates with an ordering and a scope for each; row 6 is left as it is."""
    place = ct.arange(n, dtype=ct.int32)
    raw, out = memory.get_raw_memory(), old.get_raw_memory()
    amount = place + 3
    before = (
        raw.atomic_add_offset(place, amount, memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.DEVICE),
        raw.atomic_max_offset(place + n, amount, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.SYS),
        raw.atomic_min_offset(place + 2 * n, amount, memory_order=MemoryOrder.RELEASE, memory_scope=MemoryScope.BLOCK),
        raw.atomic_and_offset(place + 3 * n, amount, memory_order=MemoryOrder.ACQ_REL, memory_scope=MemoryScope.SYS),
        raw.atomic_or_offset(place + 4 * n, amount, memory_order=MemoryOrder.RELAXED, memory_scope=MemoryScope.SYS),
        raw.atomic_xor_offset(place + 5 * n, amount, memory_order=MemoryOrder.ACQUIRE, memory_scope=MemoryScope.DEVICE),
        raw.load_offset(place + 6 * n),
        raw.atomic_cas_offset(place + 7 * n, amount, 100, memory_order=MemoryOrder.RELEASE,
                              memory_scope=MemoryScope.DEVICE),
    )
    for k in ct.static_iter(range(8)):
        out.store_offset(place + k * n, before[k])


def main():
    stream = cp.cuda.get_current_stream()
    rng = np.random.default_rng(9)
    for shape in ((6, 9), (16, 16), (20, 3)):
        base = rng.integers(0, 100, (shape[0], 2 * shape[1])).astype(np.float32)
        result = cp.zeros(16, dtype=np.float32)
        view = cp.asarray(base)[:, ::2]
        ct.launch(stream, (1,), copy_diagonal, (view, result, 16))
        diagonal = np.diagonal(base[:, ::2])[:16]
        want = np.pad(diagonal, (0, 16 - len(diagonal)), constant_values=-1)
        np.testing.assert_array_equal(cp.asnumpy(result), want)

    for dtype in (np.int8, np.float16, np.int32, np.float64):
        for size in (1, 7, 16):
            source = rng.integers(0, 100, size).astype(dtype)
            result = cp.zeros(size, dtype=dtype)
            ct.launch(stream, (1,), reverse, (cp.asarray(source), result, 16))
            np.testing.assert_array_equal(cp.asnumpy(result), source[::-1])

    source = np.arange(-5, 6, dtype=np.int32)
    result = cp.zeros(11, dtype=np.int32)
    ct.launch(stream, (11,), one_element, (cp.asarray(source), result))
    np.testing.assert_array_equal(cp.asnumpy(result), source ** 2)

    start = rng.integers(0, 20, (8, 16)).astype(np.int32)
    memory, old = cp.asarray(start), cp.full((8, 16), -1, dtype=np.int32)
    ct.launch(stream, (1,), update, (memory, old, 16))
    amount = np.arange(16, dtype=np.int32) + 3
    changed = np.stack([start[0] + amount, np.maximum(start[1], amount), np.minimum(start[2], amount),
                        start[3] & amount, start[4] | amount, start[5] ^ amount, amount,
                        np.where(start[7] == amount, 100, start[7])])
    even = np.arange(16) % 2 == 0
    np.testing.assert_array_equal(cp.asnumpy(memory), np.where(even, changed, start))
    np.testing.assert_array_equal(cp.asnumpy(old), np.where(even, start, -1))

    memory, old = cp.asarray(start), cp.full((8, 16), -1, dtype=np.int32)
    ct.launch(stream, (1,), update_in_order, (memory, old, 16))
    changed[6] = start[6]
    np.testing.assert_array_equal(cp.asnumpy(memory), changed)
    np.testing.assert_array_equal(cp.asnumpy(old), start)


if __name__ == "__main__":
    main()
