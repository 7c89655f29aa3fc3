"""Products whose blocks keep what blocks before them copied: the columns stay the same for some blocks in turn, then change.

Each product has integers as factors, so that its result is exact in any order, and is compared with NumPy's. One thread runs all
blocks, or several share them.
"""

import girih
import girih.language as tl
import numpy as np
import pytest


@girih.jit
def grouped(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, WRAP: tl.constexpr):
    at = tl.program_id(0)
    wide = tl.cdiv(n, BN)
    first = at // (GROUP * wide) * GROUP
    high = tl.minimum(tl.cdiv(m, BM) - first, GROUP)
    row = first + at % (GROUP * wide) % high
    column = at % (GROUP * wide) // high
    i = row * BM + tl.arange(0, BM)
    j = column * BN + tl.arange(0, BN)
    if WRAP:
        left, right = i % m, j % n
    else:
        left, right = i, j
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BK)):
        kk = step * BK + tl.arange(0, BK)
        x = tl.load(a + left[:, None] * k + kk[None, :], mask=(left[:, None] < m) & (kk[None, :] < k), other=0.0)
        y = tl.load(b + kk[:, None] * n + right[None, :], mask=(right[None, :] < n) & (kk[:, None] < k), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@girih.jit
def triangle(a, b, c, n, k, B: tl.constexpr, GROUP: tl.constexpr):
    """Block p multiplies by the first p + 1 pieces of columns that GROUP blocks in turn share, and then others do again."""
    at = tl.program_id(0)
    column = at // GROUP % 2
    i = at * B + tl.arange(0, B)
    j = column * B + tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for step in range(0, tl.minimum(at * 5 % 7 + 1, k // B)):
        kk = step * B + tl.arange(0, B)
        x = tl.load(a + i[:, None] * k + kk[None, :])
        y = tl.load(b + kk[:, None] * n + j[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * B + tl.arange(0, B)[None, :], total)


@girih.jit
def skipping(a, b, c, n, k, B: tl.constexpr):
    """Odd blocks leave out every second piece of the columns that all blocks share."""
    at = tl.program_id(0)
    i = at * B + tl.arange(0, B)
    j = tl.arange(0, B)
    total = tl.zeros((B, B), dtype=tl.float32)
    for step in range(0, k // B):
        if (at + step) % 2 == 1:
            continue
        kk = step * B + tl.arange(0, B)
        x = tl.load(a + i[:, None] * k + kk[None, :])
        y = tl.load(b + kk[:, None] * n + j[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * B + j[None, :], total)


def drawn(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [(128, 96, 64), (100, 70, 50), (33, 130, 31), (64, 32, 1), (200, 40, 4500), (40, 40, 0)])
def test_columns_that_stay_for_some_blocks(size, threads, wrap, monkeypatch):
    monkeypatch.setenv("GIRIH_THREADS", str(threads))
    m, n, k = size
    a, b = drawn(m, k), drawn(k, n)
    for group in (1, 3, 8):
        c = np.zeros((m, n), np.float32)
        grid = (girih.cdiv(m, 32) * girih.cdiv(n, 32),)
        grouped[grid](a, b, c, m, n, k, BM=32, BN=32, BK=32, GROUP=group, WRAP=wrap)
        np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("group", [1, 2, 5])
def test_blocks_that_go_on_where_others_ended(group):
    size, blocks, depth = 32, 23, 8
    a, b = drawn(blocks * size, depth * size), drawn(depth * size, 2 * size)
    c = np.zeros((blocks * size, size), np.float32)
    triangle[(blocks,)](a, b, c, 2 * size, depth * size, B=size, GROUP=group)
    for at in range(blocks):
        rows, terms = slice(at * size, (at + 1) * size), min(at * 5 % 7 + 1, depth) * size
        columns = slice(at // group % 2 * size, (at // group % 2 + 1) * size)
        np.testing.assert_array_equal(c[rows], a[rows, :terms] @ b[:terms, columns])


def test_blocks_that_leave_pieces_out():
    size, blocks, pieces = 32, 6, 5
    a, b = drawn(blocks * size, pieces * size), drawn(pieces * size, size)
    c = np.zeros((blocks * size, size), np.float32)
    skipping[(blocks,)](a, b, c, size, pieces * size, B=size)
    for at in range(blocks):
        rows = slice(at * size, (at + 1) * size)
        terms = [k for k in range(pieces * size) if (at + k // size) % 2 == 0]
        np.testing.assert_array_equal(c[rows], a[rows][:, terms] @ b[terms])


def test_launches_see_what_was_written_between_them():
    m = n = k = 64
    a, b, c = drawn(m, k), drawn(k, n), np.zeros((m, n), np.float32)
    for _ in range(3):
        grouped[(4,)](a, b, c, m, n, k, BM=32, BN=32, BK=32, GROUP=8, WRAP=False)
        np.testing.assert_array_equal(c, a @ b)
        b += 1
