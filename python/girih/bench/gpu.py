"""The rows of the suite `gpu`: models on the first GPU, beside PyTorch there.

A turn ends when the GPU has finished all its work. The limits are those that PyTorch's own products and copies reach on that GPU.
"""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn import functional as F

from girih.bench import networks
from girih.bench.suites import Row, layer, of

HALF, BF16 = torch.float16, torch.bfloat16
#: The largest error relative to the largest value, by element type.
TOLERANCE = {torch.float32: 1e-4, HALF: 5e-3, BF16: 3e-2}
UNITS = {torch.float32: "flops", HALF: "f16", BF16: "bf16"}
NAMES = {torch.float32: "f32", HALF: "f16", BF16: "bf16"}


def drawn(shape, dtype):
    return lambda: torch.randn(shape).to(dtype)


def row(name, make, dtype=torch.float32, goal=1.0, flops=0.0, **other):
    other = {"tolerance": TOLERANCE[dtype], "unit": UNITS[dtype], **other}
    return Row(f"{name} {NAMES[dtype]}", make, goal, flops, device="cuda", **other)


def products():
    for dtype, sizes in [
        (HALF, [(4096,) * 3, (8192,) * 3, (1024,) * 3, (512, 3584, 3584), (32, 4096, 4096), (1, 4096, 4096)]),
        (BF16, [(4096,) * 3]),
        (torch.float32, [(4096,) * 3, (512, 3584, 3584)]),
    ]:
        for m, n, k in sizes:
            make = of(torch.matmul, drawn((m, k), dtype), drawn((k, n), dtype))
            yield row(f"{m}x{k} by {k}x{n}", make, dtype, 1.0, 2.0 * m * n * k)
    yield row("linear 4096x1024 to 4096, gelu", layer(lambda: nn.Sequential(nn.Linear(1024, 4096), nn.GELU()), 4096, 1024, dtype=HALF),
              HALF, 1.0, 2.0 * 4096 * 4096 * 1024)  # fmt: skip
    yield row("64 products of 512x64x512", of(torch.bmm, drawn((64, 512, 64), HALF), drawn((64, 64, 512), HALF)), HALF, 1.0,
              2.0 * 64 * 512 * 512 * 64)  # fmt: skip
    i8 = lambda *s: lambda: torch.randint(-128, 128, s, dtype=torch.int8)  # noqa: E731
    yield Row("4096x4096 by 4096x4096 int8", of(torch._int_mm, i8(4096, 4096), lambda: i8(4096, 4096)().t()), 1.0, 2.0 * 4096**3,
              "int8", tolerance=0, device="cuda")  # fmt: skip


def attention():
    for b, h, n, d in [(4, 16, 2048, 64), (1, 16, 4096, 128)]:
        for causal in (False, True):
            make = of(lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c), *[drawn((b, h, n, d), HALF)] * 3)
            yield row(f"attention {b}x{h} heads {n}x{d}{', causal' if causal else ''}", make, HALF, 1.0,
                      (0.5 if causal else 1.0) * 4 * b * h * n * n * d)  # fmt: skip
    one, past = drawn((8, 32, 1, 128), HALF), drawn((8, 32, 2048, 128), HALF)
    yield row("attention, one query, 8x32 heads 2048x128", of(F.scaled_dot_product_attention, one, past, past), HALF)


def rest():
    long = (8192, 8192)
    yield row("exp 64M", of(torch.exp, long))
    yield row("gelu 64M", of(F.gelu, drawn(long, HALF)), HALF)
    yield row("a * b + c 16M", of(lambda a, b, c: a * b + c, *[(4096, 4096)] * 3))
    yield row("transpose 8192x8192", of(lambda x: x.t().contiguous(), long))
    yield row("permute 0,2,1,3 of 32x512x16x64", of(lambda x: x.permute(0, 2, 1, 3).contiguous(), drawn((32, 512, 16, 64), HALF)), HALF)
    yield row("sum of rows 8192x8192", of(lambda x: x.sum(1), long))
    yield row("sum of columns 8192x8192", of(lambda x: x.sum(0), long))
    yield row("sum of all 64M", of(lambda x: x.sum(), long))
    yield row("argmax of rows 8192x8192", of(lambda x: x.argmax(1), long))
    yield row("softmax 8192x1024", of(lambda x: x.softmax(-1), (8192, 1024)))
    yield row("softmax 4096x32768", of(lambda x: x.softmax(-1), drawn((4096, 32768), HALF)), HALF)
    yield row("softmax 4x32768", of(lambda x: x.softmax(-1), (4, 32768)))
    yield row("layer norm 8192x4096", layer(lambda: nn.LayerNorm(4096), 8192, 4096, dtype=HALF), HALF)
    yield row("RMSNorm 8192x4096", layer(lambda: nn.RMSNorm(4096), 8192, 4096, dtype=HALF), HALF)
    yield row("cross entropy 4096x32000", of(F.cross_entropy, (4096, 32000), lambda: torch.randint(0, 32000, (4096,))))
    yield row("cumsum 1024x16384", of(lambda x: x.cumsum(1), (1024, 16384)), tolerance=1e-3)
    yield row("sort 64x4096", of(lambda x: x.sort(-1)[0], (64, 4096)))
    yield row("top 8 of 64x32000", of(lambda x: x.topk(8)[0], (64, 32000)))
    index = lambda n, *s: lambda: torch.randint(0, n, s)  # noqa: E731
    yield row("rows 16384 of 32000x1024", of(lambda t, i: t[i], drawn((32000, 1024), HALF), index(32000, 16384)), HALF,
              bytes=2.0 * 16384 * 1024 * 2)  # fmt: skip
    yield row("index_add 16384 rows into 1024x512", of(lambda x, i, y: x.index_add(0, i, y), (1024, 512), index(1024, 16384), (16384, 512)))
    for c, f, size, hw, n, groups in [(64, 64, 3, 56, 32, 1), (256, 256, 3, 14, 32, 1), (256, 64, 1, 56, 32, 1), (144, 144, 3, 56, 32, 144)]:
        make = layer(lambda c=c, f=f, s=size, g=groups: nn.Conv2d(c, f, s, padding=s // 2, groups=g), n, c, hw, hw, dtype=HALF)
        yield row(f"convolution {size}x{size} {c} to {f}{', depthwise' if groups > 1 else ''}, {n}x{hw}x{hw}", make, HALF, 1.0,
                  2.0 * n * f * hw * hw * c // groups * size * size)  # fmt: skip
    yield row("ResNet-18, batch 32", layer(networks.resnet18, 32, 3, 224, 224, dtype=HALF), HALF, tolerance=2e-2)
    for name, block, hidden in networks.decoder_blocks():
        for length in (1, 512):
            yield row(f"{name}, {length} tokens", layer(block, 1, length, hidden, dtype=HALF), HALF, tolerance=2e-2)
    yield row("a + b of 16 elements", of(torch.add, (16,), (16,)))


def rows():
    yield from products()
    yield from attention()
    yield from rest()


def limits():
    """Operations and bytes in a second, by the names of `Row.unit`."""
    n = 8192
    square = torch.randn(n, n, device="cuda")
    found = {}
    for unit, given in [("flops", square), ("f16", square.half()), ("bf16", square.bfloat16())]:
        found[unit] = 2.0 * n**3 / once(lambda given=given: given @ given)
    whole = torch.randint(-9, 9, (n, n), device="cuda", dtype=torch.int8)
    found["int8"] = 2.0 * n**3 / once(lambda: torch._int_mm(whole, whole.t()))
    many = torch.empty(1 << 28, device="cuda")
    found["bytes"] = 2.0 * many.numel() * 4 / once(many.clone)
    return found


def once(run):
    """Seconds, the least of several turns."""
    run()
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)
