"""Kernels in Triton's words on arrays of NumPy's, without PyTorch: the part of these tests that `make test` runs."""

import math

import kernels
import numpy as np
import pytest
import triton
from girih.bench import tutorials

import girih
from girih.triton import Array


@pytest.fixture(params=["cpu", "eval"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    for kernel in [*vars(kernels).values(), *vars(tutorials).values()]:
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()
    return request.param


def of(values):
    return np.ascontiguousarray(values).view(Array)


def random(*shape, seed=0, dtype="float32"):
    return of(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def zeros(*shape, dtype="float32"):
    return of(np.zeros(shape, dtype=dtype))


def close(found, expected, within):
    np.testing.assert_allclose(np.asarray(found, dtype=np.float64), expected, rtol=within, atol=within)


def wide(x):
    return np.asarray(x, dtype=np.float64)


@pytest.mark.parametrize("n", [1, 256, 1000])
def test_add(n):
    x, y, out = random(n), random(n, seed=1), zeros(n)
    kernels.add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    np.testing.assert_array_equal(out, x + y)


def softmax(x):
    e = np.exp(wide(x) - wide(x).max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_softmax():
    x, out = random(9, 50), zeros(9, 50)
    tutorials.rows_softmax[(4,)](x, out, 50, 50, 9, 50, BLOCK=64)
    close(out, softmax(x), 1e-6)


def test_matmul():
    m, n, k = 50, 70, 40
    a, b, c = random(m, k, dtype="float16"), random(k, n, seed=1, dtype="float16"), zeros(m, n)
    kernels.matmul[(2, 3)](a, b, c, m, n, k, BM=32, BN=32, BK=16)
    close(c, wide(a) @ wide(b), 1e-4)


def test_products_of_f32_are_exact_unless_the_kernel_says_otherwise():
    a, b, c = random(32, 32), random(32, 32, seed=1), zeros(32, 32)
    kernels.matmul[(1, 1)](a, b, c, 32, 32, 32, BM=32, BN=32, BK=16)
    close(c, wide(a) @ wide(b), 1e-5)


def test_attention():
    q, k, v = (random(64, 16, seed=i) for i in range(3))
    out, lse = zeros(64, 16), zeros(64)
    tutorials.attention[(2, 1)](q, k, v, out, lse, 0.5, 64, D=16, BM=32, BN=16, CAUSAL=True)
    scores = np.where(np.tri(64) > 0, wide(q) @ wide(k).T * 0.5, -np.inf)
    close(out, softmax(scores) @ wide(v), 1e-4)


def test_gradients_of_layer_norm_under_a_lock():
    m, n, groups = 6, 40, 2
    x, w, dy = random(m, n), random(n, seed=1), random(m, n, seed=2)
    mean = of(wide(x).mean(1).astype("float32"))
    rstd = of((1 / np.sqrt(wide(x).var(1) + 1e-5)).astype("float32"))
    dx, parts, lock = zeros(m, n), zeros(2, groups, n), zeros(2 * groups, dtype="int32")
    tutorials.norm_backward_rows[(m,)](dx, dy, parts[0], parts[1], x, w, mean, rstd, lock, n, n, GROUPS=groups, BLOCK=64)
    hat = (wide(x) - wide(mean)[:, None]) * wide(rstd)[:, None]
    wg = wide(w) * dy
    close(dx, (wg - hat * (wg * hat).mean(1, keepdims=True) - wg.mean(1, keepdims=True)) * wide(rstd)[:, None], 1e-4)
    close(parts[0].sum(0), (dy * hat).sum(0), 1e-4)


def test_branches_and_loops():
    x, out = of(np.array([1.0, -3.0, 20.0, 10.0, 5.0, 7.0], dtype="float32")), of(np.full(6, 100, dtype="float32"))
    kernels.early[(6,)](x, out, 5)
    assert out.tolist() == [2.0, -1.0, 40.0, 11.0, 6.0, 100.0]
    steps = zeros(4, dtype="int32")
    kernels.collatz[(4,)](of(np.array([1, 6, 27, 97])), steps)
    assert steps.tolist() == [0, 8, 111, 118]


def test_atomics():
    x = of(np.arange(256, dtype="int32") % 10)
    counts, total, lock = (zeros(n, dtype="int32") for n in (10, 1, 1))
    kernels.atomics[(4,)](x, counts, total, lock, N=64)
    assert counts.tolist() == np.bincount(x).tolist()
    assert total[0] == x.sum() and lock[0] == 0


def test_moves():
    x = of(np.random.default_rng(0).integers(0, 1000, 64, dtype="int32"))
    index = of(np.random.default_rng(1).integers(0, 64, 64, dtype="int32"))
    out, pairs, bins = (zeros(n, dtype="int32") for n in (128, 128, 16))
    kernels.moves[(1,)](x, index, out, pairs, bins, N=64)
    assert out[:64].tolist() == x[index].tolist()
    assert pairs.tolist() == np.stack([x, x + 1], 1).ravel().tolist()
    assert bins.tolist() == np.bincount(x & 15, minlength=16).tolist()


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def test_functions_of_elements_branch_and_loop():
    x, y = (of(np.random.default_rng(i).integers(0, 40, 64, dtype="int32")) for i in range(2))
    out = zeros(4, 64, dtype="int32")
    kernels.elements[(1,)](x, y, out, N=64)
    assert out[0].tolist() == np.sign(np.asarray(x) - y).tolist()
    assert out[1].tolist() == [collatz(int(n)) for n in x]
    pairs = np.asarray(x).reshape(32, 2)
    assert out[2].reshape(32, 2).tolist() == np.sort(pairs, 1).tolist()
    assert out[3].reshape(32, 2).tolist() == np.repeat(pairs.sum(1, keepdims=True), 2, 1).tolist()


@pytest.mark.parametrize("reverse", [False, True])
def test_folds_that_assert_and_branch(reverse):
    x = of(np.random.default_rng(0).integers(0, 9, (4, 8), dtype="int32"))
    sums, scans, last = zeros(8, dtype="int32"), zeros(4, 8, dtype="int32"), zeros(4, dtype="int32")
    kernels.checked_folds[(1,)](x, sums, scans, last, REVERSE=reverse)
    assert sums.tolist() == np.asarray(x).sum(0).tolist()
    way = -1 if reverse else 1
    assert scans.tolist() == np.cumsum(np.asarray(x)[:, ::way], 1)[:, ::way].tolist()
    expected = []
    for row in np.asarray(x).tolist():
        kept = row[0]
        for v in row[1:]:
            kept = v if v % 2 == 0 else kept
        expected.append(kept)
    assert last.tolist() == expected
    x[2, 3] = 1 << 30
    x[3, 3] = 1 << 30
    with pytest.raises(girih.KernelAssertionError, match="too large"):
        kernels.checked_folds[(1,)](x, sums, scans, last, REVERSE=reverse)


def test_functions_that_are_not_inlined_return_from_branches():
    x, out = of(np.arange(-3, 6, dtype="int32")), zeros(9, dtype="int32")
    kernels.graded[(9,)](x, out)
    assert out.tolist() == [-1, -1, -1, 0, 10, 20, 103, 104, 105]


def test_sums_of_half_floats_are_rounded_once():
    for dtype in ("float16", "bfloat16"):
        x = np.full((32, 32), 1.0009765625 if dtype == "float16" else 1.0)
        out, running = zeros(1), zeros(1024)
        kernels.half_sums[(1,)](of(x.astype("float32")), out, running, DTYPE=getattr(triton.language, dtype))
        assert out[0] == {"float16": 1025.0, "bfloat16": 1024.0}[dtype]
        assert running[-1] == out[0]


def test_compare_and_swap_of_half_floats():
    for dtype in ("float16", "int16"):
        x = of(np.array([0, 1, 0, 1, 0, 1, 0], dtype=dtype))
        kernels.swapped[(1,)](x, N=8, n=7)
        assert x.tolist() == [2, 1, 2, 1, 2, 1, 2]


@pytest.mark.skipif(not hasattr(triton.language, "atomic_poll"), reason="this version of Triton has none")
def test_polls_have_a_limit():
    for there, expected in ((1, 1), (0, 0)):
        flag, out = of(np.array([there], dtype="int32")), of(np.array([7], dtype="int32"))
        kernels.polled[(1,)](flag, out, 100)
        assert out[0] == expected


def test_messages(capsys):
    x = of(np.array([3, -1, 200, 7, 1, 1, 1, 1, 1, 1, 1, 12], dtype="int32"))
    kernels.messages[(1, 2)](x, N=4)
    lines = capsys.readouterr().out.splitlines()
    for block in (0, 1):
        pid = f"pid (0, {block}, 0)"
        assert [line for line in lines if line.startswith(pid)] == [
            *(f"{pid} idx ({i}) v: {v}" for i, v in enumerate([3, -1, 200, 7])),
            f"{pid} idx () scalar: 3",
            *(f"{pid} idx ({i}, {j}): (operand 0) {v}" for i, j, v in [(0, 0, 3), (0, 1, -1), (1, 0, 200), (1, 1, 7)]),
            *(f"{pid} idx ({i}, {j}): (operand 1) 1.500000" for i in (0, 1) for j in (0, 1)),
            *(f"{pid} idx ({i}) hex: 0x{v:08x}" for i, v in enumerate([3, 0xFFFFFFFF, 200, 7])),
            f"{pid} done",
        ]
    with pytest.raises(girih.KernelAssertionError, match="too large"):
        x[2] = 1000
        kernels.messages[(1, 1)](x, N=4)


@pytest.mark.parametrize("value", [0.0, 42.0, -1.5, 1e30, 1e300, -1e300, math.inf, -math.inf, math.nan])
def test_numbers_are_passed_as_floats_of_every_kind(value):
    out = zeros(1, dtype="float64")
    for kernel, most in ((kernels.doubles, math.inf), (kernels.singles, 3.5e38), (kernels.brains, 3.5e38), (kernels.halves, 65519)):
        kernel[(1,)](out, value)
        expected = math.copysign(math.inf, value) if abs(value) > most else value
        np.testing.assert_allclose(out[0], expected, rtol=1e-2 if kernel is kernels.brains else 1e-7)


def test_erf():
    x, out = of(np.linspace(-7.5, 7.5, 64, dtype="float32")), zeros(6, 64)
    kernels.functions[(1,)](x, out, N=64)
    close(out[0], [math.erf(v) for v in x.tolist()], 1e-6)
    close(out[1], np.tanh(wide(x)), 1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("n, bins", [(64, 2), (64, 8), (1024, 256), (64, 32768), (32768, 1024)])
def test_histograms(n, bins, dtype):
    """Few bins and many: the last two cases would be too many comparisons."""
    x = np.random.default_rng(n).integers(0, bins + bins // 2, n).astype(dtype)
    out = zeros(bins, dtype="int32")
    kernels.counted[(1,)](of(x), out, n - 3, N=n, BINS=bins)
    among = x[: n - 3]
    np.testing.assert_array_equal(out, np.bincount(among[among < bins], minlength=bins))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("n, bins", [(64, 16), (1000, 64), (2048, 16384), (64, 32768)])
def test_histograms_of_threads(n, bins, target, monkeypatch):
    """The threads of a block add to bins that they share: no race, and a bin that many of them add to at once."""
    monkeypatch.setenv("GIRIH_DEVICE", "sim")
    monkeypatch.setenv("GIRIH_TARGET", target)
    kernels.counted.device_caches.clear()
    size = 1 << (n - 1).bit_length()
    x = np.random.default_rng(n).integers(0, bins + bins // 2, size).astype("int32")
    x[: n // 4] = 5
    out = zeros(bins, dtype="int32")
    kernels.counted[(1,)](of(x), out, n, N=size, BINS=bins)
    kernels.counted.device_caches.clear()
    among = x[:n]
    np.testing.assert_array_equal(out, np.bincount(among[among < bins], minlength=bins))


ELEMENTS, PLACES = ["float32", "int8", "float64", "bool"], ["int8", "uint8", "int16", "int32", "uint32", "int64"]


@pytest.mark.parametrize("element, places", [*((e, "int32") for e in ELEMENTS), *(("float32", p) for p in PLACES)])
def test_gathers(element, places):
    """Places in all integers, up to the last that each has: 255 in eight bits is not negative."""
    rng = np.random.default_rng(1)
    x = (rng.integers(0, 2, 256) if element == "bool" else rng.integers(-99, 99, 256)).astype(element)
    at = rng.integers(0, min(256, np.iinfo(places).max + 1), 512).astype(places)
    out = zeros(512, dtype=element)
    kernels.chosen[(1,)](of(x), of(at), out, N=256, M=512)
    np.testing.assert_array_equal(out, x[at])


def test_configurations_of_one_kernel_are_measured_once(monkeypatch):
    """Numbers of warps and stages change nothing: of six configurations, two kernels are measured."""
    testing = pytest.importorskip("triton.testing")
    measured = []

    def do_bench(call, **options):
        measured.append(call)
        call()
        return [float(len(measured))] * 3

    monkeypatch.setattr(testing, "do_bench", do_bench)
    configs = [triton.Config({"BLOCK": b}, num_warps=w, num_stages=s) for b in (64, 128) for w, s in ((1, 1), (4, 1), (8, 3))]
    tuned = triton.autotune(configs, key=["n"])(kernels.add)
    for n, count in ((500, 2), (500, 2), (600, 4)):
        x, y, out = random(n), random(n, seed=1), zeros(n)
        tuned[lambda meta, n=n: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
        np.testing.assert_array_equal(out, x + y)
        assert len(measured) == count
    assert tuned.best_config.kwargs["BLOCK"] == 64
