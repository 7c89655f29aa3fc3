"""The rows of the suite `decoder`: the kernels of blocks of TinyLlama and Qwen2.5-7B, each alone, in f32.

84 rows, of 32, 128 and 512 tokens: products with every weight, with the additions behind them and the products before them, norms,
softmax and attention.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from girih.bench.suites import Row, layer, of

#: Name, width of rows, of what is between, of keys, number of heads and of those of keys.
BLOCKS = [("TinyLlama", 2048, 5632, 256, 32, 4), ("Qwen2.5-7B", 3584, 18944, 512, 28, 4)]
LENGTHS = (32, 128, 512)


def naive(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + mask
    return scores.softmax(-1) @ v


def mask(length):
    return lambda: torch.full((length, length), -math.inf).triu(1)


def rows():
    for block, hidden, inner, keys, heads, groups in BLOCKS:
        width = hidden // heads
        weights = [("q_proj", hidden, hidden), ("o_proj", hidden, hidden), ("kv_proj", hidden, keys), ("gate_proj", hidden, inner),
                   ("up_proj", hidden, inner), ("down_proj", inner, hidden)]  # fmt: skip
        for s in LENGTHS:
            called = lambda what, s=s: f"{block} {what}, {s}"  # noqa: E731
            products = {name: ((1, s, k), (k, n), 2.0 * s * k * n) for name, k, n in weights}
            for name, (x, w, flops) in products.items():
                yield Row(called(name), of(lambda x, w: x @ w, x, w), flops=flops, triton="product")
            for name in ("o_proj", "down_proj"):
                x, w, flops = products[name]
                yield Row(called(f"{name} + residual"), of(lambda x, w, r: x @ w + r, x, w, (1, s, hidden)), flops=flops)
            x, w, flops = products["down_proj"]
            yield Row(called("silu(gate) * up, down_proj"), of(lambda g, u, w: (F.silu(g) * u) @ w, x, x, w), flops=flops)
            yield Row(called("RMSNorm"), layer(lambda hidden=hidden: nn.RMSNorm(hidden, eps=1e-5), 1, s, hidden))
            yield Row(called("softmax"), of(lambda x: x.softmax(-1), (1, heads, s, s)), triton="softmax")
            yield Row(called("silu(gate) * up"), of(lambda g, u: F.silu(g) * u, x, x), triton="gated")
            full, few = (1, heads, s, width), (1, groups, s, width)
            flops = 4.0 * heads * s * s * width
            grouped = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # noqa: E731
            yield Row(called("attention"), of(grouped, full, few, few), flops=flops / 2)
            yield Row(called("attention in steps"), of(naive, full, full, full, mask(s)), flops=flops)
