"""Kernels in Python that a row runs instead of an exported model, beside the libraries' functions for the same."""

from __future__ import annotations

import girih
import girih.language as tl


@girih.jit
def histogram(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    found = tl.histogram(tl.load(x + i, mask=inside, other=0), BINS, mask=inside)
    tl.atomic_add(counts + tl.arange(0, BINS), found)


@girih.jit
def saxpy(x, y, out, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, a * tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@girih.jit
def product(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        left = tl.load(a + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + m * N + n, total, mask=(m < M) & (n < N))


@girih.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    given = tl.load(x + row * n + j, mask=j < n, other=-float("inf"))
    e = tl.exp(given - tl.max(given, axis=0))
    tl.store(out + row * n + j, e / tl.sum(e, axis=0), mask=j < n)


def run_histogram(x, threads):
    import torch

    counts = torch.zeros(64, dtype=torch.int32)

    def run():
        counts.zero_()
        histogram[(girih.cdiv(x.numel(), 8192),)](x, counts, x.numel(), 64, 8192, threads=threads)
        return counts

    return run


def run_saxpy(x, y, threads):
    out = x.new_zeros(x.shape)
    return launched(saxpy, (girih.cdiv(x.numel(), 16384),), (x, y, out, x.numel(), 2.0, 16384), out, threads)


def run_product(a, b, threads):
    (m, k), n = a.shape, b.shape[1]
    out = a.new_zeros(m, n)
    return launched(product, (girih.cdiv(m, 128), girih.cdiv(n, 128)), (a, b, out, m, n, k, 128, 128, 64), out, threads)


def run_softmax(x, threads):
    rows, n = x.shape
    out = x.new_zeros(rows, n)
    return launched(softmax, (rows,), (x, out, n, 1 << (n - 1).bit_length()), out, threads)


def launched(kernel, grid, arguments, result, threads):
    """A function that launches a kernel and returns the array that it wrote."""

    def run():
        kernel[grid](*arguments, threads=threads)
        return result

    return run
