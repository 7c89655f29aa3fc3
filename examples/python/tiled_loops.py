"""Loops over tiles with sizes known at compile time: a sum, a product of a matrix and a vector, a product of matrices.

Shows: `range` over constants, unrolled while the kernel is compiled; scalars carried through the copies. The kernels
are those of the tutorial on unrolled loops that this language grew from, with `girih` imported as `tt`.
"""

import numpy as np
from common import arguments, check

import girih as tt


@tt.jit
def loop_sum_kernel(src_ptr, dst_ptr, N: tt.constexpr, TILE: tt.constexpr):
    tid = tt.arange(0, TILE)
    acc = 0.0
    for t in range(0, N, TILE):
        mask = tid < (N - t)
        x = tt.load(src_ptr + t + tid, mask=mask, other=0.0)
        acc = acc + tt.reduce_sum(x)
    tt.store(dst_ptr + tid, acc, mask=tid < 1)


@tt.jit
def tiled_dot_kernel(A_ptr, B_ptr, C_ptr, K: tt.constexpr, TILE_K: tt.constexpr):
    row = tt.program_id(0)
    tid = tt.arange(0, TILE_K)
    acc = 0.0
    for k0 in range(0, K, TILE_K):
        a_tile = tt.load(A_ptr + row * K + k0 + tid)
        b_tile = tt.load(B_ptr + k0 + tid)
        acc = acc + tt.reduce_sum(a_tile * b_tile)
    tt.store(C_ptr + row, acc)


@tt.jit
def tiled_matmul_kernel(A_ptr, B_ptr, C_ptr, K: tt.constexpr, N: tt.constexpr, TILE_K: tt.constexpr):
    row = tt.program_id(0)
    tid = tt.arange(0, TILE_K)
    for col in range(N):
        acc = 0.0
        for k0 in range(0, K, TILE_K):
            a_tile = tt.load(A_ptr + row * K + k0 + tid)
            b_tile = tt.load(B_ptr + k0 * N + col + tid * N)  # strided B col
            acc = acc + tt.reduce_sum(a_tile * b_tile)
        tt.store(C_ptr + row * N + col, acc)


def main():
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    x, total = rng.standard_normal(100, dtype=np.float32), np.zeros(1, np.float32)
    loop_sum_kernel[(1,)](x, total, N=100, TILE=16, device=options.device)
    check("loop_sum", total[0], x.astype(np.float64).sum(), 1e-5)

    m, k, n = 16, 64, 8
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    v, c = np.ascontiguousarray(b[:, 0]), np.zeros(m, np.float32)
    tiled_dot_kernel[(m,)](a, v, c, K=k, TILE_K=16, device=options.device)
    check("tiled_dot", c, a.astype(np.float64) @ v, 1e-5)

    product = np.zeros((m, n), np.float32)
    tiled_matmul_kernel[(m,)](a, b, product, K=k, N=n, TILE_K=16, device=options.device)
    check("tiled_matmul", product, a.astype(np.float64) @ b, 1e-5)


if __name__ == "__main__":
    main()
