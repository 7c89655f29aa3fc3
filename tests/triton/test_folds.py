"""Folds and scans of several values, and functions given to functions: against PyTorch, NumPy and arithmetic."""

import numpy as np
import pytest
import triton
import triton.language as tl

torch = pytest.importorskip("torch")


@pytest.fixture(params=["cpu", "eval", "sim"], autouse=True)
def device(request, monkeypatch):
    monkeypatch.setenv("GIRIH_DEVICE", request.param)
    torch.manual_seed(0)
    for kernel in globals().values():
        if isinstance(kernel, triton.runtime.JITFunction):
            kernel.device_caches.clear()


def close(found, expected, within=1e-5):
    torch.testing.assert_close(found.double(), expected.double(), rtol=within, atol=within)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence(factors, terms, out, N: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(factors + at), tl.load(terms + at)), 0, affine, reverse=REVERSE)
    tl.store(out + at, h)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence(reverse):
    a, b, out = torch.rand(3, 64), torch.randn(3, 64), torch.empty(3, 64)
    recurrence[(3,)](a, b, out, 64, reverse)
    turned = (lambda x: x.flip(1)) if reverse else (lambda x: x)
    h, steps = torch.zeros(3, dtype=torch.float64), []
    for factor, term in zip(turned(a).double().T, turned(b).double().T):
        h = h * factor + term
        steps.append(h)
    close(out, turned(torch.stack(steps, 1)))


@triton.jit
def joined(mean, squares, count, other_mean, other_squares, other_count):
    total = count + other_count
    apart = other_mean - mean
    share = tl.where(total == 0, 0.0, other_count / total)
    return mean + apart * share, squares + other_squares + apart * apart * count * share, total


@triton.jit
def statistics(x, means, variances, n, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    values = tl.load(x + row * n + at, mask=at < n, other=0.0)
    start = (values, tl.zeros([N], tl.float32), (at < n).to(tl.float32))
    mean, squares, count = tl.reduce(start, 0, joined)
    tl.store(means + row, mean)
    tl.store(variances + row, squares / count)


def test_mean_and_variance_in_one_fold():
    x, means, variances = torch.randn(5, 100) * 3 + 7, torch.empty(5), torch.empty(5)
    statistics[(5,)](x, means, variances, 100, 128)
    close(means, x.double().mean(1))
    close(variances, x.double().var(1, unbiased=False), 1e-4)


@triton.jit
def restarted(x, flag, y, other):
    return tl.where(other != 0, y, x + y), flag | other


@triton.jit
def segments(x, flags, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    sums, _ = tl.associative_scan((tl.load(x + at), tl.load(flags + at)), 1, restarted)
    tl.store(out + at, sums)


def test_sums_of_segments():
    x, flags = torch.randint(-9, 9, (4, 64), dtype=torch.int32), (torch.rand(4, 64) < 0.1).int()
    out, expected = torch.empty_like(x), x.clone()
    segments[(1,)](x, flags, out, 4, 64)
    for t in range(1, 64):
        expected[:, t] += torch.where(flags[:, t] != 0, 0, expected[:, t - 1])
    assert torch.equal(out, expected)


@triton.jit
def square(x):
    return x * x


@triton.jit
def cube(x):
    return x * square(x)


@triton.jit
def applied(x, F: tl.constexpr):
    return F(x)


@triton.jit
def sum_of_powers(x, out, N: tl.constexpr, CUBES: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    several = (v, v + 1, v * 2)
    total = tl.zeros([N], tl.float32)
    for i in tl.static_range(len(several)):
        total += (i + 1) * applied(several[i], cube if CUBES else square)
    tl.store(out + at, total)


@pytest.mark.parametrize("cubes", [False, True])
def test_functions_of_functions(cubes):
    x, out = torch.randn(32), torch.empty(32)
    sum_of_powers[(1,)](x, out, 32, cubes)
    v, power = x.double(), 3 if cubes else 2
    close(out, v**power + 2 * (v + 1) ** power + 3 * (v * 2) ** power)


@triton.jit
def drawn(out, seed, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(out + at, a.to(tl.int32, bitcast=True))
    tl.store(out + N + at, b.to(tl.int32, bitcast=True))
    tl.store(out + 2 * N + at, c.to(tl.int32, bitcast=True))
    tl.store(out + 3 * N + at, d.to(tl.int32, bitcast=True))


def philox(seed, at):
    """Philox 4x32 of ten rounds, in Python's integers."""
    words, keys = [at, 0, 0, 0], [seed % 2**32, seed >> 32]
    for _ in range(10):
        high, low = divmod(0xD2511F53 * words[0], 2**32)
        other_high, other_low = divmod(0xCD9E8D57 * words[2], 2**32)
        words = [other_high ^ words[1] ^ keys[0], other_low, high ^ words[3] ^ keys[1], low]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return words


def test_random_numbers():
    seed, out = 0x123456789, torch.empty(4, 64, dtype=torch.int32)
    drawn[(1,)](out, seed, 64)
    expected = np.array([philox(seed, at) for at in range(64)], dtype=np.uint32).T
    np.testing.assert_array_equal(out.numpy().view(np.uint32), expected)
