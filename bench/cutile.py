#!/usr/bin/env python3
"""How fast cuTile kernels run, beside NumPy and beside copying as many bytes.

    python bench/cutile.py [--rounds N] [NAME]...

The kernels are those of tests/cutile/kernels. Each row is measured in one process in alternating rounds, a launch, then
the rival; the table shows medians of the ratio, so above 1 the kernel is faster. The rival of what multiplies matrices
is NumPy's product of the same size in f32; of everything else a copy of the bytes it has to read and write. Both sides
use one thread; GIRIH_THREADS=N gives both N.
"""
import argparse
import importlib
import os
import pathlib
import statistics
import sys
import time

# Both sides read these when they are loaded.
THREADS = os.environ.setdefault("GIRIH_THREADS", "1")
os.environ["OPENBLAS_NUM_THREADS"] = THREADS

import numpy as np  # noqa: E402

import girih.cutile  # noqa: E402

girih.cutile.install()

import cuda.tile as ct  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "cutile" / "kernels"))
rng = np.random.default_rng(1)
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def f16(*shape):
    return f32(*shape).astype(np.float16)


def i32(high, *shape):
    return rng.integers(0, high, shape).astype(np.int32)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def product(m, n, k, batch=1):
    """NumPy's product of two f32 matrices."""
    a, b, c = f32(batch, m, k), f32(batch, k, n), zeros(batch, m, n)
    return lambda: [np.matmul(x, y, out=z) for x, y, z in zip(a, b, c)]


def copy(n_bytes):
    """Reads and writes `n_bytes` in all."""
    source, target = np.ones(n_bytes // 8, np.float32), np.zeros(n_bytes // 8, np.float32)
    return lambda: np.copyto(target, source)


def kernel(path, grid, *args):
    script, name = path.split(".")
    compiled = getattr(importlib.import_module(script), name)
    return lambda: ct.launch(0, grid, compiled, args)


@row
def matmul_f32():
    n = 512
    return kernel("matmul.matmul", (64,), f32(n, n), f32(n, n), zeros(n, n), 64, 64, 32), product(n, n, n)


@row
def matmul_f16():
    n = 512
    c = zeros(n, n, dtype=np.float16)
    return kernel("matmul.matmul", (16,), f16(n, n), f16(n, n), c, 128, 128, 64), product(n, n, n)


@row
def matmul_bf16():
    n = 512
    return kernel("matmul.matmul_bf16", (16,), f32(n, n), f32(n, n), zeros(n, n), 128, 128, 64), product(n, n, n)


@row
def matmul_nt():
    n = 512
    return kernel("matmul.matmul_nt", (4, 4), f32(n, n), f32(n, n), zeros(n, n), 128, 128, 32), product(n, n, n)


@row
def matmul_tn():
    n = 512
    return kernel("matmul.matmul_tn", (4, 4), f32(n, n), f32(n, n), zeros(n, n), 128, 128, 32), product(n, n, n)


@row
def matmul_ragged():
    m, n, k = 500, 300, 333
    return kernel("matmul.matmul", (40,), f32(m, k), f32(k, n), zeros(m, n), 64, 64, 32), product(m, n, k)


@row
def matmul_persistent():
    n = 512
    args = (f32(n, n), f32(n, n), zeros(n, n), 64, 64, 32, 8)
    return kernel("matmul_persistent.matmul_persistent", (8,), *args), product(n, n, n)


@row
def matmul_batched():
    args = (f32(16, 128, 128), f32(16, 128, 128), zeros(16, 128, 128), 64, 64, 32)
    return kernel("matmul_batched.batched_matmul", (16, 2, 2), *args), product(128, 128, 128, 16)


@row
def matmul_batched_rank3():
    args = (f32(16, 128, 128), f32(16, 128, 128), zeros(16, 128, 128), 2, 64, 64, 32)
    return kernel("matmul_batched.batched_matmul_rank3", (8, 2, 2), *args), product(128, 128, 128, 16)


@row
def matmul_split_k():
    args = (f32(64, 4096), f32(4096, 64), zeros(64, 64), 64, 64, 32, 8)
    return kernel("matmul_split_k.split_k_atomic", (1, 1, 8), *args), product(64, 64, 4096)


@row
def matmul_int8():
    n = 512
    a, b = (rng.integers(-128, 127, (n, n), dtype=np.int8) for _ in range(2))
    return kernel("matmul_int8.matmul_int8", (4, 4), a, b, zeros(n, n, dtype=np.int32), 128, 128, 64), product(n, n, n)


@row
def swiglu_matmul():
    n = 512
    args = (f32(n, n), f32(n, n), f32(n, n), zeros(n, n), 64, 64, 32)
    return kernel("swiglu.swiglu_matmul", (8, 8), *args), product(n, 2 * n, n)


def attention(causal, dtype):
    q, k, v = (dtype(1, 8, 512, 64) for _ in range(3))
    out = np.zeros(q.shape, q.dtype)
    args = (q, k, v, out, zeros(1, 8, 512), 0.125, 8, 1, 64, 64, 64, causal, True)
    return kernel("attention.attention", (8, 8), *args)


@row
def attention_f32():
    return attention(False, f32), product(512, 1024, 64, 8)


@row
def attention_causal():
    return attention(True, f32), product(512, 512, 64, 8)


@row
def attention_f16():
    return attention(False, f16), product(512, 1024, 64, 8)


@row
def attention_backward_keys():
    x = [f32(8, 512, 64) for _ in range(4)]
    args = (*x, f32(8, 512) + 8, f32(8, 512), zeros(8, 512, 64), zeros(8, 512, 64), 0.125, 64, 64, 64, False)
    return kernel("attention_backward.d_keys_values", (8, 8), *args), product(512, 2048, 64, 8)


@row
def experts_matmul():
    import mixture_of_experts as moe

    tokens, n = 512, 256
    pairs, experts = moe.sort_by_expert(i32(8, tokens, 2), 8, 64)
    args = (f32(tokens, n), f32(8, n, n), zeros(2 * tokens, n), f32(2 * tokens), pairs, experts, 2, True, 64, 64, 32)
    return kernel("mixture_of_experts.expert_matmul", (len(experts), 4), *args), product(64 * len(experts), n, n)


@row
def convolution_gather():
    args = (f32(4, 32, 32, 32), f32(288, 64), zeros(4096, 64), 32, 32, 3, 3, 1, 1, 64, 64, 32)
    return kernel("convolution.conv2d_gather", (64, 1), *args), product(4096, 64, 288)


@row
def convolution_depthwise():
    args = (f32(32, 64, 64), f32(32, 3, 3), zeros(32, 64, 64), 3, 3, 32, 64)
    return kernel("convolution.conv2d_depthwise", (32, 2, 1), *args), copy(2 * 4 * 32 * 64 * 64)


@row
def fft_radix2():
    n = 1024
    w = np.exp(-2j * np.pi * np.arange(n // 2) / n).astype(np.complex64)
    table = np.ascontiguousarray(w.real), np.ascontiguousarray(w.imag)
    args = (f32(256, n), f32(256, n), *table, zeros(256, n), zeros(256, n), 1, n, 10, False)
    z = f32(256, n) + 1j * f32(256, n)
    return kernel("fft.fft_radix2", (256,), *args), lambda: np.fft.fft(z, axis=1)


@row
def transpose_tile():
    n = 1024
    return kernel("transpose.transpose_tile", (16, 16), f32(n, n), zeros(n, n), 64, 64), copy(8 * n * n)


@row
def transpose_order():
    n = 1024
    return kernel("transpose.transpose_order", (16, 16), f32(n, n), zeros(n, n), 64, 64), copy(8 * n * n)


@row
def layer_norm_forward():
    m, n = 512, 1024
    args = (f32(m, n), f32(n), f32(n), zeros(m, n), zeros(m), zeros(m), 1e-5, 256)
    return kernel("layer_norm.layer_norm_forward", (m,), *args), copy(8 * m * n)


@row
def layer_norm_backward():
    m, n = 512, 1024
    args = (f32(m, n), f32(n), f32(m, n), f32(m), f32(m), zeros(m, n), zeros(8, n), zeros(8, n),
            np.zeros(8, np.int32), 8, n)
    return kernel("layer_norm.layer_norm_backward_lock", (m,), *args), copy(12 * m * n)


@row
def layer_norm_backward_atomic():
    m, n = 512, 1024
    args = (f32(m, n), f32(n), f32(m, n), f32(m), f32(m), zeros(m, n), zeros(n), zeros(n), n)
    return kernel("layer_norm.layer_norm_backward_atomic", (m,), *args), copy(12 * m * n)


@row
def rms_norm_gather():
    m, n = 512, 1024
    args = (f32(m, n), f32(n), zeros(m, n), zeros(m), n, 1e-5, 256)
    return kernel("rms_norm.rms_norm_gather", (m,), *args), copy(8 * m * n)


@row
def rms_norm_persistent():
    m, n = 512, 1024
    return kernel("rms_norm.rms_norm_persistent", (8,), f32(m, n), f32(n), zeros(m, n), 4, n, 1e-5), copy(8 * m * n)


@row
def rms_norm_f16():
    m, n = 512, 1024
    out = zeros(m, n, dtype=np.float16)
    return kernel("rms_norm.rms_norm_persistent", (8,), f16(m, n), f16(n), out, 4, n, 1e-5), copy(4 * m * n)


@row
def softmax_one_pass():
    m, n = 512, 1024
    return kernel("softmax.softmax_one_pass", (64,), f32(m, n), zeros(m, n), 2, n), copy(8 * m * n)


@row
def softmax_online():
    m, n = 512, 1024
    return kernel("softmax.softmax_online", (m,), f32(m, n), zeros(m, n), 256), copy(8 * m * n)


@row
def softmax_gather():
    m, n = 512, 1000
    return kernel("softmax.softmax_gather", (m,), f32(m, n), zeros(m, n), n, 1024), copy(8 * m * n)


@row
def cross_entropy():
    m, n = 256, 4096
    args = (f32(m, n), i32(n, m), zeros(m), 1.0, -100, 1024)
    return kernel("cross_entropy.cross_entropy", (m,), *args), copy(8 * m * n)


@row
def rotary():
    x = [f32(4, 8, 512, 2, 64) for _ in range(2)]
    return kernel("rotary.rotary_halves", (4, 512), *x, f32(512, 64), f32(512, 64), 8, 8, 64), copy(2 * x[0].nbytes * 2)


@row
def swiglu_forward():
    m, n = 512, 1024
    return kernel("swiglu.swiglu_forward", (m, 4), f32(m, 2 * n), zeros(m, n), 256), copy(12 * m * n)


@row
def swiglu_backward():
    m, n = 512, 1024
    return kernel("swiglu.swiglu_backward", (m, 4), f32(m, n), f32(m, n), f32(m, n), 256), copy(20 * m * n)


@row
def dropout():
    n = 1 << 18
    return kernel("dropout.dropout", (n // 1024,), f32(n), zeros(n), 0.5, 1 << 40, 1024), copy(8 * n)


@row
def prefix_sum_rows():
    m, n = 512, 1024
    return kernel("prefix_sum.row_prefix_sum", (m,), f32(m, n), zeros(m, n), 256, False), copy(8 * m * n)


@row
def histogram_atomic():
    n = 1 << 18
    return kernel("histogram.histogram_atomic", (n // 1024,), f32(n), np.zeros(64, np.int32), -4.0, 0.125, 1024), copy(4 * n)


@row
def top_k():
    m, n = 512, 256
    args = (f32(m, n), zeros(m, 4), zeros(m, 4, dtype=np.int32), 4, 4, n)
    return kernel("top_k.top_k", (m // 4,), *args), copy(4 * m * n)


@row
def sort_rows():
    m, n = 256, 256
    x = f32(m, n)
    return kernel("sort.bitonic_tile", (m,), x, zeros(m, n), n, 8), lambda: np.sort(x, axis=1)


def seconds(call, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("names", nargs="*", metavar="NAME", help="one of: " + ", ".join(ROWS))
    options = parser.parse_args()
    print(f"{'kernel':28} {'rival / kernel':>14}")
    for name in options.names or ROWS:
        if name not in ROWS:
            parser.error(f"no kernel is called {name}")
        launch, rival = ROWS[name]()
        launch(), rival()
        repeats = [max(1, int(0.01 / seconds(call, 1))) for call in (launch, rival)]
        ratios = []
        for _ in range(options.rounds):
            ours, theirs = seconds(launch, repeats[0]), seconds(rival, repeats[1])
            ratios.append(theirs / ours)
        print(f"{name:28} {statistics.median(ratios):14.2f}", flush=True)


if __name__ == "__main__":
    main()
