"""Split-K matrix product: several blocks share one output tile, each with a piece of the inner dimension.

Three ways to add the pieces: atomic additions, a lock around load, add and store where the last one writes the result,
and a workspace that a second kernel sums."""
import cuda.tile as ct
import cupy as cp
import numpy as np


def piece(a, b, i, j, part, parts, tm, tn, tk):
    """The product of every `parts`-th tile of the inner dimension, beginning with `part`."""
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(part, ct.num_tiles(a, 1, (tm, tk)), parts):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    return acc


@ct.kernel
def split_k_atomic(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int],
                   parts: ct.Constant[int]):
    i, j, part = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = piece(a, b, i, j, part, parts, tm, tn, tk)
    rows = i * tm + ct.arange(tm, dtype=ct.int32)
    cols = j * tn + ct.arange(tn, dtype=ct.int32)
    ct.atomic_add(c, (rows[:, None], cols[None, :]), acc, memory_order=ct.MemoryOrder.RELAXED)


@ct.kernel
def split_k_lock(a, b, c, sums, locks, counts, tm: ct.Constant[int], tn: ct.Constant[int],
                 tk: ct.Constant[int], parts: ct.Constant[int]):
    i, j, part = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = piece(a, b, i, j, part, parts, tm, tn, tk)
    tile = i * ct.num_blocks(1) + j
    while ct.atomic_cas(locks, tile, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    count = ct.gather(counts, tile)
    if count > 0:
        acc = acc + ct.load(sums, (i, j), (tm, tn), padding_mode=ct.PaddingMode.ZERO)
    if count == parts - 1:
        ct.store(c, (i, j), acc.astype(c.dtype))
    else:
        ct.store(sums, (i, j), acc)
    ct.scatter(counts, tile, (count + 1) % parts)
    ct.atomic_xchg(locks, tile, 0, memory_order=ct.MemoryOrder.RELEASE)


@ct.kernel
def split_k_partials(a, b, partials, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int],
                     parts: ct.Constant[int]):
    i, j, part = ct.bid(0), ct.bid(1), ct.bid(2)
    acc = piece(a, b, i, j, part, parts, tm, tn, tk)
    ct.store(partials, (part, i, j), acc.reshape((1, tm, tn)))


@ct.kernel
def split_k_reduce(partials, c, tm: ct.Constant[int], tn: ct.Constant[int], parts: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    x = ct.load(partials, (0, i, j), (parts, tm, tn), padding_mode=ct.PaddingMode.ZERO)
    ct.store(c, (i, j), ct.sum(x, axis=0).astype(c.dtype))


def main():
    rng = np.random.default_rng(5)
    stream = cp.cuda.get_current_stream()
    tm, tn, tk, parts = 32, 32, 16, 4
    for dtype, rounding in ((np.float16, 2.0**-11), (np.float32, 0.0)):
        for m, n, k in ((64, 64, 512), (40, 33, 200), (7, 9, 1000)):
            a = rng.standard_normal((m, k)).astype(dtype)
            b = rng.standard_normal((k, n)).astype(dtype)
            x, y = cp.asarray(a), cp.asarray(b)
            wide, narrow, last = (cp.zeros((m, n), dtype=t) for t in (np.float32, dtype, dtype))
            tiles = (ct.cdiv(m, tm), ct.cdiv(n, tn))
            ct.launch(stream, (*tiles, parts), split_k_atomic, (x, y, wide, tm, tn, tk, parts))
            sums = cp.zeros((m, n), dtype=np.float32)
            locks = cp.zeros(tiles[0] * tiles[1], dtype=np.int32)
            counts = cp.zeros(tiles[0] * tiles[1], dtype=np.int32)
            ct.launch(stream, (*tiles, parts), split_k_lock,
                      (x, y, narrow, sums, locks, counts, tm, tn, tk, parts))
            assert not cp.asnumpy(locks).any() and not cp.asnumpy(counts).any()
            partials = cp.zeros((parts, m, n), dtype=np.float32)
            ct.launch(stream, (*tiles, parts), split_k_partials, (x, y, partials, tm, tn, tk, parts))
            ct.launch(stream, tiles, split_k_reduce, (partials, last, tm, tn, parts))
            a, b = a.astype(np.float64), b.astype(np.float64)
            bound = 2.0**-22 * np.sqrt(k) * (np.abs(a) @ np.abs(b)) + 1e-7
            assert np.all(np.abs(cp.asnumpy(wide) - a @ b) <= bound)
            for got in (narrow, last):
                assert np.all(np.abs(cp.asnumpy(got) - a @ b) <= bound + rounding * np.abs(a @ b))


if __name__ == "__main__":
    main()
