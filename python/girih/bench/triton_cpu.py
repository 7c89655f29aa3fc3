"""The rows of the suite `triton`: the kernels of Triton's tutorials on the processor, through Girih's backend.

`girih` is the kernel in Triton's words, in the blocks of its author; `girih.jit` the same source as `@girih.jit`.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys

# Triton takes Girih where it is asked for.
os.environ.setdefault("GIRIH_TRITON", "1")

import torch
from torch.nn import functional as F

import girih
import girih.triton  # noqa: F401  (offers the backend)
import triton
from girih.bench import tutorials
from girih.bench.suites import Row, of

HALF = torch.float16
#: Who takes part without being asked.
USUAL = ("girih", "girih.jit", "torch", "torch.compile", "numpy")


@functools.cache
def as_girih():
    """The kernels' source with `triton` read as `girih`."""
    spec = importlib.util.spec_from_file_location("girih.bench.tutorials_of_girih", tutorials.__file__)
    module = importlib.util.module_from_spec(spec)
    words = {"triton": girih, "triton.language": girih.language}
    before = {name: sys.modules[name] for name in words}
    sys.modules.update(words)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.update(before)
    return module


class Launch:
    """A computation by kernels: `run(kernels, *inputs)` prepares it and returns a function that launches them and returns the
    results."""

    def __init__(self, prepare):
        self.prepare = prepare

    def of_triton(self, *inputs_and_threads):
        *inputs, threads = inputs_and_threads
        os.environ["GIRIH_THREADS"] = str(threads)
        for kernel in vars(tutorials).values():
            if isinstance(kernel, triton.runtime.JITFunction):
                kernel.device_caches.clear()  # a kernel keeps the number of threads that it was loaded with
        return self.prepare(tutorials, *inputs)

    def of_girih(self, *inputs_and_threads):
        *inputs, threads = inputs_and_threads
        os.environ["GIRIH_THREADS"] = str(threads)
        return self.prepare(as_girih(), *inputs)


def row(name, make, prepare, **other):
    launch = Launch(prepare)
    return Row(name, make, kernel=launch.of_triton, as_girih=launch.of_girih, **other)


def drawn(*shape):
    return lambda: torch.randn(shape).to(HALF)


def add(k, x, y):
    out, n = torch.empty_like(x), x.numel()

    def run():
        k.vector_add[(girih.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
        return out

    return run


def softmax(k, x):
    out, (rows, columns) = torch.empty_like(x), x.shape

    def run():
        k.rows_softmax[(rows,)](x, out, columns, columns, rows, columns, BLOCK=1024)
        return out

    return run


def matmul(k, a, b):
    (m, depth), n = a.shape, b.shape[1]
    out = torch.empty(m, n, dtype=a.dtype)
    grid = (girih.cdiv(m, 64) * girih.cdiv(n, 64),)

    def run():
        k.grouped_matmul[grid](
            a, b, out, m, n, depth, depth, 1, n, 1, n, 1, BM=64, BN=64, BK=32, GROUP=8, ACTIVATION="leaky"
        )
        return out

    return run


def dropped(x, keep):
    return torch.where(keep, x / 0.5, 0.0)


def kept(n):
    """Numbers, and those that the kernel keeps of them."""
    x, keep = torch.randn(n), torch.empty(n)
    tutorials.seeded_dropout[(girih.cdiv(n, 1024),)](torch.ones(n), keep, n, 0.5, 123, BLOCK=1024)
    return x, keep != 0


def dropout(k, x, keep):
    out, n = torch.empty_like(x), x.numel()

    def run():
        k.seeded_dropout[(girih.cdiv(n, 1024),)](x, out, n, 0.5, 123, BLOCK=1024)
        return out

    return run


def norm(k, x, w, b):
    (m, n), out = x.shape, torch.empty_like(x)
    mean, rstd = torch.empty(m), torch.empty(m)

    def run():
        k.norm_forward[(m,)](x, out, w, b, mean, rstd, n, n, 1e-5, BLOCK=1024)
        return out

    return run


def norm_gradients(x, w, b, dy):
    n = [x.shape[1]]
    mean, rstd = torch.native_layer_norm(x, n, w, b, 1e-5)[1:]
    return torch.ops.aten.native_layer_norm_backward(dy, x, n, mean, rstd, w, b, [True, True, True])


def norm_backward(k, x, w, b, dy):
    (m, n), groups = x.shape, 64
    y, dx, mean, rstd = torch.empty_like(x), torch.empty_like(x), torch.empty(m), torch.empty(m)
    lock, parts, dw, db = torch.zeros(2 * groups, dtype=torch.int32), torch.empty(2, groups, n), torch.empty(n), torch.empty(n)

    def run():
        lock.zero_()
        k.norm_forward[(m,)](x, y, w, b, mean, rstd, n, n, 1e-5, BLOCK=1024)
        k.norm_backward_rows[(m,)](dx, dy, parts[0], parts[1], x, w, mean, rstd, lock, n, n, GROUPS=groups, BLOCK=1024)
        k.norm_backward_weights[(girih.cdiv(n, 128),)](parts[0], parts[1], dw, db, groups, n, BM=32, BN=128)
        return dx, dw, db

    return run


def attention(causal):
    def prepare(k, q, keys, values):
        out = torch.empty_like(q)
        heads, tokens, width = q.shape[0] * q.shape[1], q.shape[2], q.shape[3]
        lse = torch.empty(heads, tokens)

        def run():
            k.attention[(tokens // 64, heads)](
                q, keys, values, out, lse, width**-0.5, tokens, D=width, BM=64, BN=64, CAUSAL=causal
            )
            return out

        return run

    return prepare


def group_gemm(k, *inputs):
    made = [(a, b, torch.empty(a.shape[0], b.shape[1], dtype=HALF)) for a, b in zip(inputs[::2], inputs[1::2])]
    addresses = [torch.tensor([of[i].data_ptr() for of in made]) for i in range(3)]
    leads = torch.tensor([[x.stride(0) for x in of] for of in made], dtype=torch.int32)
    sizes = torch.tensor([[a.shape[0], b.shape[1], b.shape[0]] for a, b, _ in made], dtype=torch.int32)

    def run():
        k.group_gemm[(16,)](*addresses, sizes, leads, len(made), PROGRAMS=16, BM=64, BN=64, BK=32)
        return [c for *_, c in made]

    return run


def persistent(k, a, b):
    (m, depth), n = a.shape, b.shape[0]
    out = torch.empty(m, n, dtype=HALF)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))

    def run():
        k.persistent_matmul[(16,)](a, b, out, m, n, depth, PROGRAMS=16, BM=64, BN=64, BK=32, GROUP=8)
        return out

    return run


def coded(m, k):
    """Floats of 8 bits without NaN, as bytes, and a power of two for each 32 of them."""
    return lambda: torch.randint(0, 120, (m, k), dtype=torch.uint8), lambda: torch.randint(125, 130, (m, k // 32), dtype=torch.uint8)


def decoded(codes, scales):
    return codes.view(torch.float8_e4m3fn).float() * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)


def block_scaled(k, a, a_scale, b, b_scale):
    (m, depth), n = a.shape, b.shape[0]
    out = torch.empty(m, n)

    def run():
        k.block_scaled_matmul[(girih.cdiv(m, 64), girih.cdiv(n, 64))](
            a, a_scale, b, b_scale, out, m, n, depth, BM=64, BN=64, BK=64, PACK=1, KIND="e4m3"
        )
        return out

    return run


def rows():
    million = (1 << 22,)
    yield row("vector add 4M", of(torch.add, million, million), add, arrays=lambda np, x, y: x + y)
    yield row("softmax 2048x1000", of(lambda x: x.softmax(-1), (2048, 1000)), softmax)
    leaky = lambda a, b: F.leaky_relu(a @ b)  # noqa: E731
    for m, n, k in [(512, 512, 512), (1024, 1024, 1024)]:
        name, flops = f"matmul {m}x{k} by {k}x{n}, leaky ReLU", 2.0 * m * n * k
        yield row(name, of(leaky, (m, k), (k, n)), matmul, goal=1.3, flops=flops)
    yield row("matmul 512x512 by 512x512 f16, leaky ReLU", of(leaky, drawn(512, 512), drawn(512, 512)), matmul, goal=1.3,
              flops=2.0 * 512**3, tolerance=5e-3)  # fmt: skip
    x, keep = kept(1 << 20)
    yield row("dropout 1M, whose mask is drawn", of(dropped, lambda: x, lambda: keep), dropout)
    yield row("layer norm 2048x1000", of(lambda x, w, b: F.layer_norm(x, (1000,), w, b), (2048, 1000), (1000,), (1000,)), norm)
    yield row("layer norm 2048x1000 and its gradients", of(norm_gradients, (2048, 1000), (1000,), (1000,), (2048, 1000)),
              norm_backward)  # fmt: skip
    for causal in (False, True):
        shape = (1, 8, 1024, 64)
        yield row(f"attention 8 heads 1024x64{', causal' if causal else ''}",
                  of(lambda q, k, v, c=causal: F.scaled_dot_product_attention(q, k, v, is_causal=c), *[shape] * 3),
                  attention(causal), goal=1.3, flops=(0.5 if causal else 1.0) * 4 * 8 * 1024 * 1024 * 64)  # fmt: skip
    shapes = [(256, 256, 256), (512, 128, 256), (64, 512, 128), (256, 64, 512)]
    operands = [drawn(*s) for m, n, k in shapes for s in ((m, k), (k, n))]
    yield row("group GEMM of 4 f16", of(lambda *x: [a @ b for a, b in zip(x[::2], x[1::2])], *operands), group_gemm, goal=1.3,
              flops=sum(2.0 * m * n * k for m, n, k in shapes), tolerance=5e-3)  # fmt: skip
    yield row("persistent matmul 512x512 by 512x512 f16", of(lambda a, b: a @ b.T, drawn(512, 512), drawn(512, 512)), persistent,
              goal=1.3, flops=2.0 * 512**3, tolerance=5e-3)  # fmt: skip
    yield row("block-scaled matmul 256x256 by 256x256 e4m3", of(lambda a, x, b, y: decoded(a, x) @ decoded(b, y).T,
              *coded(256, 256), *coded(256, 256)), block_scaled, goal=1.3, flops=2.0 * 256**3,
              without={"girih.jit": "@girih.jit has no dot_scaled"})  # fmt: skip
