"""Rows that shared memory has no room for, on GPUs' simulator."""

import girih
import girih.language as tl
import numpy as np
import pytest

ROW = 65536


@girih.jit
def softmax(x, y, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + i, e / tl.sum(e, 0))


@girih.jit
def layer_norm(x, y, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    d = v - tl.sum(v, 0) / B
    tl.store(y + i, d / tl.sqrt(tl.sum(d * d, 0) / B + 1e-5))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_long_rows(target, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", target)
    x = np.random.default_rng(0).standard_normal(ROW).astype(np.float32)
    y, wide = np.zeros_like(x), x.astype(np.float64)
    softmax[(1,)](x, y, B=ROW, device="sim")
    e = np.exp(wide - wide.max())
    np.testing.assert_allclose(y, e / e.sum(), rtol=1e-5)
    layer_norm[(1,)](x, y, B=ROW, device="sim")
    d = wide - wide.mean()
    np.testing.assert_allclose(y, d / np.sqrt((d * d).mean() + 1e-5), atol=1e-5)


@girih.jit
def many(x, y, B: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    s = tl.sum(v, 0)
    for _ in tl.static_range(N):
        s = s * 0.5 + tl.sum(v * 0.25, 0)
    tl.store(y + i, v + s)


def test_a_thousand_reductions_fit():
    x, y, n = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), 1000
    many[(1,)](x, y, B=64, N=n, device="sim")
    s = np.float32(x.sum())
    for _ in range(n):
        s = s * np.float32(0.5) + np.float32((x * 0.25).sum())
    np.testing.assert_allclose(y, x + s)
