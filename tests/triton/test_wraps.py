"""Drawn kernels whose rows wrap around, are replaced or are limited at the end of an array: natively and simulated as evaluated."""

import importlib.util
import os
import random

import numpy as np
import pytest
import triton
from girih.triton import Array

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def drawn(X, Y, P, out, folds, M, N, B: tl.constexpr, C: tl.constexpr):
    first = tl.program_id(0) * B
    places = first + tl.arange(0, B)
    c = tl.arange(0, C)
    rows = {rows}
    x = tl.load(X + rows[:, None] * C + c[None, :]{load_mask})
    {steps}
    tl.store(out + {to}, x, mask={mask})
    {fold}
"""

ROWS = [
    "places % M",
    "tl.where(places < M, places, 0)",
    "tl.where(places < M, places, M - 1)",
    "tl.minimum(places, M - 1)",
    "places % N",
    "(places + 1) % M",
    "tl.where(places < N, places % M, 0)",
]
STEPS = [
    "x += tl.load(Y + rows)[:, None]",
    "x *= tl.sum(x, 1)[:, None]",
    "x -= tl.sum(x, 0)[None, :]",
    "x = tl.cumsum(x, 0)",
    "x = tl.cumsum(x, 1)",
    "x = tl.flip(x, 0)",
    "x += tl.max(x, 1)[:, None] // (rows + 1)[:, None]",
    "x += tl.load(X + tl.load(P + rows)[:, None] * C + c[None, :])",
    "x = tl.where(x > 3, x, rows[:, None])",
    "x = tl.where((rows < N)[:, None], x, -x)",
    "for step in range(0, 3): x += tl.load(X + rows[:, None] * C + c[None, :]) * step",
    "for step in range(0, 2): x += tl.load(Y + (rows + step) % M)[:, None]",
    "x = tl.trans(tl.trans(x) + tl.load(Y + rows)[None, :])",
    "x += tl.reshape(tl.reshape(x, (B // 2, 2, C)), (B, C))",
]
MASKS = [
    "(places < M)[:, None]",
    "(M > places)[:, None]",
    "(places <= M - 1)[:, None] & (c < C - 1)[None, :]",
    "(places < M - 2)[:, None]",
    "(places < N)[:, None]",
    "(places < M + 1)[:, None]",
    "(places < M)[:, None] & (x > 0)",
    "(rows < M)[:, None]",
]
LOAD_MASKS = ["", "", ", mask=(c < C - 1)[None, :], other=2", ", mask=(places < M)[:, None], other=1", ", mask=(rows < N)[:, None], other=0"]
FOLDS = ["pass", "pass", "tl.atomic_add(folds + c, tl.sum(tl.where((places < M)[:, None], x, 0), 0))", "tl.atomic_add(folds + places % 4, tl.sum(x, 1), mask=places < M)"]


def drawn(seed, folder):
    """A kernel; one that Triton does not take is drawn again."""
    rng = random.Random(seed)
    steps = "\n    ".join(rng.choice(STEPS) for _ in range(rng.randint(0, 3))) or "pass"
    rows = rng.choice(ROWS)
    # Rows in front of the end are different ones; what is stored of those behind it would meet another's.
    apart = "N" not in rows and rng.random() < 0.25
    to = ("rows" if apart else "places") + "[:, None] * C + c[None, :]"
    mask = rng.choice(MASKS[:3] if apart else MASKS)
    fold = rng.choice(FOLDS)
    text = KERNEL.format(rows=rows, steps=steps, to=to, mask=mask, load_mask=rng.choice(LOAD_MASKS), fold=fold)
    path = folder / f"drawn_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.drawn, text


def numbers(seed, *shape, high=5):
    return np.random.default_rng(seed).integers(-2, high, shape).astype("int32")


def of(values):
    return np.ascontiguousarray(values).view(Array)


def run(kernel, seed, m, n, b, c):
    blocks = triton.cdiv(m, b)
    space = blocks * b + m + n + 4
    x, y = numbers(seed, space, c), numbers(seed + 1, space)
    places = np.maximum(numbers(seed + 2, space, high=space), 0)
    out, folds = of(np.full((space, c), 99, dtype="int32")), of(np.zeros(max(c, 4), dtype="int32"))
    kernel.device_caches.clear()
    kernel[(blocks,)](of(x), of(y), of(places), out, folds, m, n, B=b, C=c)
    return out, folds


@pytest.mark.parametrize("seed", range(int(os.environ.get("GIRIH_WRAPS", 24))))
def test_rows_that_wrap(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    rng = random.Random(1000 + seed)
    b, c = rng.choice([4, 8, 16]), rng.choice([4, 8])
    m = rng.randint(1, 3 * b)
    n = rng.randint(1, m + 2)
    kernel, text = drawn(seed, tmp_path)
    monkeypatch.setenv("GIRIH_DEVICE", "eval")
    expected = run(kernel, seed, m, n, b, c)
    for device, target in [("cpu", ""), ("sim", "sm_90a")]:
        monkeypatch.setenv("GIRIH_DEVICE", device)
        if target:
            monkeypatch.setenv("GIRIH_TARGET", target)
        found = run(kernel, seed, m, n, b, c)
        for name, one, other in zip(("out", "folds"), found, expected):
            assert np.array_equal(one, other), f"{name} on {device}, m = {m}, n = {n}, B = {b}, C = {c}\n{text}"
