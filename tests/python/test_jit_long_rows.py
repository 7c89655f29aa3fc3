"""Rows that shared memory has no room for, on GPUs' simulator."""

import importlib.util
import re

import girih
import girih.language as tl
import ml_dtypes
import numpy as np
import pytest
from long_row_programs import PADDING, PROGRAMS, expected, program

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


@girih.jit
def softmax_in_place(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(x + i, e / tl.sum(e, 0))


def wanted(kernel, x):
    wide = x.astype(np.float64)
    if kernel is layer_norm:
        d = wide - wide.mean()
        return d / np.sqrt((d * d).mean() + 1e-5)
    e = np.exp(wide - wide.max())
    return e / e.sum()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("row", [ROW, 1 << 20])
def test_long_rows(target, row, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", target)
    x = np.random.default_rng(0).standard_normal(row).astype(np.float32)
    for kernel in (softmax, layer_norm):
        y = np.zeros_like(x)
        # No thread keeps a part of the row: each pass loads it, a few elements at once.
        text = kernel.ir("kernel", x, y, B=row, device="sim")
        assert all(int(elements) <= 16 for elements in re.findall(r"slot \w+: f32\[(\d+)\]", text)), text
        kernel[(1,)](x, y, B=row, device="sim")
        np.testing.assert_allclose(y, wanted(kernel, x), rtol=1e-5, atol=1e-5 if kernel is layer_norm else 0)


def test_a_long_row_that_overlaps_its_result_is_kept(monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", "sm_80")
    x = np.random.default_rng(0).standard_normal(ROW).astype(np.float32)
    for launch in (lambda y: softmax[(1,)](y, y, B=ROW, device="sim"), lambda y: softmax_in_place[(1,)](y, B=ROW, device="sim")):
        y = x.copy()
        launch(y)
        np.testing.assert_allclose(y, wanted(softmax, x), rtol=1e-5)


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


TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120")
SHAPES = ((4, 65536), (2, 131072), (0, 131072))


def written(folder, name, rows, width, masked):
    path = folder / f"{name}_{rows}_{width}.py"
    path.write_text(program(name, rows, width, masked))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_of_tiles_compile_for_every_gpu(name, tmp_path, monkeypatch):
    for at, (rows, width) in enumerate(SHAPES):
        masked = name in PADDING and (len(name) + at) % 2 == 1
        length = width - 100 * masked
        monkeypatch.setenv("GIRIH_TARGET", TARGETS[(len(name) + at) % 4])
        kernel = written(tmp_path, name, rows, width, masked)
        x, weights = np.zeros((max(rows, 1), length), np.float32), np.zeros((2, length), np.float32)
        text = kernel.ir("kernel", x, x, weights, N=length, device="sim")
        shared = re.search(r" shared (\d+) \{", text)
        assert shared is None or int(shared[1]) <= 166912, text


@pytest.mark.parametrize("at, name", list(enumerate(PROGRAMS)))
def test_rows_of_tiles(at, name, tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", TARGETS[at // 4 % 4])
    rows, width = 2, 65536
    dtype = (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)[at % 4]
    # Rows of double width, which are twice as long in memory, are half as many elements.
    masked, width = name in PADDING and at % 2 == 1, width // 2 if dtype is np.float64 else width
    length, random = width - 100 * masked, np.random.default_rng(at)
    x, weights = (random.standard_normal((n, length)).astype(dtype) for n in (max(rows, 1), 2))
    wide = np.float64 if dtype is np.float64 else np.float32
    y, wanted = np.zeros(x.shape, wide), expected(name, x, weights)
    written(tmp_path, name, rows, width, masked)[(1,)](x, y, weights, N=length, device="sim")
    np.testing.assert_allclose(y, wanted, rtol=2e-4, atol=2e-4 * np.abs(wanted).max())


SORTS = """\
import girih as tl


@tl.jit
def kernel(x, y, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(y + i, tl.{})
"""


def sorts(folder, name, call):
    path = folder / f"{name}.py"
    path.write_text(SORTS.format(call))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def test_tiles_of_a_sort_take_turns_with_their_memory(tmp_path, monkeypatch):
    rising, falling = sorts(tmp_path, "rising", "sort(v)"), sorts(tmp_path, "falling", "sort(v, descending=True)")
    for target, kernel, row in (("sm_80", rising, 2048), ("sm_90a", falling, 4096)):
        monkeypatch.setenv("GIRIH_TARGET", target)
        x = np.random.default_rng(row).standard_normal(row).astype(np.float32)
        y = np.zeros_like(x)
        kernel[(1,)](x, y, B=row, device="sim")
        np.testing.assert_array_equal(y, np.sort(x) if kernel is rising else np.sort(x)[::-1])


def test_a_sort_beyond_shared_memory_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("GIRIH_TARGET", "sm_90a")
    x = np.zeros(ROW, np.float32)
    with pytest.raises(girih.CompilationError, match=r"needs \d+ bytes of shared memory"):
        sorts(tmp_path, "long", "sort(v)").ir("kernel", x, x, B=ROW, device="sim")
