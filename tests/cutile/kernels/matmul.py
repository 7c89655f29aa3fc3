"""Matrix product, one output tile per block. Blocks next to each other in time share rows of A and columns of B: the
block's number is unfolded into groups of rows. Edges are filled with zeros, which add nothing."""
import cuda.tile as ct
import cupy as cp
import numpy as np


def grouped(bid, m, n, tm, tn, group):
    """Block `bid` in an order that walks down `group` tiles before it goes right."""
    tiles_m = ct.cdiv(m, tm)
    tiles_n = ct.cdiv(n, tn)
    per_group = group * tiles_n
    first = bid // per_group * group
    rows = min(tiles_m - first, group)
    return first + bid % per_group % rows, bid % per_group // rows


@ct.kernel(num_ctas=ct.ByTarget(sm_100=2, default=1), occupancy=2)
def matmul(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    i, j = grouped(ct.bid(0), c.shape[0], c.shape[1], tm, tn, 8)
    acc = ct.zeros((tm, tn), dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        x = ct.load(a, index=(i, k), shape=(tm, tk), padding_mode=ct.PaddingMode.ZERO)
        y = ct.load(b, index=(k, j), shape=(tk, tn), padding_mode=ct.PaddingMode.ZERO)
        acc = ct.mma(x, y, acc)
    ct.store(c, index=(i, j), tile=ct.astype(acc, c.dtype))


@ct.kernel
def matmul_bf16(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    """f32 in memory, multiplied as bf16."""
    i, j = grouped(ct.bid(0), c.shape[0], c.shape[1], tm, tn, 4)
    zero = ct.PaddingMode.ZERO
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=zero).astype(ct.bfloat16)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=zero).astype(ct.bfloat16)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc)


@ct.kernel
def matmul_tf32(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    """f32 in memory, multiplied as tf32 where the element type asks for it."""
    i, j = grouped(ct.bid(0), c.shape[0], c.shape[1], tm, tn, 4)
    zero = ct.PaddingMode.ZERO
    dtype = ct.tfloat32 if a.dtype == ct.float32 else a.dtype
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.cdiv(a.shape[1], tk)):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=zero).astype(dtype)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=zero).astype(dtype)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc)


@ct.kernel
def matmul_nt(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    """C = A Bᵀ: B is read in transposed order."""
    i, j = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO
    acc = ct.zeros((tm, tn), ct.float32)
    for k in range(ct.num_tiles(a, 1, (tm, tk))):
        x = ct.load(a, (i, k), (tm, tk), padding_mode=zero)
        y = ct.load(b, (k, j), (tk, tn), order="F", padding_mode=zero)
        acc = ct.mma(x, y, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))


@ct.kernel
def matmul_tn(a, b, c, tm: ct.Constant[int], tn: ct.Constant[int], tk: ct.Constant[int]):
    """C = Aᵀ B: A's tile is transposed after the load."""
    i, j = ct.bid(0), ct.bid(1)
    zero = ct.PaddingMode.ZERO
    acc = ct.zeros((tm, tn), ct.float32)
    for k in range(ct.num_tiles(a, 0, (tk, tm))):
        x = ct.load(a, (k, i), (tk, tm), padding_mode=zero)
        y = ct.load(b, (k, j), (tk, tn), padding_mode=zero)
        acc = ct.mma(x.transpose(), y, acc)
    ct.store(c, (i, j), acc.astype(c.dtype))


def bf16(a):
    """f32 rounded to bf16, ties to even."""
    bits = a.view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32)


def check(got, a, b, rounding):
    """Every product and every sum rounds once; `rounding` is what storing the result adds."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    bound = 2.0**-22 * np.sqrt(a.shape[1]) * (np.abs(a) @ np.abs(b)) + rounding * np.abs(a @ b)
    assert np.all(np.abs(cp.asnumpy(got) - a @ b) <= bound + 1e-7)


def main():
    rng = np.random.default_rng(2)
    stream = cp.cuda.get_current_stream()
    for m, n, k in ((256, 256, 128), (200, 130, 72), (33, 65, 100), (1, 1, 1)):
        grid = (ct.cdiv(m, 64) * ct.cdiv(n, 64), 1, 1)
        for dtype, rounding in ((np.float16, 2.0**-11), (np.float32, 0)):
            a = rng.standard_normal((m, k)).astype(dtype)
            b = rng.standard_normal((k, n)).astype(dtype)
            x, y, z = cp.asarray(a), cp.asarray(b), cp.zeros((m, n), dtype=dtype)
            ct.launch(stream, grid, matmul, (x, y, z, 64, 64, 32))
            check(z, a, b, rounding)
            square = (ct.cdiv(m, 64), ct.cdiv(n, 64))
            z = cp.zeros((m, n), dtype=dtype)
            ct.launch(stream, square, matmul_nt, (x, cp.asarray(np.ascontiguousarray(b.T)), z, 64, 64, 32))
            check(z, a, b, rounding)
            z = cp.zeros((m, n), dtype=dtype)
            ct.launch(stream, square, matmul_tn, (cp.asarray(np.ascontiguousarray(a.T)), y, z, 64, 64, 32))
            check(z, a, b, rounding)
        z = cp.zeros((m, n), dtype=np.float32)
        ct.launch(stream, grid, matmul_bf16, (x, y, z, 64, 64, 32))
        check(z, bf16(a), bf16(b), 0)
        z = cp.zeros((m, n), dtype=np.float32)
        ct.launch(stream, grid, matmul_tf32, (x, y, z, 64, 64, 32))
        assert np.all(np.abs(cp.asnumpy(z) - a @ b) <= 2.0**-9 * (np.abs(a) @ np.abs(b)))


if __name__ == "__main__":
    main()
