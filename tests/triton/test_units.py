"""Products and attention as people write them in Triton: which units of a GPU compute and copy, and that the simulator gets the numbers."""

import os
import pathlib
import subprocess
import sys

import kernels
import numpy as np
import pytest
import triton
from girih.bench import tutorials
from girih.triton import Array
from girih.tune import command

HERE = pathlib.Path(__file__).parent
MATMUL = (
    pathlib.Path(tutorials.__file__),
    "grouped_matmul",
    '*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 1, {b}, i32:16, 1, BM=128, BN=128, BK=64, GROUP=8, ACTIVATION="leaky"',
)
HEADS = (
    pathlib.Path(tutorials.__file__),
    "attention",
    "*fp16:16, *fp16:16, *fp16:16, *fp16:16, *fp32:16, fp32, i32:16, D={d}, BM=128, BN=64, CAUSAL={causal}",
)
STRIDED = (
    HERE / "kernels.py",
    "strided_attention",
    f"{'*fp16:16, ' * 4}fp32, {'i32:16, ' * 9}D={{d}}, BM=128, BN=64, CAUSAL={{causal}}",
)
TILES = (
    HERE / "kernels.py",
    "tile_by_tile",
    "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, PROGRAMS=132, BM=128, BN=128, BK=64",
)
BY_TMA, GROUPS, ROLES = " by tma", " as warpgroup", " roles overlap"


@pytest.mark.parametrize(
    "kernel, values, target, lines",
    [
        # Rows that wrap around are read as they are: boxes of an array.
        (MATMUL, {"b": "i32:16, 1"}, "sm_90a", {"fill": BY_TMA, "stage_write": BY_TMA, "tensorize": GROUPS}),
        (MATMUL, {"b": "1, i32:16"}, "sm_90a", {"fill": BY_TMA, "stage_write": BY_TMA, "tensorize": GROUPS}),
        (MATMUL, {"b": "i32:16, 1"}, "sm_100a", {"fill": BY_TMA, "tensorize": " as tcgen05", "pipeline": ROLES}),
        (MATMUL, {"b": "i32:16, 1"}, "sm_80", {"fill": " by async"}),
        (HEADS, {"d": 64, "causal": 0}, "sm_90a", {"fill": BY_TMA, "tensorize": GROUPS, "pipeline": ROLES}),
        (HEADS, {"d": 128, "causal": 1}, "sm_90a", {"fill": BY_TMA, "tensorize": GROUPS, "pipeline": ROLES}),
        (HEADS, {"d": 128, "causal": 1}, "sm_80", {"fill": " by async"}),
        (STRIDED, {"d": 64, "causal": 1}, "sm_90a", {"fill": BY_TMA, "tensorize": GROUPS, "pipeline": ROLES}),
        # The warp that copies goes on with the next tile.
        (TILES, {}, "sm_90a", {"fill": BY_TMA, "stage_write": BY_TMA, "tensorize": GROUPS, "pipeline": ROLES}),
        (TILES, {}, "sm_100a", {"fill": BY_TMA, "stage_write": BY_TMA, "tensorize": " as tcgen05", "pipeline": ROLES}),
        (STRIDED, {"d": 128, "causal": 0}, "sm_90a", {"fill": BY_TMA, "tensorize": GROUPS, "pipeline": ROLES}),
    ],
)
def test_units(kernel, values, target, lines):
    script, name, signature = kernel
    given = [f"{script}:{name}", "--signature", signature.format(**values), "--target", target, "--ir", "schedule"]
    environment = {**os.environ, "GIRIH_PYTHON": sys.executable}
    ran = subprocess.run([command(), "compile", *given], capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    steps = [line.split("#")[0] for line in ran.stdout.splitlines()]
    for word, unit in lines.items():
        assert any(s.strip().startswith(word) and unit in s for s in steps), f"{word} .. {unit} is not in\n{ran.stdout}"


@pytest.fixture(params=["sm_90a", "sm_100a"])
def simulated(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", "sim")
    monkeypatch.setenv("GIRIH_TARGET", request.param)
    every = (tutorials.grouped_matmul, kernels.strided_attention, kernels.tile_by_tile)
    for kernel in every:
        kernel.device_caches.clear()
    yield request.param
    for kernel in every:
        kernel.device_caches.clear()


def of(values):
    return np.ascontiguousarray(values).view(Array)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float16")


def wide(x):
    return np.asarray(x, dtype=np.float64)


def close(found, expected):
    np.testing.assert_allclose(wide(found), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("m, n, k, blocks", [(144, 272, 80, (128, 128, 64)), (33, 48, 32, (64, 64, 32)), (1, 16, 16, (128, 64, 64))])
def test_products_of_sizes_that_blocks_do_not_divide(simulated, m, n, k, blocks):
    bm, bn, bk = blocks
    # Rows behind the end are not numbers: whoever reads them shows it.
    a, b = random(m + 200, k), random(k + 200, n, seed=1)
    a[m:], b[k:] = np.nan, np.nan
    c = of(np.full((m, n), 7, dtype="float16"))
    tutorials.grouped_matmul[(triton.cdiv(m, bm) * triton.cdiv(n, bn),)](
        of(a), of(b), c, m, n, k, k, 1, n, 1, n, 1, BM=bm, BN=bn, BK=bk, GROUP=2, ACTIVATION=""
    )
    close(c, wide(a[:m]) @ wide(b[:k]))


@pytest.mark.parametrize("programs", [1, 3, 8])
@pytest.mark.parametrize("m, n, k, blocks", [(160, 144, 80, (64, 64, 32)), (160, 144, 16, (64, 64, 64)), (300, 272, 208, (128, 128, 64))])
def test_products_tile_by_tile(simulated, m, n, k, blocks, programs, monkeypatch):
    """Sums of fewer and of more steps than there are slots, and more programs than tiles."""
    monkeypatch.setenv("GIRIH_SCHEDULES", "2")
    triton.set_allocator(lambda size, alignment, stream: of(np.zeros(size, dtype="int8")))
    a, b, c = random(m, k), random(n, k, seed=1), of(np.full((m, n), 7, dtype="float16"))
    bm, bn, bk = blocks
    kernels.tile_by_tile[(programs,)](of(a), of(b), c, m, n, k, PROGRAMS=programs, BM=bm, BN=bn, BK=bk)
    close(c, wide(a) @ wide(b).T)


@pytest.mark.parametrize("programs", [1, 3])
def test_tiles_of_different_sums(simulated, programs):
    """The slots of a pipeline are counted through all tiles, and that needs sums of one length."""
    a, b, c = random(128, 128), random(192, 128, seed=1), of(np.full((128, 192), 7, dtype="float16"))
    kernels.tile_by_tile[(programs,)](of(a), of(b), c, 128, 192, 128, PROGRAMS=programs, BM=64, BN=64, BK=32, EVEN=False)
    for tile in range(6):
        m, n, k = tile // 3 * 64, tile % 3 * 64, 128 // (tile % 2 + 1)
        close(c[m : m + 64, n : n + 64], wide(a[m : m + 64, :k]) @ wide(b[n : n + 64, :k]).T)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("tokens, d, bm", [(160, 64, 64), (80, 32, 128)])
def test_attention_of_heads_apart(simulated, tokens, d, bm, shared, causal):
    """`shared`: all heads have the same keys, 0 elements apart, which no copy of boxes takes."""
    heads = 2
    q, k, v = (random(1 if s and shared else heads, tokens, d, seed=s) for s in range(3))
    out, apart = of(np.zeros_like(q)), 0 if shared else tokens * d
    strides = [tokens * d, d, apart, d, apart, d, tokens * d, d]
    kernels.strided_attention[(triton.cdiv(tokens, bm), heads)](
        of(q), of(k), of(v), out, 0.5, *strides, tokens, D=d, BM=bm, BN=32, CAUSAL=causal
    )
    scores = wide(q) @ wide(k).transpose(0, 2, 1) * 0.5
    if causal:
        scores[:, np.triu(np.ones((tokens, tokens), dtype=bool), 1)] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    close(out, weights / weights.sum(2, keepdims=True) @ wide(v))
