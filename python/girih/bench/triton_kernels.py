"""Kernels that a user of Triton would write, beside Girih's on GPUs: f32, as exact as Girih's."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def config(m, n, k, warps, stages):
    return triton.Config({"M_TILE": m, "N_TILE": n, "K_TILE": k}, num_warps=warps, num_stages=stages)


@triton.autotune(
    [config(64, 64, 32, 4, 3), config(32, 64, 32, 4, 3), config(128, 64, 16, 8, 3), config(128, 128, 16, 8, 3)], key=["m", "n", "k"]
)
@triton.jit
def product_kernel(a, b, c, m, n, k, M_TILE: tl.constexpr, N_TILE: tl.constexpr, K_TILE: tl.constexpr):
    i = tl.program_id(0) * M_TILE + tl.arange(0, M_TILE)
    j = tl.program_id(1) * N_TILE + tl.arange(0, N_TILE)
    total = tl.zeros((M_TILE, N_TILE), tl.float32)
    for first in range(0, k, K_TILE):
        d = first + tl.arange(0, K_TILE)
        x = tl.load(a + i[:, None] * k + d[None, :], mask=(i[:, None] < m) & (d[None, :] < k), other=0.0)
        y = tl.load(b + d[:, None] * n + j[None, :], mask=(d[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def softmax_kernel(x, y, n, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(y + tl.program_id(0) * n + at, e / tl.sum(e, 0), mask=at < n)


@triton.jit
def gated_kernel(g, u, y, n, WIDTH: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    gate = tl.load(g + at, mask=at < n)
    tl.store(y + at, gate * tl.sigmoid(gate) * tl.load(u + at, mask=at < n), mask=at < n)


def product(x, w):
    y = torch.empty((*x.shape[:-1], w.shape[1]), device=x.device)
    m, k, n = y.numel() // w.shape[1], w.shape[0], w.shape[1]
    product_kernel[lambda meta: (triton.cdiv(m, meta["M_TILE"]), triton.cdiv(n, meta["N_TILE"]))](x, w, y, m, n, k)
    return y


def softmax(x):
    y, n = torch.empty_like(x), x.shape[-1]
    softmax_kernel[(x.numel() // n,)](x, y, n, WIDTH=triton.next_power_of_2(n))
    return y


def gated(g, u):
    y = torch.empty_like(g)
    gated_kernel[(triton.cdiv(y.numel(), 1024),)](g, u, y, y.numel(), WIDTH=1024)
    return y


#: By the names of `Row.triton`.
KERNELS = {"product": product, "softmax": softmax, "gated": gated}
