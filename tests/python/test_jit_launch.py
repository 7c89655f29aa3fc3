"""Kernels of ``@girih.jit``: launches, results against NumPy, and what a user sees when one is wrong."""

import os
from pathlib import Path

import girih
import girih.language as tl
import numpy as np
import pytest


@girih.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
    tl.store(out + offsets, total, mask=inside)


@girih.jit
def softmax(src, dst, n, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(src + row * n + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(dst + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)


@pytest.mark.parametrize("device", ["cpu", "eval"])
@pytest.mark.parametrize("n", [1, 128, 1000])
def test_add(device, n):
    rng = np.random.default_rng(n)
    x, y = rng.standard_normal((2, n), dtype=np.float32)
    out = np.full(n, 7, np.float32)
    add[lambda meta: (girih.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=128, device=device)
    assert np.array_equal(out, x + y)


def test_softmax():
    x = np.random.default_rng(0).standard_normal((7, 100), dtype=np.float32)
    out = np.zeros_like(x)
    softmax[(7,)](x, out, 100, BLOCK=128)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(out, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_a_mistake_shows_the_line():
    @girih.jit
    def wrong(x):
        tl.store(x + tl.arange(0, 64), tl.zeros((64,), tl.float32) + tl.arange(0, 32))

    with pytest.raises(girih.CompilationError, match=r"the shapes \[64\] and \[32\] do not match") as caught:
        wrong[1](np.zeros(64, np.float32))
    assert "test_jit_launch.py" in str(caught.value) and "tl.zeros((64,), tl.float32) + " in str(caught.value)


def reads():
    """How often the process has read a file or the like."""
    counts = Path("/proc/self/io").read_text()
    return int(counts.split("syscr:")[1].split()[0])


@pytest.mark.skipif(not os.access("/proc/self/io", os.R_OK), reason="the system does not count reads")
def test_a_launch_asks_the_system_nothing():
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch = add[(1,)]
    launch(x, x, out, 64, BLOCK=64)
    before = reads()
    own = reads() - before
    before = reads()
    for _ in range(100):
        launch(x, x, out, 64, BLOCK=64)
    assert reads() - before < own + 100
    np.testing.assert_array_equal(out, 2 * x)


@girih.jit
def δ(x, Ω, ß, n, BLOCK: tl.constexpr):
    α = tl.arange(0, BLOCK)
    e = tl.load(x + α, α < n)
    é = e * 2
    for 变量 in range(2):
        é += e * 变量
    tl.store(Ω + α, é + ß, α < n)


@pytest.mark.parametrize("device", ["cpu", "eval", "sim"])
def test_names_of_other_alphabets(device):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    δ[(1,)](x, out, 1.5, 8, BLOCK=8, device=device)
    assert np.array_equal(out, x * 3 + 1.5)
