"""Hints and orderings of loads and stores change how fast, never what."""
import cupy as cp
import numpy as np
import cuda.tile as ct
from cuda.tile import MemoryOrder, MemoryScope


@ct.kernel
def hinted(source, result, latency: ct.Constant[int], tma: ct.Constant[bool]):
    i = ct.bid(0)
    tile = ct.load(source, (i, 0), (4, 16), latency=latency, allow_tma=tma,
                   padding_mode=ct.PaddingMode.ZERO)
    ct.store(result, (i, 0), tile * 3, latency=latency, allow_tma=tma)


@ct.kernel
def unchecked(source, result):
    """Every tile lies inside, as check_bounds=False requires."""
    i = ct.bid(0)
    tile = ct.load(source, (i, 0), (4, 16), check_bounds=False)
    ct.store(result, (i, 0), tile * 3, check_bounds=False)
    view = source.tiled_view((4, 16))
    again = view.load((i, 0), check_bounds=False, latency=2, allow_tma=False)
    result.tiled_view((4, 16)).store((i, 0), again * 3, check_bounds=False, latency=9, allow_tma=True)


def ordered(load_order, store_order, scope):
    @ct.kernel
    def kernel(source, result):
        i = ct.bid(0)
        tile = ct.load(source, (i, 0), (4, 16), memory_order=load_order, memory_scope=scope)
        ct.store(result, (i, 0), tile * 3, memory_order=store_order, memory_scope=scope)

    return kernel


@ct.kernel
def hinted_gather(source, result, latency: ct.Constant[int]):
    row = ct.bid(0)
    column = ct.arange(16, dtype=ct.int32)
    tile = ct.gather(source, (row, column), latency=latency)
    ct.scatter(result, (row, column), tile * 3, latency=latency)


def main():
    stream = cp.cuda.get_current_stream()
    for rows in (4, 12, 32):
        source = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
        want = source * 3

        def check(kernel, grid, *arguments):
            result = cp.zeros(source.shape, dtype=np.float32)
            ct.launch(stream, (grid,), kernel, (cp.asarray(source), result, *arguments))
            np.testing.assert_array_equal(cp.asnumpy(result), want)

        for latency in (1, 5, 10):
            for tma in (False, True):
                check(hinted, rows // 4, latency, tma)
            check(hinted_gather, rows, latency)
        check(unchecked, rows // 4)
        check(ordered(MemoryOrder.WEAK, MemoryOrder.WEAK, MemoryScope.NONE), rows // 4)
        for scope in (MemoryScope.BLOCK, MemoryScope.DEVICE, MemoryScope.SYS):
            check(ordered(MemoryOrder.RELAXED, MemoryOrder.RELAXED, scope), rows // 4)
            check(ordered(MemoryOrder.ACQUIRE, MemoryOrder.RELEASE, scope), rows // 4)


if __name__ == "__main__":
    main()
