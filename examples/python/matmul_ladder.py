"""The product of two matrices, six times, each kernel with one idea more than the one before.

1. naive: one element of the result per block; a row times a column.
2. row: one stretch of a row per block; the row of A is reused for all of it.
3. shared: the block copies tiles into its own memory and reads them from there.
4. swizzled: the same, with the tile stored so that reading it by columns touches different banks of a GPU's memory.
5. vectorised: four neighbouring elements at a time.
6. tiled: `dot` of tiles, and blocks in groups, so that blocks running at the same time share rows and columns.

Shows: what each step is for; on a CPU the last is the one to use, and the others say why it is fast.
"""

import numpy as np
from common import arguments, check, compare

import girih
import girih.language as tl


@girih.jit
def naive(A, B, C, M, N, K, BLOCK_K: tl.constexpr):
    row, col = tl.program_id(0), tl.program_id(1)
    k = tl.arange(0, BLOCK_K)
    total = 0.0
    for k0 in range(0, K, BLOCK_K):
        a = tl.load(A + row * K + k0 + k, mask=k0 + k < K, other=0.0)
        b = tl.load(B + (k0 + k) * N + col, mask=k0 + k < K, other=0.0)
        total += tl.sum(a * b)
    tl.store(C + row * N + col, total)


@girih.jit
def by_row(A, B, C, M, N, K, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for k in range(K):
        a = tl.load(A + row * K + k)
        total += a * tl.load(B + k * N + n, mask=n < N, other=0.0)
    tl.store(C + row * N + n, total, mask=n < N)


@girih.jit
def shared(A, B, C, M, N, K, BLOCK: tl.constexpr, SWIZZLE: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    i, j = lane[:, None], lane[None, :]
    m, n = tl.program_id(0) * BLOCK + lane, tl.program_id(1) * BLOCK + lane
    a_tile, b_tile = tl.shared(BLOCK * BLOCK), tl.shared(BLOCK * BLOCK)
    # Where element (i, j) of a tile is; swizzled, a column's elements are in different columns of the storage.
    place = i * BLOCK + (j ^ (i % BLOCK)) if SWIZZLE else i * BLOCK + j
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k0 in range(0, K, BLOCK):
        k = k0 + lane
        a = tl.load(A + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        tl.store(a_tile + place, a)
        tl.store(b_tile + place, b)
        tl.sync()
        for step in range(BLOCK):
            swizzled = step ^ (lane % BLOCK) if SWIZZLE else step + 0 * lane
            column = tl.load(a_tile + lane * BLOCK + swizzled)
            row = tl.load(b_tile + step * BLOCK + (lane ^ (step % BLOCK) if SWIZZLE else lane))
            total += column[:, None] * row[None, :]
        tl.sync()
    tl.store(C + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@girih.jit
def vectorised(A, B, C, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + 4 * tl.arange(0, BLOCK_N // 4)
    total = tl.zeros((BLOCK_M, BLOCK_N // 4, 4), tl.float32)
    for k in range(K):
        a = tl.load(A + m * K + k, mask=m < M, other=0.0)
        b = tl.load4(B + k * N + n, mask=n < N, other=0.0)
        total += a[:, None, None] * b[None, :, :]
    where = m[:, None] * N + n[None, :]
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(C + where[:, :, None] + tl.arange(0, 4), total, mask=inside[:, :, None])


@girih.jit
def tiled(A, B, C, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    rows, columns = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    group = pid // (GROUP * columns)
    first = group * GROUP
    height = min(rows - first, GROUP)
    pid_m = first + pid % height
    pid_n = pid % (GROUP * columns) // height

    m, n = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k0 in range(0, K, BLOCK_K):
        ks = k0 + k
        a = tl.load(A + m[:, None] * K + ks[None, :], mask=(m[:, None] < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(B + ks[:, None] * N + n[None, :], mask=(ks[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(a, b, total)
    tl.store(C + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


def main():
    options = arguments(__doc__)
    m, n, k = (20, 24, 36) if options.small else (252, 380, 300)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    c = np.empty((m, n), np.float32)
    up = girih.cdiv
    sizes = (a, b, c, m, n, k)
    ladder = [
        ("naive", lambda: naive[(m, n)](*sizes, BLOCK_K=64, device=options.device)),
        ("row", lambda: by_row[(m, up(n, 128))](*sizes, BLOCK_N=128, device=options.device)),
        ("shared", lambda: shared[(up(m, 16), up(n, 16))](*sizes, BLOCK=16, SWIZZLE=False, device=options.device)),
        ("swizzled", lambda: shared[(up(m, 16), up(n, 16))](*sizes, BLOCK=16, SWIZZLE=True, device=options.device)),
        ("vectorised", lambda: vectorised[(up(m, 8), up(n, 64))](*sizes, BLOCK_M=8, BLOCK_N=64, device=options.device)),
        (
            "tiled",
            lambda: tiled[(up(m, 64) * up(n, 64),)](
                *sizes, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP=4, device=options.device
            ),
        ),
    ]
    want = a.astype(np.float64) @ b
    for name, launch in ladder:
        c.fill(np.nan)
        launch()
        check(f"matmul, {name}", c, want, 1e-5)
        if options.time:
            compare(f"matmul, {name}", launch, lambda: np.matmul(a, b))


if __name__ == "__main__":
    main()
